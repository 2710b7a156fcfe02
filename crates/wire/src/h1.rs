//! HTTP/1.1 on one connection, with the time of every read.
//!
//! Written by hand for one reason: a general client hands body bytes from the task that reads them to the task that
//! asked, and the moment of arrival is lost between the two. Here the clock is read where the read returns, before
//! anything is parsed. Heads are parsed by `httparse`; [`crate::frame`] finds the end of a body.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::frame::Frame;
use crate::headers::Headers;
use crate::io::Io;

/// Size of the read buffer, bytes: one read takes what the kernel usually holds for one stream.
const BUFFER_BYTES: usize = 16 << 10;
/// Longest response head, bytes.
const MAX_HEAD_BYTES: usize = 128 << 10;
/// Most headers of one head.
const MAX_HEADERS: usize = 128;

/// Head of a response.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) headers: Headers,
}

/// What went wrong while reading.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The peer closed before the end.
    Closed,
    /// The connection broke.
    Io(io::Error),
    /// Not HTTP/1.1.
    Bad(String),
}

/// One connection.
pub(crate) struct Http1 {
    io: Box<dyn Io>,
    buffer: Box<[u8]>,
    from: usize,
    to: usize,
    frame: Frame,
    /// The connection may carry another request after this response.
    keep: bool,
}

/// State of a body after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyState {
    /// More is to come.
    More,
    /// Over, as promised.
    Over,
}

impl Http1 {
    pub(crate) fn new(io: Box<dyn Io>) -> Self {
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        Self { io, buffer, from: 0, to: 0, frame: Frame::over(), keep: true }
    }

    /// Writes `bytes`; returns the moment at which the last one was handed to the system.
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &mut &[u8]) -> Poll<io::Result<Instant>> {
        while !bytes.is_empty() {
            match Pin::new(&mut self.io).poll_write(cx, bytes) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(n)) => *bytes = &bytes[n..],
                Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
            }
        }
        match Pin::new(&mut self.io).poll_flush(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(())) => Poll::Ready(Ok(Instant::now())),
            Poll::Ready(Err(e)) => Poll::Ready(Err(e)),
        }
    }

    /// Reads once. Ready with the arrival time, or with `None` at the end of the stream.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Instant>>> {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        } else if self.to == self.buffer.len() {
            self.buffer.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
            if self.to == self.buffer.len() {
                // Only a long head fills the buffer without being consumed.
                let mut longer = vec![0; self.buffer.len() * 2].into_boxed_slice();
                longer[..self.to].copy_from_slice(&self.buffer);
                self.buffer = longer;
            }
        }
        let mut read = ReadBuf::new(&mut self.buffer[self.to..]);
        match Pin::new(&mut self.io).poll_read(cx, &mut read) {
            Poll::Pending => Poll::Pending,
            // A TLS stream that is closed without its farewell (close_notify): many servers do so, and whether the
            // answer was whole shows in its framing and its terminal signal.
            Poll::Ready(Err(e)) if e.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(None)),
            Poll::Ready(Err(e)) => Poll::Ready(Err(e)),
            Poll::Ready(Ok(())) => {
                let at = Instant::now();
                let n = read.filled().len();
                self.to += n;
                Poll::Ready(Ok((n > 0).then_some(at)))
            }
        }
    }

    /// Reads the head of the next response. `first_byte` is set at its first byte.
    pub(crate) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        first_byte: &mut Option<Instant>,
        last_byte: &mut Option<Instant>,
    ) -> Poll<Result<Head, ReadError>> {
        loop {
            if self.to > self.from {
                match self.parse_head() {
                    Ok(Some(head)) if (100..200).contains(&head.status) && head.status != 101 => {
                        // An interim response is not the answer; its bytes are not the answer's first byte either,
                        // but the same read may have brought that too.
                        *first_byte = if self.to > self.from { *last_byte } else { None };
                        continue;
                    }
                    Ok(Some(head)) => return Poll::Ready(Ok(head)),
                    Ok(None) if self.to - self.from > MAX_HEAD_BYTES => {
                        return Poll::Ready(Err(ReadError::Bad("a response head longer than 128 KiB".into())));
                    }
                    Ok(None) => {}
                    Err(e) => return Poll::Ready(Err(e)),
                }
            }
            match self.poll_fill(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(Some(at))) => {
                    first_byte.get_or_insert(at);
                    *last_byte = Some(at);
                }
                Poll::Ready(Ok(None)) => return Poll::Ready(Err(ReadError::Closed)),
                Poll::Ready(Err(e)) => return Poll::Ready(Err(ReadError::Io(e))),
            }
        }
    }

    fn parse_head(&mut self) -> Result<Option<Head>, ReadError> {
        let mut storage = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut parsed = httparse::Response::new(&mut storage);
        let length = match parsed.parse(&self.buffer[self.from..self.to]) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(e) => return Err(ReadError::Bad(format!("not HTTP/1.1: {e}"))),
        };
        let status = parsed.code.unwrap_or_default();
        let mut headers = Headers::default();
        for header in parsed.headers.iter() {
            headers.push(header.name, String::from_utf8_lossy(header.value));
        }
        let http10 = parsed.version == Some(0);
        self.from += length;
        let connection = headers.get("connection").unwrap_or_default().to_ascii_lowercase();
        self.keep = if http10 { connection.contains("keep-alive") } else { !connection.contains("close") };
        self.frame = Frame::of_response(status, &headers).map_err(ReadError::Bad)?;
        if self.frame.ends_with_connection() {
            self.keep = false;
        }
        Ok(Some(Head { status, headers }))
    }

    /// Takes one step of the body: reads at most once and hands every piece to `out` with its arrival time.
    pub(crate) fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        arrived: &mut Instant,
        out: &mut dyn FnMut(&[u8], Instant),
    ) -> Poll<Result<BodyState, ReadError>> {
        if !self.frame.is_over() && self.from == self.to {
            match self.poll_fill(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(Some(at))) => *arrived = at,
                Poll::Ready(Ok(None)) => {
                    *arrived = Instant::now();
                    if !self.frame.closed() {
                        return Poll::Ready(Err(ReadError::Closed));
                    }
                }
                Poll::Ready(Err(e)) => {
                    *arrived = Instant::now();
                    return Poll::Ready(Err(ReadError::Io(e)));
                }
            }
        }
        self.unframe(*arrived, out)?;
        Poll::Ready(Ok(if self.frame.is_over() { BodyState::Over } else { BodyState::More }))
    }

    /// Takes what the buffer holds of the body.
    fn unframe(&mut self, at: Instant, out: &mut dyn FnMut(&[u8], Instant)) -> Result<(), ReadError> {
        let took = self.frame.feed(&self.buffer[self.from..self.to], &mut |bytes| out(bytes, at));
        self.from += took.map_err(ReadError::Bad)?;
        Ok(())
    }

    /// May the connection carry another request? Only after a whole response and with nothing unexpected behind it.
    pub(crate) fn reusable(&self) -> bool {
        self.keep && self.frame.is_over() && self.from == self.to
    }

    /// Is the idle connection still alive? A read that is ready means that the peer closed it, or says something
    /// that nobody asked for.
    pub(crate) fn poll_alive(&mut self, cx: &mut Context<'_>) -> bool {
        let mut byte = [0u8; 1];
        let mut read = ReadBuf::new(&mut byte);
        Pin::new(&mut self.io).poll_read(cx, &mut read).is_pending()
    }
}

impl std::fmt::Debug for Http1 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http1").field("frame", &self.frame).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    /// Head and body of a response that is written in the given portions.
    async fn read(portions: &[&[u8]]) -> (u16, Vec<u8>, Result<bool, String>) {
        let (client, mut server) = tokio::io::duplex(1 << 20);
        let mut conn = Http1::new(Box::new(client));
        let portions: Vec<Vec<u8>> = portions.iter().map(|p| p.to_vec()).collect();
        let writer = tokio::spawn(async move {
            for portion in portions {
                server.write_all(&portion).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        let (mut first, mut last) = (None, None);
        let head = std::future::poll_fn(|cx| conn.poll_head(cx, &mut first, &mut last)).await;
        let head = match head {
            Ok(head) => head,
            Err(e) => return (0, Vec::new(), Err(format!("{e:?}"))),
        };
        let mut body = Vec::new();
        let mut at = Instant::now();
        let end = loop {
            let step =
                std::future::poll_fn(|cx| conn.poll_body(cx, &mut at, &mut |b, _| body.extend_from_slice(b))).await;
            match step {
                Ok(BodyState::More) => {}
                Ok(BodyState::Over) => break Ok(conn.reusable()),
                Err(e) => break Err(format!("{e:?}")),
            }
        };
        writer.await.unwrap();
        (head.status, body, end)
    }

    #[tokio::test(start_paused = true)]
    async fn a_chunked_body_is_the_same_however_it_is_cut() {
        let text = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\nT: x\r\n\r\n";
        let whole = (200, b"hello world".to_vec(), Ok(true));
        assert_eq!(read(&[text]).await, whole);
        for cut in 1..text.len() {
            assert_eq!(read(&[&text[..cut], &text[cut..]]).await, whole, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(read(&bytes).await, whole);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_without_length_ends_with_the_connection_and_a_promised_length_must_come() {
        assert_eq!(read(&[b"HTTP/1.1 200 OK\r\n\r\nabc"]).await, (200, b"abc".to_vec(), Ok(false)));
        let short = read(&[b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"]).await;
        assert_eq!(short, (200, b"abc".to_vec(), Err("Closed".into())));
        let open = read(&[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"]).await;
        assert_eq!(open, (200, b"abc".to_vec(), Err("Closed".into())));
    }

    #[tokio::test(start_paused = true)]
    async fn an_interim_response_is_not_the_answer() {
        let seen = read(&[b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 204 No Content\r\n\r\n"]).await;
        assert_eq!(seen, (204, Vec::new(), Ok(true)));
    }

    #[tokio::test(start_paused = true)]
    async fn broken_frames_are_told_and_bytes_behind_the_end_forbid_reuse() {
        for text in [
            &b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"[..],
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcX",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
            b"SSH-2.0-OpenSSH_9\r\n",
        ] {
            assert!(read(&[text]).await.2.is_err_and(|e| e.contains("Bad")), "{}", String::from_utf8_lossy(text));
        }
        let more = read(&[b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcSURPRISE"]).await;
        assert_eq!(more, (200, b"abc".to_vec(), Ok(false)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_longer_than_the_buffer_is_read_and_an_endless_one_refused() {
        let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 2\r\n\r\nok", "a".repeat(40_000));
        assert_eq!(read(&[long.as_bytes()]).await, (200, b"ok".to_vec(), Ok(true)));
        let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "a".repeat(300_000));
        assert!(read(&[endless.as_bytes()]).await.2.is_err());
    }
}
