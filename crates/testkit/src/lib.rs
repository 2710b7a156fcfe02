//! Dev only: case readers, the scripted lane, and what tests share.

pub mod binary;
pub mod case;
pub mod data;
pub mod expect;
pub mod expected;
pub mod harness;
mod http1;
pub mod io;
pub mod log;
pub mod net;
pub mod player;
pub mod real_server;
pub mod recorded;
pub mod replay;
pub mod require;
mod seen;
mod step;
pub mod traces;
