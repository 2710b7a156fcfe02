//! The client's side of the proxy: what it sent and was not used yet, what it has not taken yet, and the shared buffer
//! that all reads go through.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Size of the buffer that all reads of a thread go through, bytes. One read takes at most this much, and what the other
/// side does not take of it at once is what a stream may hold.
const SCRATCH_BYTES: usize = 64 << 10;
/// Most bytes of following requests that are read while one is being answered.
const MAX_AHEAD_BYTES: usize = 64 << 10;

thread_local! {
    /// Streams that wait hold no buffer: thousands of idle ones would pin hundreds of megabytes. Whatever is read is
    /// used up, or moved to the stream's own memory, before the buffer is put back.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::default();
}

/// The shared buffer, for the time of one read and what follows from it.
pub(crate) struct Scratch(Box<[u8]>);

impl Scratch {
    pub(crate) fn take() -> Self {
        let held = SCRATCH.take();
        Self(if held.is_empty() { vec![0; SCRATCH_BYTES].into_boxed_slice() } else { held })
    }

    /// Reads once; 0 is the end of the stream.
    pub(crate) fn poll_read(
        &mut self,
        io: &mut (impl AsyncRead + Unpin + ?Sized),
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let mut read = ReadBuf::new(&mut self.0);
        match Pin::new(io).poll_read(cx, &mut read) {
            Poll::Pending => Poll::Pending,
            // TLS closed without its farewell: the framing tells whether anything is missing.
            Poll::Ready(Err(e)) if e.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(0)),
            Poll::Ready(Err(e)) => Poll::Ready(Err(e)),
            Poll::Ready(Ok(())) => Poll::Ready(Ok(read.filled().len())),
        }
    }

    /// The first bytes of it, as read.
    pub(crate) fn bytes(&self, length: usize) -> &[u8] {
        &self.0[..length]
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        SCRATCH.replace(std::mem::take(&mut self.0));
    }
}

/// A connection of a client.
pub trait Guest: AsyncRead + AsyncWrite + Send + Unpin {
    /// From now on dropping it resets the connection instead of closing it: what was promised will not come.
    fn reset(&mut self);
}

impl Guest for TcpStream {
    fn reset(&mut self) {
        // A socket that refuses the option is closed instead; the framing tells the client the same.
        let _ = self.set_zero_linger();
    }
}

/// Bytes on their way to somebody who has not taken them yet. Filled again only when empty, so it holds at most one read
/// and a head.
#[derive(Debug, Default)]
pub(crate) struct Out {
    bytes: Vec<u8>,
    at: usize,
}

impl Out {
    pub(crate) fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Puts bytes behind those that wait.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes what waits. Ready when nothing is left.
    pub(crate) fn poll(
        &mut self,
        io: &mut (impl AsyncWrite + Unpin + ?Sized),
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while self.at < self.bytes.len() {
            match Pin::new(&mut *io).poll_write(cx, &self.bytes[self.at..]) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(n)) => self.at += n,
                Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
            }
        }
        // The memory goes with it: most streams never need it again.
        self.clear();
        Poll::Ready(Ok(()))
    }

    /// Writes `bytes` without copying them where the other side takes them at once; keeps what it does not take.
    pub(crate) fn send(
        &mut self,
        io: &mut (impl AsyncWrite + Unpin + ?Sized),
        cx: &mut Context<'_>,
        mut bytes: &[u8],
    ) -> io::Result<()> {
        while self.is_empty() && !bytes.is_empty() {
            match Pin::new(&mut *io).poll_write(cx, bytes) {
                Poll::Pending => break,
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(n)) => bytes = &bytes[n..],
                Poll::Ready(Err(e)) => return Err(e),
            }
        }
        self.push(bytes);
        Ok(())
    }
}

/// A client, and what it sent ahead.
pub(crate) struct Visitor {
    pub(crate) io: Box<dyn Guest>,
    /// Read and not used yet.
    pub(crate) ahead: Vec<u8>,
}

impl Visitor {
    pub(crate) fn new(io: Box<dyn Guest>) -> Self {
        Self { io, ahead: Vec::new() }
    }

    /// Looks whether the client, which has sent its request, is still there. Ready when it has left.
    pub(crate) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut scratch = Scratch::take();
        while self.ahead.len() < MAX_AHEAD_BYTES {
            match scratch.poll_read(&mut *self.io, cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(n)) => self.ahead.extend_from_slice(scratch.bytes(n)),
            }
        }
        Poll::Pending
    }
}
