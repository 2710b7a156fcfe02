//! The client against networks that misbehave: limits, framing, codings, kept connections, redirects, retries and keys
//! in memory on a paused clock, where moments are exact; TLS and forwarding proxies over real sockets of loopback.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside the test functions that the lint knows")]

#[path = "../support/mod.rs"]
mod support;

mod certificates;
mod coding;
mod framing;
mod http2;
mod keys;
mod lane;
mod limits;
mod proxy;
mod redirect;
mod retries;
mod reuse;
mod sockets;
mod tls;
