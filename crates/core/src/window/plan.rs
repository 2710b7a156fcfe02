//! Local windows on local days become instants.
//!
//! Clocks that are put forward or back make four special cases, and each is decided, told and never doubled: a time
//! that does not exist runs at the first instant after the gap, one that exists twice runs at the first, windows that
//! fall on one instant give one burst, and a date that a zone skipped gives none.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::LocalTime;

/// Most days that one plan may have: ten years. A bound against a typing error, not a rule.
pub const MAX_DAYS: u32 = 3_653;

/// ISO numbers (Monday is 1) of the days off when nothing else is said: Saturday and Sunday.
pub const DEFAULT_WEEKEND: [u8; 2] = [6, 7];

/// Which local days and which windows a plan has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calendar {
    /// Local starts of the windows. The plan keeps their order.
    pub windows: Vec<LocalTime>,
    /// First local date that may be part of the plan.
    pub start_date: Date,
    /// Number of local dates, counted after `weekend` and `holidays` are removed; 1 to [`MAX_DAYS`].
    pub days: u32,
    /// Leave out `weekend` and `holidays`. When false both are ignored.
    pub workdays_only: bool,
    /// Days off of each week, ISO numbers, Monday 1 to Sunday 7.
    pub weekend: Vec<u8>,
    /// Dates off.
    pub holidays: BTreeSet<Date>,
}

/// What was special about a planned window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flag {
    /// The local time does not exist on that date: the burst runs at the first instant after the gap.
    Gap,
    /// The local time exists twice on that date: the burst runs once, at the first.
    Fold,
    /// Another window of the plan falls on the same instant and has the burst. This one has none.
    Merged,
    /// The zone skipped the whole date: no burst.
    NoSuchDate,
}

impl Flag {
    /// The stable spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gap => "gap",
            Self::Fold => "fold",
            Self::Merged => "merged",
            Self::NoSuchDate => "no_such_date",
        }
    }
}

/// One window on one date, with the instant at which its burst is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedWindow {
    /// The local date that the burst belongs to, also where a gap moves it past local midnight.
    pub date: Date,
    /// The local start of the window, as planned.
    pub window: LocalTime,
    /// When the burst is due; `None` where there is none ([`Flag::Merged`], [`Flag::NoSuchDate`]). Displays as
    /// `2026-06-01T09:00:00Z`.
    pub utc: Option<Timestamp>,
    /// The zone's offset at that instant; of a merged window, at the instant that it gave up. `None` without a date.
    pub offset: Option<Offset>,
    /// What was special, if anything.
    pub flag: Option<Flag>,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// Not a single window.
    #[error("a plan without windows has no bursts")]
    NoWindows,
    /// The same window twice.
    #[error("window {0} is there twice")]
    DuplicateWindow(LocalTime),
    /// `days` is 0 or more than [`MAX_DAYS`].
    #[error("a plan of {0} days: it must be 1 to {MAX_DAYS}")]
    BadDays(u32),
    /// A weekday that is not 1 to 7.
    #[error("weekend day {0} does not exist")]
    BadWeekday(u8),
    /// Every day of the week is off.
    #[error("all seven days of the week are weekend: no workday is left")]
    NoWorkday,
    /// The plan runs past the last date that can be written.
    #[error("the plan reaches beyond the year 9999")]
    BeyondCalendar,
}

impl PlanError {
    /// The next thing to try, if there is an obvious one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoWindows => Some("set `windows`, for example [\"09:00\", \"16:00\"]".to_owned()),
            Self::DuplicateWindow(_) => {
                Some("drop one, or set `bursts_per_window` for more bursts in a window".to_owned())
            }
            Self::BadDays(_) => None,
            Self::BadWeekday(_) => Some("use ISO numbers: 1 is Monday, 7 is Sunday".to_owned()),
            Self::NoWorkday => Some("set `workdays_only = false`, or shorten `weekend`".to_owned()),
            Self::BeyondCalendar => Some("check `start_date` and `holidays`".to_owned()),
        }
    }
}

impl Calendar {
    /// The local dates of the plan, ascending: exactly `days` of them. A date that the zone skips counts, since it is
    /// only known to be missing once a zone is asked.
    ///
    /// # Errors
    /// [`PlanError::BadDays`], [`PlanError::BadWeekday`], [`PlanError::NoWorkday`], [`PlanError::BeyondCalendar`].
    pub fn dates(&self) -> Result<Vec<Date>, PlanError> {
        if self.days == 0 || self.days > MAX_DAYS {
            return Err(PlanError::BadDays(self.days));
        }
        if let Some(bad) = self.weekend.iter().find(|day| !(1..=7).contains(*day)) {
            return Err(PlanError::BadWeekday(*bad));
        }
        if self.workdays_only && (1..=7).all(|day| self.weekend.contains(&day)) {
            return Err(PlanError::NoWorkday);
        }
        let mut dates = Vec::with_capacity(self.days as usize);
        let mut date = self.start_date;
        loop {
            if self.counts(date) {
                dates.push(date);
            }
            if dates.len() == self.days as usize {
                return Ok(dates);
            }
            date = date.tomorrow().map_err(|_| PlanError::BeyondCalendar)?;
        }
    }

    /// True when bursts may be planned for `date`: a workday, or any day when all days count.
    pub fn counts(&self, date: Date) -> bool {
        let iso = date.weekday().to_monday_one_offset().unsigned_abs();
        !self.workdays_only || !(self.weekend.contains(&iso) || self.holidays.contains(&date))
    }
}

/// The plan: one entry per window of each date, dates ascending, windows in the calendar's order.
///
/// Windows can fall on one instant only through a gap. The burst then belongs to the window whose own time that
/// instant is, or to the latest of the missing ones; this holds across midnight too, where a gap ends a day.
///
/// # Errors
/// [`PlanError::NoWindows`], [`PlanError::DuplicateWindow`] and the errors of [`Calendar::dates`].
pub fn plan(calendar: &Calendar, zone: &TimeZone) -> Result<Vec<PlannedWindow>, PlanError> {
    if calendar.windows.is_empty() {
        return Err(PlanError::NoWindows);
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = calendar.windows.iter().find(|window| !seen.insert(**window)) {
        return Err(PlanError::DuplicateWindow(*twice));
    }
    let mut planned = Vec::new();
    for date in calendar.dates()? {
        for window in &calendar.windows {
            planned.push(place(date, *window, zone)?);
        }
    }
    merge(&mut planned);
    Ok(planned)
}

/// One window on one date, without regard to the others.
fn place(date: Date, window: LocalTime, zone: &TimeZone) -> Result<PlannedWindow, PlanError> {
    let local = date.to_datetime(window.time());
    let instant = |offset: Offset| offset.to_timestamp(local).map_err(|_| PlanError::BeyondCalendar);
    let (utc, offset, flag) = match zone.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Unambiguous { offset } => (instant(offset)?, offset, None),
        AmbiguousOffset::Fold { before, .. } => (instant(before)?, before, Some(Flag::Fold)),
        AmbiguousOffset::Gap { before, after } => {
            let end = first_instant_after_gap(zone, instant(after)?, instant(before)?);
            if swallows(date, before.to_datetime(end), after.to_datetime(end))? {
                return Ok(PlannedWindow { date, window, utc: None, offset: None, flag: Some(Flag::NoSuchDate) });
            }
            (end, after, Some(Flag::Gap))
        }
    };
    Ok(PlannedWindow { date, window, utc: Some(utc), offset: Some(offset), flag })
}

/// The instant at which the clocks were put forward, to the second.
///
/// A missing local time, read with the offset after the gap, is an instant before the change (`early`), and read with
/// the offset before the gap it is the change or an instant after it (`late`); halving finds the change between them.
fn first_instant_after_gap(zone: &TimeZone, early: Timestamp, late: Timestamp) -> Timestamp {
    let after = zone.to_offset(late);
    let (mut early, mut late) = (early.as_second(), late.as_second());
    while late - early > 1 {
        let middle = early + (late - early) / 2;
        match Timestamp::from_second(middle) {
            Ok(instant) if zone.to_offset(instant) != after => early = middle,
            _ => late = middle,
        }
    }
    Timestamp::from_second(late).unwrap_or(Timestamp::MAX)
}

/// True when a gap from `begin` to `end` (local, end excluded) leaves nothing of `date`.
fn swallows(date: Date, begin: DateTime, end: DateTime) -> Result<bool, PlanError> {
    let next = date.tomorrow().map_err(|_| PlanError::BeyondCalendar)?;
    Ok(begin <= date.to_datetime(Time::midnight()) && end >= next.to_datetime(Time::midnight()))
}

/// Leaves one burst on each instant.
fn merge(planned: &mut [PlannedWindow]) {
    // real windows rank above missing ones, later ones above earlier ones
    let rank = |p: &PlannedWindow| (p.flag != Some(Flag::Gap), p.date, p.window);
    let mut winners = BTreeMap::new();
    for entry in planned.iter() {
        if let Some(utc) = entry.utc {
            let best = winners.entry(utc).or_insert_with(|| rank(entry));
            *best = rank(entry).max(*best);
        }
    }
    for entry in planned.iter_mut() {
        if entry.utc.is_some_and(|utc| winners.get(&utc) != Some(&rank(entry))) {
            entry.utc = None;
            entry.flag = Some(Flag::Merged);
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use jiff::tz::TimeZoneDatabase;

    use super::*;

    fn zone(name: &str) -> TimeZone {
        TimeZoneDatabase::bundled().get(name).unwrap()
    }

    fn calendar(windows: &[&str], start_date: Date, days: u32) -> Calendar {
        Calendar {
            windows: windows.iter().map(|w| w.parse().unwrap()).collect(),
            start_date,
            days,
            workdays_only: false,
            weekend: DEFAULT_WEEKEND.to_vec(),
            holidays: BTreeSet::new(),
        }
    }

    fn shown(planned: &[PlannedWindow]) -> Vec<String> {
        planned
            .iter()
            .map(|p| {
                let utc = p.utc.map_or("-".to_owned(), |t| t.to_string());
                format!("{} {} {utc} {}", p.date, p.window, p.flag.map_or("-", Flag::name))
            })
            .collect()
    }

    #[test]
    fn a_window_that_exists_keeps_its_burst_when_a_missing_one_is_moved_onto_it() {
        // Berlin puts its clocks from 02:00 to 03:00 at 01:00 UTC
        let planned = plan(&calendar(&["03:00", "02:00", "02:30"], date(2026, 3, 29), 1), &zone("Europe/Berlin"));
        assert_eq!(
            shown(&planned.unwrap()),
            ["2026-03-29 03:00 2026-03-29T01:00:00Z -", "2026-03-29 02:00 - merged", "2026-03-29 02:30 - merged"]
        );
    }

    #[test]
    fn a_window_before_midnight_gives_way_to_one_at_midnight_when_the_gap_ends_there() {
        // Nuuk put its clocks from Saturday 23:00 to Sunday 00:00 at 01:00 UTC
        let both = plan(&calendar(&["00:00", "23:30"], date(2024, 3, 30), 2), &zone("America/Nuuk")).unwrap();
        assert_eq!(
            shown(&both),
            [
                "2024-03-30 00:00 2024-03-30T02:00:00Z -",
                "2024-03-30 23:30 - merged",
                "2024-03-31 00:00 2024-03-31T01:00:00Z -",
                "2024-03-31 23:30 2024-04-01T00:30:00Z -",
            ]
        );
        // without the Sunday nothing else falls on that instant
        let workdays =
            Calendar { workdays_only: true, weekend: vec![7], ..calendar(&["00:00", "23:30"], date(2024, 3, 30), 2) };
        assert_eq!(
            shown(&plan(&workdays, &zone("America/Nuuk")).unwrap())[1],
            "2024-03-30 23:30 2024-03-31T01:00:00Z gap"
        );
    }

    #[test]
    fn all_days_count_unless_only_workdays_are_asked_for() {
        let every = Calendar { holidays: [date(2026, 6, 8)].into(), ..calendar(&["09:00"], date(2026, 6, 5), 4) };
        assert_eq!(every.dates().unwrap(), [5, 6, 7, 8].map(|day| date(2026, 6, day)));
        let workdays = Calendar { workdays_only: true, ..every };
        assert_eq!(workdays.dates().unwrap(), [5, 9, 10, 11].map(|day| date(2026, 6, day)));
    }

    #[test]
    fn a_plan_that_cannot_be_made_says_why() {
        let good = calendar(&["09:00"], date(2026, 6, 5), 1);
        let utc = TimeZone::UTC;
        let refused = |calendar: Calendar| plan(&calendar, &utc).unwrap_err();
        assert_eq!(refused(Calendar { windows: vec![], ..good.clone() }), PlanError::NoWindows);
        assert_eq!(refused(Calendar { days: 0, ..good.clone() }), PlanError::BadDays(0));
        assert_eq!(refused(Calendar { weekend: vec![0], ..good.clone() }), PlanError::BadWeekday(0));
        let always_off = Calendar { workdays_only: true, weekend: (1..=7).collect(), ..good.clone() };
        assert_eq!(refused(always_off), PlanError::NoWorkday);
        assert_eq!(refused(Calendar { start_date: Date::MAX, days: 2, ..good }), PlanError::BeyondCalendar);
        let twice = calendar(&["09:00", "16:00", "09:00"], date(2026, 6, 5), 1);
        assert_eq!(refused(twice), PlanError::DuplicateWindow("09:00".parse().unwrap()));
    }

    #[test]
    fn rules_that_governments_changed_this_year_are_known() {
        // British Columbia stays on -07:00 for good since 2026-03-08 (NEWS of tz database 2026b)
        let planned = plan(&calendar(&["09:00"], date(2026, 11, 2), 1), &zone("America/Vancouver")).unwrap();
        assert_eq!(shown(&planned), ["2026-11-02 09:00 2026-11-02T16:00:00Z -"]);
    }
}
