//! `peaklane summary`: what was measured, from the store or from CSV files alone.

mod gather;
mod select;
mod status;

use std::path::{Path, PathBuf};

use clap::Args;
use peaklane_core::config::ClockTime;
use peaklane_core::rules::Thresholds;
use peaklane_core::summary::{LaneSummary, lane_summaries};
use peaklane_report::sentence::LaneView;
use peaklane_report::summary as view;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::{Format, Globals};
use crate::load::{FILE_NAME, ProcessEnvironment, load};
use crate::out;

pub use select::Since;

const EXAMPLES: &str = "\
Examples:
  peaklane summary                        everything in the store
  peaklane summary lane-a.csv lane-b.csv  CSV files alone, without a store
  peaklane summary --lane lane-a --since 2026-11-23
  peaklane summary --since 3d --format csv > lanes.csv
  peaklane summary --peak 16:00 lane-a.csv
  peaklane summary status                 is the campaign alive, what ran, what is next; exit code 1 where nobody watches it";

/// Show what was measured, window by window
///
/// Windows are never pooled into one figure of a lane: 95 % at 09:00 and 50 % at 16:00 is not a 72 % lane.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct SummaryArgs {
    /// Files written by `burst --csv`; a first word `lanes` may say what to show, `status` how the campaign
    /// of `watch` stands. Default: the lanes in the store. Example:
    /// `lane-a.csv lane-b.csv`
    #[arg(value_name = "FILES")]
    pub what: Vec<PathBuf>,

    /// Only these lanes; may be given several times or with commas. Default: all. Example: `--lane lane-a,lane-b`
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub lane: Vec<String>,

    /// Only these task classes; may be given several times or with commas. Default: all. Example: `--task inline-assist`
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub task: Vec<String>,

    /// Only bursts from then on: a local date of the burst, an instant, or so long ago. Default: all. Examples: `2026-11-23`,
    /// `2026-11-23T15:00:00Z`, `3d`
    #[arg(long, value_name = "WHEN")]
    pub since: Option<Since>,

    /// Only the bursts of this run (the `run` of `burst --format json`). Default: all. Example:
    /// `--run 20261130T150000.123456Z-3f9c`
    #[arg(long, value_name = "ID")]
    pub run: Option<String>,

    /// The window that is the peak, by its local begin. Default: the one that the configuration declares; where there is
    /// none, the worst window is marked. Example: `--peak 16:00`
    #[arg(long, value_name = "HH:MM")]
    pub peak: Option<ClockTime>,
}

/// Reads, sums up and prints.
///
/// # Errors
/// [`Failure`] when a source cannot be read, and with exit code 3 when there is nothing to sum up.
pub fn run(args: &SummaryArgs, globals: &Globals) -> Result<Exit, Failure> {
    if args.what == [Path::new("status")] {
        return status::run(globals);
    }
    let wish = select::Wish::new(args);
    let files = files(&args.what);
    let gathered = if files.is_empty() {
        gather::from_store(globals.store.path(), &wish)?
    } else {
        gather::from_files(files, &wish)?
    };
    for warning in gathered.told_warnings() {
        out::warn(globals, &warning);
    }
    if gathered.bursts.is_empty() {
        return Err(wish.nothing(&gathered));
    }
    let peak = match args.peak {
        Some(peak) => Some(peak),
        None => declared_peak(globals)?,
    };
    let summaries = lane_summaries(&gathered.data());
    out::print(&rendered(&summaries, peak, &gathered, globals)?)?;
    Ok(Exit::Fine)
}

fn rendered(
    summaries: &[LaneSummary],
    peak: Option<ClockTime>,
    gathered: &gather::Gathered,
    globals: &Globals,
) -> Result<String, Failure> {
    let peak = peak.map(|peak| peak.to_string());
    let views: Vec<LaneView<'_>> =
        summaries.iter().map(|summary| LaneView { summary, peak: peak.as_deref() }).collect();
    let thresholds = Thresholds::default();
    let failed = |error: &dyn std::error::Error| Failure::of(Exit::Unmeasured, error, None);
    Ok(match globals.format {
        Format::Table => view::render(&views, &thresholds, globals.width, globals.palette),
        Format::Md => view::markdown(&views, &thresholds),
        Format::Csv => view::csv(&views, &thresholds).map_err(|error| failed(&error))?,
        Format::Json => {
            let mut object = view::json(&views, &thresholds).map_err(|error| failed(&error))?;
            if let Value::Object(map) = &mut object {
                map.insert("sources".to_owned(), json!(gathered.sources));
                map.insert("warnings".to_owned(), json!(gathered.warnings));
            }
            format!("{object:#}\n")
        }
    })
}

/// The files among the words: a first word `lanes` says what to show.
fn files(what: &[PathBuf]) -> &[PathBuf] {
    match what {
        [first, rest @ ..] if first == Path::new("lanes") => rest,
        all => all,
    }
}

/// The peak of the configuration. A file that was named must be sound; one that happens to lie here may be anything: CSV
/// files are summed up without it.
fn declared_peak(globals: &Globals) -> Result<Option<ClockTime>, Failure> {
    let path = match &globals.config {
        Some(path) => path.as_path(),
        None if Path::new(FILE_NAME).is_file() => Path::new(FILE_NAME),
        None => return Ok(None),
    };
    match load(Some(path), &ProcessEnvironment) {
        Ok(loaded) => Ok(loaded.config.campaign.and_then(|campaign| campaign.declared_peak())),
        Err(error) if globals.config.is_some() => Err(error.into()),
        Err(error) => {
            out::warn(globals, &format!("{error}, so that no peak is known; `peaklane check` tells why"));
            Ok(None)
        }
    }
}
