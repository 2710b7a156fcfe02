//! Calls of harnesses: written in batches by the proxy, read by the summaries.

use std::path::{Path, PathBuf};
use std::time::Duration;

use peaklane_core::call::CallRecord;
use rusqlite::{Connection, ErrorCode, Row, ToSql};
use serde::Serialize;

use crate::error::StoreError;
use crate::format::{FileId, MIGRATIONS, full_path, open_to_write};
use crate::read::StoreReader;
use crate::rows::{CALL_COLUMNS, Put, TEXT_LIMIT_BYTES, call_of, cut, insert_sql, put_call};

/// How long a batch waits for another process's lock. The proxy must not fall behind; what cannot be written now is kept
/// by the caller and tried again.
const PATIENCE: Duration = Duration::from_secs(5);

/// Writes calls. Any number of processes may have one on the same store.
#[derive(Debug)]
pub struct CallWriter {
    conn: Connection,
    path: PathBuf,
    file: FileId,
}

impl CallWriter {
    /// Opens the store at `path`, makes it when there is none, and brings it up to date.
    ///
    /// # Errors
    /// As [`crate::Store::open`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let path = full_path(path)?;
        let conn = open_to_write(&path, MIGRATIONS, PATIENCE)?;
        let file = FileId::of(&path).ok_or_else(|| StoreError::Gone { path: path.clone() })?;
        Ok(Self { conn, path, file })
    }

    /// The absolute path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a batch. All of it is on disk when this returns, or none of it. Messages are cut to
    /// [`TEXT_LIMIT_BYTES`]; texts of answers are never written.
    ///
    /// # Errors
    /// [`StoreError`]: a full disk, a lock held for 5 s, a file that was removed. The same batch may be tried again with the
    /// same writer, except after [`StoreError::Gone`], and after [`StoreError::Bug`]: a call of the batch is there already.
    pub fn append(&mut self, calls: &[CallRecord]) -> Result<(), StoreError> {
        if FileId::of(&self.path) != Some(self.file) {
            return Err(StoreError::Gone { path: self.path.clone() });
        }
        let failed = |e| StoreError::sqlite(&self.path, "write", e);
        // Dropped without a commit it rolls back.
        let whole = self.conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(failed)?;
        {
            let sql = insert_sql("calls", &CALL_COLUMNS);
            let mut statement = whole.prepare_cached(&sql).map_err(failed)?;
            for call in calls {
                let mut put = Put::new(&mut statement);
                if call.record.message.as_ref().is_some_and(|m| m.len() > TEXT_LIMIT_BYTES) {
                    let mut short = call.clone();
                    short.record.message.iter_mut().for_each(|m| cut(m, TEXT_LIMIT_BYTES));
                    put_call(&mut put, &short).map_err(failed)?;
                } else {
                    put_call(&mut put, call).map_err(failed)?;
                }
                put.run().map_err(|e| match e.sqlite_error_code() {
                    Some(ErrorCode::ConstraintViolation) => {
                        StoreError::Bug { path: self.path.clone(), what: format!("call {}: {e}", call.id) }
                    }
                    _ => failed(e),
                })?;
            }
        }
        whole.commit().map_err(failed)
    }
}

/// Which calls; what is `None` or `false` does not narrow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallFilter {
    /// Name of the session.
    pub session: Option<String>,
    /// Names of lanes.
    pub lanes: Vec<String>,
    /// Begun at this moment or later, microseconds since the Unix epoch (UTC).
    pub since_unix_us: Option<i64>,
    /// Only those that got no whole answer.
    pub failed: bool,
    /// Only so many of the newest.
    pub last: Option<u32>,
}

/// A session as the store lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionRow {
    /// Its name.
    pub session: String,
    /// Its calls.
    pub calls: u64,
    /// Begin of the first, microseconds since the Unix epoch (UTC).
    pub started_unix_us: i64,
}

impl CallFilter {
    fn wheres(&self) -> (String, Vec<&dyn ToSql>) {
        let mut wheres: Vec<String> = Vec::new();
        let mut values: Vec<&dyn ToSql> = Vec::new();
        if let Some(session) = &self.session {
            wheres.push("session = ?".into());
            values.push(session);
        }
        if !self.lanes.is_empty() {
            wheres.push(format!("lane IN ({})", vec!["?"; self.lanes.len()].join(", ")));
            values.extend(self.lanes.iter().map(|lane| lane as &dyn ToSql));
        }
        if let Some(since) = &self.since_unix_us {
            wheres.push("started_unix_us >= ?".into());
            values.push(since);
        }
        if self.failed {
            wheres.push("outcome <> 'ok'".into());
        }
        let text = if wheres.is_empty() { String::new() } else { format!("WHERE {}", wheres.join(" AND ")) };
        (text, values)
    }
}

impl StoreReader {
    /// Hands over the calls that pass the filter, oldest first, one at a time: a store may hold millions.
    ///
    /// # Errors
    /// [`StoreError`] when the file cannot be read or holds words that no version writes.
    pub fn calls(&self, filter: &CallFilter, mut each: impl FnMut(CallRecord)) -> Result<(), StoreError> {
        let (wheres, mut values) = filter.wheres();
        let columns = CALL_COLUMNS.join(", ");
        let order = "ORDER BY started_unix_us, call";
        let sql = match &filter.last {
            None => format!("SELECT {columns} FROM calls {wheres} {order}"),
            Some(last) => {
                values.push(last);
                format!(
                    "SELECT {columns} FROM (SELECT * FROM calls {wheres} ORDER BY started_unix_us DESC, call DESC LIMIT ?) {order}"
                )
            }
        };
        self.each(&sql, &values, |row| {
            each(call_of(row)?);
            Ok(())
        })
    }

    /// The sessions with calls that pass the filter, in the order of their begins.
    ///
    /// # Errors
    /// As [`Self::calls`].
    pub fn sessions(&self, filter: &CallFilter) -> Result<Vec<SessionRow>, StoreError> {
        let (wheres, values) = filter.wheres();
        let sql = format!(
            "SELECT session, count(*), min(started_unix_us) FROM calls {wheres} GROUP BY session ORDER BY 3, 1"
        );
        let mut rows = Vec::new();
        self.each(&sql, &values, |row: &Row<'_>| {
            rows.push(SessionRow { session: row.get(0)?, calls: row.get(1)?, started_unix_us: row.get(2)? });
            Ok(())
        })?;
        Ok(rows)
    }
}
