//! Bodies that are no event stream: a whole JSON answer, an error, or something else altogether.

use peaklane_core::lane::Api;
use peaklane_core::outcome::Outcome;
use serde_json::Value;

use super::answer::Answer;
use super::chat::{self, Chunk};
use super::{messages, responses};
use crate::failure;

/// What a whole body turned out to be.
pub(crate) enum Whole {
    /// An answer; it was taken.
    Answer,
    /// An error inside a 200.
    Error(Value),
    /// Not the promised format, in words.
    Bad(String),
    /// JSON that stops in the middle.
    Cut,
}

/// Reads a whole body of a 200.
pub(crate) fn take(answer: &mut Answer, api: Api, body: &[u8]) -> Whole {
    let text = String::from_utf8_lossy(body);
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\u{feff}');
    let value: Value = match serde_json::from_str(trimmed) {
        Ok(value) => value,
        Err(e) if e.is_eof() && trimmed.starts_with(['{', '[']) => return Whole::Cut,
        Err(_) if trimmed.is_empty() => return Whole::Cut,
        Err(_) => return Whole::Bad(describe(trimmed)),
    };
    if failure::is_error(&value) {
        return Whole::Error(value);
    }
    let shaped = match api {
        Api::Chat | Api::Completions => value.get("choices").is_some_and(Value::is_array),
        Api::Messages => value.get("content").is_some_and(Value::is_array),
        Api::Responses => value.get("output").is_some_and(Value::is_array),
    };
    if !shaped {
        return Whole::Bad(format!("JSON, but no answer of the {api} API: {}", failure::shorten(&preview(trimmed))));
    }
    match api {
        Api::Chat | Api::Completions => match serde_json::from_str::<Chunk<'_>>(trimmed) {
            Ok(chunk) => chat::take(answer, &chunk, true),
            Err(e) => return Whole::Bad(format!("JSON, but no answer of the {api} API: {e}")),
        },
        Api::Messages => messages::take_whole(answer, &value),
        Api::Responses => {
            if value.get("status").is_some_and(|s| s == "failed") {
                return Whole::Error(value);
            }
            responses::take_whole(answer, &value);
        }
    }
    Whole::Answer
}

/// The body of a response with an error status: JSON, JSON inside an event, or text.
pub(crate) fn error_value(body: &[u8]) -> (Option<Value>, String) {
    let text = String::from_utf8_lossy(body).trim().to_owned();
    let value = serde_json::from_str(&text).ok().or_else(|| {
        let data = text.lines().find_map(|line| line.strip_prefix("data:"))?;
        serde_json::from_str(data.trim()).ok()
    });
    (value, text)
}

/// Names what came instead of an answer: the title of a page, or the first words.
pub(crate) fn describe(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    if lower.starts_with("<!doctype") || lower.starts_with("<html") || lower.contains("<html") {
        let title = lower.find("<title>").and_then(|from| {
            let from = from + "<title>".len();
            // Lower-casing ASCII keeps byte positions, so they hold in the original too.
            lower[from..].find("</title>").map(|len| text[from..from + len].trim().to_owned())
        });
        return failure::shorten(&match title {
            Some(title) => format!("an HTML page (\"{title}\") instead of an answer"),
            None => "an HTML page instead of an answer".to_owned(),
        });
    }
    format!("not JSON: {}", failure::shorten(&preview(text)))
}

fn preview(text: &str) -> String {
    text.chars().take(160).collect()
}

/// Tool arguments as text: a string as it is, an object as compact JSON, null as nothing.
pub(crate) fn argument_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// What [`Whole::Bad`] and [`Whole::Cut`] mean as an outcome, given whether the body ended as promised.
pub(crate) fn bad_outcome(cut: bool, clean: bool, empty: bool) -> Outcome {
    if !clean || (cut && empty) { Outcome::Truncated } else { Outcome::BadBody }
}
