//! A response body that keeps an appointment for each of its pieces.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::server::Booking;

/// Shortest time between two drips, so that a script error cannot become a flood.
const SHORTEST_DRIP: Duration = Duration::from_millis(1);

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Close {
    /// Well-formed.
    Clean,
    /// The connection is closed before the body is complete.
    Abort,
    /// The same with a reset.
    Reset,
}

/// Pieces with absolute deadlines: a late wake-up of one piece does not push the next ones back.
pub(crate) struct Paced {
    pieces: VecDeque<(Instant, Bytes)>,
    drip: Option<(Duration, Bytes)>,
    end_at: Instant,
    close: Close,
    /// Declared length; `None` is chunked.
    length: Option<u64>,
    sleep: Pin<Box<Sleep>>,
    /// A piece was handed over, and nothing says that it has left yet.
    unflushed: bool,
    reset: Arc<AtomicBool>,
    booking: Option<Booking>,
    _slot: Option<OwnedSemaphorePermit>,
}

/// The connection breaks on purpose.
#[derive(Debug)]
pub(crate) struct BrokenOnPurpose;

impl fmt::Display for BrokenOnPurpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the script breaks the connection here")
    }
}

impl std::error::Error for BrokenOnPurpose {}

impl Paced {
    /// A chunked body of `pieces` in order of time, that ends at `end_at`.
    pub(crate) fn new(pieces: VecDeque<(Instant, Bytes)>, end_at: Instant, close: Close) -> Self {
        let first = pieces.front().map_or(end_at, |(at, _)| *at);
        Self {
            pieces,
            drip: None,
            end_at,
            close,
            length: None,
            sleep: Box::pin(sleep_until(first)),
            unflushed: false,
            reset: Arc::default(),
            booking: None,
            _slot: None,
        }
    }

    /// A body that is there at once, with its length declared.
    pub(crate) fn at_once(body: impl Into<Bytes>) -> Self {
        let (body, now) = (body.into(), Instant::now());
        let length = Some(body.len() as u64);
        Self { length, ..Self::new(VecDeque::from([(now, body)]), now, Close::Clean) }
    }

    /// Declares a length, true or not.
    pub(crate) fn declaring(mut self, length: u64) -> Self {
        self.length = Some(length);
        self
    }

    /// After its pieces the body repeats `piece` for ever.
    pub(crate) fn dripping(mut self, every: Duration, piece: Bytes) -> Self {
        self.drip = Some((every.max(SHORTEST_DRIP), piece));
        self
    }

    /// Hands over what must live as long as the answer: the booking of its end, a slot, the reset switch.
    pub(crate) fn holding(
        mut self,
        booking: Option<Booking>,
        slot: Option<OwnedSemaphorePermit>,
        reset: Arc<AtomicBool>,
    ) -> Self {
        (self.booking, self._slot, self.reset) = (booking, slot, reset);
        self
    }

    /// Nothing more will be sent, and the body has its proper end.
    fn complete(&self) -> bool {
        self.pieces.is_empty() && self.drip.is_none() && self.close == Close::Clean && self.end_at <= Instant::now()
    }

    fn book_if_complete(&mut self) {
        if self.complete()
            && let Some(booking) = self.booking.take()
        {
            booking.whole();
        }
    }

    fn wait_for(&mut self, at: Instant, cx: &mut Context<'_>) -> Poll<()> {
        if at <= Instant::now() {
            return Poll::Ready(());
        }
        if self.sleep.deadline() != at {
            self.sleep.as_mut().reset(at);
        }
        self.sleep.as_mut().poll(cx)
    }
}

impl Body for Paced {
    type Data = Bytes;
    type Error = BrokenOnPurpose;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let next = self.pieces.front().map_or(self.end_at, |(at, _)| *at);
        if self.wait_for(next, cx).is_pending() {
            return Poll::Pending;
        }
        if let Some((at, piece)) = self.pieces.pop_front() {
            if self.pieces.is_empty()
                && let Some((every, drop)) = self.drip.clone()
            {
                self.pieces.push_back((at + every, drop));
            }
            self.book_if_complete();
            self.unflushed = true;
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if self.close != Close::Clean && std::mem::take(&mut self.unflushed) {
            // hyper throws away what it has buffered when a body fails; one pending poll makes it flush before.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        match self.close {
            Close::Clean => {
                self.book_if_complete();
                Poll::Ready(None)
            }
            Close::Abort => Poll::Ready(Some(Err(BrokenOnPurpose))),
            Close::Reset => {
                self.reset.store(true, Ordering::Relaxed);
                Poll::Ready(Some(Err(BrokenOnPurpose)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.complete()
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
