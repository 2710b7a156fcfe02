//! Writes finished calls, a batch at a time, and goes on when the disk does not.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use peaklane_core::call::CallRecord;
use peaklane_store::{CallWriter, StoreError};

/// Finished calls that may wait for the disk, some 2 KiB each.
const QUEUE: usize = 8_192;
/// Calls written in one transaction.
const BATCH: usize = 512;
/// How long a batch gathers after its first call.
const GATHER: Duration = Duration::from_millis(50);
/// Pause after a batch that could not be written.
const PAUSE: Duration = Duration::from_millis(500);
/// How long the last batch is tried for when the proxy ends.
const LAST_TRIES: Duration = Duration::from_secs(5);

/// What was not recorded, and why.
#[derive(Debug, Default)]
pub struct Losses {
    /// Begins of calls that found the queue full: these calls are recorded without their prompts, or not at all.
    pub asked: AtomicU64,
    /// Ends of calls that found the queue full: these calls are lost.
    pub ended: AtomicU64,
    /// Finished calls that could not be written.
    pub unwritten: AtomicU64,
    /// What the disk said last.
    said: Mutex<Option<String>>,
}

impl Losses {
    /// Calls that are in no store although they passed.
    pub fn calls(&self) -> u64 {
        self.ended.load(Ordering::Relaxed) + self.unwritten.load(Ordering::Relaxed)
    }

    /// What the disk said last, when a batch could not be written.
    pub fn said(&self) -> Option<String> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn tell(&self, error: &StoreError) {
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(error);
        while let Some(inner) = cause {
            let words = inner.to_string();
            if !text.contains(&words) {
                text.push_str(&format!(": {words}"));
            }
            cause = inner.source();
        }
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }
}

/// The writer's end. Dropping it lets the thread write what is queued.
#[derive(Debug)]
pub struct Scribe {
    queue: SyncSender<CallRecord>,
    losses: Arc<Losses>,
    thread: JoinHandle<()>,
}

impl Scribe {
    /// Starts a writer to the store at `path`.
    ///
    /// # Errors
    /// [`StoreError`] for a store that cannot be opened: better told at once than after an hour of calls.
    pub fn start(path: &Path, losses: Arc<Losses>) -> Result<Self, StoreError> {
        let writer = CallWriter::open(path)?;
        let (queue, calls) = sync_channel(QUEUE);
        let (path, told) = (path.to_path_buf(), Arc::clone(&losses));
        let work = move || write_all(writer, &path, &calls, &told);
        let thread = std::thread::spawn(work);
        Ok(Self { queue, losses, thread })
    }

    /// Queues a call, if there is room.
    pub fn write(&self, call: CallRecord) {
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = self.queue.try_send(call) {
            self.losses.unwritten.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes what is queued and waits for it.
    pub fn finish(self) {
        drop(self.queue);
        // A panic there was printed there.
        let _ = self.thread.join();
    }
}

fn write_all(writer: CallWriter, path: &Path, calls: &Receiver<CallRecord>, losses: &Losses) {
    let mut writer = Some(writer);
    let path: PathBuf = path.to_path_buf();
    let mut waiting: VecDeque<CallRecord> = VecDeque::new();
    let mut open = true;
    let mut failing_since: Option<Instant> = None;
    // Of a batch that the store refuses for one call in it, calls are tried one by one.
    let mut largest = BATCH;
    while open || !waiting.is_empty() {
        open = open && gather(calls, &mut waiting, failing_since.is_some());
        if waiting.is_empty() {
            continue;
        }
        let batch = waiting.len().min(largest);
        let slice = &waiting.make_contiguous()[..batch];
        let written = match &mut writer {
            Some(writer) => writer.append(slice),
            None => CallWriter::open(&path).and_then(|mut fresh| {
                let done = fresh.append(slice);
                writer = Some(fresh);
                done
            }),
        };
        match written {
            Ok(()) => {
                (failing_since, largest) = (None, BATCH);
                waiting.drain(..batch);
            }
            // Trying again would end the same way for ever, with all later calls behind it.
            Err(error @ StoreError::Bug { .. }) => {
                if batch == 1 {
                    losses.tell(&error);
                    losses.unwritten.fetch_add(1, Ordering::Relaxed);
                    waiting.pop_front();
                }
                largest = if batch == 1 { BATCH } else { 1 };
            }
            Err(error) => {
                losses.tell(&error);
                // A file that was removed or replaced is made anew; a lock or a full disk may pass.
                if matches!(error, StoreError::Gone { .. }) {
                    writer = None;
                }
                let since = *failing_since.get_or_insert_with(Instant::now);
                if !open && since.elapsed() > LAST_TRIES {
                    losses.unwritten.fetch_add(waiting.len() as u64, Ordering::Relaxed);
                    return;
                }
                if !open {
                    // Nothing is gathered any more, so nothing else waits between two tries.
                    std::thread::sleep(PAUSE);
                }
                while waiting.len() > QUEUE {
                    waiting.pop_front();
                    losses.unwritten.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}

/// Takes what waits in the queue, until a batch is full or its time is over. False when nobody will send any more.
fn gather(calls: &Receiver<CallRecord>, waiting: &mut VecDeque<CallRecord>, failing: bool) -> bool {
    let end = match (failing, waiting.is_empty()) {
        (true, _) => Instant::now() + PAUSE,
        (false, false) => Instant::now(),
        (false, true) => match calls.recv() {
            Ok(call) => {
                waiting.push_back(call);
                Instant::now() + GATHER
            }
            Err(_) => return false,
        },
    };
    while failing || waiting.len() < BATCH {
        match calls.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(call) => waiting.push_back(call),
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => {
                if failing {
                    std::thread::sleep(end.saturating_duration_since(Instant::now()));
                }
                return false;
            }
        }
        if waiting.len() > QUEUE + BATCH {
            return true;
        }
    }
    true
}
