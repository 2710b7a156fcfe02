//! The one JSON object of `try --format json`: a stable contract.
//!
//! Times are milliseconds from the last byte of the first request sent; those of later tries lie behind it by the time in
//! between. What was not seen is null, never 0; texts are "" instead. `dns_ms`, `connect_ms`, `tls_ms`, `sent_ms` and
//! `reused` are of the first try, since they lie before that moment; everything else is of the last one, whose answer
//! counts; `tries` has them all.

use peaklane_core::lane::Api;
use peaklane_core::outcome::Outcome;
use peaklane_core::record::{ToolCall, TryRecord};
use peaklane_core::summary::Ms;
use serde::Serialize;

use crate::try_view::{TrySeen, TryView};
use crate::words::hint;

/// Whole prompt, generated and cached tokens as reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UsageJson {
    /// The whole prompt, cached part included.
    pub prompt: Option<u64>,
    /// All generated tokens, reasoning included.
    pub completion: Option<u64>,
    /// Prompt tokens read from the prefix cache.
    pub cached: Option<u64>,
}

/// A header about rate limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeaderJson {
    /// Its name.
    pub name: String,
    /// Its value, as sent.
    pub value: String,
}

/// What was seen of one try.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeenJson {
    /// Class of the end: `ok`, `rate_limited`, ...; null when nothing was begun.
    pub outcome: Option<Outcome>,
    /// HTTP status of the last response.
    pub http_status: Option<u16>,
    /// HTTP version: `1.1`, `2`.
    pub http_version: Option<String>,
    /// First byte of the response head.
    pub first_byte_at_ms: Option<Ms>,
    /// First token of any kind (TTFT).
    pub ttft_at_ms: Option<Ms>,
    /// First token that is no reasoning.
    pub first_answer_at_ms: Option<Ms>,
    /// Last chunk with content.
    pub last_token_at_ms: Option<Ms>,
    /// Terminal signal, or the moment at which the failure was known.
    pub end_at_ms: Option<Ms>,
    /// Last byte that was read.
    pub last_byte_at_ms: Option<Ms>,
    /// Body bytes received, as sent.
    pub body_bytes: u64,
    /// Events with answer content.
    pub output_chunks: u32,
    /// Events with reasoning content.
    pub reasoning_chunks: u32,
    /// Longest gap between two content chunks.
    pub max_gap_ms: Option<Ms>,
    /// Time per output token after the first, where the tokens were reported and flowed.
    pub tpot_ms: Option<Ms>,
    /// As sent by the server.
    pub finish_reason: Option<String>,
    /// Token counts.
    pub usage: UsageJson,
    /// Generated tokens that were reasoning.
    pub usage_reasoning: Option<u64>,
    /// Prompt tokens written to the prefix cache.
    pub usage_cache_write: Option<u64>,
    /// The error arrived inside a 200.
    pub in_band: bool,
    /// The answer came as an event stream.
    pub streamed: Option<bool>,
    /// All content came at one moment, although a stream was asked for.
    pub bursty: bool,
    /// The same request would have a chance later.
    pub retryable: Option<bool>,
    /// What the server asked to wait.
    pub retry_after_ms: Option<u64>,
    /// The `model` named in the answer.
    pub model: Option<String>,
    /// `system_fingerprint` of the answer.
    pub system_fingerprint: Option<String>,
    /// The server's request id.
    pub request_id: Option<String>,
    /// Redirects followed.
    pub redirects: u32,
    /// Words of the server or the system about a failure.
    pub message: Option<String>,
    /// The next thing to try.
    pub hint: Option<String>,
    /// Headers about rate limits.
    pub rate_limits: Vec<HeaderJson>,
    /// The server's clock minus ours (+-1 s).
    pub clock_skew_ms: Option<i64>,
    /// Longest late wake-up of this client.
    pub own_lag_ms: Option<Ms>,
}

/// The connection of one try.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConnectionJson {
    /// The connection had carried an earlier request; null when nothing was begun.
    pub reused: Option<bool>,
    /// Name resolution.
    pub dns_ms: Option<Ms>,
    /// TCP connect.
    pub connect_ms: Option<Ms>,
    /// TLS handshake.
    pub tls_ms: Option<Ms>,
    /// From the begin of the try to the last byte of its request written.
    pub sent_ms: Option<Ms>,
}

/// One try in the list of all.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TryStepJson {
    /// From 1.
    pub number: u32,
    /// Pause before it.
    pub waited_ms: Ms,
    /// Last byte of its request.
    pub sent_at_ms: Ms,
    /// Its connection.
    #[serde(flatten)]
    pub connection: ConnectionJson,
    /// What was seen of it.
    #[serde(flatten)]
    pub seen: SeenJson,
}

/// The object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TryJson {
    /// Name of the lane.
    pub lane: String,
    /// Its API.
    pub api: Api,
    /// The address that the request went to.
    pub url: String,
    /// The model that was asked for.
    pub model_asked: String,
    /// The last try.
    #[serde(flatten)]
    pub seen: SeenJson,
    /// The first try's connection.
    #[serde(flatten)]
    pub connection: ConnectionJson,
    /// The answer's text.
    pub content: String,
    /// The reasoning text.
    pub reasoning: String,
    /// Tool calls of the answer.
    pub tool_calls: Vec<ToolCall>,
    /// Tries after the first.
    pub retries: u32,
    /// All tries.
    pub tries: Vec<TryStepJson>,
    /// Version of peaklane that measured.
    pub tool_version: String,
}

impl ConnectionJson {
    fn of(record: &TryRecord) -> Self {
        let h = record.handshake;
        Self {
            reused: Some(h.reused),
            dns_ms: h.dns_us.map(Ms),
            connect_ms: h.connect_us.map(Ms),
            tls_ms: h.tls_us.map(Ms),
            sent_ms: Some(Ms(record.sent_us)),
        }
    }
}

impl SeenJson {
    fn of(seen: &TrySeen<'_>) -> Self {
        let r = seen.record;
        let at = |moment| seen.shifted(moment).map(Ms);
        Self {
            outcome: Some(r.outcome),
            http_status: r.http_status,
            http_version: r.http_version.clone(),
            first_byte_at_ms: at(r.first_byte_us),
            ttft_at_ms: at(r.ttft_us),
            first_answer_at_ms: at(r.first_answer_us),
            last_token_at_ms: at(r.last_token_us),
            end_at_ms: at(r.end_us),
            last_byte_at_ms: at(r.last_byte_us),
            body_bytes: r.body_bytes,
            output_chunks: r.output_chunks,
            reasoning_chunks: r.reasoning_chunks,
            max_gap_ms: r.max_gap_us.map(Ms),
            tpot_ms: r.tpot_us().map(Ms),
            finish_reason: r.finish_reason.clone(),
            usage: UsageJson { prompt: r.usage.prompt, completion: r.usage.completion, cached: r.usage.cached },
            usage_reasoning: r.usage.reasoning,
            usage_cache_write: r.usage.cache_write,
            in_band: r.in_band,
            streamed: r.streamed,
            bursty: r.bursty,
            retryable: Some(r.outcome.retryable()),
            retry_after_ms: r.retry_after_ms,
            model: r.model.clone(),
            system_fingerprint: r.system_fingerprint.clone(),
            request_id: r.request_id.clone(),
            redirects: r.redirects,
            message: r.message.clone(),
            hint: hint(r),
            rate_limits: r
                .rate_limits
                .iter()
                .map(|(name, value)| HeaderJson { name: name.clone(), value: value.clone() })
                .collect(),
            clock_skew_ms: r.clock_skew_ms,
            own_lag_ms: Some(Ms(r.own_lag_us)),
        }
    }

    /// Nothing was begun: there is nothing to tell.
    fn nothing() -> Self {
        let mut empty =
            Self::of(&TrySeen { record: &TryRecord::new(Outcome::Unreachable), offset_us: 0, waited_us: 0 });
        (empty.outcome, empty.retryable, empty.hint, empty.own_lag_ms) = (None, None, None, None);
        empty
    }
}

impl From<&TryView<'_>> for TryJson {
    fn from(view: &TryView<'_>) -> Self {
        let last = view.last().map(|t| t.record);
        Self {
            lane: view.lane.to_owned(),
            api: view.api,
            url: view.url.to_owned(),
            model_asked: view.model.to_owned(),
            seen: view.last().map_or_else(SeenJson::nothing, SeenJson::of),
            connection: view.first().map(|t| ConnectionJson::of(t.record)).unwrap_or_default(),
            content: last.map(|r| r.content.clone()).unwrap_or_default(),
            reasoning: last.map(|r| r.reasoning.clone()).unwrap_or_default(),
            tool_calls: last.map(|r| r.tool_calls.clone()).unwrap_or_default(),
            retries: view.retries(),
            tries: (1..)
                .zip(&view.tries)
                .map(|(number, seen)| TryStepJson {
                    number,
                    waited_ms: Ms(seen.waited_us),
                    sent_at_ms: Ms(seen.offset_us),
                    connection: ConnectionJson::of(seen.record),
                    seen: SeenJson::of(seen),
                })
                .collect(),
            tool_version: view.tool_version.to_owned(),
        }
    }
}

/// The object on one line, without a line break at its end.
///
/// # Errors
/// None in practice: every value has a JSON form.
pub fn render(view: &TryView<'_>) -> Result<String, serde_json::Error> {
    serde_json::to_string(&TryJson::from(view))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::try_view::sample::{answered, refused};
    use serde_json::{Value, json};

    fn view<'a>(tries: Vec<TrySeen<'a>>) -> TryView<'a> {
        TryView {
            lane: "lane-a",
            api: Api::Chat,
            url: "https://a.example/v1/chat/completions",
            model: "qwen3-coder",
            stream: true,
            tool_version: "0.1.0",
            tries,
        }
    }

    fn object(view: &TryView<'_>) -> Value {
        serde_json::from_str(&render(view).unwrap()).unwrap()
    }

    #[test]
    fn every_name_that_a_stream_case_expects_is_a_top_level_name() {
        let record = answered();
        let got = object(&view(vec![TrySeen { record: &record, offset_us: 0, waited_us: 0 }]));
        // Words of the cases about themselves, not about the answer.
        let about = [
            "accept_also",
            "accept_after",
            "after_tolerance_ms",
            "late_ok_ms",
            "end_late_ok_ms",
            "then",
            "note",
            "usage_partial",
            "first_visible_at_ms",
        ];
        for (name, case) in peaklane_testkit::data::cases("cases/stream") {
            for key in case["expected"].as_object().expect("a case has expectations").keys() {
                let known = about.contains(&key.as_str()) || got.get(key).is_some();
                assert!(
                    known || peaklane_testkit::data::unread(&format!("{name}: no `{key}`")).is_ok(),
                    "{name}: no `{key}`"
                );
            }
            for key in case["expected"]["usage"].as_object().into_iter().flat_map(|u| u.keys()) {
                assert!(got["usage"].get(key).is_some(), "{name}: no usage `{key}`");
            }
        }
    }

    #[test]
    fn times_count_from_the_first_request_and_later_tries_lie_behind_it() {
        let (first, second) = (refused(), answered());
        let got = object(&view(vec![
            TrySeen { record: &first, offset_us: 0, waited_us: 0 },
            TrySeen { record: &second, offset_us: 2_121_750, waited_us: 2_000_000 },
        ]));
        assert_eq!(got["outcome"], "ok");
        assert_eq!(got["retries"], 1);
        assert_eq!(got["ttft_at_ms"], json!(2_621.75)); // 500 + 2,121.75
        assert_eq!(got["first_answer_at_ms"], json!(3_021.75));
        assert_eq!(got["end_at_ms"], json!(3_811.75));
        // The first connection lies before time 0.
        assert_eq!((&got["connect_ms"], &got["dns_ms"], &got["sent_ms"]), (&json!(1), &Value::Null, &json!(1.5)));
        assert_eq!(got["tries"][0]["outcome"], "rate_limited");
        assert_eq!(got["tries"][0]["end_at_ms"], json!(121));
        assert_eq!(got["tries"][0]["retry_after_ms"], 2_000);
        assert_eq!(got["tries"][1]["waited_ms"], json!(2_000));
        assert_eq!(got["tries"][1]["sent_at_ms"], json!(2_121.75));
        // 22 gaps in 1.1 s.
        assert_eq!(got["tpot_ms"], json!(50));
    }

    #[test]
    fn what_was_not_seen_is_null_and_texts_are_empty() {
        let record = refused();
        let got = object(&view(vec![TrySeen { record: &record, offset_us: 0, waited_us: 0 }]));
        for key in [
            "ttft_at_ms",
            "first_answer_at_ms",
            "finish_reason",
            "usage_reasoning",
            "usage_cache_write",
            "streamed",
            "model",
        ] {
            assert_eq!(got[key], Value::Null, "{key}");
        }
        assert_eq!(got["usage"], json!({"prompt": null, "completion": null, "cached": null}));
        assert_eq!((&got["content"], &got["reasoning"], &got["tool_calls"]), (&json!(""), &json!(""), &json!([])));
        assert_eq!((&got["retryable"], &got["retry_after_ms"]), (&json!(true), &json!(2_000)));
    }

    #[test]
    fn a_request_that_was_never_begun_is_still_one_object() {
        let got = object(&view(Vec::new()));
        assert_eq!(
            (&got["outcome"], &got["reused"], &got["own_lag_ms"], &got["tries"]),
            (&Value::Null, &Value::Null, &Value::Null, &json!([]))
        );
    }

    #[test]
    fn the_object_is_one_line() {
        let record = answered();
        let text = render(&view(vec![TrySeen { record: &record, offset_us: 0, waited_us: 0 }])).unwrap();
        assert_eq!(text.lines().count(), 1);
        assert!(text.starts_with(r#"{"lane":"lane-a","api":"chat""#), "{text}");
    }
}
