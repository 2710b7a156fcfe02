//! The trigger of a task class: the last working days of the lane that it is on.

use super::figures::{Frame, retries_of};
use super::{Inputs, LaneFigures, Seen};
use crate::config::Day;
use crate::lane::Kind;
use crate::rules::{Candidate, Ladder, TriggerState, held_throughout, judge_trigger, next_rung};
use crate::stats::PassRate;

/// The newest decision on record for a task class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Id of the document.
    pub id: String,
    /// Name of the site.
    pub site: Option<String>,
    /// Name of the task class.
    pub task: String,
    /// The day that it was made for.
    pub date: Day,
    /// The lane that it chose; `None` where nothing held.
    pub lane: Option<String>,
    /// Its rung.
    pub kind: Option<Kind>,
    /// The day from which it holds no longer.
    pub expires: Day,
}

/// One of the last working days.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerDay {
    /// Local date.
    pub date: String,
    /// Pass rate of the busy window; `None`: nothing counts on that day (missed, void, interrupted).
    pub rate: Option<PassRate>,
    /// It is below the threshold.
    pub bad: bool,
}

/// How the trigger stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trigger {
    /// The lane that is watched: that of the newest record, else the one that is chosen now. `None` without either.
    pub lane: Option<String>,
    /// It is that of the record.
    pub from_record: bool,
    /// The busy window of that lane.
    pub window: Option<String>,
    /// The last working days, oldest first.
    pub days: Vec<TriggerDay>,
    /// The state; `None` where no lane is watched.
    pub state: Option<TriggerState>,
    /// Index of the lane to which the task class moves, where the trigger fired and a rung above is feasible.
    pub to: Option<usize>,
}

/// The last working days up to the date of the question. Without a campaign the last dates on which the lane was measured.
fn last_days(frame: &Frame<'_>, lane: &str, count: u32) -> Vec<String> {
    let today = frame.inputs.as_of.to_string();
    let of_lane = |b: &&Seen| b.header.lane == lane && b.header.task == frame.task;
    let mut seen: Vec<String> =
        frame.inputs.bursts.iter().filter(of_lane).filter_map(|b| b.header.date.clone()).collect();
    seen.sort();
    seen.dedup();
    match frame.planned {
        Some(planned) => {
            // Today takes its place once it is over, or something of it is on record: a burst that is not due yet is no gap.
            let counts = frame.inputs.whole_day || seen.contains(&today);
            let mut days = planned.last_working_days(frame.inputs.as_of, count.saturating_add(1));
            days.retain(|day| *day < today || counts);
            days.drain(..days.len().saturating_sub(count as usize));
            days
        }
        None => seen.drain(seen.len().saturating_sub(count as usize)..).collect(),
    }
}

fn rates_by_day(frame: &Frame<'_>, figures: &LaneFigures, count: u32) -> Vec<(String, Option<PassRate>)> {
    let bursts = figures.deciding_window().map(|w| w.bursts.as_slice()).unwrap_or_default();
    let on = |date: &str| {
        PassRate::sum(&bursts.iter().filter(|(d, _)| d == date).map(|(_, rate)| *rate).collect::<Vec<_>>())
    };
    let days = last_days(frame, &figures.lane, count);
    days.into_iter().map(|date| (date.clone(), on(&date))).collect()
}

pub(super) fn trigger(
    frame: &Frame<'_>,
    candidates: &[Candidate],
    lanes: &[LaneFigures],
    ladder: &Ladder,
    recorded: Option<&Recorded>,
) -> Trigger {
    let from_record = recorded.and_then(|r| r.lane.clone());
    let Some(name) = from_record.clone().or_else(|| Some(lanes.get(ladder.chosen?)?.lane.clone())) else {
        return Trigger::default();
    };
    let figures = lanes.iter().find(|l| l.lane == name);
    let thresholds = frame.thresholds;
    let by_day = figures.map(|f| rates_by_day(frame, f, thresholds.trigger_days)).unwrap_or_default();
    let of_period = |b: &&Seen| {
        let in_days = b.header.date.as_ref().is_some_and(|date| by_day.iter().any(|(day, _)| day == date));
        in_days && b.header.lane == name && b.header.task == frame.task && b.header.window.is_some()
            // another model or prompt is another series
            && figures.is_some_and(|f| f.burst_ids.contains(&b.header.id))
    };
    let retries = retries_of(frame.inputs.bursts.iter().filter(of_period)).rate();
    let rates: Vec<Option<PassRate>> = by_day.iter().map(|(_, rate)| *rate).collect();
    let state = judge_trigger(&rates, retries, thresholds);
    let kind = figures.map(|f| f.kind).or_else(|| recorded.and_then(|r| r.kind));
    let fired = !state.causes.is_empty();
    Trigger {
        window: figures.and_then(|f| f.deciding_window()).map(|w| w.window.clone()),
        from_record: from_record.is_some(),
        days: by_day
            .into_iter()
            .map(|(date, rate)| TriggerDay {
                bad: rate.is_some_and(|r| r.below(thresholds.trigger_pass_percent)),
                date,
                rate,
            })
            .collect(),
        to: kind.filter(|_| fired).and_then(|kind| next_rung(candidates, ladder, kind)),
        state: Some(state),
        lane: Some(name),
    }
}

/// Index of the lowest lane below that of the record which held on enough days, by the rule of `step_down_days`.
pub(super) fn step_down(
    frame: &Frame<'_>,
    lanes: &[LaneFigures],
    ladder: &Ladder,
    recorded: Option<&Recorded>,
) -> Option<usize> {
    let from = recorded?.kind?;
    let days = frame.rules.step_down_days;
    (0..lanes.len())
        .filter(|at| lanes[*at].kind < from && ladder.standings[*at].0 == crate::rules::Standing::Holds)
        .filter(|at| {
            let rates: Vec<_> = rates_by_day(frame, &lanes[*at], days).into_iter().map(|(_, rate)| rate).collect();
            held_throughout(&rates, days, frame.thresholds.pass_percent)
        })
        .min_by_key(|at| lanes[*at].kind)
}

/// The newest record of a task class that was made by then.
pub(super) fn newest<'a>(inputs: &'a Inputs<'_>, task: &str) -> Option<&'a Recorded> {
    let of_task = |r: &&Recorded| r.task == task && r.site.as_deref() == inputs.site && r.date <= inputs.as_of;
    // Records come oldest first; of two of one day the later one counts.
    inputs.recorded.iter().filter(of_task).max_by_key(|r| r.date)
}
