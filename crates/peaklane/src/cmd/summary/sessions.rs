//! `summary sessions`: what sessions of harnesses took and what broke their prefixes, from the store or from trace files.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use peaklane_core::call::CallRecord;
use peaklane_core::config::{Config, Price};
use peaklane_core::prefix::trace::{TraceCall, TraceReducer, TraceSession};
use peaklane_core::session::{Prices, summary};
use peaklane_report::{sessions as view, trace_sessions};
use peaklane_store::{CallFilter, StoreReader};

use super::SummaryArgs;
use super::select::Wish;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::{Format, Globals};
use crate::load::time_zone;
use crate::out;

/// Longest line of a trace, bytes: a prompt of a million tokens with all its escapes.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// Reads and prints.
///
/// # Errors
/// [`Failure`]: what cannot be read; exit code 3 where there is no call.
pub(super) fn run(
    files: &[PathBuf],
    args: &SummaryArgs,
    wish: &Wish,
    config: Option<&Config>,
    globals: &Globals,
) -> Result<Exit, Failure> {
    if files.is_empty() {
        return from_store(args, wish, config, globals);
    }
    let mut sessions: Vec<TraceSession> = Vec::new();
    for file in files {
        sessions.extend(from_file(file, args.session.as_deref())?);
    }
    if sessions.is_empty() {
        return Err(Failure::unmeasured("there is no recorded call in these files"));
    }
    let failed = |error: &dyn std::error::Error| Failure::of(Exit::Unmeasured, error, None);
    out::print(&match globals.format {
        Format::Table => trace_sessions::render(&sessions, globals.width, globals.palette),
        Format::Md => trace_sessions::markdown(&sessions),
        Format::Csv => trace_sessions::table(&sessions).csv().map_err(|e| failed(&e))?,
        Format::Json => format!("{:#}\n", serde_json::to_value(&sessions).map_err(|e| failed(&e))?),
    })?;
    Ok(Exit::Fine)
}

/// The sessions of one file, in the order of their first lines.
fn from_file(path: &Path, wanted: Option<&str>) -> Result<Vec<TraceSession>, Failure> {
    let shown = path.display();
    let unread = |e: &std::io::Error| {
        Failure::of(
            Exit::Usage,
            e,
            Some("give JSONL files of recorded calls, as `proxy --keep-bodies` writes them".into()),
        )
        .because(format!("reading `{shown}`"))
    };
    let file = File::open(path).map_err(|e| unread(&e))?;
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let mut order: Vec<String> = Vec::new();
    let mut sessions: HashMap<String, TraceReducer> = HashMap::new();
    let mut line = Vec::new();
    for number in 1u64.. {
        line.clear();
        let read = (&mut reader).take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut line).map_err(|e| unread(&e))?;
        if read == 0 {
            break;
        }
        let bad = |why: String| {
            Failure::usage(format!("line {number} of `{shown}` is no recorded call")).because(why).with_hint(
                "each line is {\"session\": ..., \"api\": \"chat\", \"body\": {...}}, with harness, version, seq and t_ms where known",
            )
        };
        if read as u64 > MAX_LINE_BYTES {
            return Err(bad(format!("it is longer than {} MiB", MAX_LINE_BYTES >> 20)));
        }
        let text = std::str::from_utf8(&line).map_err(|e| bad(e.to_string()))?;
        if text.trim().is_empty() {
            continue;
        }
        let call = TraceCall::read(text).map_err(|e| bad(e.to_string()))?;
        if wanted.is_some_and(|name| name != call.session()) {
            continue;
        }
        if let Some(session) = sessions.get_mut(call.session()) {
            session.add(call);
        } else {
            let name = call.session().to_owned();
            order.push(name.clone());
            sessions.insert(name, TraceReducer::new(call));
        }
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(order.iter().filter_map(|session| Some(sessions.remove(session)?.finish(name.as_deref()))).collect())
}

/// The zone in which times are shown: that of the configuration, else the system's.
pub(super) fn zone_of(config: Option<&Config>) -> TimeZone {
    let named = config.and_then(|c| c.time_zone.as_deref()).and_then(|name| time_zone(name).ok());
    named.unwrap_or_else(TimeZone::system)
}

/// A moment in that zone, to the second.
pub(super) fn local(zone: &TimeZone, unix_us: i64) -> String {
    let instant = Timestamp::from_microsecond(unix_us).ok();
    instant.map(|at| zone.to_datetime(at).strftime("%Y-%m-%d %H:%M:%S").to_string()).unwrap_or_default()
}

/// Which calls were asked for.
pub(super) fn filter(args: &SummaryArgs, wish: &Wish, zone: &TimeZone) -> CallFilter {
    CallFilter {
        session: args.session.clone(),
        lanes: args.lane.clone(),
        since_unix_us: wish.since_unix_us(zone),
        failed: args.failed,
        last: None,
    }
}

fn from_store(args: &SummaryArgs, wish: &Wish, config: Option<&Config>, globals: &Globals) -> Result<Exit, Failure> {
    let path = globals.store.path();
    let reader = StoreReader::open(path)?;
    let zone = zone_of(config);
    // A session is summed up whole, whichever of its calls were asked for.
    let mut wanted = reader.sessions(&filter(args, wish, &zone))?;
    if wanted.is_empty() {
        return Err(Failure::unmeasured(format!("no call that was asked for is in `{}`", path.display()))
            .with_hint("`peaklane proxy` records calls; without filters all are shown"));
    }
    if let Some(last) = args.last {
        let drop = wanted.len().saturating_sub(last as usize);
        wanted.drain(..drop);
    }
    let price_of = |lane: Option<&str>| -> Option<Price> { config?.lane(lane?)?.price.clone() };
    let zones = |name: &str| time_zone(name).ok();
    let prices = Prices { of_lane: &price_of, zones: &zones };
    let mut sessions = Vec::new();
    for row in &wanted {
        let mut calls: Vec<CallRecord> = Vec::new();
        let whole = CallFilter { session: Some(row.session.clone()), ..CallFilter::default() };
        reader.calls(&whole, |call| calls.push(call))?;
        sessions.extend(summary(&calls, &prices));
    }
    let local = |unix_us: i64| local(&zone, unix_us);
    let failed = |error: &dyn std::error::Error| Failure::of(Exit::Unmeasured, error, None);
    out::print(&match globals.format {
        Format::Table => view::render(&sessions, &local, globals.width, globals.palette),
        Format::Md => view::markdown(&sessions, &local),
        Format::Csv => view::table(&sessions, &local).csv().map_err(|e| failed(&e))?,
        Format::Json => format!("{:#}\n", view::json(&sessions)),
    })?;
    Ok(Exit::Fine)
}
