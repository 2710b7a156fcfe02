//! The store and CSV files as callers see them: one binary, so that it is linked once.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests are tests too; clippy's own exception sees `#[test]` alone

mod calls;
mod csv;
mod errors;
mod kept;
mod kill;
mod ledger;
mod purge;
mod roundtrip;
mod sharing;
mod support;
