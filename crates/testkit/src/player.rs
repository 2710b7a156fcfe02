//! Plays stream cases to a client, each step at its moment: `testdata/cases/replay_server.py` in process.
//!
//! Time 0 of an answer is the moment when the last byte of its request was read. All waiting is done on tokio's clock:
//! paused, the steps go out at exact milliseconds; running, at most a timer's grain late, which the log tells.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep_until};

use crate::case::{Answer, Case, CloseHow, Framing};
use crate::http1::{self, Request};
use crate::io::BoxIo;
use crate::log::{EntryId, Log, Received};

/// Bytes of a next request that are read ahead while an answer is being played; more stay in the socket.
const MAX_READ_AHEAD: usize = 1 << 20;

/// A future that owns what it needs.
pub type BoxFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The server's side of connections: given to [`crate::net::MemoryNet`] or [`crate::net::TcpServer`].
pub trait Service: Send + Sync + 'static {
    /// Serves one connection to its end.
    fn serve(&self, io: BoxIo) -> BoxFuture;

    /// Tells where the service is reached, so that it can name itself: host and port.
    fn located_at(&self, host: &str, port: u16) {
        let _ = (host, port);
    }
}

/// The wall clock that `{http_date:+20}` is filled in from.
type WallClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Plays cases below `/case/<id>[@key]/`; clones share counters and log.
#[derive(Clone)]
pub struct CasePlayer {
    shared: Arc<Shared>,
}

struct Shared {
    cases: HashMap<String, Case>,
    counts: Mutex<HashMap<String, usize>>,
    log: Log,
    connections: AtomicU64,
    place: Mutex<(String, u16)>,
    wall: WallClock,
}

impl CasePlayer {
    /// A player of these cases.
    pub fn new(cases: Vec<Case>) -> Self {
        Self::with_wall_clock(cases, SystemTime::now)
    }

    /// The same with a wall clock of its own, for a client whose wall clock is not the system's.
    pub fn with_wall_clock(cases: Vec<Case>, wall: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self {
            shared: Arc::new(Shared {
                cases: cases.into_iter().map(|c| (c.id.clone(), c)).collect(),
                counts: Mutex::default(),
                log: Log::default(),
                connections: AtomicU64::new(0),
                place: Mutex::new(("127.0.0.1".to_owned(), 0)),
                wall: Arc::new(wall),
            }),
        }
    }

    /// What was received.
    pub fn log(&self) -> &Log {
        &self.shared.log
    }

    /// Connections opened so far, those without a request included.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Address of a case without a trailing path: `http://127.0.0.1:PORT/case/<key>`. `key` is `<id>` or `<id>@<key>`.
    pub fn root_url(&self, key: &str) -> String {
        let (host, port) = &*self.shared.place();
        format!("http://{host}:{port}/case/{key}")
    }

    /// Base URL of a case for a client: [`Self::root_url`] and `/v1`.
    pub fn base_url(&self, key: &str) -> String {
        format!("{}/v1", self.root_url(key))
    }
}

impl Service for CasePlayer {
    fn serve(&self, io: BoxIo) -> BoxFuture {
        let shared = Arc::clone(&self.shared);
        Box::pin(shared.connection(io))
    }

    fn located_at(&self, host: &str, port: u16) {
        *self.shared.place() = (host.to_owned(), port);
    }
}

impl Shared {
    fn place(&self) -> MutexGuard<'_, (String, u16)> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connection(self: Arc<Self>, mut io: BoxIo) {
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        let mut pending = Vec::new();
        // an error is a client that went away or no HTTP: the log has what arrived
        while let Ok(Some(request)) = http1::read_request(&mut io, &mut pending).await {
            let start = Instant::now();
            if !matches!(self.answer(&mut io, &mut pending, request, number, start).await, Ok(true)) {
                break;
            }
        }
    }

    /// Plays the answer to one request. `true`: the connection goes on.
    async fn answer(
        &self,
        io: &mut BoxIo,
        pending: &mut Vec<u8>,
        request: Request,
        connection: u64,
        start: Instant,
    ) -> io::Result<bool> {
        let mut segments = request.path.split('/').skip(1);
        let key = match (segments.next(), segments.next()) {
            (Some("case"), Some(key)) => key.to_owned(),
            _ => String::new(),
        };
        let path = format!("/{}", segments.collect::<Vec<_>>().join("/"));
        let id = key.split('@').next().unwrap_or_default();
        let Some(case) = self.cases.get(id) else {
            let body = r#"{"error": {"message": "no such case", "code": "no_case"}}"#;
            let head = format!("HTTP/1.1 404 Not Found\r\nContent-Length: {}\r\n\r\n", body.len());
            io.write_all(format!("{head}{body}").as_bytes()).await?;
            return Ok(true);
        };
        let answer = self.pick(case, &key, &path, &request.query);
        let Request { method, query, headers, body, .. } = request;
        let entry =
            Received { key: key.clone(), connection, method, path, query, headers, body, ..Received::default() };
        let entry = self.log.push(entry);
        let stage = Stage { io, pending, log: &self.log, entry, start, hung_up: false };
        let base = format!("/case/{key}");
        stage.play(answer, |value| self.expand(value, &base)).await
    }

    fn pick<'a>(&self, case: &'a Case, key: &str, path: &str, query: &str) -> &'a Answer {
        if let Some(answer) = case.route(path, query) {
            return answer;
        }
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(key.to_owned()).or_default();
        *count += 1;
        case.answer(*count - 1)
    }

    fn expand(&self, value: &str, base: &str) -> String {
        let (host, port) = self.place().clone();
        let mut value = value.to_owned();
        if let Some((before, rest)) = value.split_once("{http_date:")
            && let Some((seconds, after)) = rest.split_once('}')
            && let Ok(seconds) = seconds.parse::<f64>()
        {
            let now = (self.wall)();
            let shift = Duration::from_secs_f64(seconds.abs());
            let then = if seconds < 0.0 { now - shift } else { now + shift };
            value = format!("{before}{}{after}", httpdate::fmt_http_date(then));
        }
        value
            .replace("{base}", &format!("http://{host}:{port}{base}"))
            .replace("{other}", &format!("http://localhost:{port}{base}"))
    }
}

/// One answer being played.
struct Stage<'a> {
    io: &'a mut BoxIo,
    pending: &'a mut Vec<u8>,
    log: &'a Log,
    entry: EntryId,
    start: Instant,
    hung_up: bool,
}

impl Stage<'_> {
    async fn play(mut self, answer: &Answer, expand: impl Fn(&str) -> String) -> io::Result<bool> {
        if let Some(status) = answer.status {
            self.until(answer.head_at_ms()).await;
            let head = head(status, answer, expand);
            self.io.write_all(&head).await?;
            self.io.flush().await?;
        }
        for step in &answer.steps {
            self.until(step.at_ms).await;
            let data = match answer.framing {
                Framing::Chunked => chunk(&step.bytes),
                Framing::Length | Framing::Close => step.bytes.clone(),
            };
            let now = self.now_ms();
            self.log.edit(self.entry, |e| {
                e.sent_ms.push(now);
                e.worst_late_ms = e.worst_late_ms.max(now - step.at_ms);
            });
            self.io.write_all(&data).await?;
            self.io.flush().await?;
            self.log.edit(self.entry, |e| e.sent_bytes += step.bytes.len() as u64);
        }
        if let Some(at_ms) = answer.close.at_ms {
            self.until(at_ms).await;
        }
        if answer.close.how == CloseHow::Rst {
            self.io.reset_on_drop()?;
            return Ok(false);
        }
        if answer.close.how == CloseHow::Fin || answer.framing == Framing::Close || answer.status.is_none() {
            self.io.shutdown().await?;
            return Ok(false);
        }
        if answer.framing == Framing::Chunked {
            self.io.write_all(b"0\r\n\r\n").await?;
            self.io.flush().await?;
        }
        Ok(!self.hung_up)
    }

    fn now_ms(&self) -> f64 {
        self.start.elapsed().as_secs_f64() * 1e3
    }

    /// Waits for a moment of the answer, and notes when the client hangs up meanwhile.
    async fn until(&mut self, at_ms: f64) {
        let at = self.start + millis(at_ms);
        loop {
            let listen = !self.hung_up && self.pending.len() < MAX_READ_AHEAD;
            tokio::select! {
                biased;
                () = sleep_until(at) => return,
                got = http1::fill(self.io, self.pending), if listen => {
                    if matches!(got, Ok(0) | Err(_)) {
                        self.hung_up = true;
                        let now = self.now_ms();
                        self.log.edit(self.entry, |e| e.client_closed_ms = Some(now));
                    }
                }
            }
        }
    }
}

/// Milliseconds as a duration, to the nanosecond.
pub(crate) fn millis(ms: f64) -> Duration {
    Duration::from_nanos((ms.max(0.0) * 1e6).round() as u64)
}

fn head(status: u16, answer: &Answer, expand: impl Fn(&str) -> String) -> Vec<u8> {
    let reason = answer.reason.as_deref().unwrap_or(http1::reason(status));
    let mut lines = vec![format!("HTTP/1.1 {status} {reason}")];
    lines.extend(answer.headers.iter().map(|(k, v)| format!("{k}: {}", expand(v))));
    lines.push(match answer.framing {
        Framing::Chunked => "Transfer-Encoding: chunked".to_owned(),
        Framing::Length => {
            let true_len: usize = answer.steps.iter().map(|s| s.bytes.len()).sum();
            format!("Content-Length: {}", answer.content_length.unwrap_or(true_len as u64))
        }
        Framing::Close => "Connection: close".to_owned(),
    });
    // Latin-1, as in the reference server; a character beyond it has no byte and shows as `?`
    let text = lines.join("\r\n") + "\r\n\r\n";
    text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect()
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut out = format!("{:x}\r\n", bytes.len()).into_bytes();
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
    out
}
