//! Was the answer right, and what was the attempt worth? The check of a task class, and the verdict over it.

mod verdict;

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::verdict::{AttemptEnd, Finding, Judged, judge_attempt};
use crate::record::ToolCall;

/// The check as it is written in a configuration: `"none"`, or a table with one key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckForm {
    /// Any answer that is not blank.
    None,
    /// The answer contains this text: `{ contains = "fn main" }`.
    Contains(String),
    /// The answer matches this regular expression somewhere: `{ regex = "(?i)done" }`.
    Regex(String),
    /// The whole answer is JSON: `{ json = true }`.
    Json(bool),
    /// The whole answer is a JSON object with these top-level keys: `{ json_keys = ["title", "steps"] }`.
    JsonKeys(Vec<String>),
    /// The answer without leading and trailing white space is exactly this: `{ exact = "42" }`.
    Exact(String),
}

/// A check that is ready to judge.
///
/// A blank answer without a tool call is a miss for every check, [`Check::None`] included. Where the text is blank, the
/// arguments of the tool calls are judged in its place, and one of them has to satisfy the check.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "CheckForm", into = "CheckForm")]
pub enum Check {
    /// Any answer that is not blank.
    #[default]
    None,
    /// The answer contains this text.
    Contains(String),
    /// The answer matches this expression somewhere.
    Regex(Regex),
    /// The whole answer is JSON; with keys, an object that has them all at its top.
    Json {
        /// Required top-level keys.
        keys: Vec<String>,
    },
    /// The trimmed answer is this (trimmed) text.
    Exact(String),
}

impl PartialEq for Check {
    fn eq(&self, other: &Self) -> bool {
        CheckForm::from(self.clone()) == CheckForm::from(other.clone())
    }
}

/// A check that cannot be meant so.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CheckError {
    /// The expression does not parse, or compiles to more than the engine allows.
    #[error("check `regex` is no regular expression: `{pattern}`")]
    BadRegex {
        /// As given.
        pattern: String,
        /// What the parser said.
        #[source]
        source: regex::Error,
    },
    /// `json = false` says nothing.
    #[error("check `json` can only be true")]
    JsonFalse,
    /// A text or list that every answer, or none, would satisfy.
    #[error("check `{key}` is empty, so it would decide nothing")]
    Empty {
        /// Name of the key.
        key: &'static str,
    },
}

impl CheckError {
    /// The next thing to try, if there is an obvious one.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::BadRegex { .. } => {
                "escape special characters, in TOML with single quotes: { regex = 'a\\.b' }; look-around and \
                                      back-references are not supported"
                    .into()
            }
            Self::JsonFalse => "write check = \"none\" for no check".into(),
            Self::Empty { key: "json_keys" } => "write { json = true } for JSON without required keys".into(),
            Self::Empty { .. } => "write check = \"none\" for no check".into(),
        })
    }
}

impl TryFrom<CheckForm> for Check {
    type Error = CheckError;
    fn try_from(form: CheckForm) -> Result<Self, CheckError> {
        let filled = |key, text: String| if text.trim().is_empty() { Err(CheckError::Empty { key }) } else { Ok(text) };
        Ok(match form {
            CheckForm::None => Self::None,
            CheckForm::Contains(text) => Self::Contains(filled("contains", text)?),
            CheckForm::Regex(pattern) => {
                let pattern = filled("regex", pattern)?;
                match Regex::new(&pattern) {
                    Ok(regex) => Self::Regex(regex),
                    Err(source) => return Err(CheckError::BadRegex { pattern, source }),
                }
            }
            CheckForm::Json(true) => Self::Json { keys: Vec::new() },
            CheckForm::Json(false) => return Err(CheckError::JsonFalse),
            CheckForm::JsonKeys(keys) if keys.is_empty() => return Err(CheckError::Empty { key: "json_keys" }),
            CheckForm::JsonKeys(keys) => Self::Json { keys },
            CheckForm::Exact(text) => Self::Exact(filled("exact", text)?),
        })
    }
}

impl From<Check> for CheckForm {
    fn from(check: Check) -> Self {
        match check {
            Check::None => Self::None,
            Check::Contains(text) => Self::Contains(text),
            Check::Regex(regex) => Self::Regex(regex.as_str().to_owned()),
            Check::Json { keys } if keys.is_empty() => Self::Json(true),
            Check::Json { keys } => Self::JsonKeys(keys),
            Check::Exact(text) => Self::Exact(text),
        }
    }
}

impl Check {
    /// Judges an answer.
    ///
    /// # Errors
    /// The reason for a miss, lower case, in a few words, with a bounded piece of the answer.
    pub fn judge(&self, answer: &str, tool_calls: &[ToolCall]) -> Result<(), String> {
        if !answer.trim().is_empty() {
            return self.judge_text(answer);
        }
        if tool_calls.is_empty() {
            return Err(if answer.is_empty() { "the answer is empty" } else { "the answer is only white space" }.into());
        }
        if matches!(self, Self::None) {
            return Ok(());
        }
        let mut reasons = tool_calls.iter().map(|call| self.judge_text(&call.arguments));
        let first = reasons.next().unwrap_or(Ok(()));
        if first.is_ok() || reasons.any(|r| r.is_ok()) { Ok(()) } else { first }
    }

    fn judge_text(&self, text: &str) -> Result<(), String> {
        let trimmed = text.trim();
        match self {
            Self::None => Ok(()),
            Self::Contains(wanted) if text.contains(wanted.as_str()) => Ok(()),
            Self::Contains(wanted) => Err(format!("`{}` is not in `{}`", piece(wanted), piece(trimmed))),
            Self::Regex(regex) if regex.is_match(text) => Ok(()),
            Self::Regex(regex) => Err(format!("`{}` does not match `{}`", piece(regex.as_str()), piece(trimmed))),
            Self::Json { keys } => judge_json(trimmed, keys),
            Self::Exact(wanted) if trimmed == wanted.trim() => Ok(()),
            Self::Exact(wanted) => Err(format!("`{}` is not exactly `{}`", piece(trimmed), piece(wanted.trim()))),
        }
    }
}

fn judge_json(text: &str, keys: &[String]) -> Result<(), String> {
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        // Strict on purpose: what consumes JSON would stumble over the fence as well. But say so.
        Err(_) if text.starts_with("```") => {
            return Err("the answer is no JSON: it is wrapped in a Markdown fence".into());
        }
        Err(e) => return Err(format!("the answer is no JSON ({e}): `{}`", piece(text))),
    };
    if keys.is_empty() {
        return Ok(());
    }
    let Value::Object(object) = &value else {
        return Err("the answer is JSON, but no object".into());
    };
    match keys.iter().find(|key| !object.contains_key(key.as_str())) {
        Some(missing) => Err(format!("the JSON answer has no key `{}`", piece(missing))),
        None => Ok(()),
    }
}

/// The begin of a text, short enough for one line of a table or a record.
pub(crate) fn piece(text: &str) -> String {
    const LONGEST: usize = 80;
    let line: String = text.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(LONGEST).is_some() { format!("{line}...") } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(toml: &str) -> Result<Check, CheckError> {
        #[derive(Deserialize)]
        struct Task {
            check: CheckForm,
        }
        let task: Task = toml::from_str(toml).unwrap();
        task.check.try_into()
    }

    fn judged(toml: &str, answer: &str) -> Result<(), String> {
        check(toml).unwrap().judge(answer, &[])
    }

    #[test]
    fn each_check_accepts_what_it_names_and_refuses_the_rest() {
        for (toml, right, wrong) in [
            ("check = { contains = 'fn add' }", "so: fn add(a)", "fn sub"),
            ("check = { regex = '(?i)^done' }", "Done.", "not done"),
            ("check = { json = true }", " {\"a\": 1}\n", "{a: 1}"),
            ("check = { json_keys = ['a', 'b'] }", "{\"a\": 1, \"b\": null}", "{\"a\": 1}"),
            ("check = { json_keys = ['a'] }", "{\"a\": 1}", "[\"a\"]"),
            ("check = { exact = ' 42 ' }", "42\n", "421"),
        ] {
            assert_eq!(judged(toml, right), Ok(()), "{toml}");
            assert!(judged(toml, wrong).is_err(), "{toml}");
        }
        assert!(judged("check = { json = true }", "```json\n{}\n```").unwrap_err().contains("fence"));
    }

    #[test]
    fn a_blank_answer_is_a_miss_for_every_check_unless_a_tool_was_called() {
        let call = ToolCall { name: "edit".into(), arguments: "{\"path\": \"a.rs\"}".into() };
        for toml in ["check = 'none'", "check = { contains = 'a.rs' }", "check = { json_keys = ['path'] }"] {
            let check = check(toml).unwrap();
            assert!(check.judge("", &[]).is_err(), "{toml}");
            assert!(check.judge(" \n\t", &[]).is_err(), "{toml}");
            assert_eq!(check.judge("", std::slice::from_ref(&call)), Ok(()), "{toml}");
        }
        assert!(check("check = { contains = 'b.rs' }").unwrap().judge("", &[call]).is_err());
    }

    #[test]
    fn a_check_that_decides_nothing_is_refused_with_a_hint() {
        for toml in [
            "check = { regex = '(' }",
            "check = { regex = '' }",
            "check = { json = false }",
            "check = { json_keys = [] }",
            "check = { contains = ' ' }",
            "check = { exact = '' }",
        ] {
            let error = check(toml).unwrap_err();
            assert!(error.hint().is_some(), "{toml}");
        }
        assert!(
            serde_json::from_str::<Check>("{\"regex\": \"(\"}").unwrap_err().to_string().contains("regular expression")
        );
    }

    #[test]
    fn a_check_reads_back_as_it_was_written() {
        for json in [
            "\"none\"",
            "{\"contains\":\"x\"}",
            "{\"regex\":\"^x$\"}",
            "{\"json\":true}",
            "{\"json_keys\":[\"a\"]}",
            "{\"exact\":\"x\"}",
        ] {
            let check: Check = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&check).unwrap(), json);
        }
        assert!(serde_json::from_str::<Check>("{\"contain\": \"x\"}").is_err());
        assert!(serde_json::from_str::<Check>("{\"contains\": \"x\", \"exact\": \"y\"}").is_err());
    }

    #[test]
    fn a_reason_never_grows_with_the_answer() {
        let reason = judged("check = { exact = '42' }", &"x".repeat(1_000_000)).unwrap_err();
        assert!(reason.len() < 200, "{}", reason.len());
    }
}
