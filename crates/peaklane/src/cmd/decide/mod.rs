//! `peaklane decide`: which lane a task class goes to, by written rules, and whether that still holds.

mod gather;
mod notify;
mod record;
mod settings;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use peaklane_core::choice::{Choice, Inputs, choices};
use peaklane_core::config::{ClockTime, Day};
use peaklane_report::choice as view;
use serde_json::json;

use self::gather::{Gathered, Place};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::{Format, Globals};
use crate::load::time_zone;
use crate::out;

const EXAMPLES: &str = "\
Examples:
  peaklane decide                             the newest campaign of each site
  peaklane decide -v                          with the trade-off table
  peaklane decide lane-a.csv lane-b.csv --peak 16:00
  peaklane decide --record decisions          write the dated record
  peaklane decide --as-of 2026-12-14          as it was on that day
  peaklane decide --routing litellm > config.yaml
  peaklane decide --notify                    tell [notify] when the exit code is 1";

/// Decide which lane holds at the peak, and whether that still holds
///
/// Exits with 1 when a trigger fired or the newest decision on record has expired, and with 3 when there is too little data
/// to decide. That no lane holds is an answer, and exits with 0.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct DecideArgs {
    /// CSV files to decide from instead of the store; they know no campaign and no record. Default: the store. Example:
    /// `lane-a.csv lane-b.csv`
    #[arg(value_name = "FILES")]
    pub files: Vec<PathBuf>,

    /// Only these task classes; may be given several times or with commas. Default: all. Example: `--task inline-assist`
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub task: Vec<String>,

    /// Only these sites; may be given several times or with commas. Default: all. Example: `--site berlin`
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub site: Vec<String>,

    /// The window that is the peak, where no campaign locked one. Default: that of the configuration, else the worst window
    /// decides. Example: `--peak 16:00`
    #[arg(long, value_name = "HH:MM")]
    pub peak: Option<ClockTime>,

    /// Decide as if it were the end of that local day: later bursts and records do not count. Default: now. Example:
    /// `--as-of 2026-12-14`
    #[arg(long, value_name = "DATE")]
    pub as_of: Option<Day>,

    /// Write the decision record (Markdown and JSON) into this folder, and into the store. Default: nothing is written.
    /// Example: `--record decisions`
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,

    /// Print what is decided as the configuration of a router instead: `litellm` (YAML) or `json` (hours and lanes). Default:
    /// off. Example: `--routing litellm`
    #[arg(long, value_enum, value_name = "FORM", hide_possible_values = true, conflicts_with = "format")]
    pub routing: Option<Routing>,

    /// Tell the webhook and the command of `[notify]`: `negative` (exit code 1, also what the option means alone) or
    /// `always`. Default: nobody is told. Example: `--notify always`
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        num_args = 0..=1,
        default_missing_value = "negative",
        hide_possible_values = true
    )]
    pub notify: Option<NotifyWhen>,
}

/// The form of a routing configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Routing {
    /// A `config.yaml` of LiteLLM.
    Litellm,
    /// Hours and lanes.
    Json,
}

/// When somebody is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NotifyWhen {
    /// When a trigger fired or a decision expired.
    Negative,
    /// Each time.
    Always,
}

/// Gathers, decides, records, prints, tells.
///
/// # Errors
/// [`Failure`] when a source cannot be read or a record not be written, and with exit code 3 when there is nothing to decide
/// from.
pub fn run(args: &DecideArgs, globals: &Globals) -> Result<Exit, Failure> {
    let from_files = !args.files.is_empty();
    let config = settings::configuration(globals, from_files)?;
    let now = Timestamp::now();
    let gathered = if from_files {
        gather::from_files(&args.files, args.as_of)?
    } else {
        gather::from_store(globals.store.path(), config.as_ref(), args.as_of, now)?
    };
    for warning in &gathered.warnings {
        out::warn(globals, warning);
    }
    let zones = |name: &str| time_zone(name).ok();
    let mut all: Vec<Choice> = Vec::new();
    for place in gathered.places.iter().filter(|p| wanted(&args.site, p.site.as_deref().unwrap_or_default())) {
        for warning in settings::changed(place, config.as_ref()) {
            out::warn(globals, &warning);
        }
        let inputs = Inputs {
            site: place.site.as_deref(),
            time_zone: place.zone.as_deref(),
            campaign: place.campaign.as_ref().map(|(id, locked)| (id.as_str(), locked)),
            config: config.as_ref(),
            peak: args.peak.map(|peak| peak.to_string()),
            bursts: &place.bursts,
            gaps: &place.gaps,
            recorded: &gathered.recorded,
            as_of: today(args, place, now),
            whole_day: args.as_of.is_some(),
            zones: &zones,
        };
        all.extend(choices(&inputs).into_iter().filter(|c| wanted(&args.task, &c.task)));
    }
    if all.is_empty() {
        return Err(nothing(args, &gathered, globals));
    }
    let fired = all.iter().any(Choice::fired);
    if let Some(folder) = &args.record {
        record::write(folder, &mut all, (!from_files).then(|| globals.store.path()), globals)?;
    }
    let exit = verdict(&all, fired);
    let text = match args.routing {
        Some(form) => routing(form, &all, config.as_ref())?,
        None => rendered(&all, &gathered, exit, globals)?,
    };
    out::print(&text)?;
    if let Some(when) = args.notify
        && (when == NotifyWhen::Always || exit == Exit::Negative)
    {
        notify::tell(&all, exit, config.as_ref(), globals);
    }
    Ok(exit)
}

fn wanted(names: &[String], name: &str) -> bool {
    names.is_empty() || names.iter().any(|one| one == name)
}

/// The local date of the question. Files that name no zone have UTC.
fn today(args: &DecideArgs, place: &Place, now: Timestamp) -> Day {
    let zone = place.zone.as_deref().and_then(|name| time_zone(name).ok()).unwrap_or(TimeZone::UTC);
    let local = || zone.to_datetime(now).date().to_string().parse().ok();
    args.as_of.or_else(local).unwrap_or_else(|| gather::EPOCH_DAY.parse().expect("a date of the calendar"))
}

/// A negative verdict goes first: what is known to be bad needs no further data.
fn verdict(all: &[Choice], fired: bool) -> Exit {
    if fired || all.iter().any(Choice::expired) {
        Exit::Negative
    } else if all.iter().any(Choice::lacks_data) {
        Exit::Unmeasured
    } else {
        Exit::Fine
    }
}

fn rendered(all: &[Choice], gathered: &Gathered, exit: Exit, globals: &Globals) -> Result<String, Failure> {
    let detail = if globals.verbose > 0 { view::Detail::Full } else { view::Detail::Short };
    Ok(match globals.format {
        Format::Table => view::render(all, detail, globals.width, globals.palette),
        Format::Md => view::markdown(all),
        Format::Csv => view::csv(all).map_err(|e| Failure::of(Exit::Unmeasured, &e, None))?,
        Format::Json => {
            let object = json!({
                "decisions": view::json(all),
                "sources": gathered.sources,
                "exit_code": exit.code(),
                "tool_version": env!("CARGO_PKG_VERSION"),
            });
            format!("{object:#}\n")
        }
    })
}

fn routing(form: Routing, all: &[Choice], config: Option<&peaklane_core::config::Config>) -> Result<String, Failure> {
    let refused = |e: view::NoRouting| Failure::of(Exit::Unmeasured, &e, e.hint());
    match form {
        Routing::Json => Ok(format!("{:#}\n", view::routing_json(all).map_err(refused)?)),
        Routing::Litellm => {
            let config = config.ok_or_else(|| {
                Failure::usage("a router needs addresses and models, and no configuration is there")
                    .with_hint("name the configuration of the campaign with `--config FILE`")
            })?;
            view::litellm(all, config).map_err(refused)
        }
    }
}

/// What to say when there is nothing to decide from.
fn nothing(args: &DecideArgs, gathered: &Gathered, globals: &Globals) -> Failure {
    let sources = gathered.sources.iter().map(|s| format!("`{s}`")).collect::<Vec<_>>().join(", ");
    let asked = !args.task.is_empty() || !args.site.is_empty();
    if asked && gathered.places.iter().any(|p| !p.bursts.is_empty() || p.campaign.is_some()) {
        return Failure::unmeasured(format!("nothing in {sources} is of the site or task class that was asked for"))
            .with_hint("leave out `--task` and `--site` to see what there is");
    }
    let what = if args.as_of.is_some() { " by that day" } else { "" };
    let hint = if globals.config.is_some() || args.files.is_empty() {
        "run `peaklane watch`: it fires the bursts of `[campaign]` when their windows come"
    } else {
        "bursts of `peaklane burst` belong to no window; `peaklane watch` makes those that do"
    };
    Failure::unmeasured(format!("there is no burst of a window in {sources}{what}")).with_hint(hint)
}
