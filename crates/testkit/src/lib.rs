//! Dev only: case readers, the scripted lane, and what tests share.

pub mod data;
