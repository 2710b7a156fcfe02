//! One client's connection: requests one after the other.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use peaklane_core::call::Delivery;
use peaklane_core::lane::Api;
use peaklane_core::outcome::Outcome;
use peaklane_core::secret::Secret;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::connection::{Deadline, Got};
use crate::frame::Frame;
use crate::io::{Dial, DialError};
use crate::proxy::answer;
use crate::proxy::door::stopped;
use crate::proxy::exchange::Exchange;
use crate::proxy::head::{self, RequestHead};
use crate::proxy::meter::{About, Gauge, Meter};
use crate::proxy::policy::{Policy, same};
use crate::proxy::route::{Route, api_of, route};
use crate::proxy::second::Second;
use crate::proxy::strip;
use crate::proxy::tap::{MAX_REQUEST_BYTES, Passed, Room, Tap};
use crate::proxy::turn::{Left, Plan, Turn, Way};
use crate::proxy::upstream::{Line, Onward, Spoken, Upstream};
use crate::proxy::visitor::{Guest, Scratch, Visitor};

/// After an answer that refuses a request, this much of its body is read, so that the client sees the answer and not a
/// reset.
const LINGER_BYTES: usize = 4 << 20;
/// And for no longer than this.
const LINGER: Duration = Duration::from_secs(1);
/// Longest wait for the rest of a head whose first byte has come.
const HEAD_LIMIT: Duration = Duration::from_secs(30);

/// Pages of the proxy's own, such as `/metrics`.
pub trait Pages: Send + Sync + 'static {
    /// Content type and text of the page at this path; `None` passes the request on.
    fn page(&self, path: &str) -> Option<(&'static str, String)>;
}

/// What a proxy cannot be made of.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// Nowhere to send anything.
    #[error("the proxy has no upstream")]
    NoUpstream,
    /// A name stands for two upstreams.
    #[error("two upstreams are named `{name}`")]
    SameName {
        /// The name.
        name: String,
    },
    /// A key of ours would serve whoever can connect.
    #[error("the key of upstream {upstream} would be used by everybody who can connect")]
    OpenKey {
        /// Its address.
        upstream: String,
    },
}

impl ProxyError {
    /// The next thing to try.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoUpstream => "name one: --upstream http://127.0.0.1:8000".into(),
            Self::SameName { .. } => "give each a name of its own: --upstream NAME=URL".into(),
            Self::OpenKey { .. } => {
                "put a token of your own into a variable and name it with --token-env; clients send it as their API key"
                    .into()
            }
        })
    }
}

/// A proxy, ready to serve connections.
pub struct Proxy {
    upstreams: Vec<Upstream>,
    policy: Policy,
    dial: Arc<dyn Dial>,
    gauge: Arc<Gauge>,
    pages: Option<Box<dyn Pages>>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").field("upstreams", &self.upstreams).finish_non_exhaustive()
    }
}

/// How one request left the client's connection.
enum Next {
    Again,
    Close,
    Reset,
}

impl Proxy {
    /// A proxy in front of `upstreams`; the first takes what names none.
    ///
    /// * `room`: the bound on copies of requests; share it with whoever frees them.
    /// * `wall_us`: the wall clock, microseconds since the Unix epoch.
    ///
    /// # Errors
    /// [`ProxyError`]: no upstream, two of one name, a key without a token in front of it.
    pub fn new(
        upstreams: Vec<Upstream>,
        policy: Policy,
        dial: Arc<dyn Dial>,
        tap: Arc<dyn Tap>,
        room: Arc<Room>,
        wall_us: fn() -> i64,
    ) -> Result<Self, ProxyError> {
        if upstreams.is_empty() {
            return Err(ProxyError::NoUpstream);
        }
        for (n, one) in upstreams.iter().enumerate() {
            if let Some(name) = one.name()
                && upstreams[..n].iter().any(|other| other.name() == Some(name))
            {
                return Err(ProxyError::SameName { name: name.to_owned() });
            }
            if one.has_key() && policy.token.is_none() {
                return Err(ProxyError::OpenKey { upstream: one.shown() });
            }
        }
        let gauge = Arc::new(Gauge::new(tap, room, wall_us));
        Ok(Self { upstreams, policy, dial, gauge, pages: None })
    }

    /// Adds pages of its own.
    pub fn with_pages(mut self, pages: Box<dyn Pages>) -> Self {
        self.pages = Some(pages);
        self
    }

    /// Serves one connection to its end. Once `stop` is true, the request at hand is the last.
    pub async fn serve(&self, io: Box<dyn Guest>, mut stop: watch::Receiver<bool>) {
        let mut visitor = Visitor::new(io);
        let mut timer = Deadline::default();
        loop {
            let read = self.read_head(&mut visitor, &mut timer, &mut stop).await;
            let (head, began) = match read {
                Ok(Some(found)) => found,
                Ok(None) => break,
                Err(why) => {
                    self.gauge.tap.passed(Passed::Refused);
                    let status = if why.contains("longer than") { 431 } else { 400 };
                    refuse(&mut visitor, Frame::over(), &answer::own(status, "bad_request", &why)).await;
                    break;
                }
            };
            match self.request(&mut visitor, &mut timer, head, began, &stop).await {
                Next::Again => {}
                Next::Close => break,
                Next::Reset => {
                    visitor.io.reset();
                    return;
                }
            }
        }
        // How the close went changes nothing for anybody.
        let _ = timeout(LINGER, visitor.io.shutdown()).await;
    }

    /// Closes idle upstream connections that are too old to be used again.
    pub(crate) fn sweep(&self) {
        self.upstreams.iter().for_each(Upstream::sweep);
    }

    /// The next head, and when its first byte came. `None`: the client is done, or we are.
    async fn read_head(
        &self,
        visitor: &mut Visitor,
        timer: &mut Deadline,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<Option<(RequestHead, Instant)>, String> {
        let mut began = (!visitor.ahead.is_empty()).then(Instant::now);
        let waits_until = Instant::now() + self.policy.keep_alive;
        loop {
            if !visitor.ahead.is_empty() {
                if let Some((head, length)) = head::request(&visitor.ahead)? {
                    visitor.ahead.drain(..length);
                    return Ok(Some((head, began.unwrap_or_else(Instant::now))));
                }
            } else if *stop.borrow() {
                return Ok(None);
            }
            let due = began.map_or(waits_until, |at| at + HEAD_LIMIT);
            let mut stopping = pin!(stopped(stop));
            let idle = began.is_none();
            let got = poll_fn(|cx| {
                if idle && stopping.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Got::Late);
                }
                let mut scratch = Scratch::take();
                let polled = scratch.poll_read(&mut *visitor.io, cx);
                if let Poll::Ready(Ok(n)) = polled {
                    visitor.ahead.extend_from_slice(scratch.bytes(n));
                }
                timer.guard(cx, due, polled)
            })
            .await;
            match got {
                Got::Done(Ok(0) | Err(_)) => return Ok(None),
                Got::Done(Ok(_)) => began = began.or_else(|| Some(Instant::now())),
                Got::Late if idle => return Ok(None),
                Got::Late => return Err("the head of the request did not come to its end".into()),
            }
        }
    }

    /// One request, from its head to the end of its answer.
    async fn request(
        &self,
        visitor: &mut Visitor,
        timer: &mut Deadline,
        head: RequestHead,
        began: Instant,
        stop: &watch::Receiver<bool>,
    ) -> Next {
        let (route, upstream, token_in_key) = match self.find(&head) {
            Ok(found) => found,
            Err((status, kind, message)) => {
                self.gauge.tap.passed(Passed::Refused);
                refuse(visitor, head.frame, &answer::own(status, kind, &message)).await;
                return Next::Close;
            }
        };
        if let Some(page) = self.own_page(&head, &route) {
            refuse(visitor, head.frame, &page).await;
            return Next::Close;
        }
        let target = upstream.target(route.target);
        let api = api_of(&target).filter(|_| head.method == "POST");
        let upgrade = head.fields.get("upgrade").filter(|_| head.fields.says("connection", "upgrade"));
        let line = upstream.line(&self.dial, self.policy.connect).await;
        let about = api.map(|api| About {
            session: route.session.map(str::to_owned),
            lane: upstream.name().map(str::to_owned),
            path: target.split('?').next().unwrap_or_default().to_owned(),
            api,
            usage_injected: false,
            http_version: line.as_ref().map_or("1.1", Line::version),
            handshake: line.as_ref().map(|l| l.handshake).unwrap_or_default(),
        });
        let mut meter = about.map(|about| Meter::new(&self.gauge, &head, about, began, self.policy.copies));
        let mut line = match line {
            Ok(line) => line,
            Err(error) => {
                let message = unreachable(upstream, &error);
                match meter.take() {
                    Some(meter) => {
                        meter.failed(Outcome::Unreachable, message.clone(), Delivery::NoUpstream, Instant::now());
                    }
                    None => self.gauge.tap.passed(Passed::Plain),
                }
                refuse(visitor, head.frame, &answer::own(502, "upstream_unreachable", &message)).await;
                return Next::Close;
            }
        };
        let body = match self.rewritten(visitor, timer, &head, api, meter.as_mut()).await {
            Ok(body) => body,
            Err(()) => return Next::Close,
        };
        let (frame, body) = body.map_or((head.frame, Vec::new()), |body| (Frame::over(), body));
        let rewritten = (!body.is_empty()).then_some(body.len());
        if let (Some(meter), Some(_)) = (&mut meter, rewritten) {
            meter.injected();
        }
        if meter.is_none() && upgrade.is_none() {
            self.gauge.tap.passed(Passed::Plain);
        }
        let onward = Onward { api, token_in_key, rewritten, upgrade: upgrade.as_deref() };
        let plan = |head_bytes: Vec<u8>| Plan {
            head: head_bytes,
            frame,
            bodiless: head.method == "HEAD",
            old: head.old,
            close: head.old || head.fields.says("connection", "close") || *stop.borrow(),
            strip: rewritten.is_some(),
        };
        let (limits, on_disconnect) = (self.policy.limits, self.policy.on_disconnect);
        let left = match &mut line.spoken {
            Spoken::One(_) => {
                let mut bytes = upstream.head_one(&line, &head, &target, &onward);
                bytes.extend_from_slice(&body);
                let Spoken::One(io) = &mut line.spoken else { return Next::Close };
                let turn = Turn::new(visitor, plan(bytes), meter, limits, on_disconnect);
                drive(&mut Exchange::new(turn, &mut **io), timer).await
            }
            Spoken::Two(two) => {
                let ends = frame.is_over() && body.is_empty();
                let ready = match upstream.head_two(&head, &target, &onward) {
                    Ok(request) => match poll_fn(|cx| two.poll_ready(cx)).await {
                        Ok(()) => two.begin_open(request, ends),
                        Err(e) => Err(e),
                    },
                    Err(e) => Err(std::io::Error::other(e)),
                };
                if let Err(error) = ready {
                    let message = format!("cannot send the request to {}: {error}", upstream.shown());
                    if let Some(meter) = meter.take() {
                        meter.failed(Outcome::ConnReset, message.clone(), Delivery::NoUpstream, Instant::now());
                    }
                    refuse(visitor, frame, &answer::own(502, "upstream_broken", &message)).await;
                    return Next::Close;
                }
                let turn = Turn::new(visitor, plan(body), meter, limits, on_disconnect);
                drive(&mut Second::new(turn, two), timer).await
            }
        };
        match left {
            Left::Again { upstream: keep } => {
                if keep {
                    upstream.park(line);
                }
                Next::Again
            }
            Left::Close { upstream: keep } => {
                if keep {
                    upstream.park(line);
                }
                Next::Close
            }
            Left::Reset => Next::Reset,
            Left::Own { status, kind, message } => {
                drop(line);
                let message = format!("{message} ({})", upstream.shown());
                refuse(visitor, Frame::over(), &answer::own(status, kind, &message)).await;
                Next::Close
            }
            Left::Tunnel(rest) => {
                self.gauge.tap.passed(Passed::Upgraded);
                if let Spoken::One(io) = line.spoken {
                    tunnel(visitor, io, &rest).await;
                }
                Next::Close
            }
        }
    }

    /// Session and lane of a request, and whether the client's key is our own token.
    fn find<'a>(
        &'a self,
        head: &'a RequestHead,
    ) -> Result<(Route<'a>, &'a Upstream, bool), (u16, &'static str, String)> {
        if !head.target.starts_with('/') {
            let message = "this is no forwarding proxy: set the harness's base URL to it instead of HTTP_PROXY";
            return Err((400, "bad_request", message.into()));
        }
        let token_in_key = match &self.policy.token {
            None => false,
            Some(token) => shown_token(head, token).ok_or_else(|| {
                let message = "the proxy's token is missing or wrong: send it as the API key, or as X-Peaklane-Token";
                (401, "proxy_token", message.to_owned())
            })?,
        };
        let route = route(&head.target).map_err(|why| (400, "bad_session", why))?;
        let header = head.fields.get("x-peaklane-lane");
        let upstream = match route.lane.or(header.as_deref()) {
            None => &self.upstreams[0],
            Some(name) => self.upstreams.iter().find(|u| u.name() == Some(name)).ok_or_else(|| {
                let known: Vec<_> = self.upstreams.iter().filter_map(Upstream::name).collect();
                let known = if known.is_empty() { "none has a name".to_owned() } else { known.join(", ") };
                (404, "no_such_lane", format!("no upstream has that name; there are: {known}"))
            })?,
        };
        Ok((route, upstream, token_in_key))
    }

    fn own_page(&self, head: &RequestHead, route: &Route<'_>) -> Option<Vec<u8>> {
        // Behind a session or a lane every path is the upstream's.
        if head.method != "GET" || route.session.is_some() || route.lane.is_some() {
            return None;
        }
        let path = route.target.split('?').next().unwrap_or_default();
        let (content_type, text) = self.pages.as_ref()?.page(path)?;
        Some(answer::page(200, "OK", content_type, &text, true))
    }

    /// The body with the option for token counts in it, where that was asked for and something is to be done.
    async fn rewritten(
        &self,
        visitor: &mut Visitor,
        timer: &mut Deadline,
        head: &RequestHead,
        api: Option<Api>,
        meter: Option<&mut Meter>,
    ) -> Result<Option<Vec<u8>>, ()> {
        if !self.policy.inject_usage || !matches!(api, Some(Api::Chat | Api::Completions)) {
            return Ok(None);
        }
        let length = head.fields.get("content-length").and_then(|l| l.parse::<usize>().ok());
        let Some(length) = length.filter(|l| *l <= MAX_REQUEST_BYTES && *l > 0) else { return Ok(None) };
        if head.fields.get("content-encoding").is_some_and(|c| !c.eq_ignore_ascii_case("identity")) {
            return Ok(None);
        }
        if head.fields.has("expect") {
            visitor.io.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.map_err(drop)?;
        }
        let due = Instant::now() + self.policy.limits.idle;
        while visitor.ahead.len() < length {
            let got = poll_fn(|cx| {
                let mut scratch = Scratch::take();
                let polled = scratch.poll_read(&mut *visitor.io, cx);
                if let Poll::Ready(Ok(n)) = polled {
                    visitor.ahead.extend_from_slice(scratch.bytes(n));
                }
                timer.guard(cx, due, polled)
            });
            match got.await {
                Got::Done(Ok(n)) if n > 0 => {}
                _ => return Err(()),
            }
        }
        let Some(changed) = strip::inject(&visitor.ahead[..length]) else { return Ok(None) };
        if let Some(meter) = meter {
            meter.request(&visitor.ahead[..length]);
        }
        visitor.ahead.drain(..length);
        Ok(Some(changed))
    }
}

/// Does the request show the token? `Some(true)`: where the upstream's key would stand.
fn shown_token(head: &RequestHead, token: &Secret) -> Option<bool> {
    let bare = |value: String| {
        let cut = value.get(..7).filter(|begin| begin.eq_ignore_ascii_case("bearer ")).map(str::len);
        value[cut.unwrap_or(0)..].trim().to_owned()
    };
    let shows = |name: &str| head.fields.get(name).is_some_and(|value| same(&bare(value), token.expose()));
    if shows("x-peaklane-token") || shows("proxy-authorization") {
        return Some(false);
    }
    (shows("authorization") || shows("x-api-key") || shows("api-key")).then_some(true)
}

fn unreachable(upstream: &Upstream, error: &DialError) -> String {
    let mut text = format!("cannot reach {}: {error}", upstream.shown());
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    text
}

/// Moves a request and its answer until they are over or a limit passes.
async fn drive<'a>(way: &mut impl Way<'a>, timer: &mut Deadline) -> Left {
    let got = poll_fn(|cx| {
        let polled = way.poll(cx);
        timer.guard(cx, way.turn().due(), polled)
    });
    match got.await {
        Got::Done(left) => left,
        Got::Late => way.late(),
    }
}

/// Gives an answer of our own and reads the rest of the request for a moment, so that it arrives.
async fn refuse(visitor: &mut Visitor, mut frame: Frame, bytes: &[u8]) {
    let ahead = std::mem::take(&mut visitor.ahead);
    let talk = async {
        visitor.io.write_all(bytes).await?;
        visitor.io.flush().await?;
        let mut left = LINGER_BYTES;
        // A broken frame has no end to be waited for.
        let mut whole = frame.feed(&ahead, &mut |_| {}).is_err() || frame.is_over();
        let mut held = vec![0; 16 << 10];
        while !whole && left > 0 {
            let n = visitor.io.read(&mut held).await?;
            left = left.saturating_sub(n);
            whole = n == 0 || frame.feed(&held[..n], &mut |_| {}).is_err() || frame.is_over();
        }
        std::io::Result::Ok(())
    };
    // Neither a client that has left nor one that goes on sending is waited for.
    let _ = timeout(LINGER, talk).await;
}

/// Bytes of both directions until either side ends.
async fn tunnel(visitor: &mut Visitor, mut upstream: Box<dyn crate::io::Io>, rest: &[u8]) {
    let ahead = std::mem::take(&mut visitor.ahead);
    let both = async {
        visitor.io.write_all(rest).await?;
        upstream.write_all(&ahead).await?;
        tokio::io::copy_bidirectional(&mut visitor.io, &mut upstream).await
    };
    // What passes there is not measured, and how it ended is known to both sides.
    let _ = both.await;
}
