//! `peaklane countertest`: one change, registered before it is made, judged after it has run.

mod begin;
mod context;
mod end;
mod look;

use clap::{Args, Subcommand};
use peaklane_core::config::{ClockTime, Day};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;

pub(super) use look::look;

const EXAMPLES: &str = "\
Examples:
  peaklane countertest begin --change \"the newer model\" --lane lane-a
  peaklane countertest show                 what has changed so far, when it may end
  peaklane countertest end                  the verdict

Exit codes of `end`: 0 improved, or no change that matters; 1 worse; 2 nothing has changed, or more than one thing;
3 too early, or undecided.";

const BEGIN_EXAMPLES: &str = "\
Examples:
  peaklane countertest begin --change \"the newer model\" --lane lane-a
  peaklane countertest begin --change \"shorter prompt\" --lane lane-a --task inline-assist --beside lane-b
  peaklane countertest begin --change \"pay for it\" --lane lane-a --to lane-c --window 16:00";

const END_EXAMPLES: &str = "\
Examples:
  peaklane countertest end
  peaklane countertest end countertest-2026-12-01-lane-a-inline-assist --format json
  peaklane countertest end --give-up

Exit codes: 0 improved, or no change that matters; 1 worse; 2 nothing has changed, or more than one thing; 3 too early, or
undecided.";

const SHOW_EXAMPLES: &str = "\
Examples:
  peaklane countertest show
  peaklane countertest show countertest-2026-12-01-lane-a-inline-assist --format md";

/// Judge one change that is registered before it is made
///
/// `begin` notes what is; then the one change is made in the configuration, or the task class is moved to another lane; the
/// same bursts run again in the same windows; `end` compares both sides with an exact test.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct CountertestArgs {
    /// What to do.
    #[command(subcommand)]
    pub what: CountertestCommand,
}

/// What to do with a counter-test.
#[derive(Clone, Debug, Subcommand)]
pub enum CountertestCommand {
    #[allow(missing_docs, reason = "the words of the struct are the help text")]
    Begin(BeginArgs),
    #[allow(missing_docs, reason = "the words of the struct are the help text")]
    Show(ShowArgs),
    #[allow(missing_docs, reason = "the words of the struct are the help text")]
    End(EndArgs),
}

/// Register one change, before it is made
///
/// Notes lane, task class, parameters, prompt and windows as they are, and the newest campaign's bursts as those before.
#[derive(Args, Clone, Debug)]
#[command(after_help = BEGIN_EXAMPLES)]
pub struct BeginArgs {
    /// The change in your words; kept as they are. Example: `--change "the newer model"`
    #[arg(long, value_name = "WORDS")]
    pub change: String,

    /// Lane that is changed, or left with `--to`. Default: the only lane. Example: `--lane lane-a`
    #[arg(long, value_name = "NAME")]
    pub lane: Option<String>,

    /// Lane that the task class moves to: the change is the lane itself, nothing in the file changes. Default: none, the change
    /// is made in the file. Example: `--to lane-c`
    #[arg(long, value_name = "NAME")]
    pub to: Option<String>,

    /// Task class. Default: the only one. Example: `--task inline-assist`
    #[arg(long, value_name = "NAME")]
    pub task: Option<String>,

    /// Lane that stays as it is and runs beside. Default: the first other lane that was measured before. Example:
    /// `--beside lane-b`
    #[arg(long, value_name = "NAME")]
    pub beside: Option<String>,

    /// Begin of a window to compare; may be given several times. The peak decides, where it is among them, else the worst.
    /// Default: all of the campaign. Example: `--window 16:00`
    #[arg(long, value_name = "HH:MM")]
    pub window: Vec<ClockTime>,

    /// Site of the campaign. Default: the only one. Example: `--site berlin`
    #[arg(long, value_name = "NAME")]
    pub site: Option<String>,

    /// Register as at the end of this local day, for tests and audits; it is noted as no pre-registration. Default: now.
    /// Example: `--as-of 2026-11-25`
    #[arg(long, value_name = "DATE")]
    pub as_of: Option<Day>,
}

/// Show counter-tests: what has changed so far, when they may end, what came of them
#[derive(Args, Clone, Debug)]
#[command(after_help = SHOW_EXAMPLES)]
pub struct ShowArgs {
    /// Id of one. Default: all. Example: `countertest-2026-12-01-lane-a-inline-assist`
    #[arg(value_name = "ID")]
    pub id: Option<String>,

    /// Look as at the end of this local day. Default: now. Example: `--as-of 2026-11-28`
    #[arg(long, value_name = "DATE")]
    pub as_of: Option<Day>,
}

/// Judge a counter-test
///
/// Refused before the wait is over, and where nothing or more than one thing has changed. An undecided one stays open.
#[derive(Args, Clone, Debug)]
#[command(after_help = END_EXAMPLES)]
pub struct EndArgs {
    /// Id. Default: the only open one. Example: `countertest-2026-12-01-lane-a-inline-assist`
    #[arg(value_name = "ID")]
    pub id: Option<String>,

    /// Judge as at the end of this local day: bursts up to then, that day as today. Default: now. Example:
    /// `--as-of 2026-11-28`
    #[arg(long, value_name = "DATE")]
    pub as_of: Option<Day>,

    /// Close it without a verdict. Default: off. Example: `--give-up`
    #[arg(long)]
    pub give_up: bool,
}

/// Does it.
///
/// # Errors
/// [`Failure`] as the commands below have it.
pub fn run(args: &CountertestArgs, globals: &Globals) -> Result<Exit, Failure> {
    match &args.what {
        CountertestCommand::Begin(args) => begin::run(args, globals),
        CountertestCommand::Show(args) => end::show(args, globals),
        CountertestCommand::End(args) => end::run(args, globals),
    }
}
