//! HTTP/2 on one connection, one request at a time.
//!
//! The `h2` crate reads and writes in a task of its own, so the stream below it is tapped: the tap notes when bytes
//! were last read and written, and those are the moments that count, not the later ones at which this side hears of it.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::h1::{BodyState, Head, ReadError};
use crate::headers::Headers;
use crate::io::Io;

/// Flow-control windows, bytes: wide enough that no answer ever waits for us to say "go on".
const STREAM_WINDOW: u32 = 4 << 20;
/// The same for the whole connection.
const CONNECTION_WINDOW: u32 = 8 << 20;

/// Length of the client's preface, bytes (RFC 9113, section 3.4): it stands before the first frame.
const PREFACE_BYTES: usize = 24;

/// Follows the frames of what is written: a request is out when the frame that ends its stream is, and no count of bytes
/// tells that, as frame heads, window updates and answers to pings are written in between.
#[derive(Debug)]
struct Frames {
    /// Bytes of the preface or of a frame's payload that are to come.
    skip: usize,
    /// Head of the frame at hand: length (24 bits), type, flags, stream (31 bits); RFC 9113, section 4.1.
    head: [u8; 9],
    /// How much of it is there.
    known: usize,
}

impl Default for Frames {
    fn default() -> Self {
        Self { skip: PREFACE_BYTES, head: [0; 9], known: 0 }
    }
}

impl Frames {
    /// Takes what was written; gives the last stream that was ended in it (END_STREAM on HEADERS or DATA).
    fn ended(&mut self, mut bytes: &[u8]) -> Option<u32> {
        const DATA: u8 = 0;
        const HEADERS: u8 = 1;
        const END_STREAM: u8 = 1;
        let mut ended = None;
        loop {
            let n = self.skip.min(bytes.len());
            (self.skip, bytes) = (self.skip - n, &bytes[n..]);
            if self.skip > 0 {
                return ended;
            }
            if self.known == self.head.len() {
                let [_, _, _, kind, flags, stream @ ..] = self.head;
                if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
                    ended = Some(u32::from_be_bytes(stream) & 0x7fff_ffff);
                }
                self.known = 0;
            }
            let n = (self.head.len() - self.known).min(bytes.len());
            self.head[self.known..self.known + n].copy_from_slice(&bytes[..n]);
            (self.known, bytes) = (self.known + n, &bytes[n..]);
            if self.known < self.head.len() {
                return ended;
            }
            self.skip = usize::from(self.head[0]) << 16 | usize::from(self.head[1]) << 8 | usize::from(self.head[2]);
        }
    }
}

#[derive(Debug, Default)]
struct Seen {
    last_read: Option<Instant>,
    /// The peer closed the stream below.
    closed: bool,
    frames: Frames,
    /// Stream whose last frame was written, but perhaps not handed to the system yet (TLS holds a record back).
    ended: Option<u32>,
    /// The last stream whose request is out, and when.
    sent: Option<(u32, Instant)>,
    waiting: Option<Waker>,
}

/// Notes the moments of the stream below HTTP/2.
struct Tap {
    io: Box<dyn Io>,
    seen: Arc<Mutex<Seen>>,
}

fn lock(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl AsyncRead for Tap {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let room = buf.remaining();
        let polled = Pin::new(&mut self.io).poll_read(cx, buf);
        match &polled {
            Poll::Ready(Ok(())) if buf.filled().len() > before => lock(&self.seen).last_read = Some(Instant::now()),
            Poll::Ready(Ok(())) => lock(&self.seen).closed |= room > 0,
            // TLS closed without its farewell.
            Poll::Ready(Err(e)) => lock(&self.seen).closed |= e.kind() == io::ErrorKind::UnexpectedEof,
            Poll::Pending => {}
        }
        polled
    }
}

impl AsyncWrite for Tap {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write(cx, buf);
        if let Poll::Ready(Ok(n)) = polled {
            let mut seen = lock(&self.seen);
            let ended = seen.frames.ended(&buf[..n]);
            seen.ended = ended.or(seen.ended);
        }
        polled
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.io).poll_flush(cx);
        if matches!(polled, Poll::Ready(Ok(()))) {
            let mut seen = lock(&self.seen);
            if let Some(stream) = seen.ended.take() {
                seen.sent = Some((stream, Instant::now()));
                if let Some(waker) = seen.waiting.take() {
                    waker.wake();
                }
            }
        }
        polled
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

/// One connection.
pub(crate) struct Http2 {
    send: SendRequest<Bytes>,
    seen: Arc<Mutex<Seen>>,
    driver: JoinHandle<()>,
    outgoing: Option<(SendStream<Bytes>, Bytes)>,
    response: Option<ResponseFuture>,
    body: Option<RecvStream>,
}

impl Drop for Http2 {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl std::fmt::Debug for Http2 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Http2")
    }
}

impl Http2 {
    /// Shakes hands.
    pub(crate) async fn new(io: Box<dyn Io>) -> Result<Self, io::Error> {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let tap = Tap { io, seen: Arc::clone(&seen) };
        let (send, connection) = h2::client::Builder::new()
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .enable_push(false)
            .handshake(tap)
            .await
            .map_err(io::Error::other)?;
        let driver = tokio::spawn(async move {
            // How it ended is told to the stream that was open; nobody else needs it.
            let _ = connection.await;
        });
        Ok(Self { send, seen, driver, outgoing: None, response: None, body: None })
    }

    /// Begins one request.
    pub(crate) fn begin(&mut self, request: http::Request<()>, body: Bytes) -> io::Result<()> {
        (self.response, self.body, self.outgoing) = (None, None, None);
        let ends = body.is_empty();
        let (response, stream) = self.send.send_request(request, ends).map_err(io::Error::other)?;
        self.response = Some(response);
        if !ends {
            self.outgoing = Some((stream, body));
        }
        Ok(())
    }

    pub(crate) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.send.poll_ready(cx).map_err(io::Error::other)
    }

    /// Ready with the moment at which the last byte of the request was written.
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Instant>> {
        while let Some((stream, left)) = &mut self.outgoing {
            stream.reserve_capacity(left.len());
            if stream.capacity() == 0 {
                match stream.poll_capacity(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Some(Ok(_))) => continue,
                    Poll::Ready(Some(Err(e))) => return Poll::Ready(Err(io::Error::other(e))),
                    Poll::Ready(None) => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
                }
            }
            let piece = left.split_to(stream.capacity().min(left.len()));
            let last = left.is_empty();
            stream.send_data(piece, last).map_err(io::Error::other)?;
            if last {
                self.outgoing = None;
            }
        }
        let stream = self.response.as_ref().map(|r| r.stream_id().as_u32());
        let mut seen = lock(&self.seen);
        match seen.sent.filter(|(sent, _)| Some(*sent) == stream) {
            Some((_, at)) => Poll::Ready(Ok(at)),
            None if self.driver.is_finished() => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            None => {
                seen.waiting = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Begins one request whose body comes later, by [`Self::poll_send`].
    pub(crate) fn begin_open(&mut self, request: http::Request<()>, ends: bool) -> io::Result<()> {
        (self.response, self.body, self.outgoing) = (None, None, None);
        let (response, stream) = self.send.send_request(request, ends).map_err(io::Error::other)?;
        self.response = Some(response);
        if !ends {
            self.outgoing = Some((stream, Bytes::new()));
        }
        Ok(())
    }

    /// Sends what the upstream's window has room for. Ready with `None` when all of `data` was taken, with the moment
    /// of the last byte when it was the `last` and is written.
    pub(crate) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        data: &mut Bytes,
        last: bool,
    ) -> Poll<io::Result<Option<Instant>>> {
        while let Some((stream, _)) = &mut self.outgoing {
            if data.is_empty() {
                if !last {
                    return Poll::Ready(Ok(None));
                }
                stream.send_data(Bytes::new(), true).map_err(io::Error::other)?;
                self.outgoing = None;
                break;
            }
            stream.reserve_capacity(data.len());
            if stream.capacity() == 0 {
                match stream.poll_capacity(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Some(Ok(_))) => continue,
                    Poll::Ready(Some(Err(e))) => return Poll::Ready(Err(io::Error::other(e))),
                    Poll::Ready(None) => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
                }
            }
            let piece = data.split_to(stream.capacity().min(data.len()));
            let ends = last && data.is_empty();
            stream.send_data(piece, ends).map_err(io::Error::other)?;
            if ends {
                self.outgoing = None;
            }
        }
        if last { self.poll_write(cx).map_ok(Some) } else { Poll::Ready(Ok(None)) }
    }

    /// One piece of the body into `came`. Ready with trailers (perhaps none) when the body is over.
    pub(crate) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
        arrived: &mut Instant,
        came: &mut Option<Bytes>,
    ) -> Poll<Result<Option<http::HeaderMap>, ReadError>> {
        let Some(body) = &mut self.body else { return Poll::Ready(Ok(Some(http::HeaderMap::new()))) };
        match body.poll_data(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Ok(bytes))) => {
                // More capacity than was taken cannot be released: the only error that this call knows.
                let _ = body.flow_control().release_capacity(bytes.len());
                *arrived = self.read_moment();
                *came = Some(bytes);
                Poll::Ready(Ok(None))
            }
            Poll::Ready(Some(Err(e))) => {
                *arrived = Instant::now();
                Poll::Ready(Err(self.read_error(e)))
            }
            Poll::Ready(None) => match body.poll_trailers(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Err(e)) => {
                    *arrived = Instant::now();
                    Poll::Ready(Err(self.read_error(e)))
                }
                Poll::Ready(Ok(trailers)) => {
                    *arrived = self.read_moment();
                    self.body = None;
                    Poll::Ready(Ok(Some(trailers.unwrap_or_default())))
                }
            },
        }
    }

    fn read_moment(&self) -> Instant {
        lock(&self.seen).last_read.unwrap_or_else(Instant::now)
    }

    pub(crate) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        first_byte: &mut Option<Instant>,
        last_byte: &mut Option<Instant>,
    ) -> Poll<Result<Head, ReadError>> {
        let Some(response) = &mut self.response else {
            // The connection ended before the request could begin.
            return Poll::Ready(Err(ReadError::Closed));
        };
        let response = match Pin::new(response).poll(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(e)) => return Poll::Ready(Err(self.read_error(e))),
            Poll::Ready(Ok(response)) => response,
        };
        let at = self.read_moment();
        first_byte.get_or_insert(at);
        *last_byte = Some(at);
        let mut headers = Headers::default();
        for (name, value) in response.headers() {
            headers.push(name.as_str(), String::from_utf8_lossy(value.as_bytes()));
        }
        let status = response.status().as_u16();
        self.body = Some(response.into_body());
        Poll::Ready(Ok(Head { status, headers }))
    }

    pub(crate) fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        arrived: &mut Instant,
        out: &mut dyn FnMut(&[u8], Instant),
    ) -> Poll<Result<BodyState, ReadError>> {
        let Some(body) = &mut self.body else { return Poll::Ready(Ok(BodyState::Over)) };
        match body.poll_data(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(None) => {
                *arrived = self.read_moment();
                self.body = None;
                Poll::Ready(Ok(BodyState::Over))
            }
            Poll::Ready(Some(Err(e))) => {
                *arrived = Instant::now();
                Poll::Ready(Err(self.read_error(e)))
            }
            Poll::Ready(Some(Ok(bytes))) => {
                // More capacity than was taken cannot be released: the only error that this call knows.
                let _ = body.flow_control().release_capacity(bytes.len());
                *arrived = self.read_moment();
                out(&bytes, *arrived);
                let over = self.body.as_ref().is_some_and(RecvStream::is_end_stream);
                if over {
                    self.body = None;
                }
                Poll::Ready(Ok(if over { BodyState::Over } else { BodyState::More }))
            }
        }
    }

    pub(crate) fn reusable(&self) -> bool {
        self.body.is_none() && self.outgoing.is_none() && !self.driver.is_finished()
    }

    fn read_error(&self, error: h2::Error) -> ReadError {
        if error.is_io() && lock(&self.seen).closed {
            ReadError::Closed
        } else if error.is_library() {
            // Ended by our side, because what came is no HTTP/2.
            ReadError::Bad(format!("broken HTTP/2: {error}"))
        } else if error.is_io() || error.is_reset() || error.is_go_away() {
            ReadError::Io(io::Error::new(io::ErrorKind::ConnectionReset, error))
        } else {
            ReadError::Bad(format!("broken HTTP/2: {error}"))
        }
    }
}
