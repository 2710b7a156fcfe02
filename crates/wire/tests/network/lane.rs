//! Lanes in memory that a test scripts itself: one function serves each connection, byte by byte if it likes.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use peaklane_core::lane::Api;
use peaklane_core::record::Handshake;
use peaklane_core::secret::Secret;
use peaklane_testkit::io::{BoxIo, NoReset, pair};
use peaklane_wire::client::{Client, Limits, Target, Tried};
use peaklane_wire::io::{Dial, Dialled, Dialling};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use crate::support;

/// A key as lanes give them out.
pub(crate) const KEY: &str = "sk-test-Jx93kLmQ7vRt2wYz";

type Serve = dyn Fn(BoxIo, usize) + Send + Sync;

/// A network with one lane on it, whatever the host is called.
pub(crate) struct Memory {
    serve: Box<Serve>,
    http2: bool,
    buffer: Option<usize>,
    opened: AtomicUsize,
    /// Everything that was dialled: host, port, TLS.
    pub(crate) dialled: Mutex<Vec<(String, u16, bool)>>,
}

impl Memory {
    /// `serve` gets the server's end of each connection and its number, from 0.
    pub(crate) fn new<R: Future<Output = ()> + Send + 'static>(
        serve: impl Fn(BoxIo, usize) -> R + Send + Sync + 'static,
    ) -> Self {
        Self {
            serve: Box::new(move |io, n| drop(tokio::spawn(serve(io, n)))),
            http2: false,
            buffer: None,
            opened: AtomicUsize::new(0),
            dialled: Mutex::default(),
        }
    }

    /// HTTP/2 is agreed on.
    pub(crate) fn http2(mut self) -> Self {
        self.http2 = true;
        self
    }

    /// At most that many bytes are on their way at once, as in a socket.
    pub(crate) fn narrow(mut self, bytes: usize) -> Self {
        self.buffer = Some(bytes);
        self
    }

    /// A client on this network.
    pub(crate) fn client(self) -> (Client, Arc<Self>) {
        let net = Arc::new(self);
        (Client::new(Arc::clone(&net) as Arc<dyn Dial>, support::wall_ms), net)
    }

    /// Connections opened so far.
    pub(crate) fn opened(&self) -> usize {
        self.opened.load(Ordering::SeqCst)
    }
}

impl Dial for Memory {
    fn dial<'a>(&'a self, host: &'a str, port: u16, tls: bool) -> Dialling<'a> {
        Box::pin(async move {
            self.dialled.lock().unwrap().push((host.to_owned(), port, tls));
            let n = self.opened.fetch_add(1, Ordering::SeqCst);
            let io: Box<dyn peaklane_wire::io::Io> = match self.buffer {
                None => {
                    let (client, server) = pair();
                    (self.serve)(Box::new(server), n);
                    Box::new(client)
                }
                Some(bytes) => {
                    let (client, server) = tokio::io::duplex(bytes);
                    (self.serve)(Box::new(NoReset(server)), n);
                    Box::new(client)
                }
            };
            Ok(Dialled {
                io,
                handshake: Handshake { connect_us: Some(1_000), ..Handshake::default() },
                http2: self.http2,
                absolute_form: false,
                proxy_authorization: None,
            })
        })
    }
}

/// A request as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Request line and headers.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// A header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (n, value) = line.split_once(':')?;
            n.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// Reads one request; `None` at the end of the connection.
pub(crate) async fn request(io: &mut (impl AsyncRead + Unpin)) -> Option<Request> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(io.read_u8().await.ok()?);
    }
    let mut request = Request { head: String::from_utf8(head).unwrap(), body: Vec::new() };
    request.body = vec![0; request.header("content-length").map_or(0, |n| n.parse().unwrap())];
    io.read_exact(&mut request.body).await.ok()?;
    Some(request)
}

/// Writes; a client that has left is none of the lane's business.
pub(crate) async fn say(io: &mut BoxIo, bytes: impl AsRef<[u8]>) {
    let _ = io.write_all(bytes.as_ref()).await;
    let _ = io.flush().await;
}

/// Keeps a connection open for good.
pub(crate) async fn silence() {
    std::future::pending::<()>().await;
}

pub(crate) async fn after(millis: u64) {
    tokio::time::sleep(ms(millis)).await;
}

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Head of a stream whose body ends with its last chunk.
pub(crate) const STREAM: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Head of a stream whose body ends with the connection.
pub(crate) const OPEN_STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";

/// One event with a piece of the answer.
pub(crate) fn event(text: &str) -> String {
    let data = serde_json::json!({"model": "m", "choices": [{"index": 0, "delta": {"content": text}}]});
    format!("data: {data}\n\n")
}

/// The events that end an answer: finish reason, usage (7 prompt, 3 completion, 2 cached), terminal signal.
pub(crate) fn ending() -> String {
    let finish = serde_json::json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let usage = serde_json::json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": 2}}});
    format!("data: {finish}\n\ndata: {usage}\n\ndata: [DONE]\n\n")
}

/// Bytes as one chunk.
pub(crate) fn chunk(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// A whole chunked answer that says `text`.
pub(crate) fn streamed(text: &str) -> Vec<u8> {
    [STREAM.as_bytes(), &chunk(event(text)), &chunk(ending()), b"0\r\n\r\n"].concat()
}

/// A whole answer as JSON.
pub(crate) fn whole_json(text: &str) -> String {
    serde_json::json!({"model": "m", "choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": text}}]})
    .to_string()
}

/// A response with a length.
pub(crate) fn response(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// A chat lane at `base`, with a key.
pub(crate) fn target(base: &str) -> Target {
    let mut target = support::target(base, Api::Chat);
    target.key = Some(Secret::new(KEY).unwrap());
    target
}

/// One streaming try at a lane in memory.
pub(crate) async fn try_it(client: &Client, limits: &Limits) -> Tried {
    client.try_once(&target("http://lane.test"), &support::body(Api::Chat, true), None, limits).await
}

/// One streaming try at a lane that serves its connections so.
pub(crate) async fn try_served<R: Future<Output = ()> + Send + 'static>(
    limits: &Limits,
    serve: impl Fn(BoxIo, usize) -> R + Send + Sync + 'static,
) -> Tried {
    let (client, _) = Memory::new(serve).client();
    try_it(&client, limits).await
}

/// One streaming try at a lane that answers every request with these bytes and then keeps the connection open.
pub(crate) async fn try_answered(bytes: impl Into<Vec<u8>>) -> Tried {
    let bytes = Arc::new(bytes.into());
    try_served(&support::generous(), move |mut io, _| {
        let bytes = Arc::clone(&bytes);
        async move {
            while request(&mut io).await.is_some() {
                say(&mut io, &bytes[..]).await;
            }
        }
    })
    .await
}
