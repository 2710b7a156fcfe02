//! Puts lanes on loopback sockets, in a thread and a runtime of their own, so that serving does not disturb whoever
//! measures in the same process, and so that tests without a runtime can use it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::server::{Lane, serve_connection, stopped};

/// Connections of one lane at once; more wait in the kernel's queue. Above any burst, below the usual limit of files.
const MOST_CONNECTIONS: usize = 512;
/// Pause after a failed accept (out of files, mostly), so that it is not tried again in a hot loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Lanes that are being served. Dropping it stops them.
#[derive(Debug)]
pub struct Host {
    addresses: Vec<SocketAddr>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    /// Serves each lane on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When no port can be bound or no thread started.
    pub fn start(lanes: Vec<Arc<Lane>>) -> io::Result<Self> {
        let mut addresses = Vec::with_capacity(lanes.len());
        let mut listening = Vec::with_capacity(lanes.len());
        for lane in lanes {
            let listener = StdListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            listener.set_nonblocking(true)?;
            addresses.push(listener.local_addr()?);
            listening.push((lane, listener));
        }
        let (stop, stopped) = watch::channel(false);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("simulated-lanes".to_owned()).spawn(move || {
            runtime.block_on(async {
                let mut doors = JoinSet::new();
                for (lane, listener) in listening {
                    // A listener that the runtime does not take leaves its clients with a refused connection.
                    if let Ok(listener) = TcpListener::from_std(listener) {
                        doors.spawn(keep_door(lane, listener, stopped.clone()));
                    }
                }
                while doors.join_next().await.is_some() {}
            });
        })?;
        Ok(Self { addresses, stop, thread: Some(thread) })
    }

    /// Where the lanes are, in the order given.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Base URL of the lane at `index`: `http://127.0.0.1:PORT/v1`. `None` when there is no such lane.
    pub fn base_url(&self, index: usize) -> Option<String> {
        self.addresses.get(index).map(|address| format!("http://{address}/v1"))
    }

    /// Stops serving and waits for it: idle connections are closed at once, busy ones within 100 ms.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic of the server's thread was printed there already; repeating it while dropping would abort.
            let _ = thread.join();
        }
    }
}

/// Lets connections in until told to stop, then waits for those inside.
async fn keep_door(lane: Arc<Lane>, listener: TcpListener, mut stop: watch::Receiver<bool>) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut inside = JoinSet::new();
    loop {
        let accepted = async {
            let place = Arc::clone(&room).acquire_owned().await;
            (place, listener.accept().await)
        };
        tokio::select! {
            () = stopped(&mut stop) => break,
            Some(_) = inside.join_next() => {}
            (place, accepted) = accepted => match accepted {
                Ok((stream, _)) => {
                    let (lane, stop) = (Arc::clone(&lane), stop.clone());
                    inside.spawn(async move {
                        let _place = place;
                        serve_tcp(lane, stream, stop).await;
                    });
                }
                Err(_) => sleep(ACCEPT_PAUSE).await,
            }
        }
    }
    while inside.join_next().await.is_some() {}
}

async fn serve_tcp(lane: Arc<Lane>, stream: TcpStream, stop: watch::Receiver<bool>) {
    // Pieces are small and must leave at their time. A socket that refuses the option is slow, not wrong.
    let _ = stream.set_nodelay(true);
    let reset = Arc::new(AtomicBool::new(false));
    let socket = Socket { stream, reset: Arc::clone(&reset) };
    serve_connection(lane, socket, reset, stop).await;
}

/// A TCP stream that can end in a reset.
struct Socket {
    stream: TcpStream,
    reset: Arc<AtomicBool>,
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.reset.load(Ordering::Relaxed) {
            // Closing with a linger time of zero sends RST instead of FIN.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
