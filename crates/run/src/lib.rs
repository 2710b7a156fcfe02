//! Makes measurements happen: bursts and watches; loads and sessions later.
//!
//! Measures and records, prints nothing. Progress goes to a callback, records to a [`recorder::Recorder`].

pub mod burst;
pub mod clock;
pub mod fleet;
pub mod nonce;
pub mod plan_hash;
pub mod proxy;
pub mod recorder;
pub mod watch;
