//! One connection of either HTTP version, and the one timer that guards it.

use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use peaklane_core::lane::Api;
use peaklane_core::record::Handshake;
use tokio::time::{Instant, Sleep};

use crate::client::Target;
use crate::endpoint::Endpoint;
use crate::h1::{BodyState, Head, Http1, ReadError};
use crate::h2conn::Http2;
use crate::io::Dialled;

/// Most of a response that is read for the sake of keeping its connection, bytes: what follows a terminal signal is the
/// end of its frame, and another connection costs less than more than that.
const DRAIN_BYTES: usize = 64 << 10;

/// What a guarded wait gave.
pub(crate) enum Got<T> {
    /// The thing itself.
    Done(T),
    /// The limit came first.
    Late,
}

/// One timer for all limits of a try. Moving a limit outward costs nothing: the timer is re-armed only when it fires,
/// because most reads move the idle limit and hardly any reaches it.
#[derive(Default)]
pub(crate) struct Deadline {
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    /// Gives on what is ready; otherwise waits until `due` at the latest.
    pub(crate) fn guard<T>(&mut self, cx: &mut Context<'_>, due: Instant, polled: Poll<T>) -> Poll<Got<T>> {
        if let Poll::Ready(got) = polled {
            return Poll::Ready(Got::Done(got));
        }
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
        if sleep.deadline() > due {
            sleep.as_mut().reset(due);
        }
        while sleep.as_mut().poll(cx).is_ready() {
            if Instant::now() >= due {
                return Poll::Ready(Got::Late);
            }
            sleep.as_mut().reset(due);
        }
        Poll::Pending
    }
}

#[derive(Debug)]
enum Wire {
    One(Box<Http1>),
    Two(Box<Http2>),
}

/// One request as it goes out.
pub(crate) struct Outgoing<'a> {
    pub(crate) method: &'static str,
    pub(crate) target: &'a Target,
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) body: &'a Bytes,
    pub(crate) request_id: Option<&'a str>,
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Connection {
    wire: Wire,
    pub(crate) handshake: Handshake,
    absolute_form: bool,
    proxy_authorization: Option<String>,
    /// It has carried a request.
    pub(crate) used: bool,
    /// It failed or was given up: not to be kept.
    pub(crate) broken: bool,
}

impl Connection {
    pub(crate) async fn new(dialled: Dialled) -> io::Result<Self> {
        let wire = if dialled.http2 {
            Wire::Two(Box::new(Http2::new(dialled.io).await?))
        } else {
            Wire::One(Box::new(Http1::new(dialled.io)))
        };
        Ok(Self {
            wire,
            handshake: dialled.handshake,
            absolute_form: dialled.absolute_form,
            proxy_authorization: dialled.proxy_authorization,
            used: false,
            broken: false,
        })
    }

    pub(crate) fn version(&self) -> &'static str {
        match self.wire {
            Wire::One(_) => "1.1",
            Wire::Two(_) => "2",
        }
    }

    pub(crate) fn reusable(&self) -> bool {
        !self.broken
            && match &self.wire {
                Wire::One(conn) => conn.reusable(),
                Wire::Two(conn) => conn.reusable(),
            }
    }

    /// Has the peer left the idle connection open?
    pub(crate) async fn is_alive(&mut self) -> bool {
        match &mut self.wire {
            Wire::One(conn) => poll_fn(|cx| Poll::Ready(conn.poll_alive(cx))).await,
            Wire::Two(conn) => {
                // Only the connection's own task hears of a close or a GOAWAY: it runs first.
                tokio::task::yield_now().await;
                conn.reusable()
            }
        }
    }

    /// What must not show in a record: the credentials for a forwarding proxy, which the proxy may echo.
    pub(crate) fn proxy_secret(&self) -> Option<&str> {
        self.proxy_authorization.as_deref().map(|value| value.strip_prefix("Basic ").unwrap_or(value))
    }

    /// Writes the whole request. Gives the moment of its last byte.
    pub(crate) async fn write(
        &mut self,
        timer: &mut Deadline,
        due: Instant,
        request: &Outgoing<'_>,
    ) -> Got<io::Result<Instant>> {
        match &mut self.wire {
            Wire::One(conn) => {
                let bytes = h1_request(request, self.absolute_form, self.proxy_authorization.as_deref());
                let mut left = &bytes[..];
                poll_fn(|cx| {
                    let polled = conn.poll_write(cx, &mut left);
                    timer.guard(cx, due, polled)
                })
                .await
            }
            Wire::Two(conn) => {
                let ready = poll_fn(|cx| {
                    let polled = conn.poll_ready(cx);
                    timer.guard(cx, due, polled)
                })
                .await;
                match ready {
                    Got::Late => return Got::Late,
                    Got::Done(Err(e)) => return Got::Done(Err(e)),
                    Got::Done(Ok(())) => {}
                }
                let begun = h2_request(request).and_then(|r| conn.begin(r, request.body.clone()));
                if let Err(e) = begun {
                    return Got::Done(Err(e));
                }
                poll_fn(|cx| {
                    let polled = conn.poll_write(cx);
                    timer.guard(cx, due, polled)
                })
                .await
            }
        }
    }

    pub(crate) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        first_byte: &mut Option<Instant>,
        last_byte: &mut Option<Instant>,
    ) -> Poll<Result<Head, ReadError>> {
        match &mut self.wire {
            Wire::One(conn) => conn.poll_head(cx, first_byte, last_byte),
            Wire::Two(conn) => conn.poll_head(cx, first_byte, last_byte),
        }
    }

    /// One step of the body; true when it is over.
    pub(crate) fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        arrived: &mut Instant,
        out: &mut dyn FnMut(&[u8], Instant),
    ) -> Poll<Result<bool, ReadError>> {
        let polled = match &mut self.wire {
            Wire::One(conn) => conn.poll_body(cx, arrived, out),
            Wire::Two(conn) => conn.poll_body(cx, arrived, out),
        };
        polled.map_ok(|state| state == BodyState::Over)
    }

    /// Reads what is left of a response whose outcome is known, so that the connection can be kept; gives up at `due`,
    /// and on a response that does not end.
    pub(crate) async fn drain(&mut self, timer: &mut Deadline, due: Instant) {
        let mut at = Instant::now();
        let mut left = DRAIN_BYTES;
        loop {
            let step = poll_fn(|cx| {
                let polled = self.poll_body(cx, &mut at, &mut |bytes, _| left = left.saturating_sub(bytes.len()));
                timer.guard(cx, due, polled)
            })
            .await;
            match step {
                Got::Done(Ok(false)) if left > 0 && Instant::now() < due => {}
                Got::Done(Ok(true)) => return,
                _ => {
                    self.broken = true;
                    return;
                }
            }
        }
    }
}

/// Headers of every request, key included. Order and names are fixed, so that bursts differ in nothing else.
fn headers<'a>(request: &Outgoing<'a>) -> Vec<(&'a str, Cow<'a, str>)> {
    let target = request.target;
    let mut list: Vec<(&str, Cow<'_, str>)> = vec![
        ("user-agent", Cow::Borrowed(concat!("peaklane/", env!("CARGO_PKG_VERSION")))),
        ("accept", Cow::Borrowed("text/event-stream, application/json")),
        ("accept-encoding", Cow::Borrowed("gzip, deflate, br, zstd")),
    ];
    if !request.body.is_empty() {
        list.push(("content-type", Cow::Borrowed("application/json")));
    }
    if let Some(key) = &target.key {
        if target.api == Api::Messages {
            list.push(("x-api-key", Cow::Borrowed(key.expose())));
        } else {
            list.push(("authorization", Cow::Owned(format!("Bearer {}", key.expose()))));
        }
    }
    if target.api == Api::Messages {
        list.push(("anthropic-version", Cow::Borrowed("2023-06-01")));
    }
    if let Some(id) = request.request_id {
        list.push(("x-request-id", Cow::Borrowed(id)));
    }
    for (name, value) in &target.headers {
        list.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
        list.push((name, Cow::Borrowed(value)));
    }
    list
}

fn h1_request(request: &Outgoing<'_>, absolute_form: bool, proxy_authorization: Option<&str>) -> Vec<u8> {
    let (endpoint, body) = (request.endpoint, request.body);
    let authority = endpoint.authority();
    let origin = if absolute_form { format!("http://{authority}") } else { String::new() };
    let mut out = Vec::with_capacity(512 + body.len());
    let mut line = |parts: &[&str]| {
        parts.iter().for_each(|p| out.extend_from_slice(p.as_bytes()));
        out.extend_from_slice(b"\r\n");
    };
    line(&[request.method, " ", &origin, &endpoint.target(), " HTTP/1.1"]);
    line(&["host: ", &authority]);
    for (name, value) in headers(request) {
        line(&[name, ": ", &value]);
    }
    if let Some(value) = proxy_authorization {
        line(&["proxy-authorization: ", value]);
    }
    if !body.is_empty() {
        line(&["content-length: ", &body.len().to_string()]);
    }
    line(&[]);
    out.extend_from_slice(body);
    out
}

fn h2_request(request: &Outgoing<'_>) -> io::Result<http::Request<()>> {
    let endpoint = request.endpoint;
    let scheme = if endpoint.is_tls() { "https" } else { "http" };
    let uri = format!("{scheme}://{}{}", endpoint.authority(), endpoint.target());
    let mut built = http::Request::builder().method(request.method).uri(uri).version(http::Version::HTTP_2);
    for (name, value) in headers(request) {
        built = built.header(name, value.as_ref());
    }
    if !request.body.is_empty() {
        built = built.header("content-length", request.body.len());
    }
    built.body(()).map_err(io::Error::other)
}
