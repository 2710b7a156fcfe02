//! `peaklane proxy` as a program: cases over sockets, faults, real harnesses, real traffic.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod cases;
mod env;
mod faults;
mod harness;
mod privacy;
mod replay;
mod support;
