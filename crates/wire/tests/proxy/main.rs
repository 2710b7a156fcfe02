//! The proxy: every stream case through it in memory on a paused clock, and what upstreams and clients may do to it.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod cases;
mod faults;
mod keys;
mod passing;
mod stage;
mod usage;
