//! An upstream: where it is, which key it gets, and its idle connections.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use peaklane_core::lane::Api;
use peaklane_core::record::Handshake;
use peaklane_core::secret::Secret;
use tokio::time::Instant;

use crate::endpoint::{Endpoint, EndpointError};
use crate::h2conn::Http2;
use crate::io::{Dial, DialError, Io};
use crate::proxy::head::{RequestHead, line};
use crate::proxy::route::at_upstream;
use crate::proxy::visitor::Scratch;

/// Idle connections that are kept for one upstream; more than the concurrency of a team's harnesses buys nothing.
const MAX_IDLE: usize = 256;
/// How long an idle connection is used again. The usual servers of models close idle ones after 5 s (uvicorn, llama.cpp),
/// and a request that crosses such a close on its way is lost: it may not be sent twice.
const IDLE_FOR: Duration = Duration::from_secs(3);

/// Where calls go.
pub struct Upstream {
    name: Option<String>,
    endpoint: Endpoint,
    key: Option<Secret>,
    headers: Vec<(String, String)>,
    idle: Mutex<Vec<Line>>,
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Upstream({})", self.endpoint.shown())
    }
}

/// What is spoken on a line, and the stream itself.
pub(crate) enum Spoken {
    /// HTTP/1.1.
    One(Box<dyn Io>),
    /// HTTP/2, one request at a time.
    Two(Box<Http2>),
}

/// One open connection to an upstream.
pub(crate) struct Line {
    pub(crate) spoken: Spoken,
    pub(crate) handshake: Handshake,
    absolute_form: bool,
    proxy_authorization: Option<String>,
    idle_since: Instant,
}

impl Upstream {
    /// An upstream at a base address.
    ///
    /// * `name`: the lane, where there are several.
    /// * `key`: sent instead of what the client sends; `None` passes the client's own on.
    /// * `headers`: added to each request, in place of the client's of the same name.
    ///
    /// # Errors
    /// [`EndpointError`] for what is no http(s) address or holds credentials.
    pub fn new(
        name: Option<String>,
        base: &str,
        key: Option<Secret>,
        headers: Vec<(String, String)>,
    ) -> Result<Self, EndpointError> {
        Ok(Self { name, endpoint: Endpoint::exactly(base)?, key, headers, idle: Mutex::new(Vec::new()) })
    }

    /// The lane's name.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Its address without a query, for messages.
    pub fn shown(&self) -> String {
        self.endpoint.shown()
    }

    /// Would this upstream be the proxy itself, listening at that address?
    pub fn is_at(&self, address: SocketAddr) -> bool {
        let host = self.endpoint.host();
        let same_host = match host.parse::<IpAddr>() {
            Ok(ip) => ip == address.ip() || (address.ip().is_unspecified() && ip.is_loopback()),
            Err(_) => {
                host.eq_ignore_ascii_case("localhost") && (address.ip().is_loopback() || address.ip().is_unspecified())
            }
        };
        same_host && self.endpoint.port() == address.port()
    }

    /// A key is put in for the client's.
    pub fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// Path and query there for a request's target.
    pub(crate) fn target(&self, target: &str) -> String {
        let base = self.endpoint.target();
        let (base, own) = base.split_once('?').unwrap_or((&base, ""));
        let mut at = at_upstream(base, target);
        if !own.is_empty() {
            at.push(if at.contains('?') { '&' } else { '?' });
            at.push_str(own);
        }
        at
    }

    /// A line that is idle and alive, or a new one.
    pub(crate) async fn line(&self, dial: &Arc<dyn Dial>, limit: Duration) -> Result<Line, DialError> {
        while let Some(mut line) = self.unpark() {
            if line.idle_since.elapsed() < IDLE_FOR && line.is_alive().await {
                line.handshake = Handshake { reused: true, ..Handshake::default() };
                return Ok(line);
            }
        }
        let (host, port) = (self.endpoint.host(), self.endpoint.port());
        let opening = async {
            let dialled = dial.dial(host, port, self.endpoint.is_tls()).await?;
            let spoken = if dialled.http2 {
                let two = Http2::new(dialled.io).await;
                Spoken::Two(Box::new(
                    two.map_err(|source| DialError::Connect { address: format!("{host}:{port}"), source })?,
                ))
            } else {
                Spoken::One(dialled.io)
            };
            Ok(Line {
                spoken,
                handshake: dialled.handshake,
                absolute_form: dialled.absolute_form,
                proxy_authorization: dialled.proxy_authorization,
                idle_since: Instant::now(),
            })
        };
        let late = |_| DialError::Timeout { address: format!("{host}:{port}"), limit_ms: limit.as_millis() as u64 };
        tokio::time::timeout(limit, opening).await.map_err(late)?
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Line>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unpark(&self) -> Option<Line> {
        self.idle().pop()
    }

    /// Keeps a line for the next request.
    pub(crate) fn park(&self, mut line: Line) {
        line.idle_since = Instant::now();
        let mut idle = self.idle();
        if idle.len() < MAX_IDLE {
            idle.push(line);
        }
    }

    /// Closes idle lines that will not be used again.
    pub(crate) fn sweep(&self) {
        self.idle().retain(|line| line.idle_since.elapsed() < IDLE_FOR);
    }

    /// The request's fields as they go to the upstream, `Host` aside.
    fn fields<'a>(&'a self, head: &'a RequestHead, how: &Onward<'_>) -> Vec<(&'a [u8], Vec<u8>)> {
        let mut list: Vec<(&[u8], Vec<u8>)> = Vec::new();
        for (name, value) in head.fields.end_to_end() {
            let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
            let key = is("authorization") || is("x-api-key") || is("api-key");
            let ours = is("x-peaklane-token") || is("x-peaklane-lane");
            // A proxy's own token is nobody else's business, and a key that is put in takes the place of the client's.
            if is("host") || ours || (key && (self.key.is_some() || how.token_in_key)) {
                continue;
            }
            if how.rewritten.is_some() && (is("content-length") || is("transfer-encoding") || is("accept-encoding")) {
                continue;
            }
            if self.headers.iter().any(|(own, _)| is(own)) {
                continue;
            }
            list.push((name, value.to_vec()));
        }
        if let Some(key) = &self.key {
            // In the field that the client used, or that the API is known for.
            if how.api == Some(Api::Messages) || head.fields.has("x-api-key") {
                list.push((b"x-api-key", key.expose().into()));
            } else {
                list.push((b"authorization", format!("Bearer {}", key.expose()).into()));
            }
        }
        list.extend(self.headers.iter().map(|(n, v)| (n.as_bytes(), v.clone().into_bytes())));
        if let Some(bytes) = how.rewritten {
            list.push((b"content-length", bytes.to_string().into()));
            // The answer is looked into as it passes.
            list.push((b"accept-encoding", b"identity".to_vec()));
        }
        list
    }

    /// The head of a request as HTTP/1.1.
    pub(crate) fn head_one(&self, line_: &Line, head: &RequestHead, target: &str, how: &Onward<'_>) -> Vec<u8> {
        let authority = self.endpoint.authority();
        let origin = if line_.absolute_form { format!("http://{authority}") } else { String::new() };
        let mut out = Vec::with_capacity(1_024);
        out.extend_from_slice(format!("{} {origin}{target} HTTP/1.1\r\n", head.method).as_bytes());
        line(&mut out, b"Host", authority.as_bytes());
        for (name, value) in self.fields(head, how) {
            line(&mut out, name, &value);
        }
        if head.fields.says("te", "trailers") {
            out.extend_from_slice(b"TE: trailers\r\nConnection: TE\r\n");
        }
        if let Some(upgrade) = how.upgrade {
            out.extend_from_slice(b"Connection: Upgrade\r\n");
            line(&mut out, b"Upgrade", upgrade.as_bytes());
        }
        if let Some(value) = &line_.proxy_authorization {
            line(&mut out, b"Proxy-Authorization", value.as_bytes());
        }
        out.extend_from_slice(b"\r\n");
        out
    }

    /// The head of a request as HTTP/2.
    pub(crate) fn head_two(
        &self,
        head: &RequestHead,
        target: &str,
        how: &Onward<'_>,
    ) -> Result<http::Request<()>, http::Error> {
        let scheme = if self.endpoint.is_tls() { "https" } else { "http" };
        let uri = format!("{scheme}://{}{target}", self.endpoint.authority());
        let mut request = http::Request::builder().method(&*head.method).uri(uri).version(http::Version::HTTP_2);
        for (name, value) in self.fields(head, how) {
            // What frames the body is HTTP/2's own.
            if !name.eq_ignore_ascii_case(b"transfer-encoding") {
                request = request.header(name, value);
            }
        }
        if head.fields.says("te", "trailers") {
            request = request.header("te", "trailers");
        }
        request.body(())
    }
}

/// How a request goes on.
#[derive(Debug, Default)]
pub(crate) struct Onward<'a> {
    pub(crate) api: Option<Api>,
    /// The client's key is the proxy's own token.
    pub(crate) token_in_key: bool,
    /// The body was changed and has this length now.
    pub(crate) rewritten: Option<usize>,
    /// It asks for another protocol on the same connection.
    pub(crate) upgrade: Option<&'a str>,
}

impl Line {
    pub(crate) fn version(&self) -> &'static str {
        match self.spoken {
            Spoken::One(_) => "1.1",
            Spoken::Two(_) => "2",
        }
    }

    async fn is_alive(&mut self) -> bool {
        match &mut self.spoken {
            Spoken::One(io) => std::future::poll_fn(|cx| Poll::Ready(quiet(&mut **io, cx))).await,
            Spoken::Two(two) => {
                // Only the connection's own task hears of a close or a GOAWAY: it runs first.
                tokio::task::yield_now().await;
                two.reusable()
            }
        }
    }
}

/// A read that is ready on an idle line is a close, or something that nobody asked for.
fn quiet(io: &mut dyn Io, cx: &mut Context<'_>) -> bool {
    Scratch::take().poll_read(io, cx).is_pending()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_before_itself_is_seen_under_each_of_its_names() {
        let at = |base: &str, address: &str| {
            Upstream::new(None, base, None, Vec::new()).unwrap().is_at(address.parse().unwrap())
        };
        assert!(at("http://127.0.0.1:8787/v1", "127.0.0.1:8787"));
        assert!(at("http://localhost:8787", "127.0.0.1:8787"));
        assert!(at("http://127.0.0.1:8787", "0.0.0.0:8787"));
        assert!(!at("http://127.0.0.1:8788", "127.0.0.1:8787"));
        assert!(!at("http://10.0.0.5:8787", "127.0.0.1:8787"));
    }
}
