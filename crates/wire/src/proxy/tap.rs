//! What the proxy tells of the calls that pass, and the bound on the memory that telling may take.
//!
//! Bytes are handed on first. A copy of a request is kept while there is room for it; where there is none, the call is
//! recorded without its prompt and says so. Nothing in here waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use peaklane_core::call::{Delivery, Gap};
use peaklane_core::lane::Api;
use peaklane_core::record::TryRecord;

/// Longest request that is kept for measuring, bytes: prompts of a million tokens have some 5 MB.
pub const MAX_REQUEST_BYTES: usize = 32 << 20;

/// A request of a call, told when its last byte has gone to the upstream (or when it failed before that).
#[derive(Debug)]
pub struct Asked {
    /// Number of the call in this process.
    pub number: u64,
    /// When the request's first byte came, microseconds since the Unix epoch.
    pub started_unix_us: i64,
    /// The session that the address names.
    pub session: Option<String>,
    /// Name of the upstream.
    pub lane: Option<String>,
    /// Path at the upstream, without its query.
    pub path: String,
    /// What is spoken.
    pub api: Api,
    /// The headers that tell of harness and session, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as the client sent it, or why there is none.
    pub body: Result<Held, Gap>,
    /// Its length.
    pub bytes: u64,
    /// The proxy asked for token counts on the client's behalf.
    pub usage_injected: bool,
}

/// How a call ended.
#[derive(Debug)]
pub struct Ended {
    /// Number of the call.
    pub number: u64,
    /// From the request's first byte to its last byte written to the upstream, microseconds.
    pub sent_us: u64,
    /// From the request's first byte to the last byte handed on, microseconds.
    pub total_us: u64,
    /// What was measured.
    pub record: TryRecord,
    /// How the bytes were handed on.
    pub delivery: Delivery,
}

/// What passed without being a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// A request to a path that is no inference.
    Plain,
    /// A connection that was turned into a WebSocket or alike.
    Upgraded,
    /// A request that the proxy itself refused (token, lane, session name, broken head).
    Refused,
}

/// Who is told. Must not wait: it is called where bytes are handed on.
pub trait Tap: Send + Sync + 'static {
    /// A request went out.
    fn asked(&self, asked: Asked);
    /// A call of which [`Tap::asked`] told is over.
    fn ended(&self, ended: Ended);
    /// Something else passed.
    fn passed(&self, what: Passed);
}

/// Nobody listens.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deaf;

impl Tap for Deaf {
    fn asked(&self, _: Asked) {}
    fn ended(&self, _: Ended) {}
    fn passed(&self, _: Passed) {}
}

/// The bound on all copies of requests that wait to be measured.
#[derive(Debug)]
pub struct Room {
    limit: usize,
    used: AtomicUsize,
}

impl Room {
    /// Room for so many bytes.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0) })
    }

    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.used.try_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }
}

/// A copy of a request; the room it takes is given back when it is dropped.
pub struct Held {
    bytes: Vec<u8>,
    room: Arc<Room>,
    taken: usize,
}

impl Held {
    fn new(room: &Arc<Room>) -> Self {
        Self { bytes: Vec::new(), room: Arc::clone(room), taken: 0 }
    }

    /// The copy.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Makes room for so many bytes beforehand, as the head announced them.
    fn announce(&mut self, bytes: usize) -> Result<(), Gap> {
        self.grow(bytes)?;
        self.bytes.reserve_exact(bytes);
        Ok(())
    }

    fn grow(&mut self, to: usize) -> Result<(), Gap> {
        if to > MAX_REQUEST_BYTES {
            return Err(Gap::RequestTooLong);
        }
        if to > self.taken {
            if !self.room.take(to - self.taken) {
                return Err(Gap::Busy);
            }
            self.taken = to;
        }
        Ok(())
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Gap> {
        let to = self.bytes.len() + bytes.len();
        if to > self.taken {
            // Doubling, as the vector below grows, so that what is counted is what is taken.
            self.grow(to.max((2 * self.taken).min(MAX_REQUEST_BYTES)).max(4 << 10))?;
            self.bytes.reserve_exact(self.taken - self.bytes.len());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.room.used.fetch_sub(self.taken, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the text: it is a prompt.
        write!(f, "Held({} bytes)", self.bytes.len())
    }
}

/// The copy as it grows: bytes as long as there is room.
#[derive(Debug)]
pub(crate) struct Copying {
    held: Result<Held, Gap>,
    bytes: u64,
    /// Only the length is wanted.
    counts_only: bool,
}

impl Copying {
    /// Begins; `announced` is the length that the head told, if it did.
    pub(crate) fn new(room: &Arc<Room>, announced: Option<u64>) -> Self {
        let mut held = Ok(Held::new(room));
        if let (Ok(h), Some(bytes)) = (&mut held, announced) {
            let gap = usize::try_from(bytes).map_err(|_| Gap::RequestTooLong).and_then(|bytes| h.announce(bytes));
            if let Err(gap) = gap {
                held = Err(gap);
            }
        }
        Self { held, bytes: 0, counts_only: false }
    }

    /// Counts the bytes and keeps none of them.
    pub(crate) fn counting(room: &Arc<Room>) -> Self {
        Self { held: Ok(Held::new(room)), bytes: 0, counts_only: true }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if self.counts_only {
            return;
        }
        if let Ok(held) = &mut self.held
            && let Err(gap) = held.push(bytes)
        {
            self.held = Err(gap);
        }
    }

    /// The copy and the length of the whole.
    pub(crate) fn take(self) -> (Result<Held, Gap>, u64) {
        (self.held, self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_that_was_taken_is_given_back() {
        let room = Room::new(10_000);
        let mut one = Copying::new(&room, Some(6_000));
        let mut two = Copying::new(&room, Some(6_000));
        one.push(&[b'x'; 6_000]);
        two.push(&[b'x'; 6_000]);
        assert_eq!(room.used(), 6_000);
        assert!(matches!(two.take(), (Err(Gap::Busy), 6_000)));
        let (held, bytes) = one.take();
        assert_eq!((held.unwrap().bytes().len(), bytes), (6_000, 6_000));
        assert_eq!(room.used(), 0);
    }

    #[test]
    fn a_copy_that_outgrows_its_room_is_dropped_and_its_length_still_counted() {
        let room = Room::new(5_000);
        let mut copy = Copying::new(&room, None);
        for _ in 0..6 {
            copy.push(&[b'x'; 1_000]);
        }
        assert_eq!(room.used(), 0);
        assert!(matches!(copy.take(), (Err(Gap::Busy), 6_000)));
        let room = Room::new(usize::MAX);
        assert!(matches!(Copying::new(&room, Some(1 << 40)).take().0, Err(Gap::RequestTooLong)));
    }

    #[test]
    fn a_length_that_lies_takes_no_more_memory_than_there_is_room_for() {
        let room = Room::new(1 << 20);
        let copy = Copying::new(&room, Some(30 << 20));
        assert_eq!(room.used(), 0);
        drop(copy);
    }
}
