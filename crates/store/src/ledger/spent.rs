//! What the bursts of a campaign used up, and how a burst stands: what budgets and restarts ask.

use serde::Serialize;

use super::Ledger;
use crate::error::StoreError;

/// What one burst of a campaign used up, warm-ups and retries included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpentRow {
    /// Id of the burst.
    pub burst: String,
    /// Name of the lane.
    pub lane: String,
    /// Name of the task class.
    pub task: String,
    /// When it began.
    pub started_unix_us: i64,
    /// Requests: tries made.
    pub requests: u64,
    /// Prompt tokens that no cache served, as reported.
    pub input_tokens: u64,
    /// Prompt tokens read from the cache, as reported.
    pub cached_tokens: u64,
    /// Generated tokens, reasoning included, as reported.
    pub output_tokens: u64,
    /// Answers that reported no tokens.
    pub unreported: u64,
}

impl Ledger {
    /// What each burst of a campaign used up so far, oldest first. A burst that is under way counts with what is on disk.
    ///
    /// # Errors
    /// [`StoreError`] as SQLite refuses.
    pub fn spent(&self, campaign: &str) -> Result<Vec<SpentRow>, StoreError> {
        let sql = "SELECT b.id, b.lane, b.task, b.started_unix_us, count(t.try), \
                   coalesce(sum(max(coalesce(t.prompt_tokens, 0) - coalesce(t.cached_tokens, 0), 0)), 0), \
                   coalesce(sum(t.cached_tokens), 0), coalesce(sum(t.completion_tokens), 0), \
                   count(*) FILTER (WHERE t.outcome = 'ok' AND t.completion_tokens IS NULL) \
                   FROM bursts b LEFT JOIN tries t ON t.burst = b.burst WHERE b.campaign = ? \
                   GROUP BY b.burst ORDER BY b.started_unix_us, b.id";
        self.all(sql, &[&campaign], |row| {
            let count = |index: usize| row.get::<_, i64>(index).map(i64::unsigned_abs);
            Ok(SpentRow {
                burst: row.get(0)?,
                lane: row.get(1)?,
                task: row.get(2)?,
                started_unix_us: row.get(3)?,
                requests: count(4)?,
                input_tokens: count(5)?,
                cached_tokens: count(6)?,
                output_tokens: count(7)?,
                unreported: count(8)?,
            })
        })
    }

    /// How the burst of that id stands (`running`, `complete`, `void`, `interrupted`); `None` when there is none.
    ///
    /// # Errors
    /// [`StoreError`] as SQLite refuses.
    pub fn burst_state(&self, id: &str) -> Result<Option<String>, StoreError> {
        self.one("SELECT state FROM bursts WHERE id = ?", &[&id], |row| row.get(0))
    }
}
