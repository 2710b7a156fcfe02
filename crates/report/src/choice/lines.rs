//! The lines below the lanes: hours, trigger, record, and what to do next.

use peaklane_core::choice::{Choice, LaneFigures};
use peaklane_core::rules::{
    Action, Certainty, CertaintyState, DecisionVerdict, HourRange, Obstacle, TriggerCause, Why, WrongTool,
};

use crate::units::{count, counted, one_line};
use crate::words::list;

/// `lane-a from 21:00 to 16:00`.
pub(super) fn range_words(choice: &Choice, range: &HourRange) -> String {
    format!("{} from {} to {}", one_line(&choice.lanes[range.lane].lane), range.from, range.to)
}

/// The split by hours in one line. `None` where there is none.
pub fn hours_line(choice: &Choice) -> Option<String> {
    let split = choice.split.as_ref()?;
    let ranges: Vec<String> = split.ranges.iter().map(|range| range_words(choice, range)).collect();
    let what = match (split.cost, choice.chosen()) {
        (Some(cost), _) => format!("would cost {} % less and hold", cost.percent_less()),
        (None, Some(_)) => "would hold too".to_owned(),
        (None, None) => "would hold".to_owned(),
    };
    Some(format!("By hours: {} {what}", ranges.join(", ")))
}

/// How the trigger stands, in one line.
pub fn trigger_line(choice: &Choice) -> String {
    let trigger = &choice.trigger;
    let (Some(lane), Some(state)) = (&trigger.lane, &trigger.state) else {
        return "Trigger: none (no lane is chosen)".to_owned();
    };
    let lane = one_line(lane);
    let days: Vec<String> = trigger
        .days
        .iter()
        .map(|d| d.rate.map_or_else(|| "-".to_owned(), |r| format!("{}/{}", r.passed(), r.of())))
        .collect();
    let days = if days.is_empty() { "none measured".to_owned() } else { days.join(", ") };
    let seen = format!("({lane}, last {} {days})", counted(choice.thresholds.trigger_days.into(), "working day"));
    match state.action {
        Action::Stay => format!("Trigger: none {seen}"),
        Action::NotEnoughData => format!("Trigger: not enough data {seen}"),
        Action::Graduate => {
            let causes: Vec<String> = state.causes.iter().map(|cause| cause_words(choice, *cause)).collect();
            let to = match trigger.to.map(|at| &choice.lanes[at]) {
                Some(to) => format!("moves from {lane} to {} ({})", one_line(&to.lane), to.kind),
                None => format!("should leave {lane}, but no rung above it is feasible"),
            };
            format!("Trigger: fired, {} {to}: {}", one_line(&choice.task), causes.join("; "))
        }
    }
}

fn cause_words(choice: &Choice, cause: TriggerCause) -> String {
    let thresholds = &choice.thresholds;
    match cause {
        TriggerCause::BadDays { .. } => {
            let bad = choice.trigger.days.iter().filter(|d| d.bad);
            let bad: Vec<String> =
                bad.filter_map(|d| Some(format!("{}/{} on {}", d.rate?.passed(), d.rate?.of(), d.date))).collect();
            let window = choice.trigger.window.as_deref().unwrap_or("the busy window");
            format!("{window} passed {} (below {} %)", list(&bad), thresholds.trigger_pass_percent)
        }
        TriggerCause::Retries { rate } => format!(
            "retries {}/{} = {} (above {} %)",
            rate.retried(),
            rate.of(),
            rate.text(&[thresholds.trigger_retry_percent]),
            thresholds.trigger_retry_percent
        ),
    }
}

/// The newest decision on record, in one line. `None` where there is none.
pub fn record_line(choice: &Choice) -> Option<String> {
    let record = choice.recorded.as_ref()?;
    let chose = record.lane.as_deref().map_or("no lane".to_owned(), one_line);
    let state = if choice.expired() { "expired" } else { "expires" };
    Some(format!("Record: {} chose {chose}, {state} {}", one_line(&record.id), record.expires))
}

/// What to do next, where there is something.
pub fn hints(choice: &Choice) -> Vec<String> {
    let mut all = Vec::new();
    if choice.lacks_data() {
        for (candidate, figures) in choice.candidates.iter().zip(&choice.lanes) {
            let waits =
                matches!(candidate.decision.verdict, DecisionVerdict::NotEnoughData | DecisionVerdict::NotEnoughDays);
            if waits && candidate.barred.is_empty() {
                let days = figures.deciding_window().map_or(0, |w| w.days);
                let more = choice.thresholds.days.saturating_sub(days).max(1);
                let window = candidate.decision.deciding_window.as_deref().unwrap_or("its windows");
                all.push(format!(
                    "{} needs {} with complete bursts at {window}; let `peaklane watch` go on",
                    one_line(&candidate.lane),
                    counted(more.into(), "more day"),
                ));
                break;
            }
        }
    }
    for figures in choice.deciding_lanes().into_iter().map(|at| &choice.lanes[at]) {
        all.extend(provisional(choice, figures));
    }
    if choice.fired() || choice.expired() {
        all.push("`peaklane decide --record DIR` writes what is decided now".to_owned());
    }
    all
}

/// What would make the verdict on a lane conclusive. `None` where it is.
fn provisional(choice: &Choice, figures: &LaneFigures) -> Option<String> {
    if figures.is_conclusive() {
        return None;
    }
    let lane = one_line(&figures.lane);
    let window = figures.deciding_window().map(|w| w.window.as_str()).unwrap_or_default();
    let bar = choice.thresholds.pass_percent;
    let open = |c: &Certainty| match c.state {
        CertaintyState::Conclusive => None,
        CertaintyState::Provisional { bursts_needed, probability, .. } => {
            Some((bursts_needed, (probability * 100.0).round()))
        }
    };
    let pass = figures.pass_certainty.as_ref();
    if let (Some((bursts, probability)), Some(certainty)) = (pass.and_then(open), pass) {
        let rate = certainty.rate.text(&[bar]);
        return Some(match bursts {
            Some(bursts) => format!(
                "{} at {window} make {lane} conclusive with a probability of {probability} % if it goes on passing {rate}",
                counted(bursts.into(), "more burst"),
            ),
            None => format!("{lane} passes {rate} at {window}, so near to {bar} % that bursts will hardly tell"),
        });
    }
    let below = choice.thresholds.retry_below_percent;
    let (bursts, probability) = figures.retry_certainty.as_ref().and_then(open)?;
    Some(match bursts {
        Some(bursts) => format!(
            "{} make the retries of {lane} conclusive with a probability of {probability} % if they go on as they are",
            counted(bursts.into(), "more burst"),
        ),
        None => format!("the retries of {lane} are so near to {below} % that bursts will hardly tell"),
    })
}

/// What would have to change for a lane to hold: `16:00 passed 22 of 24 instead of 12, and retries were below 5 %`.
pub(super) fn what_would_have_to_change(choice: &Choice, at: usize) -> String {
    let candidate = &choice.candidates[at];
    let window = candidate.decision.deciding_window.as_deref().unwrap_or("its deciding window");
    let parts: Vec<String> = choice.ladder.standings[at]
        .1
        .iter()
        .filter_map(|why| match why {
            Why::Obstacle(Obstacle::PassRate { rate, needed_percent }) => {
                let needed = (u64::from(rate.of()) * u64::from(*needed_percent)).div_ceil(100);
                Some(format!("{window} passed {needed} of {} instead of {}", rate.of(), rate.passed()))
            }
            Why::Obstacle(Obstacle::Retries { rate, below_percent }) => {
                Some(format!("retries were below {below_percent} % instead of {}", rate.text(&[*below_percent])))
            }
            Why::NoOwner => Some("an owner for patching were named".to_owned()),
            Why::NoPatchDate => Some("the date of the last patch were stated".to_owned()),
            Why::StalePatch { days } => Some(format!("it were patched, which was {days} days ago")),
            _ => None,
        })
        .collect();
    list(&parts)
}

/// Why this is the wrong tool for a need, and what to do instead.
pub(super) fn wrong_tool_words(wrong: WrongTool) -> String {
    match wrong {
        WrongTool::StrictP99 { p99_ms } => format!(
            "a p99 of {} ms is a promise that bursts of 8 can neither show nor keep: take a contract with dedicated capacity \
             and its own monitoring of every request, and use these figures to choose whom to ask",
            count(p99_ms)
        ),
        WrongTool::DataMustNotLeave => {
            "data may not leave, so that no hosted lane is a choice however it measures: compare \
             stacks on machines of your own instead"
                .to_owned()
        }
        WrongTool::LongGeneration { minutes } => format!(
            "{} of generation a day and developer: short bursts say little of it. Measure a batch class with \
             `tasks_per_hour`, or whole tasks",
            counted(minutes.into(), "minute")
        ),
    }
}
