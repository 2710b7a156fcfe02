//! What one try left behind: one HTTP exchange with every moment that was seen.
//!
//! Moments count in microseconds from the last byte of the (first) request sent, unless their name says otherwise.
//! A moment that was not seen is `None`, never 0.

use serde::{Deserialize, Serialize};

use crate::outcome::Outcome;

/// Token counts as the server reported them. `None` is "not reported", which is not 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The whole prompt, cached part included.
    pub prompt: Option<u64>,
    /// All generated tokens, reasoning included.
    pub completion: Option<u64>,
    /// Prompt tokens read from the prefix cache.
    pub cached: Option<u64>,
    /// Prompt tokens written to the prefix cache.
    pub cache_write: Option<u64>,
    /// Generated tokens that were reasoning.
    pub reasoning: Option<u64>,
}

/// One tool call of an answer, put together from its pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Name of the tool.
    pub name: String,
    /// Its arguments, as sent (JSON text).
    pub arguments: String,
}

/// What it took to get a connection. All zero-length steps that did not happen are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handshake {
    /// The connection had carried an earlier request.
    pub reused: bool,
    /// Name resolution, microseconds.
    pub dns_us: Option<u64>,
    /// TCP connect, microseconds.
    pub connect_us: Option<u64>,
    /// TLS handshake (and the proxy's CONNECT), microseconds.
    pub tls_us: Option<u64>,
}

/// One try: one HTTP exchange, measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TryRecord {
    /// How it ended.
    pub outcome: Outcome,
    /// HTTP status of the last response, `None` when there was none.
    pub http_status: Option<u16>,
    /// HTTP version spoken: `1.1` or `2`.
    pub http_version: Option<String>,
    /// The connection.
    pub handshake: Handshake,
    /// From the begin of the try to the last byte of the request written, microseconds.
    pub sent_us: u64,
    /// First byte of the response head.
    pub first_byte_us: Option<u64>,
    /// First token of any kind (TTFT).
    pub ttft_us: Option<u64>,
    /// First token that is no reasoning.
    pub first_answer_us: Option<u64>,
    /// Last chunk with content of any kind.
    pub last_token_us: Option<u64>,
    /// Terminal signal, or the moment at which the failure was known.
    pub end_us: Option<u64>,
    /// Last byte of the response that was read.
    pub last_byte_us: Option<u64>,
    /// Body bytes received, as sent (before decompression).
    pub body_bytes: u64,
    /// Events with answer content or tool-call pieces (not tokens).
    pub output_chunks: u32,
    /// Events with reasoning content.
    pub reasoning_chunks: u32,
    /// Longest gap between two content chunks, microseconds.
    pub max_gap_us: Option<u64>,
    /// The answer's text, cut at the client's bound.
    pub content: String,
    /// The reasoning text, cut at the client's bound.
    pub reasoning: String,
    /// Tool calls of the answer.
    pub tool_calls: Vec<ToolCall>,
    /// As sent by the server.
    pub finish_reason: Option<String>,
    /// Token counts as reported.
    pub usage: Usage,
    /// The `model` named in the answer.
    pub model: Option<String>,
    /// `system_fingerprint` of the answer.
    pub system_fingerprint: Option<String>,
    /// The server's request id, from body or headers.
    pub request_id: Option<String>,
    /// The answer came as an event stream.
    pub streamed: Option<bool>,
    /// All content came at one moment, although a stream was asked for.
    pub bursty: bool,
    /// The error arrived inside a 200.
    pub in_band: bool,
    /// What the server asked for, milliseconds.
    pub retry_after_ms: Option<u64>,
    /// Redirects followed.
    pub redirects: u32,
    /// The server's or the system's words about a failure; holds no key.
    pub message: Option<String>,
    /// Headers about rate limits, as sent.
    pub rate_limits: Vec<(String, String)>,
    /// The server's clock minus ours at the first byte, milliseconds (from `Date`, so +-1 s).
    pub clock_skew_ms: Option<i64>,
    /// Longest late wake-up of this client during the try, microseconds.
    pub own_lag_us: u64,
}

impl TryRecord {
    /// Takes out what somebody wrote or was answered, and what a server could tell a person by. Figures, classes and names
    /// of tools stay.
    pub fn forget_texts(&mut self) {
        self.content.clear();
        self.reasoning.clear();
        self.request_id = None;
        self.message = None;
        self.tool_calls.iter_mut().for_each(|call| call.arguments.clear());
    }

    /// A record in which nothing was seen yet.
    pub fn new(outcome: Outcome) -> Self {
        Self {
            outcome,
            http_status: None,
            http_version: None,
            handshake: Handshake::default(),
            sent_us: 0,
            first_byte_us: None,
            ttft_us: None,
            first_answer_us: None,
            last_token_us: None,
            end_us: None,
            last_byte_us: None,
            body_bytes: 0,
            output_chunks: 0,
            reasoning_chunks: 0,
            max_gap_us: None,
            content: String::new(),
            reasoning: String::new(),
            tool_calls: Vec::new(),
            finish_reason: None,
            usage: Usage::default(),
            model: None,
            system_fingerprint: None,
            request_id: None,
            streamed: None,
            bursty: false,
            in_band: false,
            retry_after_ms: None,
            redirects: 0,
            message: None,
            rate_limits: Vec::new(),
            clock_skew_ms: None,
            own_lag_us: 0,
        }
    }

    /// Time per output token after the first, microseconds: (last token - first token) / (tokens - 1).
    ///
    /// `None` without reported tokens, with fewer than two, or when all content came at one moment (a rate made of one
    /// packet is no rate).
    pub fn tpot_us(&self) -> Option<u64> {
        let tokens = self.usage.completion.filter(|n| *n > 1)?;
        let span = self.last_token_us?.checked_sub(self.ttft_us?)?;
        (!self.bursty && span > 0).then(|| span / (tokens - 1))
    }
}
