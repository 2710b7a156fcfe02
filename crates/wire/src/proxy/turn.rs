//! One request and its answer, whatever the upstream speaks: the client, the meter, the limits, and how it ends when the
//! client leaves, a limit passes, or all is done. The ways through HTTP/1.1 and HTTP/2 move the bytes.

use std::pin::Pin;
use std::task::{Context, Poll};

use peaklane_core::call::Delivery;
use peaklane_core::outcome::Outcome;
use tokio::time::Instant;

use crate::client::Limits;
use crate::frame::Frame;
use crate::proxy::meter::Meter;
use crate::proxy::policy::OnDisconnect;
use crate::proxy::visitor::{Out, Visitor};
use crate::reading::End;

/// What is known of the request before the exchange begins.
pub(crate) struct Plan {
    /// What goes to the upstream first: over HTTP/1.1 its head, and the body where it was read beforehand.
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

/// The client has left.
pub(crate) struct Gone;

/// How an answer ended that did not come to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Broken {
    /// A limit stands for an answer that is none.
    pub(crate) end: End,
    /// The client's connection is to be reset, not closed.
    pub(crate) reset: bool,
    pub(crate) at: Instant,
}

/// A way to move a request and its answer.
pub(crate) trait Way<'a> {
    fn turn(&mut self) -> &mut Turn<'a>;

    /// The client's direction. True when something moved.
    fn poll_request(&mut self, cx: &mut Context<'_>) -> Result<bool, Gone>;

    /// The upstream's direction. True when something moved.
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Result<bool, Gone>;

    /// Is everything done? Then says how the two connections are left.
    fn finished(&mut self, cx: &mut Context<'_>) -> Option<Left>;

    /// The head of the answer has not come.
    fn headless(&self) -> bool;

    /// Moves all that can be moved.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Left> {
        loop {
            let mut moved = false;
            for step in [Self::poll_request, Self::poll_answer] {
                match step(self, cx) {
                    Ok(more) => moved |= more,
                    Err(Gone) => match self.turn().client_left() {
                        Some(left) => return Poll::Ready(left),
                        None => moved = true,
                    },
                }
            }
            if let Some(left) = self.finished(cx) {
                return Poll::Ready(left);
            }
            if !moved {
                return Poll::Pending;
            }
            self.turn().moved = Instant::now();
        }
    }

    /// A limit ended it.
    fn late(&mut self) -> Left {
        let headless = self.headless();
        self.turn().late(headless)
    }
}

/// What the ways have in common.
pub(crate) struct Turn<'a> {
    pub(crate) visitor: &'a mut Visitor,
    pub(crate) meter: Option<Meter>,
    pub(crate) plan: Plan,
    limits: Limits,
    on_disconnect: OnDisconnect,
    pub(crate) to_client: Out,
    /// When the last byte of the request was written.
    pub(crate) sent: Option<Instant>,
    /// The client must see the end of the connection as the end of the body.
    pub(crate) until_close: bool,
    /// The client has left, and the rest is read without it.
    pub(crate) alone: bool,
    began: Instant,
    /// When a byte came from the upstream last.
    pub(crate) arrived: Option<Instant>,
    /// When a byte moved last, in either direction.
    moved: Instant,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(
        visitor: &'a mut Visitor,
        plan: Plan,
        meter: Option<Meter>,
        limits: Limits,
        on_disconnect: OnDisconnect,
    ) -> Self {
        let now = Instant::now();
        Self {
            visitor,
            meter,
            plan,
            limits,
            on_disconnect,
            to_client: Out::default(),
            sent: None,
            until_close: false,
            alone: false,
            began: now,
            arrived: None,
            moved: now,
        }
    }

    /// The moment at which waiting ends.
    pub(crate) fn due(&self) -> Instant {
        let due = match (self.sent, self.arrived) {
            (Some(sent), None) => sent + self.limits.first_byte,
            _ => self.moved + self.limits.idle,
        };
        due.min(self.waits_since() + self.limits.total)
    }

    fn waits_since(&self) -> Instant {
        self.sent.unwrap_or(self.began)
    }

    /// Takes bytes of the request: `put` gets the data in them. Says how many belong to it; the rest stays with the client.
    pub(crate) fn feed(&mut self, bytes: &[u8], put: &mut dyn FnMut(&[u8])) -> Result<usize, String> {
        let meter = &mut self.meter;
        let took = self.plan.frame.feed(bytes, &mut |data| {
            put(data);
            if let Some(meter) = meter {
                meter.request(data);
            }
        })?;
        self.visitor.ahead.extend_from_slice(&bytes[took..]);
        Ok(took)
    }

    /// The request is sent as a whole.
    pub(crate) fn sent(&mut self, at: Instant) {
        self.sent = Some(at);
        if let Some(meter) = &mut self.meter {
            meter.sent(at);
        }
    }

    /// Looks whether the client, which has sent its request, is still there.
    pub(crate) fn look(&mut self, cx: &mut Context<'_>) -> Result<(), Gone> {
        if !self.alone && self.visitor.poll_gone(cx).is_ready() {
            return Err(Gone);
        }
        Ok(())
    }

    /// Writes what waits for the client. Ready when nothing is left.
    pub(crate) fn hand_on(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Gone>> {
        if self.alone {
            self.to_client.clear();
        }
        self.to_client.poll(&mut *self.visitor.io, cx).map_err(|_| Gone)
    }

    /// Writes bytes to the client, if it is still there.
    pub(crate) fn send(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Result<(), Gone> {
        if self.alone {
            return Ok(());
        }
        self.to_client.send(&mut *self.visitor.io, cx, bytes).map_err(|_| Gone)
    }

    /// Has the client taken all that it is to get?
    pub(crate) fn is_taken(&mut self, cx: &mut Context<'_>) -> bool {
        self.alone || self.to_client.is_empty() && Pin::new(&mut *self.visitor.io).poll_flush(cx).is_ready()
    }

    fn delivery(&self) -> Delivery {
        if self.alone { Delivery::Drained } else { Delivery::Whole }
    }

    /// The answer came to its end at `at`.
    ///
    /// * `whole`: so did the request. An answer that came before leaves the rest of it in the way.
    /// * `keep`: the upstream's connection can carry another.
    pub(crate) fn done(&mut self, at: Instant, whole: bool, keep: bool) -> Left {
        let delivery = self.delivery();
        if let Some(meter) = self.meter.take() {
            meter.ended(End::Clean, at, delivery);
        }
        let upstream = keep && whole;
        let again = whole && !self.plan.close && !self.until_close && !self.alone;
        if again { Left::Again { upstream } } else { Left::Close { upstream } }
    }

    /// The answer broke, and the client has taken what came of it. `spoken`: what it should have been.
    pub(crate) fn broken(&mut self, how: Broken, spoken: &str) -> Left {
        let Broken { end, reset, at } = how;
        let delivery = self.delivery();
        let meter = self.meter.take();
        if let End::Limit(outcome) = end {
            let message = format!("what the upstream answers is no {spoken}");
            if let Some(meter) = meter {
                meter.failed(outcome, message.clone(), Delivery::NoUpstream, at);
            }
            return Left::Own { status: 502, kind: "upstream_not_http", message };
        }
        if let Some(meter) = meter {
            meter.ended(end, at, delivery);
        }
        if reset { Left::Reset } else { Left::Close { upstream: false } }
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

    fn late(&mut self, headless: bool) -> Left {
        let due = self.due();
        let meter = self.meter.take();
        if !self.to_client.is_empty() && !self.alone {
            // It is the client that takes nothing.
            if let Some(meter) = meter {
                meter.ended(End::Cut, due, Delivery::ClientLeft);
            }
            return Left::Reset;
        }
        let outcome = match self.arrived {
            _ if due >= self.waits_since() + self.limits.total => Outcome::TimeoutTotal,
            None => Outcome::TimeoutFirstByte,
            Some(_) => Outcome::TimeoutIdle,
        };
        if let Some(meter) = meter {
            let delivery = if headless { Delivery::NoUpstream } else { Delivery::Whole };
            meter.ended(End::Limit(outcome), due, delivery);
        }
        if headless && !self.alone {
            let waited = due.saturating_duration_since(self.waits_since()).as_secs();
            let message = format!("the upstream gave no answer within {waited} s");
            return Left::Own { status: 504, kind: "upstream_timeout", message };
        }
        Left::Reset
    }
}
