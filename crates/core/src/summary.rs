//! A burst reduced to numbers that can be believed: counts first, rates and quantiles derived from them.

use serde::Serialize;

use crate::burst::{BurstHeader, BurstState};

/// A quantile of latencies in which failures rank behind every finished attempt.
///
/// Either the value is known, or all that is known is that it exceeds something (the largest finished latency, the
/// floor, the total limit: whichever is largest).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Planned attempts (the denominator of the pass rate).
    pub n: u32,
    /// Attempts that were made and are on record; fewer than `n` when the burst was interrupted.
    pub made: u32,
    /// Attempts that passed.
    pub passed: u32,
    /// Wilson score interval of the pass rate at 95 %, shares. `None` when nothing was attempted.
    pub pass_interval: Option<(f64, f64)>,
    /// Median latency (nearest rank). `None` without attempts.
    pub p50: Option<Quantile>,
    /// p90 of latency (nearest rank). `None` without attempts.
    pub p90: Option<Quantile>,
    /// p95 of latency (nearest rank). `None` without attempts.
    pub p95: Option<Quantile>,
    /// Median TTFT from the intended start over all attempts (those without any token rank last).
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
    /// Sum of reported prompt tokens; `None` when no attempt reported any.
    pub prompt_tokens: Option<u64>,
    /// Sum of reported cached prompt tokens; `None` when no attempt reported any.
    pub cached_tokens: Option<u64>,
    /// Sum of reported completion tokens; `None` when no attempt reported any.
    pub completion_tokens: Option<u64>,
}
