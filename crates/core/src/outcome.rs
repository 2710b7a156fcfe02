//! How one exchange with a lane ended: the classes, and what may be tried again.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How one try ended. `Ok` means: the answer arrived whole and something was said.
///
/// The names are the stable spelling in stores, CSV files and JSON (`rate_limited`, `timeout_idle`, ...).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A whole answer with content or a tool call.
    Ok,
    /// Too many requests for now (HTTP 429 and its in-band forms).
    RateLimited,
    /// A quota of a day, a month or an account is used up: waiting seconds does not help.
    QuotaExhausted,
    /// The server says that it is too busy (HTTP 503, 529).
    Overloaded,
    /// The model is being loaded (a cold start that answers).
    Loading,
    /// Any other failure on the server's side (HTTP 5xx, 408, an error inside a 200).
    ServerError,
    /// A gateway gave up waiting for the server behind it (HTTP 504, 522, 524).
    GatewayTimeout,
    /// The key was refused (HTTP 401, 403).
    Auth,
    /// No such path or model (HTTP 404).
    NotFound,
    /// The request was refused as it is (HTTP 400, 413, 422, ...).
    BadRequest,
    /// The prompt is longer than the model's context.
    ContextLength,
    /// The answer was withheld or cut by a content filter.
    ContentFilter,
    /// A well-formed end, but nothing was said.
    NoAnswer,
    /// The stream ended without a terminal signal.
    Truncated,
    /// What came is not the promised format (HTML at the base URL, broken JSON).
    BadBody,
    /// The connection was reset or broke in the middle.
    ConnReset,
    /// No connection could be made (name, refusal, TLS): nothing was sent.
    Unreachable,
    /// No byte of an answer within the first-byte limit.
    TimeoutFirstByte,
    /// A gap between two bytes longer than the idle limit.
    TimeoutIdle,
    /// The whole exchange took longer than the total limit.
    TimeoutTotal,
    /// A redirect that must not be followed (too many, no location, other scheme).
    RedirectRefused,
}

impl Outcome {
    /// Every class, in the order in which tables list them.
    pub const ALL: [Self; 21] = [
        Self::Ok,
        Self::RateLimited,
        Self::QuotaExhausted,
        Self::Overloaded,
        Self::Loading,
        Self::ServerError,
        Self::GatewayTimeout,
        Self::Auth,
        Self::NotFound,
        Self::BadRequest,
        Self::ContextLength,
        Self::ContentFilter,
        Self::NoAnswer,
        Self::Truncated,
        Self::BadBody,
        Self::ConnReset,
        Self::Unreachable,
        Self::TimeoutFirstByte,
        Self::TimeoutIdle,
        Self::TimeoutTotal,
        Self::RedirectRefused,
    ];

    /// The stable spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::RateLimited => "rate_limited",
            Self::QuotaExhausted => "quota_exhausted",
            Self::Overloaded => "overloaded",
            Self::Loading => "loading",
            Self::ServerError => "server_error",
            Self::GatewayTimeout => "gateway_timeout",
            Self::Auth => "auth",
            Self::NotFound => "not_found",
            Self::BadRequest => "bad_request",
            Self::ContextLength => "context_length",
            Self::ContentFilter => "content_filter",
            Self::NoAnswer => "no_answer",
            Self::Truncated => "truncated",
            Self::BadBody => "bad_body",
            Self::ConnReset => "conn_reset",
            Self::Unreachable => "unreachable",
            Self::TimeoutFirstByte => "timeout_first_byte",
            Self::TimeoutIdle => "timeout_idle",
            Self::TimeoutTotal => "timeout_total",
            Self::RedirectRefused => "redirect_refused",
        }
    }

    /// The same in words for a person, lower case: "rate limited", "timed out (idle)".
    pub const fn words(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::RateLimited => "rate limited",
            Self::QuotaExhausted => "quota used up",
            Self::Overloaded => "overloaded",
            Self::Loading => "model loading",
            Self::ServerError => "server error",
            Self::GatewayTimeout => "gateway timeout",
            Self::Auth => "key refused",
            Self::NotFound => "not found",
            Self::BadRequest => "bad request",
            Self::ContextLength => "context too long",
            Self::ContentFilter => "content filter",
            Self::NoAnswer => "empty answer",
            Self::Truncated => "cut answer",
            Self::BadBody => "not the promised format",
            Self::ConnReset => "connection reset",
            Self::Unreachable => "unreachable",
            Self::TimeoutFirstByte => "timed out (first byte)",
            Self::TimeoutIdle => "timed out (idle)",
            Self::TimeoutTotal => "timed out (total)",
            Self::RedirectRefused => "redirect refused",
        }
    }

    /// Would the same request have a chance later? Never for quota, key, request or format problems.
    pub const fn retryable(self) -> bool {
        matches!(
            self,
            Self::RateLimited
                | Self::Overloaded
                | Self::Loading
                | Self::ServerError
                | Self::GatewayTimeout
                | Self::NoAnswer
                | Self::Truncated
                | Self::ConnReset
                | Self::Unreachable
                | Self::TimeoutFirstByte
                | Self::TimeoutIdle
                | Self::TimeoutTotal
        )
    }

    /// True for a whole answer.
    pub const fn is_ok(self) -> bool {
        matches!(self, Self::Ok)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A spelling that no class has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no outcome is called `{0}`")]
pub struct UnknownOutcome(pub String);

impl FromStr for Outcome {
    type Err = UnknownOutcome;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|o| o.name() == text).ok_or_else(|| UnknownOutcome(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_spelled_the_same_in_json_and_in_text() {
        for outcome in Outcome::ALL {
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.name());
            assert_eq!(outcome.name().parse::<Outcome>().unwrap(), outcome);
        }
        assert!("rate-limited".parse::<Outcome>().is_err());
    }

    #[test]
    fn what_cannot_succeed_is_never_tried_again() {
        for outcome in
            [Outcome::QuotaExhausted, Outcome::Auth, Outcome::BadRequest, Outcome::ContextLength, Outcome::Ok]
        {
            assert!(!outcome.retryable(), "{outcome}");
        }
    }
}
