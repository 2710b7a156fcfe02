//! Connections that can be reset, in memory and over sockets.
//!
//! In memory a pair is made of tokio's `duplex`: bytes written are readable at the same instant of the (paused) clock.
//! A duplex knows no reset, so the two ends share a flag: once the server end was told to reset and is dropped, the
//! client reads what is left and then gets `ConnectionReset` where it would have got the end of the stream, which is
//! what Linux does with bytes that arrived before an RST.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::TcpStream;

/// Large enough that every step of every case is written at once, so that a slow reader never moves a send time. The
/// buffer grows on demand; this is a bound, not an allocation.
const MEMORY_BUFFER_BYTES: usize = 64 << 20;

/// The server's end of a connection.
pub trait Io: AsyncRead + AsyncWrite + Unpin + Send {
    /// From now on dropping this end resets the connection instead of closing it.
    ///
    /// # Errors
    /// The system refuses, or this kind of connection cannot be reset.
    fn reset_on_drop(&mut self) -> io::Result<()>;
}

/// Any server end.
pub type BoxIo = Box<dyn Io>;

impl Io for TcpStream {
    fn reset_on_drop(&mut self) -> io::Result<()> {
        self.set_zero_linger()
    }
}

/// Any stream as a server end that cannot be reset: a TLS session over one end of [`pair`], for example.
#[derive(Debug)]
pub struct NoReset<T>(pub T);

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for NoReset<T> {
    fn reset_on_drop(&mut self) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this connection cannot be reset"))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for NoReset<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for NoReset<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// A connection in memory: the client's end and the server's.
pub fn pair() -> (ClientIo, ServerEnd) {
    let (client, server) = tokio::io::duplex(MEMORY_BUFFER_BYTES);
    let reset = Arc::new(AtomicBool::new(false));
    (ClientIo { inner: client, reset: Arc::clone(&reset) }, ServerEnd { inner: server, reset, reset_on_drop: false })
}

/// The client's end of a connection in memory.
#[derive(Debug)]
pub struct ClientIo {
    inner: DuplexStream,
    reset: Arc<AtomicBool>,
}

impl ClientIo {
    fn was_reset(&self) -> bool {
        self.reset.load(Ordering::Acquire)
    }
}

fn connection_reset() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer")
}

impl AsyncRead for ClientIo {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let room = buf.remaining();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let ended = room > 0 && buf.filled().len() == before;
        Poll::Ready(if ended && self.was_reset() { Err(connection_reset()) } else { Ok(()) })
    }
}

impl AsyncWrite for ClientIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.inner).poll_write(cx, buf));
        Poll::Ready(if written.is_err() && self.was_reset() { Err(connection_reset()) } else { written })
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// The server's end of a connection in memory.
#[derive(Debug)]
pub struct ServerEnd {
    inner: DuplexStream,
    reset: Arc<AtomicBool>,
    reset_on_drop: bool,
}

impl Io for ServerEnd {
    fn reset_on_drop(&mut self) -> io::Result<()> {
        self.reset_on_drop = true;
        Ok(())
    }
}

impl Drop for ServerEnd {
    fn drop(&mut self) {
        // before `inner` goes and wakes the client
        if self.reset_on_drop {
            self.reset.store(true, Ordering::Release);
        }
    }
}

impl AsyncRead for ServerEnd {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl AsyncWrite for ServerEnd {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn a_reset_is_seen_after_the_bytes_that_came_before_it() {
        let (mut client, mut server) = pair();
        server.write_all(b"last words").await.unwrap();
        server.reset_on_drop().unwrap();
        drop(server);
        let mut words = [0; 10];
        client.read_exact(&mut words).await.unwrap();
        assert_eq!(&words, b"last words");
        assert_eq!(client.read(&mut words).await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        assert_eq!(client.write(b"x").await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    }

    #[tokio::test]
    async fn a_plain_close_is_an_end_and_no_reset() {
        let (mut client, server) = pair();
        drop(server);
        assert_eq!(client.read(&mut [0; 4]).await.unwrap(), 0);
        assert_eq!(client.write(b"x").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
