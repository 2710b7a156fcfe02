//! `summary calls`: the calls that the proxy recorded, one by one.

use peaklane_core::call::CallRecord;
use peaklane_core::config::Config;
use peaklane_report::calls as view;
use peaklane_store::{CallFilter, StoreReader};
use serde_json::Value;

use super::SummaryArgs;
use super::select::Wish;
use super::sessions::{filter, local, zone_of};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::{Format, Globals};
use crate::out;

/// Calls that are shown where nothing says how many.
const USUAL: u32 = 50;

/// Reads and prints.
///
/// # Errors
/// [`Failure`]: a store that cannot be read; exit code 3 where there is no call.
pub(super) fn run(
    args: &SummaryArgs,
    wish: &Wish,
    config: Option<&Config>,
    globals: &Globals,
) -> Result<Exit, Failure> {
    let path = globals.store.path();
    let reader = StoreReader::open(path)?;
    let zone = zone_of(config);
    // A person gets a page of them, a program what it asked for.
    let cut = args.last.or((globals.format == Format::Table).then_some(USUAL));
    let wanted = CallFilter { last: cut, ..filter(args, wish, &zone) };
    let mut calls: Vec<CallRecord> = Vec::new();
    reader.calls(&wanted, |call| calls.push(call))?;
    if calls.is_empty() {
        return Err(Failure::unmeasured(format!("no call that was asked for is in `{}`", path.display()))
            .with_hint("`peaklane proxy` records calls; without filters all are shown"));
    }
    let local = |unix_us: i64| local(&zone, unix_us);
    let failed = |error: &dyn std::error::Error| Failure::of(Exit::Unmeasured, error, None);
    out::print(&match globals.format {
        Format::Table => view::table(&calls, &local).render(globals.width, globals.palette),
        Format::Md => view::table(&calls, &local).markdown(),
        Format::Csv => view::table(&calls, &local).csv().map_err(|e| failed(&e))?,
        Format::Json => format!("{:#}\n", calls.iter().map(view::json).collect::<Value>()),
    })?;
    if globals.format == Format::Table {
        let more =
            if args.last.is_none() && calls.len() as u32 == USUAL { "; the newest, --last N shows more" } else { "" };
        out::note(globals, &format!("{}{more}", view::sentence(&calls)));
    }
    Ok(Exit::Fine)
}
