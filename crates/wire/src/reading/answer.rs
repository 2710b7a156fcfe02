//! The answer as it grows: text, tool calls, token moments, counts.

use peaklane_core::outcome::Outcome;
use peaklane_core::record::{ToolCall, Usage};

/// Most text that is kept of one answer, bytes. Counting and timing go on beyond it; only the text is cut.
pub(crate) const MAX_TEXT_BYTES: usize = 8 << 20;
/// Most tool calls that one answer may hold.
const MAX_TOOL_CALLS: usize = 256;

/// A failure that the answer itself told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) outcome: Outcome,
    pub(crate) message: Option<String>,
    pub(crate) retry_after_ms: Option<u64>,
}

/// What the events of one response have said so far.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) content: String,
    pub(crate) reasoning: String,
    tools: Vec<(Slot, ToolCall)>,
    pub(crate) finish_reason: Option<String>,
    pub(crate) usage: Usage,
    /// Anthropic's parts of the prompt: input, cache read, cache write.
    pub(crate) input_parts: [Option<u64>; 3],
    pub(crate) model: Option<String>,
    pub(crate) fingerprint: Option<String>,
    pub(crate) id: Option<String>,
    pub(crate) first_token_us: Option<u64>,
    pub(crate) first_answer_us: Option<u64>,
    pub(crate) last_token_us: Option<u64>,
    pub(crate) max_gap_us: Option<u64>,
    pub(crate) output_chunks: u32,
    pub(crate) reasoning_chunks: u32,
    /// `[DONE]`, `message_stop`, `response.completed` or alike was seen.
    pub(crate) terminal: bool,
    pub(crate) failure: Option<Failure>,
    said_answer: bool,
    said_reasoning: bool,
}

/// How the pieces of one tool call find together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) index: Option<u64>,
    pub(crate) id: Option<String>,
}

impl Answer {
    /// Answer text of the event at hand. Empty text is no token.
    pub(crate) fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.said_answer = true;
            append(&mut self.content, text);
        }
    }

    /// Reasoning text of the event at hand.
    pub(crate) fn think(&mut self, text: &str) {
        if !text.is_empty() {
            self.said_reasoning = true;
            append(&mut self.reasoning, text);
        }
    }

    /// A piece of a tool call: a name or an argument text that is not empty is a token.
    pub(crate) fn tool(&mut self, slot: &Slot, name: &str, arguments: &str) {
        if !name.is_empty() || !arguments.is_empty() {
            self.said_answer = true;
        }
        let known = self.tools.iter().rposition(|(s, call)| match (slot.index, &slot.id) {
            (Some(index), id) => s.index == Some(index) && !(id.is_some() && s.id.is_some() && *id != s.id),
            (None, Some(id)) => s.id.as_ref() == Some(id),
            // Neither index nor id: goes on with the last call, unless a second name begins a new one.
            (None, None) => name.is_empty() || call.name.is_empty(),
        });
        match known {
            Some(at) => {
                let (s, call) = &mut self.tools[at];
                if s.id.is_none() {
                    s.id.clone_from(&slot.id);
                }
                // Some servers repeat the whole name in every piece.
                if call.name != name {
                    append(&mut call.name, name);
                }
                append(&mut call.arguments, arguments);
            }
            None if self.tools.len() < MAX_TOOL_CALLS
                && (!name.is_empty() || !arguments.is_empty() || slot.id.is_some()) =>
            {
                self.tools.push((slot.clone(), ToolCall { name: name.to_owned(), arguments: arguments.to_owned() }));
            }
            None => {}
        }
    }

    /// Closes one event: what it said counts from `at_us`, the arrival of its last byte.
    pub(crate) fn close_event(&mut self, at_us: u64) {
        if !(self.said_answer || self.said_reasoning) {
            return;
        }
        self.output_chunks += u32::from(self.said_answer);
        self.reasoning_chunks += u32::from(self.said_reasoning);
        if self.said_answer {
            self.first_answer_us.get_or_insert(at_us);
        }
        if let Some(last) = self.last_token_us {
            let gap = at_us.saturating_sub(last);
            self.max_gap_us = Some(self.max_gap_us.map_or(gap, |g| g.max(gap)));
        }
        self.first_token_us.get_or_insert(at_us);
        self.last_token_us = Some(at_us);
        (self.said_answer, self.said_reasoning) = (false, false);
    }

    /// Was anything said that is no reasoning?
    pub(crate) fn said_something(&self) -> bool {
        self.output_chunks > 0 || self.said_answer
    }

    /// True while the event at hand or an earlier one carried text or reasoning.
    pub(crate) fn has_text(&self) -> bool {
        !self.content.is_empty() || !self.reasoning.is_empty() || !self.tools.is_empty()
    }

    pub(crate) fn fail(&mut self, outcome: Outcome, message: Option<String>, retry_after_ms: Option<u64>) {
        if self.failure.is_none() {
            self.failure = Some(Failure { outcome, message, retry_after_ms });
        }
    }

    pub(crate) fn take_tools(&mut self) -> Vec<ToolCall> {
        std::mem::take(&mut self.tools).into_iter().map(|(_, call)| call).collect()
    }

    pub(crate) fn note_model(&mut self, model: Option<&str>) {
        if let Some(model) = model.filter(|m| !m.is_empty() && self.model.as_deref() != Some(m)) {
            self.model = Some(crate::failure::shorten(model));
        }
    }

    pub(crate) fn note_id(&mut self, id: Option<&str>) {
        if let (Some(id), None) = (id.filter(|i| !i.is_empty()), &self.id) {
            self.id = Some(crate::failure::shorten(id));
        }
    }

    pub(crate) fn note_fingerprint(&mut self, fingerprint: Option<&str>) {
        if let (Some(print), None) = (fingerprint.filter(|f| !f.is_empty()), &self.fingerprint) {
            self.fingerprint = Some(crate::failure::shorten(print));
        }
    }

    pub(crate) fn note_finish(&mut self, reason: Option<&str>) {
        if let Some(reason) = reason.filter(|r| !r.is_empty()) {
            self.finish_reason = Some(crate::failure::shorten(reason));
        }
    }
}

/// Appends up to the bound, cutting at a character.
fn append(to: &mut String, text: &str) {
    let room = MAX_TEXT_BYTES.saturating_sub(to.len());
    if text.len() <= room {
        to.push_str(text);
    } else {
        let cut = (0..=room).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
        to.push_str(&text[..cut]);
    }
}
