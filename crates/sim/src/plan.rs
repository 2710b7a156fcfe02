//! What one request gets: times and outcome, in simulated time. Knows nothing of sockets or dialects.
//!
//! All moments count from the last byte of the request received (or from the moment at which a slot was free, where
//! the lane has slots).

use std::time::Duration;

/// What one request gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// When the head of the response goes out.
    pub head_at: Duration,
    /// What goes out.
    pub reply: Reply,
    /// The lane's request limit, told in `x-ratelimit-*` headers.
    pub rate_limit: Option<RateLimit>,
}

impl Plan {
    /// A plan without rate-limit headers.
    pub fn new(head_at: Duration, reply: Reply) -> Self {
        Self { head_at, reply, rate_limit: None }
    }

    /// True when all goes well: a client that waits long enough has a whole answer.
    pub fn whole(&self) -> bool {
        matches!(&self.reply, Reply::Answer(Answer { end: End::Whole, .. }))
    }

    /// The moment of the last thing that is sent; `None` for a plan without an end.
    pub fn ends_at(&self) -> Option<Duration> {
        match &self.reply {
            Reply::Answer(answer) => Some(answer.end_at.max(self.head_at)),
            Reply::Refusal(_) | Reply::Raw(_) => Some(self.head_at),
            Reply::Drip(_) | Reply::Nothing => None,
        }
    }
}

/// What goes out.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// An answer of the model, whole or broken.
    Answer(Answer),
    /// An error with a status of its own, in the words of the API asked.
    Refusal(Refusal),
    /// Bytes as they are: a login page, broken JSON.
    Raw(Raw),
    /// A head and then the same piece for ever.
    Drip(Drip),
    /// Not one byte, until the client leaves.
    Nothing,
}

/// An answer in pieces; a piece counts as one token.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Pieces in order of time.
    pub pieces: Vec<Piece>,
    /// Why the model stopped.
    pub finish: Finish,
    /// When the terminal signal (or the break) comes.
    pub end_at: Duration,
    /// How the answer ends.
    pub end: End,
}

impl Answer {
    /// Cuts the answer at a budget of `tokens` pieces, as `max_tokens` does; the end moves to the last piece kept.
    /// A budget that suffices changes nothing.
    pub fn limit(&mut self, tokens: usize) {
        if self.pieces.len() > tokens {
            self.pieces.truncate(tokens);
            self.finish = Finish::Length;
            self.end_at = self.pieces.last().map_or(self.end_at, |piece| piece.at);
        }
    }

    /// All answer text, reasoning left out.
    pub fn text(&self) -> String {
        self.pieces.iter().filter(|p| !p.reasoning).map(|p| p.text.as_str()).collect()
    }

    /// All reasoning text.
    pub fn reasoning(&self) -> String {
        self.pieces.iter().filter(|p| p.reasoning).map(|p| p.text.as_str()).collect()
    }
}

/// One piece of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// When it goes out.
    pub at: Duration,
    /// Its text.
    pub text: String,
    /// It is reasoning, not answer.
    pub reasoning: bool,
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// It had said all.
    Stop,
    /// The token budget was used up.
    Length,
}

/// How an answer ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With the terminal signal of its API.
    Whole,
    /// The response ends well-formed, but without a terminal signal.
    Cut,
    /// The connection is closed before the body was complete.
    Abort,
    /// The connection is reset (over TCP; elsewhere as `Abort`).
    Reset,
    /// An error inside the 200, with this message.
    InBand(String),
}

/// An error with a status of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status, 400 to 599.
    pub status: u16,
    /// The `type` of the error object.
    pub kind: &'static str,
    /// The `code` of the error object.
    pub code: &'static str,
    /// The message for a person.
    pub message: String,
    /// After how long the client may come again, simulated time; sent as `Retry-After` in whole real seconds, and
    /// exactly as `retry-after-ms`.
    pub retry_after: Option<Duration>,
}

/// Bytes as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raw {
    /// HTTP status.
    pub status: u16,
    /// Content type.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
}

/// The same thing for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drip {
    /// Time between two pieces; at least 1 ms of real time is kept.
    pub every: Duration,
    /// What drips.
    pub what: DripKind,
}

/// What drips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DripKind {
    /// Comment lines of the event stream: alive, but nothing said.
    Comments,
    /// Pieces of an answer that never ends.
    Content,
}

/// A request limit, as told in headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests a minute.
    pub limit: u32,
    /// Requests left in this minute.
    pub remaining: u32,
}
