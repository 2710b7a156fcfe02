//! The bounded queue between those who measure and the one thread that writes.
//!
//! Not a ready-made channel, because the writer wants to let a batch gather for some milliseconds and yet be woken at
//! once by somebody who waits for the disk. Nobody holds the lock for longer than a push.

use std::collections::VecDeque;
use std::mem;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use peaklane_core::attempt::AttemptRecord;
use peaklane_core::burst::{BurstEnd, BurstHeader};
use tokio::sync::{Notify, oneshot};

use crate::error::StoreError;

/// Attempts that may wait for the writer; with texts cut to 2 KiB some 4 MiB as a rule. At 10,000 attempts a second
/// this is 0.4 s of a disk that does not answer, after which measuring waits too.
pub const QUEUE_LIMIT: usize = 4_096;

/// How long a batch gathers after its first record when nobody waits for it. At 10,000 attempts a second this makes
/// 200 of them share one sync; for a person it is at once.
pub const GATHER: Duration = Duration::from_millis(20);

/// A batch this large is written without more gathering.
const BATCH: usize = 1_024;

/// Short name of a burst in one store, good for the life of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BurstKey(pub(crate) i64);

/// What the writer tells somebody who waits.
pub(crate) type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

/// One thing to write.
pub(crate) enum Item {
    /// A burst begins; its key is the answer.
    Begin(Box<BurstHeader>, Answer<BurstKey>),
    /// An attempt; nobody waits.
    Attempt(BurstKey, AttemptRecord),
    /// A burst is over.
    End(BurstKey, Box<BurstEnd>, Answer<()>),
    /// All that was given before is to be on disk.
    Flush(Answer<()>),
}

impl Item {
    /// Tells the waiting one, if there is one, that nothing came of it.
    pub(crate) fn refuse(self, error: &StoreError) {
        // A caller that has gone away needs no answer.
        match self {
            Self::Begin(_, answer) => drop(answer.send(Err(error.clone()))),
            Self::End(_, _, answer) | Self::Flush(answer) => drop(answer.send(Err(error.clone()))),
            Self::Attempt(..) => {}
        }
    }
}

#[derive(Default)]
struct State {
    items: VecDeque<Item>,
    /// Somebody waits for the disk: no gathering.
    urgent: bool,
    closed: bool,
    failed: Option<StoreError>,
}

/// The queue, shared by all sinks and the writer.
pub(crate) struct Queue {
    pub(crate) path: PathBuf,
    state: Mutex<State>,
    work: Condvar,
    room: Condvar,
    room_async: Notify,
}

impl Queue {
    pub(crate) fn new(path: PathBuf) -> Self {
        let state = Mutex::new(State::default());
        Self { path, state, work: Condvar::new(), room: Condvar::new(), room_async: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under the lock, and the state is whole after every line of it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, state: &State) -> Result<(), StoreError> {
        match &state.failed {
            Some(error) => Err(error.clone()),
            None if state.closed => Err(StoreError::Closed { path: self.path.clone() }),
            None => Ok(()),
        }
    }

    /// The first failure, if there was one.
    pub(crate) fn failure(&self) -> Option<StoreError> {
        self.lock().failed.clone()
    }

    /// Attempts and other records that wait.
    pub(crate) fn len(&self) -> usize {
        self.lock().items.len()
    }

    /// Queues what somebody waits for. Such items are as many as there are waiting callers, so they need no bound.
    pub(crate) fn push_urgent(&self, item: Item) -> Result<(), StoreError> {
        let mut state = self.lock();
        self.check(&state)?;
        state.items.push_back(item);
        state.urgent = true;
        self.work.notify_one();
        Ok(())
    }

    fn push(&self, state: &mut State, key: BurstKey, attempt: AttemptRecord) {
        state.items.push_back(Item::Attempt(key, attempt));
        // The writer sleeps for the first one and for a full batch; between these it need not be woken.
        if state.items.len() == 1 || state.items.len() == BATCH {
            self.work.notify_one();
        }
    }

    /// Queues an attempt if there is room; `Ok(Some)` gives it back when there is none.
    pub(crate) fn try_push(&self, key: BurstKey, attempt: AttemptRecord) -> Result<Option<AttemptRecord>, StoreError> {
        let mut state = self.lock();
        self.check(&state)?;
        if state.items.len() >= QUEUE_LIMIT {
            return Ok(Some(attempt));
        }
        self.push(&mut state, key, attempt);
        Ok(None)
    }

    /// Queues an attempt, waiting for room without holding the thread.
    pub(crate) async fn push_async(&self, key: BurstKey, mut attempt: AttemptRecord) -> Result<(), StoreError> {
        loop {
            // Made before looking, so that room made in between is not missed.
            let room = self.room_async.notified();
            match self.try_push(key, attempt)? {
                None => return Ok(()),
                Some(back) => attempt = back,
            }
            room.await;
        }
    }

    /// Queues an attempt, holding the thread until there is room.
    pub(crate) fn push_blocking(&self, key: BurstKey, attempt: AttemptRecord) -> Result<(), StoreError> {
        let mut state = self.lock();
        loop {
            self.check(&state)?;
            if state.items.len() < QUEUE_LIMIT {
                self.push(&mut state, key, attempt);
                return Ok(());
            }
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// No more records; what is queued is still written.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.wake_all();
    }

    /// The end of writing: later records are refused with this error, waiting callers hear it now.
    pub(crate) fn fail(&self, error: &StoreError) {
        let items = {
            let mut state = self.lock();
            state.failed.get_or_insert_with(|| error.clone());
            mem::take(&mut state.items)
        };
        self.wake_all();
        for item in items {
            item.refuse(error);
        }
    }

    fn wake_all(&self) {
        self.work.notify_all();
        self.room.notify_all();
        self.room_async.notify_waiters();
    }

    /// Waits for work and swaps it into `batch`, which is empty. `false`: closed and nothing left.
    pub(crate) fn take(&self, batch: &mut VecDeque<Item>) -> bool {
        let mut state = self.lock();
        while state.items.is_empty() {
            if state.closed {
                return false;
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let until = Instant::now() + GATHER;
        while !state.urgent && !state.closed && state.items.len() < BATCH {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.work.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        mem::swap(&mut state.items, batch);
        state.urgent = false;
        drop(state);
        self.room.notify_all();
        self.room_async.notify_waiters();
        true
    }
}
