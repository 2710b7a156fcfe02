//! What a client reported about one case: from a record in process, or from the JSON of `peaklane try`.

use peaklane_core::record::TryRecord;
use serde_json::Value;

use crate::expected::ExpectedCall;

/// What a client reported, under the top-level names of `try --format json`. Times are milliseconds after the last byte
/// of the (first) request sent; `None` is null.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Class of the outcome.
    pub outcome: String,
    /// First byte of the response head. The JSON may lack it.
    pub first_byte_at_ms: Option<f64>,
    /// First token of any kind.
    pub ttft_at_ms: Option<f64>,
    /// First token that is no reasoning.
    pub first_answer_at_ms: Option<f64>,
    /// Terminal signal, or the moment at which the failure was known.
    pub end_at_ms: Option<f64>,
    /// The answer's text, "" for none.
    pub content: String,
    /// The reasoning text, "" for none.
    pub reasoning: String,
    /// As sent.
    pub finish_reason: Option<String>,
    /// Events with answer content.
    pub output_chunks: u64,
    /// Events with reasoning content.
    pub reasoning_chunks: u64,
    /// Whole prompt.
    pub usage_prompt: Option<u64>,
    /// Generated tokens.
    pub usage_completion: Option<u64>,
    /// Read from the cache.
    pub usage_cached: Option<u64>,
    /// Reasoning tokens.
    pub usage_reasoning: Option<u64>,
    /// Written to the cache.
    pub usage_cache_write: Option<u64>,
    /// Tool calls, put together.
    pub tool_calls: Vec<ExpectedCall>,
    /// The error came inside a 200.
    pub in_band: bool,
    /// The answer came as a stream; `None` where there was no answer.
    pub streamed: Option<bool>,
    /// All content came at once.
    pub bursty: bool,
    /// Redirects followed. The JSON may lack it.
    pub redirects: Option<u64>,
    /// Retries made.
    pub retries: u64,
    /// The same request would have a chance later.
    pub retryable: bool,
    /// What the server asked for.
    pub retry_after_ms: Option<f64>,
}

impl From<&TryRecord> for Seen {
    fn from(t: &TryRecord) -> Self {
        let ms = |us: Option<u64>| us.map(|us| us as f64 / 1e3);
        let call =
            |c: &peaklane_core::record::ToolCall| ExpectedCall { name: c.name.clone(), arguments: c.arguments.clone() };
        Self {
            outcome: t.outcome.name().to_owned(),
            first_byte_at_ms: ms(t.first_byte_us),
            ttft_at_ms: ms(t.ttft_us),
            first_answer_at_ms: ms(t.first_answer_us),
            end_at_ms: ms(t.end_us),
            content: t.content.clone(),
            reasoning: t.reasoning.clone(),
            finish_reason: t.finish_reason.clone(),
            output_chunks: t.output_chunks.into(),
            reasoning_chunks: t.reasoning_chunks.into(),
            usage_prompt: t.usage.prompt,
            usage_completion: t.usage.completion,
            usage_cached: t.usage.cached,
            usage_reasoning: t.usage.reasoning,
            usage_cache_write: t.usage.cache_write,
            tool_calls: t.tool_calls.iter().map(call).collect(),
            in_band: t.in_band,
            streamed: t.streamed,
            bursty: t.bursty,
            redirects: Some(t.redirects.into()),
            retries: 0,
            retryable: t.outcome.retryable(),
            retry_after_ms: t.retry_after_ms.map(|ms| ms as f64),
        }
    }
}

impl Seen {
    /// Reads the object that `peaklane try --format json` prints.
    ///
    /// # Errors
    /// A promised name is missing or has the wrong type; all of them are named. Other names are ignored.
    pub fn from_json(value: &Value) -> Result<Self, String> {
        let mut reader = Reader { value, problems: Vec::new() };
        let r = &mut reader;
        let seen = Self {
            outcome: r.get("/outcome", text).unwrap_or_default(),
            first_byte_at_ms: value.get("first_byte_at_ms").and_then(Value::as_f64),
            ttft_at_ms: r.get("/ttft_at_ms", or_null(Value::as_f64)).flatten(),
            first_answer_at_ms: r.get("/first_answer_at_ms", or_null(Value::as_f64)).flatten(),
            end_at_ms: r.get("/end_at_ms", or_null(Value::as_f64)).flatten(),
            content: r.get("/content", text).unwrap_or_default(),
            reasoning: r.get("/reasoning", text).unwrap_or_default(),
            finish_reason: r.get("/finish_reason", or_null(text)).flatten(),
            output_chunks: r.get("/output_chunks", Value::as_u64).unwrap_or_default(),
            reasoning_chunks: r.get("/reasoning_chunks", Value::as_u64).unwrap_or_default(),
            usage_prompt: r.get("/usage/prompt", or_null(Value::as_u64)).flatten(),
            usage_completion: r.get("/usage/completion", or_null(Value::as_u64)).flatten(),
            usage_cached: r.get("/usage/cached", or_null(Value::as_u64)).flatten(),
            usage_reasoning: r.get("/usage_reasoning", or_null(Value::as_u64)).flatten(),
            usage_cache_write: r.get("/usage_cache_write", or_null(Value::as_u64)).flatten(),
            tool_calls: r.get("/tool_calls", calls).unwrap_or_default(),
            in_band: r.get("/in_band", Value::as_bool).unwrap_or_default(),
            streamed: r.get("/streamed", or_null(Value::as_bool)).flatten(),
            bursty: r.get("/bursty", Value::as_bool).unwrap_or_default(),
            redirects: value.get("redirects").and_then(Value::as_u64),
            retries: r.get("/retries", Value::as_u64).unwrap_or_default(),
            retryable: r.get("/retryable", Value::as_bool).unwrap_or_default(),
            retry_after_ms: r.get("/retry_after_ms", or_null(Value::as_f64)).flatten(),
        };
        if reader.problems.is_empty() { Ok(seen) } else { Err(reader.problems.join("; ")) }
    }
}

struct Reader<'a> {
    value: &'a Value,
    problems: Vec<String>,
}

impl Reader<'_> {
    fn get<T>(&mut self, pointer: &str, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
        let name = pointer[1..].replace('/', ".");
        let Some(value) = self.value.pointer(pointer) else {
            self.problems.push(format!("`{name}` is missing"));
            return None;
        };
        let read = read(value);
        if read.is_none() {
            self.problems.push(format!("`{name}` has the wrong type: {}", short(&value.to_string())));
        }
        read
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Null is a value; anything else has to be of the type.
fn or_null<T>(read: impl Fn(&Value) -> Option<T>) -> impl Fn(&Value) -> Option<Option<T>> {
    move |value| if value.is_null() { Some(None) } else { read(value).map(Some) }
}

fn calls(value: &Value) -> Option<Vec<ExpectedCall>> {
    serde_json::from_value(value.clone()).ok()
}

/// Long texts shortened for a message.
pub(crate) fn short(text: &str) -> String {
    const LONGEST: usize = 160;
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}... ({} bytes)", &text[..at], text.len()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use peaklane_core::outcome::Outcome;

    #[test]
    fn the_printed_object_is_read_and_each_missing_name_is_told() {
        let mut value = serde_json::json!({
            "outcome": "ok", "ttft_at_ms": 12.5, "first_answer_at_ms": null, "end_at_ms": 30, "content": "a",
            "reasoning": "", "finish_reason": "stop", "output_chunks": 1, "reasoning_chunks": 0,
            "usage": {"prompt": 5, "completion": null, "cached": 0}, "usage_reasoning": null,
            "usage_cache_write": null, "tool_calls": [{"name": "n", "arguments": "{}"}], "in_band": false,
            "streamed": true, "bursty": false, "retries": 0, "retryable": false, "retry_after_ms": null, "more": 1
        });
        let seen = Seen::from_json(&value).unwrap();
        assert_eq!((seen.ttft_at_ms, seen.first_answer_at_ms, seen.end_at_ms), (Some(12.5), None, Some(30.0)));
        assert_eq!((seen.usage_prompt, seen.usage_completion, seen.usage_cached), (Some(5), None, Some(0)));
        assert_eq!(seen.tool_calls[0].name, "n");
        let object = value.as_object_mut().unwrap();
        object.remove("bursty");
        object.insert("content".to_owned(), Value::Null);
        let problem = Seen::from_json(&value).unwrap_err();
        assert!(
            problem.contains("`bursty` is missing") && problem.contains("`content` has the wrong type"),
            "{problem}"
        );
    }

    #[test]
    fn a_record_of_the_client_reads_in_milliseconds() {
        let mut record = TryRecord::new(Outcome::RateLimited);
        record.ttft_us = Some(1_500);
        record.retry_after_ms = Some(7_000);
        let seen = Seen::from(&record);
        assert_eq!((seen.outcome.as_str(), seen.ttft_at_ms, seen.end_at_ms), ("rate_limited", Some(1.5), None));
        assert_eq!((seen.retryable, seen.retry_after_ms), (true, Some(7_000.0)));
    }
}
