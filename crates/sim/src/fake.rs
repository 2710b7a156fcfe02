//! A lane that misbehaves on request: the model name says how. For tests of whatever talks to lanes.
//!
//! Runs in real time and in a thread of its own, so that a test without a runtime can start the real binary against
//! it. What was sent to it can be read afterwards; credentials are hidden in that log.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::draw::fingerprint;
use crate::host::Host;
use crate::plan::{Answer, Drip, DripKind, End, Finish, Piece, Plan, Raw, Refusal, Reply};
use crate::scale::Scale;
use crate::script::{Arrival, Ask, LaneScript};
use crate::server::Lane;

/// What the well-behaved models answer.
pub const FAKE_ANSWER: &str = "The fake lane says 42, as it was asked to.";

/// The models and what each of them does. `N`, `MS` and `NNN` stand for numbers.
pub const FAKE_MODELS: [(&str, &str); 22] = [
    ("fake-ok", "streams a short answer, first piece after 30 ms"),
    ("fake-reasoning", "thinks in three pieces before the answer"),
    ("fake-delay-MS", "as fake-ok, first piece after MS milliseconds"),
    ("fake-wrong", "answers something else"),
    ("fake-empty", "ends properly without having said anything"),
    ("fake-budget", "stops for lack of budget (finish reason length)"),
    ("fake-429", "429 with Retry-After at each try"),
    ("fake-429-retryN", "429 for N tries of a prompt, then as fake-ok"),
    ("fake-loading-retryN", "503 `Loading model` for N tries of a prompt, then as fake-ok"),
    ("fake-quota", "429 insufficient_quota"),
    ("fake-401", "401 whose message repeats the key, as some gateways do"),
    ("fake-status-NNN", "an error with this status, 400 to 599"),
    ("fake-refuse-temperature", "400 about temperature unless it is absent"),
    ("fake-html", "200 with a login page"),
    ("fake-garbage", "200 with broken JSON"),
    ("fake-in-band", "an error event in the middle of a stream"),
    ("fake-cut", "a stream that ends without a terminal signal"),
    ("fake-abort", "the connection is closed in the middle of a stream"),
    ("fake-reset", "the connection is reset in the middle of a stream"),
    ("fake-never", "not one byte"),
    ("fake-forever", "a head, then comments for ever"),
    ("fake-endless", "an answer that never ends"),
];

/// One request as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// HTTP method.
    pub method: String,
    /// Path and query as sent; values of parameters that carry keys are hidden.
    pub target: String,
    /// Headers in order, names in lower case; credentials are `(hidden)`.
    pub headers: Vec<(String, String)>,
    /// The body, broken UTF-8 replaced.
    pub body: String,
    credentials: Vec<u64>,
}

impl Seen {
    /// The first header of that name (lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// Whether any credential was sent in a header.
    pub fn has_credential(&self) -> bool {
        !self.credentials.is_empty()
    }

    /// Whether `key` was sent, as a bearer token or in a key header.
    pub fn carried(&self, key: &str) -> bool {
        self.credentials.contains(&fingerprint(key.as_bytes()))
    }
}

/// The fake lane, being served until it is dropped.
pub struct FakeLane {
    host: Host,
    log: Log,
}

type Log = Arc<Mutex<Vec<Seen>>>;

impl FakeLane {
    /// Starts it on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When no port can be bound or no thread started.
    pub fn start() -> io::Result<Self> {
        let log = Log::default();
        let host = Host::start(vec![Lane::new(FakeScript { log: Arc::clone(&log) }, Scale::REAL)])?;
        Ok(Self { host, log })
    }

    /// `http://127.0.0.1:PORT/v1`
    pub fn base_url(&self) -> String {
        self.host.base_url(0).expect("the host was started with one lane")
    }

    /// Everything that arrived so far, in order.
    pub fn seen(&self) -> Vec<Seen> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

struct FakeScript {
    log: Log,
}

impl LaneScript for FakeScript {
    fn models(&self) -> Vec<String> {
        FAKE_MODELS.iter().map(|(name, _)| (*name).to_owned()).collect()
    }

    fn serves(&self, model: &str) -> bool {
        Behaviour::named(model).is_some()
    }

    fn plan(&self, ask: &Ask<'_>) -> Plan {
        match Behaviour::named(ask.model) {
            Some(behaviour) => behaviour.plan(ask),
            None => refused(404, "not_found_error", "model_not_found", "no such model"),
        }
    }

    fn arrived(&self, arrival: Arrival<'_>) {
        let seen = Seen::new(arrival);
        self.log.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
    }
}

/// A model name, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behaviour<'a> {
    Fixed(&'a str),
    Delay(u64),
    LimitedFor(u32),
    LoadingFor(u32),
    Status(u16),
}

impl<'a> Behaviour<'a> {
    fn named(model: &'a str) -> Option<Self> {
        if let Some(ms) = model.strip_prefix("fake-delay-") {
            return ms.parse().ok().map(Self::Delay);
        }
        if let Some(tries) = model.strip_prefix("fake-429-retry") {
            return tries.parse().ok().map(Self::LimitedFor);
        }
        if let Some(tries) = model.strip_prefix("fake-loading-retry") {
            return tries.parse().ok().map(Self::LoadingFor);
        }
        if let Some(status) = model.strip_prefix("fake-status-") {
            return status.parse().ok().filter(|status| (400..600).contains(status)).map(Self::Status);
        }
        FAKE_MODELS.iter().any(|(name, _)| *name == model).then_some(Self::Fixed(model))
    }

    fn plan(self, ask: &Ask<'_>) -> Plan {
        let name = match self {
            Self::Delay(ms) => return spoken(FAKE_ANSWER, ms, Finish::Stop, End::Whole),
            Self::LimitedFor(tries) if ask.ticket.retry < tries => return limited(),
            Self::LoadingFor(tries) if ask.ticket.retry < tries => {
                return refused(503, "unavailable_error", "unavailable", "Loading model");
            }
            Self::LimitedFor(_) | Self::LoadingFor(_) => "fake-ok",
            Self::Status(status) => return refused(status, "server_error", "error", "the status that was asked for"),
            Self::Fixed(name) => name,
        };
        match name {
            "fake-reasoning" => reasoned(),
            "fake-wrong" => spoken("Something else entirely.", 30, Finish::Stop, End::Whole),
            "fake-empty" => spoken("", 30, Finish::Stop, End::Whole),
            "fake-budget" => spoken("The fake lane says", 30, Finish::Length, End::Whole),
            "fake-429" => limited(),
            "fake-quota" => {
                let message = "You exceeded your current quota, please check your plan and billing details.";
                refused(429, "insufficient_quota", "insufficient_quota", message)
            }
            "fake-401" => {
                let message = format!("Incorrect API key provided: {}.", ask.credential.unwrap_or("none"));
                refused(401, "invalid_request_error", "invalid_api_key", &message)
            }
            "fake-refuse-temperature" if ask.body.get("temperature").is_some() => {
                let message = "Unsupported value: 'temperature' does not support 0 with this model.";
                refused(400, "invalid_request_error", "unsupported_value", message)
            }
            "fake-html" => {
                raw("text/html; charset=utf-8", "<!doctype html><title>Sign in</title><form>Please sign in.</form>\n")
            }
            "fake-garbage" => raw("application/json", "{\"id\": \"x\", \"choices\": [{\"index\": 0, \"mess"),
            "fake-in-band" => {
                spoken(FAKE_ANSWER, 30, Finish::Stop, End::InBand("the engine lost its worker".to_owned()))
            }
            "fake-cut" => spoken("The fake lane", 30, Finish::Stop, End::Cut),
            "fake-abort" => spoken("The fake lane", 30, Finish::Stop, End::Abort),
            "fake-reset" => spoken("The fake lane", 30, Finish::Stop, End::Reset),
            "fake-never" => Plan::new(Duration::ZERO, Reply::Nothing),
            "fake-forever" => dripping(DripKind::Comments),
            "fake-endless" => dripping(DripKind::Content),
            _ => spoken(FAKE_ANSWER, 30, Finish::Stop, End::Whole),
        }
    }
}

/// An answer word by word, 5 ms apart; the head leaves 10 ms before the first.
fn spoken(text: &str, ttft_ms: u64, finish: Finish, end: End) -> Plan {
    let at = |i: u64| Duration::from_millis(ttft_ms.saturating_add(5 * i));
    let words = (0..).zip(text.split_inclusive(' ').filter(|word| !word.is_empty()));
    let pieces: Vec<Piece> =
        words.map(|(i, word)| Piece { at: at(i), text: word.to_owned(), reasoning: false }).collect();
    let end_at = at(pieces.len() as u64);
    let head_at = Duration::from_millis(ttft_ms.saturating_sub(10));
    Plan::new(head_at, Reply::Answer(Answer { pieces, finish, end_at, end }))
}

/// Thinks from 30 ms on, answers from 100 ms on.
fn reasoned() -> Plan {
    let mut plan = spoken(FAKE_ANSWER, 100, Finish::Stop, End::Whole);
    plan.head_at = Duration::from_millis(20);
    if let Reply::Answer(answer) = &mut plan.reply {
        let thoughts = (0..).zip(["Six ", "times ", "seven."]);
        let thoughts = thoughts.map(|(i, thought)| Piece {
            at: Duration::from_millis(30 + 10 * i),
            text: thought.to_owned(),
            reasoning: true,
        });
        answer.pieces.splice(0..0, thoughts);
    }
    plan
}

fn refused(status: u16, kind: &'static str, code: &'static str, message: &str) -> Plan {
    let refusal = Refusal { status, kind, code, message: message.to_owned(), retry_after: None };
    Plan::new(Duration::from_millis(5), Reply::Refusal(refusal))
}

/// 429 that asks for 50 ms (`retry-after-ms`; a client that knows whole seconds only waits for one).
fn limited() -> Plan {
    let mut plan = refused(429, "requests", "rate_limit_exceeded", "Rate limit reached for requests per minute.");
    if let Reply::Refusal(refusal) = &mut plan.reply {
        refusal.retry_after = Some(Duration::from_millis(50));
    }
    plan
}

fn raw(content_type: &'static str, body: &str) -> Plan {
    Plan::new(Duration::from_millis(5), Reply::Raw(Raw { status: 200, content_type, body: body.to_owned() }))
}

fn dripping(what: DripKind) -> Plan {
    Plan::new(Duration::from_millis(5), Reply::Drip(Drip { every: Duration::from_millis(20), what }))
}

/// Headers that carry credentials.
const SECRET_HEADERS: [&str; 6] =
    ["authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"];
/// Query parameters that do.
const SECRET_PARAMETERS: [&str; 5] = ["key", "api_key", "api-key", "token", "access_token"];

impl Seen {
    fn new(arrival: Arrival<'_>) -> Self {
        let mut credentials = Vec::new();
        let headers = arrival.headers.iter().map(|(name, value)| {
            let mut value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            if SECRET_HEADERS.contains(&name.as_str()) {
                let key = value.strip_prefix("Bearer ").unwrap_or(&value);
                credentials.push(fingerprint(key.as_bytes()));
                "(hidden)".clone_into(&mut value);
            }
            (name.as_str().to_owned(), value)
        });
        Self {
            method: arrival.method.to_string(),
            target: hide_parameters(arrival.target),
            headers: headers.collect(),
            body: String::from_utf8_lossy(arrival.body).into_owned(),
            credentials,
        }
    }
}

fn hide_parameters(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else { return target.to_owned() };
    let hidden: Vec<String> = (query.split('&'))
        .map(|pair| match pair.split_once('=') {
            Some((name, _)) if SECRET_PARAMETERS.contains(&name) => format!("{name}=(hidden)"),
            _ => pair.to_owned(),
        })
        .collect();
    format!("{path}?{}", hidden.join("&"))
}
