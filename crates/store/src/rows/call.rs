//! A call: one request of a harness, as the proxy saw it.

use peaklane_core::call::{BreakKind, CallRecord, Delivery, Divergence, Gap, PrefixFigures, SessionBy};
use peaklane_core::record::ToolCall;
use rusqlite::Row;

use super::measured::{measured_of, put_measured};
use super::{Put, Take, list};

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
    put.value(&c.id)?.value(&c.session)?.value(c.session_by.name())?.value(c.seq)?;
    put.value(&c.harness)?.value(&c.lane)?.value(c.started_unix_us)?.value(&c.path)?;
    put.value(c.api.map(|a| a.name()))?.value(&c.model)?.number(c.request_bytes)?.value(c.tools)?;
    put.number(c.sent_us)?.number(c.total_us)?;
    put.maybe(c.estimated_prompt_tokens)?.maybe(c.estimated_completion_tokens)?;
    put.value(c.usage_injected)?.value(c.retry)?.value(c.delivery.name())?.value(c.gap.map(Gap::name))?;
    put_measured(put, &c.record)?;
    // The names alone: arguments are what the harness works on.
    put.value(list(&c.record.tool_calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>())?)?;
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
    let (id, session) = (take.value()?, take.value()?);
    let session_by = take.word(|text| SessionBy::ALL.into_iter().find(|by| by.name() == text))?;
    let (seq, harness, lane, started_unix_us, path) =
        (take.value()?, take.value()?, take.value()?, take.value()?, take.value()?);
    let api = take.maybe_word(|text| text.parse().ok())?;
    let (model, request_bytes, tools) = (take.value()?, take.value()?, take.value()?);
    let (sent_us, total_us) = (take.value()?, take.value()?);
    let (estimated_prompt_tokens, estimated_completion_tokens) = (take.value()?, take.value()?);
    let (usage_injected, retry) = (take.value()?, take.value()?);
    let delivery = take.word(|text| Delivery::ALL.into_iter().find(|d| d.name() == text))?;
    let gap = take.maybe_word(|text| Gap::ALL.into_iter().find(|gap| gap.name() == text))?;
    let mut record = measured_of(&mut take)?;
    record.sent_us = sent_us;
    let names: Vec<String> = take.list()?;
    record.tool_calls = names.into_iter().map(|name| ToolCall { name, arguments: String::new() }).collect();
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

fn prefix_of(take: &mut Take<'_, '_>) -> rusqlite::Result<Option<PrefixFigures>> {
    let prompt_bytes: Option<u64> = take.value()?;
    let (segments, helper): (Option<u32>, Option<bool>) = (take.value()?, take.value()?);
    let (former_seq, former_bytes, common_bytes) = (take.value()?, take.value()?, take.value()?);
    let common_other_order_bytes = take.value()?;
    let exact: Option<bool> = take.value()?;
    let (best_bytes, best_seq) = (take.value()?, take.value()?);
    let (segment, path): (Option<String>, Option<String>) = (take.value()?, take.value()?);
    let kind = take.maybe_word(|text| BreakKind::ALL.into_iter().find(|kind| kind.name() == text))?;
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
