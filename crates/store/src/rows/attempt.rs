//! An attempt without its tries.

use peaklane_core::attempt::AttemptRecord;
use peaklane_core::burst::AttemptFigures;
use rusqlite::Row;

use super::{Put, Take, verdict};

/// All columns.
pub(crate) const ATTEMPT_COLUMNS: [&str; 18] = [
    "burst",
    "warmup",
    "attempt",
    "verdict",
    "outcome",
    "latency_us",
    "ttft_us",
    "first_answer_us",
    "retries",
    "skew_us",
    "intended_unix_us",
    "finding",
    "check_note",
    "prompt_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "completion_tokens",
    "reasoning_tokens",
];

/// What a summary needs.
pub(crate) const FIGURE_COLUMNS: [&str; 10] = [
    "intended_unix_us",
    "latency_us",
    "verdict",
    "outcome",
    "retries",
    "ttft_us",
    "first_answer_us",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
];

/// Binds an attempt in the order of [`ATTEMPT_COLUMNS`].
pub(crate) fn put_attempt(put: &mut Put<'_, '_>, burst: i64, a: &AttemptRecord) -> rusqlite::Result<()> {
    put.value(burst)?.value(a.warmup)?.value(a.index)?.value(a.verdict.name())?.value(a.outcome.name())?;
    put.number(a.latency_us)?.maybe(a.ttft_us)?.maybe(a.first_answer_us)?.value(a.retries)?;
    put.number(a.skew_us)?.value(a.intended_unix_us)?.value(&a.finding)?.value(&a.check_note)?;
    let usage = a.usage();
    put.maybe(usage.prompt)?.maybe(usage.cached)?.maybe(usage.cache_write)?;
    put.maybe(usage.completion)?.maybe(usage.reasoning)?;
    Ok(())
}

/// Reads an attempt from a row that begins with [`ATTEMPT_COLUMNS`]; its tries are still missing, its token counts are
/// theirs.
pub(crate) fn attempt_of(row: &Row<'_>) -> rusqlite::Result<AttemptRecord> {
    let mut take = Take::new(row, 1);
    let warmup = take.value()?;
    let index = take.value()?;
    let verdict = take.word(verdict)?;
    let outcome = take.parsed()?;
    let latency_us = take.value()?;
    let ttft_us = take.value()?;
    let first_answer_us = take.value()?;
    let retries = take.value()?;
    let skew_us = take.value()?;
    let intended_unix_us = take.value()?;
    let finding = take.value()?;
    let check_note = take.value()?;
    Ok(AttemptRecord {
        index,
        warmup,
        intended_unix_us,
        skew_us,
        latency_us,
        verdict,
        outcome,
        retries,
        ttft_us,
        first_answer_us,
        finding,
        check_note,
        tries: Vec::new(),
    })
}

/// Reads figures from a row that begins with [`FIGURE_COLUMNS`].
pub(crate) fn figures_of(row: &Row<'_>) -> rusqlite::Result<AttemptFigures> {
    let mut take = Take::new(row, 0);
    Ok(AttemptFigures {
        intended_unix_us: take.value()?,
        latency_us: take.value()?,
        verdict: take.word(verdict)?,
        outcome: take.parsed()?,
        retries: take.value()?,
        ttft_us: take.value()?,
        first_answer_us: take.value()?,
        prompt_tokens: take.value()?,
        cached_tokens: take.value()?,
        completion_tokens: take.value()?,
    })
}
