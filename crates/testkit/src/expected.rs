//! What a stream case expects of a right client. A key that is absent is not checked; a null means "never" or "not
//! reported", and is checked.

use serde::{Deserialize, Deserializer};

/// The `expected` of a stream case. Times are server send times, milliseconds after the last byte of the request.
///
/// Where a field is an `Option<Option<_>>`: the outer `None` is "the case does not say", the inner one is null.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Class of the outcome.
    pub outcome: String,
    /// Equally right classes (`timeout_first_token` is one that this client does not have).
    #[serde(default)]
    pub accept_also: Vec<String>,
    /// First byte of the response.
    #[serde(default, deserialize_with = "said")]
    pub first_byte_at_ms: Option<Option<f64>>,
    /// First token of any kind.
    #[serde(default, deserialize_with = "said")]
    pub ttft_at_ms: Option<Option<f64>>,
    /// First token that is no reasoning.
    #[serde(default, deserialize_with = "said")]
    pub first_answer_at_ms: Option<Option<f64>>,
    /// First character that is no white space: for information, no client has to report it.
    #[serde(default, deserialize_with = "said")]
    pub first_visible_at_ms: Option<Option<f64>>,
    /// Terminal signal, or the moment the failure can be known.
    #[serde(default, deserialize_with = "said")]
    pub end_at_ms: Option<Option<f64>>,
    /// How much later than that a token time may be, milliseconds.
    #[serde(default)]
    pub late_ok_ms: f64,
    /// The same for the end.
    #[serde(default)]
    pub end_late_ok_ms: f64,
    /// The answer's text.
    #[serde(default)]
    pub content: Option<Text>,
    /// The reasoning text.
    #[serde(default)]
    pub reasoning: Option<Text>,
    /// As sent.
    #[serde(default, deserialize_with = "said")]
    pub finish_reason: Option<Option<String>>,
    /// Events with answer content.
    #[serde(default)]
    pub output_chunks: Option<u64>,
    /// Events with reasoning content.
    #[serde(default)]
    pub reasoning_chunks: Option<u64>,
    /// Token counts.
    #[serde(default)]
    pub usage: Option<ExpectedUsage>,
    /// Reasoning tokens.
    #[serde(default, deserialize_with = "said")]
    pub usage_reasoning: Option<Option<u64>>,
    /// Tokens written to the cache.
    #[serde(default, deserialize_with = "said")]
    pub usage_cache_write: Option<Option<u64>>,
    /// The counts are those of a stream that was cut: running totals, not final ones.
    #[serde(default)]
    pub usage_partial: bool,
    /// Tool calls, put together.
    #[serde(default)]
    pub tool_calls: Option<Vec<ExpectedCall>>,
    /// The error came inside a 200.
    #[serde(default)]
    pub in_band: Option<bool>,
    /// The answer came as a stream.
    #[serde(default)]
    pub streamed: Option<bool>,
    /// All content came at once.
    #[serde(default)]
    pub bursty: Option<bool>,
    /// Redirects followed.
    #[serde(default)]
    pub redirects: Option<u64>,
    /// The same request would have a chance later.
    #[serde(default)]
    pub retryable: Option<bool>,
    /// What the server asked for, milliseconds.
    #[serde(default, deserialize_with = "said")]
    pub retry_after_ms: Option<Option<f64>>,
    /// Equally right values of it.
    #[serde(default)]
    pub accept_after: Vec<Option<f64>>,
    /// How far from it a value may be, milliseconds (a date has whole seconds).
    #[serde(default)]
    pub after_tolerance_ms: f64,
    /// What a client with retries reaches.
    #[serde(default)]
    pub then: Option<Then>,
    /// A remark.
    #[serde(default)]
    pub note: String,
}

impl Expected {
    /// Only the class is expected.
    pub fn of(outcome: &str) -> Self {
        Self { outcome: outcome.to_owned(), ..Self::default() }
    }
}

/// Token counts; null is "not reported", which is not 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedUsage {
    /// Whole prompt, cached part included.
    #[serde(default, deserialize_with = "said")]
    pub prompt: Option<Option<u64>>,
    /// Generated tokens.
    #[serde(default, deserialize_with = "said")]
    pub completion: Option<Option<u64>>,
    /// Read from the cache.
    #[serde(default, deserialize_with = "said")]
    pub cached: Option<Option<u64>>,
}

/// One tool call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedCall {
    /// Name of the tool.
    pub name: String,
    /// Its arguments as sent.
    pub arguments: String,
}

/// What a client with retries reaches.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Then {
    /// Number of the request that is answered so, from 1.
    #[serde(default)]
    pub attempt: Option<u64>,
    /// Class of the last try.
    #[serde(default)]
    pub outcome: Option<String>,
    /// The answer's text.
    #[serde(default)]
    pub content: Option<Text>,
    /// First answer within the last try.
    #[serde(default, deserialize_with = "said")]
    pub first_answer_at_ms: Option<Option<f64>>,
    /// Retries made.
    #[serde(default)]
    pub retries: Option<u64>,
}

/// A text, or `{"repeat": [text, n]}`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Text {
    /// As it stands.
    Plain(String),
    /// A piece repeated.
    Repeat(Repeat),
}

/// `{"repeat": [text, n]}`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// The piece and how often.
    pub repeat: (String, usize),
}

impl Text {
    /// The whole text.
    pub fn whole(&self) -> String {
        match self {
            Self::Plain(text) => text.clone(),
            Self::Repeat(Repeat { repeat: (text, n) }) => text.repeat(*n),
        }
    }
}

/// Keeps apart "the key is absent" and "the key is null", which serde would merge.
fn said<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_null_is_an_expectation_and_an_absent_key_is_none() {
        let e: Expected = serde_json::from_str(r#"{"outcome":"ok","ttft_at_ms":null,"end_at_ms":12}"#).unwrap();
        assert_eq!(e.ttft_at_ms, Some(None));
        assert_eq!(e.end_at_ms, Some(Some(12.0)));
        assert_eq!(e.first_answer_at_ms, None);
    }

    #[test]
    fn a_repeated_text_is_as_long_as_it_says() {
        let e: Expected = serde_json::from_str(r#"{"outcome":"ok","content":{"repeat":["ab",3]}}"#).unwrap();
        assert_eq!(e.content.unwrap().whole(), "ababab");
    }
}
