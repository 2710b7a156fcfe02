//! What two readings of a machine's clocks say about the time between them: passed, slept through, or stepped over.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::MissedReason;

/// The longest nap between two readings: how late a burst can begin after a suspended machine woke up, or after a
/// clock step, when nothing else tells of these. A reading costs microseconds.
pub const MAX_NAP: Duration = Duration::from_secs(1);

/// A suspension shorter than this leaves a running burst alone: clocks that are read one after the other disagree by
/// a little, and a virtual machine is paused for a second now and then.
pub const SLEEP_NOTICED: Duration = Duration::from_secs(5);

/// The clocks of a machine, read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The wall clock: may step either way, goes on in suspension.
    pub wall: Timestamp,
    /// Time since any fixed moment by a clock that never steps and stands still in suspension (Linux `CLOCK_MONOTONIC`,
    /// macOS `CLOCK_UPTIME_RAW`; what `std::time::Instant` reads there).
    pub awake: Duration,
    /// Time since any fixed moment by a clock that never steps and goes on in suspension (Linux `CLOCK_BOOTTIME`, macOS
    /// `CLOCK_MONOTONIC`). `None` where there is none: a jump of the wall clock forward is then taken for a suspension,
    /// which is by far the more frequent of the two.
    pub alive: Option<Duration>,
}

/// What passed between two readings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passage {
    /// The wall clock at the first of them.
    from: Timestamp,
    /// Time with the machine awake.
    awake: Duration,
    /// All time, suspension included.
    alive: Duration,
}

impl Passage {
    pub(super) fn between(first: &Reading, second: &Reading) -> Self {
        // clocks that never step cannot go back either; if one does, nothing passed
        let awake = second.awake.saturating_sub(first.awake);
        let alive = match (first.alive, second.alive) {
            (Some(first), Some(second)) => second.saturating_sub(first),
            _ => Duration::try_from(second.wall.duration_since(first.wall)).unwrap_or(awake),
        };
        Self { from: first.wall, awake, alive: alive.max(awake) }
    }

    /// True when the machine was suspended for long enough to matter.
    pub(super) fn slept(self) -> bool {
        self.alive - self.awake >= SLEEP_NOTICED
    }

    /// Why a burst that could still have begun at the first reading was too late at the second: what would have been
    /// without the step, and without the suspension.
    ///
    /// * `deadline`: the last instant at which it might have begun.
    /// * `busy`: a burst was running.
    pub(super) fn reason(self, deadline: Timestamp, busy: bool) -> MissedReason {
        let after = |passed: Duration| {
            let passed = SignedDuration::try_from(passed).unwrap_or(SignedDuration::MAX);
            self.from.saturating_add(passed).unwrap_or(Timestamp::MAX)
        };
        if after(self.awake) > deadline {
            if busy { MissedReason::Busy } else { MissedReason::Stalled }
        } else if after(self.alive) > deadline {
            MissedReason::Asleep
        } else {
            MissedReason::Clock
        }
    }
}
