//! `summary history`: what happened beside the measurements, from the store.

use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use peaklane_report::history::{self, Happened};
use peaklane_store::{EventRow, Ledger};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::{Format, Globals};
use crate::out;

use super::select::Wish;

/// Prints the events that were asked for, oldest first, and the begin of each campaign among them.
///
/// # Errors
/// [`Failure`] when the store cannot be read.
pub(super) fn run(store: &Path, wish: &Wish, zone: &TimeZone, globals: &Globals) -> Result<Exit, Failure> {
    let ledger = Ledger::open_to_read(store)?;
    let mut events = ledger.events(i64::MIN)?;
    events.extend(ledger.campaigns()?.into_iter().flat_map(|row| {
        let event = |unix_us, kind: &str, detail: serde_json::Value| EventRow {
            unix_us,
            campaign: Some(row.id.clone()),
            lane: None,
            task: None,
            kind: kind.to_owned(),
            detail: detail.to_string(),
        };
        let begun = event(row.started_unix_us, "campaign_begun", serde_json::json!({ "site": row.site }));
        let stopped =
            row.stopped.as_ref().map(|(at, why)| event(*at, "campaign_stopped", serde_json::json!({ "why": why })));
        [Some(begun), stopped].into_iter().flatten()
    }));
    events.retain(|event| wish.concerns(event));
    events.sort_by_key(|event| event.unix_us);
    let happened: Vec<Happened> = events.into_iter().map(|event| shown(event, zone)).collect();
    out::print(&match globals.format {
        Format::Table => history::render(&happened, globals.width, globals.palette),
        Format::Md => history::table(&happened).markdown(),
        Format::Csv => history::table(&happened).csv().map_err(|e| Failure::of(Exit::Unmeasured, &e, None))?,
        Format::Json => format!("{:#}\n", history::json(&happened)),
    })?;
    Ok(Exit::Fine)
}

fn shown(event: EventRow, zone: &TimeZone) -> Happened {
    let instant = Timestamp::from_microsecond(event.unix_us).ok();
    Happened {
        utc: instant.map(|at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
        local: instant.map(|at| zone.to_datetime(at).strftime("%Y-%m-%d %H:%M").to_string()),
        campaign: event.campaign,
        lane: event.lane,
        task: event.task,
        // What another version wrote in another form is shown as it is.
        detail: serde_json::from_str(&event.detail).unwrap_or(serde_json::Value::String(event.detail)),
        kind: event.kind,
    }
}
