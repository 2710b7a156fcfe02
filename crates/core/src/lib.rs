//! Words and arithmetic of peaklane: no clock, no network, no disk, no dice.
//!
//! What a lane answered ([`outcome`], [`record`]), what an attempt was worth ([`attempt`]), and the numbers that a
//! burst is reduced to (`stats`, `summary`). Everything here is exact and can be tested in microseconds.

pub mod attempt;
pub mod budget;
pub mod burst;
pub mod call;
pub mod campaign;
pub mod check;
pub mod choice;
pub mod config;
pub mod countertest;
pub mod forecast;
pub mod harness;
pub mod lane;
pub mod outcome;
pub mod prefix;
pub mod record;
pub mod rules;
pub mod secret;
pub mod session;
pub mod stats;
pub mod summary;
pub mod watch;
pub mod window;
