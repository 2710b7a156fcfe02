//! The watcher: every burst of a campaign when its window comes, once, whatever the clocks do.
//!
//! ```text
//! clocks -> Runtime (core: what is due, what was missed) -> claim in the store -> gun fires -> settle in the store
//! ```
//!
//! Nothing is sent without a claim on disk. One burst (or, interleaved, one window) runs at a time; while it runs the
//! ledger is left alone but for the lease, so that nothing disturbs what is measured. What could not be written is kept and
//! written later; what happened is told by [`Note`]s. Clocks and gun are traits, so that tests live through whole campaigns
//! with a fake wall clock in paused time.

mod desk;
pub mod holder;
mod keep;
mod resolve;
mod track;
mod wall;
mod watcher;

use std::future::Future;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use peaklane_core::budget::{Caps, Exceeded, Used};
use peaklane_core::config::LaneOrder;
use peaklane_core::watch::{Note, Shortly};
use peaklane_core::window::BurstsError;
use peaklane_store::{SpentRow, StoreError};

pub use keep::{Changes, Keeper, LEASE_S, SIGN_OF_LIFE_S, WATCHER_KIND, Windows, status_of, worst_windows};
pub use resolve::{Candidate, Resolved, changes, resolve};
pub use track::{Order, Track};
pub use wall::{SystemClock, WallClock};
pub use watcher::watch;

use crate::burst::Stop;

/// What fires a burst.
pub trait Gun {
    /// Fires a burst that was claimed and says how it went, whole or interrupted. Until `stop` is pulled.
    fn fire(&self, order: &Order, stop: Stop) -> impl Future<Output = Result<Shortly, Misfire>>;

    /// What a burst may use up at most, or is estimated to, where no burst of its sort is on record.
    fn need(&self, lane: &str, task: &str, at: Timestamp) -> Used;

    /// The price of what a burst used up, micro-dollars; `None` where no price is known.
    fn price(&self, spent: &SpentRow) -> Option<u64>;
}

/// A burst that could not be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfire {
    /// Why.
    pub error: String,
    /// Nothing was sent: the burst may be tried again while its time lasts.
    pub unsent: bool,
}

/// The campaign of one site.
#[derive(Clone, Debug)]
pub struct Site {
    /// What the configuration asks for.
    pub candidate: Candidate,
    /// Its zone.
    pub zone: TimeZone,
}

/// What is to be watched.
#[derive(Clone, Debug)]
pub struct Plan {
    /// By site.
    pub sites: Vec<Site>,
    /// Run what is due now and end.
    pub due: bool,
    /// Lanes one after the other, or all of a window at once.
    pub order: LaneOrder,
    /// Caps of all sites together.
    pub caps: Caps,
}

/// How a watcher ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All campaigns are over.
    Finished,
    /// Asked to stop; the campaigns go on.
    Stopped,
    /// With `due`: nothing more is due now.
    NothingDue,
    /// A cap of the budget stopped the campaigns, now or earlier (then without figures).
    Budget(Option<Exceeded>),
    /// All campaigns were stopped by somebody else.
    StoppedElsewhere,
}

/// Why there is nothing to watch.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The plan cannot be made.
    #[error(transparent)]
    Plan(#[from] BurstsError),
}

impl WatchError {
    /// The next thing to try, if there is an obvious one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Store(error) => error.hint(),
            Self::Plan(error) => error.hint(),
        }
    }
}

/// Hears what happens.
pub trait Hear: FnMut(&Note) {}
impl<F: FnMut(&Note)> Hear for F {}
