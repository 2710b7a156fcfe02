//! The proxy: every stream case through it in memory on a paused clock, and what upstreams and clients may do to it.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod cases;
mod faults;
mod http2;
mod keys;
// Lanes that a test scripts byte by byte, as for the client.
#[allow(dead_code, reason = "the client's tests use more of it")]
#[path = "../network/lane.rs"]
mod lane;
mod passing;
mod sockets;
mod stage;
#[path = "../support/mod.rs"]
mod support;
mod usage;
