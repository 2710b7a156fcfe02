//! What `peaklane try` shows: one request with all its tries, ready to be rendered.

use peaklane_core::lane::Api;
use peaklane_core::record::TryRecord;

/// One request at one lane, with its retries.
#[derive(Clone, Debug)]
pub struct TryView<'a> {
    /// Name of the lane.
    pub lane: &'a str,
    /// Its API.
    pub api: Api,
    /// The address that the request went to, without credentials.
    pub url: &'a str,
    /// The model that was asked for.
    pub model: &'a str,
    /// A stream was asked for.
    pub stream: bool,
    /// Version of peaklane that measured.
    pub tool_version: &'a str,
    /// All tries in order; the last one is the one whose answer counts. Empty when nothing was ever begun.
    pub tries: Vec<TrySeen<'a>>,
}

/// One try and where it stands on the time line of the request.
#[derive(Clone, Copy, Debug)]
pub struct TrySeen<'a> {
    /// What was measured, from the last byte of this try's own request.
    pub record: &'a TryRecord,
    /// From the last byte of the first request sent to the last byte of this one, microseconds; 0 for the first.
    pub offset_us: u64,
    /// Pause before this try, microseconds; 0 for the first.
    pub waited_us: u64,
}

impl TrySeen<'_> {
    /// A moment of this try on the time line of the whole request, microseconds.
    pub fn shifted(&self, moment_us: Option<u64>) -> Option<u64> {
        moment_us.map(|us| us.saturating_add(self.offset_us))
    }
}

impl<'a> TryView<'a> {
    /// The try whose answer counts.
    pub fn last(&self) -> Option<&TrySeen<'a>> {
        self.tries.last()
    }

    /// The try that made the connection, and with which time 0 began.
    pub fn first(&self) -> Option<&TrySeen<'a>> {
        self.tries.first()
    }

    /// Tries after the first.
    pub fn retries(&self) -> u32 {
        u32::try_from(self.tries.len().saturating_sub(1)).unwrap_or(u32::MAX)
    }
}

/// What a lane was seen to speak. `None`: the answer gave no chance to see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speaks {
    /// The answer came as a stream of events.
    pub streaming: Option<bool>,
    /// The content of the stream came piece by piece, not at one moment.
    pub flowing: Option<bool>,
    /// Token counts were reported.
    pub usage: Option<bool>,
    /// Cached prompt tokens were reported (0 counts).
    pub cached: Option<bool>,
    /// The answer names its model.
    pub model_echo: Option<bool>,
    /// Headers about rate limits.
    pub rate_limit_headers: usize,
    /// The lane's clock minus ours, milliseconds, from a header with whole seconds.
    pub clock_skew_ms: Option<i64>,
}

impl Speaks {
    /// Reads it off one record. Only a whole answer says what its body carries; a model that used its short budget for
    /// reasoning answered as well.
    pub fn of(record: &TryRecord) -> Self {
        let answered = record.outcome.is_ok() || record.reasoning_chunks > 0 || !record.reasoning.is_empty();
        let seen = |what: bool| answered.then_some(what);
        let streaming = record.streamed.filter(|_| answered);
        Self {
            streaming,
            // One chunk is no flow and no lack of one.
            flowing: streaming
                .filter(|s| *s && record.output_chunks.saturating_add(record.reasoning_chunks) > 1)
                .map(|_| !record.bursty),
            usage: seen(record.usage.prompt.is_some() || record.usage.completion.is_some()),
            cached: seen(record.usage.cached.is_some()),
            model_echo: seen(record.model.is_some()),
            rate_limit_headers: record.rate_limits.len(),
            clock_skew_ms: record.clock_skew_ms,
        }
    }
}

#[cfg(test)]
pub(crate) mod sample {
    //! A whole answer and a refused try, as records. The figures are made up to be easy to add.

    use peaklane_core::outcome::Outcome;
    use peaklane_core::record::{Handshake, TryRecord, Usage};

    /// DNS 2 ms, connect 10, TLS 20, written after 33; first byte at 400, reasoning at 500, answer at 900, end at 1,700.
    pub(crate) fn answered() -> TryRecord {
        TryRecord {
            http_status: Some(200),
            http_version: Some("2".into()),
            handshake: Handshake { reused: false, dns_us: Some(2_000), connect_us: Some(10_000), tls_us: Some(20_000) },
            sent_us: 33_000,
            first_byte_us: Some(400_000),
            ttft_us: Some(500_000),
            first_answer_us: Some(900_000),
            last_token_us: Some(1_600_000),
            end_us: Some(1_690_000),
            last_byte_us: Some(1_700_000),
            body_bytes: 5_120,
            output_chunks: 8,
            reasoning_chunks: 3,
            max_gap_us: Some(210_000),
            content: "Done, and\nwell.".into(),
            reasoning: "consider".into(),
            finish_reason: Some("stop".into()),
            usage: Usage {
                prompt: Some(9_507),
                completion: Some(23),
                cached: Some(9_000),
                cache_write: None,
                reasoning: Some(12),
            },
            model: Some("qwen3-coder-2507".into()),
            system_fingerprint: Some("fp_1".into()),
            request_id: Some("req-7".into()),
            streamed: Some(true),
            rate_limits: vec![("x-ratelimit-remaining-requests".into(), "9".into())],
            clock_skew_ms: Some(-1_200),
            own_lag_us: 240,
            ..TryRecord::new(Outcome::Ok)
        }
    }

    /// A 429 at 120 ms that asks to wait 2 s.
    pub(crate) fn refused() -> TryRecord {
        TryRecord {
            http_status: Some(429),
            http_version: Some("1.1".into()),
            handshake: Handshake { reused: false, dns_us: None, connect_us: Some(1_000), tls_us: None },
            sent_us: 1_500,
            first_byte_us: Some(120_000),
            end_us: Some(121_000),
            last_byte_us: Some(121_000),
            body_bytes: 60,
            retry_after_ms: Some(2_000),
            message: Some("Rate limit reached\nfor \u{1b}[1mfree tier".into()),
            ..TryRecord::new(Outcome::RateLimited)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reasoning_model_is_not_marked_down_for_an_empty_one_token_answer() {
        let mut record = sample::answered();
        record.outcome = peaklane_core::outcome::Outcome::NoAnswer;
        record.content.clear();
        record.output_chunks = 0;
        let speaks = Speaks::of(&record);
        assert_eq!((speaks.streaming, speaks.usage, speaks.model_echo), (Some(true), Some(true), Some(true)));
    }

    #[test]
    fn a_refused_request_says_nothing_of_what_the_lane_speaks() {
        let speaks = Speaks::of(&sample::refused());
        assert_eq!((speaks.streaming, speaks.usage, speaks.cached, speaks.model_echo), (None, None, None, None));
    }
}
