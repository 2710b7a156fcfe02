//! Records as rows and back. Each table has one file with its columns in one list, so that writing and reading cannot
//! drift apart.

mod attempt;
mod burst;
mod call;
mod measured;
mod tries;

pub(crate) use attempt::{ATTEMPT_COLUMNS, FIGURE_COLUMNS, attempt_of, figures_of, put_attempt};
pub(crate) use burst::{BURST_COLUMNS, END_COLUMNS, burst_of, end_of, put_burst, put_end};
pub(crate) use call::{CALL_COLUMNS, call_of, put_call};
pub(crate) use tries::{TRY_COLUMNS, TryKey, put_try, try_of};

use std::str::FromStr;

use peaklane_core::attempt::Verdict;
use peaklane_core::burst::{BurstState, Connections, PromptMode};
use rusqlite::types::{FromSqlError, ToSql, Type, ValueRef};
use rusqlite::{Row, Statement};

/// The answer's and the reasoning text are kept up to this many bytes, cut at a character.
pub const TEXT_LIMIT_BYTES: usize = 2 * 1024;

/// `INSERT INTO table (a, b) VALUES (?, ?)`.
pub(crate) fn insert_sql(table: &str, columns: &[&str]) -> String {
    let marks = vec!["?"; columns.len()].join(", ");
    format!("INSERT INTO {table} ({}) VALUES ({marks})", columns.join(", "))
}

/// Binds values one after the other, in the order of the column list.
pub(crate) struct Put<'s, 'c> {
    statement: &'s mut Statement<'c>,
    at: usize,
}

impl<'s, 'c> Put<'s, 'c> {
    pub(crate) fn new(statement: &'s mut Statement<'c>) -> Self {
        Self { statement, at: 0 }
    }

    pub(crate) fn value<T: ToSql>(&mut self, value: T) -> rusqlite::Result<&mut Self> {
        self.at += 1;
        self.statement.raw_bind_parameter(self.at, value)?;
        Ok(self)
    }

    /// An unsigned number. SQLite's integers are signed: what is above 2^63 - 1 (292,000 years in microseconds; a
    /// token count that only a broken server reports) is kept as 2^63 - 1.
    pub(crate) fn number(&mut self, value: u64) -> rusqlite::Result<&mut Self> {
        self.value(i64::try_from(value).unwrap_or(i64::MAX))
    }

    pub(crate) fn maybe(&mut self, value: Option<u64>) -> rusqlite::Result<&mut Self> {
        self.value(value.map(|v| i64::try_from(v).unwrap_or(i64::MAX)))
    }

    /// Runs the statement and says how many rows it changed.
    pub(crate) fn run(&mut self) -> rusqlite::Result<usize> {
        self.statement.raw_execute()
    }
}

/// Takes values one after the other, in the order of the column list.
pub(crate) struct Take<'r, 's> {
    row: &'r Row<'s>,
    at: usize,
}

impl<'r, 's> Take<'r, 's> {
    pub(crate) fn new(row: &'r Row<'s>, from: usize) -> Self {
        Self { row, at: from }
    }

    pub(crate) fn value<T: rusqlite::types::FromSql>(&mut self) -> rusqlite::Result<T> {
        self.at += 1;
        self.row.get(self.at - 1)
    }

    /// A word of a closed list.
    pub(crate) fn word<T>(&mut self, parse: impl Fn(&str) -> Option<T>) -> rusqlite::Result<T> {
        self.at += 1;
        let text = self.row.get_ref(self.at - 1)?.as_str()?;
        parse(text).ok_or_else(|| bad(self.at - 1, format!("`{text}` is no known word of this column")))
    }

    /// A word of a closed list, or nothing.
    pub(crate) fn maybe_word<T>(&mut self, parse: impl Fn(&str) -> Option<T>) -> rusqlite::Result<Option<T>> {
        if matches!(self.row.get_ref(self.at)?, ValueRef::Null) {
            self.at += 1;
            return Ok(None);
        }
        self.word(parse).map(Some)
    }

    /// What [`list`] has written.
    pub(crate) fn list<T: serde::de::DeserializeOwned>(&mut self) -> rusqlite::Result<Vec<T>> {
        let text: Option<String> = self.value()?;
        let parsed = text.map(|text| serde_json::from_str(&text).map_err(|e| bad(self.at - 1, e.to_string())));
        Ok(parsed.transpose()?.unwrap_or_default())
    }

    pub(crate) fn parsed<T: FromStr>(&mut self) -> rusqlite::Result<T> {
        self.word(|text| text.parse().ok())
    }
}

pub(crate) fn bad(column: usize, why: String) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(FromSqlError::Other(why.into())))
}

/// Cuts a text to `limit` bytes, at a character.
pub(crate) fn cut(text: &mut String, limit: usize) {
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit));
        text.shrink_to_fit();
    }
}

/// A small list as JSON; an empty one costs nothing.
pub(crate) fn list<T: serde::Serialize>(items: &[T]) -> rusqlite::Result<Option<String>> {
    if items.is_empty() {
        return Ok(None);
    }
    serde_json::to_string(items).map(Some).map_err(|e| rusqlite::Error::ToSqlConversionFailure(Box::new(e)))
}

pub(crate) fn verdict(text: &str) -> Option<Verdict> {
    [Verdict::Pass, Verdict::TooSlow, Verdict::WrongAnswer, Verdict::Failed, Verdict::ConfigFinding]
        .into_iter()
        .find(|v| v.name() == text)
}

pub(crate) fn state(text: &str) -> Option<BurstState> {
    [BurstState::Running, BurstState::Complete, BurstState::Void, BurstState::Interrupted]
        .into_iter()
        .find(|s| s.name() == text)
}

pub(crate) fn prompt_mode(text: &str) -> Option<PromptMode> {
    [PromptMode::Nonce, PromptMode::Identical].into_iter().find(|m| m.name() == text)
}

pub(crate) fn connections(text: &str) -> Option<Connections> {
    [Connections::Before, Connections::Inside].into_iter().find(|c| c.name() == text)
}
