//! The planned windows of a campaign with every burst in them, as a dry run shows them and a watcher runs them.

use std::collections::BTreeSet;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::plan::{Calendar, Flag, PlanError, PlannedWindow, plan};
use super::spread::{SpreadError, offsets_s};
use super::{DEFAULT_LENGTH_S, LocalTime};
use crate::config::{Campaign, LaneOrder, Task};

/// One burst of a window; every lane and task class has one of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedBurst {
    /// Local date.
    pub date: Date,
    /// Local begin of its window.
    pub window: LocalTime,
    /// Number within the window, from 0.
    pub nth: u32,
    /// When it is due; `None` where the window has no burst ([`Flag::Merged`], [`Flag::NoSuchDate`]).
    pub at: Option<Timestamp>,
    /// What was special about the window, if anything.
    pub flag: Option<Flag>,
}

/// A burst of one lane and task class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedSlot<'a> {
    /// Its window.
    pub burst: PlannedBurst,
    /// Name of the lane.
    pub lane: &'a str,
    /// Name of the task class.
    pub task: &'a str,
    /// When it is due: with the window, or at the lane's turn ([`slots`]). `None` where the window has no burst.
    pub at: Option<Timestamp>,
}

/// Between the stretches of two lanes, seconds: what is in flight at the end of one is over when the next begins.
pub const TURN_GAP_S: u32 = 120;

/// Why a campaign has no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BurstsError {
    /// Its days or windows.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Its number of bursts in a window.
    #[error(transparent)]
    Spread(#[from] SpreadError),
}

impl BurstsError {
    /// The next thing to try, if there is an obvious one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Plan(error) => error.hint(),
            Self::Spread(error) => error.hint(),
        }
    }
}

/// The calendar of a campaign that begins on `start`. Windows keep the order in which they are written.
pub fn calendar(campaign: &Campaign, start: Date) -> Calendar {
    Calendar {
        windows: campaign.windows.iter().map(|window| LocalTime::from(window.start.time())).collect(),
        start_date: start,
        days: campaign.days,
        workdays_only: campaign.workdays_only,
        weekend: campaign.weekend.clone(),
        holidays: campaign.holidays.iter().map(|day| day.date()).collect::<BTreeSet<_>>(),
    }
}

/// Every burst of a campaign that begins on `start`: windows as [`plan`] has them, each with its bursts in order.
///
/// * `plan_hash`: of the campaign; offsets within a window depend on it ([`offsets_s`]), so that a dry run, a restart and a
///   second watcher see one plan.
///
/// # Errors
/// [`BurstsError`] for days, windows or a number of bursts that make no plan.
pub fn bursts(
    campaign: &Campaign,
    plan_hash: &str,
    start: Date,
    zone: &TimeZone,
) -> Result<Vec<PlannedBurst>, BurstsError> {
    let planned = plan(&calendar(campaign, start), zone)?;
    in_windows(campaign, plan_hash, &planned)
}

/// The bursts of one window on the working days after `last`, `days` of them: what goes on after a campaign.
///
/// # Errors
/// As [`bursts`].
pub fn bursts_after(
    campaign: &Campaign,
    plan_hash: &str,
    last: Date,
    days: u32,
    window: LocalTime,
    zone: &TimeZone,
) -> Result<Vec<PlannedBurst>, BurstsError> {
    let start = last.tomorrow().map_err(|_| PlanError::BeyondCalendar)?;
    let calendar = Calendar { windows: vec![window], days, ..calendar(campaign, start) };
    in_windows(campaign, plan_hash, &plan(&calendar, zone)?)
}

/// The bursts of every lane and task class, in the order of `bursts`, lanes and tasks.
///
/// All are due with their window; a lane that waits for its turn then begins late by what the others took. The long
/// stretches of batch classes would make each other miss their windows, so that each has a time of its own where lanes
/// have turns: one after the other with [`TURN_GAP_S`] between them, in an order that moves on by one lane each day.
pub fn slots<'a>(
    bursts: &[PlannedBurst],
    lanes: &'a [String],
    tasks: &'a [Task],
    order: LaneOrder,
) -> Vec<PlannedSlot<'a>> {
    let mut dates: Vec<Date> = bursts.iter().map(|burst| burst.date).collect();
    dates.dedup();
    let mut slots = Vec::new();
    for burst in bursts {
        let day = dates.iter().position(|date| *date == burst.date).unwrap_or(0);
        for (number, lane) in lanes.iter().enumerate() {
            // stretches of earlier batch classes, all lanes, seconds
            let mut before_s = 0_u64;
            for task in tasks {
                let stretch = task.sustained_stretch().filter(|_| order == LaneOrder::Random);
                let mut offset_s = 0;
                if let Some(stretch) = stretch {
                    let turn_s = stretch.as_us().div_ceil(1_000_000) + u64::from(TURN_GAP_S);
                    offset_s = before_s + turn_s * ((number + day) % lanes.len()) as u64;
                    before_s += turn_s * lanes.len() as u64;
                }
                let offset = SignedDuration::from_secs(i64::try_from(offset_s).unwrap_or(i64::MAX));
                let at = burst.at.map(|at| at.saturating_add(offset).unwrap_or(Timestamp::MAX));
                slots.push(PlannedSlot { burst: *burst, lane, task: &task.name, at });
            }
        }
    }
    slots
}

fn in_windows(
    campaign: &Campaign,
    plan_hash: &str,
    planned: &[PlannedWindow],
) -> Result<Vec<PlannedBurst>, BurstsError> {
    let spans = campaign.windows_in_order();
    let length_s = |window: LocalTime| {
        let span = spans.iter().find(|span| LocalTime::from(span.start.time()) == window);
        span.map_or(DEFAULT_LENGTH_S, |span| u32::try_from(span.length.as_us() / 1_000_000).unwrap_or(u32::MAX))
    };
    let mut bursts = Vec::new();
    for PlannedWindow { date, window, utc, flag, .. } in planned {
        let (date, window, flag) = (*date, *window, *flag);
        let Some(begin) = utc else {
            bursts.push(PlannedBurst { date, window, nth: 0, at: None, flag });
            continue;
        };
        let offsets = offsets_s(plan_hash, date, window, campaign.bursts_per_window, length_s(window))?;
        for (nth, offset) in (0..).zip(offsets) {
            let at = begin
                .saturating_add(SignedDuration::from_secs(offset.into()))
                .map_err(|_| PlanError::BeyondCalendar)?;
            bursts.push(PlannedBurst { date, window, nth, at: Some(at), flag });
        }
    }
    Ok(bursts)
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use jiff::tz::TimeZoneDatabase;

    use super::*;

    fn berlin() -> TimeZone {
        TimeZoneDatabase::bundled().get("Europe/Berlin").unwrap()
    }

    fn campaign(keys: &str) -> Campaign {
        toml::from_str(keys).unwrap()
    }

    fn shown(bursts: &[PlannedBurst]) -> Vec<String> {
        let at = |burst: &PlannedBurst| burst.at.map_or("-".to_owned(), |at| at.to_string());
        bursts.iter().map(|b| format!("{} {} {} {}", b.date, b.window, b.nth, at(b))).collect()
    }

    #[test]
    fn a_window_with_one_burst_has_it_at_its_begin_and_keeps_its_place() {
        let campaign = campaign("days = 1\nwindows = [\"16:00\", \"09:00\"]");
        let bursts = bursts(&campaign, "h", date(2026, 12, 1), &berlin()).unwrap();
        assert_eq!(
            shown(&bursts),
            ["2026-12-01 16:00 0 2026-12-01T15:00:00Z", "2026-12-01 09:00 0 2026-12-01T08:00:00Z"]
        );
    }

    #[test]
    fn several_bursts_lie_within_the_length_of_their_window_and_a_merged_window_has_none() {
        // Berlin puts its clocks from 02:00 to 03:00
        let campaign = campaign(
            "days = 1\nworkdays_only = false\nwindows = [\"02:30\", { start = \"03:00\", length = \"1h\" }]\nbursts_per_window = 3",
        );
        let bursts = bursts(&campaign, "h", date(2026, 3, 29), &berlin()).unwrap();
        assert_eq!(shown(&bursts)[0], "2026-03-29 02:30 0 -");
        assert_eq!(bursts[0].flag, Some(Flag::Merged));
        let begin: Timestamp = "2026-03-29T01:00:00Z".parse().unwrap();
        let offsets: Vec<i64> =
            bursts[1..].iter().filter_map(|b| Some(b.at?.duration_since(begin).as_secs())).collect();
        assert!(
            matches!(offsets[..], [0, a, b] if (1200..1800).contains(&a) && (2400..3000).contains(&b)),
            "{offsets:?}"
        );
    }

    #[test]
    fn stretches_of_a_batch_class_have_turns_that_move_on_each_day() {
        let campaign = campaign("days = 2\nwindows = [\"16:00\"]");
        let bursts = bursts(&campaign, "h", date(2026, 12, 1), &berlin()).unwrap();
        let mut nightly: Task = toml::from_str("name = \"n\"\nprompt = \"p\"\ntasks_per_hour = 60").unwrap();
        nightly.stretch = Some("10m".parse().unwrap());
        let (lanes, tasks) = (["a", "b"].map(str::to_owned), [Task::inline_assist(), nightly]);
        let at = |order| -> Vec<String> {
            let slots = slots(&bursts, &lanes, &tasks, order);
            slots.iter().map(|s| format!("{} {} {}", s.lane, s.task, &s.at.unwrap().to_string()[8..16])).collect()
        };
        // 10 min and 2 min between them
        assert_eq!(
            at(LaneOrder::Random),
            [
                "a inline-assist 01T15:00",
                "a n 01T15:00",
                "b inline-assist 01T15:00",
                "b n 01T15:12",
                "a inline-assist 02T15:00",
                "a n 02T15:12",
                "b inline-assist 02T15:00",
                "b n 02T15:00",
            ]
        );
        assert!(at(LaneOrder::Interleaved).iter().all(|slot| slot.ends_with("15:00")));
    }

    #[test]
    fn after_the_campaign_one_window_goes_on_over_the_weekend() {
        let campaign = campaign("days = 1\nholidays = [\"2026-12-08\"]");
        let after = bursts_after(&campaign, "h", date(2026, 12, 4), 2, "16:00".parse().unwrap(), &berlin()).unwrap();
        assert_eq!(
            shown(&after),
            ["2026-12-07 16:00 0 2026-12-07T15:00:00Z", "2026-12-09 16:00 0 2026-12-09T15:00:00Z"]
        );
    }
}
