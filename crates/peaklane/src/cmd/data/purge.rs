//! `peaklane data purge`: counts first, asks, removes in one transaction, writes the file anew.

use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::Path;

use clap::Args;
use jiff::civil::Time;
use jiff::tz::TimeZone;
use peaklane_core::config::Day;
use peaklane_report::purge::{self as view, PurgeView};
use peaklane_run::clock::wall_us;
use peaklane_store::{Ledger, PurgeBound, Purged, StoreError};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::{Format, Globals};
use crate::load::{FILE_NAME, ProcessEnvironment, load, time_zone};
use crate::out;

/// A burst without an end that began longer ago than this was killed: no try may take longer than a day.
const LONGEST_BURST_US: i64 = 2 * 24 * 3_600_000_000;

const EXAMPLES: &str = "\
Examples:
  peaklane data purge --before 2026-09-01 --dry-run   what would go
  peaklane data purge --before 2026-09-01             counts, asks, removes
  peaklane data purge --before 2026-09-01 --yes       asks nothing, for a timer
  peaklane data purge --session run-1                 the calls of one session of a harness

Exit code 0 also when there was nothing to remove, and when the answer was no.";

/// Remove everything that was measured, planned or decided before a day, or the calls of one session
///
/// Bursts with their attempts and tries, slots of plans, campaigns of which nothing is left, events, calls of harnesses, and
/// documents (decisions, counter-tests). Then the file is written anew, so that the bytes are gone. A burst that is under way stays. CSV files are
/// not touched.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct PurgeArgs {
    /// First day that stays: the local date of a burst; for what has none, that date in the zone of the configuration, else in
    /// UTC. Default: none, it has to be said where `--session` is not. Example: `--before 2026-09-01`
    #[arg(long, value_name = "DATE", required_unless_present = "session")]
    pub before: Option<Day>,

    /// Instead of a day: the calls of this session of a harness, whenever they were, and nothing else. Default: none. Example:
    /// `--session run-1`
    #[arg(long, value_name = "NAME", conflicts_with_all = ["before", "killed"])]
    pub session: Option<String>,

    /// Only count. Default: off. Example: `--dry-run`
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,

    /// Remove without asking; needed where no terminal can answer. Default: off. Example: `--yes`
    #[arg(long)]
    pub yes: bool,

    /// Remove bursts without an end too, if they began more than two days ago: they were killed. Default: off, they stay.
    /// Example: `--killed`
    #[arg(long)]
    pub killed: bool,
}

/// Counts, asks, removes, says what it was.
///
/// # Errors
/// [`Failure`]: exit code 2 where nobody can be asked, 3 when the store cannot be written.
pub(super) fn run(args: &PurgeArgs, globals: &Globals) -> Result<Exit, Failure> {
    let what = what(args, globals)?;
    let path = globals.store.path();
    // Opened to read first: what only counts changes nothing, and makes no store.
    let counted = what.count(&Ledger::open_to_read(path)?)?;
    let shown = |purged: &Purged, dry_run, compacted| PurgeView { dry_run, compacted, ..seen(purged, path, &what) };
    if args.dry_run || counted.is_empty() {
        print(&shown(&counted, args.dry_run, None), globals)?;
        return Ok(Exit::Fine);
    }
    if !args.yes && !agreed(&shown(&counted, true, None), globals)? {
        out::note(globals, "nothing was removed");
        return Ok(Exit::Fine);
    }
    let ledger = Ledger::open(path)?;
    let purged = what.remove(&ledger)?;
    let compacted = match ledger.compact() {
        Ok(()) => true,
        Err(StoreError::Busy { .. }) => false,
        Err(error) => {
            return Err(Failure::from(error).because("the records are removed, the file is as large as before"));
        }
    };
    print(&shown(&purged, false, Some(compacted)), globals)?;
    Ok(Exit::Fine)
}

/// What is to go.
enum What {
    /// Everything before a day, which begins in that zone.
    Older(PurgeBound, TimeZone),
    /// The calls of a session.
    Session(String),
}

impl What {
    fn count(&self, ledger: &Ledger) -> Result<Purged, StoreError> {
        match self {
            Self::Older(bound, _) => ledger.would_purge(bound),
            Self::Session(name) => ledger.would_purge_session(name),
        }
    }

    fn remove(&self, ledger: &Ledger) -> Result<Purged, StoreError> {
        match self {
            Self::Older(bound, _) => ledger.purge(bound),
            Self::Session(name) => ledger.purge_session(name),
        }
    }
}

fn what(args: &PurgeArgs, globals: &Globals) -> Result<What, Failure> {
    let before = match (&args.before, &args.session) {
        (_, Some(session)) => return Ok(What::Session(session.clone())),
        (Some(before), None) => before,
        (None, None) => return Err(Failure::usage("neither a day nor a session is named")),
    };
    let zone = zone(globals)?;
    let begin = zone.to_timestamp(before.date().to_datetime(Time::midnight()));
    let begin = begin.map_err(|e| Failure::of(Exit::Usage, &e, None))?;
    let bound = PurgeBound {
        date: before.to_string(),
        unix_us: begin.as_microsecond(),
        killed_before_unix_us: args.killed.then(|| wall_us().saturating_sub(LONGEST_BURST_US)),
    };
    Ok(What::Older(bound, zone))
}

/// Shows the counts and asks. Only a plain yes is one.
fn agreed(counts: &PurgeView, globals: &Globals) -> Result<bool, Failure> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return Err(Failure::usage("nobody can be asked: standard input is no terminal")
            .with_hint("look with `--dry-run`, then run it again with `--yes`"));
    }
    out::say(&view::render(counts, globals.width, globals.stderr_palette));
    out::say("remove this for good? [y/N] ");
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer).map_err(|e| Failure::of(Exit::Unmeasured, &e, None))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// The zone in which the date begins. A configuration that was named must be sound, one that happens to lie here may be
/// anything.
fn zone(globals: &Globals) -> Result<TimeZone, Failure> {
    let path = globals.config.as_deref().or_else(|| Some(Path::new(FILE_NAME)).filter(|path| path.is_file()));
    let Some(path) = path else { return Ok(TimeZone::UTC) };
    let named = match load(Some(path), &ProcessEnvironment) {
        Ok(loaded) => loaded.config.time_zone,
        Err(error) if globals.config.is_some() => return Err(error.into()),
        Err(error) => {
            out::warn(globals, &format!("{error}: the date begins in UTC"));
            None
        }
    };
    match named {
        Some(name) => time_zone(&name).map_err(|e| Failure::of(Exit::Usage, &e, e.hint())),
        None => Ok(TimeZone::UTC),
    }
}

fn seen(purged: &Purged, path: &Path, what: &What) -> PurgeView {
    let (before, zone, session) = match what {
        What::Older(bound, zone) => (Some(bound.date.clone()), zone.iana_name().map(str::to_owned), None),
        What::Session(name) => (None, None, Some(name.clone())),
    };
    PurgeView {
        store: path.display().to_string(),
        before,
        session,
        zone,
        dry_run: false,
        removed: vec![
            ("bursts", purged.bursts),
            ("attempts", purged.attempts),
            ("tries", purged.tries),
            ("slots", purged.slots),
            ("campaigns", purged.campaigns),
            ("events", purged.events),
            ("calls", purged.calls),
            ("documents", purged.documents.len() as u64),
        ],
        documents: purged.documents.iter().map(|d| (d.kind.clone(), d.id.clone())).collect(),
        unfinished_bursts_kept: purged.unfinished_bursts_kept,
        losing_evidence: purged
            .documents_losing_evidence
            .iter()
            .map(|d| (d.kind.clone(), d.id.clone(), d.bursts))
            .collect(),
        compacted: None,
    }
}

fn print(shown: &PurgeView, globals: &Globals) -> Result<(), Failure> {
    out::print(&match globals.format {
        Format::Table => view::render(shown, globals.width, globals.palette),
        Format::Md => view::markdown(shown),
        Format::Csv => view::table(shown).csv().map_err(|e| Failure::of(Exit::Unmeasured, &e, None))?,
        Format::Json => format!("{:#}\n", view::json(shown)),
    })
}
