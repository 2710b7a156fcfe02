//! A proxy in memory between a scripted upstream and a client that sees raw bytes.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use peaklane_core::call::Gap;
use peaklane_testkit::io::{BoxIo, ClientIo, NoReset};
use peaklane_testkit::net::MemoryNet;
use peaklane_testkit::player::{BoxFuture, Service};
use peaklane_wire::client::Limits;
use peaklane_wire::io::Dial;
use peaklane_wire::proxy::{Asked, Ended, Guest, Passed, Policy, Proxy, Room, Tap, Upstream};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

pub(crate) fn wall_us() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as i64
}

/// What was told of a request.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) number: u64,
    pub(crate) session: Option<String>,
    pub(crate) lane: Option<String>,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Result<Vec<u8>, Gap>,
    pub(crate) bytes: u64,
    pub(crate) usage_injected: bool,
}

/// Keeps all that the proxy tells.
#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) asked: Mutex<Vec<Told>>,
    pub(crate) ended: Mutex<Vec<Ended>>,
    pub(crate) passed: Mutex<Vec<Passed>>,
}

impl Tap for Notes {
    fn asked(&self, asked: Asked) {
        self.asked.lock().unwrap().push(Told {
            number: asked.number,
            session: asked.session,
            lane: asked.lane,
            path: asked.path,
            headers: asked.headers,
            body: asked.body.map(|held| held.bytes().to_vec()),
            bytes: asked.bytes,
            usage_injected: asked.usage_injected,
        });
    }
    fn ended(&self, ended: Ended) {
        self.ended.lock().unwrap().push(ended);
    }
    fn passed(&self, what: Passed) {
        self.passed.lock().unwrap().push(what);
    }
}

impl Notes {
    /// The only call that ended.
    pub(crate) fn only(&self) -> Ended {
        let mut ended = self.ended.lock().unwrap();
        assert_eq!(ended.len(), 1, "one call was made");
        ended.pop().unwrap()
    }
}

/// The server's end of a connection in memory, as the proxy sees a client.
struct Visitor(BoxIo);

impl AsyncRead for Visitor {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Visitor {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

impl Guest for Visitor {
    fn reset(&mut self) {
        // Some kinds of connection know no reset: they are closed.
        let _ = self.0.reset_on_drop();
    }
}

/// The proxy as a service of the network in memory.
#[derive(Clone)]
struct Served {
    proxy: Arc<Proxy>,
    stop: watch::Receiver<bool>,
}

impl Service for Served {
    fn serve(&self, io: BoxIo) -> BoxFuture {
        let Self { proxy, stop } = self.clone();
        Box::pin(async move {
            proxy.serve(Box::new(Visitor(io)), stop).await;
        })
    }
}

/// Proxy, network and notes.
pub(crate) struct Stage {
    pub(crate) net: MemoryNet,
    pub(crate) notes: Arc<Notes>,
    pub(crate) stop: watch::Sender<bool>,
    served: Served,
}

/// Where the proxy is.
pub(crate) const PORT: u16 = 8787;

impl Stage {
    pub(crate) fn new(net: &MemoryNet, upstreams: Vec<Upstream>, policy: Policy) -> Self {
        Self::over(net, Arc::new(net.clone()), upstreams, policy, Room::new(64 << 20))
    }

    pub(crate) fn over(
        net: &MemoryNet,
        dial: Arc<dyn Dial>,
        upstreams: Vec<Upstream>,
        policy: Policy,
        room: Arc<Room>,
    ) -> Self {
        let notes = Arc::new(Notes::default());
        let tap: Arc<dyn Tap> = notes.clone();
        let proxy = Proxy::new(upstreams, policy, dial, tap, room, wall_us).unwrap();
        let (stop, stopped) = watch::channel(false);
        let served = Served { proxy: Arc::new(proxy), stop: stopped };
        net.serve("127.0.0.1", PORT, served.clone());
        Self { net: net.clone(), notes, stop, served }
    }

    /// A proxy in front of one address.
    pub(crate) fn before(net: &MemoryNet, base: &str, policy: Policy) -> Self {
        Self::new(net, vec![Upstream::new(None, base, None, Vec::new()).unwrap()], policy)
    }

    pub(crate) fn connect(&self) -> ClientIo {
        self.net.connect("127.0.0.1", PORT).unwrap()
    }

    /// A connection on which at most so many bytes are on their way at once.
    pub(crate) fn connect_narrow(&self, bytes: usize) -> DuplexStream {
        let (client, server) = tokio::io::duplex(bytes);
        tokio::spawn(self.served.serve(Box::new(NoReset(server))));
        client
    }

    /// Sends bytes, reads to the end of the connection.
    pub(crate) async fn talk(&self, request: &[u8]) -> Answer {
        let mut io = self.connect();
        io.write_all(request).await.unwrap();
        read_all(&mut io).await
    }
}

/// Limits far beyond every case.
pub(crate) fn patient() -> Policy {
    let long = Duration::from_secs(100_000_000);
    Policy { limits: Limits { first_byte: long, idle: long, total: long }, ..Policy::default() }
}

/// What a client saw.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) raw: Vec<u8>,
    /// Bytes and the moment, milliseconds after the begin of reading.
    pub(crate) pieces: Vec<(u64, Vec<u8>)>,
    /// The connection was reset.
    pub(crate) reset: bool,
    /// The connection was closed, or reset.
    pub(crate) closed: bool,
}

/// Reads to the end of the connection.
pub(crate) async fn read_all(io: &mut ClientIo) -> Answer {
    read_all_within(io, Duration::from_secs(1_000_000)).await
}

/// Reads to the end of the connection, or for a time.
pub(crate) async fn read_all_within(io: &mut (impl AsyncRead + Unpin), limit: Duration) -> Answer {
    let begin = Instant::now();
    let mut answer = Answer::default();
    let mut buffer = vec![0; 1 << 20];
    while let Ok(read) = timeout_at(begin + limit, io.read(&mut buffer)).await {
        match read {
            Ok(n) if n > 0 => {
                answer.raw.extend_from_slice(&buffer[..n]);
                answer.pieces.push((begin.elapsed().as_millis() as u64, buffer[..n].to_vec()));
            }
            ended => {
                (answer.reset, answer.closed) = (ended.is_err(), true);
                break;
            }
        }
    }
    answer
}

impl Answer {
    fn split(&self) -> (&[u8], &[u8]) {
        let at = self.raw.windows(4).position(|w| w == b"\r\n\r\n").map_or(self.raw.len(), |at| at + 4);
        self.raw.split_at(at)
    }

    pub(crate) fn head(&self) -> String {
        String::from_utf8_lossy(self.split().0).into_owned()
    }

    pub(crate) fn status(&self) -> Option<u16> {
        self.head().split(' ').nth(1)?.parse().ok()
    }

    /// The body without its frame, as far as it came; by plain reading, not by the code that is tested.
    pub(crate) fn body(&self) -> Vec<u8> {
        let body = self.split().1;
        if !self.head().to_ascii_lowercase().contains("transfer-encoding: chunked") {
            return body.to_vec();
        }
        let (mut data, mut left) = (Vec::new(), body);
        while let Some(at) = left.windows(2).position(|w| w == b"\r\n") {
            let line = String::from_utf8_lossy(&left[..at]).into_owned();
            let size = usize::from_str_radix(line.split(';').next().unwrap().trim(), 16).unwrap();
            left = &left[at + 2..];
            if size == 0 {
                break;
            }
            data.extend_from_slice(&left[..size.min(left.len())]);
            left = left.get(size + 2..).unwrap_or_default();
        }
        data
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body()).into_owned()
    }
}
