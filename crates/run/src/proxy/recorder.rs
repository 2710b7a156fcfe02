//! The tap of the proxy: queues what it is told and lets a thread of its own make calls of it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use peaklane_core::call::CallRecord;
use peaklane_core::prefix::Bounds;
use peaklane_core::record::TryRecord;
use peaklane_store::StoreError;
use peaklane_wire::proxy::{Asked, Ended, Passed, Room, Tap};

use super::book::Book;
use super::keep::Bodies;
use super::metrics::Metrics;
use super::scribe::{Losses, Scribe};

/// Begins and ends of calls that may wait to be read. Their prompts are bounded by the room, not by this.
const QUEUE: usize = 16_384;

/// Told of each finished call.
pub type Finished = Box<dyn FnMut(&CallRecord) + Send>;

/// How calls are recorded.
#[derive(Default)]
pub struct Settings<'a> {
    /// Unique to the process: begins ids and names of nameless sessions.
    pub prefix: String,
    /// The store; `None` records nothing on disk.
    pub store: Option<&'a Path>,
    /// Prompts are read and compared with earlier ones.
    pub analyse: bool,
    /// Bounds of what is kept of sessions.
    pub bounds: Bounds,
    /// Keeps request bodies.
    pub bodies: Option<Bodies>,
    /// Keeps no texts of prompts, answers and errors, and no names that bodies give: see [`Book::without_texts`].
    pub no_texts: bool,
    /// Told of each finished call, on the recorder's thread.
    pub finished: Option<Finished>,
}

enum Event {
    Asked(Asked),
    /// Without its texts, and how many bytes these had: they may be large, and the queue is long.
    Ended(Box<Ended>, u64),
}

/// The recorder, as the proxy sees it.
#[derive(Debug)]
pub struct Recorder {
    queue: SyncSender<Event>,
    losses: Arc<Losses>,
    metrics: Arc<Metrics>,
}

/// The recorder's thread, and what it counted.
#[derive(Debug)]
pub struct Recording {
    thread: JoinHandle<()>,
    /// What was lost.
    pub losses: Arc<Losses>,
    /// Everything that was counted.
    pub metrics: Arc<Metrics>,
}

impl Recorder {
    /// Starts recording. `room` is the bound on copies of requests, for the metrics.
    ///
    /// # Errors
    /// [`StoreError`] for a store that cannot be opened.
    pub fn start(settings: Settings<'_>, room: &Arc<Room>) -> Result<(Self, Recording), StoreError> {
        let losses = Arc::new(Losses::default());
        let metrics = Arc::new(Metrics::new(Arc::clone(&losses), Arc::clone(room)));
        let scribe = settings.store.map(|path| Scribe::start(path, Arc::clone(&losses))).transpose()?;
        let (queue, events) = sync_channel(QUEUE);
        let book = Book::new(&settings.prefix, settings.bounds, settings.analyse, settings.bodies);
        let book = if settings.no_texts { book.without_texts() } else { book };
        let counted = Arc::clone(&metrics);
        let finished = settings.finished;
        let lost = Arc::clone(&losses);
        let thread = std::thread::spawn(move || record_all(book, &events, scribe, &counted, &lost, finished));
        let recording = Recording { thread, losses: Arc::clone(&losses), metrics: Arc::clone(&metrics) };
        Ok((Self { queue, losses, metrics }, recording))
    }
}

impl Recording {
    /// Waits until everything that was told is recorded. The recorder itself must be gone by then.
    pub fn finish(self) -> (Arc<Losses>, Arc<Metrics>) {
        // A panic there was printed there.
        let _ = self.thread.join();
        (self.losses, self.metrics)
    }
}

impl Tap for Recorder {
    fn asked(&self, asked: Asked) {
        self.metrics.began();
        if self.queue.try_send(Event::Asked(asked)).is_err() {
            self.losses.asked.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn ended(&self, ended: Ended) {
        self.metrics.ended();
        let mut ended = Box::new(ended);
        let said = forget_texts(&mut ended.record);
        if self.queue.try_send(Event::Ended(ended, said)).is_err() {
            self.losses.ended.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn passed(&self, what: Passed) {
        self.metrics.passed(what);
    }
}

/// Answers are none of our business beyond their counts. Gives the bytes that their texts had.
fn forget_texts(record: &mut TryRecord) -> u64 {
    let mut said = std::mem::take(&mut record.content).len() + std::mem::take(&mut record.reasoning).len();
    for call in &mut record.tool_calls {
        said += call.name.len() + std::mem::take(&mut call.arguments).len();
    }
    said as u64
}

fn record_all(
    mut book: Book,
    events: &Receiver<Event>,
    scribe: Option<Scribe>,
    metrics: &Metrics,
    losses: &Losses,
    mut finished: Option<Finished>,
) {
    for event in events {
        match event {
            Event::Asked(asked) => book.asked(asked),
            Event::Ended(ended, said) => match book.ended(*ended, said) {
                Some(call) => {
                    metrics.call(&call);
                    if let Some(tell) = &mut finished {
                        tell(&call);
                    }
                    if let Some(scribe) = &scribe {
                        scribe.write(call);
                    }
                }
                // Its begin found the queue full.
                None => drop(losses.ended.fetch_add(1, Ordering::Relaxed)),
            },
        }
        metrics.extent(book.extent());
    }
    if let Some(scribe) = scribe {
        scribe.finish();
    }
}
