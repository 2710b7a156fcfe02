//! A try: one HTTP exchange.

use peaklane_core::record::TryRecord;
use rusqlite::Row;

use super::measured::{measured_of, put_measured};
use super::{Put, Take, list};

/// All columns.
pub(crate) const TRY_COLUMNS: [&str; 43] = [
    "burst",
    "warmup",
    "attempt",
    "try",
    "outcome",
    "http_status",
    "http_version",
    "reused",
    "dns_us",
    "connect_us",
    "tls_us",
    "first_byte_us",
    "ttft_us",
    "first_answer_us",
    "last_token_us",
    "end_us",
    "last_byte_us",
    "max_gap_us",
    "body_bytes",
    "output_chunks",
    "reasoning_chunks",
    "finish_reason",
    "prompt_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "completion_tokens",
    "reasoning_tokens",
    "model",
    "system_fingerprint",
    "request_id",
    "streamed",
    "bursty",
    "in_band",
    "retry_after_ms",
    "clock_skew_ms",
    "message",
    "rate_limits",
    "sent_us",
    "redirects",
    "own_lag_us",
    "tool_calls",
    "content",
    "reasoning",
];

/// Which try of which attempt.
#[derive(Clone, Copy)]
pub(crate) struct TryKey {
    pub(crate) burst: i64,
    pub(crate) warmup: bool,
    pub(crate) attempt: u32,
    pub(crate) number: usize,
}

/// Binds a try in the order of [`TRY_COLUMNS`].
pub(crate) fn put_try(put: &mut Put<'_, '_>, key: TryKey, t: &TryRecord) -> rusqlite::Result<()> {
    put.value(key.burst)?.value(key.warmup)?.value(key.attempt)?.number(key.number as u64)?;
    put_measured(put, t)?;
    put.number(t.sent_us)?.value(t.redirects)?.number(t.own_lag_us)?;
    put.value(list(&t.tool_calls)?)?.value(&t.content)?.value(&t.reasoning)?;
    Ok(())
}

/// Reads a try from a row that begins with [`TRY_COLUMNS`].
pub(crate) fn try_of(row: &Row<'_>) -> rusqlite::Result<TryRecord> {
    let mut take = Take::new(row, 4);
    let mut t = measured_of(&mut take)?;
    t.sent_us = take.value()?;
    t.redirects = take.value()?;
    t.own_lag_us = take.value()?;
    t.tool_calls = take.list()?;
    t.content = take.value()?;
    t.reasoning = take.value()?;
    Ok(t)
}
