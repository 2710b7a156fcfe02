//! `peaklane watch`: every burst of a campaign when its window comes.

mod gun;
mod plan;
mod print;
mod run;

use clap::{Args, ValueEnum};
use peaklane_core::config::{Config, SiteCampaign};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::load::{ProcessEnvironment, load, zones};
use crate::out;

const EXAMPLES: &str = "\
Examples:
  peaklane watch --dry-run         every planned burst with its instant; nothing is sent
  peaklane watch                   run them, for the days of the campaign and at the peak after it
  peaklane watch --due             run what is due now and end: for cron, timers and CronJobs
  peaklane watch --print systemd   a unit that does it (also cron, k8s)

Exit codes: 0 the campaign is over, or it was stopped by Ctrl-C; with --due whatever ran. 2 wrong configuration, no key. 3 the
budget stopped the campaign, or the store could not be opened.";

/// Run each burst of the campaign when its local window comes
///
/// Survives restarts, sleep, clock steps and changes of local time: a window that was missed is recorded as missed, never made
/// up later, and counts neither as pass nor as failure. Any number of watchers may share a store; each burst runs once.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct WatchArgs {
    /// Run what is due now and end. Default: off, wait for the next window. Example: `--due`
    #[arg(long, conflicts_with_all = ["dry_run", "print"])]
    pub due: bool,

    /// Begin a new campaign even where one with the same plan is in the store; that one ends. Default: off, the campaign with
    /// this plan goes on. Example: `--fresh`
    #[arg(long, conflicts_with_all = ["dry_run", "print", "due"])]
    pub fresh: bool,

    /// Show every planned burst, past ones too; nothing is sent, no store is touched, no key is read. Default: off. Example:
    /// `--dry-run --format json`
    #[arg(long, conflicts_with = "print")]
    pub dry_run: bool,

    /// Print what starts the watcher by itself: `systemd` (a service), `cron` (a line for a crontab) or `k8s` (a CronJob).
    /// Default: none. Example: `--print systemd`
    #[arg(long, value_enum, value_name = "FORM", hide_possible_values = true)]
    pub print: Option<PrintForm>,
}

/// What can start a watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PrintForm {
    /// A systemd service.
    Systemd,
    /// A line for a crontab.
    Cron,
    /// A Kubernetes CronJob.
    K8s,
}

/// Plans, prints or watches.
///
/// # Errors
/// [`Failure`]: exit code 2 for a configuration or a key that cannot be used, 3 for a budget that stopped the campaign and for
/// a store that cannot be opened.
pub fn run(args: &WatchArgs, globals: &Globals) -> Result<Exit, Failure> {
    let loaded = load(globals.config.as_deref(), &ProcessEnvironment)?;
    let sites = sites(&loaded.config)?;
    out::detail(globals, &zones().to_string());
    if args.dry_run {
        return plan::show(&loaded.config, &sites, globals);
    }
    if let Some(form) = args.print {
        return print::show(form, &loaded, globals);
    }
    run::run(args, &loaded.config, &sites, globals)
}

/// The campaigns of all sites; a configuration without any has nothing to watch.
fn sites(config: &Config) -> Result<Vec<SiteCampaign>, Failure> {
    let sites = config.sites();
    if sites.is_empty() {
        return Err(Failure::usage("the configuration has no [campaign]: there is no window to watch")
            .with_hint("add `[campaign]` and `time_zone`, for example out of `peaklane init`, or fire one burst now: `peaklane burst`"));
    }
    if config.tasks.is_empty() {
        return Err(Failure::usage("the configuration has no task class")
            .with_hint("add a [[task]] with `floor = \"25s\"` or with `tasks_per_hour = 60`"));
    }
    Ok(sites)
}
