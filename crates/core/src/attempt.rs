//! One attempt: one unit of work as the user feels it, with all its tries and waits, and what it was worth.

use serde::{Deserialize, Serialize};

use crate::outcome::Outcome;
use crate::record::{Handshake, ToolCall, TryRecord, Usage};

/// Stands where the text of a finding was that is not kept.
pub const TEXT_NOT_KEPT: &str = "(not kept)";

/// What an attempt was worth against its floor and its check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Whole, right, and within the floor.
    Pass,
    /// Whole and right, but later than the floor.
    TooSlow,
    /// Whole, but the check of the task refused the answer.
    WrongAnswer,
    /// Not a whole answer; the class says why.
    Failed,
    /// The request was at fault (budget too small, parameter refused): counts neither way, voids the burst.
    ConfigFinding,
}

impl Verdict {
    /// The stable spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::TooSlow => "too_slow",
            Self::WrongAnswer => "wrong_answer",
            Self::Failed => "failed",
            Self::ConfigFinding => "config_finding",
        }
    }

    /// True when the whole answer arrived and was right, in time or not: its latency is a finished one.
    pub const fn finished(self) -> bool {
        matches!(self, Self::Pass | Self::TooSlow)
    }
}

/// One attempt as it is stored: one row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// Number within the burst, from 0; the warm-up attempt is kept apart by `warmup`.
    pub index: u32,
    /// A warm-up attempt: measured, never counted.
    pub warmup: bool,
    /// Intended start, microseconds since the Unix epoch (UTC).
    pub intended_unix_us: i64,
    /// How much later than intended the first request began to be written, microseconds.
    pub skew_us: u64,
    /// From the intended start to the last byte of the whole answer (or to the moment of the last failure), over all
    /// tries and waits, microseconds.
    pub latency_us: u64,
    /// Verdict against floor and check.
    pub verdict: Verdict,
    /// Class of the last try.
    pub outcome: Outcome,
    /// Retries made (tries - 1).
    pub retries: u32,
    /// TTFT from the intended start, tries and waits included, microseconds.
    pub ttft_us: Option<u64>,
    /// First answer from the intended start, tries and waits included, microseconds.
    pub first_answer_us: Option<u64>,
    /// Cause and next step when the request itself was at fault.
    pub finding: Option<String>,
    /// Why the check refused the answer.
    pub check_note: Option<String>,
    /// All tries in order.
    pub tries: Vec<TryRecord>,
}

impl AttemptRecord {
    /// Takes out what people wrote or were answered, and what a server could tell a person by: answers, reasoning, arguments
    /// of tool calls, words of the server, request ids, and what a check or a finding quotes of them. Figures, classes and
    /// names of tools stay. A finding stays one ([`TEXT_NOT_KEPT`]), since it voids its burst.
    pub fn forget_texts(&mut self) {
        self.check_note = None;
        if let Some(finding) = &mut self.finding {
            TEXT_NOT_KEPT.clone_into(finding);
        }
        self.tries.iter_mut().for_each(TryRecord::forget_texts);
    }

    /// The last try: the one whose answer counts. `None` only for an attempt that never began.
    pub fn last(&self) -> Option<&TryRecord> {
        self.tries.last()
    }

    /// Usage of the last try.
    pub fn usage(&self) -> Usage {
        self.last().map(|t| t.usage).unwrap_or_default()
    }

    /// Handshake of the first try.
    pub fn handshake(&self) -> Handshake {
        self.tries.first().map(|t| t.handshake).unwrap_or_default()
    }

    /// Tool calls of the answer.
    pub fn tool_calls(&self) -> &[ToolCall] {
        self.last().map_or(&[], |t| &t.tool_calls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_texts_no_word_of_an_answer_is_left_and_every_figure_is() {
        let mut one = TryRecord::new(Outcome::Ok);
        let secret = || "personal words".to_owned();
        (one.content, one.reasoning) = (secret(), secret());
        (one.request_id, one.message, one.ttft_us) = (Some(secret()), Some(secret()), Some(7));
        one.tool_calls = vec![ToolCall { name: "grep".into(), arguments: secret() }];
        let mut attempt = AttemptRecord {
            index: 0,
            warmup: false,
            intended_unix_us: 1,
            skew_us: 2,
            latency_us: 3,
            verdict: Verdict::WrongAnswer,
            outcome: Outcome::Ok,
            retries: 0,
            ttft_us: Some(4),
            first_answer_us: None,
            finding: Some(secret()),
            check_note: Some(secret()),
            tries: vec![one],
        };
        attempt.forget_texts();
        let text = serde_json::to_string(&attempt).unwrap();
        assert!(!text.contains("personal"), "{text}");
        assert_eq!((attempt.latency_us, attempt.tries[0].ttft_us, attempt.tool_calls().len()), (3, Some(7), 1));
        assert_eq!(attempt.finding.as_deref(), Some(TEXT_NOT_KEPT), "a finding voids its burst, with words or without");
    }
}
