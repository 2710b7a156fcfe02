//! What is planned and decided: campaigns, the slots of their plans, events, documents.
//!
//! A [`Ledger`] has a connection of its own, so that a claim is on disk when the call returns and two processes agree on
//! who has it. Measurements go through [`crate::Store`]; both may be open on one file at once.
//!
//! Nothing here reads a clock: moments are arguments, microseconds since the Unix epoch (UTC).

mod purge;
mod slots;
mod spent;

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Row, ToSql};
use serde::Serialize;

pub use purge::{DocumentName, LosesEvidence, PurgeBound, Purged};
pub use slots::{Claim, SlotKey, SlotRow, SlotState};
pub use spent::SpentRow;

use crate::error::StoreError;
use crate::format::{BUSY_LIMIT, MIGRATIONS, full_path, open_to_read, open_to_write};

/// A campaign as the store has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CampaignRow {
    /// Id: a hash of what was locked.
    pub id: String,
    /// Name of the site, where the configuration has several.
    pub site: Option<String>,
    /// When it was begun for the first time.
    pub started_unix_us: i64,
    /// Version of peaklane that began it.
    pub tool_version: String,
    /// What was locked, JSON.
    pub locked: String,
    /// When and why it was stopped; `None` while it goes on.
    pub stopped: Option<(i64, String)>,
}

/// Something that happened and is no measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EventRow {
    /// When.
    pub unix_us: i64,
    /// Campaign, lane and task class that it concerns.
    pub campaign: Option<String>,
    /// Name of the lane.
    pub lane: Option<String>,
    /// Name of the task class.
    pub task: Option<String>,
    /// A stable word: `model_changed`, `budget_stop`.
    pub kind: String,
    /// JSON object.
    pub detail: String,
}

/// A document: a decision record, a counter-test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DocumentRow {
    /// Id, unique over all kinds.
    pub id: String,
    /// `decision`, `countertest`.
    pub kind: String,
    /// When it was made.
    pub created_unix_us: i64,
    /// JSON.
    pub body: String,
}

/// What answers of one burst called themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AnsweredBy {
    /// `model` of the answer.
    pub model: Option<String>,
    /// `system_fingerprint` of the answer.
    pub system_fingerprint: Option<String>,
    /// How many tries were answered so.
    pub tries: u32,
}

/// The store opened for planning and deciding.
#[derive(Debug)]
pub struct Ledger {
    conn: Connection,
    path: PathBuf,
}

impl Ledger {
    /// Opens the store at `path`, makes it when there is none, and brings it to format [`crate::FORMAT`].
    ///
    /// # Errors
    /// As [`crate::Store::open`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let path = full_path(path)?;
        let conn = open_to_write(&path, MIGRATIONS, BUSY_LIMIT)?;
        Ok(Self { conn, path })
    }

    /// Opens it for reading alone: what changes it is refused.
    ///
    /// # Errors
    /// As [`crate::StoreReader::open`].
    pub fn open_to_read(path: &Path) -> Result<Self, StoreError> {
        let path = full_path(path)?;
        let conn = open_to_read(&path, MIGRATIONS)?;
        Ok(Self { conn, path })
    }

    /// The absolute path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins a campaign, or finds it begun: the row that stands, and whether it is new. `stopped` of the given row is not
    /// looked at; a campaign that was stopped stays so.
    ///
    /// # Errors
    /// [`StoreError`] as SQLite refuses.
    pub fn begin_campaign(&self, row: &CampaignRow) -> Result<(CampaignRow, bool), StoreError> {
        let sql = "INSERT INTO campaigns (campaign, site, started_unix_us, tool_version, locked) VALUES (?, ?, ?, ?, ?) \
                   ON CONFLICT DO NOTHING";
        let new = self.change(sql, &[&row.id, &row.site, &row.started_unix_us, &row.tool_version, &row.locked])? == 1;
        let found = self.campaign(&row.id)?;
        let gone = || StoreError::Damaged { path: self.path.clone(), what: format!("campaign `{}` vanished", row.id) };
        Ok((found.ok_or_else(gone)?, new))
    }

    /// One campaign by its id.
    ///
    /// # Errors
    /// [`StoreError`] as SQLite refuses.
    pub fn campaign(&self, id: &str) -> Result<Option<CampaignRow>, StoreError> {
        Ok(self.campaigns()?.into_iter().find(|row| row.id == id))
    }

    /// All campaigns, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] as SQLite refuses.
    pub fn campaigns(&self) -> Result<Vec<CampaignRow>, StoreError> {
        let sql = "SELECT campaign, site, started_unix_us, tool_version, locked, stopped_unix_us, stopped_why \
                   FROM campaigns ORDER BY started_unix_us, campaign";
        self.all(sql, &[], |row| {
            let stopped = row.get::<_, Option<i64>>(5)?.zip(row.get::<_, Option<String>>(6)?);
            Ok(CampaignRow {
                id: row.get(0)?,
                site: row.get(1)?,
                started_unix_us: row.get(2)?,
                tool_version: row.get(3)?,
                locked: row.get(4)?,
                stopped,
            })
        })
    }

    /// Stops a campaign for good; one that was stopped before keeps its first reason.
    ///
    /// # Errors
    /// [`StoreError`] as SQLite refuses.
    pub fn stop_campaign(&self, id: &str, now_unix_us: i64, why: &str) -> Result<bool, StoreError> {
        let sql =
            "UPDATE campaigns SET stopped_unix_us = ?, stopped_why = ? WHERE campaign = ? AND stopped_unix_us IS NULL";
        Ok(self.change(sql, &[&now_unix_us, &why, &id])? == 1)
    }

    /// Records an event.
    ///
    /// # Errors
    /// [`StoreError`] as SQLite refuses.
    pub fn event(&self, event: &EventRow) -> Result<(), StoreError> {
        let sql = "INSERT INTO events (unix_us, campaign, lane, task, kind, detail) VALUES (?, ?, ?, ?, ?, ?)";
        let EventRow { unix_us, campaign, lane, task, kind, detail } = event;
        self.change(sql, &[unix_us, campaign, lane, task, kind, detail]).map(|_| ())
    }

    /// The events since a moment, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] as SQLite refuses.
    pub fn events(&self, since_unix_us: i64) -> Result<Vec<EventRow>, StoreError> {
        let sql =
            "SELECT unix_us, campaign, lane, task, kind, detail FROM events WHERE unix_us >= ? ORDER BY unix_us, event";
        self.all(sql, &[&since_unix_us], |row| {
            Ok(EventRow {
                unix_us: row.get(0)?,
                campaign: row.get(1)?,
                lane: row.get(2)?,
                task: row.get(3)?,
                kind: row.get(4)?,
                detail: row.get(5)?,
            })
        })
    }

    /// Keeps a document; one of the same id gets the new body and keeps its day of birth.
    ///
    /// # Errors
    /// [`StoreError`] as SQLite refuses.
    pub fn put_document(&self, doc: &DocumentRow, now_unix_us: i64) -> Result<(), StoreError> {
        let sql = "INSERT INTO documents (id, kind, created_unix_us, changed_unix_us, body) VALUES (?, ?, ?, ?, ?) \
                   ON CONFLICT (id) DO UPDATE SET body = excluded.body, changed_unix_us = excluded.changed_unix_us";
        self.change(sql, &[&doc.id, &doc.kind, &doc.created_unix_us, &now_unix_us, &doc.body]).map(|_| ())
    }

    /// The documents of a kind, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] as SQLite refuses.
    pub fn documents(&self, kind: &str) -> Result<Vec<DocumentRow>, StoreError> {
        let sql = "SELECT id, kind, created_unix_us, body FROM documents WHERE kind = ? ORDER BY created_unix_us, id";
        self.all(sql, &[&kind], |row| {
            Ok(DocumentRow { id: row.get(0)?, kind: row.get(1)?, created_unix_us: row.get(2)?, body: row.get(3)? })
        })
    }

    /// The `model` and `system_fingerprint` that the answers of a burst named, most frequent first, with how often.
    ///
    /// # Errors
    /// [`StoreError`] as SQLite refuses.
    pub fn answered_by(&self, burst: &str) -> Result<Vec<AnsweredBy>, StoreError> {
        let sql = "SELECT model, system_fingerprint, count(*) FROM tries \
                   WHERE burst = (SELECT burst FROM bursts WHERE id = ?) AND outcome = 'ok' \
                   GROUP BY model, system_fingerprint ORDER BY count(*) DESC, model, system_fingerprint";
        self.all(sql, &[&burst], |row| {
            Ok(AnsweredBy { model: row.get(0)?, system_fingerprint: row.get(1)?, tries: row.get(2)? })
        })
    }

    /// The first row of a question, if there is one.
    fn one<T>(
        &self,
        sql: &str,
        values: &[&dyn ToSql],
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        self.conn.query_row(sql, values, read).optional().map_err(|e| StoreError::sqlite(&self.path, "read", e))
    }

    fn all<T>(
        &self,
        sql: &str,
        values: &[&dyn ToSql],
        one: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let read = || {
            let mut statement = self.conn.prepare_cached(sql)?;
            let rows = statement.query_map(values, |row| one(row))?;
            rows.collect::<rusqlite::Result<Vec<T>>>()
        };
        read().map_err(|e| StoreError::sqlite(&self.path, "read", e))
    }

    fn change(&self, sql: &str, values: &[&dyn ToSql]) -> Result<usize, StoreError> {
        let mut statement = self.conn.prepare_cached(sql).map_err(|e| StoreError::sqlite(&self.path, "write", e))?;
        statement.execute(values).map_err(|e| StoreError::sqlite(&self.path, "write", e))
    }
}
