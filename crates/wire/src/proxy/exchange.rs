//! One request and its answer over an HTTP/1.1 upstream: two directions, one task, no buffers while both are quiet.
//!
//! Everything goes through one poll function, so that each byte is handed on in the wake-up that brought it and the
//! clock is read once, where the read returns. Bytes are written to the other side first and measured afterwards.

use std::pin::Pin;
use std::task::{Context, Poll};

use peaklane_core::outcome::Outcome;
use tokio::time::Instant;

use crate::frame::Frame;
use crate::io::Io;
use crate::proxy::answer::{self, Mode};
use crate::proxy::head::{self, ResponseHead};
use crate::proxy::turn::{Broken, Gone, Left, Turn, Way};
use crate::proxy::visitor::{Out, Scratch};
use crate::reading::End;

#[derive(Debug)]
enum Answer {
    /// Its head is not whole.
    Waiting(Vec<u8>),
    /// In its body.
    Body { frame: Frame, mode: Mode },
    /// All of it was read.
    Done,
    /// It broke: the client's connection is to be closed or reset once it has taken what came.
    Broken(Broken),
    /// 101: these bytes came behind it.
    Switched(Vec<u8>),
}

/// The two directions of one request.
pub(crate) struct Exchange<'a> {
    turn: Turn<'a>,
    upstream: &'a mut dyn Io,
    to_upstream: Out,
    /// The upstream takes no more of the request.
    deaf: bool,
    answer: Answer,
    /// The answer may be followed by another on the same connection.
    keep: bool,
}

impl<'a> Exchange<'a> {
    pub(crate) fn new(mut turn: Turn<'a>, upstream: &'a mut dyn Io) -> Self {
        let mut to_upstream = Out::default();
        to_upstream.push(&std::mem::take(&mut turn.plan.head));
        let ahead = std::mem::take(&mut turn.visitor.ahead);
        let answer = Answer::Waiting(Vec::new());
        let mut exchange = Self { turn, upstream, to_upstream, deaf: false, answer, keep: true };
        // What came with the head goes out with the head.
        if exchange.request_bytes(None, &ahead).is_err() {
            exchange.deaf = true;
        }
        exchange
    }

    /// More of the answer is to be read.
    fn is_under_way(&self) -> bool {
        matches!(self.answer, Answer::Waiting(_) | Answer::Body { .. })
    }

    /// Takes bytes of the request that came from the client. `cx`: they may be written at once.
    fn request_bytes(&mut self, cx: Option<&mut Context<'_>>, bytes: &[u8]) -> Result<(), String> {
        let took = self.turn.feed(bytes, &mut |_| {})?;
        match cx {
            _ if self.deaf => {}
            Some(cx) => {
                if self.to_upstream.send(self.upstream, cx, &bytes[..took]).is_err() {
                    self.deaf = true;
                }
            }
            None => self.to_upstream.push(&bytes[..took]),
        }
        Ok(())
    }

    /// Bytes of the answer that came at `at`, or (`None`) its connection's end.
    fn answer_bytes(&mut self, cx: &mut Context<'_>, bytes: Option<&[u8]>, at: Instant) -> Result<(), Gone> {
        let Some(bytes) = bytes else {
            self.closed(at);
            return Ok(());
        };
        self.turn.arrived = Some(at);
        if let Some(meter) = &mut self.turn.meter {
            meter.arrived(at);
        }
        match std::mem::replace(&mut self.answer, Answer::Done) {
            Answer::Waiting(mut held) => {
                held.extend_from_slice(bytes);
                self.heads(cx, held, at)
            }
            Answer::Body { frame, mode } => self.body(cx, Vec::new(), bytes, frame, mode, at),
            other => {
                self.answer = other;
                Ok(())
            }
        }
    }

    /// Looks for whole heads in what came before the body.
    fn heads(&mut self, cx: &mut Context<'_>, mut held: Vec<u8>, at: Instant) -> Result<(), Gone> {
        loop {
            let (head, length) = match head::response(&held) {
                Ok(Some(found)) => found,
                Ok(None) => {
                    self.answer = Answer::Waiting(held);
                    return Ok(());
                }
                Err(_) => {
                    self.answer = Answer::Broken(Broken { end: End::Limit(Outcome::BadBody), reset: false, at });
                    return Ok(());
                }
            };
            if head.status == 101 {
                self.turn.to_client.push(&held[..length]);
                self.answer = Answer::Switched(held.split_off(length));
                return Ok(());
            }
            if (100..200).contains(&head.status) {
                // An interim response passes, but it is not the answer.
                if !self.turn.plan.old && !self.turn.alone {
                    self.turn.to_client.push(&held[..length]);
                }
                held.drain(..length);
                if let Some(meter) = &mut self.turn.meter {
                    meter.interim();
                    if !held.is_empty() {
                        meter.arrived(at);
                    }
                }
                if held.is_empty() {
                    self.answer = Answer::Waiting(held);
                    return Ok(());
                }
                continue;
            }
            let frame = if self.turn.plan.bodiless {
                Ok(Frame::over())
            } else {
                Frame::of_response(head.status, &head.fields.headers())
            };
            let Ok(frame) = frame else {
                self.answer = Answer::Broken(Broken { end: End::Limit(Outcome::BadBody), reset: false, at });
                return Ok(());
            };
            let (out, mode) = self.begin(&head, &frame);
            return self.body(cx, out, &held[length..], frame, mode, at);
        }
    }

    /// The head for the client, and how the body follows it.
    fn begin(&mut self, head: &ResponseHead, frame: &Frame) -> (Vec<u8>, Mode) {
        let keeps = if head.old {
            head.fields.says("connection", "keep-alive")
        } else {
            !head.fields.says("connection", "close")
        };
        self.keep = keeps && !frame.ends_with_connection();
        let plain_stream = answer::is_plain_stream(head.status, |name| head.fields.get(name));
        let mode = answer::mode(frame, self.turn.plan.old, self.turn.plan.strip && plain_stream);
        self.turn.until_close = match mode {
            Mode::Raw => frame.ends_with_connection(),
            Mode::Data => true,
            Mode::Chunks | Mode::Stripped(_) => false,
        };
        if let Some(meter) = &mut self.turn.meter {
            meter.head(head.status, head.fields.headers());
        }
        (answer::head(head, &mode, self.turn.plan.close || self.turn.until_close), mode)
    }

    /// Hands on a piece of the body, behind what stands in `out` already, then measures it.
    fn body(
        &mut self,
        cx: &mut Context<'_>,
        mut out: Vec<u8>,
        bytes: &[u8],
        mut frame: Frame,
        mut mode: Mode,
        at: Instant,
    ) -> Result<(), Gone> {
        let mut probe = frame;
        let (took, broken) = if let Mode::Raw = mode {
            match probe.feed(bytes, &mut |_| {}) {
                Ok(took) => (took, false),
                // Broken framing is the client's to see, as it would without us.
                Err(_) => (bytes.len(), true),
            }
        } else {
            match probe.feed(bytes, &mut |data| mode.put(data, &mut out)) {
                Ok(took) => (took, false),
                Err(_) => (bytes.len(), true),
            }
        };
        let over = !broken && probe.is_over();
        if over {
            mode.end(b"", &mut out);
        }
        let written = if let (Mode::Raw, true) = (&mode, out.is_empty()) {
            self.turn.send(cx, &bytes[..took])
        } else {
            if let Mode::Raw = mode {
                out.extend_from_slice(&bytes[..took]);
            }
            self.turn.send(cx, &out)
        };
        if let Some(meter) = &mut self.turn.meter {
            // An error is the one that the probe has found.
            let _ = frame.feed(bytes, &mut |data| meter.body(data, at));
        }
        self.keep &= took == bytes.len();
        self.answer = if broken {
            Answer::Broken(Broken { end: End::Cut, reset: false, at })
        } else if over {
            Answer::Done
        } else {
            Answer::Body { frame: probe, mode }
        };
        written
    }

    /// The upstream closed its connection.
    fn closed(&mut self, at: Instant) {
        self.keep = false;
        self.answer = match std::mem::replace(&mut self.answer, Answer::Done) {
            Answer::Body { mut frame, mut mode } => {
                if frame.closed() {
                    let mut out = Vec::new();
                    mode.end(b"", &mut out);
                    self.turn.to_client.push(&out);
                    // The close is the end of the body: the direct client takes its moment too.
                    self.turn.arrived = Some(at);
                    Answer::Done
                } else {
                    Answer::Broken(Broken { end: End::Cut, reset: false, at })
                }
            }
            Answer::Waiting(_) => Answer::Broken(Broken { end: End::Cut, reset: false, at }),
            other => other,
        };
    }
}

impl<'a> Way<'a> for Exchange<'a> {
    fn turn(&mut self) -> &mut Turn<'a> {
        &mut self.turn
    }

    fn poll_request(&mut self, cx: &mut Context<'_>) -> Result<bool, Gone> {
        let mut moved = false;
        loop {
            if self.deaf {
                self.to_upstream.clear();
            } else {
                match self.to_upstream.poll(self.upstream, cx) {
                    Poll::Pending => return Ok(moved),
                    Poll::Ready(Ok(())) => {}
                    // It may have answered before it closed (413): its answer is looked for.
                    Poll::Ready(Err(_)) => self.deaf = true,
                }
            }
            if self.turn.plan.frame.is_over() {
                if self.turn.sent.is_none() {
                    match Pin::new(&mut *self.upstream).poll_flush(cx) {
                        Poll::Pending => return Ok(moved),
                        Poll::Ready(_) => {
                            self.turn.sent(Instant::now());
                            moved = true;
                        }
                    }
                }
                return self.turn.look(cx).map(|()| moved);
            }
            let mut scratch = Scratch::take();
            match scratch.poll_read(&mut *self.turn.visitor.io, cx) {
                Poll::Pending => return Ok(moved),
                Poll::Ready(Ok(0) | Err(_)) => return Err(Gone),
                Poll::Ready(Ok(n)) => {
                    moved = true;
                    // A broken frame has no end that could be found: it is as if the client had left.
                    self.request_bytes(Some(cx), scratch.bytes(n)).map_err(|_| Gone)?;
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
            if !self.is_under_way() {
                return Ok(moved);
            }
            let mut scratch = Scratch::take();
            match scratch.poll_read(self.upstream, cx) {
                Poll::Pending => return Ok(moved),
                Poll::Ready(Ok(n)) => {
                    let at = Instant::now();
                    moved = true;
                    self.answer_bytes(cx, (n > 0).then(|| scratch.bytes(n)), at)?;
                }
                Poll::Ready(Err(_)) => {
                    self.answer = Answer::Broken(Broken { end: End::Reset, reset: true, at: Instant::now() });
                    return Ok(true);
                }
            }
        }
    }

    fn finished(&mut self, cx: &mut Context<'_>) -> Option<Left> {
        if self.is_under_way() || !self.turn.is_taken(cx) {
            return None;
        }
        match &mut self.answer {
            Answer::Waiting(_) | Answer::Body { .. } => None,
            Answer::Switched(rest) => {
                let rest = std::mem::take(rest);
                self.turn.meter = None;
                Some(Left::Tunnel(rest))
            }
            Answer::Done => {
                let at = self.turn.arrived.unwrap_or_else(Instant::now);
                let whole = self.turn.sent.is_some() && !self.deaf;
                Some(self.turn.done(at, whole, self.keep))
            }
            Answer::Broken(how) => Some(self.turn.broken(*how, "HTTP/1.1")),
        }
    }

    fn headless(&self) -> bool {
        matches!(self.answer, Answer::Waiting(_))
    }
}
