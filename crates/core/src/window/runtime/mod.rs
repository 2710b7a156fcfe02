//! What happens to each planned burst as time goes by: a state machine that reads no clock.
//!
//! `watch` feeds it clock readings in a loop, `watch --due` feeds it one, and both give it what the store says about
//! earlier runs. Out come decisions: which bursts are due now, which windows are over without one and why, and how
//! long to nap. The laws, held by tests:
//!
//! - A burst runs within its window's start and the late tolerance (inclusive), by the wall clock, or not at all.
//! - It begins at most once, whatever the wall clock does, also over restarts: what is settled stays settled. A clock
//!   that is put back over a window that ran, or was missed, brings no second chance.
//! - A missed window is missing data: told with its reason, never made up later.
//!
//! ```
//! use std::time::Duration;
//! use jiff::Timestamp;
//! use peaklane_core::window::runtime::{Decision, Policy, Reading, Runtime, Slot};
//!
//! let at: Timestamp = "2026-06-01T14:00:00Z".parse()?;
//! let started = "2026-06-01T06:00:00Z".parse()?;
//! let mut runtime = Runtime::new(Policy::default(), started, []);
//! runtime.add([Slot { key: "lane-a 16:00", at }]);
//!
//! let reading = Reading { wall: at, awake: Duration::ZERO, alive: None };
//! assert_eq!(runtime.tick(reading).decisions, [Decision::Due { key: "lane-a 16:00", late_s: 0 }]);
//! assert!(runtime.begin(&"lane-a 16:00", at).is_some()); // ... claim it in the store, fire, and then:
//! runtime.finish(&"lane-a 16:00");
//! # Ok::<(), jiff::Error>(())
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

mod clock;
mod status;

pub use clock::{MAX_NAP, Reading, SLEEP_NOTICED};
pub use status::{MissedReason, Past, Status};

use clock::Passage;

/// How late a burst may begin when nothing else is said, seconds.
pub const DEFAULT_LATE_TOLERANCE_S: u32 = 600;

/// A burst that begins within this time of its instant ran on time, seconds. As long as one nap of the loop.
pub const ON_TIME_S: u32 = 1;

/// The same for `watch --due`, seconds: cron, timers and CronJobs keep time to the minute.
pub const DUE_ON_TIME_S: u32 = 60;

/// What is late, and what is too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// A burst may begin this much after its instant, seconds, inclusive.
    pub late_tolerance_s: u32,
    /// Up to this lateness it counts as on time, seconds, inclusive.
    pub on_time_s: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self { late_tolerance_s: DEFAULT_LATE_TOLERANCE_S, on_time_s: ON_TIME_S }
    }
}

/// One burst that is to run once: its name and its instant. The name is the caller's: campaign, date, window, number
/// within the window, lane, task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot<K> {
    /// Unique, and the same after a restart.
    pub key: K,
    /// When it is due.
    pub at: Timestamp,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision<K> {
    /// The burst may begin now: call [`Runtime::begin`], claim it in the store, fire. Repeated at each tick until the
    /// burst has begun or is too late.
    Due {
        /// Which burst.
        key: K,
        /// Whole seconds since its instant.
        late_s: u32,
    },
    /// The burst is over without having run to its end: record it where nothing is recorded yet, and stop its requests
    /// if it is running ([`Status::Interrupted`]). Said once.
    Settled {
        /// Which burst.
        key: K,
        /// Missed, before the start, or interrupted.
        status: Status,
    },
}

/// When to look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Sleep for `nap`, read the clocks, call [`Runtime::tick`]. A long wait is many naps, because a timer does not
    /// hear of a suspended machine or a stepped clock.
    Wait {
        /// At most [`MAX_NAP`]; zero when something is due now.
        nap: Duration,
        /// The instant of the next burst; `None` when only running ones are left.
        until: Option<Timestamp>,
    },
    /// All bursts are settled.
    Done,
}

/// The answer to one reading of the clocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step<K> {
    /// In the order of their instants.
    pub decisions: Vec<Decision<K>>,
    /// When to look again.
    pub next: Next,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Not begun, not over. `fresh` until a tick has seen it.
    Pending { fresh: bool },
    /// Begun by us.
    Running { status: Status },
    /// In the hands of another process whose lease holds.
    Elsewhere,
    /// Over.
    Settled(Status),
}

/// The state machine. `K` names a burst.
#[derive(Clone, Debug)]
pub struct Runtime<K> {
    policy: Policy,
    campaign_start: Timestamp,
    past: BTreeMap<K, Past>,
    slots: Vec<(Slot<K>, State)>,
    /// Statuses that are known but not yet told.
    untold: Vec<K>,
    last: Option<Reading>,
}

impl<K: Clone + Ord> Runtime<K> {
    /// A machine without bursts; [`Runtime::add`] gives it some.
    ///
    /// * `campaign_start`: when the campaign was begun for the first time, from the store after a restart. Bursts due
    ///   before it that did not run are no misses.
    /// * `past`: what the store says about each burst that was ever begun or settled.
    pub fn new(policy: Policy, campaign_start: Timestamp, past: impl IntoIterator<Item = (K, Past)>) -> Self {
        Self {
            policy,
            campaign_start,
            past: past.into_iter().collect(),
            slots: Vec::new(),
            untold: Vec::new(),
            last: None,
        }
    }

    /// Adds bursts, in any order and at any time (the peak bursts after a campaign, for example). A key that is known
    /// already changes nothing, so the same plan can be added again.
    pub fn add(&mut self, slots: impl IntoIterator<Item = Slot<K>>) {
        let mut known: BTreeSet<K> = self.slots.iter().map(|(slot, _)| slot.key.clone()).collect();
        for slot in slots {
            if known.insert(slot.key.clone()) {
                let past = self.past.get(&slot.key).copied();
                let key = slot.key.clone();
                self.slots.push((slot, State::Pending { fresh: true }));
                if let Some(past) = past {
                    self.learn(&key, past);
                }
            }
        }
        self.slots.sort_by(|(a, _), (b, _)| (a.at, &a.key).cmp(&(b.at, &b.key)));
    }

    /// Takes a reading of the clocks and says what is to be done. Call it after every nap and whenever a machine is
    /// known to have woken up; calling it more often changes nothing.
    pub fn tick(&mut self, reading: Reading) -> Step<K> {
        let passage = self.last.map(|last| Passage::between(&last, &reading));
        self.last = Some(reading);
        let busy = self.slots.iter().any(|(_, state)| matches!(state, State::Running { .. }));
        let slept = passage.is_some_and(|p| p.slept());
        let mut decisions = Vec::new();
        for (slot, state) in &mut self.slots {
            let settled = match *state {
                State::Pending { fresh } => match lateness(slot.at, reading.wall, self.policy.late_tolerance_s) {
                    Lateness::Early => {
                        *state = State::Pending { fresh: false };
                        None
                    }
                    Lateness::Within(late_s) => {
                        *state = State::Pending { fresh: false };
                        decisions.push(Decision::Due { key: slot.key.clone(), late_s });
                        None
                    }
                    Lateness::Over if slot.at < self.campaign_start => Some(Status::BeforeStart),
                    Lateness::Over => {
                        let deadline = deadline(slot.at, self.policy.late_tolerance_s);
                        Some(Status::Missed(match passage {
                            Some(passage) if !fresh => passage.reason(deadline, busy),
                            // it was over before we heard of it
                            _ => MissedReason::NotRunning,
                        }))
                    }
                },
                // sockets do not survive a suspended machine, and a latency across one is not the lane's
                State::Running { status } if slept => status.started().map(|started| Status::Interrupted { started }),
                State::Settled(status) if self.untold.contains(&slot.key) => Some(status),
                State::Running { .. } | State::Elsewhere | State::Settled(_) => None,
            };
            if let Some(status) = settled {
                *state = State::Settled(status);
                decisions.push(Decision::Settled { key: slot.key.clone(), status });
            }
        }
        self.untold.clear();
        Step { decisions, next: self.next(reading.wall) }
    }

    /// The gate that a burst passes at most once: `Some` with how it counts when it may begin at `now` and is on
    /// record as running from here on, `None` when it may not (unknown, early, too late, begun or settled already).
    ///
    /// * `now`: the wall clock just before the claim.
    pub fn begin(&mut self, key: &K, now: Timestamp) -> Option<Status> {
        let Policy { late_tolerance_s, on_time_s } = self.policy;
        let (slot, state) = self.find(key)?;
        let State::Pending { .. } = state else { return None };
        let Lateness::Within(late_s) = lateness(slot.at, now, late_tolerance_s) else { return None };
        let on_time = now <= deadline(slot.at, on_time_s);
        let status = if on_time { Status::Run { started: now } } else { Status::Late { started: now, late_s } };
        *state = State::Running { status };
        Some(status)
    }

    /// A burst that [`begin`](Self::begin) let through could not be claimed because the store did not answer, and
    /// nothing was sent: it is due again while its time lasts.
    pub fn give_back(&mut self, key: &K) {
        if let Some((_, state @ State::Running { .. })) = self.find(key) {
            *state = State::Pending { fresh: false };
        }
    }

    /// The store says something about a burst that is not settled here: another process claimed it first, or settled
    /// it, or died over it. What is settled stays settled.
    pub fn learn(&mut self, key: &K, past: Past) {
        let Some((_, state)) = self.find(key) else { return };
        if matches!(state, State::Settled(_)) {
            return;
        }
        *state = match past {
            Past::Elsewhere => State::Elsewhere,
            Past::Settled(status) => State::Settled(status),
            // whoever began it is gone: half a burst is no burst, and a second one would be a double
            Past::Abandoned { started } => State::Settled(Status::Interrupted { started }),
        };
        if let Past::Abandoned { .. } = past {
            self.untold.push(key.clone());
        }
    }

    /// All attempts of a burst are on record. Returns the status that stands: `None` for a burst that was not running,
    /// and so also for one that was interrupted meanwhile.
    pub fn finish(&mut self, key: &K) -> Option<Status> {
        let (_, state) = self.find(key)?;
        let State::Running { status } = *state else { return None };
        *state = State::Settled(status);
        Some(status)
    }

    /// A running burst was stopped before its end, on purpose or by a failure of ours.
    pub fn interrupt(&mut self, key: &K) -> Option<Status> {
        let (_, state) = self.find(key)?;
        let State::Running { status } = *state else { return None };
        let interrupted = Status::Interrupted { started: status.started()? };
        *state = State::Settled(interrupted);
        Some(interrupted)
    }

    /// How each burst stands, in the order of their instants: `None` while it is to come, running, or with another
    /// process.
    pub fn statuses(&self) -> impl Iterator<Item = (&Slot<K>, Option<Status>)> {
        self.slots.iter().map(|(slot, state)| match state {
            State::Settled(status) => (slot, Some(*status)),
            State::Pending { .. } | State::Running { .. } | State::Elsewhere => (slot, None),
        })
    }

    /// The bursts that have not begun and are not over, next one first.
    pub fn pending(&self) -> impl Iterator<Item = &Slot<K>> {
        self.slots.iter().filter(|(_, state)| matches!(state, State::Pending { .. })).map(|(slot, _)| slot)
    }

    fn find(&mut self, key: &K) -> Option<(&Slot<K>, &mut State)> {
        self.slots.iter_mut().find(|(slot, _)| slot.key == *key).map(|(slot, state)| (&*slot, state))
    }

    fn next(&self, wall: Timestamp) -> Next {
        let until = self.pending().map(|slot| slot.at).next();
        let running = self.slots.iter().any(|(_, state)| matches!(state, State::Running { .. }));
        match until {
            None if running => Next::Wait { nap: MAX_NAP, until },
            None => Next::Done,
            Some(at) => {
                let left = Duration::try_from(at.duration_since(wall)).unwrap_or(Duration::ZERO);
                Next::Wait { nap: left.min(MAX_NAP), until }
            }
        }
    }
}

enum Lateness {
    Early,
    Within(u32),
    Over,
}

fn deadline(at: Timestamp, tolerance_s: u32) -> Timestamp {
    at.saturating_add(SignedDuration::from_secs(tolerance_s.into())).unwrap_or(Timestamp::MAX)
}

fn lateness(at: Timestamp, wall: Timestamp, tolerance_s: u32) -> Lateness {
    if wall < at {
        Lateness::Early
    } else if wall <= deadline(at, tolerance_s) {
        Lateness::Within(u32::try_from(wall.duration_since(at).as_secs()).unwrap_or(u32::MAX))
    } else {
        Lateness::Over
    }
}

#[cfg(test)]
mod tests;
