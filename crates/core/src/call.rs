//! A call: one model request of a harness, as the measuring proxy saw it.
//!
//! Words only. What a prompt shares with earlier ones is worked out in [`crate::prefix`]; what a session amounts to in
//! [`crate::session`].

use serde::{Deserialize, Serialize};

use crate::lane::Api;
use crate::record::TryRecord;

/// Headers that name a session, by lower-case name, the surest first. Seen with opencode (`x-session-id`,
/// `x-session-affinity`), codex (`session-id`, `thread-id`, before that `session_id`, `conversation_id`); the first is
/// for everybody else. `x-client-request-id` is not among them: some harnesses put the session there, others a new id
/// for each request.
pub const SESSION_HEADERS: [&str; 8] = [
    "x-peaklane-session",
    "x-session-id",
    "session-id",
    "session_id",
    "x-session-affinity",
    "thread-id",
    "conversation_id",
    "x-claude-code-session-id",
];

/// How it is known to which session a call belongs, the surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionBy {
    /// The URL says so: `/s/<session>/v1/...`.
    Path,
    /// A header says so.
    Header,
    /// A field of the body says so: `prompt_cache_key`, `user`, `metadata`. Such a name may be a person's.
    Field,
    /// Its prompt goes on from one of that session.
    Prefix,
    /// Nothing said so and no earlier prompt begins alike: it began a session of its own.
    New,
}

impl SessionBy {
    /// All, in their order.
    pub const ALL: [Self; 5] = [Self::Path, Self::Header, Self::Field, Self::Prefix, Self::New];

    /// The stable spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Header => "header",
            Self::Field => "field",
            Self::Prefix => "prefix",
            Self::New => "new",
        }
    }
}

/// What makes the first difference between a prompt and the one that it should have gone on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakKind {
    /// A date, a time of day or an age.
    Clock,
    /// A hash, an id, a counter: another one in each request.
    Token,
    /// The state of a repository or a folder: branch, commit, status, a listing of files.
    FileState,
    /// The same tools in another order.
    ToolOrder,
    /// A tool came, went, or has other parameters.
    ToolList,
    /// The words about a tool differ.
    ToolDescription,
    /// Reasoning of an earlier turn was dropped.
    ReasoningDropped,
    /// A message was taken out of the middle of the history.
    MessageRemoved,
    /// A message was put into the middle of the history.
    MessageInserted,
    /// The text of an earlier message differs (compaction, pruned tool output, moved reminder).
    HistoryRewritten,
    /// The history is shorter and nothing else changed (a compaction, a branch, an undo).
    HistoryCut,
    /// The system text differs in another way.
    System,
    /// None of the above.
    Other,
}

impl BreakKind {
    /// All, in their order.
    pub const ALL: [Self; 13] = [
        Self::Clock,
        Self::Token,
        Self::FileState,
        Self::ToolOrder,
        Self::ToolList,
        Self::ToolDescription,
        Self::ReasoningDropped,
        Self::MessageRemoved,
        Self::MessageInserted,
        Self::HistoryRewritten,
        Self::HistoryCut,
        Self::System,
        Self::Other,
    ];

    /// The stable spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Token => "token",
            Self::FileState => "file_state",
            Self::ToolOrder => "tool_order",
            Self::ToolList => "tool_list",
            Self::ToolDescription => "tool_description",
            Self::ReasoningDropped => "reasoning_dropped",
            Self::MessageRemoved => "message_removed",
            Self::MessageInserted => "message_inserted",
            Self::HistoryRewritten => "history_rewritten",
            Self::HistoryCut => "history_cut",
            Self::System => "system",
            Self::Other => "other",
        }
    }
}

/// The first place at which a prompt differs from the former one of its lineage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Divergence {
    /// The segment of the former prompt: `tool[6]`, `system`, `msg[1]/user`.
    pub segment: String,
    /// The place in the former body, as a field path: `messages[0].content`, `tools[3].function.description`.
    pub path: String,
    /// What sort of change it is.
    pub kind: BreakKind,
    /// What stood there, short, with what looks like a secret taken out. Empty where texts are not kept.
    pub before: String,
    /// What stands there now, alike.
    pub after: String,
}

/// How much of a prompt an ideal prefix cache could have served. All sizes are bytes of the canonical prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrefixFigures {
    /// The whole prompt.
    pub prompt_bytes: u64,
    /// Tools, system texts and messages in it.
    pub segments: u32,
    /// A call beside the main lineage: a title, a commit message. It has no former call.
    pub helper: bool,
    /// Number (`seq`) of the former call of the lineage; `None` for the first and for helper calls.
    pub former_seq: Option<u32>,
    /// Size of that call's prompt.
    pub former_bytes: Option<u64>,
    /// Bytes that both begin with.
    pub common_bytes: Option<u64>,
    /// The same when the system text stands before the tools, as some chat templates have it.
    pub common_other_order_bytes: Option<u64>,
    /// `false`: the former text was no longer in memory, and `common_bytes` counts whole 64-byte blocks.
    pub exact: bool,
    /// Longest beginning shared with any earlier prompt of the session, in whole 64-byte blocks unless it is the
    /// former call's. `None` for the first call of a session.
    pub best_bytes: Option<u64>,
    /// Number of the call that it is shared with.
    pub best_seq: Option<u32>,
    /// The first difference; `None` when the former prompt is repeated whole, or there is none.
    pub divergence: Option<Divergence>,
}

impl PrefixFigures {
    /// Share of the former prompt that this one repeats as its prefix: 1.0 is append-only.
    pub fn reuse(&self) -> Option<f64> {
        share(self.common_bytes?, self.former_bytes?)
    }

    /// The same bytes as a share of this prompt: what a cache can serve of it.
    pub fn warm(&self) -> Option<f64> {
        share(self.common_bytes?, self.prompt_bytes)
    }

    /// Share of this prompt that any earlier one of the session could have warmed.
    pub fn reuse_best(&self) -> Option<f64> {
        share(self.best_bytes?, self.prompt_bytes)
    }

    /// Bytes of the former prompt behind the common beginning.
    pub fn lost_bytes(&self) -> Option<u64> {
        self.former_bytes?.checked_sub(self.common_bytes?)
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// How the proxy handled a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// All that came was handed on.
    Whole,
    /// The client left before the end, and the upstream was closed.
    ClientLeft,
    /// The client left before the end, and the answer was read to its end without it.
    Drained,
    /// The upstream gave no answer, and the proxy gave one itself (502, 504).
    NoUpstream,
}

impl Delivery {
    /// All, in their order.
    pub const ALL: [Self; 4] = [Self::Whole, Self::ClientLeft, Self::Drained, Self::NoUpstream];

    /// The stable spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::ClientLeft => "client_left",
            Self::Drained => "drained",
            Self::NoUpstream => "no_upstream",
        }
    }
}

/// What of a call was not measured, although its bytes went through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// The request is longer than what is kept of one for measuring.
    RequestTooLong,
    /// All memory for requests that wait to be measured was in use.
    Busy,
    /// The request is no prompt that can be read (broken JSON, an unknown coding).
    Unreadable,
}

impl Gap {
    /// All, in their order.
    pub const ALL: [Self; 3] = [Self::RequestTooLong, Self::Busy, Self::Unreadable];

    /// The stable spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RequestTooLong => "request_too_long",
            Self::Busy => "busy",
            Self::Unreadable => "unreadable",
        }
    }
}

/// One call of a session, measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// Unique: process start and number.
    pub id: String,
    /// The session.
    pub session: String,
    /// How that is known.
    pub session_by: SessionBy,
    /// Number of the call within its session as this proxy counted, from 1.
    pub seq: u32,
    /// The harness as its `User-Agent` names it, cut short.
    pub harness: Option<String>,
    /// Lane of the configuration, where upstreams have names.
    pub lane: Option<String>,
    /// When the request's first byte came, microseconds since the Unix epoch.
    pub started_unix_us: i64,
    /// Path as the upstream got it, without its query.
    pub path: String,
    /// What is spoken; `None` for a path that is no inference.
    pub api: Option<Api>,
    /// The model asked for.
    pub model: Option<String>,
    /// Bytes of the request's body as sent.
    pub request_bytes: u64,
    /// Tools offered.
    pub tools: u32,
    /// From the request's first byte at the proxy to its last byte written to the upstream, microseconds. The times of
    /// `record` count from there.
    pub sent_us: u64,
    /// Whole time at the proxy: from the request's first byte to the last byte handed on, microseconds.
    pub total_us: u64,
    /// What was measured, as the lane client measures.
    pub record: TryRecord,
    /// Tokens that the proxy had to estimate because the server reported none: prompt and completion.
    pub estimated_prompt_tokens: Option<u64>,
    /// Estimated tokens of the answer, reasoning included.
    pub estimated_completion_tokens: Option<u64>,
    /// `stream_options.include_usage` was put in by the proxy.
    pub usage_injected: bool,
    /// Number of the same request body in a row of the session: 0 for the first, 1 for its first repeat by the harness.
    pub retry: u32,
    /// What a prefix cache could have served. `None` where the prompt was not measured.
    pub prefix: Option<PrefixFigures>,
    /// How the bytes were handed on.
    pub delivery: Delivery,
    /// What was not measured.
    pub gap: Option<Gap>,
}

impl CallRecord {
    /// A call of chat completions over `/s/<session>` that was handed on whole, and of which nothing else is known: what
    /// is measured is set by whoever measured it, and stays blank or 0 bytes and microseconds until then.
    pub fn new(session: &str, seq: u32, record: TryRecord) -> Self {
        Self {
            id: format!("{session}-{seq:08}"),
            session: session.to_owned(),
            session_by: SessionBy::Path,
            seq,
            harness: None,
            lane: None,
            started_unix_us: 0,
            path: "/v1/chat/completions".to_owned(),
            api: Some(Api::Chat),
            model: None,
            request_bytes: 0,
            tools: 0,
            sent_us: 0,
            total_us: 0,
            record,
            estimated_prompt_tokens: None,
            estimated_completion_tokens: None,
            usage_injected: false,
            retry: 0,
            prefix: None,
            delivery: Delivery::Whole,
            gap: None,
        }
    }

    /// Takes out what people wrote or were answered, and what a server could tell a person by: texts of the answer,
    /// arguments of tool calls, words of the server, request ids, and the pieces of two prompts where they part. Figures,
    /// classes, field paths and names of tools stay. The session's name stays too: see [`SessionBy::Field`] for the one
    /// that may be a person's.
    pub fn forget_texts(&mut self) {
        self.record.forget_texts();
        if let Some(found) = self.prefix.as_mut().and_then(|prefix| prefix.divergence.as_mut()) {
            found.before.clear();
            found.after.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;
    use crate::record::ToolCall;

    #[test]
    fn shares_are_of_the_former_and_of_the_new_prompt_and_blank_where_there_is_none() {
        let figures = PrefixFigures {
            prompt_bytes: 400,
            former_bytes: Some(200),
            common_bytes: Some(100),
            ..PrefixFigures::default()
        };
        assert_eq!((figures.reuse(), figures.warm(), figures.lost_bytes()), (Some(0.5), Some(0.25), Some(100)));
        let first = PrefixFigures { prompt_bytes: 400, ..PrefixFigures::default() };
        assert_eq!((first.reuse(), first.warm(), first.lost_bytes(), first.reuse_best()), (None, None, None, None));
    }

    #[test]
    fn without_texts_no_word_of_a_prompt_or_an_answer_is_left_and_every_figure_is() {
        let secret = || "personal words".to_owned();
        let mut record = TryRecord::new(Outcome::Ok);
        (record.content, record.reasoning, record.ttft_us) = (secret(), secret(), Some(7));
        (record.request_id, record.message) = (Some(secret()), Some(secret()));
        record.tool_calls = vec![ToolCall { name: "grep".into(), arguments: secret() }];
        let divergence = Divergence {
            segment: "system".into(),
            path: "messages[0].content".into(),
            kind: BreakKind::Clock,
            before: secret(),
            after: secret(),
        };
        let prefix =
            PrefixFigures { prompt_bytes: 400, divergence: Some(divergence.clone()), ..PrefixFigures::default() };
        let mut call = CallRecord {
            started_unix_us: 1,
            request_bytes: 2,
            sent_us: 3,
            total_us: 4,
            prefix: Some(prefix),
            ..CallRecord::new("s", 1, record)
        };
        call.forget_texts();
        let text = serde_json::to_string(&call).unwrap();
        assert!(!text.contains("personal"), "{text}");
        let kept = call.prefix.and_then(|prefix| prefix.divergence).unwrap();
        assert_eq!((kept.path, kept.kind), (divergence.path, BreakKind::Clock));
        assert_eq!((call.record.ttft_us, call.record.tool_calls[0].name.as_str()), (Some(7), "grep"));
    }
}
