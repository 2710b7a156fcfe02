//! A try: one HTTP exchange.

use peaklane_core::record::{Handshake, TryRecord, Usage};
use rusqlite::Row;
use serde_json::from_str;

use super::{Put, Take, bad, list};

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
    "sent_us",
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
    "redirects",
    "clock_skew_ms",
    "own_lag_us",
    "message",
    "rate_limits",
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
    put.value(t.outcome.name())?.value(t.http_status)?.value(&t.http_version)?;
    put.value(t.handshake.reused)?.maybe(t.handshake.dns_us)?.maybe(t.handshake.connect_us)?;
    put.maybe(t.handshake.tls_us)?.number(t.sent_us)?.maybe(t.first_byte_us)?.maybe(t.ttft_us)?;
    put.maybe(t.first_answer_us)?.maybe(t.last_token_us)?.maybe(t.end_us)?.maybe(t.last_byte_us)?;
    put.maybe(t.max_gap_us)?.number(t.body_bytes)?.value(t.output_chunks)?.value(t.reasoning_chunks)?;
    put.value(&t.finish_reason)?.maybe(t.usage.prompt)?.maybe(t.usage.cached)?.maybe(t.usage.cache_write)?;
    put.maybe(t.usage.completion)?.maybe(t.usage.reasoning)?;
    put.value(&t.model)?.value(&t.system_fingerprint)?.value(&t.request_id)?.value(t.streamed)?;
    put.value(t.bursty)?.value(t.in_band)?.maybe(t.retry_after_ms)?.value(t.redirects)?;
    put.value(t.clock_skew_ms)?.number(t.own_lag_us)?.value(&t.message)?;
    put.value(list(&t.rate_limits)?)?.value(list(&t.tool_calls)?)?;
    put.value(&t.content)?.value(&t.reasoning)?;
    Ok(())
}

/// Reads a try from a row that begins with [`TRY_COLUMNS`].
pub(crate) fn try_of(row: &Row<'_>) -> rusqlite::Result<TryRecord> {
    let mut take = Take::new(row, 4);
    let mut t = TryRecord::new(take.parsed()?);
    t.http_status = take.value()?;
    t.http_version = take.value()?;
    t.handshake =
        Handshake { reused: take.value()?, dns_us: take.value()?, connect_us: take.value()?, tls_us: take.value()? };
    t.sent_us = take.value()?;
    t.first_byte_us = take.value()?;
    t.ttft_us = take.value()?;
    t.first_answer_us = take.value()?;
    t.last_token_us = take.value()?;
    t.end_us = take.value()?;
    t.last_byte_us = take.value()?;
    t.max_gap_us = take.value()?;
    t.body_bytes = take.value()?;
    t.output_chunks = take.value()?;
    t.reasoning_chunks = take.value()?;
    t.finish_reason = take.value()?;
    let (prompt, cached, cache_write) = (take.value()?, take.value()?, take.value()?);
    t.usage = Usage { prompt, cached, cache_write, completion: take.value()?, reasoning: take.value()? };
    t.model = take.value()?;
    t.system_fingerprint = take.value()?;
    t.request_id = take.value()?;
    t.streamed = take.value()?;
    t.bursty = take.value()?;
    t.in_band = take.value()?;
    t.retry_after_ms = take.value()?;
    t.redirects = take.value()?;
    t.clock_skew_ms = take.value()?;
    t.own_lag_us = take.value()?;
    t.message = take.value()?;
    if let Some(text) = take.value::<Option<String>>()? {
        t.rate_limits = from_str(&text).map_err(|e| bad(39, e.to_string()))?;
    }
    if let Some(text) = take.value::<Option<String>>()? {
        t.tool_calls = from_str(&text).map_err(|e| bad(40, e.to_string()))?;
    }
    t.content = take.value()?;
    t.reasoning = take.value()?;
    Ok(t)
}
