//! What tries and calls have in common: the measured part of an exchange.

use peaklane_core::record::{Handshake, TryRecord, Usage};

use super::{Put, Take, list};

/// Binds it: in the column lists, from `outcome` to `rate_limits`.
pub(crate) fn put_measured(put: &mut Put<'_, '_>, t: &TryRecord) -> rusqlite::Result<()> {
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
    Ok(())
}

/// Reads what [`put_measured`] has bound.
pub(crate) fn measured_of(take: &mut Take<'_, '_>) -> rusqlite::Result<TryRecord> {
    let mut t = TryRecord::new(take.parsed()?);
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
    t.rate_limits = take.list()?;
    Ok(t)
}

#[cfg(test)]
mod tests {
    use super::super::{CALL_COLUMNS, TRY_COLUMNS};

    #[test]
    fn tries_and_calls_list_the_measured_columns_alike() {
        let part = |columns: &[&'static str]| {
            let (from, to) = ("outcome", "rate_limits");
            let at = |name| columns.iter().position(|c| *c == name).unwrap();
            columns[at(from)..=at(to)].to_vec()
        };
        // In `calls`, `model` is the one that was asked for.
        let calls = part(&CALL_COLUMNS).into_iter().map(|c| if c == "answered_model" { "model" } else { c });
        assert_eq!(part(&TRY_COLUMNS), calls.collect::<Vec<_>>());
    }
}
