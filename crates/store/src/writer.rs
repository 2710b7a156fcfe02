//! The one thread that writes: a batch is one transaction, and whoever waits hears of it after the commit.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use peaklane_core::attempt::AttemptRecord;
use peaklane_core::burst::{BurstEnd, BurstHeader};
use rusqlite::{Connection, ErrorCode, Statement};

use crate::error::StoreError;
use crate::format::FileId;
use crate::queue::{Answer, BurstKey, Item, Queue};
use crate::rows::{
    ATTEMPT_COLUMNS, BURST_COLUMNS, END_COLUMNS, Put, TRY_COLUMNS, TryKey, insert_sql, put_attempt, put_burst, put_end,
    put_try,
};

/// The lock is left alone for this long between two transactions, so that another process, which looks every
/// millisecond, gets its turn.
const DOOR: Duration = Duration::from_millis(2);

/// Statements prepared once; they borrow the connection that the thread owns.
struct Statements<'c> {
    begin: Statement<'c>,
    commit: Statement<'c>,
    rollback: Statement<'c>,
    run: Statement<'c>,
    burst: Statement<'c>,
    attempt: Statement<'c>,
    one_try: Statement<'c>,
    end: Statement<'c>,
}

impl<'c> Statements<'c> {
    fn prepare(conn: &'c Connection) -> rusqlite::Result<Self> {
        let set = END_COLUMNS.map(|c| format!("{c} = ?")).join(", ");
        Ok(Self {
            begin: conn.prepare("BEGIN IMMEDIATE")?,
            commit: conn.prepare("COMMIT")?,
            rollback: conn.prepare("ROLLBACK")?,
            run: conn.prepare(
                "INSERT INTO runs (run, started_unix_us, tool_version) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            )?,
            burst: conn.prepare(&insert_sql("bursts", &BURST_COLUMNS))?,
            attempt: conn.prepare(&insert_sql("attempts", &ATTEMPT_COLUMNS))?,
            one_try: conn.prepare(&insert_sql("tries", &TRY_COLUMNS))?,
            end: conn.prepare(&format!("UPDATE bursts SET {set} WHERE burst = ? AND duration_us IS NULL"))?,
        })
    }

    fn begin_burst(&mut self, conn: &Connection, header: &BurstHeader) -> rusqlite::Result<BurstKey> {
        self.run.execute((&header.run, header.started_unix_us, &header.tool_version))?;
        let mut put = Put::new(&mut self.burst);
        put_burst(&mut put, header)?;
        put.run()?;
        Ok(BurstKey(conn.last_insert_rowid()))
    }

    fn attempt(&mut self, key: BurstKey, attempt: &AttemptRecord) -> rusqlite::Result<()> {
        let mut put = Put::new(&mut self.attempt);
        put_attempt(&mut put, key.0, attempt)?;
        put.run()?;
        for (number, one) in attempt.tries.iter().enumerate() {
            let key = TryKey { burst: key.0, warmup: attempt.warmup, attempt: attempt.index, number };
            let mut put = Put::new(&mut self.one_try);
            put_try(&mut put, key, one)?;
            put.run()?;
        }
        Ok(())
    }

    /// How many bursts were ended: 1, or 0 when there is none or it was ended before.
    fn end_burst(&mut self, key: BurstKey, end: &BurstEnd) -> rusqlite::Result<usize> {
        let mut put = Put::new(&mut self.end);
        put_end(&mut put, end)?;
        put.value(key.0)?.run()
    }
}

/// Somebody who waits, and what will be said after the commit.
enum Waiting {
    Key(Answer<BurstKey>, Result<BurstKey, StoreError>),
    Done(Answer<()>, Result<(), StoreError>),
}

impl Waiting {
    fn tell(self, failed: Option<&StoreError>) {
        // A caller that has gone away needs no answer.
        match (self, failed) {
            (Self::Key(answer, said), None) => drop(answer.send(said)),
            (Self::Done(answer, said), None) => drop(answer.send(said)),
            (Self::Key(answer, _), Some(error)) => drop(answer.send(Err(error.clone()))),
            (Self::Done(answer, _), Some(error)) => drop(answer.send(Err(error.clone()))),
        }
    }
}

/// Tells everybody that the thread is gone, should it ever panic: nobody waits for an answer that cannot come.
struct Guard(Arc<Queue>);

impl Drop for Guard {
    fn drop(&mut self) {
        if thread::panicking() {
            let what = "the writer thread panicked".to_owned();
            self.0.fail(&StoreError::Bug { path: self.0.path.clone(), what });
        }
    }
}

/// Starts the writer on its own thread; it ends when the queue is closed and empty.
pub(crate) fn start(queue: Arc<Queue>, conn: Connection, file: FileId) -> std::io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name("peaklane-store".to_owned()).spawn(move || {
        let guard = Guard(queue);
        if let Err(error) = write_all(&guard.0, &conn, file) {
            guard.0.fail(&error);
        }
    })
}

fn write_all(queue: &Queue, conn: &Connection, file: FileId) -> Result<(), StoreError> {
    let mut statements = Statements::prepare(conn).map_err(|e| StoreError::sqlite(&queue.path, "write", e))?;
    let mut batch = VecDeque::new();
    let mut last: Option<Instant> = None;
    while queue.take(&mut batch) {
        if let Some(rest) = last.and_then(|at| DOOR.checked_sub(at.elapsed())) {
            thread::sleep(rest);
        }
        let mut waiting = Vec::new();
        let mut bug = None;
        let written = write_batch(queue, conn, file, &mut statements, &mut batch, &mut waiting, &mut bug);
        last = Some(Instant::now());
        if let Err(error) = written {
            // Told to the queue first: who hears of the failure and tries again must be refused, not queued.
            queue.fail(&error);
            waiting.into_iter().for_each(|w| w.tell(Some(&error)));
            batch.drain(..).for_each(|item| item.refuse(&error));
            return Err(error);
        }
        if let Some(error) = bug {
            queue.fail(&error);
            waiting.into_iter().for_each(|w| w.tell(Some(&error)));
            return Err(error);
        }
        waiting.into_iter().for_each(|w| w.tell(None));
    }
    Ok(())
}

/// One transaction. What breaks a promise of the schema is left out and told as a bug, the rest of the batch is kept;
/// any other error undoes the batch.
fn write_batch(
    queue: &Queue,
    conn: &Connection,
    file: FileId,
    statements: &mut Statements<'_>,
    batch: &mut VecDeque<Item>,
    waiting: &mut Vec<Waiting>,
    bug: &mut Option<StoreError>,
) -> Result<(), StoreError> {
    let path = &queue.path;
    let failed = |e| StoreError::sqlite(path, "write", e);
    if FileId::of(path) != Some(file) {
        return Err(StoreError::Gone { path: path.clone() });
    }
    statements.begin.raw_execute().map_err(failed)?;
    let done = (|| {
        while let Some(item) = batch.pop_front() {
            match item {
                Item::Begin(header, answer) => {
                    let said = match statements.begin_burst(conn, &header) {
                        Ok(key) => Ok(key),
                        Err(e) if broken_promise(&e) => Err(a_bug(queue, format!("burst `{}`: {e}", header.id))),
                        Err(e) => {
                            waiting.push(Waiting::Key(answer, Ok(BurstKey(0))));
                            return Err(failed(e));
                        }
                    };
                    waiting.push(Waiting::Key(answer, said));
                }
                Item::Attempt(key, attempt) => match statements.attempt(key, &attempt) {
                    Ok(()) => {}
                    Err(e) if broken_promise(&e) => {
                        let warmup = if attempt.warmup { "warm-up " } else { "" };
                        let what = format!("{warmup}attempt {} of burst {}: {e}", attempt.index, key.0);
                        bug.get_or_insert_with(|| a_bug(queue, what));
                    }
                    Err(e) => return Err(failed(e)),
                },
                Item::End(key, end, answer) => {
                    let said = match statements.end_burst(key, &end) {
                        Ok(1) => Ok(()),
                        Ok(_) => Err(a_bug(queue, format!("burst {} was ended twice or never begun", key.0))),
                        Err(e) => {
                            waiting.push(Waiting::Done(answer, Ok(())));
                            return Err(failed(e));
                        }
                    };
                    waiting.push(Waiting::Done(answer, said));
                }
                Item::Flush(answer) => waiting.push(Waiting::Done(answer, Ok(()))),
            }
        }
        statements.commit.raw_execute().map_err(failed)
    })();
    if done.is_err() {
        // SQLite may have rolled back by itself (a full disk): the first error is the one to tell.
        let _ = statements.rollback.raw_execute();
    }
    done.map(|_| ())
}

fn broken_promise(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}

fn a_bug(queue: &Queue, what: String) -> StoreError {
    StoreError::Bug { path: queue.path.clone(), what }
}
