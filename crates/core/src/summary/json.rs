//! The flat JSON view of a burst: a stable contract. Missing is null, never 0; times are milliseconds.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::{BurstSummary, MissCount, Quantile};
use crate::burst::{BurstState, Connections, PromptMode};
use crate::lane::{Api, Kind};

/// Microseconds that are written as milliseconds: `12345` as `12.345`, `60000000` as `60000`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ms(
    /// Microseconds.
    pub u64,
);

impl Serialize for Ms {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_multiple_of(1000) {
            serializer.serialize_u64(self.0 / 1000)
        } else {
            // Division rounds to the nearest float, which prints with the three decimals again (below 2^53 us, 285 years).
            serializer.serialize_f64(self.0 as f64 / 1000.0)
        }
    }
}

/// `{"value_ms": 12.345, "exceeds_ms": null}` or `{"value_ms": null, "exceeds_ms": 60000}`.
impl Serialize for Quantile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (value, exceeds) = match *self {
            Self::Value(us) => (Some(Ms(us)), None),
            Self::Exceeds(us) => (None, Some(Ms(us))),
        };
        let mut object = serializer.serialize_struct("Quantile", 2)?;
        object.serialize_field("value_ms", &value)?;
        object.serialize_field("exceeds_ms", &exceeds)?;
        object.end()
    }
}

/// Token counts of a burst as the lane reported them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TokensJson {
    /// Prompt tokens, cached part included.
    pub prompt: Option<u64>,
    /// Prompt tokens read from the prefix cache.
    pub cached: Option<u64>,
    /// Generated tokens.
    pub completion: Option<u64>,
}

/// One burst, flat, as `--format json` prints it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BurstJson {
    /// Name of the lane.
    pub lane: String,
    /// Its rung.
    pub kind: Kind,
    /// Its API.
    pub api: Api,
    /// Model asked for.
    pub model: String,
    /// Name of the task class.
    pub task: String,
    /// Local begin of the window, `16:00`; null for a burst by hand.
    pub window: Option<String>,
    /// Local date, `YYYY-MM-DD`.
    pub date: Option<String>,
    /// IANA zone of window and date.
    pub zone: Option<String>,
    /// Id of the burst.
    pub burst: String,
    /// Id of the command that fired it.
    pub run: String,
    /// How the burst stands.
    pub state: BurstState,
    /// Begin, microseconds since the Unix epoch (UTC).
    pub started_unix_us: i64,
    /// The lane is simulated.
    pub simulated: bool,
    /// Version of peaklane that measured.
    pub tool_version: String,
    /// Nonce or identical prompts.
    pub prompt_mode: PromptMode,
    /// Connections opened before the burst or inside of it.
    pub connections: Connections,
    /// Latency floor, milliseconds; null for a class that is judged by tasks per hour.
    pub floor_ms: Option<Ms>,
    /// Throughput floor of a batch class, right answers per hour; null for the others.
    pub tasks_per_hour_floor: Option<u32>,
    /// How long attempts kept being started, milliseconds; null for a burst of a fixed number.
    pub stretch_ms: Option<Ms>,
    /// Right answers that were whole when the stretch ended; null without a stretch.
    pub right_in_stretch: Option<u32>,
    /// Right answers per hour; null unless the burst is complete.
    pub tasks_per_hour: Option<f64>,
    /// Lower end of the 95 % interval of `tasks_per_hour`; null without a stretch.
    pub tasks_per_hour_low: Option<f64>,
    /// Upper end of it.
    pub tasks_per_hour_high: Option<f64>,
    /// The throughput reaches its floor; null without such a floor.
    pub throughput_holds: Option<bool>,
    /// Attempts that passed.
    pub passed: u32,
    /// Attempts planned.
    pub n: u32,
    /// Attempts made.
    pub made: u32,
    /// Passed / n, 0 to 1; null unless the burst is complete.
    pub pass_rate: Option<f64>,
    /// Lower end of the 95 % Wilson interval.
    pub pass_low: Option<f64>,
    /// Upper end of the 95 % Wilson interval.
    pub pass_high: Option<f64>,
    /// Median latency.
    pub p50: Option<Quantile>,
    /// p90 of latency.
    pub p90: Option<Quantile>,
    /// p95 of latency.
    pub p95: Option<Quantile>,
    /// Median TTFT.
    pub ttft_p50: Option<Quantile>,
    /// p90 of TTFT.
    pub ttft_p90: Option<Quantile>,
    /// Median time to first answer.
    pub first_answer_p50: Option<Quantile>,
    /// Attempts with at least one retry.
    pub attempts_with_retry: u32,
    /// Attempts with at least one retry / attempts made.
    pub retry_rate: Option<f64>,
    /// All retries / attempts made.
    pub mean_retries: Option<f64>,
    /// Misses by class.
    pub misses: Vec<MissCount>,
    /// Attempts whose request itself was at fault.
    pub findings: u32,
    /// Token counts as reported.
    pub tokens: TokensJson,
}

impl From<&BurstSummary> for BurstJson {
    fn from(s: &BurstSummary) -> Self {
        let h = &s.header;
        let retries = s.retry_tally();
        Self {
            lane: h.lane.clone(),
            kind: h.kind,
            api: h.api,
            model: h.model.clone(),
            task: h.task.clone(),
            window: h.window.clone(),
            date: h.date.clone(),
            zone: h.zone.clone(),
            burst: h.id.clone(),
            run: h.run.clone(),
            state: s.state,
            started_unix_us: h.started_unix_us,
            simulated: h.simulated,
            tool_version: h.tool_version.clone(),
            prompt_mode: h.prompt_mode,
            connections: h.connections,
            floor_ms: (h.floor_us > 0).then_some(Ms(h.floor_us)),
            tasks_per_hour_floor: h.tasks_per_hour_floor,
            stretch_ms: h.stretch_us.map(Ms),
            right_in_stretch: s.right_in_stretch,
            tasks_per_hour: s.tasks_per_hour(),
            tasks_per_hour_low: s.throughput_interval().map(|i| i.0),
            tasks_per_hour_high: s.throughput_interval().map(|i| i.1),
            throughput_holds: s.throughput_holds(),
            passed: s.passed,
            n: s.n,
            made: s.made,
            pass_rate: s.pass_rate().map(crate::stats::PassRate::share),
            pass_low: s.pass_interval.map(|i| i.0),
            pass_high: s.pass_interval.map(|i| i.1),
            p50: s.p50,
            p90: s.p90,
            p95: s.p95,
            ttft_p50: s.ttft_p50,
            ttft_p90: s.ttft_p90,
            first_answer_p50: s.first_answer_p50,
            attempts_with_retry: s.retried,
            retry_rate: retries.rate().map(crate::stats::RetryRate::share),
            mean_retries: retries.mean_per_attempt(),
            misses: s.misses.clone(),
            findings: s.findings,
            tokens: TokensJson { prompt: s.prompt_tokens, cached: s.cached_tokens, completion: s.completion_tokens },
        }
    }
}
