//! `peaklane demo`: the whole main job on simulated lanes, with nothing installed and no key.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use peaklane_core::attempt::AttemptRecord;
use peaklane_core::burst::{AttemptFigures, BurstHeader, Connections, PromptMode};
use peaklane_core::check::Check;
use peaklane_core::config::{LaneOrder, Task};
use peaklane_core::lane::Api;
use peaklane_core::rules::{Arguments, Candidate, Declared, Evidence, Thresholds, WindowCount, climb, decide};
use peaklane_core::stats::PassRate;
use peaklane_core::summary::{BurstData, LaneSummary, lane_hours, lane_summaries, summarise};
use peaklane_report::decision::{self, DecisionView};
use peaklane_report::html::{PageView, page};
use peaklane_report::notes::Note;
use peaklane_report::palette::Tone;
use peaklane_report::sentence::{LaneView, finding};
use peaklane_report::{summary as render, table::wrap};
use peaklane_run::burst::{BurstPlan, Fired, LaneTarget, Stop};
use peaklane_run::clock::{compact_utc, wall_ms, wall_us};
use peaklane_run::fleet::{Shot, fire_all};
use peaklane_run::plan_hash::plan_hash;
use peaklane_run::recorder::Recorder;
use peaklane_sim::character::{ANSWER_CONTAINS, FLOOR, TOTAL_LIMIT};
use peaklane_sim::demo::{DemoLane, DemoLanes};
use peaklane_sim::scale::Scale;
use peaklane_sim::script::Moment;
use peaklane_wire::client::{Client, Limits, Target};
use peaklane_wire::endpoint::Endpoint;
use peaklane_wire::lag::LagProbe;
use peaklane_wire::net::Network;
use peaklane_wire::proxy_env::Proxies;
use peaklane_wire::request::Ask;
use peaklane_wire::retry::RetryPolicy;
use serde_json::{Value, json};

use super::lanes::event_loop;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::{Format, Globals};
use crate::out;

/// The page, in the current folder.
const PAGE: &str = "peaklane-demo.html";
/// Three working days in a row.
const DATES: [&str; 3] = ["2026-06-01", "2026-06-02", "2026-06-03"];
/// The windows of a campaign by default.
const WINDOWS: [&str; 4] = ["09:00", "12:30", "16:00", "21:00"];
/// Declared beforehand, as every peak should be.
const PEAK: &str = "16:00";
const ZONE: &str = "Europe/Berlin";
const ATTEMPTS: u32 = 8;
const SCALE: Scale = Scale::DEMO;

const SIMULATED: &str =
    "These lanes are simulated: their figures show what peaklane tells, nothing about any real lane.";

const EXAMPLES: &str = "\
Examples:
  peaklane demo
  peaklane demo --seed 2            another week, the same characters
  peaklane demo --format json       all 48 bursts";

/// Run the whole job on four simulated lanes: no key, no network, under 30 s
///
/// Four lanes, one per rung of the ladder, are served over real HTTP on loopback; three days of four windows are run in
/// compressed time, each burst measured by the same client as a real one. One seed always gives the same counts and decision.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct DemoArgs {
    /// Which simulated week. Default: 1. Example: `--seed 7`
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true)]
    pub seed: u64,

    /// Where the page is written. Default: `peaklane-demo.html` in the current folder. Example: `--page /tmp/demo.html`
    #[arg(long, value_name = "FILE", default_value = PAGE, hide_default_value = true)]
    pub page: PathBuf,

    /// Write no page. Default: off. Example: `--no-page`
    #[arg(long, conflicts_with = "page")]
    pub no_page: bool,
}

/// Serves, fires, reduces, judges and shows.
///
/// # Errors
/// [`Failure`] with exit code 3 when nothing can be served, or the page cannot be written.
pub fn run(args: &DemoArgs, globals: &Globals) -> Result<Exit, Failure> {
    let lanes = DemoLanes::start(args.seed, SCALE).map_err(|e| {
        Failure::of(Exit::Unmeasured, &e, None).because("the simulated lanes could not be served on 127.0.0.1")
    })?;
    out::note(globals, SIMULATED);
    let fired = event_loop()?.block_on(measure(&lanes, args.seed, globals))?;
    lanes.stop();

    let data: Vec<BurstData<'_>> =
        fired.iter().map(|f| BurstData { header: &f.header, state: f.end.state, figures: &f.figures }).collect();
    let thresholds = Thresholds::default();
    let mut summaries = lane_summaries(&data);
    summaries.sort_by(|a, b| a.lane.cmp(&b.lane));
    let candidates: Vec<Candidate> = summaries.iter().map(|s| candidate(s, &thresholds)).collect();
    let ladder = climb(&candidates, Declared::default());
    let choice =
        DecisionView { task: "inline-assist", candidates: &candidates, ladder: &ladder, thresholds: &thresholds };
    let hours = lane_hours(&summaries, &thresholds).map_err(|e| Failure::of(Exit::Unmeasured, &e, None))?;
    let view = |(summary, hours)| LaneView { hours: Some(hours), ..LaneView::new(summary, Some(PEAK)) };
    let views: Vec<LaneView<'_>> = summaries.iter().zip(&hours).map(view).collect();

    let written = if args.no_page { None } else { Some(write_page(&args.page, &views, &choice, args.seed)?) };
    match globals.format {
        Format::Table => print_table(&views, &choice, globals)?,
        Format::Json => out::print_json(&as_json(&fired, &views, &choice, args.seed, written.as_deref())?)?,
        Format::Csv => {
            let text = render::csv(&views, &thresholds).map_err(|e| Failure::of(Exit::Unmeasured, &e, None))?;
            out::print(&text)?;
        }
        Format::Md => {
            out::print(&format!("{SIMULATED}\n\n{}", render::markdown(&views, &thresholds)))?;
            out::print(&format!("\n{}", decision::table(&choice).markdown()))?;
        }
    }
    if let Some(path) = &written {
        out::note(globals, &format!("page: {}", path.display()));
    }
    Ok(Exit::Fine)
}

/// All bursts, in simulated time.
async fn measure(lanes: &DemoLanes, seed: u64, globals: &Globals) -> Result<Vec<Fired>, Failure> {
    let lag = Arc::new(LagProbe::start());
    let (_keep, stop) = Stop::pair();
    let total = DATES.len() * WINDOWS.len();
    let bar = ProgressBar::with_draw_target(
        Some(total as u64),
        if globals.progress { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() },
    );
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos:>2}/{len} windows  {elapsed}  {msg}") {
        bar.set_style(style);
    }
    let mut all = Vec::with_capacity(total * lanes.lanes().len());
    for (day, date) in DATES.iter().enumerate() {
        for window in WINDOWS {
            let moment = Moment::parse(day as u32, window)
                .ok_or_else(|| Failure::unmeasured(format!("`{window}` is no time of day")))?;
            lanes.set_moment(moment);
            bar.set_message(format!("day {} of {}, {window}: 4 lanes x {ATTEMPTS} attempts", day + 1, DATES.len()));
            let shots: Vec<Shot> = lanes
                .lanes()
                .iter()
                .map(|lane| shot(lane, date, window, seed, &lag))
                .collect::<Result<_, Failure>>()?;
            let recorder = Recorder::nowhere();
            let fired = fire_all(&shots, LaneOrder::Interleaved, &recorder, &lag, &stop, |_, _| {}).await?;
            let fired: Vec<Fired> = fired.into_iter().flatten().map(decompressed).collect();
            if !globals.progress && !globals.quiet {
                let counts: Vec<String> = fired.iter().map(count).collect();
                out::note(globals, &format!("{date} {window}  {}", counts.join("  ")));
            }
            all.extend(fired);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(all)
}

fn count(fired: &Fired) -> String {
    let passed = fired.figures.iter().filter(|f| f.verdict == peaklane_core::attempt::Verdict::Pass).count();
    format!("{} {passed}/{}", fired.header.lane, fired.figures.len())
}

fn shot(lane: &DemoLane, date: &str, window: &str, seed: u64, lag: &Arc<LagProbe>) -> Result<Shot, Failure> {
    let real = |simulated: Duration| SCALE.real(simulated);
    let task = task();
    let ask = Ask {
        model: lane.model.clone(),
        system: None,
        prompt: task.prompt.clone().unwrap_or_default(),
        max_tokens: u64::from(task.max_tokens),
        max_completion_tokens: false,
        temperature: Some(0.0),
        seed: Some(seed),
        stream: true,
        extra: serde_json::Map::new(),
    };
    let endpoint = Endpoint::new(&lane.base_url, Api::Chat)?;
    let network = Network::new(Proxies::none(), &[], false).map_err(|e| Failure::of(Exit::Usage, &e, e.hint()))?;
    let client = Client::new(Arc::new(network), wall_ms).with_lag_probe(Arc::clone(lag));
    let started_unix_us = wall_us();
    let run = format!("demo-{seed}-{date}-{window}");
    let header = BurstHeader {
        id: format!("{}-{}", compact_utc(started_unix_us), lane.name),
        run,
        lane: lane.name.to_owned(),
        kind: lane.kind,
        api: Api::Chat,
        model: lane.model.clone(),
        base_url: lane.base_url.clone(),
        task: task.name.clone(),
        floor_us: real(FLOOR).as_micros() as u64,
        attempts: ATTEMPTS,
        concurrency: None,
        spacing_us: 0,
        prompt_mode: PromptMode::Nonce,
        connections: Connections::Before,
        stream: true,
        max_retries: 2,
        total_timeout_us: real(TOTAL_LIMIT).as_micros() as u64,
        seed,
        prompt_hash: plan_hash(&task, true),
        date: Some(date.to_owned()),
        window: Some(window.to_owned()),
        zone: Some(ZONE.to_owned()),
        started_unix_us,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        simulated: true,
        tasks_per_hour_floor: None,
        stretch_us: None,
        campaign: None,
        site: None,
    };
    let limit = real(TOTAL_LIMIT);
    let plan = BurstPlan {
        header,
        warmup: 1,
        limits: Limits { first_byte: limit, idle: limit, total: limit },
        retry: RetryPolicy {
            max_retries: 2,
            base: real(Duration::from_secs(1)),
            cap: real(Duration::from_secs(8)),
            jitter: true,
            longest_wait: real(Duration::from_secs(60)),
        },
        check: task.check.clone(),
        accept_budget_stop: false,
    };
    let target = Target { endpoint, api: Api::Chat, key: None, headers: Vec::new() };
    Ok(Shot { client: Arc::new(client), lane: LaneTarget { target, ask }, plan })
}

fn task() -> Task {
    let mut task = Task::inline_assist();
    task.prompt = Some("Write a Rust function `pass_rate` that keeps both counts.".to_owned());
    task.check = Check::Contains(ANSWER_CONTAINS.to_owned());
    task
}

/// Back into simulated time: what was measured times the compression.
fn decompressed(mut fired: Fired) -> Fired {
    let longer = |us: u64| SCALE.simulated(Duration::from_micros(us)).as_micros() as u64;
    let header = &mut fired.header;
    (header.floor_us, header.total_timeout_us) = (FLOOR.as_micros() as u64, TOTAL_LIMIT.as_micros() as u64);
    fired.end.duration_us = longer(fired.end.duration_us);
    let stretch = |f: &mut AttemptFigures| {
        f.latency_us = longer(f.latency_us);
        f.ttft_us = f.ttft_us.map(longer);
        f.first_answer_us = f.first_answer_us.map(longer);
    };
    fired.figures.iter_mut().for_each(stretch);
    let stretch = |a: &mut AttemptRecord| {
        a.latency_us = longer(a.latency_us);
        a.ttft_us = a.ttft_us.map(longer);
        a.first_answer_us = a.first_answer_us.map(longer);
    };
    fired.warmup.iter_mut().for_each(stretch);
    fired.summary = summarise(&fired.header, fired.end.state, &fired.figures);
    fired
}

fn candidate(summary: &LaneSummary, thresholds: &Thresholds) -> Candidate {
    let count = |w: &peaklane_core::summary::WindowSummary| {
        Some(WindowCount { window: w.window.clone()?, rate: PassRate::new(w.passed, w.n) })
    };
    let tally = summary.retry_tally();
    let evidence = Evidence {
        windows: summary.windows.iter().filter_map(count).collect(),
        declared_peak: Some(PEAK.to_owned()),
        complete_days: DATES.len() as u32,
        missing: Vec::new(),
        retries: tally.rate(),
    };
    // Nobody is named for the free server: the most common state of such a box.
    Candidate {
        lane: summary.lane.clone(),
        kind: summary.kind,
        decision: decide(&evidence, thresholds),
        owner: None,
        barred: Vec::new(),
        arguments: Arguments::default(),
    }
}

fn print_table(views: &[LaneView<'_>], choice: &DecisionView<'_>, globals: &Globals) -> Result<(), Failure> {
    let (width, palette) = (globals.width, globals.palette);
    let mut text = format!("{}\n\n", palette.paint(Tone::Warn, SIMULATED));
    text.push_str(&render::render(views, choice.thresholds, width, palette));
    text.push('\n');
    for view in views {
        text.push_str(&wrap(&finding(view, choice.thresholds), width).join("\n"));
        text.push('\n');
    }
    text.push('\n');
    text.push_str(&decision::render(choice, width, palette));
    out::print(&text)
}

fn as_json(
    fired: &[Fired],
    views: &[LaneView<'_>],
    choice: &DecisionView<'_>,
    seed: u64,
    page: Option<&Path>,
) -> Result<Value, Failure> {
    let broken = |e: serde_json::Error| Failure::of(Exit::Unmeasured, &e, None);
    let bursts: Vec<Value> =
        fired.iter().map(|f| serde_json::to_value(f.summary.json()).map_err(broken)).collect::<Result<_, _>>()?;
    let findings: Vec<Value> = views
        .iter()
        .map(|v| json!({"lane": v.summary.lane, "kind": v.summary.kind, "finding": finding(v, choice.thresholds)}))
        .collect();
    let summary = render::json(views, choice.thresholds).map_err(broken)?;
    Ok(json!({
        "simulated": true,
        "note": SIMULATED,
        "seed": seed,
        "bursts": bursts,
        "findings": findings,
        "lanes": summary["lanes"],
        "decision": decision::json(choice),
        "page": page.map(|p| p.to_string_lossy()),
        "tool_version": env!("CARGO_PKG_VERSION"),
    }))
}

fn write_page(path: &Path, views: &[LaneView<'_>], choice: &DecisionView<'_>, seed: u64) -> Result<PathBuf, Failure> {
    let answer = decision::headline(choice);
    let subtitle = format!(
        "Simulated lanes, seed {seed}: {} days x {} windows x {ATTEMPTS} attempts, {} to {}, peak {PEAK} ({ZONE})",
        DATES.len(),
        WINDOWS.len(),
        DATES[0],
        DATES[2],
    );
    let how = [
        Note::plain("time", "time is compressed: a simulated second takes 20 ms; shown are simulated times"),
        Note::plain(
            "client",
            "every attempt went over real HTTP on loopback, measured by the client that measures real lanes",
        ),
    ];
    let text = page(&PageView {
        title: "peaklane demo",
        subtitle: &subtitle,
        answer: Some(&answer),
        standing: Some(&decision::table(choice)),
        lanes: views,
        thresholds: choice.thresholds,
        notes: &how,
        tool_version: env!("CARGO_PKG_VERSION"),
    })
    .map_err(|e| Failure::of(Exit::Unmeasured, &e, None))?;
    std::fs::write(path, text).map_err(|e| {
        Failure::of(
            Exit::Unmeasured,
            &e,
            Some("name another file with `--page`, or leave it out with `--no-page`".into()),
        )
        .because(format!("the page could not be written to {}", path.display()))
    })?;
    Ok(path.to_path_buf())
}
