//! Where records go: the store, a CSV file, both or neither. Writing never holds the event loop that measures.

use std::path::Path;
use std::thread::JoinHandle;

use peaklane_core::attempt::AttemptRecord;
use peaklane_core::burst::{BurstEnd, BurstHeader, ControlFigures};
use peaklane_store::csv::{CsvAppender, CsvError};
use peaklane_store::{AttemptSink, BurstKey, StoreError};
use tokio::sync::{Mutex, mpsc, oneshot};

/// Rows that wait for the CSV file at most; beyond it attempts wait for the disk.
const CSV_QUEUE: usize = 4_096;

/// Why a record could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The CSV file.
    #[error(transparent)]
    Csv(#[from] CsvError),
    /// The thread that writes the CSV file is gone (a bug of ours).
    #[error("the writer of the CSV file has stopped")]
    CsvGone,
}

impl RecordError {
    /// The next thing to try.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Store(e) => e.hint(),
            Self::Csv(e) => e.hint(),
            Self::CsvGone => None,
        }
    }
}

enum CsvItem {
    Row(Box<(BurstHeader, AttemptRecord)>),
    Sync(oneshot::Sender<Result<(), CsvError>>),
}

/// A CSV file with a thread of its own.
#[derive(Debug)]
struct CsvWriter {
    rows: mpsc::Sender<CsvItem>,
    thread: Option<JoinHandle<()>>,
}

impl CsvWriter {
    fn start(mut file: CsvAppender) -> Self {
        let (rows, mut queue) = mpsc::channel::<CsvItem>(CSV_QUEUE);
        let thread = std::thread::spawn(move || {
            // After the first failure nothing more is written; the next sync tells it.
            let mut failed: Option<CsvError> = None;
            while let Some(item) = queue.blocking_recv() {
                match item {
                    CsvItem::Row(row) if failed.is_none() => failed = file.append(&row.0, &row.1).err(),
                    CsvItem::Row(_) => {}
                    CsvItem::Sync(answer) => {
                        let result = failed.take().map_or_else(|| file.sync(), Err);
                        // Nobody waits any more: the run was given up.
                        let _ = answer.send(result);
                    }
                }
            }
        });
        Self { rows, thread: Some(thread) }
    }
}

impl Drop for CsvWriter {
    fn drop(&mut self) {
        // Closing the channel ends the thread once it has written what is queued.
        self.rows = mpsc::channel(1).0;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Where the records of a run go.
#[derive(Debug, Default)]
pub struct Recorder {
    store: Option<AttemptSink>,
    csv: Option<CsvWriter>,
    no_texts: bool,
    control: Mutex<Option<oneshot::Receiver<ControlFigures>>>,
}

/// One burst that is being recorded.
#[derive(Clone, Copy, Debug)]
pub struct Recording(Option<BurstKey>);

impl Recorder {
    /// Records into nothing: the caller keeps what it wants.
    pub fn nowhere() -> Self {
        Self::default()
    }

    /// Records into a store too.
    pub fn with_store(mut self, sink: AttemptSink) -> Self {
        self.store = Some(sink);
        self
    }

    /// Appends to a CSV file too.
    ///
    /// # Errors
    /// When the file cannot be opened or has other columns.
    pub fn with_csv(mut self, path: &Path) -> Result<Self, CsvError> {
        self.csv = Some(CsvWriter::start(CsvAppender::open(path)?));
        Ok(self)
    }

    /// Keeps texts, or keeps none of them: see [`AttemptRecord::forget_texts`]. Kept unless this says otherwise.
    pub fn keeping_texts(mut self, keep: bool) -> Self {
        self.no_texts = !keep;
        self
    }

    /// Waits at the end of the next burst for these figures of the control endpoint, and records them with it.
    pub fn with_control(mut self, figures: oneshot::Receiver<ControlFigures>) -> Self {
        self.control = Mutex::new(Some(figures));
        self
    }

    /// A burst begins; its header is on disk when this returns.
    ///
    /// # Errors
    /// What the store says.
    pub async fn begin(&self, header: &BurstHeader) -> Result<Recording, RecordError> {
        Ok(Recording(match &self.store {
            Some(sink) => Some(sink.begin_burst(header).await?),
            None => None,
        }))
    }

    /// One attempt. Returns when it is queued.
    ///
    /// # Errors
    /// What the store said since the last call; the CSV file's failures are told by [`Self::end`].
    pub async fn attempt(
        &self,
        recording: Recording,
        header: &BurstHeader,
        mut attempt: AttemptRecord,
    ) -> Result<(), RecordError> {
        if self.no_texts {
            attempt.forget_texts();
        }
        if let Some(csv) = &self.csv {
            let row = CsvItem::Row(Box::new((header.clone(), attempt.clone())));
            csv.rows.send(row).await.map_err(|_| RecordError::CsvGone)?;
        }
        if let (Some(sink), Some(key)) = (&self.store, recording.0) {
            sink.attempt(key, attempt).await?;
        }
        Ok(())
    }

    /// A burst ends; everything of it is on disk when this returns.
    ///
    /// # Errors
    /// What the store or the CSV file says.
    pub async fn end(&self, recording: Recording, end: &BurstEnd) -> Result<(), RecordError> {
        // a probe that was given up has nothing to say
        let control = match self.control.lock().await.take() {
            Some(figures) => figures.await.ok(),
            None => None,
        };
        if let (Some(sink), Some(key)) = (&self.store, recording.0) {
            let mut end = BurstEnd { control: control.or_else(|| end.control.clone()), ..end.clone() };
            if self.no_texts {
                end.forget_texts();
            }
            sink.end_burst(key, &end).await?;
        }
        if let Some(csv) = &self.csv {
            let (answer, told) = oneshot::channel();
            csv.rows.send(CsvItem::Sync(answer)).await.map_err(|_| RecordError::CsvGone)?;
            told.await.map_err(|_| RecordError::CsvGone)??;
        }
        Ok(())
    }
}
