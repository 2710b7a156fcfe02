//! Whole campaigns with a fake wall clock in paused time: what runs, what is missed and why, what two watchers share.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[path = "watch/campaigns.rs"]
mod campaigns;
#[path = "watch/faults.rs"]
mod faults;
#[path = "watch/laws.rs"]
mod laws;
#[path = "watch/records.rs"]
mod records;
#[path = "watch/world.rs"]
mod world;
