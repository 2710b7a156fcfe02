//! The real binary measuring real sockets: what a user gets from `try`, `burst`, `summary` and `demo`, seen from outside.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod bursts;
mod cases;
mod decide;
mod demo;
mod disk;
mod fates;
mod privacy;
mod prompts;
mod real_campaign;
mod real_server;
mod stopped;
mod support;
mod watch;
