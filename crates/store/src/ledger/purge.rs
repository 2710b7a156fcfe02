//! Removing what is older than a day: measurements, slots, events, calls and documents, all of it or nothing. Calls also by
//! their session.

use std::collections::BTreeSet;

use rusqlite::ToSql;
use serde::Serialize;
use serde_json::Value;

use super::Ledger;
use crate::error::StoreError;

/// Everything before this goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeBound {
    /// Local date, `YYYY-MM-DD`: bursts and slots of earlier dates go, this one stays.
    pub date: String,
    /// Begin of that date, microseconds since the Unix epoch (UTC): for what has no local date of its own.
    pub unix_us: i64,
    /// Bursts without an end that began before this moment were killed and go too. `None` keeps every one of them: it may be
    /// under way.
    pub killed_before_unix_us: Option<i64>,
}

/// What a purge removed, or would remove.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Purged {
    /// Bursts.
    pub bursts: u64,
    /// Their attempts, warm-up included.
    pub attempts: u64,
    /// Their tries, which hold the texts.
    pub tries: u64,
    /// Slots of plans.
    pub slots: u64,
    /// Campaigns of which no slot and no burst is left.
    pub campaigns: u64,
    /// Events.
    pub events: u64,
    /// Calls of harnesses.
    pub calls: u64,
    /// Documents, by kind and id.
    pub documents: Vec<DocumentName>,
    /// Older bursts that were kept, since they have no end: under way, or killed.
    pub unfinished_bursts_kept: u64,
    /// Documents that stay and name bursts that went.
    pub documents_losing_evidence: Vec<LosesEvidence>,
}

/// One document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DocumentName {
    /// Id.
    pub id: String,
    /// `decision`, `countertest`.
    pub kind: String,
}

/// A document that stays although what it rests on went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LosesEvidence {
    /// Id.
    pub id: String,
    /// `decision`, `countertest`.
    pub kind: String,
    /// Bursts that it names and that went.
    pub bursts: u64,
}

impl Purged {
    /// True when there is nothing to remove.
    pub fn is_empty(&self) -> bool {
        let Self { bursts, attempts, tries, slots, campaigns, events, calls, .. } = self;
        [bursts, attempts, tries, slots, campaigns, events, calls].iter().all(|n| **n == 0) && self.documents.is_empty()
    }
}

/// `?1` is the date, `?2` its begin, `?3` the moment before which an unfinished burst was killed (0: none was).
const OLD: &str = "(date < ?1 OR (date IS NULL AND started_unix_us < ?2))";
const ENDED: &str = "(state <> 'running' OR started_unix_us < ?3)";
/// A slot that runs is never removed, nor one whose burst stays for lack of an end.
const OLD_SLOT: &str = "(date < ?1 AND state <> 'running' AND (burst IS NULL OR burst NOT IN \
                        (SELECT id FROM bursts WHERE state = 'running' AND started_unix_us >= ?3)))";

impl Ledger {
    /// Counts what [`Self::purge`] would remove; changes nothing.
    ///
    /// # Errors
    /// [`StoreError`] as SQLite refuses.
    pub fn would_purge(&self, bound: &PurgeBound) -> Result<Purged, StoreError> {
        let whole = self.conn.unchecked_transaction().map_err(|e| StoreError::sqlite(&self.path, "read", e))?;
        let counted = self.counted(bound).map(|(purged, _)| purged);
        drop(whole);
        counted
    }

    /// Removes everything before the bound in one transaction, and says what it was. [`Self::compact`] gives the room back.
    ///
    /// # Errors
    /// [`StoreError`] as SQLite refuses: then nothing was removed.
    pub fn purge(&self, bound: &PurgeBound) -> Result<Purged, StoreError> {
        let failed = |e| StoreError::sqlite(&self.path, "write", e);
        // The lock comes first, so that what is counted is what is removed.
        self.conn.execute_batch("BEGIN IMMEDIATE").map_err(failed)?;
        let done = self.remove(bound).and_then(|purged| {
            self.conn.execute_batch("COMMIT").map_err(failed)?;
            Ok(purged)
        });
        if done.is_err() {
            // The first error is the one to tell; SQLite may have rolled back by itself.
            let _ = self.conn.execute_batch("ROLLBACK");
        }
        done
    }

    /// Counts the calls of a session that [`Self::purge_session`] would remove; changes nothing.
    ///
    /// # Errors
    /// [`StoreError`] as SQLite refuses.
    pub fn would_purge_session(&self, session: &str) -> Result<Purged, StoreError> {
        let calls = self.one("SELECT count(*) FROM calls WHERE session = ?", &[&session], |row| row.get(0))?;
        Ok(Purged { calls: calls.unwrap_or_default(), ..Purged::default() })
    }

    /// Removes the calls of a session, whichever proxy recorded them, and says how many they were. [`Self::compact`] gives the
    /// room back.
    ///
    /// # Errors
    /// [`StoreError`] as SQLite refuses: then nothing was removed.
    pub fn purge_session(&self, session: &str) -> Result<Purged, StoreError> {
        let calls = self.change("DELETE FROM calls WHERE session = ?", &[&session])?;
        Ok(Purged { calls: calls as u64, ..Purged::default() })
    }

    /// Writes the file anew without what was removed, and empties the log: only then are the bytes gone.
    ///
    /// # Errors
    /// [`StoreError::Busy`] while another process reads or writes, [`StoreError::Full`] without room for a copy.
    pub fn compact(&self) -> Result<(), StoreError> {
        let failed = |e| StoreError::sqlite(&self.path, "compact", e);
        self.conn.execute_batch("VACUUM").map_err(failed)?;
        let busy: i64 = self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).map_err(failed)?;
        if busy != 0 {
            let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
            return Err(failed(rusqlite::Error::SqliteFailure(code, None)));
        }
        Ok(())
    }

    fn remove(&self, bound: &PurgeBound) -> Result<Purged, StoreError> {
        let (purged, campaigns) = self.counted(bound)?;
        let values = values(bound);
        let doomed = format!("burst IN (SELECT burst FROM bursts WHERE {OLD} AND {ENDED})");
        for sql in [
            format!("DELETE FROM tries WHERE {doomed}"),
            format!("DELETE FROM attempts WHERE {doomed}"),
            // Before the bursts: it asks which of them stay.
            format!("DELETE FROM slots WHERE {OLD_SLOT}"),
            format!("DELETE FROM bursts WHERE {OLD} AND {ENDED}"),
        ] {
            self.change_named(&sql, &values)?;
        }
        self.change("DELETE FROM runs WHERE run NOT IN (SELECT run FROM bursts)", &[])?;
        for campaign in &campaigns {
            self.change("DELETE FROM campaigns WHERE campaign = ?", &[campaign])?;
        }
        self.change("DELETE FROM events WHERE unix_us < ?", &[&bound.unix_us])?;
        self.change("DELETE FROM calls WHERE started_unix_us < ?", &[&bound.unix_us])?;
        self.change("DELETE FROM documents WHERE created_unix_us < ?", &[&bound.unix_us])?;
        Ok(purged)
    }

    /// What goes, and the ids of the campaigns among it.
    fn counted(&self, bound: &PurgeBound) -> Result<(Purged, Vec<String>), StoreError> {
        let values = values(bound);
        let count = |sql: String| self.one_named(&sql, &values);
        let doomed = format!("burst IN (SELECT burst FROM bursts WHERE {OLD} AND {ENDED})");
        let bursts = self.texts(&format!("SELECT id FROM bursts WHERE {OLD} AND {ENDED}"), &values)?;
        let campaigns = self.texts(
            &format!(
                "SELECT campaign FROM campaigns c WHERE started_unix_us < ?2 \
                 AND (EXISTS (SELECT 1 FROM bursts WHERE campaign = c.campaign AND {OLD} AND {ENDED}) \
                      OR EXISTS (SELECT 1 FROM slots WHERE campaign = c.campaign AND {OLD_SLOT})) \
                 AND NOT EXISTS (SELECT 1 FROM bursts WHERE campaign = c.campaign AND NOT ({OLD} AND {ENDED})) \
                 AND NOT EXISTS (SELECT 1 FROM slots WHERE campaign = c.campaign AND NOT {OLD_SLOT})"
            ),
            &values,
        )?;
        let documents = "SELECT id, kind, created_unix_us, body FROM documents ORDER BY created_unix_us, id";
        let documents: Vec<(DocumentName, i64, String)> = self.all(documents, &[], |row| {
            Ok((DocumentName { id: row.get(0)?, kind: row.get(1)? }, row.get(2)?, row.get(3)?))
        })?;
        let gone: BTreeSet<&str> = bursts.iter().map(String::as_str).collect();
        let (mut removed, mut losing) = (Vec::new(), Vec::new());
        for (name, created_unix_us, body) in documents {
            if created_unix_us < bound.unix_us {
                removed.push(name);
                continue;
            }
            let lost = named_in(&body, &gone);
            if lost > 0 {
                losing.push(LosesEvidence { id: name.id, kind: name.kind, bursts: lost });
            }
        }
        let purged = Purged {
            bursts: bursts.len() as u64,
            attempts: count(format!("SELECT count(*) FROM attempts WHERE {doomed}"))?,
            tries: count(format!("SELECT count(*) FROM tries WHERE {doomed}"))?,
            slots: count(format!("SELECT count(*) FROM slots WHERE {OLD_SLOT}"))?,
            campaigns: campaigns.len() as u64,
            events: count("SELECT count(*) FROM events WHERE unix_us < ?2".to_owned())?,
            calls: count("SELECT count(*) FROM calls WHERE started_unix_us < ?2".to_owned())?,
            documents: removed,
            unfinished_bursts_kept: count(format!("SELECT count(*) FROM bursts WHERE {OLD} AND NOT {ENDED}"))?,
            documents_losing_evidence: losing,
        };
        Ok((purged, campaigns))
    }

    /// Binds those of the three values that the text uses.
    fn change_named(&self, sql: &str, values: &[&dyn ToSql; 3]) -> Result<usize, StoreError> {
        self.change(sql, used(sql, values))
    }

    fn one_named(&self, sql: &str, values: &[&dyn ToSql; 3]) -> Result<u64, StoreError> {
        Ok(self.one(sql, used(sql, values), |row| row.get(0))?.unwrap_or_default())
    }

    fn texts(&self, sql: &str, values: &[&dyn ToSql; 3]) -> Result<Vec<String>, StoreError> {
        self.all(sql, used(sql, values), |row| row.get(0))
    }
}

fn values(bound: &PurgeBound) -> [&dyn ToSql; 3] {
    // Nothing began before this: then no burst counts as killed.
    const NEVER: &i64 = &i64::MIN;
    [&bound.date, &bound.unix_us, bound.killed_before_unix_us.as_ref().unwrap_or(NEVER)]
}

/// SQLite wants as many values as the highest number in the text.
fn used<'v, 's>(sql: &str, values: &'v [&'s dyn ToSql; 3]) -> &'v [&'s dyn ToSql] {
    let highest = (1..=3).rev().find(|number| sql.contains(&format!("?{number}"))).unwrap_or(0);
    &values[..highest]
}

/// How many of these ids stand in a JSON document, wherever: each kind of document has a form of its own.
fn named_in(body: &str, ids: &BTreeSet<&str>) -> u64 {
    fn walk<'a>(value: &'a Value, ids: &BTreeSet<&str>, found: &mut BTreeSet<&'a str>) {
        match value {
            Value::String(text) if ids.contains(text.as_str()) => drop(found.insert(text)),
            Value::Array(items) => items.iter().for_each(|item| walk(item, ids, found)),
            Value::Object(map) => map.values().for_each(|item| walk(item, ids, found)),
            _ => {}
        }
    }
    let Ok(value) = serde_json::from_str::<Value>(body) else { return 0 };
    let mut found = BTreeSet::new();
    walk(&value, ids, &mut found);
    found.len() as u64
}
