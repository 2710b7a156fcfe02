//! Counts and distributions since the start, in the text form of Prometheus (format 0.0.4).
//!
//! Labels have few values: lanes of the configuration, classes of outcomes. Models and sessions are none, since clients
//! name them and each new name would be a new time series.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use peaklane_core::call::CallRecord;
use peaklane_core::prefix::{Blame, blame};
use peaklane_wire::proxy::{Passed, Room};

use super::scribe::Losses;

/// Bounds of the buckets for waits, seconds: from a warm cache on a fast box to a cold prefill in a queue.
const WAIT_BOUNDS: [f64; 12] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 60.0, 120.0, 300.0];
/// Bounds for shares of a prompt.
const SHARE_BOUNDS: [f64; 8] = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0];

#[derive(Clone, Debug)]
struct Histogram {
    bounds: &'static [f64],
    counts: Vec<u64>,
    sum: f64,
    n: u64,
}

impl Histogram {
    fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len()], sum: 0.0, n: 0 }
    }

    fn add(&mut self, value: f64) {
        self.sum += value;
        self.n += 1;
        for (count, bound) in self.counts.iter_mut().zip(self.bounds) {
            *count += u64::from(value <= *bound);
        }
    }

    fn write(&self, out: &mut String, name: &str, labels: &str) {
        let comma = if labels.is_empty() { "" } else { "," };
        for (count, bound) in self.counts.iter().zip(self.bounds) {
            let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {count}");
        }
        let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {}", self.n);
        let braces = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        let _ = writeln!(out, "{name}_sum{braces} {}", self.sum);
        let _ = writeln!(out, "{name}_count{braces} {}", self.n);
    }
}

#[derive(Debug, Default)]
struct Counted {
    calls: BTreeMap<String, u64>,
    tokens: BTreeMap<String, u64>,
    ttft: BTreeMap<String, Histogram>,
    total: BTreeMap<String, Histogram>,
    reuse: BTreeMap<String, Histogram>,
    breaks: BTreeMap<String, (u64, u64)>,
    blame: BTreeMap<&'static str, u64>,
    repeats: u64,
}

/// Everything that was counted.
#[derive(Debug)]
pub struct Metrics {
    losses: Arc<Losses>,
    room: Arc<Room>,
    in_flight: AtomicI64,
    passed: [AtomicU64; 3],
    extent: [AtomicU64; 2],
    counted: Mutex<Counted>,
}

/// Values of labels are quoted: backslash, quote and line break are escaped.
fn quoted(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

impl Metrics {
    pub(super) fn new(losses: Arc<Losses>, room: Arc<Room>) -> Self {
        Self {
            losses,
            room,
            in_flight: AtomicI64::new(0),
            passed: Default::default(),
            extent: Default::default(),
            counted: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn began(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn ended(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn passed(&self, what: Passed) {
        self.passed[what as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn extent(&self, (_, sessions, bytes): (usize, usize, usize)) {
        self.extent[0].store(sessions as u64, Ordering::Relaxed);
        self.extent[1].store(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn call(&self, call: &CallRecord) {
        let lane = quoted(call.lane.as_deref().unwrap_or_default());
        let api = call.api.map_or("", |a| a.name());
        let record = &call.record;
        let mut counted = self.lock();
        let labels = format!(
            "lane=\"{lane}\",api=\"{api}\",outcome=\"{}\",delivery=\"{}\"",
            record.outcome.name(),
            call.delivery.name()
        );
        *counted.calls.entry(labels).or_default() += 1;
        let usage = &record.usage;
        for (kind, source, tokens) in [
            ("prompt", "reported", usage.prompt),
            ("cached", "reported", usage.cached),
            ("completion", "reported", usage.completion),
            ("reasoning", "reported", usage.reasoning),
            ("prompt", "estimated", call.estimated_prompt_tokens),
            ("completion", "estimated", call.estimated_completion_tokens),
        ] {
            if let Some(tokens) = tokens {
                let labels = format!("lane=\"{lane}\",kind=\"{kind}\",source=\"{source}\"");
                *counted.tokens.entry(labels).or_default() += tokens;
            }
        }
        let lane = format!("lane=\"{lane}\"");
        let histogram = |map: &mut BTreeMap<String, Histogram>, bounds, value: f64| {
            map.entry(lane.clone()).or_insert_with(|| Histogram::new(bounds)).add(value);
        };
        if let Some(us) = record.ttft_us {
            histogram(&mut counted.ttft, &WAIT_BOUNDS, us as f64 / 1e6);
        }
        histogram(&mut counted.total, &WAIT_BOUNDS, call.total_us as f64 / 1e6);
        counted.repeats += u64::from(call.retry > 0);
        let Some(figures) = &call.prefix else { return };
        if let Some(reuse) = figures.reuse() {
            histogram(&mut counted.reuse, &SHARE_BOUNDS, reuse);
        }
        if let (Some(found), Some(lost)) = (&figures.divergence, figures.lost_bytes()) {
            let (times, bytes) = counted.breaks.entry(format!("kind=\"{}\"", found.kind.name())).or_default();
            *times += 1;
            *bytes += lost;
        }
        if let Some(side) = blame(figures, usage).filter(|side| *side != Blame::Nobody) {
            *counted.blame.entry(side.name()).or_default() += 1;
        }
    }

    /// Calls that ended, and requests that passed besides, were refused or turned into something else.
    pub fn totals(&self) -> (u64, [u64; 3]) {
        let calls = self.lock().calls.values().sum();
        (calls, [0, 1, 2].map(|n| self.passed[n].load(Ordering::Relaxed)))
    }

    /// The page.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let counted = self.lock();
        let head = |out: &mut String, name: &str, kind: &str, help: &str| {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        };
        let list = |out: &mut String, name: &str, map: &BTreeMap<String, u64>| {
            for (labels, n) in map {
                let _ = writeln!(out, "{name}{{{labels}}} {n}");
            }
        };
        let single = |out: &mut String, name: &str, kind: &str, help: &str, value: u64| {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        };
        head(&mut out, "peaklane_proxy_calls_total", "counter", "Calls that ended, by how they did.");
        list(&mut out, "peaklane_proxy_calls_total", &counted.calls);
        head(&mut out, "peaklane_proxy_tokens_total", "counter", "Tokens of these calls; cached are part of prompt.");
        list(&mut out, "peaklane_proxy_tokens_total", &counted.tokens);
        let histograms = [
            ("peaklane_proxy_ttft_seconds", "From the request sent to the first token of any kind.", &counted.ttft),
            (
                "peaklane_proxy_call_seconds",
                "From the first byte of a request to the last byte handed on.",
                &counted.total,
            ),
            ("peaklane_proxy_prefix_reuse_ratio", "Share of the former prompt that a prompt repeats.", &counted.reuse),
        ];
        for (name, help, map) in histograms {
            head(&mut out, name, "histogram", help);
            for (labels, histogram) in map {
                histogram.write(&mut out, name, labels);
            }
        }
        head(&mut out, "peaklane_proxy_prefix_breaks_total", "counter", "Prompts that parted from the former one.");
        for (labels, (times, _)) in &counted.breaks {
            let _ = writeln!(out, "peaklane_proxy_prefix_breaks_total{{{labels}}} {times}");
        }
        head(&mut out, "peaklane_proxy_prefix_lost_bytes_total", "counter", "Bytes of former prompts behind these.");
        for (labels, (_, bytes)) in &counted.breaks {
            let _ = writeln!(out, "peaklane_proxy_prefix_lost_bytes_total{{{labels}}} {bytes}");
        }
        head(
            &mut out,
            "peaklane_proxy_prefix_blame_total",
            "counter",
            "Calls of which one side lost the cached prefix.",
        );
        for (side, n) in &counted.blame {
            let _ = writeln!(out, "peaklane_proxy_prefix_blame_total{{side=\"{side}\"}} {n}");
        }
        single(
            &mut out,
            "peaklane_proxy_repeats_total",
            "counter",
            "Calls that repeat the one before.",
            counted.repeats,
        );
        head(&mut out, "peaklane_proxy_passed_total", "counter", "Requests that were no calls.");
        for (n, kind) in ["plain", "upgraded", "refused"].into_iter().enumerate() {
            let value = self.passed[n].load(Ordering::Relaxed);
            let _ = writeln!(out, "peaklane_proxy_passed_total{{kind=\"{kind}\"}} {value}");
        }
        head(&mut out, "peaklane_proxy_lost_total", "counter", "What was not recorded although it passed.");
        let losses = &self.losses;
        for (what, n) in [
            ("begin", losses.asked.load(Ordering::Relaxed)),
            ("end", losses.ended.load(Ordering::Relaxed)),
            ("unwritten", losses.unwritten.load(Ordering::Relaxed)),
        ] {
            let _ = writeln!(out, "peaklane_proxy_lost_total{{what=\"{what}\"}} {n}");
        }
        let in_flight = u64::try_from(self.in_flight.load(Ordering::Relaxed)).unwrap_or(0);
        single(&mut out, "peaklane_proxy_calls_in_flight", "gauge", "Calls whose request went out.", in_flight);
        let extent = |n: usize| self.extent[n].load(Ordering::Relaxed);
        single(&mut out, "peaklane_proxy_sessions", "gauge", "Sessions kept for comparison.", extent(0));
        single(&mut out, "peaklane_proxy_kept_bytes", "gauge", "Texts and hashes kept of them.", extent(1));
        single(
            &mut out,
            "peaklane_proxy_held_bytes",
            "gauge",
            "Requests that wait to be read.",
            self.room.used() as u64,
        );
        out
    }
}
