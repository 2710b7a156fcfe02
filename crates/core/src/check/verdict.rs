//! From the end of an attempt to its verdict.

use std::fmt;

use super::{Check, piece};
use crate::attempt::Verdict;
use crate::outcome::Outcome;
use crate::record::ToolCall;

/// How an attempt ended, as far as its verdict needs to know.
#[derive(Clone, Copy, Debug)]
pub struct AttemptEnd<'a> {
    /// Class of the last try.
    pub outcome: Outcome,
    /// Intended start to the end, retries and waits included, microseconds.
    pub latency_us: u64,
    /// The slowest acceptable latency, microseconds; equal to it passes. 0: no latency floor (batch classes).
    pub floor_us: u64,
    /// Finish reason as sent.
    pub finish_reason: Option<&'a str>,
    /// HTTP status of the last try.
    pub http_status: Option<u16>,
    /// The server's words about a failure.
    pub message: Option<&'a str>,
    /// Text of the answer.
    pub answer: &'a str,
    /// Tool calls of the answer.
    pub tool_calls: &'a [ToolCall],
    /// The task means its budget: an answer that stopped for lack of it is judged like any other.
    pub accept_budget_stop: bool,
}

/// A fault of the request, with what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong, lower case.
    pub cause: String,
    /// The next step.
    pub hint: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.cause, self.hint)
    }
}

/// The verdict and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// What the attempt was worth.
    pub verdict: Verdict,
    /// Set for [`Verdict::ConfigFinding`] only.
    pub finding: Option<Finding>,
    /// Set for [`Verdict::WrongAnswer`] only: why the check refused the answer.
    pub check_note: Option<String>,
}

impl Judged {
    const fn plain(verdict: Verdict) -> Self {
        Self { verdict, finding: None, check_note: None }
    }
}

/// Judges an attempt: a fault of the request first, then whether a whole answer came, whether it is right, and last
/// whether it was in time. A wrong answer that is late too is a wrong answer.
pub fn judge_attempt(end: &AttemptEnd<'_>, check: &Check) -> Judged {
    if let Some(finding) = budget_stop(end).or_else(|| refused_parameter(end)) {
        return Judged { verdict: Verdict::ConfigFinding, finding: Some(finding), check_note: None };
    }
    if !end.outcome.is_ok() {
        return Judged::plain(Verdict::Failed);
    }
    if let Err(reason) = check.judge(end.answer, end.tool_calls) {
        return Judged { verdict: Verdict::WrongAnswer, finding: None, check_note: Some(reason) };
    }
    let in_time = end.floor_us == 0 || end.latency_us <= end.floor_us;
    Judged::plain(if in_time { Verdict::Pass } else { Verdict::TooSlow })
}

/// Finish reasons that say "no budget left": chat and completions, Anthropic, Responses; Gemini and Cohere in capitals.
const BUDGET_STOPS: [&str; 3] = ["length", "max_tokens", "max_output_tokens"];

fn budget_stop(end: &AttemptEnd<'_>) -> Option<Finding> {
    let reason = end.finish_reason?;
    let stopped = BUDGET_STOPS.iter().any(|stop| reason.eq_ignore_ascii_case(stop));
    // A whole answer, or one that spent its budget on reasoning and said nothing.
    let ended = matches!(end.outcome, Outcome::Ok | Outcome::NoAnswer);
    (stopped && ended && !end.accept_budget_stop).then(|| Finding {
        cause: format!("answer stopped for lack of budget (finish reason `{}`)", piece(reason)),
        hint: "raise `max_tokens` (a reasoning model spends part of it before it answers), or set `accept_budget_stop`"
            .into(),
    })
}

/// Parameters that lanes refuse by name.
const PARAMETERS: [&str; 7] = [
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "max_new_tokens",
    "temperature",
    "seed",
    "stream_options",
];

/// What servers say about a parameter that they do not know: OpenAI and its kin, pydantic-based servers.
const UNSUPPORTED: [&str; 10] = [
    "unsupported parameter",
    "unsupported_parameter",
    "unsupported value",
    "unsupported_value",
    "unknown parameter",
    "unknown_parameter",
    "unrecognized request argument",
    "unexpected keyword argument",
    "extra inputs are not permitted",
    "extra fields not permitted",
];

fn refused_parameter(end: &AttemptEnd<'_>) -> Option<Finding> {
    if end.outcome != Outcome::BadRequest {
        return None;
    }
    let message = end.message?;
    let lower = message.to_ascii_lowercase();
    // Whole words: `seed` is not in `seeded`, and `max_tokens` is one word.
    let words: Vec<&str> = lower.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).collect();
    let named = PARAMETERS.into_iter().find(|p| words.contains(p));
    if named.is_none() && !UNSUPPORTED.iter().any(|words| lower.contains(words)) {
        return None;
    }
    let status = end.http_status.map_or(String::new(), |status| format!(" (HTTP {status})"));
    let what = named.map_or(String::new(), |p| format!(" `{p}`"));
    let hint = match named {
        Some("temperature" | "seed" | "stream_options") => "turn this parameter off for the lane",
        Some(_) => "use the name and the range for the token budget that this lane asks for",
        None => "leave out what this lane does not know",
    };
    Some(Finding { cause: format!("parameter{what} refused{status}: {}", piece(message)), hint: hint.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: AttemptEnd<'static> = AttemptEnd {
        outcome: Outcome::Ok,
        latency_us: 25_000_000,
        floor_us: 25_000_000,
        finish_reason: Some("stop"),
        http_status: Some(200),
        message: None,
        answer: "42",
        tool_calls: &[],
        accept_budget_stop: false,
    };

    fn verdict(end: AttemptEnd<'_>) -> Verdict {
        judge_attempt(&end, &Check::Exact("42".into())).verdict
    }

    #[test]
    fn the_floor_itself_passes_and_one_microsecond_more_does_not() {
        assert_eq!(verdict(END), Verdict::Pass);
        assert_eq!(verdict(AttemptEnd { latency_us: 25_000_001, ..END }), Verdict::TooSlow);
    }

    #[test]
    fn an_empty_answer_is_a_miss_even_without_a_check() {
        let judged = judge_attempt(&AttemptEnd { answer: "  ", ..END }, &Check::None);
        assert_eq!(judged.verdict, Verdict::WrongAnswer);
        assert!(judged.check_note.is_some());
    }

    #[test]
    fn a_late_wrong_answer_is_wrong_and_a_failed_attempt_is_never_judged_by_its_text() {
        assert_eq!(verdict(AttemptEnd { answer: "41", latency_us: 99_000_000, ..END }), Verdict::WrongAnswer);
        assert_eq!(verdict(AttemptEnd { outcome: Outcome::Truncated, ..END }), Verdict::Failed);
        assert_eq!(verdict(AttemptEnd { outcome: Outcome::NoAnswer, answer: "", ..END }), Verdict::Failed);
    }

    #[test]
    fn an_answer_cut_by_its_budget_is_a_finding_in_every_spelling_unless_accepted() {
        for reason in ["length", "max_tokens", "max_output_tokens", "MAX_TOKENS"] {
            for outcome in [Outcome::Ok, Outcome::NoAnswer] {
                let judged = judge_attempt(&AttemptEnd { finish_reason: Some(reason), outcome, ..END }, &Check::None);
                assert_eq!(judged.verdict, Verdict::ConfigFinding, "{reason} {outcome}");
                let finding = judged.finding.unwrap();
                assert!(finding.to_string().contains("lack of budget") && finding.hint.contains("max_tokens"));
            }
        }
        let accepted = AttemptEnd { finish_reason: Some("length"), accept_budget_stop: true, ..END };
        assert_eq!(verdict(accepted), Verdict::Pass);
        assert_eq!(verdict(AttemptEnd { outcome: Outcome::NoAnswer, ..accepted }), Verdict::Failed);
        let reset = AttemptEnd { finish_reason: Some("length"), outcome: Outcome::ConnReset, ..END };
        assert_eq!(verdict(reset), Verdict::Failed);
    }

    #[test]
    fn a_refused_parameter_is_a_finding_and_any_other_bad_request_is_a_failure() {
        let refused = |message, outcome| {
            let end = AttemptEnd { outcome, http_status: Some(400), message: Some(message), answer: "", ..END };
            judge_attempt(&end, &Check::None)
        };
        for message in [
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "Unsupported value: 'temperature' does not support 0 with this model.",
            "Unrecognized request argument supplied: seed",
            "stream_options: Extra inputs are not permitted",
            "max_output_tokens must be at least 16",
            "Unknown parameter: 'foo'.",
        ] {
            let judged = refused(message, Outcome::BadRequest);
            assert_eq!(judged.verdict, Verdict::ConfigFinding, "{message}");
            assert!(judged.finding.unwrap().cause.contains("refused (HTTP 400)"), "{message}");
        }
        for message in ["messages: at least one message is required", "the file is seeded with garbage"] {
            assert_eq!(refused(message, Outcome::BadRequest).verdict, Verdict::Failed, "{message}");
        }
        assert_eq!(refused("max_tokens exceed the quota", Outcome::QuotaExhausted).verdict, Verdict::Failed);
    }
}
