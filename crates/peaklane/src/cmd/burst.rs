//! `peaklane burst`: one burst at each lane, now.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use peaklane_core::burst::{BurstHeader, Connections, PromptMode};
use peaklane_core::check::Check;
use peaklane_core::config::{ClockTime, Config, LEAST_STRETCH, LaneOrder, MOST_STRETCH, Micros, Task, TaskKind};
use peaklane_core::rules::Thresholds;
use peaklane_report::burst::{self as render, BurstView};
use peaklane_run::burst::{Fired, Stop};
use peaklane_run::fleet::{Shot, fire_all};
use peaklane_run::recorder::{RecordError, Recorder};
use peaklane_store::Store;
use peaklane_wire::lag::LagProbe;
use rand::RngExt as _;

use super::booked::book;
use super::countertest;
use super::lanes::{AdHoc, Chosen, choose, event_loop};
use super::progress::Progress;
use super::shots::{Mould, Occasion, Pace, guard_together};
use super::system::{raise_file_limit, stop_on_signal, survive_the_file_size_limit};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::{Format, Globals};
use crate::out;

const EXAMPLES: &str = "\
Examples:
  peaklane burst                   every lane of peaklane.toml, every task class
  peaklane burst --lane lane-a --task inline-assist
  peaklane burst --csv lane-a.csv  one row per attempt, beside the store
  peaklane burst --base-url http://127.0.0.1:8080/v1 --model m --expect 'def '
  peaklane burst --attempts 64 --concurrency 8
  peaklane burst --task nightly --stretch 30s  a batch class, for half a minute

A lane that fails is a recorded result: exit code 0.";

/// Fire one burst at each lane, now, and record it
///
/// The attempts of a burst are released together (or spaced, or a given number at once), each is judged against the floor and
/// the check of its task, and latency counts from the intended start, retries and waits included. A batch class works for a
/// sustained stretch instead and is judged by right answers per hour.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct BurstArgs {
    /// Lane of the configuration, more than once for several. Default: all. Example: `--lane lane-a --lane lane-c`
    #[arg(long, value_name = "NAME", conflicts_with_all = ["base_url", "model"])]
    pub lane: Vec<String>,

    /// Task class of the configuration, more than once for several; a batch class is judged by right answers per hour. Default:
    /// all with a latency floor. Example: `--task inline-assist`
    #[arg(long, value_name = "NAME")]
    pub task: Vec<String>,

    /// Attempts of the burst. Default: 8, or the configuration's; a batch class works for its stretch instead. Example:
    /// `--attempts 64`
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub attempts: Option<u32>,

    /// How long a batch class works, 1s to 4h: attempts keep being begun until then. Default: the task's `stretch`, or 10m.
    /// Example: `--task nightly --stretch 30s`
    #[arg(long, value_name = "TIME", conflicts_with_all = ["attempts", "spacing", "floor"])]
    pub stretch: Option<Micros>,

    /// Most attempts in flight at once: a closed loop. Default: all released together; 8 for a batch class. Example:
    /// `--concurrency 8`
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub concurrency: Option<u32>,

    /// Time between two intended starts. Default: 0s, together. Example: `--spacing 500ms`
    #[arg(long, value_name = "TIME")]
    pub spacing: Option<Micros>,

    /// Warm-up attempts before the burst, kept apart. Default: 1, or the configuration's; 0 for a lane of the command line or
    /// the environment. Example: `--warmup 2`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=10), conflicts_with = "no_warmup")]
    pub warmup: Option<u32>,

    /// No warm-up attempt. Default: off. Example: `--no-warmup`
    #[arg(long)]
    pub no_warmup: bool,

    /// `nonce`: each prompt begins differently, so that no prefix cache answers; `identical`: all the same bytes, which measures
    /// the cache too. Default: nonce. Example: `--prompt-mode identical`
    #[arg(long, value_enum, value_name = "MODE", hide_possible_values = true)]
    pub prompt_mode: Option<Mode>,

    /// `before`: connections are opened before the burst; `inside`: the handshake is part of the latency. Default: before.
    /// Example: `--connections inside`
    #[arg(long, value_enum, value_name = "WHEN", hide_possible_values = true)]
    pub connections: Option<When>,

    /// `random`: one lane after the other in a drawn order; `interleaved`: all lanes at once. Default: random. Example:
    /// `--order interleaved`
    #[arg(long, value_enum, value_name = "ORDER", hide_possible_values = true)]
    pub order: Option<Order>,

    /// Retries of an attempt after a failure that may pass. Default: 2, or the configuration's. Example: `--retries 0`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=100))]
    pub retries: Option<u32>,

    /// Slowest latency that passes. Default: the task's floor (25s). Example: `--floor 10s`
    #[arg(long, value_name = "TIME")]
    pub floor: Option<Micros>,

    /// Text that a right answer contains. Default: the task's own check. Example: `--expect "def median"`
    #[arg(long, value_name = "TEXT")]
    pub expect: Option<String>,

    /// Judge an answer that used up its budget of tokens like any other. Default: off, it is a configuration finding. Example:
    /// `--accept-budget-stop --max-tokens 64`
    #[arg(long)]
    pub accept_budget_stop: bool,

    /// Seed of nonces, lane order and the `seed` that is sent. Default: drawn and recorded. Example: `--seed 7`
    #[arg(long, value_name = "N")]
    pub seed: Option<u32>,

    /// Append one row per attempt to this CSV file. Default: none. Example: `--csv lane-a.csv`
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,

    /// Record nothing in the store. Default: off. Example: `--no-store --csv lane-a.csv`
    #[arg(long)]
    pub no_store: bool,

    /// Book the burst under this window of the campaign, while it is open: for a counter-test, or where no `watch` runs. Default:
    /// none, it belongs to no window. Example: `--window 16:00`
    #[arg(long, value_name = "HH:MM", conflicts_with_all = ["base_url", "model"])]
    pub window: Option<ClockTime>,

    /// Record no texts: no answers, reasoning, tool arguments, words of the server or request ids. Default: `texts` of
    /// `[privacy]`, which keeps them. Example: `--no-texts`
    #[arg(long)]
    pub no_texts: bool,

    #[allow(missing_docs, reason = "the words of the struct are the help text")]
    #[command(flatten)]
    pub ad_hoc: AdHoc,
}

/// Whether the attempts of a burst share one prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Each begins differently.
    Nonce,
    /// All the same bytes.
    Identical,
}

/// When connections are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// Before the burst.
    Before,
    /// Inside the attempt.
    Inside,
}

/// In which order lanes have their turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// One after the other, drawn.
    Random,
    /// All at once.
    Interleaved,
}

/// Fires, records and prints.
///
/// # Errors
/// [`Failure`]: exit code 2 for lanes or options that cannot be used, 3 when a record cannot be kept. A lane that fails is a
/// result.
pub fn run(args: &BurstArgs, globals: &Globals) -> Result<Exit, Failure> {
    let mut chosen = choose(&args.ad_hoc, &args.lane, globals)?;
    if !chosen.by_hand && !args.no_store {
        countertest::look(&chosen.config, globals.store.path(), globals);
    }
    override_settings(args, &mut chosen);
    let tasks = tasks(args, &chosen.config)?;
    let paces: Vec<Pace> = tasks.iter().map(|task| pace(args, task, &chosen.config)).collect();
    guard_together(&paces)?;
    let at_once = paces.iter().map(Pace::at_once).max().unwrap_or_default();
    raise_file_limit(at_once, chosen.config.burst.order, chosen.lanes.len())?;
    let seed = chosen.config.burst.seed.unwrap_or_else(|| u64::from(rand::rng().random::<u32>()));

    let runtime = event_loop()?;
    survive_the_file_size_limit(&runtime);
    let store = (!args.no_store).then(|| Store::open(globals.store.path())).transpose()?;
    let mut recorder = Recorder::nowhere().keeping_texts(chosen.config.privacy.texts && !args.no_texts);
    if let Some(store) = &store {
        recorder = recorder.with_store(store.sink());
    }
    if let Some(path) = &args.csv {
        recorder = recorder.with_csv(path)?;
    }

    let (fired, interrupted) = runtime.block_on(async {
        let lag = Arc::new(LagProbe::start());
        let (pull, stop) = Stop::pair();
        stop_on_signal(pull);
        let mut fired = Vec::new();
        for task in &tasks {
            let shots = shots(&chosen, task, args, seed, &lag)?;
            let planned: Vec<&BurstHeader> = shots.iter().map(|shot| &shot.plan.header).collect();
            let progress = Progress::new(&planned, globals);
            let order = chosen.config.burst.order;
            let result = fire_all(&shots, order, &recorder, &lag, &stop, |lane, e| progress.event(lane, e)).await;
            progress.finish();
            fired.extend(result?.into_iter().flatten());
        }
        Ok::<_, Failure>((fired, stop.is_pulled()))
    })?;
    drop(recorder);
    if let Some(store) = store {
        store.close()?;
    }
    print(&fired, &chosen.config.rules.thresholds(), globals)?;
    if interrupted {
        return Err(Failure::unmeasured("interrupted before all attempts were made")
            .with_hint("what was made is recorded; an interrupted burst counts neither as pass nor as failure"));
    }
    Ok(Exit::Fine)
}

fn override_settings(args: &BurstArgs, chosen: &mut Chosen) {
    let burst = &mut chosen.config.burst;
    burst.attempts = args.attempts.unwrap_or(burst.attempts);
    burst.concurrency = args.concurrency.or(burst.concurrency);
    burst.spacing = args.spacing.unwrap_or(burst.spacing);
    burst.warmup = if args.no_warmup { 0 } else { args.warmup.unwrap_or(burst.warmup) };
    burst.seed = args.seed.map(u64::from).or(burst.seed);
    if let Some(mode) = args.prompt_mode {
        burst.prompt_mode = match mode {
            Mode::Nonce => PromptMode::Nonce,
            Mode::Identical => PromptMode::Identical,
        };
    }
    if let Some(when) = args.connections {
        burst.connections = match when {
            When::Before => Connections::Before,
            When::Inside => Connections::Inside,
        };
    }
    if let Some(order) = args.order {
        burst.order = match order {
            Order::Random => LaneOrder::Random,
            Order::Interleaved => LaneOrder::Interleaved,
        };
    }
    chosen.config.retry.max = args.retries.unwrap_or(chosen.config.retry.max);
}

fn tasks(args: &BurstArgs, config: &Config) -> Result<Vec<Task>, Failure> {
    let mut tasks: Vec<Task> = if args.task.is_empty() {
        let latency: Vec<Task> = config.tasks.iter().filter(|t| t.judged_by() == TaskKind::Latency).cloned().collect();
        if latency.is_empty() { config.tasks.clone() } else { latency }
    } else {
        let named = |name: &String| {
            config.task(name).cloned().ok_or_else(|| {
                let known: Vec<&str> = config.tasks.iter().map(|t| t.name.as_str()).collect();
                Failure::usage(format!("no task class is called `{name}`"))
                    .with_hint(format!("the task classes are {}", known.join(", ")))
            })
        };
        args.task.iter().map(named).collect::<Result<_, _>>()?
    };
    if let Some(stretch) = args.stretch {
        check_stretch(stretch, &tasks)?;
    }
    for task in &mut tasks {
        task.floor = args.floor.or(task.floor);
        args.ad_hoc.adjust(task);
        if let Some(text) = &args.expect {
            task.check = Check::Contains(text.clone());
        }
        task.accept_budget_stop |= args.accept_budget_stop;
    }
    if tasks.is_empty() {
        return Err(Failure::usage("the configuration has no task class")
            .with_hint("add a [[task]] with `floor = \"25s\"` or with `tasks_per_hour = 60`"));
    }
    Ok(tasks)
}

fn check_stretch(stretch: Micros, tasks: &[Task]) -> Result<(), Failure> {
    if !(LEAST_STRETCH..=MOST_STRETCH).contains(&stretch) {
        return Err(Failure::usage(format!("`--stretch` is {stretch}"))
            .with_hint(format!("write {LEAST_STRETCH} to {MOST_STRETCH}")));
    }
    match tasks.iter().find(|task| task.judged_by() != TaskKind::Batch) {
        Some(task) => Err(Failure::usage(format!("task class `{}` has a latency floor and no stretch", task.name))
            .with_hint("name a batch class with `--task`: one that has `tasks_per_hour`")),
        None => Ok(()),
    }
}

/// A batch class works for its stretch, unless a number, a spacing or a latency floor is asked for.
fn pace(args: &BurstArgs, task: &Task, config: &Config) -> Pace {
    let mut pace = Pace::of(config, task);
    pace.concurrency = args.concurrency.or(pace.concurrency);
    pace.stretch = pace.stretch.map(|stretch| args.stretch.unwrap_or(stretch));
    if args.attempts.is_some() || args.spacing.is_some() || args.floor.is_some() {
        (pace.attempts, pace.stretch) = (config.burst.attempts, None);
    }
    pace
}

/// One shot for each lane: all of one run, with one seed and so with the same prompts.
fn shots(chosen: &Chosen, task: &Task, args: &BurstArgs, seed: u64, lag: &Arc<LagProbe>) -> Result<Vec<Shot>, Failure> {
    let config = &chosen.config;
    let batch = task.judged_by() == TaskKind::Batch && args.floor.is_none();
    let mut occasion = Occasion::now(config.time_zone.as_deref(), seed);
    if let Some(window) = args.window {
        book(&mut occasion, config, window)?;
    }
    let limits = args.ad_hoc.limits(config);
    let mould = Mould { config, task, limits, stream: !args.ad_hoc.no_stream, batch, pace: pace(args, task, config) };
    chosen.lanes.iter().map(|lane| mould.shot(lane, &occasion, lag)).collect()
}

fn print(fired: &[Fired], thresholds: &Thresholds, globals: &Globals) -> Result<(), Failure> {
    let views: Vec<BurstView<'_>> = fired
        .iter()
        .map(|f| BurstView {
            summary: &f.summary,
            end: Some(&f.end),
            warmup: f.warmup.first(),
            handshake_us: f.handshake_us,
            findings: f.end.finding.iter().cloned().collect(),
        })
        .collect();
    let broken = |e: &dyn std::error::Error| Failure::of(Exit::Unmeasured, e, None);
    out::print(&match globals.format {
        Format::Table => render::render(&views, thresholds, globals.width, globals.palette),
        Format::Json => format!("{:#}\n", render::json(&views, thresholds).map_err(|e| broken(&e))?),
        Format::Csv => render::csv(&views, thresholds).map_err(|e| broken(&e))?,
        Format::Md => render::markdown(&views, thresholds),
    })
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::Store(e) => e.into(),
            RecordError::Csv(e) => e.into(),
            other => Self::of(Exit::Unmeasured, &other, other.hint()),
        }
    }
}
