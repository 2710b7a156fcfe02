//! One pre-registered change: what was registered, what has changed since, which bursts stand on which side, and what came of
//! it. The rule itself is in [`crate::rules::countertest`].
//!
//! Nothing here reads a clock or a file: moments are microseconds since the Unix epoch (UTC), and the configuration as it is
//! now comes in as [`Snapshot`]s.

mod judge;
mod notice;
mod sides;
mod snapshot;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

pub use judge::{JudgeError, Judgement, Sides, WindowFigures, judge};
pub use notice::{Notice, Now, Refusal};
pub use sides::{CountedBurst, Place, Side, Span, newest_campaign, side, worst};
pub use snapshot::{Change, KeyChange, Series, Snapshot};

use crate::summary::BurstData;

/// Number of the form of [`Registered`] as it is stored.
pub const REGISTERED_FORMAT: u32 = 1;

/// Kind of the documents in the store.
pub const DOCUMENT_KIND: &str = "countertest";

/// A counter-test from its registration to its end. Stored as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Registered {
    /// [`REGISTERED_FORMAT`].
    pub format: u32,
    /// Id: `countertest-2026-12-01-lane-a-inline-assist`.
    pub id: String,
    /// The change in the words of who registered it.
    pub change: String,
    /// Lane that is changed, or left.
    pub lane: String,
    /// Lane that the task class moves to, where the lane itself is the change.
    pub to: Option<String>,
    /// Task class.
    pub task: String,
    /// Lane that stays as it is.
    pub beside: Option<String>,
    /// Site of the campaign.
    pub site: Option<String>,
    /// IANA zone of the windows.
    pub zone: String,
    /// Begins of the frozen windows, the deciding one first.
    pub windows: Vec<String>,
    /// Campaign of the bursts before; `None` for bursts of no campaign.
    pub campaign: Option<String>,
    /// Largest difference that does not matter, points of percent, as it was at the begin.
    pub margin_percent: u32,
    /// Days to wait from the change on, as it was at the begin.
    pub wait_days: u32,
    /// When it was registered.
    pub begun_unix_us: i64,
    /// It was registered for a moment in the past (`--as-of`): no pre-registration.
    pub in_retrospect: bool,
    /// The lane as it was.
    pub tested: Snapshot,
    /// The lane that the class moves to, as it was.
    pub target: Option<Snapshot>,
    /// The lane beside as it was.
    pub unchanged: Option<Snapshot>,
    /// Bursts of the lane before.
    pub before: Vec<Side>,
    /// Bursts of the lane beside before.
    pub before_beside: Vec<Side>,
    /// Bursts up to this moment do not count as after: the begin, or when two changes were seen at once.
    pub not_before_unix_us: i64,
    /// How often its end was asked for without a decision: each look adds to the false alarms.
    pub looks: u32,
    /// The one change, once it was seen.
    pub seen: Option<Seen>,
    /// How it ended; `None` while it is open.
    pub ended: Option<Ended>,
}

/// The change as it was seen for the first time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// When a command saw it.
    pub unix_us: i64,
    /// What it was.
    pub change: Change,
    /// The lane after it.
    pub after: Snapshot,
    /// The lane beside shares what was changed (a prompt, a parameter of the task class): it is no unchanged lane.
    pub beside_shares: bool,
}

/// How a counter-test ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// When.
    pub unix_us: i64,
    /// Since when the change was in force.
    pub changed_unix_us: Option<i64>,
    /// What came of it; `None` when it was given up.
    pub judgement: Option<Judgement>,
    /// Bursts of the changed lane after, the evidence.
    pub after: Vec<Side>,
    /// Bursts of the lane beside after.
    pub after_beside: Vec<Side>,
}

impl Registered {
    /// True for a change of the lane itself: another rung, another account, or a move to another lane.
    pub fn lane_changed(&self) -> bool {
        self.to.is_some() || self.seen.as_ref().is_some_and(|seen| seen.change.thing == "lane")
    }

    /// Lane and task class after the change; `None` while nothing has changed.
    pub fn series_after(&self) -> Option<&Series> {
        match (&self.target, &self.seen) {
            (Some(target), _) => Some(&target.series),
            (None, Some(seen)) => Some(&seen.after.series),
            (None, None) => None,
        }
    }

    /// Since when the change is in force. A move to another lane is from the begin on. A change that bursts carry in their
    /// header is from the first such burst on, any other from when a command saw it. `None` while nothing has changed.
    pub fn changed_unix_us(&self, bursts: &[BurstData<'_>]) -> Option<i64> {
        if self.to.is_some() {
            return Some(self.not_before_unix_us);
        }
        let seen = self.seen.as_ref()?;
        let after = &seen.after.series;
        let carried = (*after != self.tested.series).then_some(bursts).into_iter().flatten();
        let first = carried.filter(|b| after.fits(b.header)).map(|b| b.header.started_unix_us);
        let first = first.filter(|began| *began > self.not_before_unix_us).min();
        Some(first.map_or(seen.unix_us, |first| first.min(seen.unix_us)))
    }

    /// The first moment at which it may end: the wait in days of the calendar, at the same local time, after the change.
    ///
    /// * `zone`: that of the windows.
    pub fn end_possible_unix_us(&self, changed_unix_us: i64, zone: &TimeZone) -> Option<i64> {
        let changed = Timestamp::from_microsecond(changed_unix_us).ok()?.to_zoned_datetime(zone.clone());
        let ready = changed.checked_add(jiff::Span::new().try_days(self.wait_days).ok()?).ok()?;
        Some(ready.timestamp().as_microsecond())
    }

    /// The bursts after the change up to a moment, of the changed lane and of the lane beside. Empty while nothing has
    /// changed; empty for a lane beside that shares the change.
    pub fn after(&self, bursts: &[BurstData<'_>], to_unix_us: i64) -> (Vec<Side>, Vec<Side>) {
        let Some((changed, series)) = self.changed_unix_us(bursts).zip(self.series_after()) else {
            return (Vec::new(), Vec::new());
        };
        let span = Span { from_unix_us: changed.max(self.not_before_unix_us + 1), to_unix_us };
        let place = self.place();
        let unshared = self.unchanged.as_ref().filter(|_| !self.seen.as_ref().is_some_and(|seen| seen.beside_shares));
        (
            side(bursts, series, &place, span),
            unshared.map(|lane| side(bursts, &lane.series, &place, span)).unwrap_or_default(),
        )
    }

    /// Site and windows of the bursts after; they may be of any campaign, since another prompt makes another one.
    pub fn place(&self) -> Place<'_> {
        Place { site: self.site.as_deref(), windows: &self.windows, campaign: None }
    }

    /// What stands on both sides so far, without any test: the windows of the changed lane, and the lane beside.
    pub fn counts(&self, after: &[Side], after_beside: &[Side]) -> (Vec<WindowFigures>, Option<WindowFigures>) {
        let beside = self.before_beside.first().map(|side| WindowFigures::counts(side, after_beside));
        (self.before.iter().map(|side| WindowFigures::counts(side, after)).collect(), beside)
    }

    /// Judges what there is up to a moment.
    ///
    /// # Errors
    /// [`JudgeError`] where the deciding window lacks a side.
    pub fn judge(&self, after: &[Side], after_beside: &[Side]) -> Result<Judgement, JudgeError> {
        let beside = (!after_beside.is_empty()).then_some(Sides { before: &self.before_beside, after: after_beside });
        judge(Sides { before: &self.before, after }, beside, self.margin_percent, self.lane_changed())
    }
}

#[cfg(test)]
mod tests;
