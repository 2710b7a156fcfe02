//! Serves until stopped.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use peaklane_core::prefix::Bounds;
use peaklane_report::units::{count, counted};
use peaklane_run::proxy::{Bodies, Losses, Metrics, Recorder, Recording, Settings};
use peaklane_wire::client::Limits;
use peaklane_wire::proxy::{OnDisconnect, Pages, Policy, Proxy, Room, listen, open_doors};
use tokio::sync::watch;

use super::live::{Live, Screen};
use super::upstreams::{Behind, behind};
use super::{Leaving, ServeArgs};
use crate::cmd::lanes::event_loop;
use crate::cmd::system::{connections_within_the_file_limit, stop_on_signal, survive_the_file_size_limit};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::load::{FILE_NAME, ProcessEnvironment, key_from_variable, load};
use crate::out;

/// How long streams may go on after a stop.
const DRAIN: Duration = Duration::from_secs(30);
/// How often losses are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Open files of one client: its own connection and the one to the upstream.
const FILES_EACH: u64 = 2;

fn wall_us() -> i64 {
    // A clock before 1970 is one that nobody set.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64)
}

/// Serves.
///
/// # Errors
/// [`Failure`] as in [`super::run`].
pub(super) fn run(args: &ServeArgs, globals: &Globals) -> Result<Exit, Failure> {
    let policy = policy(args)?;
    if policy.token.is_none() && !args.listen.ip().is_loopback() {
        return Err(Failure::usage(format!(
            "{} can be reached from other machines, and the proxy has no token",
            args.listen
        ))
        .with_hint("put a token into a variable and name it: `--token-env PROXY_TOKEN`; or listen at 127.0.0.1"));
    }
    let no_texts = args.no_texts || !texts_are_kept(globals)?;
    if no_texts && args.keep_bodies.is_some() {
        return Err(Failure::usage("`--keep-bodies` keeps prompts, and `texts = false` of `[privacy]` keeps none")
            .with_hint("leave out one of the two"));
    }
    let Behind { upstreams, network } = behind(args, globals)?;
    if let Some(own) = upstreams.iter().find(|u| u.is_at(args.listen)) {
        return Err(Failure::usage(format!("the upstream {} is the proxy itself", own.shown()))
            .with_hint("name where the model is served; the proxy listens at the address of `--listen`"));
    }
    let shown: Vec<String> = upstreams
        .iter()
        .map(|u| u.name().map_or_else(|| u.shown(), |name| format!("{name} = {}", u.shown())))
        .collect();
    let bodies = args.keep_bodies.as_deref().map(Bodies::in_folder).transpose();
    let bodies =
        bodies.map_err(|e| Failure::of(Exit::Unmeasured, &e, Some("name a folder that can be written to".into())))?;
    let unkept = bodies.as_ref().map(Bodies::lost);
    let memory = args.memory as usize;
    let room = Room::new(memory << 20);
    let runtime = event_loop()?;
    survive_the_file_size_limit(&runtime);
    // The port first: a second proxy on it must not touch the store.
    let listener = runtime.block_on(listen(args.listen)).map_err(|e| Failure::of(Exit::Usage, &e, e.hint()))?;
    let address = listener.local_addr().map_or(args.listen, |address| address);
    let store = (!args.no_store).then(|| globals.store.path());
    let screen = Screen::new(args.live, globals);
    let live = Live::new(&screen, globals).finished();
    #[cfg(feature = "otel")]
    let exporter = {
        let dial: Arc<dyn peaklane_wire::io::Dial> = network.clone();
        args.otlp.as_deref().map(|url| super::otlp::Exporter::start(url, dial)).transpose()?
    };
    #[cfg(feature = "otel")]
    let live = match &exporter {
        Some(exporter) => {
            let (queue, mut show) = (exporter.queue(), live);
            Box::new(move |call: &peaklane_core::call::CallRecord| {
                show(call);
                queue(call);
            }) as peaklane_run::proxy::Finished
        }
        None => live,
    };
    let settings = Settings {
        prefix: process_prefix(),
        store,
        analyse: !args.no_prefix,
        bounds: Bounds { text_bytes: memory << 20, ..Bounds::default() },
        bodies,
        no_texts,
        finished: Some(live),
    };
    let (recorder, recording) = Recorder::start(settings, &room)?;
    let page = Page { path: args.metrics.clone(), metrics: Arc::clone(&recording.metrics) };
    let proxy = Proxy::new(upstreams, policy, network, Arc::new(recorder), room, wall_us)
        .map_err(|e| Failure::of(Exit::Usage, &e, e.hint()))?
        .with_pages(Box::new(page));
    let connections = connections_within_the_file_limit(args.connections, FILES_EACH);
    // Read by scripts that asked for a free port, so it comes before all else and also with `--quiet`.
    out::say(&format!("listening on http://{address}\n"));
    let to = shown.join(", ");
    out::note(globals, &format!("upstream {to}; a harness reaches session S at http://{address}/s/S/v1"));
    let limit = format!("the limit of open files allows {connections} connections at once (ulimit -n)");
    match () {
        // Few enough to be met by a team.
        () if connections < args.connections / 2 => out::warn(globals, &limit),
        () if connections < args.connections => out::detail(globals, &limit),
        () => {}
    }
    let drain = args.drain_timeout.map_or(DRAIN, |limit| limit.as_duration());
    let losses = Arc::clone(&recording.losses);
    let cut = runtime.block_on(async {
        let (stop, stopped) = watch::channel(false);
        stop_on_signal(stop);
        let watching = tokio::spawn(watch_losses(losses, globals.clone()));
        let cut = open_doors(Arc::new(proxy), listener, connections as usize, stopped, drain).await;
        watching.abort();
        cut
    });
    // With the runtime go the last tasks and with them the recorder, so that its thread comes to its end.
    drop(runtime);
    screen.end();
    let exit = farewell(recording, cut, unkept.map_or(0, |n| n.load(Ordering::Relaxed)), globals);
    #[cfg(feature = "otel")]
    if let Some(lost) = exporter.map(super::otlp::Exporter::finish).filter(|lost| *lost > 0) {
        out::warn(globals, &format!("{} did not reach the collector", counted(lost, "span")));
    }
    Ok(exit)
}

/// `texts` of `[privacy]`, of the configuration that was named or lies here. One that cannot be read stops the proxy also
/// where its upstreams come from the command line: what it says of texts is not to be guessed.
fn texts_are_kept(globals: &Globals) -> Result<bool, Failure> {
    let path = globals.config.as_deref().or_else(|| Some(Path::new(FILE_NAME)).filter(|path| path.is_file()));
    path.map_or(Ok(true), |path| Ok(load(Some(path), &ProcessEnvironment)?.config.privacy.texts))
}

fn policy(args: &ServeArgs) -> Result<Policy, Failure> {
    let usual = Policy::default();
    let env = ProcessEnvironment;
    let token = args.token_env.as_deref().map(|name| key_from_variable(name, &env)).transpose()?;
    let first_byte = args.first_byte_timeout.map_or(usual.limits.first_byte, |t| t.as_duration());
    let idle = args.idle_timeout.map_or(usual.limits.idle, |t| t.as_duration());
    let total = usual.limits.total.max(first_byte).max(idle);
    Ok(Policy {
        limits: Limits { first_byte, idle, total },
        on_disconnect: match args.on_disconnect {
            Leaving::Close => OnDisconnect::Close,
            Leaving::Drain => OnDisconnect::Drain,
        },
        token,
        copies: !args.no_prefix || args.keep_bodies.is_some(),
        inject_usage: args.inject_usage,
        ..usual
    })
}

/// Unique to this process: when it began, and its number. Begins ids of calls and names of nameless sessions.
fn process_prefix() -> String {
    let began = wall_us() / 1_000;
    format!("{began:x}-{:x}", std::process::id())
}

/// The proxy's own page.
struct Page {
    path: String,
    metrics: Arc<Metrics>,
}

impl Pages for Page {
    fn page(&self, path: &str) -> Option<(&'static str, String)> {
        (self.path == path).then(|| ("text/plain; version=0.0.4", self.metrics.text()))
    }
}

/// Says once that records are being lost, and once that the disk takes them again.
async fn watch_losses(losses: Arc<Losses>, globals: Globals) {
    let (mut told, mut lost) = (None, 0);
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let said = losses.said();
        if let Some(why) = said.as_ref().filter(|why| Some(*why) != told.as_ref()) {
            out::warn(&globals, &format!("{why}; streams go on, and calls wait to be recorded"));
        }
        told = said.or(told);
        let now = losses.calls();
        if now > lost {
            out::warn(&globals, &format!("{} could not be recorded so far", counted(now, "call")));
            lost = now;
        }
    }
}

/// Waits for the last records, and says what became of all.
fn farewell(recording: Recording, cut: usize, unkept: u64, globals: &Globals) -> Exit {
    let (losses, metrics) = recording.finish();
    let (calls, [plain, upgraded, refused]) = metrics.totals();
    let mut text = format!("{} passed", counted(calls, "call"));
    for (n, what) in [(plain, "other requests"), (upgraded, "upgraded connections"), (refused, "refused requests")] {
        if n > 0 {
            text.push_str(&format!(", {} {what}", count(n)));
        }
    }
    out::note(globals, &text);
    if losses.calls() > 0 {
        let why = losses.said().map_or_else(String::new, |why| format!(": {why}"));
        out::warn(globals, &format!("{} could not be recorded{why}", counted(losses.calls(), "call")));
    }
    if unkept > 0 {
        out::warn(globals, &format!("{} could not be kept", counted(unkept, "request body")));
    }
    if cut > 0 {
        out::warn(globals, &format!("{} cut off at the end of the drain time", counted(cut as u64, "connection")));
        return Exit::Unmeasured;
    }
    Exit::Fine
}
