//! `summary calls`: the calls that the proxy recorded, one by one.

use peaklane_core::call::CallRecord;
use peaklane_core::config::Config;
use peaklane_report::calls as view;
use peaklane_store::{CallFilter, StoreReader};

use super::SummaryArgs;
use super::select::Wish;
use super::sessions::{filter, local, zone_of};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::{Format, Globals};
use crate::out;

/// Calls that are shown where nothing says how many.
const USUAL: u32 = 50;

/// JSON is printed in pieces of about this size: few calls of the system, little memory.
const PIECE_BYTES: usize = 64 * 1024;

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
    let nothing = || {
        Failure::unmeasured(format!("no call that was asked for is in `{}`", path.display()))
            .with_hint("`peaklane proxy` records calls; without filters all are shown")
    };
    if globals.format == Format::Json {
        return if array(&reader, &wanted)? { Ok(Exit::Fine) } else { Err(nothing()) };
    }
    let mut calls: Vec<CallRecord> = Vec::new();
    reader.calls(&wanted, |call| calls.push(call))?;
    if calls.is_empty() {
        return Err(nothing());
    }
    let local = |unix_us: i64| local(&zone, unix_us);
    let failed = |error: &dyn std::error::Error| Failure::of(Exit::Unmeasured, error, None);
    out::print(&match globals.format {
        Format::Md => view::table(&calls, &local).markdown(),
        Format::Csv => view::table(&calls, &local).csv().map_err(|e| failed(&e))?,
        Format::Table | Format::Json => view::table(&calls, &local).render(globals.width, globals.palette),
    })?;
    if globals.format == Format::Table {
        let more =
            if args.last.is_none() && calls.len() as u32 == USUAL { "; the newest, --last N shows more" } else { "" };
        out::note(globals, &format!("{}{more}", view::sentence(&calls)));
    }
    Ok(Exit::Fine)
}

/// Prints calls as one array while they are read: a store may hold more of them than memory. False where there are none.
fn array(reader: &StoreReader, wanted: &CallFilter) -> Result<bool, Failure> {
    let mut text = String::new();
    let mut any = false;
    let mut printed: Result<(), Failure> = Ok(());
    reader.calls(wanted, |call| {
        text.push_str(if any { ",\n  " } else { "[\n  " });
        any = true;
        // Line breaks between values are white space; within texts they are escaped.
        text.push_str(&format!("{:#}", view::json(&call)).replace('\n', "\n  "));
        if text.len() >= PIECE_BYTES {
            if printed.is_ok() {
                printed = out::print(&text);
            }
            text.clear();
        }
    })?;
    printed?;
    if any {
        text.push_str("\n]\n");
        out::print(&text)?;
    }
    Ok(any)
}
