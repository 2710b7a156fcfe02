//! What a scripted lane received and did: one entry per request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One request as it arrived, and what became of its answer. Times are milliseconds after its last byte was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Received {
    /// `<id>` or `<id>@<key>` of the case; for recordings the name of the exchange.
    pub key: String,
    /// Number of the request for this key, from 1.
    pub n: u32,
    /// Number of the connection that it came on, from 0: equal numbers mean a reused connection.
    pub connection: u64,
    /// HTTP method.
    pub method: String,
    /// Path below `/case/<key>` (recordings: the whole path).
    pub path: String,
    /// Query, without the question mark.
    pub query: String,
    /// Header lines as sent, credentials included: they stay in memory and are never printed by this crate.
    pub headers: Vec<(String, String)>,
    /// The body, with any chunked coding taken off.
    pub body: Vec<u8>,
    /// When each step really went out.
    pub sent_ms: Vec<f64>,
    /// Body bytes sent, without framing.
    pub sent_bytes: u64,
    /// Largest lateness of a step: above 20 the server itself was late, and a measurement has to be repeated.
    pub worst_late_ms: f64,
    /// When the client hung up, if it did before the answer was over.
    pub client_closed_ms: Option<f64>,
}

impl Received {
    /// The first header of that name (any case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(k, _)| k.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// The credential that came along, if any: the value of `authorization`, `x-api-key`, `api-key`,
    /// `proxy-authorization` or `cookie`.
    pub fn credential(&self) -> Option<&str> {
        ["authorization", "x-api-key", "api-key", "proxy-authorization", "cookie"].iter().find_map(|n| self.header(n))
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("the request's body is no JSON ({e}): {}", String::from_utf8_lossy(&self.body)))
    }
}

/// The log of a scripted lane; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Vec<Received>>>);

/// Names an entry that is being written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryId(usize);

impl Log {
    /// All requests in the order in which they were complete.
    pub fn all(&self) -> Vec<Received> {
        self.entries().clone()
    }

    /// The requests for one key.
    pub fn of(&self, key: &str) -> Vec<Received> {
        self.entries().iter().filter(|r| r.key == key).cloned().collect()
    }

    /// Largest lateness of any step for that key, milliseconds.
    pub fn worst_late_ms(&self, key: &str) -> f64 {
        self.entries().iter().filter(|r| r.key == key).map(|r| r.worst_late_ms).fold(0.0, f64::max)
    }

    pub(crate) fn push(&self, mut entry: Received) -> EntryId {
        let mut entries = self.entries();
        let before = entries.iter().filter(|r| r.key == entry.key).count();
        entry.n = u32::try_from(before + 1).unwrap_or(u32::MAX);
        entries.push(entry);
        EntryId(entries.len() - 1)
    }

    pub(crate) fn edit(&self, id: EntryId, change: impl FnOnce(&mut Received)) {
        if let Some(entry) = self.entries().get_mut(id.0) {
            change(entry);
        }
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Received>> {
        // a panicking test must not hide what was received
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
