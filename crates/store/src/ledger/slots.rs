//! Planned bursts and who runs them. A slot is claimed before anything is sent and settled when its burst is on record;
//! a claim whose lease ran out was abandoned, and is never claimed again: half a burst is no burst.

use rusqlite::{Row, ToSql};
use serde::Serialize;

use super::Ledger;
use crate::error::StoreError;

/// The name of one planned burst.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct SlotKey {
    /// Id of the campaign.
    pub campaign: String,
    /// Local date, `YYYY-MM-DD`.
    pub date: String,
    /// Local begin of the window, `16:00`.
    pub window: String,
    /// Number within the window, from 0.
    pub nth: u32,
    /// Name of the lane.
    pub lane: String,
    /// Name of the task class.
    pub task: String,
}

/// How a slot stands in the store; the words of [`peaklane_core::window::runtime::Status`] and `running`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlotState {
    /// `running`, `run`, `late`, `missed`, `before_start`, `interrupted`.
    pub state: String,
    /// Why it was missed.
    pub reason: Option<String>,
    /// When its burst began.
    pub started_unix_us: Option<i64>,
    /// Whole seconds of lateness of a late one.
    pub late_s: Option<u32>,
    /// Id of its burst.
    pub burst: Option<String>,
}

/// A slot that was begun or settled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlotRow {
    /// Which one.
    pub key: SlotKey,
    /// When it was due.
    pub due_unix_us: i64,
    /// How it stands.
    pub state: SlotState,
    /// The process that runs it.
    pub holder: Option<String>,
    /// Until when its claim holds; renewed while it runs.
    pub lease_until_unix_us: Option<i64>,
}

/// What came of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is ours: fire.
    Ours,
    /// Another process had it first, or it is over.
    Taken(Box<SlotRow>),
}

const COLUMNS: &str = "campaign, date, \"window\", nth, lane, task, due_unix_us, state, reason, started_unix_us, late_s, \
                       burst, holder, lease_until_unix_us";
const IS: &str = "campaign = ? AND date = ? AND \"window\" = ? AND nth = ? AND lane = ? AND task = ?";

impl SlotKey {
    fn values(&self) -> [&dyn ToSql; 6] {
        [&self.campaign, &self.date, &self.window, &self.nth, &self.lane, &self.task]
    }
}

impl Ledger {
    /// Claims a slot for `holder` until `lease_until_unix_us`. On disk when it returns; of any number of processes that ask
    /// at once, one gets [`Claim::Ours`].
    ///
    /// # Errors
    /// [`StoreError`] as SQLite refuses: then nothing may be sent.
    pub fn claim(
        &self,
        key: &SlotKey,
        due_unix_us: i64,
        started_unix_us: i64,
        holder: &str,
        lease_until_unix_us: i64,
    ) -> Result<Claim, StoreError> {
        let sql = "INSERT INTO slots (campaign, date, \"window\", nth, lane, task, due_unix_us, state, started_unix_us, holder, \
             lease_until_unix_us) VALUES (?, ?, ?, ?, ?, ?, ?, 'running', ?, ?, ?) ON CONFLICT DO NOTHING";
        let mut values = key.values().to_vec();
        values.extend([&due_unix_us as &dyn ToSql, &started_unix_us, &holder, &lease_until_unix_us]);
        if self.change(sql, &values)? == 1 {
            return Ok(Claim::Ours);
        }
        let gone = || StoreError::Damaged { path: self.path.clone(), what: format!("slot {key:?} vanished") };
        Ok(Claim::Taken(Box::new(self.slot(key)?.ok_or_else(gone)?)))
    }

    /// Lengthens the leases of a process.
    ///
    /// # Errors
    /// [`StoreError`] as SQLite refuses.
    pub fn renew(&self, holder: &str, lease_until_unix_us: i64) -> Result<usize, StoreError> {
        let sql = "UPDATE slots SET lease_until_unix_us = ? WHERE holder = ? AND state = 'running'";
        self.change(sql, &[&lease_until_unix_us, &holder])
    }

    /// Records how a slot ended. One that is running is settled by its holder, or by anybody once its lease ran out; one
    /// that is not there yet (missed, before the start) by anybody. What is settled stays settled: `false` then.
    ///
    /// # Errors
    /// [`StoreError`] as SQLite refuses.
    pub fn settle(
        &self,
        key: &SlotKey,
        due_unix_us: i64,
        state: &SlotState,
        holder: &str,
        now_unix_us: i64,
    ) -> Result<bool, StoreError> {
        let sql = "INSERT INTO slots (campaign, date, \"window\", nth, lane, task, due_unix_us, state, reason, \
             started_unix_us, late_s, burst, holder) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
             ON CONFLICT DO UPDATE SET state = excluded.state, reason = excluded.reason, \
             started_unix_us = coalesce(excluded.started_unix_us, started_unix_us), late_s = excluded.late_s, \
             burst = coalesce(excluded.burst, burst), lease_until_unix_us = NULL \
             WHERE slots.state = 'running' AND (slots.holder = excluded.holder OR slots.lease_until_unix_us < ?)";
        let mut values = key.values().to_vec();
        values.extend([&due_unix_us as &dyn ToSql, &state.state, &state.reason, &state.started_unix_us, &state.late_s]);
        values.extend([&state.burst as &dyn ToSql, &holder, &now_unix_us]);
        Ok(self.change(sql, &values)? == 1)
    }

    /// Notes which burst a running slot fired.
    ///
    /// # Errors
    /// [`StoreError`] as SQLite refuses.
    pub fn fired(&self, key: &SlotKey, burst: &str) -> Result<(), StoreError> {
        let sql = format!("UPDATE slots SET burst = ? WHERE {IS}");
        let mut values: Vec<&dyn ToSql> = vec![&burst];
        values.extend(key.values());
        self.change(&sql, &values).map(|_| ())
    }

    /// Takes a claim back of which nothing was sent: the slot is as if it had never been begun. Only its holder can.
    ///
    /// # Errors
    /// [`StoreError`] as SQLite refuses.
    pub fn unclaim(&self, key: &SlotKey, holder: &str) -> Result<bool, StoreError> {
        let sql = format!("DELETE FROM slots WHERE {IS} AND state = 'running' AND holder = ?");
        let mut values = key.values().to_vec();
        values.push(&holder);
        Ok(self.change(&sql, &values)? == 1)
    }

    /// One slot; `None` while nobody began or settled it.
    ///
    /// # Errors
    /// [`StoreError`] as SQLite refuses.
    pub fn slot(&self, key: &SlotKey) -> Result<Option<SlotRow>, StoreError> {
        self.one(&format!("SELECT {COLUMNS} FROM slots WHERE {IS}"), &key.values(), slot_of)
    }

    /// All slots of a campaign that were begun or settled, in the order of their instants.
    ///
    /// # Errors
    /// [`StoreError`] as SQLite refuses.
    pub fn slots(&self, campaign: &str) -> Result<Vec<SlotRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM slots WHERE campaign = ? ORDER BY due_unix_us, lane, task, nth");
        self.all(&sql, &[&campaign], slot_of)
    }
}

fn slot_of(row: &Row<'_>) -> rusqlite::Result<SlotRow> {
    Ok(SlotRow {
        key: SlotKey {
            campaign: row.get(0)?,
            date: row.get(1)?,
            window: row.get(2)?,
            nth: row.get(3)?,
            lane: row.get(4)?,
            task: row.get(5)?,
        },
        due_unix_us: row.get(6)?,
        state: SlotState {
            state: row.get(7)?,
            reason: row.get(8)?,
            started_unix_us: row.get(9)?,
            late_s: row.get(10)?,
            burst: row.get(11)?,
        },
        holder: row.get(12)?,
        lease_until_unix_us: row.get(13)?,
    })
}
