//! The lane client: one try of one request, measured. Resends nothing, ever; retries are [`crate::retry`]'s.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use peaklane_core::lane::Api;
use peaklane_core::outcome::Outcome;
use peaklane_core::record::{Handshake, TryRecord};
use peaklane_core::secret::Secret;
use tokio::time::Instant;

use crate::connection::{Connection, Deadline, Got, Outgoing};
use crate::endpoint::Endpoint;
use crate::h1::ReadError;
use crate::headers::Headers;
use crate::io::{Dial, DialError};
use crate::lag::LagProbe;
use crate::reading::{End, Reading};

/// Most redirects that one try follows.
const MAX_REDIRECTS: u32 = 5;
/// How long the rest of a response is waited for, after its outcome is known, so that the connection can be kept.
const DRAIN: Duration = Duration::from_millis(5);
/// Longest time that opening a connection may take within a try; the total limit, where shorter, holds too.
const CONNECT_LIMIT: Duration = Duration::from_secs(20);
/// Shortest key that is looked for in the texts of an answer: shorter ones ("none", "EMPTY") are ordinary words.
const REDACT_FROM: usize = 8;
/// Shortest begin of a key that is looked for at the end of a text that was cut.
const REDACT_CUT_FROM: usize = 4;

/// The three limits of one try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the last byte of the request to the first of the response.
    pub first_byte: Duration,
    /// Between two reads of the response.
    pub idle: Duration,
    /// From the last byte of the request to the end of the response.
    pub total: Duration,
}

impl Default for Limits {
    /// First byte and idle 60 s, total 120 s.
    fn default() -> Self {
        Self { first_byte: Duration::from_secs(60), idle: Duration::from_secs(60), total: Duration::from_secs(120) }
    }
}

/// One lane as the client sees it.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where requests go.
    pub endpoint: Endpoint,
    /// What is spoken.
    pub api: Api,
    /// The key, if the lane wants one.
    pub key: Option<Secret>,
    /// Further headers (no secrets).
    pub headers: Vec<(String, String)>,
}

/// One try with the moments that the caller needs to join tries into an attempt.
#[derive(Debug)]
pub struct Tried {
    /// What was measured.
    pub record: TryRecord,
    /// Begin of the try.
    pub began: Instant,
    /// The moment from which the record's times count: the last byte of the (first) request sent, or the begin when
    /// nothing was sent.
    pub zero: Instant,
    /// When the outcome was known.
    pub ended: Instant,
}

/// Idle connections to one host and port, and what is known of how it treats them.
#[derive(Default)]
struct Pool {
    idle: Vec<Connection>,
    /// It answers on a connection that was used before; `Some(false)`: it closes them after an answer without saying so.
    keeps: Option<bool>,
}

/// The client. Keeps idle connections per host and port.
pub struct Client {
    dial: Arc<dyn Dial>,
    pools: Mutex<HashMap<(String, u16, bool), Pool>>,
    lag: Option<Arc<LagProbe>>,
    /// Wall clock, milliseconds since the Unix epoch.
    wall_ms: fn() -> i64,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

/// How one exchange on one connection went.
struct Exchanged {
    record: TryRecord,
    sent: Instant,
    /// Status and target of a redirect.
    redirect: Option<String>,
}

impl Client {
    /// A client on a network. `wall_ms` is the wall clock (Retry-After dates and clock skew need one).
    pub fn new(dial: Arc<dyn Dial>, wall_ms: fn() -> i64) -> Self {
        Self { dial, pools: Mutex::new(HashMap::new()), lag: None, wall_ms }
    }

    /// Records the client's own lag with each try.
    pub fn with_lag_probe(mut self, probe: Arc<LagProbe>) -> Self {
        self.lag = Some(probe);
        self
    }

    /// Opens a connection beforehand and keeps it for a later try.
    ///
    /// # Errors
    /// [`DialError`] when it cannot be opened within `limit`.
    pub async fn open(&self, endpoint: &Endpoint, limit: Duration) -> Result<Handshake, DialError> {
        let connection = self.dial(endpoint, limit).await?;
        let handshake = connection.handshake;
        self.park(endpoint, connection);
        Ok(handshake)
    }

    /// How many connections to that host and port are open and idle.
    pub fn idle_connections(&self, endpoint: &Endpoint) -> usize {
        self.pool(endpoint, |pool| pool.idle.len())
    }

    /// One try: one request, redirects followed, nothing repeated.
    pub async fn try_once(&self, target: &Target, body: &Bytes, request_id: Option<&str>, limits: &Limits) -> Tried {
        let began = Instant::now();
        let mut zero: Option<Instant> = None;
        let mut endpoint = target.endpoint.clone();
        let mut handshake = None;
        let mut redirects = 0;
        loop {
            let (mut connection, this_handshake) = match self.connection(&endpoint, limits).await {
                Ok(found) => found,
                Err(error) => {
                    let mut record = TryRecord::new(Outcome::Unreachable);
                    record.message = Some(chain(&error));
                    record.handshake = handshake.unwrap_or_default();
                    record.redirects = redirects;
                    let ended = Instant::now();
                    record.end_us = Some(micros(zero.unwrap_or(began), ended));
                    return self.finish(record, target, began, zero.unwrap_or(began), ended);
                }
            };
            let handshake = *handshake.get_or_insert(this_handshake);
            let request = Outgoing { method: "POST", target, endpoint: &endpoint, body, request_id };
            let again = connection.used;
            let exchanged = self.exchange(&mut connection, &request, limits, zero).await;
            if again && exchanged.record.http_status.is_some() {
                self.pool(&endpoint, |pool| pool.keeps = Some(true));
            }
            let sent = exchanged.sent;
            let zero = *zero.get_or_insert(sent);
            if connection.reusable() {
                self.park(&endpoint, connection);
            }
            let mut record = exchanged.record;
            if let Some(location) = exchanged.redirect {
                match follow(&endpoint, &location, redirects) {
                    Ok(next) => {
                        redirects += 1;
                        endpoint = next;
                        continue;
                    }
                    Err(why) => {
                        record.outcome = Outcome::RedirectRefused;
                        record.message = Some(why);
                    }
                }
            }
            record.handshake = handshake;
            record.redirects = redirects;
            record.sent_us = micros(began, zero);
            let ended = zero + Duration::from_micros(record.end_us.unwrap_or_default());
            return self.finish(record, target, began, zero, ended);
        }
    }

    fn finish(&self, mut record: TryRecord, target: &Target, began: Instant, zero: Instant, ended: Instant) -> Tried {
        if let Some(probe) = &self.lag {
            record.own_lag_us = record.own_lag_us.max(probe.between(began, Instant::now()));
        }
        if let Some(key) = &target.key {
            redact(&mut record, key.expose());
        }
        Tried { record, began, zero, ended }
    }

    async fn connection(&self, endpoint: &Endpoint, limits: &Limits) -> Result<(Connection, Handshake), DialError> {
        while let Some(mut connection) = self.unpark(endpoint) {
            // Nothing is sent on a connection that the peer has closed meanwhile: no request to repeat.
            if connection.is_alive().await {
                // The handshake belongs to the first try on a connection; a later one did not wait for it.
                let handshake = if connection.used {
                    Handshake { reused: true, ..Handshake::default() }
                } else {
                    connection.handshake
                };
                return Ok((connection, handshake));
            }
            if connection.used {
                self.pool(endpoint, |pool| {
                    pool.keeps.get_or_insert(false);
                });
            }
        }
        let connection = self.dial(endpoint, limits.total.min(CONNECT_LIMIT)).await?;
        let handshake = connection.handshake;
        Ok((connection, handshake))
    }

    async fn dial(&self, endpoint: &Endpoint, limit: Duration) -> Result<Connection, DialError> {
        let opening = async {
            let dialled = self.dial.dial(endpoint.host(), endpoint.port(), endpoint.is_tls()).await?;
            Connection::new(dialled).await.map_err(|source| DialError::Connect {
                address: format!("{}:{}", endpoint.host(), endpoint.port()),
                source,
            })
        };
        match tokio::time::timeout(limit, opening).await {
            Ok(opened) => opened,
            Err(_) => Err(DialError::Timeout {
                address: format!("{}:{}", endpoint.host(), endpoint.port()),
                limit_ms: limit.as_millis() as u64,
            }),
        }
    }

    fn pool<T>(&self, endpoint: &Endpoint, with: impl FnOnce(&mut Pool) -> T) -> T {
        let key = (endpoint.host().to_owned(), endpoint.port(), endpoint.is_tls());
        let mut pools = self.pools.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        with(pools.entry(key).or_default())
    }

    fn park(&self, endpoint: &Endpoint, connection: Connection) {
        self.pool(endpoint, |pool| {
            // A host that closes after each answer would close this one in the moment at which it is used again.
            if pool.keeps != Some(false) || !connection.used {
                pool.idle.push(connection);
            }
        });
    }

    fn unpark(&self, endpoint: &Endpoint) -> Option<Connection> {
        self.pool(endpoint, |pool| pool.idle.pop())
    }

    /// Whether the host answers on connections that were used before; `None` while that is not known.
    pub fn keeps_connections(&self, endpoint: &Endpoint) -> Option<bool> {
        self.pool(endpoint, |pool| pool.keeps)
    }

    async fn exchange(
        &self,
        connection: &mut Connection,
        request: &Outgoing<'_>,
        limits: &Limits,
        zero: Option<Instant>,
    ) -> Exchanged {
        let mut timer = Deadline::default();
        let write_due = Instant::now() + limits.total;
        let written = connection.write(&mut timer, write_due, request).await;
        connection.used = true;
        let failed = |outcome: Outcome, at: Instant, sent: Instant, message: String| {
            let mut record = TryRecord::new(outcome);
            record.end_us = Some(micros(zero.unwrap_or(sent), at));
            record.message = Some(message);
            Exchanged { record, sent, redirect: None }
        };
        let (sent, write_error) = match written {
            Got::Done(Ok(at)) => (at, None),
            // A server may answer and close before it has read everything (413): look for that answer first.
            Got::Done(Err(e)) => {
                // Half a request is on it: nothing may follow.
                connection.broken = true;
                (Instant::now(), Some(e))
            }
            Got::Late => {
                connection.broken = true;
                let why = "the request could not be written within the total limit".to_owned();
                return failed(Outcome::TimeoutTotal, write_due, write_due, why);
            }
        };
        let zero = zero.unwrap_or(sent);
        let total_due = zero + limits.total;
        let (mut first_byte, mut last_byte) = (None, None);
        let head = poll_fn(|cx| {
            let polled = connection.poll_head(cx, &mut first_byte, &mut last_byte);
            let due = last_byte.map_or(sent + limits.first_byte, |at: Instant| at + limits.idle).min(total_due);
            timer.guard(cx, due, polled)
        })
        .await;
        let head = match head {
            Got::Done(Ok(head)) => head,
            Got::Done(Err(error)) => {
                connection.broken = true;
                let (outcome, why) = match error {
                    ReadError::Bad(why) => (Outcome::BadBody, why),
                    ReadError::Closed => {
                        let cause = write_error.map(|e| format!(" ({e})")).unwrap_or_default();
                        (Outcome::ConnReset, format!("the connection was closed before a response came{cause}"))
                    }
                    ReadError::Io(e) => {
                        (Outcome::ConnReset, format!("the connection broke before a response came: {e}"))
                    }
                };
                return failed(outcome, Instant::now(), sent, why);
            }
            Got::Late => {
                connection.broken = true;
                let due = last_byte.map_or(sent + limits.first_byte, |at| at + limits.idle);
                let (outcome, due) = if total_due <= due {
                    (Outcome::TimeoutTotal, total_due)
                } else if last_byte.is_some() {
                    (Outcome::TimeoutIdle, due)
                } else {
                    (Outcome::TimeoutFirstByte, due)
                };
                return failed(outcome, due, sent, format!("no response within {} ms", micros(sent, due) / 1_000));
            }
        };
        let redirect = matches!(head.status, 301 | 302 | 303 | 307 | 308).then(|| {
            if head.status == 303 {
                // "See other" asks for a GET, which is no inference call.
                String::new()
            } else {
                head.headers.get("location").unwrap_or_default().to_owned()
            }
        });
        let mut reading = Reading::new(request.target.api, head.status, head.headers, (self.wall_ms)());
        let mut arrived = last_byte.unwrap_or_else(Instant::now);
        let (end, at) = loop {
            let due = (arrived + limits.idle).min(total_due);
            let step = poll_fn(|cx| {
                let mut sink = |bytes: &[u8], at: Instant| {
                    reading.body(bytes, micros(zero, at));
                };
                let polled = connection.poll_body(cx, &mut arrived, &mut sink);
                timer.guard(cx, due, polled)
            })
            .await;
            match step {
                Got::Done(Ok(over)) if over => break (End::Clean, arrived),
                Got::Done(Ok(_)) if reading.is_known() => {
                    connection.drain(&mut timer, Instant::now() + DRAIN).await;
                    break (End::Clean, arrived);
                }
                Got::Done(Ok(_)) => {}
                Got::Done(Err(error)) => {
                    connection.broken = true;
                    break match error {
                        ReadError::Io(_) => (End::Reset, arrived),
                        ReadError::Closed | ReadError::Bad(_) => (End::Cut, arrived),
                    };
                }
                Got::Late => {
                    connection.broken = true;
                    let outcome = if total_due <= due { Outcome::TimeoutTotal } else { Outcome::TimeoutIdle };
                    break (End::Limit(outcome), due);
                }
            }
        };
        let mut record = reading.finish(end, micros(zero, at));
        record.http_version = Some(connection.version().to_owned());
        record.first_byte_us = first_byte.map(|at| micros(zero, at));
        if let Some(secret) = connection.proxy_secret() {
            redact(&mut record, secret);
        }
        if matches!(end, End::Limit(_)) {
            record.own_lag_us = micros(at, Instant::now());
            record.last_byte_us = Some(micros(zero, arrived));
        }
        Exchanged { record, sent, redirect }
    }
}

/// A small plain answer beside the inference path (`/models`, `/health`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// HTTP status.
    pub status: u16,
    /// Response headers.
    pub headers: Headers,
    /// Body, at most 4 MiB of it.
    pub body: Vec<u8>,
    /// From the request sent to the end of the answer, microseconds.
    pub took_us: u64,
}

/// Longest plain answer that is read, bytes.
const MAX_FETCHED: usize = 4 << 20;

impl Client {
    /// One plain request that is no inference call. Redirects are not followed.
    ///
    /// # Errors
    /// The cause in words: no connection, no answer within the limits, not HTTP.
    pub async fn fetch(
        &self,
        method: &'static str,
        target: &Target,
        body: &Bytes,
        limits: &Limits,
    ) -> Result<Fetched, String> {
        let (mut connection, _) = self.connection(&target.endpoint, limits).await.map_err(|e| chain(&e))?;
        let request = Outgoing { method, target, endpoint: &target.endpoint, body, request_id: None };
        let mut timer = Deadline::default();
        let due = Instant::now() + limits.total;
        let late = || format!("no answer within {} ms", limits.total.as_millis());
        let sent = match connection.write(&mut timer, due, &request).await {
            Got::Done(Ok(at)) => at,
            Got::Done(Err(e)) => return Err(e.to_string()),
            Got::Late => return Err(late()),
        };
        connection.used = true;
        let (mut first, mut last) = (None, None);
        let head = poll_fn(|cx| {
            let polled = connection.poll_head(cx, &mut first, &mut last);
            timer.guard(cx, due.min(sent + limits.first_byte), polled)
        });
        let head = match head.await {
            Got::Done(Ok(head)) => head,
            Got::Done(Err(ReadError::Bad(why))) => return Err(why),
            Got::Done(Err(_)) => return Err("the connection was closed before a response came".into()),
            Got::Late => return Err(late()),
        };
        let mut kept = Vec::new();
        let mut at = last.unwrap_or(sent);
        loop {
            let step = poll_fn(|cx| {
                let polled = connection.poll_body(cx, &mut at, &mut |bytes, _| {
                    kept.extend_from_slice(&bytes[..bytes.len().min(MAX_FETCHED.saturating_sub(kept.len()))]);
                });
                timer.guard(cx, due, polled)
            });
            match step.await {
                Got::Done(Ok(true)) => break,
                Got::Done(Ok(false)) => {}
                Got::Done(Err(_)) => return Err("the connection was closed in the middle of the answer".into()),
                Got::Late => return Err(late()),
            }
        }
        if connection.reusable() {
            self.park(&target.endpoint, connection);
        }
        Ok(Fetched { status: head.status, headers: head.headers, body: kept, took_us: micros(sent, at) })
    }
}

/// Where a redirect may lead: the same host only, since another one would be another lane, and the key must not
/// travel.
fn follow(from: &Endpoint, location: &str, redirects: u32) -> Result<Endpoint, String> {
    if redirects >= MAX_REDIRECTS {
        return Err(format!("more than {MAX_REDIRECTS} redirects"));
    }
    if location.is_empty() {
        return Err("a redirect that names no place for the same request".into());
    }
    let next = from
        .redirected(location)
        .ok_or_else(|| "a redirect to what is no http(s) address, or away from https".to_owned())?;
    if from.same_host(&next) {
        Ok(next)
    } else {
        Err(format!(
            "a redirect to another host ({}); set base_url to that address if it is meant",
            crate::failure::shorten(&next.authority())
        ))
    }
}

/// Removes the key from every text that the lane may have echoed.
fn redact(record: &mut TryRecord, key: &str) {
    let key = key.trim();
    if key.len() < REDACT_FROM {
        return;
    }
    let clean = |text: &mut String| {
        if text.contains(key) {
            *text = text.replace(key, "(key)");
        }
    };
    // Short texts are cut at a length of their own, which may lie within the key.
    let clean_cut = |text: &mut String| {
        clean(text);
        let end = text.strip_suffix("...").unwrap_or(text);
        if let Some(n) = (REDACT_CUT_FROM..key.len()).rev().find(|n| end.ends_with(&key[..*n])) {
            text.truncate(end.len() - n);
            text.push_str("(key)...");
        }
    };
    let texts = [&mut record.message, &mut record.model, &mut record.system_fingerprint, &mut record.request_id];
    texts.into_iter().flatten().for_each(clean_cut);
    record.finish_reason.iter_mut().for_each(clean_cut);
    record.rate_limits.iter_mut().for_each(|(_, value)| clean_cut(value));
    clean(&mut record.content);
    clean(&mut record.reasoning);
    for call in &mut record.tool_calls {
        clean(&mut call.name);
        clean(&mut call.arguments);
    }
}

/// An error with its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let words = inner.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = inner.source();
    }
    crate::failure::shorten(&text)
}

/// Microseconds from `from` to `to`; 0 when `to` is earlier (a response that overtook the end of its request).
fn micros(from: Instant, to: Instant) -> u64 {
    to.saturating_duration_since(from).as_micros() as u64
}
