//! Plays recordings to a client: the raw bytes of a real server, each read of the recorder at its moment.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep_until};

use crate::http1;
use crate::io::BoxIo;
use crate::log::{EntryId, Log, Received};
use crate::player::{BoxFuture, Service, millis};
use crate::recorded::{EndHow, Recording};

/// A server that answers the n-th request, on whatever connection, with the n-th recording. Clones share it.
///
/// What ends an answer is what ended it then: end of stream and reset happen again; after `client_closed` and
/// `timeout` nothing more comes and the connection stays open until the client goes; after `response_complete` it is
/// kept for the next request. A request for which there is no recording finds its connection closed.
#[derive(Clone)]
pub struct RecordedPlayer(Arc<Shared>);

struct Shared {
    recordings: Vec<Recording>,
    scale: u32,
    next: AtomicUsize,
    connections: AtomicU64,
    log: Log,
}

impl RecordedPlayer {
    /// A player of these exchanges, in this order.
    pub fn new(recordings: Vec<Recording>) -> Self {
        Self::slowed(recordings, 1)
    }

    /// The same, `scale` times slower. Timers have a grain of a millisecond and recordings one of a microsecond: with
    /// `scale` 1000 on a paused clock every moment is exact. Divide what was measured by it, and multiply limits.
    pub fn slowed(recordings: Vec<Recording>, scale: u32) -> Self {
        Self(Arc::new(Shared {
            recordings,
            scale,
            next: AtomicUsize::new(0),
            connections: AtomicU64::new(0),
            log: Log::default(),
        }))
    }

    /// What was received; keys are `server/name`, times are recorded ones (not slowed).
    pub fn log(&self) -> &Log {
        &self.0.log
    }

    /// Connections opened so far.
    pub fn connections(&self) -> u64 {
        self.0.connections.load(Ordering::Relaxed)
    }
}

impl Service for RecordedPlayer {
    fn serve(&self, io: BoxIo) -> BoxFuture {
        Box::pin(Arc::clone(&self.0).connection(io))
    }
}

impl Shared {
    async fn connection(self: Arc<Self>, mut io: BoxIo) {
        let connection = self.connections.fetch_add(1, Ordering::Relaxed);
        let mut pending = Vec::new();
        while let Ok(Some(request)) = http1::read_request(&mut io, &mut pending).await {
            let start = Instant::now();
            let n = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(recording) = self.recordings.get(n) else { return };
            let http1::Request { method, path, query, headers, body } = request;
            let key = recording.key();
            let entry = Received { key, connection, method, path, query, headers, body, ..Received::default() };
            let entry = self.log.push(entry);
            if !matches!(self.play(&mut io, &mut pending, recording, entry, start).await, Ok(true)) {
                return;
            }
        }
    }

    /// `true`: the connection goes on.
    async fn play(
        &self,
        io: &mut BoxIo,
        pending: &mut Vec<u8>,
        recording: &Recording,
        entry: EntryId,
        start: Instant,
    ) -> io::Result<bool> {
        let now_ms = || start.elapsed().as_secs_f64() * 1e3 / f64::from(self.scale);
        for piece in &recording.pieces {
            self.until(start, piece.t_ms).await;
            if piece.bytes.is_empty() {
                io.shutdown().await?;
                return Ok(false);
            }
            let now = now_ms();
            self.log.edit(entry, |e| {
                e.sent_ms.push(now);
                e.worst_late_ms = e.worst_late_ms.max(now - piece.t_ms);
            });
            let written = async {
                io.write_all(&piece.bytes).await?;
                io.flush().await
            };
            if let Err(error) = written.await {
                self.log.edit(entry, |e| e.client_closed_ms = Some(now));
                return Err(error);
            }
            self.log.edit(entry, |e| e.sent_bytes += piece.bytes.len() as u64);
        }
        match recording.how {
            EndHow::ResponseComplete => Ok(true),
            EndHow::Eof => {
                self.until(start, recording.end_ms).await;
                io.shutdown().await?;
                Ok(false)
            }
            EndHow::Reset => {
                self.until(start, recording.end_ms).await;
                io.reset_on_drop()?;
                Ok(false)
            }
            EndHow::ClientClosed | EndHow::Timeout => {
                while http1::fill(io, pending).await? > 0 {}
                let now = now_ms();
                self.log.edit(entry, |e| e.client_closed_ms = Some(now));
                Ok(false)
            }
        }
    }

    async fn until(&self, start: Instant, at_ms: f64) {
        sleep_until(start + millis(at_ms * f64::from(self.scale))).await;
    }
}
