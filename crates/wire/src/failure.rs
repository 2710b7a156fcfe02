//! Which class a failure belongs to, from HTTP status and body, and from errors inside a 200.
//!
//! The same status means opposite things: a 429 may be a rate limit (wait seconds) or a used-up quota (waiting cannot
//! help), a 400 may be a prompt that is too long. The words of the body decide; where it has none, the status does.

use peaklane_core::outcome::Outcome;
use serde_json::Value;

/// Longest message that is kept, characters.
const MESSAGE_CHARS: usize = 400;

/// What an error body says, put together for matching.
#[derive(Debug, Default)]
struct Said {
    /// Type, code, status and message in lower case.
    words: String,
    /// A code that is an HTTP status (as number or text).
    status: Option<u16>,
    /// Google's quota ids, lower case.
    quota_ids: String,
}

/// Class of a response with an HTTP status of 300 or more.
pub fn of_status(status: u16, body: Option<&Value>, text: &str) -> Outcome {
    let said = body.map_or_else(Said::default, gather);
    let words = if said.words.is_empty() { text.to_ascii_lowercase() } else { said.words.clone() };
    classify(status, &Said { words, status: None, quota_ids: said.quota_ids })
}

/// Class of an error that came inside a 200. `fallback` is what it is when nothing can be recognised.
pub fn in_band(error: &Value) -> Outcome {
    let said = gather(error);
    let status = said.status.unwrap_or_else(|| {
        let has = |word: &str| said.words.contains(word);
        if has("rate_limit") || has("rate limit") || has("too many requests") || has("resource_exhausted") {
            429
        } else if has("authentication") || has("invalid_api_key") || has("permission") {
            401
        } else if has("not_found") {
            404
        } else if has("overloaded") || has("unavailable_error") {
            503
        } else if has("timeout_error") || has("deadline_exceeded") {
            504
        } else if has("billing_error") {
            402
        } else if has("invalid_request") || has("invalid_prompt") || has("context") || has("bad_request") {
            400
        } else {
            500
        }
    });
    classify(status, &said)
}

fn classify(status: u16, said: &Said) -> Outcome {
    let has = |words: &[&str]| words.iter().any(|w| said.words.contains(w));
    let too_long = has(&[
        "context_length",
        "exceed_context",
        "context length",
        "context window",
        "context size",
        "maximum context",
        "n_ctx",
        "prompt is too long",
        "prompt too long",
        "input is too long",
        "too many input tokens",
        "max_model_len",
        "maximum model length",
        "max sequence length",
    ]);
    let filtered = has(&["content_filter", "content_policy", "content management policy", "responsible ai", "flagged"]);
    match status {
        429 if used_up(said) => Outcome::QuotaExhausted,
        429 => Outcome::RateLimited,
        402 => Outcome::QuotaExhausted,
        401 | 407 => Outcome::Auth,
        403 if used_up(said) => Outcome::QuotaExhausted,
        403 if filtered => Outcome::ContentFilter,
        403 => Outcome::Auth,
        404 | 410 => Outcome::NotFound,
        408 => Outcome::ServerError,
        413 if too_long => Outcome::ContextLength,
        400..=499 if too_long => Outcome::ContextLength,
        400..=499 if has(&["model_not_found", "model not found"]) => Outcome::NotFound,
        400..=499 if has(&["insufficient_quota", "billing_error", "credit balance"]) => Outcome::QuotaExhausted,
        400..=499 if has(&["invalid_api_key", "incorrect api key", "api key not valid", "authentication_error"]) => {
            Outcome::Auth
        }
        400..=499 if filtered => Outcome::ContentFilter,
        400..=499 => Outcome::BadRequest,
        503 if has(&["loading", "warming up", "starting up", "cold start", "is being loaded"]) => Outcome::Loading,
        503 | 529 => Outcome::Overloaded,
        504 | 522 | 524 | 598 => Outcome::GatewayTimeout,
        500.. if too_long => Outcome::ContextLength,
        500.. if has(&["overloaded_error", "engine_overloaded"]) => Outcome::Overloaded,
        500.. => Outcome::ServerError,
        300..=399 => Outcome::RedirectRefused,
        _ => Outcome::BadBody,
    }
}

/// A quota of a day, a month or an account, not of a minute.
fn used_up(said: &Said) -> bool {
    if !said.quota_ids.is_empty() {
        // Google names the budget exactly; its message talks of billing for every one.
        return said.quota_ids.contains("perday") || said.quota_ids.contains("permonth");
    }
    let per_period =
        ["per day", "per-day", "daily", "per month", "monthly", "(rpd)", "(tpd)", "billing period", "perday"];
    said.words.contains("insufficient_quota")
        || said.words.contains("quota_exceeded")
        || said.words.contains("exceeded your current quota")
        || said.words.contains("billing hard limit")
        || said.words.contains("insufficient credits")
        || said.words.contains("insufficient balance")
        || said.words.contains("credit balance")
        || said.words.contains("out of credits")
        || per_period.iter().any(|w| said.words.contains(w))
}

fn gather(body: &Value) -> Said {
    let mut said = Said::default();
    let error = error_of(body);
    for key in ["type", "code", "status", "error_type", "message", "error", "detail", "reason", "param"] {
        for holder in [Some(error), error.get("metadata"), error.get("innererror"), Some(body)].into_iter().flatten() {
            match holder.get(key) {
                Some(Value::String(text)) => {
                    said.words.push_str(&text.to_ascii_lowercase());
                    said.words.push('\n');
                    if matches!(key, "code" | "status") && said.status.is_none() {
                        said.status = text.parse().ok().filter(is_error_status);
                    }
                }
                Some(Value::Number(number)) if matches!(key, "code" | "status") && said.status.is_none() => {
                    said.status = number.as_u64().and_then(|n| u16::try_from(n).ok()).filter(is_error_status);
                }
                _ => {}
            }
        }
    }
    if let Value::String(text) = error {
        said.words.push_str(&text.to_ascii_lowercase());
    }
    collect_quota_ids(body, &mut said.quota_ids);
    said
}

fn is_error_status(status: &u16) -> bool {
    (400..600).contains(status)
}

/// The error object of a body: `{"error": {...}}`, an array of such, `{"response": {"error": ...}}`, or the body itself.
fn error_of(body: &Value) -> &Value {
    match body {
        Value::Array(items) => items.first().map_or(body, error_of),
        Value::Object(map) => match (map.get("error"), map.get("response")) {
            (Some(error), _) if !error.is_null() => error,
            (_, Some(response)) if response.get("error").is_some_and(|e| !e.is_null()) => &response["error"],
            _ => body,
        },
        _ => body,
    }
}

fn collect_quota_ids(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                match inner {
                    Value::String(text) if key == "quotaId" => {
                        out.push_str(&text.to_ascii_lowercase());
                        out.push('\n');
                    }
                    _ => collect_quota_ids(inner, out),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_quota_ids(item, out)),
        _ => {}
    }
}

/// The message of an error body, shortened; `None` when it has none.
pub fn message_of(body: &Value) -> Option<String> {
    let error = error_of(body);
    let text = match error {
        Value::String(text) => text,
        _ => ["message", "detail", "error"].iter().find_map(|key| match error.get(key) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        })?,
    };
    Some(shorten(text))
}

/// Cuts a text to what a record keeps, on one line.
pub fn shorten(text: &str) -> String {
    let flat: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match flat.char_indices().nth(MESSAGE_CHARS) {
        Some((at, _)) => format!("{}...", &flat[..at]),
        None => flat,
    }
}

/// Does this JSON value say "error" where an answer was expected?
pub fn is_error(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.first().is_some_and(is_error),
        Value::Object(map) => {
            map.get("error").is_some_and(|e| !e.is_null())
                || map.get("object").is_some_and(|o| o == "error")
                || map.get("type").is_some_and(|t| t == "error")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_google_429_is_told_by_its_quota_id_and_not_by_its_message() {
        let body = |id: &str| {
            json!({"error": {"code": 429, "message": "You exceeded your current quota, check your plan and billing",
                "details": [{"violations": [{"quotaId": id}]}]}})
        };
        assert_eq!(of_status(429, Some(&body("GenerateRequestsPerMinutePerProject")), ""), Outcome::RateLimited);
        assert_eq!(of_status(429, Some(&body("GenerateRequestsPerDayPerProject")), ""), Outcome::QuotaExhausted);
    }

    #[test]
    fn the_status_decides_where_the_body_has_no_words() {
        for (status, outcome) in [
            (400, Outcome::BadRequest),
            (401, Outcome::Auth),
            (402, Outcome::QuotaExhausted),
            (403, Outcome::Auth),
            (404, Outcome::NotFound),
            (422, Outcome::BadRequest),
            (429, Outcome::RateLimited),
            (500, Outcome::ServerError),
            (502, Outcome::ServerError),
            (503, Outcome::Overloaded),
            (504, Outcome::GatewayTimeout),
            (524, Outcome::GatewayTimeout),
            (529, Outcome::Overloaded),
        ] {
            assert_eq!(of_status(status, None, "<html>"), outcome, "{status}");
        }
    }

    #[test]
    fn errors_inside_a_200_are_classed_by_their_type() {
        let class = |kind: &str| in_band(&json!({"type": "error", "error": {"type": kind, "message": "no"}}));
        assert_eq!(class("overloaded_error"), Outcome::Overloaded);
        assert_eq!(class("rate_limit_error"), Outcome::RateLimited);
        assert_eq!(class("authentication_error"), Outcome::Auth);
        assert_eq!(class("api_error"), Outcome::ServerError);
        assert_eq!(in_band(&json!({"error": {"code": "529", "message": "busy"}})), Outcome::Overloaded);
        assert_eq!(in_band(&json!({"error": "something broke"})), Outcome::ServerError);
    }

    #[test]
    fn a_message_is_found_in_every_usual_place_and_kept_short() {
        assert_eq!(message_of(&json!({"detail": "Not Found"})).as_deref(), Some("Not Found"));
        assert_eq!(message_of(&json!({"error": "plain"})).as_deref(), Some("plain"));
        assert_eq!(message_of(&json!([{"error": {"message": "a\n b"}}])).as_deref(), Some("a b"));
        let long = json!({"error": {"message": "x".repeat(5_000)}});
        assert!(message_of(&long).is_some_and(|m| m.len() < 500));
    }
}
