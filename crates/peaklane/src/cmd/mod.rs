//! One file per command: its options, and what it does with them.

mod booked;
pub mod burst;
pub mod check;
pub mod completions;
pub mod countertest;
pub mod data;
pub mod decide;
pub mod demo;
pub mod init;
pub mod lanes;
pub mod man;
mod progress;
pub mod proxy;
mod shots;
pub mod summary;
mod system;
pub mod try_;
pub mod watch;
