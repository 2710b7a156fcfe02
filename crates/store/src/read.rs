//! Reading: what was measured, as records again. A reader sees whole transactions only, also beside a writer.

use std::path::{Path, PathBuf};

use peaklane_core::attempt::AttemptRecord;
use peaklane_core::burst::{AttemptFigures, BurstEnd, BurstHeader, BurstState};
use rusqlite::{Connection, OptionalExtension, Row, ToSql};

use crate::error::StoreError;
use crate::format::{MIGRATIONS, full_path, open_to_read};
use crate::rows::{
    ATTEMPT_COLUMNS, BURST_COLUMNS, END_COLUMNS, FIGURE_COLUMNS, TRY_COLUMNS, attempt_of, burst_of, end_of, figures_of,
    try_of,
};

/// A store opened for reading.
#[derive(Debug)]
pub struct StoreReader {
    conn: Connection,
    path: PathBuf,
}

/// Which bursts to list; what is `None` does not narrow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BurstFilter {
    /// Name of the lane.
    pub lane: Option<String>,
    /// Name of the task class.
    pub task: Option<String>,
    /// Id of the run.
    pub run: Option<String>,
    /// Begun at this moment or later, microseconds since the Unix epoch (UTC).
    pub since_unix_us: Option<i64>,
    /// Simulated lanes, or real ones.
    pub simulated: Option<bool>,
}

/// A burst as the store has it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredBurst {
    /// What it was.
    pub header: BurstHeader,
    /// How it ended; `None` while it is under way, and for ever when it was killed.
    pub end: Option<BurstEnd>,
}

impl StoredBurst {
    /// How it stands: without an end it is [`BurstState::Running`].
    pub fn state(&self) -> BurstState {
        self.end.as_ref().map_or(BurstState::Running, |e| e.state)
    }
}

impl StoreReader {
    /// Opens the store at `path`. Makes no file, waits for no writer, works in folders and on media that cannot be
    /// written.
    ///
    /// # Errors
    /// [`StoreError`] when there is no file, when it is no store of ours, or when its format is newer.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let path = full_path(path)?;
        let conn = open_to_read(&path, MIGRATIONS)?;
        Ok(Self { conn, path })
    }

    /// The absolute path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bursts that pass the filter, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when the file cannot be read or holds words that no version writes.
    pub fn bursts(&self, filter: &BurstFilter) -> Result<Vec<StoredBurst>, StoreError> {
        let mut wheres = Vec::new();
        let mut values: Vec<&dyn ToSql> = Vec::new();
        let mut narrow = |sql: &'static str, value| {
            wheres.push(sql);
            values.push(value);
        };
        if let Some(lane) = &filter.lane {
            narrow("lane = ?", lane);
        }
        if let Some(task) = &filter.task {
            narrow("task = ?", task);
        }
        if let Some(run) = &filter.run {
            narrow("run = ?", run);
        }
        if let Some(since) = &filter.since_unix_us {
            narrow("started_unix_us >= ?", since);
        }
        if let Some(simulated) = &filter.simulated {
            narrow("simulated = ?", simulated);
        }
        let wheres = if wheres.is_empty() { String::new() } else { format!("WHERE {}", wheres.join(" AND ")) };
        let columns = [BURST_COLUMNS.as_slice(), END_COLUMNS.as_slice()].concat().join(", ");
        let sql = format!("SELECT {columns} FROM bursts {wheres} ORDER BY started_unix_us, burst");
        self.all(&sql, values.as_slice(), |row| {
            Ok(StoredBurst { header: burst_of(row, 0)?, end: end_of(row, BURST_COLUMNS.len())? })
        })
    }

    /// One burst by its id; `None` when there is none.
    ///
    /// # Errors
    /// As [`Self::bursts`].
    pub fn burst(&self, id: &str) -> Result<Option<StoredBurst>, StoreError> {
        let columns = [BURST_COLUMNS.as_slice(), END_COLUMNS.as_slice()].concat().join(", ");
        let sql = format!("SELECT {columns} FROM bursts WHERE id = ?");
        let found = self.all(&sql, &[&id], |row| {
            Ok(StoredBurst { header: burst_of(row, 0)?, end: end_of(row, BURST_COLUMNS.len())? })
        })?;
        Ok(found.into_iter().next())
    }

    /// What a summary needs of each attempt of a burst, in order, warm-up excluded. Empty for an unknown id.
    ///
    /// # Errors
    /// As [`Self::bursts`].
    pub fn figures(&self, id: &str) -> Result<Vec<AttemptFigures>, StoreError> {
        let columns = FIGURE_COLUMNS.join(", ");
        let sql = format!(
            "SELECT {columns} FROM attempts WHERE burst = (SELECT burst FROM bursts WHERE id = ?) AND warmup = 0 ORDER BY attempt"
        );
        self.all(&sql, &[&id], figures_of)
    }

    /// All attempts of a burst with their tries, warm-up last. Empty for an unknown id.
    ///
    /// # Errors
    /// As [`Self::bursts`].
    pub fn attempts(&self, id: &str) -> Result<Vec<AttemptRecord>, StoreError> {
        // Both reads in one transaction: a writer may commit in between.
        let failed = |e| StoreError::sqlite(&self.path, "read", e);
        let both = self.conn.unchecked_transaction().map_err(failed)?;
        let order = "WHERE burst = (SELECT burst FROM bursts WHERE id = ?) ORDER BY warmup, attempt";
        let sql = format!("SELECT {} FROM attempts {order}", ATTEMPT_COLUMNS.join(", "));
        let mut attempts = self.all(&sql, &[&id], attempt_of)?;
        let sql = format!("SELECT {} FROM tries {order}, try", TRY_COLUMNS.join(", "));
        let tries = self.all(&sql, &[&id], |row| Ok(((row.get(1)?, row.get(2)?), try_of(row)?)))?;
        drop(both);
        let mut at = 0;
        for ((warmup, index), one) in tries {
            while attempts.get(at).is_some_and(|a| (a.warmup, a.index) != (warmup, index)) {
                at += 1;
            }
            match attempts.get_mut(at) {
                Some(attempt) => attempt.tries.push(one),
                None => {
                    let what = format!("burst `{id}` has a try of attempt {index}, which is not there");
                    return Err(StoreError::Damaged { path: self.path.clone(), what });
                }
            }
        }
        Ok(attempts)
    }

    /// The run whose last burst began last; `None` in a store without bursts.
    ///
    /// # Errors
    /// As [`Self::bursts`].
    pub fn latest_run(&self) -> Result<Option<String>, StoreError> {
        let sql = "SELECT run FROM bursts ORDER BY started_unix_us DESC, burst DESC LIMIT 1";
        self.conn.query_row(sql, [], |row| row.get(0)).optional().map_err(|e| StoreError::sqlite(&self.path, "read", e))
    }

    /// Hands over each row.
    pub(crate) fn each(
        &self,
        sql: &str,
        values: &[&dyn ToSql],
        mut one: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        let mut read = || {
            let mut statement = self.conn.prepare_cached(sql)?;
            let mut rows = statement.query(values)?;
            while let Some(row) = rows.next()? {
                one(row)?;
            }
            Ok(())
        };
        read().map_err(|e| match e {
            e @ (rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)) => {
                StoreError::Damaged { path: self.path.clone(), what: e.to_string() }
            }
            e => StoreError::sqlite(&self.path, "read", e),
        })
    }

    fn all<T>(
        &self,
        sql: &str,
        values: &[&dyn ToSql],
        one: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let mut all = Vec::new();
        self.each(sql, values, |row| {
            all.push(one(row)?);
            Ok(())
        })?;
        Ok(all)
    }
}
