//! One request and its answer over an HTTP/2 upstream. The client gets HTTP/1.1: chunks of our own, or the length that
//! the upstream told.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use peaklane_core::call::Delivery;
use peaklane_core::outcome::Outcome;
use tokio::time::Instant;

use crate::client::Limits;
use crate::frame::Frame;
use crate::h1::ReadError;
use crate::h2conn::Http2;
use crate::proxy::answer::Mode;
use crate::proxy::exchange::{Left, Plan};
use crate::proxy::head::line;
use crate::proxy::meter::Meter;
use crate::proxy::policy::OnDisconnect;
use crate::proxy::strip::Strip;
use crate::proxy::visitor::{Out, Scratch, Visitor};
use crate::reading::End;

/// The two directions of one request.
pub(crate) struct Second<'a> {
    visitor: &'a mut Visitor,
    upstream: &'a mut Http2,
    meter: Option<Meter>,
    plan: Plan,
    limits: Limits,
    on_disconnect: OnDisconnect,
    /// Data of the request that the upstream's window has no room for yet.
    to_upstream: Bytes,
    to_client: Out,
    sent: Option<Instant>,
    /// How the body is handed on; `None` before its head came.
    mode: Option<Mode>,
    /// How the answer ended, and whether the client's connection is to be reset.
    ended: Option<(End, bool, Instant)>,
    until_close: bool,
    alone: bool,
    began: Instant,
    arrived: Option<Instant>,
    moved: Instant,
}

/// The client has left.
struct Gone;

impl<'a> Second<'a> {
    pub(crate) fn new(
        visitor: &'a mut Visitor,
        upstream: &'a mut Http2,
        mut plan: Plan,
        meter: Option<Meter>,
        limits: Limits,
        on_disconnect: OnDisconnect,
    ) -> Self {
        let now = Instant::now();
        let to_upstream = Bytes::from(std::mem::take(&mut plan.head));
        let mut second = Self {
            visitor,
            upstream,
            meter,
            plan,
            limits,
            on_disconnect,
            to_upstream,
            to_client: Out::default(),
            sent: None,
            mode: None,
            ended: None,
            until_close: false,
            alone: false,
            began: now,
            arrived: None,
            moved: now,
        };
        let ahead = std::mem::take(&mut second.visitor.ahead);
        if second.request_bytes(&ahead).is_err() {
            second.ended = Some((End::Cut, false, now));
        }
        second
    }

    pub(crate) fn due(&self) -> Instant {
        let due = match (self.sent, self.arrived) {
            (Some(sent), None) => sent + self.limits.first_byte,
            _ => self.moved + self.limits.idle,
        };
        due.min(self.sent.unwrap_or(self.began) + self.limits.total)
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Left> {
        loop {
            let mut moved = false;
            for step in [Self::poll_request, Self::poll_answer] {
                match step(self, cx) {
                    Ok(more) => moved |= more,
                    Err(Gone) => {
                        if self.on_disconnect == OnDisconnect::Drain && self.sent.is_some() && !self.alone {
                            self.alone = true;
                            moved = true;
                        } else {
                            if let Some(meter) = self.meter.take() {
                                meter.ended(End::Cut, Instant::now(), Delivery::ClientLeft);
                            }
                            return Poll::Ready(Left::Close { upstream: false });
                        }
                    }
                }
            }
            if let Some(left) = self.finished(cx) {
                return Poll::Ready(left);
            }
            if !moved {
                return Poll::Pending;
            }
            self.moved = Instant::now();
        }
    }

    fn poll_request(&mut self, cx: &mut Context<'_>) -> Result<bool, Gone> {
        let mut moved = false;
        loop {
            let last = self.plan.frame.is_over();
            if self.sent.is_none() && (last || !self.to_upstream.is_empty()) {
                match self.upstream.poll_send(cx, &mut self.to_upstream, last) {
                    Poll::Pending => return Ok(moved),
                    Poll::Ready(Ok(None)) => moved = true,
                    Poll::Ready(Ok(Some(at))) => {
                        self.sent = Some(at);
                        moved = true;
                        if let Some(meter) = &mut self.meter {
                            meter.sent(at);
                        }
                    }
                    // An answer may have come before; if not, its reading tells of the broken connection.
                    Poll::Ready(Err(_)) => {
                        self.sent = Some(Instant::now());
                        self.plan.close = true;
                        self.plan.frame = Frame::over();
                    }
                }
                continue;
            }
            if last {
                if self.alone {
                    return Ok(moved);
                }
                return match self.visitor.poll_gone(cx) {
                    Poll::Ready(()) => Err(Gone),
                    Poll::Pending => Ok(moved),
                };
            }
            let mut scratch = Scratch::take();
            match scratch.poll_read(&mut *self.visitor.io, cx) {
                Poll::Pending => return Ok(moved),
                Poll::Ready(Ok(0) | Err(_)) => return Err(Gone),
                Poll::Ready(Ok(n)) => {
                    moved = true;
                    self.request_bytes(scratch.bytes(n)).map_err(|_| Gone)?;
                }
            }
        }
    }

    fn request_bytes(&mut self, bytes: &[u8]) -> Result<(), String> {
        // HTTP/2 has frames of its own: only the data goes on.
        let mut data = self.to_upstream.to_vec();
        let meter = &mut self.meter;
        let took = self.plan.frame.feed(bytes, &mut |piece| {
            data.extend_from_slice(piece);
            if let Some(meter) = meter {
                meter.request(piece);
            }
        })?;
        self.to_upstream = Bytes::from(data);
        self.visitor.ahead.extend_from_slice(&bytes[took..]);
        Ok(())
    }

    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Result<bool, Gone> {
        let mut moved = false;
        loop {
            if self.alone {
                self.to_client.clear();
            }
            match self.to_client.poll(&mut *self.visitor.io, cx) {
                Poll::Pending => return Ok(moved),
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return Err(Gone),
            }
            if self.ended.is_some() {
                return Ok(moved);
            }
            let step = if self.mode.is_none() { self.poll_head(cx) } else { self.poll_body(cx) };
            match step {
                Poll::Pending => return Ok(moved),
                Poll::Ready(gone) => gone?,
            }
            moved = true;
        }
    }

    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Gone>> {
        let (mut first, mut last) = (None, None);
        let head = match self.upstream.poll_head(cx, &mut first, &mut last) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(head)) => head,
            Poll::Ready(Err(e)) => {
                self.broken(&e, Instant::now());
                return Poll::Ready(Ok(()));
            }
        };
        let at = last.unwrap_or_else(Instant::now);
        self.arrived = Some(at);
        let bodiless = self.plan.bodiless || matches!(head.status, 204 | 304);
        let length = head.headers.get("content-length").is_some();
        let plain_stream = head.status == 200
            && head.headers.get("content-type").is_some_and(|t| t.to_ascii_lowercase().contains("event-stream"))
            && head.headers.get("content-encoding").is_none_or(|c| c.eq_ignore_ascii_case("identity"));
        let mode = match () {
            () if self.plan.strip && plain_stream && !self.plan.old => Mode::Stripped(Box::<Strip>::default()),
            () if bodiless || length => Mode::Raw,
            () if self.plan.old => Mode::Data,
            () => Mode::Chunks,
        };
        self.until_close = matches!(mode, Mode::Data);
        let mut out = format!("HTTP/1.1 {:03} \r\n", head.status).into_bytes();
        for (name, value) in head.headers.iter() {
            if !(name == "content-length" && matches!(mode, Mode::Stripped(_))) {
                line(&mut out, name.as_bytes(), value.as_bytes());
            }
        }
        if matches!(mode, Mode::Chunks | Mode::Stripped(_)) {
            out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
        if self.plan.close || self.until_close {
            out.extend_from_slice(b"Connection: close\r\n");
        }
        out.extend_from_slice(b"\r\n");
        if let Some(meter) = &mut self.meter {
            meter.arrived(at);
            meter.head(head.status, head.headers);
        }
        self.mode = Some(mode);
        if self.alone {
            return Poll::Ready(Ok(()));
        }
        Poll::Ready(self.to_client.send(&mut *self.visitor.io, cx, &out).map_err(|_| Gone))
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Gone>> {
        let Some(mode) = &mut self.mode else { return Poll::Ready(Ok(())) };
        let mut at = Instant::now();
        let mut came: Option<Bytes> = None;
        let polled = self.upstream.poll_piece(cx, &mut at, &mut came);
        let trailers = match polled {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(e)) => {
                self.broken(&e, at);
                return Poll::Ready(Ok(()));
            }
            Poll::Ready(Ok(trailers)) => trailers,
        };
        let mut out = Vec::new();
        if let Some(data) = &came {
            self.arrived = Some(at);
            mode.put(data, &mut out);
        }
        if let Some(trailers) = trailers {
            let mut lines = Vec::new();
            for (name, value) in &trailers {
                line(&mut lines, name.as_str().as_bytes(), value.as_bytes());
            }
            // The end counts where the last data came: an empty frame behind it says nothing new.
            mode.end(&lines, &mut out);
            self.ended = Some((End::Clean, false, self.arrived.unwrap_or(at)));
        }
        let written = if self.alone { Ok(()) } else { self.to_client.send(&mut *self.visitor.io, cx, &out) };
        if let (Some(meter), Some(data)) = (&mut self.meter, &came) {
            meter.arrived(at);
            meter.body(data, at);
        }
        Poll::Ready(written.map_err(|_| Gone))
    }

    fn broken(&mut self, error: &ReadError, at: Instant) {
        self.ended = Some(match error {
            ReadError::Io(_) => (End::Reset, true, at),
            ReadError::Closed => (End::Cut, false, at),
            ReadError::Bad(_) if self.mode.is_none() => (End::Limit(Outcome::BadBody), false, at),
            ReadError::Bad(_) => (End::Cut, false, at),
        });
    }

    fn finished(&mut self, cx: &mut Context<'_>) -> Option<Left> {
        let (end, reset, at) = self.ended?;
        if !self.alone && (!self.to_client.is_empty() || Pin::new(&mut *self.visitor.io).poll_flush(cx).is_pending()) {
            return None;
        }
        let delivery = if self.alone { Delivery::Drained } else { Delivery::Whole };
        let meter = self.meter.take();
        if let End::Limit(outcome) = end {
            let message = "what the upstream answers is no HTTP/2".to_owned();
            if let Some(meter) = meter {
                meter.failed(outcome, message.clone(), Delivery::NoUpstream, at);
            }
            return Some(Left::Own { status: 502, kind: "upstream_not_http", message });
        }
        if let Some(meter) = meter {
            meter.ended(end, at, delivery);
        }
        if end != End::Clean {
            return Some(if reset { Left::Reset } else { Left::Close { upstream: false } });
        }
        let whole = self.sent.is_some();
        let again = whole && !self.plan.close && !self.until_close && !self.alone;
        Some(if again { Left::Again { upstream: true } } else { Left::Close { upstream: whole } })
    }

    pub(crate) fn late(&mut self, due: Instant) -> Left {
        let slow_client = !self.to_client.is_empty() && !self.alone;
        let meter = self.meter.take();
        if slow_client {
            if let Some(meter) = meter {
                meter.ended(End::Cut, due, Delivery::ClientLeft);
            }
            return Left::Reset;
        }
        let total = due >= self.sent.unwrap_or(self.began) + self.limits.total;
        let outcome = match self.arrived {
            _ if total => Outcome::TimeoutTotal,
            None => Outcome::TimeoutFirstByte,
            Some(_) => Outcome::TimeoutIdle,
        };
        let headless = self.mode.is_none();
        if let Some(meter) = meter {
            let delivery = if headless { Delivery::NoUpstream } else { Delivery::Whole };
            meter.ended(End::Limit(outcome), due, delivery);
        }
        if headless && !self.alone {
            let waited = due.saturating_duration_since(self.sent.unwrap_or(self.began)).as_secs();
            let message = format!("the upstream gave no answer within {waited} s");
            return Left::Own { status: 504, kind: "upstream_timeout", message };
        }
        Left::Reset
    }
}
