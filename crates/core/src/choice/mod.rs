//! From the bursts of a campaign to a choice: which lane a task class goes to, with every figure behind it.
//!
//! Pure: bursts, the configuration, what was locked, the date and the zones are arguments. The rules that decide are in
//! [`crate::rules`]; here they get their evidence.

mod cost;
mod days;
mod figures;
mod make;
mod split;
mod trigger;

use crate::burst::{AttemptFigures, BurstHeader, BurstState};
use crate::config::{Day, Limits, RulesSettings};
use crate::lane::Kind;
use crate::outcome::Outcome;
use crate::rules::{Candidate, Certainty, Ladder, NeedCheck, Thresholds, TriggerState, WrongTool};
use crate::stats::{PassRate, RetryTally};
use crate::summary::{MissCount, Quantile};

pub use cost::{HOURS_A_MONTH, WaitingCost, price_of_1000};
pub use days::{Planned, is_working_day, planned_dates};
pub use make::{Inputs, choices};
pub use split::{Split, SplitCost};
pub use trigger::{Recorded, Trigger, TriggerDay};

/// One burst with what a decision needs of it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// What it was.
    pub header: BurstHeader,
    /// How it stands.
    pub state: BurstState,
    /// Its attempts without the warm-up.
    pub figures: Vec<AttemptFigures>,
    /// The attempts of its warm-up, which are cold starts; empty where a file does not keep them.
    pub warmups: Vec<ColdTry>,
    /// Most attempts in flight at once; `None` where that is not known.
    pub peak_in_flight: Option<u32>,
    /// Limits that headers of its answers named, name and value.
    pub limit_headers: Vec<(String, String)>,
}

/// One attempt at a lane that was idle before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColdTry {
    /// How it ended.
    pub outcome: Outcome,
    /// From its start to its end, microseconds.
    pub latency_us: u64,
}

/// A planned burst that did not come about, as the store tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Local date, `YYYY-MM-DD`.
    pub date: String,
    /// Local begin of its window.
    pub window: String,
    /// Name of the lane.
    pub lane: String,
    /// Name of the task class.
    pub task: String,
    /// `missed`, `before_start`, `interrupted`.
    pub state: String,
    /// Why, such as `asleep`.
    pub reason: Option<String>,
}

/// One window of one lane.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowFigures {
    /// Local begin, `16:00`.
    pub window: String,
    /// The complete bursts by local date, each with what passed: attempts, or for a batch class the burst as a whole.
    pub bursts: Vec<(String, PassRate)>,
    /// All of them together.
    pub rate: Option<PassRate>,
    /// Retries of their attempts.
    pub retries: RetryTally,
    /// Dates with all of the window's bursts complete.
    pub days: u32,
    /// p90 of latency over all of their attempts.
    pub p90: Option<Quantile>,
    /// Misses by class.
    pub misses: Vec<MissCount>,
    /// Price of 1,000 requests at these hours, micro-dollars.
    pub micro_usd_per_1000: Option<u64>,
    /// Waited in vain for attempts that missed, microseconds for each attempt of the window.
    pub waited_us: Option<u64>,
}

/// What the warm-ups say of a lane that was idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColdStart {
    /// First attempts after idle.
    pub attempts: u32,
    /// Those that were not answered.
    pub failed: u32,
    /// Median of the answered ones (nearest rank), microseconds.
    pub median_us: Option<u64>,
    /// The slowest of the answered ones, microseconds.
    pub slowest_us: Option<u64>,
}

/// Limits as they were met, beside what is stated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Attempts that ended rate limited.
    pub rate_limited: u32,
    /// Attempts looked at.
    pub attempts: u32,
    /// Most requests in flight at once in a burst that nothing was refused in.
    pub in_flight: Option<u32>,
    /// Limits that headers of answers named, the last value of each.
    pub headers: Vec<(String, String)>,
}

/// What the configuration says of a lane; empty without one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stated {
    /// Hours a month that running it takes.
    pub ops_hours_per_month: Option<f64>,
    /// Who patches it.
    pub owner: Option<String>,
    /// Day of the last patch.
    pub patched: Option<Day>,
    /// Address of its terms.
    pub terms_url: Option<String>,
    /// Day on which they were read.
    pub terms_checked: Option<Day>,
    /// Limits that they state.
    pub limits: Limits,
    /// How whoever measures is tied to it.
    pub affiliation: Option<String>,
    /// Where it computes.
    pub region: Option<String>,
    /// Rent, micro-dollars an hour.
    pub rent_micro_usd_per_hour: Option<u64>,
}

/// All figures of one lane. Stands beside the [`Candidate`] of the same index.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneFigures {
    /// Name.
    pub lane: String,
    /// Rung.
    pub kind: Kind,
    /// Model asked for.
    pub model: String,
    /// The lane is simulated.
    pub simulated: bool,
    /// Its windows in the order of the day.
    pub windows: Vec<WindowFigures>,
    /// Index of the window that decides.
    pub deciding: Option<usize>,
    /// How sure the pass rate is; `None` without a burst in the deciding window.
    pub pass_certainty: Option<Certainty>,
    /// How sure the retry rate is.
    pub retry_certainty: Option<Certainty>,
    /// Retries over the days of the campaign.
    pub retries: RetryTally,
    /// Cold starts; `None` where no warm-up is on record.
    pub cold: Option<ColdStart>,
    /// Price of 1,000 requests, micro-dollars: the mean over the windows. `None` where tokens or prices are not known.
    pub micro_usd_per_1000: Option<u64>,
    /// Waited in vain, microseconds for each request: the mean over the windows.
    pub waited_us: Option<u64>,
    /// What that is in a month.
    pub waiting: Option<WaitingCost>,
    /// Needs against limits.
    pub needs: Vec<NeedCheck>,
    /// What the configuration says.
    pub stated: Stated,
    /// What was observed.
    pub observed: Observed,
    /// Dates on which a burst of the deciding window is missing, and why.
    pub missing: Vec<(String, String)>,
    /// Ids of the bursts that count.
    pub burst_ids: Vec<String>,
    /// Other series of the lane that were left out: another model, prompt or floor.
    pub other_series: u32,
}

impl LaneFigures {
    /// The window that decides.
    pub fn deciding_window(&self) -> Option<&WindowFigures> {
        self.windows.get(self.deciding?)
    }

    /// Is the verdict on the lane conclusive? To hold, both rates must be; to be out, one that is below its bar is enough.
    pub fn is_conclusive(&self) -> bool {
        let sides = [self.pass_certainty.as_ref(), self.retry_certainty.as_ref()];
        let known: Vec<_> = sides.into_iter().flatten().collect();
        let sure = |c: &&Certainty| c.state.is_conclusive();
        if known.iter().all(|c| c.reaches) {
            known.len() == sides.len() && known.iter().all(sure)
        } else {
            known.iter().any(|c| !c.reaches && c.state.is_conclusive())
        }
    }
}

/// The choice for one task class at one site.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Name of the site, where there are several.
    pub site: Option<String>,
    /// Zone of its local times.
    pub time_zone: Option<String>,
    /// Name of the task class.
    pub task: String,
    /// Latency floor, microseconds; 0: none.
    pub floor_us: u64,
    /// Throughput floor of a batch class.
    pub tasks_per_hour_floor: Option<u32>,
    /// Reason, author and date of the floor, as locked.
    pub floor_words: Vec<String>,
    /// Id of the campaign; `None` for bursts of no campaign.
    pub campaign: Option<String>,
    /// The date that is "today".
    pub as_of: Day,
    /// All thresholds, as locked.
    pub rules: RulesSettings,
    /// Those of decision and trigger; the bar of a batch class is in `pass_percent`.
    pub thresholds: Thresholds,
    /// The thresholds are those that the campaign locked.
    pub locked: bool,
    /// Window that was declared the peak.
    pub peak: Option<String>,
    /// The lanes that stand for choice.
    pub candidates: Vec<Candidate>,
    /// Their figures, in the same order.
    pub lanes: Vec<LaneFigures>,
    /// How they stand.
    pub ladder: Ladder,
    /// The lane that comes nearest, where none holds.
    pub least_bad: Option<usize>,
    /// A split by hours that holds, where there is one.
    pub split: Option<Split>,
    /// The newest decision on record for this task class.
    pub recorded: Option<Recorded>,
    /// How the trigger stands.
    pub trigger: Trigger,
    /// Index of a lane on a lower rung to which the task class may move back down.
    pub down: Option<usize>,
    /// Declared reasons: key and words.
    pub reasons: Vec<(String, String)>,
    /// Needs for which this is the wrong tool.
    pub wrong_tools: Vec<WrongTool>,
    /// The day on which the decision expires: that of the record where it stands, else counted from `as_of`.
    pub expires: Option<Day>,
}

impl Choice {
    /// The chosen lane.
    pub fn chosen(&self) -> Option<&LaneFigures> {
        self.lanes.get(self.ladder.chosen?)
    }

    /// No lane is chosen, and more data may change that.
    pub fn lacks_data(&self) -> bool {
        self.ladder.chosen.is_none()
            && self.ladder.standings.iter().any(|(standing, _)| *standing == crate::rules::Standing::Undecided)
    }

    /// The trigger fired.
    pub fn fired(&self) -> bool {
        self.trigger.state.as_ref().is_some_and(|s: &TriggerState| s.action == crate::rules::Action::Graduate)
    }

    /// The newest decision on record has expired.
    pub fn expired(&self) -> bool {
        self.recorded.as_ref().is_some_and(|record| record.expires <= self.as_of)
    }

    /// The day on which the decision expires that is made on `as_of`. `None` beyond the calendar.
    pub fn as_of_expiry(&self) -> Option<Day> {
        crate::rules::expires_on(self.as_of, self.rules.expiry_days)
    }

    /// The lanes whose figures decide: the chosen one, and those of lower rungs that are out for what they measured. More
    /// data on any of them may turn the choice.
    pub fn deciding_lanes(&self) -> Vec<usize> {
        let Some(chosen) = self.ladder.chosen else { return Vec::new() };
        let decides = |at: &usize| {
            let (standing, why) = &self.ladder.standings[*at];
            let measured = why.iter().all(|w| matches!(w, crate::rules::Why::Obstacle(_)));
            *at == chosen
                || (self.lanes[*at].kind < self.lanes[chosen].kind
                    && *standing == crate::rules::Standing::Out
                    && measured)
        };
        (0..self.lanes.len()).filter(decides).collect()
    }

    /// The verdict is conclusive: on the chosen lane, and on every lane of a lower rung that is out for what it measured.
    pub fn is_conclusive(&self) -> bool {
        let deciding = self.deciding_lanes();
        !deciding.is_empty() && deciding.into_iter().all(|at| self.lanes[at].is_conclusive())
    }
}

#[cfg(test)]
mod tests;
