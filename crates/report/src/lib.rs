//! Finished data -> text. No clock, no disk, no network: what measures does not render, and what renders measures
//! nothing.
//!
//! - [`units`], [`palette`], [`table`], [`words`]: how a figure, a colour, a table and a failure look, everywhere.
//! - [`try_view`], [`timeline`], [`try_json`]: one request, for people and for programs.
//! - [`burst`], [`summary`], [`sentence`], [`decision`]: bursts, windows, the one sentence that matters, and the choice.
//! - [`countertest`]: one registered change judged. [`purge`]: what was removed.
//! - [`choice`]: a choice with all its figures: for people, for programs, for a router, for the record.
//! - [`chart`], [`html`]: the page.
//! - [`watch`]: plan, units, progress and state of a campaign.

pub mod burst;
pub mod calls;
pub mod chart;
pub mod choice;
pub mod countertest;
pub mod decision;
pub mod extra;
pub mod genai;
pub mod harness;
pub mod history;
pub mod html;
pub mod notes;
pub mod palette;
pub mod purge;
#[cfg(test)]
mod sample;
pub mod sentence;
pub mod sessions;
pub mod summary;
pub mod table;
mod throughput;
pub mod timeline;
pub mod trace_sessions;
pub mod try_json;
pub mod try_view;
pub mod units;
pub mod watch;
pub mod words;
