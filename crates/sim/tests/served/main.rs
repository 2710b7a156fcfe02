//! What is served, seen from the client's side of the connection: in memory on a paused clock where times are checked,
//! over sockets where the sockets matter.
#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside the test functions that the lint knows")]

mod dialects;
mod memory;
mod pacing;
mod sockets;
