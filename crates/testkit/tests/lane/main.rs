//! The scripted lane and the recordings, tried from the other side. One binary, since each costs a link.

#![allow(clippy::unwrap_used, reason = "helpers of tests, where a panic is a finding")]

mod player;
mod raw;
mod recorded;
mod reference;
