//! `peaklane try`: one request, measured.

use std::sync::Arc;

use clap::Args;
use peaklane_core::config::{Lane, Task};
use peaklane_core::outcome::Outcome;
use peaklane_core::record::TryRecord;
use peaklane_report::table::wrap;
use peaklane_report::timeline;
use peaklane_report::try_json::{self, TryJson};
use peaklane_report::try_view::{TrySeen, TryView};
use peaklane_wire::lag::LagProbe;
use peaklane_wire::retry::{Attempted, RetryPolicy, attempt};
use rand::RngExt as _;
use serde_json::{Value, json};

use super::lanes::{AdHoc, Ready, choose, event_loop, ready};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::{Format, Globals};
use crate::out;

/// What is asked where nobody says otherwise: cheap, and whole within a few tokens.
const PROMPT: &str = "Reply with one short sentence that says hello.";

const EXAMPLES: &str = "\
Examples:
  peaklane try --base-url http://127.0.0.1:8080/v1 --model small-coder
  peaklane try --base-url https://lane.example --model m --api messages
  peaklane try --lane lane-a                  a lane of peaklane.toml
  peaklane try --lane lane-a --format json    one object, whatever came of it
  peaklane try --all                          what each lane speaks

Exit code 3 when nothing was answered: the failure is printed all the same.";

/// Send one request and show its time line
///
/// What `curl -w` is to HTTP: DNS, connect, TLS, first byte, first token, first answer, end; tokens, class of failure, and
/// what the lane speaks. Nothing is recorded.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct TryArgs {
    /// Lane of the configuration. Default: the only one there is. Example: `--lane lane-a`
    #[arg(long, value_name = "NAME", conflicts_with_all = ["all", "base_url", "model"])]
    pub lane: Option<String>,

    /// Try every lane of the configuration. Default: off. Example: `--all --format md`
    #[arg(long, conflicts_with_all = ["base_url", "model"])]
    pub all: bool,

    /// Retries after a failure that may pass. Default: 0. Example: `--retries 2`
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = clap::value_parser!(u32).range(..=100))]
    pub retries: u32,

    #[allow(missing_docs, reason = "the words of the struct are the help text")]
    #[command(flatten)]
    pub ad_hoc: AdHoc,
}

/// One lane that was tried.
struct Tried {
    lane: Lane,
    model: String,
    url: String,
    attempted: Attempted,
}

/// Sends the request and prints what came of it.
///
/// # Errors
/// [`Failure`] with exit code 2 for lanes that cannot be chosen or made ready. A lane that fails is a result.
pub fn run(args: &TryArgs, globals: &Globals) -> Result<Exit, Failure> {
    let names: Vec<String> = args.lane.iter().cloned().collect();
    let chosen = choose(&args.ad_hoc, &names, globals)?;
    if chosen.lanes.len() > 1 && !args.all {
        let known: Vec<&str> = chosen.lanes.iter().map(|l| l.name.as_str()).collect();
        return Err(Failure::usage(format!("the configuration has {} lanes", known.len()))
            .with_hint(format!("`--lane NAME` takes one of {}; `--all` tries each", known.join(", "))));
    }
    let stream = !args.ad_hoc.no_stream;
    let limits = args.ad_hoc.limits(&chosen.config);
    let policy = RetryPolicy {
        max_retries: args.retries,
        base: chosen.config.retry.backoff_base.as_duration(),
        cap: chosen.config.retry.backoff_cap.as_duration(),
        jitter: chosen.config.retry.jitter,
        ..RetryPolicy::default()
    };
    let mut task = Task::inline_assist();
    task.prompt = Some(PROMPT.to_owned());
    args.ad_hoc.adjust(&mut task);
    let runtime = event_loop()?;
    let tried = runtime.block_on(async {
        let lag = Arc::new(LagProbe::start());
        let ready: Vec<(Lane, Ready)> = chosen
            .lanes
            .iter()
            .map(|lane| Ok((lane.clone(), ready(lane, &task, stream, 1, Some(&lag))?)))
            .collect::<Result<_, Failure>>()?;
        let mut tried = Vec::with_capacity(ready.len());
        for (lane, ready) in ready {
            out::detail(globals, &format!("asking {}", lane.name));
            let body = ready.lane.ask.body(lane.api);
            let mut dice = rand::rng();
            let attempted =
                attempt(&ready.client, &ready.lane.target, &body, None, &limits, &policy, || dice.random()).await;
            let url = ready.lane.target.endpoint.shown();
            tried.push(Tried { model: lane.model.clone(), lane, url, attempted });
        }
        Ok::<_, Failure>(tried)
    })?;
    let views: Vec<TryView<'_>> = tried.iter().map(|t| view(t, stream)).collect();
    print(&views, args.all, globals)?;
    let answered = |view: &TryView<'_>| view.last().is_some_and(|last| was_answered(last.record));
    Ok(if views.iter().all(answered) { Exit::Fine } else { Exit::Unmeasured })
}

/// Something was said, or the lane ended properly after thinking: a reasoning model with a small budget is no failure.
fn was_answered(record: &TryRecord) -> bool {
    record.outcome.is_ok()
        || record.ttft_us.is_some()
        || (record.outcome == Outcome::NoAnswer && record.usage.completion.is_some_and(|n| n > 0))
}

fn view(tried: &Tried, stream: bool) -> TryView<'_> {
    let tries = &tried.attempted.tries;
    let zero = tries.first().map(|t| t.zero);
    let seen = tries.iter().enumerate().map(|(i, t)| TrySeen {
        record: &t.record,
        offset_us: zero.map_or(0, |zero| t.zero.saturating_duration_since(zero).as_micros() as u64),
        waited_us: match i.checked_sub(1) {
            Some(before) => t.began.saturating_duration_since(tries[before].ended).as_micros() as u64,
            None => 0,
        },
    });
    TryView {
        lane: &tried.lane.name,
        api: tried.lane.api,
        url: &tried.url,
        model: &tried.model,
        stream,
        tool_version: env!("CARGO_PKG_VERSION"),
        tries: seen.collect(),
    }
}

fn print(views: &[TryView<'_>], all: bool, globals: &Globals) -> Result<(), Failure> {
    let broken = |e: &dyn std::error::Error| Failure::of(Exit::Unmeasured, e, None);
    match globals.format {
        Format::Json if all => {
            let lanes: Vec<Value> = views
                .iter()
                .map(|v| serde_json::to_value(TryJson::from(v)))
                .collect::<Result<_, _>>()
                .map_err(|e| broken(&e))?;
            out::print_json(&json!({ "lanes": lanes }))
        }
        Format::Json => {
            for view in views {
                out::print(&format!("{}\n", try_json::render(view).map_err(|e| broken(&e))?.trim_end()))?;
            }
            Ok(())
        }
        Format::Csv => out::print(&timeline::overview(views).csv().map_err(|e| broken(&e))?),
        Format::Md => out::print(&timeline::overview(views).markdown()),
        Format::Table if all => {
            out::print(&timeline::overview(views).render(globals.width, globals.palette))?;
            let note = "cached: the lane reports tokens read from its prefix cache; clock: the lane's against ours, to a second";
            out::note(globals, &wrap(note, globals.width).join("\n"));
            Ok(())
        }
        Format::Table => {
            for view in views {
                out::print(&timeline::render(view, globals.width, globals.palette))?;
            }
            Ok(())
        }
    }
}
