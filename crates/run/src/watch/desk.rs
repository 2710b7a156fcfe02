//! What a watcher has at hand besides its plan: notes to tell, slots and events that are still to be written, and whether
//! the store takes them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use peaklane_core::watch::Note;
use peaklane_core::window::runtime::{Reading, SLEEP_NOTICED};
use peaklane_store::{EventRow, SlotKey, SlotState, StoreError};

use super::Hear;
use super::keep::Keeper;

/// A step of the wall clock by less than this is what time servers do all day, seconds.
const STEP_NOTICED_S: i64 = 5;

/// Notes, and what waits to be written.
pub(super) struct Desk<'a, H: Hear> {
    /// The store.
    pub(super) keeper: &'a Keeper,
    hear: H,
    slots: Vec<(SlotKey, i64, SlotState)>,
    events: Vec<EventRow>,
    away: bool,
    last: Option<Reading>,
    /// Where the events of the machine belong: the campaigns.
    campaigns: Vec<String>,
}

impl<'a, H: Hear> Desk<'a, H> {
    pub(super) fn new(keeper: &'a Keeper, hear: H) -> Self {
        let (slots, events, campaigns) = (Vec::new(), Vec::new(), Vec::new());
        Self { keeper, hear, slots, events, away: false, last: None, campaigns }
    }

    /// The campaigns to which events of the machine belong.
    pub(super) fn set_campaigns(&mut self, campaigns: Vec<String>) {
        self.campaigns = campaigns;
    }

    /// Tells a note, and keeps it for the history where it is part of it.
    pub(super) fn tell(&mut self, now: Timestamp, note: &Note) {
        (self.hear)(note);
        let Some(kind) = note.stored_kind() else { return };
        let mut detail = serde_json::to_value(note).unwrap_or_default();
        let mut part = |name: &str| detail.as_object_mut().and_then(|o| o.remove(name)?.as_str().map(str::to_owned));
        part("event");
        let (campaign, lane, task) = (part("campaign"), part("lane"), part("task"));
        let campaigns = match campaign {
            Some(campaign) => vec![campaign],
            None => self.campaigns.clone(),
        };
        for campaign in campaigns {
            self.events.push(EventRow {
                unix_us: now.as_microsecond(),
                campaign: Some(campaign),
                lane: lane.clone(),
                task: task.clone(),
                kind: kind.to_owned(),
                detail: detail.to_string(),
            });
        }
    }

    /// Tells a note that the history has already.
    pub(super) fn tell_again(&mut self, note: &Note) {
        (self.hear)(note);
    }

    /// Compares the clocks with the last reading: tells a suspension and a step.
    pub(super) fn notice(&mut self, reading: Reading) {
        if let Some(last) = self.last.replace(reading) {
            let awake = reading.awake.saturating_sub(last.awake);
            let alive = match (last.alive, reading.alive) {
                (Some(first), Some(second)) => Some(second.saturating_sub(first)),
                _ => None,
            };
            let slept = alive.map_or(std::time::Duration::ZERO, |alive| alive.saturating_sub(awake));
            if slept >= SLEEP_NOTICED {
                self.tell(reading.wall, &Note::Slept { for_s: slept.as_secs() });
            }
            let passed = i64::try_from(alive.unwrap_or(awake).as_secs()).unwrap_or(i64::MAX);
            let by_s = reading.wall.duration_since(last.wall).as_secs().saturating_sub(passed);
            if by_s.abs() >= STEP_NOTICED_S {
                self.tell(reading.wall, &Note::ClockStepped { by_s });
            }
        }
    }

    /// A slot is to be settled.
    pub(super) fn settle(&mut self, key: SlotKey, due: Timestamp, state: SlotState) {
        self.slots.push((key, due.as_microsecond(), state));
    }

    /// True while something waits to be written.
    pub(super) fn has_unwritten(&self) -> bool {
        !self.slots.is_empty() || !self.events.is_empty()
    }

    /// Writes what waits; what cannot be written waits on.
    pub(super) async fn flush(&mut self, now: Timestamp) {
        if !self.has_unwritten() {
            return;
        }
        let written = self.keeper.write(self.slots.clone(), self.events.clone(), now).await;
        if self.ok(written).is_some() {
            self.slots.clear();
            self.events.clear();
        }
    }

    /// Tells once that the store is away, and once that it is back.
    pub(super) fn ok<T>(&mut self, result: Result<T, StoreError>) -> Option<T> {
        match result {
            Ok(value) => {
                if std::mem::take(&mut self.away) {
                    (self.hear)(&Note::StoreBack);
                }
                Some(value)
            }
            Err(error) => {
                self.store_failed(error.to_string());
                None
            }
        }
    }

    /// The same for what was only read: it tells nothing about writing.
    pub(super) fn read<T>(&mut self, result: Result<T, StoreError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.store_failed(error.to_string());
                None
            }
        }
    }

    /// Says that the store is away for a reason that another part met.
    pub(super) fn store_failed(&mut self, error: String) {
        if !std::mem::replace(&mut self.away, true) {
            (self.hear)(&Note::StoreAway { error });
        }
    }
}

/// The most that a burst of a lane and task class used up so far.
pub(super) type Largest = BTreeMap<(String, String), peaklane_core::budget::Used>;
