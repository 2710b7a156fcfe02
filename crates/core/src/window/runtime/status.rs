//! How a planned burst can end, and what a store can say about one.

use jiff::Timestamp;

/// How one planned burst ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It began on time.
    Run {
        /// When it began, by the wall clock.
        started: Timestamp,
    },
    /// It began late, within the tolerance.
    Late {
        /// When it began, by the wall clock.
        started: Timestamp,
        /// Whole seconds after its instant.
        late_s: u32,
    },
    /// Its time passed. Missing data: neither a pass nor a failure, and never made up later.
    Missed(MissedReason),
    /// It was due before the campaign was begun: no miss, but its day is not complete.
    BeforeStart,
    /// It began and did not come to its end. Never begun again.
    Interrupted {
        /// When it began, by the wall clock.
        started: Timestamp,
    },
}

/// Why a window was missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MissedReason {
    /// The machine was suspended.
    Asleep,
    /// The wall clock was put forward over it.
    Clock,
    /// No watcher was running.
    NotRunning,
    /// A watcher was running and other bursts kept it busy.
    Busy,
    /// A watcher was running, but was stopped or starved (or could not reach its store).
    Stalled,
}

/// What a store says about a burst that was begun or settled before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// Over: its status is on record.
    Settled(Status),
    /// Begun by a process that is gone (its lease ran out, or it was this machine's former run).
    Abandoned {
        /// When it began, by the wall clock.
        started: Timestamp,
    },
    /// Begun by another process whose lease holds: not ours to judge.
    Elsewhere,
}

impl Status {
    /// The stable spelling: `run`, `late`, `missed`, `before_start`, `interrupted`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Run { .. } => "run",
            Self::Late { .. } => "late",
            Self::Missed(_) => "missed",
            Self::BeforeStart => "before_start",
            Self::Interrupted { .. } => "interrupted",
        }
    }

    /// When the burst began; `None` for one that never did.
    pub const fn started(self) -> Option<Timestamp> {
        match self {
            Self::Run { started } | Self::Late { started, .. } | Self::Interrupted { started } => Some(started),
            Self::Missed(_) | Self::BeforeStart => None,
        }
    }

    /// Whole seconds of lateness of a late burst.
    pub const fn late_s(self) -> Option<u32> {
        match self {
            Self::Late { late_s, .. } => Some(late_s),
            _ => None,
        }
    }

    /// Why a missed window was missed.
    pub const fn reason(self) -> Option<MissedReason> {
        match self {
            Self::Missed(reason) => Some(reason),
            _ => None,
        }
    }

    /// True when a whole burst is on record.
    pub const fn ran(self) -> bool {
        matches!(self, Self::Run { .. } | Self::Late { .. })
    }
}

impl MissedReason {
    /// All reasons.
    pub const ALL: [Self; 5] = [Self::Asleep, Self::Clock, Self::NotRunning, Self::Busy, Self::Stalled];

    /// The stable spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Asleep => "asleep",
            Self::Clock => "clock",
            Self::NotRunning => "not_running",
            Self::Busy => "busy",
            Self::Stalled => "stalled",
        }
    }

    /// The reason of that spelling.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }
}
