//! What a watcher says: its plan beforehand, the units that start it, what happens, and how it stands.

pub mod plan;
pub mod units;
