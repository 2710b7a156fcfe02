//! The store as writers see it: one [`Store`] per process and file, any number of [`AttemptSink`]s.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use peaklane_core::attempt::AttemptRecord;
use peaklane_core::burst::{BurstEnd, BurstHeader};
use tokio::sync::oneshot;

use crate::error::StoreError;
use crate::format::{BUSY_LIMIT, FileId, MIGRATIONS, full_path, open_to_write};
use crate::queue::{Answer, BurstKey, Item, Queue};
use crate::read::StoreReader;
use crate::rows::{TEXT_LIMIT_BYTES, cut};
use crate::writer;

/// A store opened for writing. Its thread ends with it: dropping or closing it writes what is queued first.
#[derive(Debug)]
pub struct Store {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

impl Store {
    /// Opens the SQLite file at `path`, makes it when there is none, and brings it to format [`crate::FORMAT`].
    ///
    /// Several processes may have the same store open.
    ///
    /// # Errors
    /// [`StoreError`] when the path is no file of ours, has a newer format, is locked for longer than
    /// [`crate::BUSY_LIMIT`], or cannot be written. A file that is not ours is left as it is.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_waiting(path, BUSY_LIMIT)
    }

    fn open_waiting(path: &Path, patience: Duration) -> Result<Self, StoreError> {
        let path = full_path(path)?;
        let conn = open_to_write(&path, MIGRATIONS, patience)?;
        let file = FileId::of(&path).ok_or_else(|| StoreError::Gone { path: path.clone() })?;
        let queue = Arc::new(Queue::new(path));
        let thread = writer::start(Arc::clone(&queue), conn, file)
            .map_err(|e| StoreError::io(&queue.path, "start the writer of", e))?;
        Ok(Self { queue, thread: Some(thread) })
    }

    /// The absolute path of the file.
    pub fn path(&self) -> &Path {
        &self.queue.path
    }

    /// A handle for those who measure.
    pub fn sink(&self) -> AttemptSink {
        AttemptSink { queue: Arc::clone(&self.queue) }
    }

    /// A reader of the same file, with a connection of its own; it sees what is committed.
    ///
    /// # Errors
    /// As [`StoreReader::open`].
    pub fn reader(&self) -> Result<StoreReader, StoreError> {
        StoreReader::open(&self.queue.path)
    }

    /// Writes what is queued and ends the thread. Sinks that are left refuse from now on.
    ///
    /// # Errors
    /// The first failure of the writer, if there was one: not everything that was given is on disk.
    pub fn close(mut self) -> Result<(), StoreError> {
        self.end();
        self.queue.failure().map_or(Ok(()), Err)
    }

    fn end(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been told to the queue by its guard.
            let _ = thread.join();
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.end();
    }
}

/// Where measurements go. Cheap to clone, safe to use from any thread or task.
///
/// After the first failure of the writer every call returns that failure; what was committed before is kept.
#[derive(Clone, Debug)]
pub struct AttemptSink {
    queue: Arc<Queue>,
}

impl AttemptSink {
    /// Records that a burst begins. On disk when it returns.
    ///
    /// # Errors
    /// [`StoreError::Bug`] for an id that is there already, else what stopped the writer.
    pub async fn begin_burst(&self, header: &BurstHeader) -> Result<BurstKey, StoreError> {
        self.ask(|answer| Item::Begin(Box::new(header.clone()), answer)).await
    }

    /// [`Self::begin_burst`] for threads without an async runtime.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// Inside an async runtime, whose loop it would hold.
    pub fn begin_burst_blocking(&self, header: &BurstHeader) -> Result<BurstKey, StoreError> {
        self.ask_blocking(|answer| Item::Begin(Box::new(header.clone()), answer))
    }

    /// Queues an attempt and returns at once, unless [`crate::QUEUE_LIMIT`] records wait: then it waits for room
    /// without holding the thread. On disk within [`crate::GATHER`] and a commit, or after [`Self::flush`].
    ///
    /// Answer and reasoning texts and arguments of tool calls are cut to [`TEXT_LIMIT_BYTES`].
    ///
    /// # Errors
    /// What stopped the writer before.
    pub async fn attempt(&self, burst: BurstKey, mut attempt: AttemptRecord) -> Result<(), StoreError> {
        cut_texts(&mut attempt);
        self.queue.push_async(burst, attempt).await
    }

    /// [`Self::attempt`] without waiting: gives the attempt back when there is no room.
    ///
    /// # Errors
    /// What stopped the writer before.
    pub fn try_attempt(
        &self,
        burst: BurstKey,
        mut attempt: AttemptRecord,
    ) -> Result<Option<AttemptRecord>, StoreError> {
        cut_texts(&mut attempt);
        self.queue.try_push(burst, attempt)
    }

    /// [`Self::attempt`] that holds the thread until there is room; not for async tasks.
    ///
    /// # Errors
    /// What stopped the writer before.
    pub fn attempt_blocking(&self, burst: BurstKey, mut attempt: AttemptRecord) -> Result<(), StoreError> {
        cut_texts(&mut attempt);
        self.queue.push_blocking(burst, attempt)
    }

    /// Records how a burst ended. The burst with all attempts given before is on disk when it returns.
    ///
    /// # Errors
    /// [`StoreError::Bug`] for a burst that has ended before, else what stopped the writer.
    pub async fn end_burst(&self, burst: BurstKey, end: &BurstEnd) -> Result<(), StoreError> {
        self.ask(|answer| Item::End(burst, Box::new(end.clone()), answer)).await
    }

    /// [`Self::end_burst`] for threads without an async runtime.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// Inside an async runtime, whose loop it would hold.
    pub fn end_burst_blocking(&self, burst: BurstKey, end: &BurstEnd) -> Result<(), StoreError> {
        self.ask_blocking(|answer| Item::End(burst, Box::new(end.clone()), answer))
    }

    /// Waits until all that was given before is on disk.
    ///
    /// # Errors
    /// What stopped the writer.
    pub async fn flush(&self) -> Result<(), StoreError> {
        self.ask(Item::Flush).await
    }

    /// [`Self::flush`] for threads without an async runtime.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// Inside an async runtime, whose loop it would hold.
    pub fn flush_blocking(&self) -> Result<(), StoreError> {
        self.ask_blocking(Item::Flush)
    }

    /// Records that wait for the writer now.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    async fn ask<T>(&self, item: impl FnOnce(Answer<T>) -> Item) -> Result<T, StoreError> {
        let (answer, said) = oneshot::channel();
        self.queue.push_urgent(item(answer))?;
        said.await.unwrap_or_else(|_| Err(self.no_answer()))
    }

    fn ask_blocking<T>(&self, item: impl FnOnce(Answer<T>) -> Item) -> Result<T, StoreError> {
        let (answer, said) = oneshot::channel();
        self.queue.push_urgent(item(answer))?;
        said.blocking_recv().unwrap_or_else(|_| Err(self.no_answer()))
    }

    /// The writer went away with our question in its hands: it panicked.
    fn no_answer(&self) -> StoreError {
        let path = self.queue.path.clone();
        self.queue.failure().unwrap_or(StoreError::Closed { path })
    }
}

/// Done by the one who measures, so that what waits in the queue is small.
fn cut_texts(attempt: &mut AttemptRecord) {
    for one in &mut attempt.tries {
        cut(&mut one.content, TEXT_LIMIT_BYTES);
        cut(&mut one.reasoning, TEXT_LIMIT_BYTES);
        for call in &mut one.tool_calls {
            cut(&mut call.arguments, TEXT_LIMIT_BYTES);
        }
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("path", &PathBuf::from(&self.path)).field("queued", &self.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_another_process_keeps_locked_is_told_and_nothing_hangs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.db");
        let store = Store::open_waiting(&path, Duration::from_millis(50)).unwrap();
        let sink = store.sink();
        sink.flush_blocking().unwrap();
        let other = rusqlite::Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let error = sink.flush_blocking().unwrap_err();
        assert!(matches!(error, StoreError::Busy { .. }), "{error:?}");
        assert!(error.to_string().contains("s.db"), "{error}");
        assert!(error.hint().is_some());
        // The failure is for good: nobody is told "written" after something was not.
        other.execute_batch("ROLLBACK").unwrap();
        assert!(matches!(sink.flush_blocking(), Err(StoreError::Busy { .. })));
        assert!(matches!(store.close(), Err(StoreError::Busy { .. })));
    }

    #[test]
    fn texts_are_cut_to_their_limit_at_a_character() {
        let mut text = "é".repeat(2_000);
        cut(&mut text, 2_047);
        assert_eq!(text.len(), 2_046);
        let mut text = "short".to_owned();
        cut(&mut text, 2_047);
        assert_eq!(text, "short");
    }
}
