//! `peaklane summary`: what was measured, from the store or from CSV files alone.

mod calls;
mod gather;
mod history;
mod select;
mod series;
mod sessions;
mod status;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::tz::TimeZone;
use peaklane_core::config::{ClockTime, Config, Price};
use peaklane_core::summary::{LaneSummary, lane_hours, lane_summaries};
use peaklane_report::extra::WindowExtra;
use peaklane_report::sentence::LaneView;
use peaklane_report::summary as view;
use peaklane_report::units::counted;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::{Format, Globals};
use crate::load::{FILE_NAME, ProcessEnvironment, load, time_zone};
use crate::out;

pub use select::Since;
use series::{Known, Series, extras};

const EXAMPLES: &str = "\
Examples:
  peaklane summary                        everything in the store
  peaklane summary lane-a.csv lane-b.csv  CSV files alone, without a store
  peaklane summary --lane lane-a --since 2026-11-23
  peaklane summary --since 3d --format csv > lanes.csv
  peaklane summary --peak 16:00 lane-a.csv
  peaklane summary status                 is the campaign alive, what ran, what is next
  peaklane summary history                what happened beside the measurements
  peaklane summary sessions               sessions of harnesses: time, tokens, broken prefixes, cost
  peaklane summary sessions run.jsonl     the same of sessions that were recorded elsewhere
  peaklane summary calls --session run-1 --format json

`summary status` ends with 1 where nobody watches a campaign that is due.";

/// Show what was measured, window by window
///
/// Windows are never pooled into one figure of a lane: 95 % at 09:00 and 50 % at 16:00 is not a 72 % lane.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct SummaryArgs {
    /// Files written by `burst --csv`; a first word says what to show: `lanes`, `status` (how the campaign of `watch` stands),
    /// `history` (what happened beside the measurements), `sessions` or `calls` (of harnesses, as `proxy` recorded them; trace
    /// files may follow `sessions`). Default: the lanes in the store. Example: `lane-a.csv lane-b.csv`
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

    /// Only the campaign whose id begins so; `all` shows each apart. Default: the newest campaign of each site, and bursts by
    /// hand. Example: `--campaign 7f3a9c01b2d4-2026-11-30`
    #[arg(long, value_name = "ID")]
    pub campaign: Option<String>,

    /// Only this session of a harness. Default: all. Example: `--session run-1`
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,

    /// Only so many of the newest calls or sessions. Default: all sessions; 50 calls in a table. Example: `--last 20`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub last: Option<u32>,

    /// Only calls that got no whole answer, and sessions with such calls. Default: all. Example: `--failed`
    #[arg(long)]
    pub failed: bool,

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
    let (subject, files) = subject(&args.what);
    let store = globals.store.path();
    let config = configuration(globals)?;
    if subject == Subject::History {
        if let Some(file) = files.first() {
            return Err(Failure::usage(format!("`{}` has no history", file.display()))
                .with_hint("events are kept in the store alone: leave out the files"));
        }
        let zone = config.as_ref().and_then(|c| c.time_zone.as_deref()).and_then(|name| time_zone(name).ok());
        return history::run(store, &wish, &zone.unwrap_or_else(TimeZone::system), globals);
    }
    match subject {
        Subject::Sessions => return sessions::run(files, args, &wish, config.as_ref(), globals),
        Subject::Calls => {
            if let Some(file) = files.first() {
                return Err(Failure::usage(format!("calls are not read from `{}`", file.display()))
                    .with_hint("calls are in the store alone; `summary sessions FILE` reads recorded sessions"));
            }
            return calls::run(args, &wish, config.as_ref(), globals);
        }
        Subject::Lanes | Subject::History => {}
    }
    let of_calls = [(args.session.is_some(), "--session"), (args.last.is_some(), "--last"), (args.failed, "--failed")];
    if let Some((_, option)) = of_calls.iter().find(|(given, _)| *given) {
        return Err(Failure::usage(format!("`{option}` narrows calls and sessions, not lanes"))
            .with_hint("say what to show first: `peaklane summary sessions` or `peaklane summary calls`"));
    }
    let from_store = files.is_empty();
    let mut gathered = if from_store { gather::from_store(store, &wish)? } else { gather::from_files(files, &wish)? };
    for warning in gathered.told_warnings() {
        out::warn(globals, &warning);
    }
    let series = Series::of(args.campaign.as_deref().or(args.run.as_ref().map(|_| "all")));
    let left_out = series.narrow(&mut gathered);
    if gathered.bursts.is_empty() {
        return Err(nothing(&series, &left_out, &wish, &gathered));
    }
    let mut summaries = lane_summaries(&gathered.data());
    let known = if from_store { Known::read(store, &summaries)? } else { HashMap::new() };
    let of_campaign = |lane: &LaneSummary| lane.campaign.as_ref().and_then(|id| known.get(id));
    for lane in &mut summaries {
        if let Some(known) = of_campaign(lane) {
            known.complete(lane);
        }
    }
    out::print(&rendered(&summaries, args, config.as_ref(), &known, &gathered, globals)?)?;
    if !left_out.is_empty() {
        let list: Vec<String> =
            left_out.iter().map(|(id, bursts)| format!("{id} ({})", counted(*bursts as u64, "burst"))).collect();
        let text = format!(
            "other campaigns are not mixed in: {}; `--campaign ID` shows one, `--campaign all` each",
            list.join(", ")
        );
        out::note(globals, &text);
    }
    Ok(Exit::Fine)
}

fn nothing(series: &Series, left_out: &[(String, usize)], wish: &select::Wish, gathered: &gather::Gathered) -> Failure {
    match series {
        Series::One(id) if !left_out.is_empty() || gathered.seen > 0 => {
            let ids: Vec<&str> = left_out.iter().map(|(id, _)| id.as_str()).collect();
            Failure::unmeasured(format!("no burst is of a campaign `{id}`")).with_hint(match ids.as_slice() {
                [] => "there are bursts by hand only: leave out `--campaign`".to_owned(),
                ids => format!("the campaigns are {}", ids.join(", ")),
            })
        }
        _ => wish.nothing(gathered),
    }
}

fn rendered(
    summaries: &[LaneSummary],
    args: &SummaryArgs,
    config: Option<&Config>,
    known: &HashMap<String, Known>,
    gathered: &gather::Gathered,
    globals: &Globals,
) -> Result<String, Failure> {
    let thresholds = config.map(|config| config.rules.thresholds()).unwrap_or_default();
    let failed = |error: &dyn std::error::Error| Failure::of(Exit::Unmeasured, error, None);
    let of_campaign = |lane: &LaneSummary| lane.campaign.as_ref().and_then(|id| known.get(id));
    // What a campaign declared goes before what stands in the file now; what was asked for by hand goes before both.
    let peaks: Vec<Option<String>> = summaries
        .iter()
        .map(|lane| {
            let by_hand = args.peak.map(|peak| peak.to_string());
            let declared = || config.and_then(|c| peak_of(c, lane.site.as_deref()));
            by_hand.or_else(|| of_campaign(lane).map_or_else(declared, Known::peak))
        })
        .collect();
    let extras: Vec<Vec<WindowExtra>> =
        summaries.iter().map(|lane| extras(lane, gathered, of_campaign(lane), price_in(config, &lane.lane))).collect();
    // Too many attempts for an exact test: then nothing is said of chance.
    let hours = lane_hours(summaries, &thresholds).ok();
    let views: Vec<LaneView<'_>> = summaries
        .iter()
        .enumerate()
        .map(|(index, summary)| LaneView {
            summary,
            peak: peaks[index].as_deref(),
            hours: hours.as_ref().map(|hours| &hours[index]),
            extra: &extras[index],
        })
        .collect();
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

/// The price of a lane by token, where the configuration states one.
fn price_in<'a>(config: Option<&'a Config>, lane: &str) -> Option<&'a Price> {
    config?.lane(lane)?.price.as_ref()
}

/// What is to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Lanes,
    History,
    Sessions,
    Calls,
}

/// The subject and the files among the words: the first word may say what to show.
fn subject(what: &[PathBuf]) -> (Subject, &[PathBuf]) {
    match what {
        [first, rest @ ..] if first == Path::new("lanes") => (Subject::Lanes, rest),
        [first, rest @ ..] if first == Path::new("history") => (Subject::History, rest),
        [first, rest @ ..] if first == Path::new("sessions") => (Subject::Sessions, rest),
        [first, rest @ ..] if first == Path::new("calls") => (Subject::Calls, rest),
        all => (Subject::Lanes, all),
    }
}

/// The peak that a configuration declares for a site.
fn peak_of(config: &Config, site: Option<&str>) -> Option<String> {
    let of_site = config.sites().into_iter().find(|one| one.name.as_deref() == site).map(|one| one.campaign);
    of_site.or_else(|| config.campaign.clone())?.declared_peak().map(|peak| peak.to_string())
}

/// The configuration, for peaks, thresholds and prices. A file that was named must be sound; one that happens to lie here may
/// be anything: CSV files are summed up without it.
fn configuration(globals: &Globals) -> Result<Option<Config>, Failure> {
    let path = match &globals.config {
        Some(path) => path.as_path(),
        None if Path::new(FILE_NAME).is_file() => Path::new(FILE_NAME),
        None => return Ok(None),
    };
    match load(Some(path), &ProcessEnvironment) {
        Ok(loaded) => Ok(Some(loaded.config)),
        Err(error) if globals.config.is_some() => Err(error.into()),
        Err(error) => {
            out::warn(globals, &format!("{error}, so that no peak is known; `peaklane check` tells why"));
            Ok(None)
        }
    }
}
