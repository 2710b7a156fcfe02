//! Several bursts of one lane, task class and window over the days. Windows are never pooled into one lane figure:
//! 95 % at 09:00 and 50 % at 16:00 is not a 72 % lane.

use std::collections::BTreeMap;

use super::reduce::reduce;
use super::{MissCount, Quantile, summarise};
use crate::burst::{AttemptFigures, BurstHeader, BurstState, PromptMode};
use crate::lane::Kind;
use crate::rules::{Hours, Thresholds, WindowBursts, judge_hours};
use crate::stats::{
    Confidence, Interval, PassRate, PooledThroughput, Portion, RetryTally, StatsError, Throughput, clustered_wilson,
    pooled_throughput, wilson,
};

/// One burst with what a summary needs of its attempts.
#[derive(Clone, Copy, Debug)]
pub struct BurstData<'a> {
    /// What the burst was.
    pub header: &'a BurstHeader,
    /// How it stands.
    pub state: BurstState,
    /// Its attempts without the warm-up, in any order.
    pub figures: &'a [AttemptFigures],
}

/// One burst in the list of days of a window.
#[derive(Clone, Debug, PartialEq)]
pub struct DayCount {
    /// Local date, `YYYY-MM-DD`; `None` for a burst by hand.
    pub date: Option<String>,
    /// Id of the burst.
    pub burst: String,
    /// How it stands; only a complete one counts into the window.
    pub state: BurstState,
    /// Attempts that passed.
    pub passed: u32,
    /// Attempts planned.
    pub n: u32,
    /// Attempts with at least one retry.
    pub retried: u32,
    /// All retries.
    pub retries: u32,
    /// Median latency of this burst.
    pub p50: Option<Quantile>,
    /// p90 of the latencies of this burst.
    pub p90: Option<Quantile>,
    /// Median TTFT of this burst.
    pub ttft_p50: Option<Quantile>,
    /// Median time to first answer of this burst.
    pub first_answer_p50: Option<Quantile>,
    /// Misses by class, most frequent first, then by name.
    pub misses: Vec<MissCount>,
    /// Right answers over the time that they took, for a batch class; `None` for the others and where the burst does not
    /// count.
    pub throughput: Option<Throughput>,
}

/// One lane and task class in one window, over all days.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowSummary {
    /// Local begin, `16:00`; `None` for bursts by hand.
    pub window: Option<String>,
    /// Complete bursts, which are those that count.
    pub bursts: u32,
    /// Attempts that passed.
    pub passed: u32,
    /// Attempts of the complete bursts (the denominator).
    pub n: u32,
    /// Wilson interval at 95 % that knows that attempts of one burst share a queue (see
    /// [`clustered_wilson`]); the plain one where the bursts agree. `None` without a complete burst.
    pub pass_interval: Option<(f64, f64)>,
    /// The same for independent attempts, as other tools print it.
    pub plain_interval: Option<(f64, f64)>,
    /// Variance against that of independent attempts, at least 1.
    pub design_effect: Option<f64>,
    /// Median latency over all attempts of the complete bursts.
    pub p50: Option<Quantile>,
    /// p90 of latency over all of these attempts; never a mean of p90s.
    pub p90: Option<Quantile>,
    /// Median TTFT over all of these attempts.
    pub ttft_p50: Option<Quantile>,
    /// Median time to first answer over all of these attempts.
    pub first_answer_p50: Option<Quantile>,
    /// Attempts with at least one retry.
    pub retried: u32,
    /// All retries.
    pub retries: u32,
    /// Misses by class, most frequent first, then by name.
    pub misses: Vec<MissCount>,
    /// Throughput of the complete bursts together, for a batch class.
    pub throughput: Option<PooledThroughput>,
    /// All bursts, also those that do not count, by date and id.
    pub days: Vec<DayCount>,
}

impl WindowSummary {
    /// Passes of all attempts in this window. `None` without a complete burst.
    pub fn pass_rate(&self) -> Option<PassRate> {
        PassRate::new(self.passed, self.n)
    }

    /// Retries in this window.
    pub fn retry_tally(&self) -> RetryTally {
        RetryTally { attempts: self.n, retried: self.retried, retries: u64::from(self.retries) }
    }
}

/// One lane and task class, window by window. There is no pass rate of the lane, on purpose.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneSummary {
    /// Name of the lane.
    pub lane: String,
    /// Name of the site, where the configuration has several.
    pub site: Option<String>,
    /// Id of the campaign; `None` for bursts of none.
    pub campaign: Option<String>,
    /// Its rung.
    pub kind: Kind,
    /// Model asked for.
    pub model: String,
    /// Name of the task class.
    pub task: String,
    /// Latency floor, microseconds; 0: none.
    pub floor_us: u64,
    /// Throughput floor of a batch class, right answers per hour.
    pub tasks_per_hour_floor: Option<u32>,
    /// Hash of prompt, parameters and check.
    pub prompt_hash: String,
    /// Nonce or identical prompts.
    pub prompt_mode: PromptMode,
    /// The lane is simulated.
    pub simulated: bool,
    /// Windows in the order of the day; bursts by hand last.
    pub windows: Vec<WindowSummary>,
    /// Index of the worst window: the lowest exact pass rate, the earliest on a tie. `None` without a complete burst.
    pub worst: Option<usize>,
}

impl WindowSummary {
    /// A window of the plan in which nothing was measured.
    fn nothing(window: &str) -> Self {
        window_summary(Some(window), Vec::new())
    }
}

impl LaneSummary {
    /// Adds the windows of the plan in which nothing was measured, so that they are missing in sight.
    pub fn add_windows<'a>(&mut self, planned: impl Iterator<Item = &'a str>) {
        for window in planned {
            if self.windows.iter().all(|w| w.window.as_deref() != Some(window)) {
                self.windows.push(WindowSummary::nothing(window));
            }
        }
        self.windows.sort_by(|a, b| window_order(a.window.as_deref()).cmp(&window_order(b.window.as_deref())));
        self.worst = worst_of(self.windows.iter().map(WindowSummary::pass_rate));
    }

    /// The complete bursts of each window, for [`judge_hours`]; bursts by hand belong to no hour. Of a batch class each burst
    /// is one trial: it reaches the floor or not.
    fn window_bursts(&self) -> Vec<WindowBursts> {
        let rate = |day: &DayCount| match (self.tasks_per_hour_floor, day.throughput) {
            _ if day.state != BurstState::Complete => None,
            (Some(floor), Some(throughput)) => PassRate::new(u32::from(throughput.reaches(floor)), 1),
            (Some(_), None) => None,
            (None, _) => PassRate::new(day.passed, day.n),
        };
        let of_window = |w: &WindowSummary| {
            Some(WindowBursts { window: w.window.clone()?, bursts: w.days.iter().filter_map(rate).collect() })
        };
        self.windows.iter().filter_map(of_window).collect()
    }
    /// The worst window.
    pub fn worst_window(&self) -> Option<&WindowSummary> {
        self.windows.get(self.worst?)
    }

    /// Interval of the worst window's rate with its confidence shared by all windows that were looked at (Bonferroni),
    /// since the worst of several was picked after the fact.
    pub fn worst_interval(&self) -> Option<Interval> {
        let looks = self.windows.iter().filter(|w| w.n > 0).count();
        let confidence = Confidence::P95.shared_by(u32::try_from(looks).unwrap_or(u32::MAX));
        let bursts = counted(&self.worst_window()?.days);
        clustered_wilson(&bursts, confidence).map(|c| c.interval)
    }

    /// Retries over the whole campaign: this rate does span the windows, by definition.
    pub fn retry_tally(&self) -> RetryTally {
        self.windows.iter().map(WindowSummary::retry_tally).fold(RetryTally::default(), |sum, w| RetryTally {
            attempts: sum.attempts.saturating_add(w.attempts),
            retried: sum.retried.saturating_add(w.retried),
            retries: sum.retries.saturating_add(w.retries),
        })
    }
}

/// What must be equal for bursts to stand in one row: other sites, campaigns, prompts, floors or models do not mix.
type LaneKey<'a> = (Option<&'a str>, Option<&'a str>, &'a str, &'a str, &'a str, &'a str, u64, bool, Kind, bool);

fn lane_key(header: &BurstHeader) -> LaneKey<'_> {
    let identical = header.prompt_mode == PromptMode::Identical;
    let h = header;
    (
        h.site.as_deref(),
        h.campaign.as_deref(),
        &h.lane,
        &h.task,
        &h.model,
        &h.prompt_hash,
        h.floor_us,
        identical,
        h.kind,
        h.simulated,
    )
}

/// Bursts of one lane by window, in the order of the day.
type ByWindow<'a> = BTreeMap<(u32, Option<&'a str>), Vec<&'a BurstData<'a>>>;

/// Where a window stands in the day: by the clock where it is spelled `HH:MM`, else behind, by name.
pub(crate) fn window_order(window: Option<&str>) -> (u32, Option<&str>) {
    let minutes = window.and_then(|w| {
        let (hours, minutes) = w.split_once(':')?;
        Some(hours.parse::<u32>().ok()? * 60 + minutes.parse::<u32>().ok()?)
    });
    // 24:00 is 1440; behind it come other names, and behind these the bursts by hand.
    (minutes.unwrap_or(if window.is_some() { 10_000 } else { 20_000 }), window)
}

/// Sums bursts per lane, task class and window. Counts are kept, the order of `bursts` does not matter, and lanes come
/// back sorted by name and task class. Bursts with other prompts, floors, models or prompt modes are rows of their own;
/// void, running and interrupted bursts are listed by day but count neither way.
pub fn lane_summaries(bursts: &[BurstData<'_>]) -> Vec<LaneSummary> {
    let mut lanes: BTreeMap<LaneKey<'_>, ByWindow<'_>> = BTreeMap::new();
    for burst in bursts {
        let windows = lanes.entry(lane_key(burst.header)).or_default();
        windows.entry(window_order(burst.header.window.as_deref())).or_default().push(burst);
    }
    lanes.into_values().filter_map(lane_summary).collect()
}

fn lane_summary(groups: ByWindow<'_>) -> Option<LaneSummary> {
    let header = groups.values().flatten().next()?.header.clone();
    let windows: Vec<WindowSummary> =
        groups.into_iter().map(|((_, name), group)| window_summary(name, group)).collect();
    let worst = worst_of(windows.iter().map(WindowSummary::pass_rate));
    Some(LaneSummary {
        lane: header.lane,
        site: header.site,
        campaign: header.campaign,
        kind: header.kind,
        model: header.model,
        task: header.task,
        floor_us: header.floor_us,
        tasks_per_hour_floor: header.tasks_per_hour_floor,
        prompt_hash: header.prompt_hash,
        prompt_mode: header.prompt_mode,
        simulated: header.simulated,
        windows,
        worst,
    })
}

/// Do the hours of each lane differ beyond chance? All lanes are looked at together: see [`judge_hours`].
///
/// # Errors
/// As there.
pub fn lane_hours(lanes: &[LaneSummary], thresholds: &Thresholds) -> Result<Vec<Hours>, StatsError> {
    judge_hours(&lanes.iter().map(LaneSummary::window_bursts).collect::<Vec<_>>(), thresholds)
}

/// Index of the lowest rate, the first on a tie. Windows without any rate are passed over.
pub(crate) fn worst_of(rates: impl Iterator<Item = Option<PassRate>>) -> Option<usize> {
    rates
        .enumerate()
        .filter_map(|(index, rate)| rate.map(|r| (index, r)))
        .min_by(|a, b| a.1.compare(b.1).then_with(|| a.0.cmp(&b.0)))
        .map(|(index, _)| index)
}

/// Rates of the bursts that count.
fn counted(days: &[DayCount]) -> Vec<PassRate> {
    days.iter().filter(|d| d.state == BurstState::Complete).filter_map(|d| PassRate::new(d.passed, d.n)).collect()
}

fn window_summary(name: Option<&str>, mut group: Vec<&BurstData<'_>>) -> WindowSummary {
    group.sort_by(|a, b| (&a.header.date, &a.header.id).cmp(&(&b.header.date, &b.header.id)));
    let mut counting: Vec<&BurstData<'_>> = Vec::new();
    let mut days = Vec::new();
    for burst in group {
        let one = summarise(burst.header, burst.state, burst.figures);
        let counts = one.pass_rate().is_some();
        if counts {
            counting.push(burst);
        }
        days.push(DayCount {
            date: burst.header.date.clone(),
            burst: burst.header.id.clone(),
            // Attempts are missing on record: whatever was said of the burst, it is not complete.
            state: if one.state == BurstState::Complete && !counts { BurstState::Interrupted } else { one.state },
            passed: one.passed,
            n: one.n,
            retried: one.retried,
            retries: one.retries,
            p50: one.p50,
            p90: one.p90,
            ttft_p50: one.ttft_p50,
            first_answer_p50: one.first_answer_p50,
            throughput: one.pass_rate().and(one.throughput()).filter(|_| one.header.tasks_per_hour_floor.is_some()),
            misses: one.misses,
        });
    }
    // The smallest of the limits is what every unfinished attempt exceeds.
    let at_least = counting.iter().map(|b| b.header.floor_us.max(b.header.total_timeout_us)).min().unwrap_or(0);
    let all = reduce(counting.iter().flat_map(|b| b.figures), at_least);
    let clustered = clustered_wilson(&counted(&days), Confidence::P95);
    let throughputs: Vec<Throughput> = days.iter().filter_map(|d| d.throughput).collect();
    WindowSummary {
        throughput: pooled_throughput(&throughputs, Confidence::P95),
        window: name.map(str::to_owned),
        bursts: u32::try_from(counting.len()).unwrap_or(u32::MAX),
        passed: all.passed,
        n: all.made,
        pass_interval: clustered.map(|c| c.interval.pair()),
        plain_interval: PassRate::new(all.passed, all.made).map(|rate| wilson(rate, Confidence::P95).pair()),
        design_effect: clustered.map(|c| c.design_effect),
        p50: all.latency.at(Portion::P50),
        p90: all.latency.at(Portion::P90),
        ttft_p50: all.ttft.as_ref().and_then(|r| r.at(Portion::P50)),
        first_answer_p50: all.first_answer.as_ref().and_then(|r| r.at(Portion::P50)),
        retried: all.retried,
        retries: all.retries,
        misses: all.misses,
        days,
    }
}
