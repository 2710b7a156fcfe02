//! A burst: N attempts of one prompt at one lane. What was planned and what was delivered; the summary is in
//! [`crate::summary`].

use serde::{Deserialize, Serialize};

use crate::lane::{Api, Kind};

/// Whether the attempts of a burst share one prompt to the byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptMode {
    /// Every attempt starts with its own nonce, so that a prefix cache cannot answer for the prompt (default).
    #[default]
    Nonce,
    /// All attempts send the same bytes: from the second on this measures the prefix cache too.
    Identical,
}

impl PromptMode {
    /// The stable spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nonce => "nonce",
            Self::Identical => "identical",
        }
    }
}

/// When the connections of a burst are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// Opened before the burst; the handshake is a figure of its own (default).
    #[default]
    Before,
    /// Opened inside the attempt: the handshake is part of the latency.
    Inside,
}

impl Connections {
    /// The stable spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::Inside => "inside",
        }
    }
}

/// How a burst stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BurstState {
    /// Begun; not all attempts are on disk (yet, or ever: an interrupted burst stays so).
    Running,
    /// All attempts are on disk.
    Complete,
    /// A configuration finding: the burst counts neither way.
    Void,
    /// Stopped before all attempts were made.
    Interrupted,
}

impl BurstState {
    /// The stable spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Void => "void",
            Self::Interrupted => "interrupted",
        }
    }
}

/// What a burst was: everything about it that is not an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BurstHeader {
    /// Unique id, sortable by begin: `20261130T160000.123456Z-lane-a-3f9c`.
    pub id: String,
    /// Bursts fired by one command share this id.
    pub run: String,
    /// Name of the lane.
    pub lane: String,
    /// Its rung.
    pub kind: Kind,
    /// Its API.
    pub api: Api,
    /// Model asked for.
    pub model: String,
    /// Base URL without credentials or query.
    pub base_url: String,
    /// Name of the task class.
    pub task: String,
    /// Latency floor, microseconds; 0: none, the class is judged by tasks per hour alone.
    pub floor_us: u64,
    /// Throughput floor of a batch class, right answers per hour.
    pub tasks_per_hour_floor: Option<u32>,
    /// Planned attempts, warm-up apart.
    pub attempts: u32,
    /// Attempts in flight at once; `None`: all released together.
    pub concurrency: Option<u32>,
    /// Time between intended starts, microseconds; 0: together.
    pub spacing_us: u64,
    /// Nonce or identical prompts.
    pub prompt_mode: PromptMode,
    /// Connections before or inside.
    pub connections: Connections,
    /// Streaming was asked for.
    pub stream: bool,
    /// Retries allowed per attempt.
    pub max_retries: u32,
    /// Total limit of one try, microseconds: what an unfinished latency exceeds at least.
    pub total_timeout_us: u64,
    /// Seed of the nonces and the lane order.
    pub seed: u64,
    /// Hash of prompt, parameters and check: bursts with other hashes do not mix.
    pub prompt_hash: String,
    /// Local date of the burst in its zone, `YYYY-MM-DD`.
    pub date: Option<String>,
    /// Local begin of the window that it belongs to, `16:00`; `None` for a burst by hand.
    pub window: Option<String>,
    /// IANA zone of date and window.
    pub zone: Option<String>,
    /// Begin, microseconds since the Unix epoch (UTC).
    pub started_unix_us: i64,
    /// Version of peaklane that measured.
    pub tool_version: String,
    /// The lane is simulated (demo, sim): never to be taken for a measurement of a real one.
    pub simulated: bool,
    /// How long attempts kept being started, microseconds, for a sustained stretch; `attempts` is 0 then. `None` for a
    /// burst of a fixed number.
    pub stretch_us: Option<u64>,
    /// Id of the campaign that it belongs to ([`crate::campaign`]); `None` for a burst by hand.
    pub campaign: Option<String>,
    /// Name of the site of the campaign, where the configuration has several.
    pub site: Option<String>,
}

impl BurstHeader {
    /// Where only attempts are on record, without an end (CSV): were all of them made? A fixed number tells by its count. In
    /// a stretch each of the slots makes attempts until it is free at the end of the stretch or later, so that as many such
    /// attempts as there are slots are the last ones. Where starts or slots are not known, nothing is said to be whole.
    pub fn all_made(&self, figures: &[AttemptFigures]) -> bool {
        let Some(stretch_us) = self.stretch_us else { return figures.len() as u64 >= u64::from(self.attempts) };
        let free_at = |f: &AttemptFigures| {
            let rest = if f.verdict == crate::attempt::Verdict::Failed { FAILED_REST_US } else { 0 };
            f.intended_unix_us.map(|start| (start, start.saturating_add_unsigned(f.latency_us.max(rest))))
        };
        let free: Option<Vec<(i64, i64)>> = figures.iter().map(free_at).collect();
        let (Some(slots), Some(free)) = (self.concurrency, free) else { return false };
        let Some(first) = free.iter().map(|(start, _)| *start).min() else { return false };
        let over = first.saturating_add_unsigned(stretch_us.saturating_sub(STRETCH_SLACK_US));
        free.iter().filter(|(_, at)| *at >= over).count() as u64 >= u64::from(slots)
    }
}

/// From the start of an attempt that failed to the next start of its slot in a stretch at least, microseconds: a lane that
/// refuses at once would otherwise be asked thousands of times a second for as long as the stretch runs.
pub const FAILED_REST_US: u64 = 1_000_000;

/// A slot rests a moment between two attempts; one whose attempt ends so shortly before the end of a stretch may begin none
/// any more, microseconds.
const STRETCH_SLACK_US: u64 = 100_000;

/// How a burst ended, known at its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BurstEnd {
    /// State at the end.
    pub state: BurstState,
    /// Wall time of the burst, microseconds, by clock.
    pub duration_us: u64,
    /// Most attempts that were in flight at once.
    pub peak_in_flight: u32,
    /// Largest skew of a release, microseconds.
    pub max_skew_us: u64,
    /// Client's own lag during the burst: p50, p99 and largest late wake-up, microseconds.
    pub own_lag_us: [u64; 3],
    /// Bytes received (bodies).
    pub body_bytes: u64,
    /// Cause and next step where the state is `void`.
    pub finding: Option<String>,
    /// What the control endpoint took beside the burst; `None` where none is configured.
    pub control: Option<ControlFigures>,
}

impl BurstEnd {
    /// Takes out what a finding quotes of the server's words; that there was one stays.
    pub fn forget_texts(&mut self) {
        if let Some(finding) = &mut self.finding {
            crate::attempt::TEXT_NOT_KEPT.clone_into(finding);
        }
    }
}

/// One request to an endpoint of no lane, timed beside a burst, so that one's own network is not taken for the lane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlFigures {
    /// DNS, connect and TLS together, microseconds.
    pub connect_us: Option<u64>,
    /// From the last byte of the request sent to the first byte of the answer, microseconds.
    pub first_byte_us: Option<u64>,
    /// HTTP status.
    pub status: Option<u16>,
    /// Why there is no answer.
    pub error: Option<String>,
}

/// What a summary needs of one attempt: small enough to keep a hundred thousand of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptFigures {
    /// Intended start, microseconds since the Unix epoch; `None` where a file does not tell.
    pub intended_unix_us: Option<i64>,
    /// From intended start to the end, microseconds.
    pub latency_us: u64,
    /// Verdict against floor and check.
    pub verdict: crate::attempt::Verdict,
    /// Class of the last try.
    pub outcome: crate::outcome::Outcome,
    /// Retries made.
    pub retries: u32,
    /// TTFT from the intended start, microseconds.
    pub ttft_us: Option<u64>,
    /// First answer from the intended start, microseconds.
    pub first_answer_us: Option<u64>,
    /// Prompt tokens of the last try, as reported.
    pub prompt_tokens: Option<u64>,
    /// Cached prompt tokens of the last try, as reported.
    pub cached_tokens: Option<u64>,
    /// Completion tokens of the last try, as reported.
    pub completion_tokens: Option<u64>,
}

impl From<&crate::attempt::AttemptRecord> for AttemptFigures {
    fn from(a: &crate::attempt::AttemptRecord) -> Self {
        let usage = a.usage();
        Self {
            intended_unix_us: Some(a.intended_unix_us),
            latency_us: a.latency_us,
            verdict: a.verdict,
            outcome: a.outcome,
            retries: a.retries,
            ttft_us: a.ttft_us,
            first_answer_us: a.first_answer_us,
            prompt_tokens: usage.prompt,
            cached_tokens: usage.cached,
            completion_tokens: usage.completion,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::Verdict;
    use crate::outcome::Outcome;

    fn ended(start_s: i64, latency_s: u64) -> AttemptFigures {
        AttemptFigures {
            intended_unix_us: Some(start_s * 1_000_000),
            latency_us: latency_s * 1_000_000,
            verdict: Verdict::Pass,
            outcome: Outcome::Ok,
            retries: 0,
            ttft_us: None,
            first_answer_us: None,
            prompt_tokens: None,
            cached_tokens: None,
            completion_tokens: None,
        }
    }

    #[test]
    fn a_stretch_on_record_is_whole_when_each_slot_has_an_attempt_that_outlasts_it() {
        let mut header = crate::summary::sample_header(0);
        (header.stretch_us, header.concurrency) = (Some(10_000_000), Some(2));
        let (one, other) = ([ended(0, 6), ended(6, 4)], [ended(0, 9), ended(9, 5)]);
        let whole = [one, other].concat();
        assert!(header.all_made(&whole));
        for cut in 0..whole.len() {
            let mut rest = whole.clone();
            let gone = rest.remove(cut);
            let last = gone.latency_us / 1_000_000 + gone.intended_unix_us.unwrap() as u64 / 1_000_000 >= 10;
            assert_eq!(header.all_made(&rest), !last, "without the attempt {cut}");
        }
        assert!(!header.all_made(&[]));
        let unknown = AttemptFigures { intended_unix_us: None, ..ended(0, 10) };
        assert!(!header.all_made(&[unknown, unknown]));
    }
}
