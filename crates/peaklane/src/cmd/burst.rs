//! `peaklane burst`: one burst at each lane, now.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use jiff::ZonedDateTime;
use peaklane_core::burst::{BurstHeader, Connections, PromptMode};
use peaklane_core::check::Check;
use peaklane_core::config::{Config, Lane, LaneOrder, Micros, Task, TaskKind};
use peaklane_core::rules::Thresholds;
use peaklane_report::burst::{self as render, BurstView};
use peaklane_run::burst::{BurstPlan, Fired, MAX_TOGETHER, Stop};
use peaklane_run::clock::{compact_utc, wall_us};
use peaklane_run::fleet::{Shot, fire_all};
use peaklane_run::plan_hash::plan_hash;
use peaklane_run::recorder::{RecordError, Recorder};
use peaklane_store::Store;
use peaklane_wire::lag::LagProbe;
use peaklane_wire::retry::RetryPolicy;
use rand::RngExt as _;
use tokio::sync::watch;

use super::lanes::{AdHoc, Chosen, choose, event_loop, ready};
use super::progress::Progress;
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

A lane that fails is a recorded result: exit code 0.";

/// Fire one burst at each lane, now, and record it
///
/// The attempts of a burst are released together (or spaced, or a given number at once), each is judged against the floor and
/// the check of its task, and latency counts from the intended start, retries and waits included.
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

    /// Attempts of the burst. Default: 8, or the configuration's. Example: `--attempts 64`
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub attempts: Option<u32>,

    /// Most attempts in flight at once: a closed loop. Default: all released together. Example: `--concurrency 8`
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
    override_settings(args, &mut chosen);
    let tasks = tasks(args, &chosen.config)?;
    guard_together(&chosen.config)?;
    raise_file_limit(&chosen)?;
    let seed = chosen.config.burst.seed.unwrap_or_else(|| u64::from(rand::rng().random::<u32>()));

    let runtime = event_loop()?;
    survive_the_file_size_limit(&runtime);
    let store = (!args.no_store).then(|| Store::open(globals.store.path())).transpose()?;
    let mut recorder = Recorder::nowhere();
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
            let planned: Vec<(String, u32)> =
                shots.iter().map(|s| (s.plan.header.lane.clone(), s.plan.header.attempts)).collect();
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
    print(&fired, globals)?;
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

fn guard_together(config: &Config) -> Result<(), Failure> {
    let burst = &config.burst;
    if burst.concurrency.is_none() && burst.attempts > MAX_TOGETHER {
        return Err(Failure::usage(format!("{} attempts cannot be released together", burst.attempts)).with_hint(
            format!("`--concurrency N` keeps N in flight; without it up to {MAX_TOGETHER} are released at once"),
        ));
    }
    Ok(())
}

/// A lane must not be blamed for a limit of this machine: connections need file descriptors.
fn raise_file_limit(chosen: &Chosen) -> Result<(), Failure> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let burst = &chosen.config.burst;
    let at_once = u64::from(burst.concurrency.unwrap_or(burst.attempts).min(burst.attempts));
    let lanes = if burst.order == LaneOrder::Interleaved { chosen.lanes.len() as u64 } else { 1 };
    // Store, CSV, event queue, standard streams and the resolver's sockets.
    let needed = at_once * lanes + 64;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        grow_file_table(needed);
        return Ok(());
    }
    limit.current = limit.maximum.map(|hard| needed.min(hard)).or(Some(needed));
    if limit.current.is_some_and(|current| current >= needed) && setrlimit(Resource::Nofile, limit).is_ok() {
        grow_file_table(needed);
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{at_once} connections at once need {needed} open files, more than this process may have"
    ))
    .with_hint("lower `--concurrency`, or raise the limit: ulimit -n"))
}

/// Makes Linux enlarge this process's table of open files now. It would do so at 256, 512, ... descriptors in the middle
/// of the burst, and with several threads the one that opens a connection stands still for milliseconds meanwhile.
fn grow_file_table(needed: u64) {
    let highest = i32::try_from(needed).unwrap_or(i32::MAX);
    // Only the growth is wanted; where it fails the burst is as it would have been.
    let _ = rustix::io::fcntl_dupfd_cloexec(std::io::stderr(), highest - 1);
}

/// Takes the signal of the file size limit (`ulimit -f`), which would end the process without a word: the write that meets
/// the limit then fails like one that meets a full disk, and is told like it.
fn survive_the_file_size_limit(runtime: &tokio::runtime::Runtime) {
    #[cfg(unix)]
    {
        use rustix::process::Signal;
        use tokio::signal::unix::{SignalKind, signal};
        let _inside = runtime.enter();
        // Where it cannot be taken, the limit ends the process as it always did. Once taken it stays so.
        drop(signal(SignalKind::from_raw(Signal::XFSZ.as_raw())));
    }
    #[cfg(not(unix))]
    let _ = runtime;
}

/// The first Ctrl-C or SIGTERM asks the bursts to stop, the second one ends the program.
fn stop_on_signal(pull: watch::Sender<bool>) {
    tokio::spawn(async move {
        #[cfg(unix)]
        let mut term = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).ok();
        // The code with which the program ends, should it be the second signal.
        let mut asked = async || {
            #[cfg(unix)]
            if let Some(term) = &mut term {
                return tokio::select! {
                    pressed = tokio::signal::ctrl_c() => pressed.ok().map(|()| 130),
                    _ = term.recv() => Some(143),
                };
            }
            tokio::signal::ctrl_c().await.ok().map(|()| 130)
        };
        if asked().await.is_some() {
            pull.send_replace(true);
            if let Some(code) = asked().await {
                std::process::exit(code);
            }
        } else {
            // Without signals nothing pulls; the handle must outlive the bursts all the same.
            std::future::pending::<()>().await;
        }
    });
}

fn shots(chosen: &Chosen, task: &Task, args: &BurstArgs, seed: u64, lag: &Arc<LagProbe>) -> Result<Vec<Shot>, Failure> {
    let started_unix_us = wall_us();
    let mark = rand::rng().random::<u32>();
    let run = format!("{}-{mark:08x}", compact_utc(started_unix_us));
    let limits = args.ad_hoc.limits(&chosen.config);
    let retry = RetryPolicy {
        max_retries: chosen.config.retry.max,
        base: chosen.config.retry.backoff_base.as_duration(),
        cap: chosen.config.retry.backoff_cap.as_duration(),
        jitter: chosen.config.retry.jitter,
        ..RetryPolicy::default()
    };
    let batch = task.judged_by() == TaskKind::Batch && args.floor.is_none();
    let floor_us = if batch { 0 } else { task.floor.or(task.latency_floor()).map_or(0, Micros::as_us) };
    let stream = !args.ad_hoc.no_stream;
    chosen
        .lanes
        .iter()
        .map(|lane: &Lane| {
            let ready = ready(lane, task, stream, seed, Some(lag))?;
            let burst = &chosen.config.burst;
            let header = BurstHeader {
                id: format!("{}-{}-{mark:08x}", compact_utc(started_unix_us), lane.name),
                run: run.clone(),
                lane: lane.name.clone(),
                kind: lane.kind,
                api: lane.api,
                model: lane.model.clone(),
                base_url: shown_base(&lane.base_url),
                task: task.name.clone(),
                floor_us,
                tasks_per_hour_floor: task.tasks_per_hour.filter(|_| batch),
                stretch_us: None,
                campaign: None,
                site: None,
                attempts: burst.attempts,
                concurrency: burst.concurrency,
                spacing_us: burst.spacing.as_us(),
                prompt_mode: burst.prompt_mode,
                connections: burst.connections,
                stream,
                max_retries: chosen.config.retry.max,
                total_timeout_us: limits.total.as_micros() as u64,
                seed,
                prompt_hash: plan_hash(task, stream),
                date: Some(local_date(chosen.config.time_zone.as_deref())),
                window: None,
                zone: chosen.config.time_zone.clone(),
                started_unix_us,
                tool_version: env!("CARGO_PKG_VERSION").to_owned(),
                simulated: false,
            };
            let plan = BurstPlan {
                header,
                warmup: burst.warmup,
                limits,
                retry,
                check: task.check.clone(),
                accept_budget_stop: task.accept_budget_stop,
            };
            Ok(Shot { client: ready.client, lane: ready.lane, plan })
        })
        .collect()
}

/// The base URL without its query, which may hold a key.
fn shown_base(base: &str) -> String {
    base.split(['?', '#']).next().unwrap_or_default().to_owned()
}

/// Today in the configured zone, else in the system's.
fn local_date(zone: Option<&str>) -> String {
    let now = ZonedDateTime::now();
    let there = zone.and_then(|zone| now.in_tz(zone).ok()).unwrap_or(now);
    there.date().to_string()
}

fn print(fired: &[Fired], globals: &Globals) -> Result<(), Failure> {
    let thresholds = Thresholds::default();
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
        Format::Table => render::render(&views, &thresholds, globals.width, globals.palette),
        Format::Json => format!("{:#}\n", render::json(&views, &thresholds).map_err(|e| broken(&e))?),
        Format::Csv => render::csv(&views, &thresholds).map_err(|e| broken(&e))?,
        Format::Md => render::markdown(&views, &thresholds),
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
