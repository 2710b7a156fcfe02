//! The front door of peaklane: what turns files, environment and command line into work for the other rooms.
//!
//! - [`cli`]: the command line, from its words to an exit code; one file per command in [`cmd`].
//! - [`globals`]: what holds for every command. [`load`]: configuration and keys.
//! - [`exit`], [`failure`], [`out`]: how a command ends, and what it prints where.

pub mod cli;
pub mod cmd;
pub mod exit;
pub mod failure;
pub mod globals;
pub mod load;
pub mod out;
