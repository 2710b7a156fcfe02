//! A call: one request of a harness, as the proxy saw it.

use peaklane_core::call::{BreakKind, CallRecord, Delivery, Divergence, Gap, PrefixFigures, SessionBy};
use peaklane_core::record::{Handshake, ToolCall, TryRecord, Usage};
use rusqlite::Row;
use serde_json::from_str;

use super::{Put, Take, bad, list};

/// All columns.
pub(crate) const CALL_COLUMNS: [&str; 69] = [
    "id",
    "session",
    "session_by",
    "seq",
    "harness",
    "lane",
    "started_unix_us",
    "path",
    "api",
    "model",
    "request_bytes",
    "tools",
    "sent_us",
    "total_us",
    "estimated_prompt_tokens",
    "estimated_completion_tokens",
    "usage_injected",
    "retry",
    "delivery",
    "gap",
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
    "answered_model",
    "system_fingerprint",
    "request_id",
    "streamed",
    "bursty",
    "in_band",
    "retry_after_ms",
    "clock_skew_ms",
    "message",
    "rate_limits",
    "tool_calls",
    "prompt_bytes",
    "segments",
    "helper",
    "former_seq",
    "former_bytes",
    "common_bytes",
    "common_other_order_bytes",
    "exact",
    "best_bytes",
    "best_seq",
    "break_segment",
    "break_path",
    "break_kind",
    "before",
    "after",
];

/// Binds a call in the order of the columns.
pub(crate) fn put_call(put: &mut Put<'_, '_>, c: &CallRecord) -> rusqlite::Result<()> {
    let t = &c.record;
    put.value(&c.id)?.value(&c.session)?.value(c.session_by.name())?.value(c.seq)?;
    put.value(&c.harness)?.value(&c.lane)?.value(c.started_unix_us)?.value(&c.path)?;
    put.value(c.api.map(|a| a.name()))?.value(&c.model)?.number(c.request_bytes)?.value(c.tools)?;
    put.number(c.sent_us)?.number(c.total_us)?;
    put.maybe(c.estimated_prompt_tokens)?.maybe(c.estimated_completion_tokens)?;
    put.value(c.usage_injected)?.value(c.retry)?.value(c.delivery.name())?.value(c.gap.map(Gap::name))?;
    put.value(t.outcome.name())?.value(t.http_status)?.value(&t.http_version)?;
    put.value(t.handshake.reused)?.maybe(t.handshake.dns_us)?.maybe(t.handshake.connect_us)?;
    put.maybe(t.handshake.tls_us)?.maybe(t.first_byte_us)?.maybe(t.ttft_us)?;
    put.maybe(t.first_answer_us)?.maybe(t.last_token_us)?.maybe(t.end_us)?.maybe(t.last_byte_us)?;
    put.maybe(t.max_gap_us)?.number(t.body_bytes)?.value(t.output_chunks)?.value(t.reasoning_chunks)?;
    put.value(&t.finish_reason)?.maybe(t.usage.prompt)?.maybe(t.usage.cached)?.maybe(t.usage.cache_write)?;
    put.maybe(t.usage.completion)?.maybe(t.usage.reasoning)?;
    put.value(&t.model)?.value(&t.system_fingerprint)?.value(&t.request_id)?.value(t.streamed)?;
    put.value(t.bursty)?.value(t.in_band)?.maybe(t.retry_after_ms)?.value(t.clock_skew_ms)?.value(&t.message)?;
    put.value(list(&t.rate_limits)?)?;
    // The names alone: arguments are what the harness works on.
    put.value(list(&t.tool_calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>())?)?;
    let p = c.prefix.as_ref();
    let d = p.and_then(|p| p.divergence.as_ref());
    put.maybe(p.map(|p| p.prompt_bytes))?.value(p.map(|p| p.segments))?.value(p.map(|p| p.helper))?;
    put.value(p.and_then(|p| p.former_seq))?.maybe(p.and_then(|p| p.former_bytes))?;
    put.maybe(p.and_then(|p| p.common_bytes))?.maybe(p.and_then(|p| p.common_other_order_bytes))?;
    put.value(p.map(|p| p.exact))?.maybe(p.and_then(|p| p.best_bytes))?.value(p.and_then(|p| p.best_seq))?;
    put.value(d.map(|d| &d.segment))?.value(d.map(|d| &d.path))?.value(d.map(|d| d.kind.name()))?;
    put.value(d.map(|d| &d.before))?.value(d.map(|d| &d.after))?;
    Ok(())
}

/// Reads a call from a row of the columns.
pub(crate) fn call_of(row: &Row<'_>) -> rusqlite::Result<CallRecord> {
    let mut take = Take::new(row, 0);
    let word = |all: &[(&str, usize)], text: &str| all.iter().find(|(name, _)| *name == text).map(|(_, n)| *n);
    let by: Vec<_> = SessionBy::ALL.iter().enumerate().map(|(n, b)| (b.name(), n)).collect();
    let deliveries: Vec<_> = Delivery::ALL.iter().enumerate().map(|(n, d)| (d.name(), n)).collect();
    let (id, session) = (take.value()?, take.value()?);
    let session_by = take.word(|text| word(&by, text).map(|n| SessionBy::ALL[n]))?;
    let (seq, harness, lane, started_unix_us, path) =
        (take.value()?, take.value()?, take.value()?, take.value()?, take.value()?);
    let api: Option<String> = take.value()?;
    let api = api.map(|text| text.parse().map_err(|e| bad(8, format!("{e}")))).transpose()?;
    let (model, request_bytes, tools) = (take.value()?, take.value()?, take.value()?);
    let (sent_us, total_us) = (take.value()?, take.value()?);
    let (estimated_prompt_tokens, estimated_completion_tokens) = (take.value()?, take.value()?);
    let (usage_injected, retry) = (take.value()?, take.value()?);
    let delivery = take.word(|text| word(&deliveries, text).map(|n| Delivery::ALL[n]))?;
    let gap: Option<String> = take.value()?;
    let gap = gap
        .map(|text| {
            Gap::ALL.into_iter().find(|g| g.name() == text).ok_or_else(|| bad(19, format!("`{text}` is no gap")))
        })
        .transpose()?;
    let record = record_of(&mut take, sent_us)?;
    let prefix = prefix_of(&mut take)?;
    Ok(CallRecord {
        id,
        session,
        session_by,
        seq,
        harness,
        lane,
        started_unix_us,
        path,
        api,
        model,
        request_bytes,
        tools,
        sent_us,
        total_us,
        record,
        estimated_prompt_tokens,
        estimated_completion_tokens,
        usage_injected,
        retry,
        prefix,
        delivery,
        gap,
    })
}

fn record_of(take: &mut Take<'_, '_>, sent_us: u64) -> rusqlite::Result<TryRecord> {
    let mut t = TryRecord::new(take.parsed()?);
    t.sent_us = sent_us;
    t.http_status = take.value()?;
    t.http_version = take.value()?;
    t.handshake =
        Handshake { reused: take.value()?, dns_us: take.value()?, connect_us: take.value()?, tls_us: take.value()? };
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
    t.clock_skew_ms = take.value()?;
    t.message = take.value()?;
    let json = |text: Option<String>| text.unwrap_or_else(|| "[]".to_owned());
    let limits: String = json(take.value()?);
    t.rate_limits = from_str(&limits).map_err(|e| bad(52, e.to_string()))?;
    let names: Vec<String> = from_str(&json(take.value()?)).map_err(|e| bad(53, e.to_string()))?;
    t.tool_calls = names.into_iter().map(|name| ToolCall { name, arguments: String::new() }).collect();
    Ok(t)
}

fn prefix_of(take: &mut Take<'_, '_>) -> rusqlite::Result<Option<PrefixFigures>> {
    let prompt_bytes: Option<u64> = take.value()?;
    let (segments, helper): (Option<u32>, Option<bool>) = (take.value()?, take.value()?);
    let (former_seq, former_bytes, common_bytes) = (take.value()?, take.value()?, take.value()?);
    let common_other_order_bytes = take.value()?;
    let exact: Option<bool> = take.value()?;
    let (best_bytes, best_seq) = (take.value()?, take.value()?);
    let (segment, path): (Option<String>, Option<String>) = (take.value()?, take.value()?);
    let kind: Option<String> = take.value()?;
    let kind = kind.map(|text| {
        BreakKind::ALL.into_iter().find(|k| k.name() == text).ok_or_else(|| bad(66, format!("`{text}` is no kind")))
    });
    let kind = kind.transpose()?;
    let (before, after): (Option<String>, Option<String>) = (take.value()?, take.value()?);
    let divergence = kind.map(|kind| Divergence {
        segment: segment.unwrap_or_default(),
        path: path.unwrap_or_default(),
        kind,
        before: before.unwrap_or_default(),
        after: after.unwrap_or_default(),
    });
    Ok(prompt_bytes.map(|prompt_bytes| PrefixFigures {
        prompt_bytes,
        segments: segments.unwrap_or_default(),
        helper: helper.unwrap_or_default(),
        former_seq,
        former_bytes,
        common_bytes,
        common_other_order_bytes,
        exact: exact.unwrap_or_default(),
        best_bytes,
        best_seq,
        divergence,
    }))
}
