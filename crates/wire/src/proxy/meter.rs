//! One call as it passes: bytes with their moments in, a record out. The same reader as the lane client's.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use peaklane_core::call::{Delivery, SESSION_HEADERS};
use peaklane_core::lane::Api;
use peaklane_core::outcome::Outcome;
use peaklane_core::record::{Handshake, TryRecord};
use tokio::time::Instant;

use crate::headers::Headers;
use crate::proxy::head::RequestHead;
use crate::proxy::tap::{Asked, Copying, Ended, Room, Tap};
use crate::reading::{End, Reading};

/// Longest value of a header that is kept.
const MAX_HEADER_CHARS: usize = 200;

/// What is measured of all calls of one proxy.
pub(crate) struct Gauge {
    pub(crate) tap: Arc<dyn Tap>,
    pub(crate) room: Arc<Room>,
    pub(crate) wall_us: fn() -> i64,
    numbers: AtomicU64,
}

impl Gauge {
    pub(crate) fn new(tap: Arc<dyn Tap>, room: Arc<Room>, wall_us: fn() -> i64) -> Self {
        Self { tap, room, wall_us, numbers: AtomicU64::new(1) }
    }
}

/// Where and what a call is.
pub(crate) struct About {
    pub(crate) session: Option<String>,
    pub(crate) lane: Option<String>,
    pub(crate) path: String,
    pub(crate) api: Api,
    pub(crate) usage_injected: bool,
    pub(crate) http_version: &'static str,
    pub(crate) handshake: Handshake,
}

/// One call that is being measured.
pub(crate) struct Meter {
    gauge: Arc<Gauge>,
    number: u64,
    started_unix_us: i64,
    began: Instant,
    zero: Option<Instant>,
    first_byte: Option<Instant>,
    last: Option<Instant>,
    about: About,
    headers: Vec<(String, String)>,
    copying: Option<Copying>,
    reading: Option<Box<Reading>>,
    /// Its end was told.
    over: bool,
}

impl Meter {
    /// Begins with the head of a request whose first byte came at `began`.
    ///
    /// * `copy`: the request is kept for whoever is told of it.
    pub(crate) fn new(gauge: &Arc<Gauge>, head: &RequestHead, about: About, began: Instant, copy: bool) -> Self {
        let late = began.elapsed().as_micros() as i64;
        let announced = head.fields.get("content-length").and_then(|l| l.parse().ok());
        let headers = head.fields.iter().filter_map(|(name, value)| {
            let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
            let wanted =
                SESSION_HEADERS.contains(&name.as_str()) || matches!(&*name, "user-agent" | "content-encoding");
            let value = std::str::from_utf8(value).ok()?;
            wanted.then(|| (name, value.trim().chars().take(MAX_HEADER_CHARS).collect()))
        });
        Self {
            number: gauge.numbers.fetch_add(1, Ordering::Relaxed),
            started_unix_us: (gauge.wall_us)() - late,
            began,
            zero: None,
            first_byte: None,
            last: None,
            about,
            headers: headers.collect(),
            copying: Some(if copy { Copying::new(&gauge.room, announced) } else { Copying::counting(&gauge.room) }),
            reading: None,
            over: false,
            gauge: Arc::clone(gauge),
        }
    }

    /// The request was changed on its way, to ask for token counts.
    pub(crate) fn injected(&mut self) {
        self.about.usage_injected = true;
    }

    /// Data of the request as the client sent it.
    pub(crate) fn request(&mut self, bytes: &[u8]) {
        if let Some(copying) = &mut self.copying {
            copying.push(bytes);
        }
    }

    /// The last byte of the request went to the upstream at `at`.
    pub(crate) fn sent(&mut self, at: Instant) {
        self.zero.get_or_insert(at);
        self.tell_asked();
    }

    fn tell_asked(&mut self) {
        let Some(copying) = self.copying.take() else { return };
        let (body, bytes) = copying.take();
        self.gauge.tap.asked(Asked {
            number: self.number,
            started_unix_us: self.started_unix_us,
            session: self.about.session.clone(),
            lane: self.about.lane.clone(),
            path: self.about.path.clone(),
            api: self.about.api,
            headers: std::mem::take(&mut self.headers),
            body,
            bytes,
            usage_injected: self.about.usage_injected,
        });
    }

    /// A byte of the response came at `at`.
    pub(crate) fn arrived(&mut self, at: Instant) {
        self.first_byte.get_or_insert(at);
        self.last = Some(at);
    }

    /// What came so far was an interim response: the answer's first byte is still to come.
    pub(crate) fn interim(&mut self) {
        self.first_byte = None;
    }

    /// The head of the response.
    pub(crate) fn head(&mut self, status: u16, headers: Headers) {
        self.reading = Some(Box::new(Reading::new(self.about.api, status, headers, (self.gauge.wall_us)() / 1_000)));
    }

    /// Data of the response that came at `at`.
    pub(crate) fn body(&mut self, bytes: &[u8], at: Instant) {
        let at_us = self.micros(at);
        if let Some(reading) = &mut self.reading {
            reading.body(bytes, at_us);
        }
    }

    fn micros(&self, at: Instant) -> u64 {
        self.zero.map_or(0, |zero| at.saturating_duration_since(zero).as_micros() as u64)
    }

    /// The response is over. `at` is the moment at which that was known.
    pub(crate) fn ended(mut self, end: End, at: Instant, delivery: Delivery) {
        let at_us = self.micros(at);
        let record = match self.reading.take() {
            Some(reading) => {
                let mut record = reading.finish(end, at_us);
                if delivery == Delivery::ClientLeft && record.outcome == Outcome::Truncated {
                    record.message = Some("the client left before the end".into());
                }
                record
            }
            None => {
                let mut record = self.without_answer(match end {
                    End::Limit(outcome) => (outcome, "no response within the proxy's limit".to_owned()),
                    _ if delivery == Delivery::ClientLeft => {
                        (Outcome::Truncated, "the client left before a response came".to_owned())
                    }
                    _ => (Outcome::ConnReset, "the connection was closed before a response came".to_owned()),
                });
                record.end_us = Some(at_us);
                record
            }
        };
        self.tell_ended(record, delivery);
    }

    /// There was no response that could be read, for this reason, known at `at`.
    pub(crate) fn failed(mut self, outcome: Outcome, message: String, delivery: Delivery, at: Instant) {
        let mut record = self.without_answer((outcome, message));
        record.end_us = Some(self.micros(at));
        self.tell_ended(record, delivery);
    }

    fn without_answer(&self, (outcome, message): (Outcome, String)) -> TryRecord {
        let mut record = TryRecord::new(outcome);
        record.message = Some(message);
        record
    }

    fn tell_ended(&mut self, mut record: TryRecord, delivery: Delivery) {
        self.over = true;
        self.tell_asked();
        let since = |at: Instant| at.saturating_duration_since(self.began).as_micros() as u64;
        record.http_version = Some(self.about.http_version.to_owned());
        record.handshake = self.about.handshake;
        record.first_byte_us = self.first_byte.map(|at| self.micros(at));
        let sent_us = self.zero.map_or_else(|| since(Instant::now()), since);
        record.sent_us = sent_us;
        let total_us = since(Instant::now());
        self.gauge.tap.ended(Ended { number: self.number, sent_us, total_us, record, delivery });
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if !self.over {
            // The task was dropped in the middle (the proxy stops), or the two speak something else now. Who was told of the
            // begin is told of an end.
            let record = self.without_answer((Outcome::Truncated, "cut off before its end".to_owned()));
            self.tell_ended(record, Delivery::ClientLeft);
        }
    }
}
