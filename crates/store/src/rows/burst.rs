//! A burst: its header when it begins, its end when it is over.

use peaklane_core::burst::{BurstEnd, BurstHeader, ControlFigures};
use rusqlite::Row;

use super::{Put, Take, connections, prompt_mode, state};

/// What is known at the begin.
pub(crate) const BURST_COLUMNS: [&str; 29] = [
    "id",
    "run",
    "lane",
    "kind",
    "api",
    "model",
    "base_url",
    "task",
    "floor_us",
    "attempts",
    "concurrency",
    "spacing_us",
    "prompt_mode",
    "connections",
    "stream",
    "max_retries",
    "total_timeout_us",
    "seed",
    "prompt_hash",
    "date",
    "\"window\"",
    "zone",
    "started_unix_us",
    "tool_version",
    "simulated",
    "tasks_per_hour_floor",
    "stretch_us",
    "campaign",
    "site",
];

/// What is known at the end.
pub(crate) const END_COLUMNS: [&str; 13] = [
    "state",
    "duration_us",
    "peak_in_flight",
    "max_skew_us",
    "own_lag_p50_us",
    "own_lag_p99_us",
    "own_lag_max_us",
    "body_bytes",
    "finding",
    "control_connect_us",
    "control_first_byte_us",
    "control_status",
    "control_error",
];

/// Binds a header in the order of [`BURST_COLUMNS`].
pub(crate) fn put_burst(put: &mut Put<'_, '_>, h: &BurstHeader) -> rusqlite::Result<()> {
    put.value(&h.id)?.value(&h.run)?.value(&h.lane)?.value(h.kind.name())?.value(h.api.name())?;
    put.value(&h.model)?.value(&h.base_url)?.value(&h.task)?.number(h.floor_us)?.value(h.attempts)?;
    put.value(h.concurrency)?.number(h.spacing_us)?.value(h.prompt_mode.name())?.value(h.connections.name())?;
    put.value(h.stream)?.value(h.max_retries)?.number(h.total_timeout_us)?.value(h.seed.to_string())?;
    put.value(&h.prompt_hash)?.value(&h.date)?.value(&h.window)?.value(&h.zone)?.value(h.started_unix_us)?;
    put.value(&h.tool_version)?.value(h.simulated)?.value(h.tasks_per_hour_floor)?;
    put.maybe(h.stretch_us)?.value(&h.campaign)?.value(&h.site)?;
    Ok(())
}

/// Reads a header from a row whose columns from `from` on are [`BURST_COLUMNS`].
pub(crate) fn burst_of(row: &Row<'_>, from: usize) -> rusqlite::Result<BurstHeader> {
    let mut take = Take::new(row, from);
    Ok(BurstHeader {
        id: take.value()?,
        run: take.value()?,
        lane: take.value()?,
        kind: take.parsed()?,
        api: take.parsed()?,
        model: take.value()?,
        base_url: take.value()?,
        task: take.value()?,
        floor_us: take.value()?,
        attempts: take.value()?,
        concurrency: take.value()?,
        spacing_us: take.value()?,
        prompt_mode: take.word(prompt_mode)?,
        connections: take.word(connections)?,
        stream: take.value()?,
        max_retries: take.value()?,
        total_timeout_us: take.value()?,
        seed: take.parsed()?,
        prompt_hash: take.value()?,
        date: take.value()?,
        window: take.value()?,
        zone: take.value()?,
        started_unix_us: take.value()?,
        tool_version: take.value()?,
        simulated: take.value()?,
        tasks_per_hour_floor: take.value()?,
        stretch_us: take.value()?,
        campaign: take.value()?,
        site: take.value()?,
    })
}

/// Binds an end in the order of [`END_COLUMNS`].
pub(crate) fn put_end(put: &mut Put<'_, '_>, e: &BurstEnd) -> rusqlite::Result<()> {
    put.value(e.state.name())?.number(e.duration_us)?.value(e.peak_in_flight)?.number(e.max_skew_us)?;
    for lag in e.own_lag_us {
        put.number(lag)?;
    }
    put.number(e.body_bytes)?.value(&e.finding)?;
    let control = e.control.as_ref();
    put.maybe(control.and_then(|c| c.connect_us))?.maybe(control.and_then(|c| c.first_byte_us))?;
    put.value(control.and_then(|c| c.status))?.value(control.and_then(|c| c.error.as_deref()))?;
    Ok(())
}

/// Reads an end from a row whose columns from `from` on are [`END_COLUMNS`]; `None` where the burst has none (yet).
pub(crate) fn end_of(row: &Row<'_>, from: usize) -> rusqlite::Result<Option<BurstEnd>> {
    let mut take = Take::new(row, from);
    let state = take.word(state)?;
    let Some(duration_us) = take.value::<Option<u64>>()? else { return Ok(None) };
    Ok(Some(BurstEnd {
        state,
        duration_us,
        peak_in_flight: take.value()?,
        max_skew_us: take.value()?,
        own_lag_us: [take.value()?, take.value()?, take.value()?],
        body_bytes: take.value()?,
        finding: take.value()?,
        control: control_of(&mut take)?,
    }))
}

/// The control's columns; `None` when all are empty: none was asked.
fn control_of(take: &mut Take<'_, '_>) -> rusqlite::Result<Option<ControlFigures>> {
    let control = ControlFigures {
        connect_us: take.value()?,
        first_byte_us: take.value()?,
        status: take.value()?,
        error: take.value()?,
    };
    Ok((control != ControlFigures::default()).then_some(control))
}
