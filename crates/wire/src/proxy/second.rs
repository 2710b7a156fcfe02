//! One request and its answer over an HTTP/2 upstream. The client gets HTTP/1.1: chunks of our own, or the length that
//! the upstream told.

use std::task::{Context, Poll};

use bytes::Bytes;
use peaklane_core::outcome::Outcome;
use tokio::time::Instant;

use crate::frame::Frame;
use crate::h1::ReadError;
use crate::h2conn::Http2;
use crate::proxy::answer::{self, Mode};
use crate::proxy::head::line;
use crate::proxy::strip::Strip;
use crate::proxy::turn::{Broken, Gone, Left, Turn, Way};
use crate::proxy::visitor::Scratch;
use crate::reading::End;

/// The two directions of one request.
pub(crate) struct Second<'a> {
    turn: Turn<'a>,
    upstream: &'a mut Http2,
    /// Data of the request that the upstream's window has no room for yet.
    to_upstream: Bytes,
    /// How the body is handed on; `None` before its head came.
    mode: Option<Mode>,
    ended: Option<Ended>,
}

/// How the answer ended.
#[derive(Clone, Copy)]
enum Ended {
    Whole(Instant),
    Broken(Broken),
}

impl<'a> Second<'a> {
    pub(crate) fn new(mut turn: Turn<'a>, upstream: &'a mut Http2) -> Self {
        let to_upstream = Bytes::from(std::mem::take(&mut turn.plan.head));
        let ahead = std::mem::take(&mut turn.visitor.ahead);
        let mut second = Self { turn, upstream, to_upstream, mode: None, ended: None };
        if second.request_bytes(&ahead).is_err() {
            second.ended = Some(Ended::Broken(Broken { end: End::Cut, reset: false, at: Instant::now() }));
        }
        second
    }

    fn request_bytes(&mut self, bytes: &[u8]) -> Result<(), String> {
        // HTTP/2 has frames of its own: only the data goes on.
        let mut data = self.to_upstream.to_vec();
        self.turn.feed(bytes, &mut |piece| data.extend_from_slice(piece))?;
        self.to_upstream = Bytes::from(data);
        Ok(())
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
        self.turn.arrived = Some(at);
        self.turn.plan.bodiless |= matches!(head.status, 204 | 304);
        let length = head.headers.get("content-length").is_some();
        let plain_stream = answer::is_plain_stream(head.status, |name| head.headers.get(name));
        let mode = match () {
            () if self.turn.plan.strip && plain_stream && !self.turn.plan.old => {
                Mode::Stripped(Box::<Strip>::default())
            }
            () if self.turn.plan.bodiless || length => Mode::Raw,
            () if self.turn.plan.old => Mode::Data,
            () => Mode::Chunks,
        };
        self.turn.until_close = matches!(mode, Mode::Data);
        let mut out = format!("HTTP/1.1 {:03} \r\n", head.status).into_bytes();
        for (name, value) in head.headers.iter() {
            if !(name == "content-length" && matches!(mode, Mode::Stripped(_))) {
                line(&mut out, name.as_bytes(), value.as_bytes());
            }
        }
        if matches!(mode, Mode::Chunks | Mode::Stripped(_)) {
            out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
        if self.turn.plan.close || self.turn.until_close {
            out.extend_from_slice(b"Connection: close\r\n");
        }
        out.extend_from_slice(b"\r\n");
        if let Some(meter) = &mut self.turn.meter {
            meter.arrived(at);
            meter.head(head.status, head.headers);
        }
        self.mode = Some(mode);
        Poll::Ready(self.turn.send(cx, &out))
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
            self.turn.arrived = Some(at);
            // Behind an answer that has no body the client would take it for the next answer.
            if !self.turn.plan.bodiless {
                mode.put(data, &mut out);
            }
        }
        if let Some(trailers) = trailers {
            let mut lines = Vec::new();
            for (name, value) in &trailers {
                line(&mut lines, name.as_str().as_bytes(), value.as_bytes());
            }
            // The end counts where the last data came: an empty frame behind it says nothing new.
            mode.end(&lines, &mut out);
            self.ended = Some(Ended::Whole(self.turn.arrived.unwrap_or(at)));
        }
        let written = self.turn.send(cx, &out);
        if let (Some(meter), Some(data)) = (&mut self.turn.meter, &came) {
            meter.arrived(at);
            meter.body(data, at);
        }
        Poll::Ready(written)
    }

    fn broken(&mut self, error: &ReadError, at: Instant) {
        let (end, reset) = match error {
            ReadError::Io(_) => (End::Reset, true),
            ReadError::Bad(_) if self.mode.is_none() => (End::Limit(Outcome::BadBody), false),
            ReadError::Closed | ReadError::Bad(_) => (End::Cut, false),
        };
        self.ended = Some(Ended::Broken(Broken { end, reset, at }));
    }
}

impl<'a> Way<'a> for Second<'a> {
    fn turn(&mut self) -> &mut Turn<'a> {
        &mut self.turn
    }

    fn poll_request(&mut self, cx: &mut Context<'_>) -> Result<bool, Gone> {
        let mut moved = false;
        loop {
            let last = self.turn.plan.frame.is_over();
            if self.turn.sent.is_none() && (last || !self.to_upstream.is_empty()) {
                match self.upstream.poll_send(cx, &mut self.to_upstream, last) {
                    Poll::Pending => return Ok(moved),
                    Poll::Ready(Ok(None)) => moved = true,
                    Poll::Ready(Ok(Some(at))) => {
                        self.turn.sent(at);
                        moved = true;
                    }
                    // An answer may have come before; if not, its reading tells of the broken connection.
                    Poll::Ready(Err(_)) => {
                        self.turn.sent = Some(Instant::now());
                        self.turn.plan.close = true;
                        self.turn.plan.frame = Frame::over();
                    }
                }
                continue;
            }
            if last {
                return self.turn.look(cx).map(|()| moved);
            }
            let mut scratch = Scratch::take();
            match scratch.poll_read(&mut *self.turn.visitor.io, cx) {
                Poll::Pending => return Ok(moved),
                Poll::Ready(Ok(0) | Err(_)) => return Err(Gone),
                Poll::Ready(Ok(n)) => {
                    moved = true;
                    self.request_bytes(scratch.bytes(n)).map_err(|_| Gone)?;
                }
            }
        }
    }

    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Result<bool, Gone> {
        let mut moved = false;
        loop {
            match self.turn.hand_on(cx) {
                Poll::Pending => return Ok(moved),
                Poll::Ready(gone) => gone?,
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

    fn finished(&mut self, cx: &mut Context<'_>) -> Option<Left> {
        let ended = self.ended?;
        if !self.turn.is_taken(cx) {
            return None;
        }
        Some(match ended {
            Ended::Whole(at) => {
                let whole = self.turn.sent.is_some();
                self.turn.done(at, whole, true)
            }
            Ended::Broken(how) => self.turn.broken(how, "HTTP/2"),
        })
    }

    fn headless(&self) -> bool {
        self.mode.is_none()
    }
}
