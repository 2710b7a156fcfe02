//! `peaklane check`: looks at the configuration and tells what would be measured, without sending anything.

mod advice;
mod extent;
mod look;
mod view;

use clap::Args;
use serde_json::Value;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::{Format, Globals};
use crate::load::{Environment, LoadError, ProcessEnvironment, load};
use crate::out;

pub use extent::{Extent, PlannedDate};
pub use look::{CheckReport, Fault, KeyState, LaneLook, TaskLook};

const EXAMPLES: &str = "\
Examples:
  peaklane check
  peaklane check --config team.toml --strict
  peaklane check --format json | jq .extent.requests";

/// Validate the configuration and show what would be measured
///
/// Looks at every key, at the zone, at prompt files, at the addresses, and at whether each key can be read (it is never
/// shown). Nothing is sent to any lane.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct CheckArgs {
    /// Count a key variable that is not set here as a problem, not as a warning. Default: off, since the machine that
    /// measures may be another one. Example: `--strict`
    #[arg(long)]
    pub strict: bool,
}

/// Looks at everything and prints it.
///
/// # Errors
/// [`Failure`] with exit code 2 and all problems. With `--format json` the object is printed as well.
pub fn run(args: &CheckArgs, globals: &Globals) -> Result<Exit, Failure> {
    let environment = ProcessEnvironment;
    let report = match load(globals.config.as_deref(), &environment) {
        Ok(loaded) => look::look(&loaded, args.strict, &environment),
        Err(error) => return refused(error, globals, &environment),
    };
    let failure = failure_of(&report);
    match (globals.format, &failure) {
        (Format::Json, _) => out::print_json(&json_of(&report)?)?,
        (_, Some(_)) => {}
        (Format::Table, None) => out::print(&view::render(&report, globals.width, globals.palette))?,
        (Format::Md, None) => out::print(&view::markdown(&report))?,
        (Format::Csv, None) => out::print(&view::csv(&json_of(&report)?)?)?,
    }
    for warning in &report.warnings {
        out::warn(globals, warning);
    }
    failure.map_or(Ok(Exit::Fine), Err)
}

/// The configuration could not be loaded. What can be looked at all the same is told with it, so that nobody has to come
/// back for one problem after the other.
fn refused(error: LoadError, globals: &Globals, environment: &dyn Environment) -> Result<Exit, Failure> {
    let (source, mut faults) = look::faults_of(&error);
    let mut failure = Failure::from(error);
    if let Some(source) = &source {
        let more = look::further_faults(source, &faults, environment);
        for fault in &more {
            failure = failure.because(&fault.text);
        }
        faults.extend(more);
    }
    if globals.format == Format::Json {
        let source = source.map_or_else(|| "the environment".to_owned(), |path| path.display().to_string());
        out::print_json(&json_of(&CheckReport::refused(source, faults))?)?;
    }
    Err(failure)
}

fn failure_of(report: &CheckReport) -> Option<Failure> {
    if report.ok {
        return None;
    }
    let mut failure = Failure::usage(format!("cannot use the configuration `{}`", report.source));
    failure.causes = report.problems.iter().map(|fault| fault.text.clone()).collect();
    failure.hint = report.problems.iter().find_map(|fault| fault.hint.clone());
    Some(failure)
}

fn json_of(report: &CheckReport) -> Result<Value, Failure> {
    serde_json::to_value(report).map_err(|error| Failure::of(Exit::Unmeasured, &error, None))
}
