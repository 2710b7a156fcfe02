//! One request and its answer over an HTTP/1.1 upstream: two directions, one task, no buffers while both are quiet.
//!
//! Everything goes through one poll function, so that each byte is handed on in the wake-up that brought it and the
//! clock is read once, where the read returns. Bytes are written to the other side first and measured afterwards.

use std::pin::Pin;
use std::task::{Context, Poll};

use peaklane_core::call::Delivery;
use peaklane_core::outcome::Outcome;
use tokio::time::Instant;

use crate::client::Limits;
use crate::frame::Frame;
use crate::io::Io;
use crate::proxy::answer::{self, Mode};
use crate::proxy::head::{self, ResponseHead};
use crate::proxy::meter::Meter;
use crate::proxy::policy::OnDisconnect;
use crate::proxy::visitor::{Out, Scratch, Visitor};
use crate::reading::End;

/// What is known of the request before the exchange begins.
pub(crate) struct Plan {
    /// Its head as it goes to the upstream, and the body where it was read beforehand.
    pub(crate) head: Vec<u8>,
    /// What of the body is still to come from the client.
    pub(crate) frame: Frame,
    /// A HEAD request: its answer has no body, whatever it says.
    pub(crate) bodiless: bool,
    /// The client speaks HTTP/1.0.
    pub(crate) old: bool,
    /// The client closes after this answer.
    pub(crate) close: bool,
    /// Token counts were asked for on the client's behalf.
    pub(crate) strip: bool,
}

/// How the exchange left the client's connection.
pub(crate) enum Left {
    /// Ready for the next request; so is the upstream's, if true.
    Again { upstream: bool },
    /// To be closed; the upstream's may be kept, if true.
    Close { upstream: bool },
    /// To be reset, because what was promised did not come.
    Reset,
    /// The proxy answers in the upstream's place.
    Own { status: u16, kind: &'static str, message: String },
    /// The two speak something else from now on; these bytes came with the upstream's consent.
    Tunnel(Vec<u8>),
}

#[derive(Debug)]
enum Answer {
    /// Its head is not whole.
    Waiting(Vec<u8>),
    /// In its body.
    Body { frame: Frame, mode: Mode },
    /// All of it was read.
    Done,
    /// It broke: the client's connection is to be closed or reset once it has taken what came.
    Broken { end: End, reset: bool, at: Instant },
    /// 101: these bytes came behind it.
    Switched(Vec<u8>),
}

/// The two directions of one request.
pub(crate) struct Exchange<'a> {
    visitor: &'a mut Visitor,
    upstream: &'a mut dyn Io,
    meter: Option<Meter>,
    plan: Plan,
    limits: Limits,
    on_disconnect: OnDisconnect,
    to_upstream: Out,
    to_client: Out,
    /// When the last byte of the request was written.
    sent: Option<Instant>,
    /// The upstream takes no more of the request.
    deaf: bool,
    answer: Answer,
    /// The answer may be followed by another on the same connection.
    keep: bool,
    /// The client must see the end of the connection as the end of the body.
    until_close: bool,
    /// The client has left, and the rest is read without it.
    alone: bool,
    began: Instant,
    /// When a byte came from the upstream last.
    arrived: Option<Instant>,
    /// When a byte moved last, in either direction.
    moved: Instant,
}

impl<'a> Exchange<'a> {
    pub(crate) fn new(
        visitor: &'a mut Visitor,
        upstream: &'a mut dyn Io,
        mut plan: Plan,
        meter: Option<Meter>,
        limits: Limits,
        on_disconnect: OnDisconnect,
    ) -> Self {
        let now = Instant::now();
        let mut to_upstream = Out::default();
        to_upstream.push(&std::mem::take(&mut plan.head));
        let mut exchange = Self {
            visitor,
            upstream,
            meter,
            plan,
            limits,
            on_disconnect,
            to_upstream,
            to_client: Out::default(),
            sent: None,
            deaf: false,
            answer: Answer::Waiting(Vec::new()),
            keep: true,
            until_close: false,
            alone: false,
            began: now,
            arrived: None,
            moved: now,
        };
        // What came with the head goes out with the head.
        let ahead = std::mem::take(&mut exchange.visitor.ahead);
        if exchange.request_bytes(None, &ahead).is_err() {
            exchange.deaf = true;
        }
        exchange
    }

    /// The moment at which waiting ends.
    pub(crate) fn due(&self) -> Instant {
        let waits_for_first = self.sent.is_some() && self.arrived.is_none();
        let due = match self.sent {
            Some(sent) if waits_for_first => sent + self.limits.first_byte,
            _ => self.moved + self.limits.idle,
        };
        due.min(self.sent.unwrap_or(self.began) + self.limits.total)
    }

    /// Moves all that can be moved.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Left> {
        loop {
            let mut moved = match self.poll_request(cx) {
                Ok(moved) => moved,
                Err(Gone) => match self.client_left() {
                    Some(left) => return Poll::Ready(left),
                    None => true,
                },
            };
            match self.poll_answer(cx) {
                Ok(more) => moved |= more,
                Err(Gone) => match self.client_left() {
                    Some(left) => return Poll::Ready(left),
                    None => moved = true,
                },
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

    /// The client's direction. True when something moved.
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
            if self.plan.frame.is_over() {
                if self.sent.is_none() {
                    match Pin::new(&mut *self.upstream).poll_flush(cx) {
                        Poll::Pending => return Ok(moved),
                        Poll::Ready(_) => {
                            let now = Instant::now();
                            self.sent = Some(now);
                            if let Some(meter) = &mut self.meter {
                                meter.sent(now);
                            }
                            moved = true;
                        }
                    }
                }
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
                    // A broken frame has no end that could be found: it is as if the client had left.
                    self.request_bytes(Some(cx), scratch.bytes(n)).map_err(|_| Gone)?;
                }
            }
        }
    }

    /// Takes bytes of the request that came from the client. `cx`: they may be written at once.
    fn request_bytes(&mut self, cx: Option<&mut Context<'_>>, bytes: &[u8]) -> Result<(), String> {
        let meter = &mut self.meter;
        let took = self.plan.frame.feed(bytes, &mut |data| {
            if let Some(meter) = meter {
                meter.request(data);
            }
        })?;
        match cx {
            _ if self.deaf => {}
            Some(cx) => {
                if self.to_upstream.send(self.upstream, cx, &bytes[..took]).is_err() {
                    self.deaf = true;
                }
            }
            None => self.to_upstream.push(&bytes[..took]),
        }
        self.visitor.ahead.extend_from_slice(&bytes[took..]);
        Ok(())
    }

    /// The upstream's direction. True when something moved.
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
            if !matches!(self.answer, Answer::Waiting(_) | Answer::Body { .. }) {
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
                    self.answer = Answer::Broken { end: End::Reset, reset: true, at: Instant::now() };
                    return Ok(true);
                }
            }
        }
    }

    /// Bytes of the answer that came at `at`, or (`None`) its connection's end.
    fn answer_bytes(&mut self, cx: &mut Context<'_>, bytes: Option<&[u8]>, at: Instant) -> Result<(), Gone> {
        let Some(bytes) = bytes else {
            self.closed(at);
            return Ok(());
        };
        self.arrived = Some(at);
        if let Some(meter) = &mut self.meter {
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
                    self.answer = Answer::Broken { end: End::Limit(Outcome::BadBody), reset: false, at };
                    return Ok(());
                }
            };
            if head.status == 101 {
                self.to_client.push(&held[..length]);
                self.answer = Answer::Switched(held.split_off(length));
                return Ok(());
            }
            if (100..200).contains(&head.status) {
                // An interim response passes, but it is not the answer.
                if !self.plan.old && !self.alone {
                    self.to_client.push(&held[..length]);
                }
                held.drain(..length);
                if let Some(meter) = &mut self.meter {
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
            let frame = if self.plan.bodiless {
                Ok(Frame::over())
            } else {
                Frame::of_response(head.status, &head.fields.headers())
            };
            let Ok(frame) = frame else {
                self.answer = Answer::Broken { end: End::Limit(Outcome::BadBody), reset: false, at };
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
        let plain_stream = head.status == 200
            && head.fields.get("content-type").is_some_and(|t| t.to_ascii_lowercase().contains("event-stream"))
            && head.fields.get("content-encoding").is_none_or(|c| c.eq_ignore_ascii_case("identity"));
        let mode = answer::mode(frame, self.plan.old, self.plan.strip && plain_stream);
        self.until_close = match mode {
            Mode::Raw => frame.ends_with_connection(),
            Mode::Data => true,
            Mode::Chunks | Mode::Stripped(_) => false,
        };
        if let Some(meter) = &mut self.meter {
            meter.head(head.status, head.fields.headers());
        }
        (answer::head(head, &mode, self.plan.close || self.until_close), mode)
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
        let written = if self.alone {
            Ok(())
        } else if let (Mode::Raw, true) = (&mode, out.is_empty()) {
            self.to_client.send(&mut *self.visitor.io, cx, &bytes[..took])
        } else {
            if let Mode::Raw = mode {
                out.extend_from_slice(&bytes[..took]);
            }
            self.to_client.send(&mut *self.visitor.io, cx, &out)
        };
        if let Some(meter) = &mut self.meter {
            // An error is the one that the probe has found.
            let _ = frame.feed(bytes, &mut |data| meter.body(data, at));
        }
        self.keep &= took == bytes.len();
        self.answer = if broken {
            Answer::Broken { end: End::Cut, reset: false, at }
        } else if over {
            Answer::Done
        } else {
            Answer::Body { frame: probe, mode }
        };
        written.map_err(|_| Gone)
    }

    /// The upstream closed its connection.
    fn closed(&mut self, at: Instant) {
        self.keep = false;
        self.answer = match std::mem::replace(&mut self.answer, Answer::Done) {
            Answer::Body { mut frame, mut mode } => {
                if frame.closed() {
                    let mut out = Vec::new();
                    mode.end(b"", &mut out);
                    self.to_client.push(&out);
                    // The close is the end of the body: the direct client takes its moment too.
                    self.arrived = Some(at);
                    Answer::Done
                } else {
                    Answer::Broken { end: End::Cut, reset: false, at }
                }
            }
            Answer::Waiting(_) => Answer::Broken { end: End::Cut, reset: false, at },
            other => other,
        };
    }

    /// Is everything done? Then says how the two connections are left.
    fn finished(&mut self, cx: &mut Context<'_>) -> Option<Left> {
        if !self.alone {
            if !self.to_client.is_empty() {
                return None;
            }
            if matches!(self.answer, Answer::Done | Answer::Broken { .. } | Answer::Switched(_))
                && Pin::new(&mut *self.visitor.io).poll_flush(cx).is_pending()
            {
                return None;
            }
        }
        let delivery = if self.alone { Delivery::Drained } else { Delivery::Whole };
        match &mut self.answer {
            Answer::Waiting(_) | Answer::Body { .. } => None,
            Answer::Switched(rest) => {
                let rest = std::mem::take(rest);
                self.meter = None;
                Some(Left::Tunnel(rest))
            }
            Answer::Done => {
                let at = self.arrived.unwrap_or_else(Instant::now);
                if let Some(meter) = self.meter.take() {
                    meter.ended(End::Clean, at, delivery);
                }
                // An answer that came before the request was over leaves the rest of it in the way.
                let whole = self.sent.is_some() && !self.deaf;
                let upstream = self.keep && whole;
                let again = whole && !self.plan.close && !self.until_close && !self.alone;
                Some(if again { Left::Again { upstream } } else { Left::Close { upstream } })
            }
            Answer::Broken { end: End::Limit(outcome), at, .. } => {
                let (outcome, at) = (*outcome, *at);
                let message = "what the upstream answers is no HTTP/1.1".to_owned();
                if let Some(meter) = self.meter.take() {
                    meter.failed(outcome, message.clone(), Delivery::NoUpstream, at);
                }
                Some(Left::Own { status: 502, kind: "upstream_not_http", message })
            }
            Answer::Broken { end, reset, at } => {
                let (end, reset, at) = (*end, *reset, *at);
                if let Some(meter) = self.meter.take() {
                    meter.ended(end, at, delivery);
                }
                Some(if reset { Left::Reset } else { Left::Close { upstream: false } })
            }
        }
    }

    /// The client has left. `None`: the answer is read to its end without it.
    fn client_left(&mut self) -> Option<Left> {
        if self.on_disconnect == OnDisconnect::Drain && self.sent.is_some() && !self.alone {
            self.alone = true;
            return None;
        }
        if let Some(meter) = self.meter.take() {
            meter.ended(End::Cut, Instant::now(), Delivery::ClientLeft);
        }
        Some(Left::Close { upstream: false })
    }

    /// A limit ended it.
    pub(crate) fn late(&mut self, due: Instant) -> Left {
        if !self.to_client.is_empty() && !self.alone {
            // It is the client that takes nothing.
            if let Some(meter) = self.meter.take() {
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
        let headless = matches!(self.answer, Answer::Waiting(_));
        if let Some(meter) = self.meter.take() {
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

/// The client has left.
struct Gone;
