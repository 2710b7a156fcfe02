//! What a watcher says: its plan beforehand, the units that start it, what happens, and how it stands.

pub mod forecast;
pub mod plan;
pub mod status;
pub mod units;
pub mod words;
