//! What becomes of what the proxy tells: sessions and prefix figures, records in the store, counts for Prometheus.
//!
//! Two threads beside the one that hands bytes on. The first ([`book`]) reads prompts and puts calls together, the second
//! ([`scribe`]) writes them. Queues between them are bounded and never waited for: what finds no room is counted as lost
//! ([`Losses`]), and the stream goes on.

pub mod book;
pub mod keep;
pub mod metrics;
pub mod recorder;
pub mod scribe;

pub use keep::{Bodies, KeepError};
pub use metrics::Metrics;
pub use recorder::{Finished, Recorder, Recording, Settings};
pub use scribe::Losses;

#[cfg(test)]
mod tests;
