//! Reads one response: decoded body bytes with their arrival times go in, a [`TryRecord`] comes out.
//!
//! Knows no socket and no clock, so the lane client, the proxy and the replay of recordings share it. Every moment is
//! given by the caller, in microseconds from the last byte of the (first) request sent.

mod answer;
mod chat;
mod messages;
mod responses;
mod usage;
mod whole;

use peaklane_core::lane::Api;
use peaklane_core::outcome::Outcome;
use peaklane_core::record::TryRecord;
use serde_json::Value;

use self::answer::Answer;
use self::whole::Whole;
use crate::decode::Decoder;
use crate::failure;
use crate::headers::Headers;
use crate::retry_after::retry_after_ms;
use crate::sse::{Item, Splitter};

/// Longest body that is kept for reading as a whole (JSON answers), bytes.
const MAX_WHOLE_BYTES: usize = 32 << 20;
/// Longest error body that is kept, bytes.
const MAX_ERROR_BYTES: usize = 1 << 20;

/// How the bytes of a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As HTTP promised: last chunk, full length, or the close of a body without length.
    Clean,
    /// The connection was closed before that.
    Cut,
    /// The connection was reset or broke.
    Reset,
    /// A limit of ours ended it.
    Limit(Outcome),
}

#[derive(Debug)]
enum Body {
    /// Nothing but white space so far, and the content type did not tell.
    Undecided(Vec<u8>),
    /// An event stream. The first bytes are kept until an event was seen: some servers put plain error bodies there.
    Events { splitter: Splitter, before_events: Vec<u8>, seen_event: bool },
    /// To be read as a whole at its end.
    Whole(Vec<u8>),
    /// The body of an error status.
    Error(Vec<u8>),
}

/// The reader of one response.
#[derive(Debug)]
pub struct Reading {
    api: Api,
    now_unix_ms: i64,
    status: u16,
    headers: Headers,
    decoder: Option<Decoder>,
    body: Body,
    answer: Answer,
    streamed: bool,
    in_band: bool,
    /// When the outcome was known, before the end of the bytes.
    known_us: Option<u64>,
    body_bytes: u64,
    bad: Option<String>,
}

impl Reading {
    /// Begins with the head of a response. `now_unix_ms` is the wall clock at its first byte.
    pub fn new(api: Api, status: u16, headers: Headers, now_unix_ms: i64) -> Self {
        let content_type = headers.get("content-type").unwrap_or_default().to_ascii_lowercase();
        let body = if status >= 300 {
            Body::Error(Vec::new())
        } else if content_type.contains("event-stream") {
            Body::Events { splitter: Splitter::new(), before_events: Vec::new(), seen_event: false }
        } else {
            Body::Undecided(Vec::new())
        };
        let decoder = Decoder::for_coding(headers.get("content-encoding"));
        let streamed = matches!(body, Body::Events { .. });
        let mut reading = Self {
            api,
            now_unix_ms,
            status,
            headers,
            decoder,
            body,
            answer: Answer::default(),
            streamed,
            in_band: false,
            known_us: None,
            body_bytes: 0,
            bad: None,
        };
        if reading.decoder.is_none() {
            let coding = reading.headers.get("content-encoding").unwrap_or_default().to_owned();
            reading.bad = Some(format!("the content coding `{}` is not known", failure::shorten(&coding)));
        }
        reading
    }

    /// Takes body bytes that arrived at `at_us`. Returns true when the outcome is known and nothing that follows
    /// can change it.
    pub fn body(&mut self, bytes: &[u8], at_us: u64) -> bool {
        self.body_bytes += bytes.len() as u64;
        if self.known_us.is_some() || self.bad.is_some() {
            return true;
        }
        let Some(mut decoder) = self.decoder.take() else { return true };
        let pushed = decoder.push(bytes, |plain| self.plain(plain, at_us));
        if let Err(error) = pushed {
            self.broken(format!("the compressed body cannot be read: {error}"), at_us);
        }
        self.decoder = Some(decoder);
        self.known_us.is_some()
    }

    fn broken(&mut self, why: String, at_us: u64) {
        if self.known_us.is_none() {
            self.bad = Some(why);
            self.known_us = Some(at_us);
        }
    }

    fn plain(&mut self, bytes: &[u8], at_us: u64) {
        if let Body::Undecided(seen) = &mut self.body {
            seen.extend_from_slice(bytes);
            if seen.trim_ascii_start().is_empty() {
                // White space before an answer says nothing (some gateways send it to keep the connection), and
                // without end it must not eat memory.
                seen.clear();
                return;
            }
            let held = std::mem::take(seen);
            if looks_like_events(held.trim_ascii_start()) {
                self.streamed = true;
                self.body = Body::Events { splitter: Splitter::new(), before_events: Vec::new(), seen_event: false };
            } else {
                self.body = Body::Whole(Vec::new());
            }
            return self.plain(&held, at_us);
        }
        match &mut self.body {
            Body::Undecided(_) => {}
            Body::Error(kept) => {
                let room = MAX_ERROR_BYTES.saturating_sub(kept.len());
                kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            Body::Whole(kept) => {
                if kept.len() + bytes.len() > MAX_WHOLE_BYTES {
                    self.broken(format!("a body of more than {} MiB", MAX_WHOLE_BYTES >> 20), at_us);
                } else {
                    kept.extend_from_slice(bytes);
                }
            }
            Body::Events { splitter, before_events, seen_event } => {
                if !*seen_event && before_events.len() < MAX_ERROR_BYTES {
                    let room = MAX_ERROR_BYTES - before_events.len();
                    before_events.extend_from_slice(&bytes[..bytes.len().min(room)]);
                }
                let mut splitter = std::mem::take(splitter);
                let pushed = splitter.push(bytes, |item| self.item(item, at_us));
                if let Body::Events { splitter: place, .. } = &mut self.body {
                    *place = splitter;
                }
                if let Err(error) = pushed {
                    self.broken(error.to_string(), at_us);
                }
            }
        }
    }

    fn item(&mut self, item: Item<'_>, at_us: u64) {
        if self.known_us.is_some() {
            return;
        }
        match item {
            Item::Comment => {}
            Item::Bare(line) => {
                if let Ok(value) = serde_json::from_slice::<Value>(line)
                    && failure::is_error(&value)
                {
                    self.fail_in_band(&value);
                }
            }
            Item::Event { name, data } => {
                if let Body::Events { before_events, seen_event, .. } = &mut self.body
                    && !*seen_event
                {
                    *seen_event = true;
                    *before_events = Vec::new();
                }
                self.event(name, data, at_us);
            }
        }
        self.answer.close_event(at_us);
        if self.answer.terminal || self.answer.failure.is_some() {
            self.known_us = Some(at_us);
        }
    }

    fn event(&mut self, name: &[u8], data: &[u8], at_us: u64) {
        let trimmed = data.trim_ascii();
        // A keep-alive wrapped into a data field (`data: : ping`) and an empty one are noise.
        if trimmed.is_empty() || trimmed[0] == b':' {
            return;
        }
        if trimmed == b"[DONE]" {
            self.answer.terminal = true;
            return;
        }
        match std::str::from_utf8(data) {
            Ok(text) => self.event_text(name, text, at_us),
            // One broken byte becomes U+FFFD; the stream goes on.
            Err(_) => self.event_text(name, &String::from_utf8_lossy(data), at_us),
        }
    }

    fn event_text(&mut self, name: &[u8], text: &str, at_us: u64) {
        match self.api {
            Api::Chat | Api::Completions => match serde_json::from_str::<chat::Chunk<'_>>(text) {
                Ok(chunk) => {
                    chat::take(&mut self.answer, &chunk, false);
                    if let Some(error) = chunk.error.as_ref().filter(|e| !e.is_null()) {
                        self.fail_in_band(&serde_json::json!({ "error": error }));
                    } else if name == b"error" {
                        self.fail_unshaped(text);
                    }
                }
                Err(_) => self.odd(name, text, at_us),
            },
            Api::Messages | Api::Responses => match serde_json::from_str::<Value>(text) {
                Ok(mut event) if event.is_object() => {
                    // The event's name stands in for a missing `type`.
                    if event.get("type").is_none()
                        && let Ok(name) = std::str::from_utf8(name)
                        && !name.is_empty()
                    {
                        event["type"] = Value::from(name);
                    }
                    let mut failed = None;
                    let note = |_: &mut Answer, event: &Value| failed = Some(event.clone());
                    if self.api == Api::Messages {
                        messages::take(&mut self.answer, &event, note);
                    } else {
                        responses::take(&mut self.answer, &event, note);
                    }
                    if let Some(event) = failed {
                        self.fail_in_band(&event);
                    }
                }
                Ok(_) => {}
                Err(_) => self.odd(name, text, at_us),
            },
        }
    }

    /// An event that has not the shape of an answer: an error, JSON of another kind (ignored), or broken.
    fn odd(&mut self, name: &[u8], text: &str, at_us: u64) {
        match serde_json::from_str::<Value>(text) {
            Ok(value) if failure::is_error(&value) || name == b"error" => self.fail_in_band(&value),
            Ok(_) => {}
            Err(_) if name == b"error" => self.fail_unshaped(text),
            // A ping whose data is a bare word is a keep-alive, not a broken answer.
            Err(_) if matches!(name, b"ping" | b"keepalive" | b"keep-alive" | b"heartbeat") => {}
            Err(_) => self.broken(format!("an event that is {}", whole::describe(text)), at_us),
        }
    }

    fn fail_unshaped(&mut self, text: &str) {
        self.fail_in_band(&serde_json::json!({ "error": { "message": text } }));
    }

    fn fail_in_band(&mut self, value: &Value) {
        self.in_band = true;
        let after = retry_after_ms(&self.headers, Some(value), self.now_unix_ms);
        self.answer.fail(failure::in_band(value), failure::message_of(value), after);
    }

    /// True once the outcome is known.
    pub fn is_known(&self) -> bool {
        self.known_us.is_some()
    }

    /// The bytes are over: how, and when. Gives the record of what was seen.
    pub fn finish(mut self, end: End, at_us: u64) -> TryRecord {
        let mut cut_json = false;
        if self.known_us.is_none() && self.bad.is_none() {
            match std::mem::replace(&mut self.body, Body::Undecided(Vec::new())) {
                Body::Events { mut splitter, before_events, seen_event } => {
                    splitter.finish(|item| self.item(item, at_us));
                    if !seen_event && self.known_us.is_none() {
                        self.plain_body_in_events(&before_events, at_us);
                    }
                }
                Body::Whole(body) => match whole::take(&mut self.answer, self.api, &body) {
                    Whole::Answer => {
                        self.answer.close_event(at_us);
                        // A whole answer ends itself; its finish reason may be missing.
                        self.answer.terminal = matches!(end, End::Clean);
                    }
                    Whole::Error(value) => self.fail_in_band(&value),
                    Whole::Bad(why) => self.bad = Some(why),
                    Whole::Cut => cut_json = true,
                },
                Body::Error(body) => self.error_status(&body),
                Body::Undecided(_) => {}
            }
        }
        self.record(end, at_us, cut_json)
    }

    /// An event stream without a single event: a plain error body, perhaps over several lines.
    fn plain_body_in_events(&mut self, body: &[u8], at_us: u64) {
        if let Ok(value) = serde_json::from_slice::<Value>(body)
            && failure::is_error(&value)
        {
            self.fail_in_band(&value);
            self.known_us = Some(at_us);
        }
    }

    fn error_status(&mut self, body: &[u8]) {
        let (value, text) = whole::error_value(body);
        let after = retry_after_ms(&self.headers, value.as_ref(), self.now_unix_ms);
        let message = value.as_ref().and_then(failure::message_of).or_else(|| {
            (!text.is_empty()).then(|| match &value {
                Some(_) => failure::shorten(&text),
                None => whole::describe(&text),
            })
        });
        self.answer.fail(failure::of_status(self.status, value.as_ref(), &text), message, after);
    }

    fn record(mut self, end: End, at_us: u64, cut_json: bool) -> TryRecord {
        let clean = matches!(end, End::Clean);
        let reason = self.answer.finish_reason.as_deref();
        let mut message = None;
        let mut retry_after = None;
        let outcome = if let Some(failure) = self.answer.failure.take() {
            message = failure.message;
            retry_after = failure.retry_after_ms;
            failure.outcome
        } else if let Some(why) = self.bad.take() {
            message = Some(why);
            Outcome::BadBody
        } else if self.answer.terminal || (reason.is_some() && clean) {
            match reason {
                Some(reason) if is_filter(reason) => Outcome::ContentFilter,
                Some("error" | "failed") => {
                    self.in_band = true;
                    Outcome::ServerError
                }
                _ if self.answer.said_something() => Outcome::Ok,
                _ => Outcome::NoAnswer,
            }
        } else {
            match end {
                End::Limit(outcome) => outcome,
                End::Reset => Outcome::ConnReset,
                End::Clean | End::Cut if cut_json => whole::bad_outcome(true, clean, self.body_bytes == 0),
                End::Clean | End::Cut => Outcome::Truncated,
            }
        };
        if message.is_none() {
            message = explain(outcome, end, cut_json);
        }
        let mut record = TryRecord::new(outcome);
        record.http_status = Some(self.status);
        record.end_us = Some(self.known_us.unwrap_or(at_us));
        record.last_byte_us = Some(at_us);
        record.body_bytes = self.body_bytes;
        record.ttft_us = self.answer.first_token_us;
        record.first_answer_us = self.answer.first_answer_us;
        record.last_token_us = self.answer.last_token_us;
        record.max_gap_us = self.answer.max_gap_us;
        record.output_chunks = self.answer.output_chunks;
        record.reasoning_chunks = self.answer.reasoning_chunks;
        record.streamed = Some(self.streamed);
        record.bursty = self.is_bursty();
        record.in_band = self.in_band;
        record.retry_after_ms = retry_after;
        record.message = message;
        record.rate_limits = self.headers.rate_limits();
        record.request_id = ["x-request-id", "request-id", "x-amzn-requestid", "cf-ray"]
            .iter()
            .find_map(|name| self.headers.get(name))
            .map(failure::shorten)
            .or_else(|| self.answer.id.take());
        record.clock_skew_ms = self.headers.get("date").and_then(|d| httpdate::parse_http_date(d).ok()).and_then(|d| {
            let server = d.duration_since(std::time::UNIX_EPOCH).ok()?;
            Some(i64::try_from(server.as_millis()).ok()? - self.now_unix_ms)
        });
        record.tool_calls = self.answer.take_tools();
        record.content = self.answer.content;
        record.reasoning = self.answer.reasoning;
        record.finish_reason = self.answer.finish_reason;
        record.usage = self.answer.usage;
        record.model = self.answer.model;
        record.system_fingerprint = self.answer.fingerprint;
        record
    }

    /// Everything in one packet although several chunks were sent: the first-token time is the total time, gaps are
    /// zero, and the lane's decode rate looks infinite. One packet may be read in two goes, hence the millisecond.
    fn is_bursty(&self) -> bool {
        let chunks = self.answer.output_chunks + self.answer.reasoning_chunks;
        match (self.answer.first_token_us, self.answer.last_token_us) {
            (Some(first), Some(last)) => self.streamed && chunks >= 2 && last - first < 1_000,
            _ => false,
        }
    }
}

fn looks_like_events(start: &[u8]) -> bool {
    [&b"data:"[..], b"event:", b"id:", b"retry:", b":"].iter().any(|prefix| start.starts_with(prefix))
}

fn is_filter(reason: &str) -> bool {
    matches!(
        reason.to_ascii_lowercase().as_str(),
        "content_filter" | "content-filter" | "safety" | "recitation" | "prohibited_content" | "blocklist" | "refusal"
    )
}

/// Words for a failure that the lane did not explain itself.
fn explain(outcome: Outcome, end: End, cut_json: bool) -> Option<String> {
    Some(
        match (outcome, end) {
            (Outcome::Truncated, End::Clean) => "the stream ended without a terminal signal",
            (Outcome::Truncated, _) => "the connection was closed in the middle of the answer",
            (Outcome::ConnReset, _) => "the connection was reset in the middle of the answer",
            (Outcome::BadBody, _) if cut_json => "JSON that stops in the middle",
            (Outcome::NoAnswer, _) => "a well-formed answer in which nothing was said",
            (Outcome::TimeoutIdle, _) => "a gap longer than the idle limit",
            (Outcome::TimeoutTotal, _) => "longer than the total limit",
            _ => return None,
        }
        .to_owned(),
    )
}
