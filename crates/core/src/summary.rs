//! A burst reduced to numbers that can be believed: counts first, rates and quantiles derived from them.

mod json;
mod reduce;
mod windows;

use serde::Serialize;

pub use self::json::{BurstJson, Ms, TokensJson};
pub use self::reduce::Reduction;
pub use self::windows::{BurstData, DayCount, LaneSummary, WindowSummary, lane_hours, lane_summaries};
pub(crate) use self::windows::{window_order, worst_of};
use crate::burst::{AttemptFigures, BurstHeader, BurstState};
use crate::stats::{Confidence, PassRate, Portion, RetryTally, Throughput, wilson};

/// A quantile of latencies in which failures rank behind every finished attempt.
///
/// Either the value is known, or all that is known is that it exceeds something: the largest finished latency, the
/// floor or the total limit of one try, whichever is largest. An attempt that failed early exceeds all three as well, as
/// its answer never came. In the order of quantiles every value is before everything that exceeds something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantile {
    /// The latency at that rank, microseconds.
    Value(u64),
    /// The rank falls on an attempt that never finished; its latency is more than this, microseconds.
    Exceeds(u64),
}

/// How often one class of miss happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissCount {
    /// Stable name: an outcome (`rate_limited`), or `too_slow`, `wrong_answer`.
    pub class: String,
    /// Attempts.
    pub count: u32,
}

/// One burst in numbers. Counts are exact; a rate never travels without them.
#[derive(Clone, Debug, PartialEq)]
pub struct BurstSummary {
    /// What the burst was.
    pub header: BurstHeader,
    /// How it stands.
    pub state: BurstState,
    /// Planned attempts (the denominator of the pass rate); never fewer than were made, and those that were made in a
    /// stretch, which plans none.
    pub n: u32,
    /// Attempts that were made and are on record; fewer than `n` when the burst was interrupted.
    pub made: u32,
    /// Attempts that passed.
    pub passed: u32,
    /// Wilson score interval of the pass rate at 95 %, shares. `None` unless the burst is complete.
    pub pass_interval: Option<(f64, f64)>,
    /// Median latency (nearest rank). `None` without attempts.
    pub p50: Option<Quantile>,
    /// p90 of latency (nearest rank). `None` without attempts.
    pub p90: Option<Quantile>,
    /// p95 of latency (nearest rank). `None` without attempts.
    pub p95: Option<Quantile>,
    /// Median TTFT from the intended start over all attempts (failed ones without any token rank last). `None` without
    /// attempts, and when a whole answer has no TTFT: then nobody took it, and no rank is known.
    pub ttft_p50: Option<Quantile>,
    /// p90 of the same.
    pub ttft_p90: Option<Quantile>,
    /// Median time to first answer from the intended start.
    pub first_answer_p50: Option<Quantile>,
    /// Attempts with at least one retry.
    pub retried: u32,
    /// All retries.
    pub retries: u32,
    /// Misses by class, most frequent first, then by name.
    pub misses: Vec<MissCount>,
    /// Attempts whose request itself was at fault: they count neither way.
    pub findings: u32,
    /// From the first intended start to the last end, microseconds; `None` where starts are not known, or nothing was made.
    pub span_us: Option<u64>,
    /// Right answers that were whole when the stretch ended; `None` without a stretch, where starts are not known, or
    /// nothing was made.
    pub right_in_stretch: Option<u32>,
    /// Sum of reported prompt tokens; `None` when no attempt reported any.
    pub prompt_tokens: Option<u64>,
    /// Sum of reported cached prompt tokens; `None` when no attempt reported any.
    pub cached_tokens: Option<u64>,
    /// Sum of reported completion tokens; `None` when no attempt reported any.
    pub completion_tokens: Option<u64>,
}

impl BurstSummary {
    /// Passes of the planned attempts. `None` unless the burst is complete: an attempt that was not made is missing data,
    /// neither a pass nor a miss, and a void burst counts neither way.
    pub fn pass_rate(&self) -> Option<PassRate> {
        let counts = self.state == BurstState::Complete && self.findings == 0 && self.made == self.n;
        counts.then(|| PassRate::new(self.passed, self.n)).flatten()
    }

    /// What a batch class is judged by. In a stretch: right answers that came within it, over its length; what was in flight
    /// at its end is left out. In a burst of a fixed number: right answers over the span. `None` unless the burst counts
    /// (see [`Self::pass_rate`]) and its span is known.
    pub fn throughput(&self) -> Option<Throughput> {
        let rate = self.pass_rate()?;
        match self.header.stretch_us {
            Some(stretch_us) => Throughput::new(self.right_in_stretch?, stretch_us),
            None => Throughput::new(rate.passed(), self.span_us?),
        }
    }

    /// Right answers per hour; see [`Self::throughput`].
    pub fn tasks_per_hour(&self) -> Option<f64> {
        self.throughput().map(Throughput::per_hour)
    }

    /// Does the throughput reach the floor of the class? Exact; see [`Throughput::reaches`]. `None` for a class without such
    /// a floor, or where throughput is not known.
    pub fn throughput_holds(&self) -> Option<bool> {
        let floor = self.header.tasks_per_hour_floor?;
        self.throughput().map(|seen| seen.reaches(floor))
    }

    /// 95 % interval of the throughput of a stretch, right answers per hour. `None` for a burst of a fixed number, whose
    /// time is what varies.
    pub fn throughput_interval(&self) -> Option<(f64, f64)> {
        self.header.stretch_us?;
        self.throughput().map(|seen| seen.interval(Confidence::P95).pair())
    }

    /// Retries of the attempts made.
    pub fn retry_tally(&self) -> RetryTally {
        RetryTally { attempts: self.made, retried: self.retried, retries: u64::from(self.retries) }
    }

    /// The flat view with stable keys.
    pub fn json(&self) -> BurstJson {
        BurstJson::from(self)
    }
}

/// Reduces one burst to numbers. The order of `figures` does not matter; warm-up attempts are not among them.
///
/// A complete burst with a configuration finding comes back as [`BurstState::Void`].
pub fn summarise(header: &BurstHeader, state: BurstState, figures: &[AttemptFigures]) -> BurstSummary {
    let mut reduction = Reduction::of(header);
    figures.iter().for_each(|f| reduction.add(f));
    summarise_reduction(header, state, reduction)
}

/// [`summarise`] for attempts that were taken in one by one.
pub fn summarise_reduction(header: &BurstHeader, state: BurstState, reduction: Reduction) -> BurstSummary {
    let reduced = reduction.reduced(header.floor_us.max(header.total_timeout_us));
    let state = match state {
        BurstState::Complete if reduced.findings > 0 => BurstState::Void,
        other => other,
    };
    let mut summary = BurstSummary {
        header: header.clone(),
        state,
        n: header.attempts.max(reduced.made),
        made: reduced.made,
        passed: reduced.passed,
        pass_interval: None,
        p50: reduced.latency.at(Portion::P50),
        p90: reduced.latency.at(Portion::P90),
        p95: reduced.latency.at(Portion::P95),
        ttft_p50: reduced.ttft.as_ref().and_then(|r| r.at(Portion::P50)),
        ttft_p90: reduced.ttft.as_ref().and_then(|r| r.at(Portion::P90)),
        first_answer_p50: reduced.first_answer.as_ref().and_then(|r| r.at(Portion::P50)),
        retried: reduced.retried,
        retries: reduced.retries,
        misses: reduced.misses,
        findings: reduced.findings,
        span_us: reduced.span_us,
        right_in_stretch: reduced.right_in_stretch,
        prompt_tokens: reduced.prompt_tokens,
        cached_tokens: reduced.cached_tokens,
        completion_tokens: reduced.completion_tokens,
    };
    summary.pass_interval = summary.pass_rate().map(|rate| wilson(rate, Confidence::P95).pair());
    summary
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use self::tests::header as sample_header;
