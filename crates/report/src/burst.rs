//! What `peaklane burst` shows: one row per lane, and below it what the row cannot say.

use peaklane_core::attempt::AttemptRecord;
use peaklane_core::burst::{BurstEnd, BurstState, Connections, PromptMode};
use peaklane_core::rules::Thresholds;
use peaklane_core::stats::{Confidence, PassRate, Portion, wilson};
use peaklane_core::summary::{BurstSummary, Quantile};
use serde_json::{Value, json};

use crate::notes::{self, Note, told_once};
use crate::palette::{Palette, Tone};
use crate::table::{Align, Cell, Column, Table, escape_markdown};
use crate::throughput;
use crate::units::{ABSENT, bytes, counted, duration, interval, limit, one_line, percent, quantile, share};
use crate::words::misses;

/// A client whose late wake-ups (p99) are longer than this may have slowed the figures itself, microseconds.
const NOTABLE_LAG_US: u64 = 10_000;

/// A release later than this is worth a warning, microseconds: the bar for bursts of 8 and 64 is 1 ms.
const NOTABLE_SKEW_US: u64 = 10_000;

/// One burst with all that is shown of it.
#[derive(Clone, Debug)]
pub struct BurstView<'a> {
    /// Its numbers.
    pub summary: &'a BurstSummary,
    /// How it ended; `None` while it runs, and where that was not kept (CSV).
    pub end: Option<&'a BurstEnd>,
    /// The warm-up attempt, when one was made.
    pub warmup: Option<&'a AttemptRecord>,
    /// Median of DNS, connect and TLS together over the connections that were opened, microseconds.
    pub handshake_us: Option<u64>,
    /// Configuration findings of the attempts, in words with their hint.
    pub findings: Vec<String>,
}

/// The bursts as text: headline, table, notes. Ends with a newline.
///
/// * `width`: columns of the terminal.
pub fn render(views: &[BurstView<'_>], thresholds: &Thresholds, width: usize, palette: Palette) -> String {
    let mut out = String::new();
    for line in headline(views) {
        out.push_str(&format!("{}\n", palette.paint(Tone::Strong, &line)));
    }
    out.push_str(&table(views, thresholds).render(width, palette));
    let notes = notes(views, thresholds);
    if !notes.is_empty() {
        out.push('\n');
        out.push_str(&notes::render(&notes, width, palette));
    }
    out
}

/// The same as Markdown.
pub fn markdown(views: &[BurstView<'_>], thresholds: &Thresholds) -> String {
    let mut out = String::new();
    for line in headline(views) {
        out.push_str(&format!("**{}**\n", escape_markdown(&line)));
    }
    format!("{out}\n{}\n{}", table(views, thresholds).markdown(), notes::markdown(&notes(views, thresholds)))
}

/// One CSV line per burst.
///
/// # Errors
/// As [`Table::csv`].
pub fn csv(views: &[BurstView<'_>], thresholds: &Thresholds) -> Result<String, csv::Error> {
    table(views, thresholds).csv()
}

/// `{"bursts": [...], "notes": [...]}`: each burst with the keys of `BurstJson`, and `delivered`, `cold_start`,
/// `handshake_ms` and `finding_texts` beside them.
///
/// # Errors
/// None in practice: every value has a JSON form.
pub fn json(views: &[BurstView<'_>], thresholds: &Thresholds) -> Result<Value, serde_json::Error> {
    let bursts = views.iter().map(burst_json).collect::<Result<Vec<_>, _>>()?;
    Ok(json!({"bursts": bursts, "notes": notes::json(&notes(views, thresholds))}))
}

fn burst_json(view: &BurstView<'_>) -> Result<Value, serde_json::Error> {
    let mut object = serde_json::to_value(view.summary.json())?;
    let ms = |us: u64| serde_json::to_value(peaklane_core::summary::Ms(us));
    if let Value::Object(map) = &mut object {
        let delivered = match view.end {
            Some(end) => json!({
                "duration_ms": ms(end.duration_us)?,
                "peak_in_flight": end.peak_in_flight,
                "max_skew_ms": ms(end.max_skew_us)?,
                "own_lag_p50_ms": ms(end.own_lag_us[0])?,
                "own_lag_p99_ms": ms(end.own_lag_us[1])?,
                "own_lag_max_ms": ms(end.own_lag_us[2])?,
                "body_bytes": end.body_bytes,
            }),
            None => Value::Null,
        };
        let cold_start = match view.warmup {
            Some(w) => json!({
                "latency_ms": ms(w.latency_us)?,
                "ttft_ms": w.ttft_us.map(ms).transpose()?,
                "outcome": w.outcome.name(),
                "retries": w.retries,
            }),
            None => Value::Null,
        };
        map.insert("delivered".into(), delivered);
        map.insert("cold_start".into(), cold_start);
        map.insert("handshake_ms".into(), view.handshake_us.map(ms).transpose()?.unwrap_or(Value::Null));
        map.insert("finding_texts".into(), json!(findings(view)));
    }
    Ok(object)
}

/// What the bursts are, once: `inline-assist, floor 25 s · 8 attempts together · 2026-11-30 16:00 Europe/Berlin`.
fn headline(views: &[BurstView<'_>]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for view in views {
        let h = &view.summary.header;
        let mut parts = vec![format!("{}, floor {}", one_line(&h.task), floor(h.floor_us, h.tasks_per_hour_floor))];
        let pace = match (h.spacing_us, h.concurrency) {
            (0, None) => "together".to_owned(),
            (0, Some(c)) => format!("{c} at once"),
            (spacing, None) => format!("one every {}", limit(spacing)),
            (spacing, Some(c)) => format!("one every {}, {c} at once at most", limit(spacing)),
        };
        parts.push(match h.stretch_us {
            Some(stretch) => format!("a stretch of {}, {pace}", limit(stretch)),
            None => format!("{} {pace}", counted(h.attempts.into(), "attempt")),
        });
        let when = [h.date.as_deref(), h.window.as_deref(), h.zone.as_deref()];
        parts.extend(
            Some(when.into_iter().flatten().map(one_line).collect::<Vec<_>>().join(" ")).filter(|w| !w.is_empty()),
        );
        let line = parts.join(" · ");
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// A floor in words: a latency, a throughput, or both.
pub(crate) fn floor(floor_us: u64, tasks_per_hour: Option<u32>) -> String {
    match (floor_us, tasks_per_hour) {
        (0, Some(n)) => format!("{n} tasks/h"),
        (us, Some(n)) => format!("{} and {n} tasks/h", limit(us)),
        (0, None) => "none".to_owned(),
        (us, None) => limit(us),
    }
}

/// True where the rank of p90 falls on the last attempt: from 1 to 9 of them.
fn p90_is_the_worst(n: u32) -> bool {
    n > 0 && Portion::P90.rank(n.into()) == u64::from(n)
}

/// How the p90 column is called: "worst of 8" where that is what p90 is.
pub(crate) fn p90_head(counts: &[u32]) -> String {
    match counts {
        [first, rest @ ..] if p90_is_the_worst(*first) && rest.iter().all(|n| n == first) => {
            format!("worst of {first}")
        }
        _ => "p90".to_owned(),
    }
}

/// The rows: one per burst.
pub fn table(views: &[BurstView<'_>], thresholds: &Thresholds) -> Table {
    let made: Vec<u32> = views.iter().map(|v| v.summary.made).collect();
    let several = |one: fn(&BurstSummary) -> &str| views.iter().any(|v| one(v.summary) != one(views[0].summary));
    let task = if several(|s| &s.header.task) { Column::words("task", "task") } else { Column::data("task") };
    let mut table = Table::new(vec![
        Column::words("lane", "lane"),
        Column::words("kind", "kind"),
        task,
        Column::data("model"),
        Column::data("date"),
        Column::data("window"),
        Column::data("state"),
        Column::shown("pass", Align::Right),
        Column::data("passed"),
        Column::data("n"),
        Column::data("made"),
        Column::figures("pass_rate", ""),
        Column::shown("95 %", Align::Right),
        Column::data("pass_low"),
        Column::data("pass_high"),
        Column::figures("p50_ms", "p50"),
        Column::figures("p90_ms", p90_head(&made)),
        Column::data("p90_exceeds_ms"),
        Column::figures("ttft_p50_ms", "TTFT"),
        Column::figures("first_answer_p50_ms", "answer"),
        Column::shown("retried", Align::Right),
        Column::data("attempts_with_retry"),
        Column::data("retries"),
        Column::words("misses", ""),
        Column::data("findings"),
        Column::data("floor_ms"),
        Column::data("tasks_per_hour_floor"),
        Column::data("stretch_ms"),
        Column::data("right_in_stretch"),
        Column::data("tasks_per_hour"),
        Column::data("tasks_per_hour_low"),
        Column::data("tasks_per_hour_high"),
        Column::data("prompt_mode"),
        Column::data("connections"),
        Column::data("simulated"),
        Column::data("tool_version"),
        Column::data("burst"),
    ]);
    for view in views {
        table.row(row(view.summary, thresholds));
    }
    table
}

fn row(s: &BurstSummary, thresholds: &Thresholds) -> Vec<Cell> {
    let h = &s.header;
    let bars = [thresholds.pass_percent, thresholds.trigger_pass_percent];
    let rate = s.pass_rate();
    let tone = rate.map_or(Tone::Warn, |r| if r.reaches(thresholds.pass_percent) { Tone::Good } else { Tone::Bad });
    let pass = match s.state {
        BurstState::Void => "void".to_owned(),
        _ => format!("{}/{}", s.passed, s.n),
    };
    vec![
        Cell::text(&h.lane),
        Cell::text(h.kind.name()),
        Cell::text(&h.task),
        Cell::text(&h.model),
        Cell::value(h.date.clone()),
        Cell::value(h.window.clone()),
        Cell::value(s.state.name()),
        Cell::text(pass).tone(tone),
        Cell::value(s.passed),
        Cell::value(s.n),
        Cell::value(s.made),
        match rate {
            Some(r) => Cell::new(percent(r.passed(), r.of(), &bars), r.share()).tone(tone),
            None => Cell::absent(),
        },
        Cell::text(interval(s.pass_interval, &bars)),
        Cell::value(s.pass_interval.map(|i| i.0)),
        Cell::value(s.pass_interval.map(|i| i.1)),
        quantile_cell(s.p50, h.floor_us),
        quantile_cell(s.p90, h.floor_us),
        Cell::value(exceeds_ms(s.p90)),
        quantile_cell(s.ttft_p50, h.floor_us),
        quantile_cell(s.first_answer_p50, h.floor_us),
        Cell::text(if s.made > 0 { format!("{}/{}", s.retried, s.made) } else { ABSENT.to_owned() }),
        Cell::value(s.retried),
        Cell::value(s.retries),
        Cell::new(outcome_words(s), misses_value(s)),
        Cell::value(s.findings),
        if h.floor_us > 0 { Cell::value(h.floor_us as f64 / 1000.0) } else { Cell::absent() },
        Cell::value(h.tasks_per_hour_floor),
        Cell::value(h.stretch_us.map(crate::units::ms)),
        Cell::value(s.right_in_stretch),
        Cell::value(s.tasks_per_hour()),
        Cell::value(s.throughput_interval().map(|i| i.0)),
        Cell::value(s.throughput_interval().map(|i| i.1)),
        Cell::value(h.prompt_mode.name()),
        Cell::value(h.connections.name()),
        Cell::value(h.simulated),
        Cell::value(h.tool_version.clone()),
        Cell::value(h.id.clone()),
    ]
}

fn misses_value(s: &BurstSummary) -> Value {
    s.misses.iter().map(|m| json!({"class": m.class, "count": m.count})).collect()
}

/// Misses, and why a burst does not count.
fn outcome_words(s: &BurstSummary) -> String {
    let unfinished = s.n.saturating_sub(s.made);
    let state = match s.state {
        BurstState::Running | BurstState::Interrupted => {
            let of = if s.header.stretch_us.is_some() { String::new() } else { format!(" of {}", s.n) };
            format!("{}: {}{of} attempts made", s.state.name(), s.made)
        }
        BurstState::Void => format!("{}, see below", counted(s.findings.into(), "configuration finding")),
        BurstState::Complete if unfinished > 0 => {
            format!("{} missing on record", counted(unfinished.into(), "attempt"))
        }
        BurstState::Complete => String::new(),
    };
    [state, misses(&s.misses)].into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>().join("; ")
}

/// A quantile for people, and its value in milliseconds for programs (null where it only exceeds something).
pub(crate) fn quantile_cell(q: Option<Quantile>, floor_us: u64) -> Cell {
    match q {
        Some(Quantile::Value(us)) => Cell::new(quantile(q, floor_us), crate::units::ms(us)),
        Some(Quantile::Exceeds(_)) => Cell::new(quantile(q, floor_us), Value::Null).tone(Tone::Bad),
        None => Cell::absent(),
    }
}

/// What a quantile exceeds, milliseconds, where that is all that is known.
pub(crate) fn exceeds_ms(q: Option<Quantile>) -> Option<f64> {
    match q {
        Some(Quantile::Exceeds(us)) => Some(crate::units::ms(us)),
        _ => None,
    }
}

/// All findings of a burst, each once.
fn findings(view: &BurstView<'_>) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for text in view.end.and_then(|e| e.finding.as_ref()).into_iter().chain(&view.findings) {
        if !texts.contains(text) {
            texts.push(text.clone());
        }
    }
    texts
}

/// What is said below the table.
pub fn notes(views: &[BurstView<'_>], thresholds: &Thresholds) -> Vec<Note> {
    let per_lane = |say: &dyn Fn(&BurstView<'_>) -> Option<String>| -> Vec<(String, Option<String>)> {
        views.iter().map(|v| (one_line(&v.summary.header.lane), say(v))).collect()
    };
    let mut notes = Vec::new();
    if let Some(note) =
        simulated_note(views.iter().map(|v| (v.summary.header.lane.as_str(), v.summary.header.simulated)))
    {
        notes.push(note);
    }
    for view in views {
        for text in findings(view) {
            notes.push(Note::warning(
                "finding",
                format!("{}: {}", one_line(&view.summary.header.lane), one_line(&text)),
            ));
        }
    }
    notes.extend(told_once("throughput", Tone::Strong, &per_lane(&|v| throughput::of_burst(v.summary))));
    notes.extend(told_once("cold start", Tone::Dim, &per_lane(&|v| Some(cold_start(v.warmup?)))));
    notes.extend(told_once(
        "prompts",
        Tone::Dim,
        &per_lane(&|v| Some(prompts(v.summary.header.prompt_mode).to_owned())),
    ));
    notes.extend(told_once("connections", Tone::Dim, &per_lane(&|v| Some(connections(v)))));
    notes.extend(told_once("delivered", Tone::Dim, &per_lane(&|v| Some(delivered(v.end?, v.summary)))));
    notes.extend(told_once("busy client", Tone::Warn, &per_lane(&|v| busy(v.end?))));
    // A batch class is judged by its throughput, whose interval stands beside it.
    let few = |v: &BurstView<'_>| {
        let judged_by_rate = v.summary.header.tasks_per_hour_floor.is_none();
        judged_by_rate.then(|| few(v.summary.n, thresholds.pass_percent)).flatten()
    };
    notes.extend(told_once("read with", Tone::Dim, &per_lane(&few)));
    notes
}

/// "These lanes are simulated.", or which of them are.
pub(crate) fn simulated_note<'a>(lanes: impl Iterator<Item = (&'a str, bool)> + Clone) -> Option<Note> {
    let mut names: Vec<String> = Vec::new();
    for (lane, simulated) in lanes.clone() {
        if simulated && !names.iter().any(|n| n == lane) {
            names.push(one_line(lane));
        }
    }
    if names.is_empty() {
        return None;
    }
    let text = if lanes.into_iter().all(|(_, simulated)| simulated) {
        "These lanes are simulated.".to_owned()
    } else {
        format!("Simulated: {}.", crate::words::list(&names))
    };
    Some(Note::warning("simulated", text))
}

fn cold_start(warmup: &AttemptRecord) -> String {
    let ttft = warmup.ttft_us.map_or_else(String::new, |us| format!(" (TTFT {})", duration(us)));
    let how = if warmup.outcome.is_ok() { String::new() } else { format!(", {}", warmup.outcome.words()) };
    let retries = match warmup.retries {
        0 => String::new(),
        n => format!(", {n} {}", if n == 1 { "retry" } else { "retries" }),
    };
    format!("the warm-up attempt took {}{ttft}{retries}{how}; it is not counted", duration(warmup.latency_us))
}

fn prompts(mode: PromptMode) -> &'static str {
    match mode {
        PromptMode::Nonce => "each attempt begins with its own nonce, so that no prefix cache answers for the prompt",
        PromptMode::Identical => {
            "all attempts send the same bytes: from the second on this measures the prefix cache too"
        }
    }
}

fn connections(view: &BurstView<'_>) -> String {
    let took = view.handshake_us.map_or_else(String::new, |us| format!(" (median {})", duration(us)));
    match view.summary.header.connections {
        Connections::Before => format!("opened before the burst; the handshake{took} is not in these times"),
        Connections::Inside => format!("opened inside each attempt; the handshake{took} is in these times"),
    }
}

fn delivered(end: &BurstEnd, s: &BurstSummary) -> String {
    let skew = if end.max_skew_us > NOTABLE_SKEW_US {
        format!("released up to {} LATE", duration(end.max_skew_us))
    } else {
        format!("released within {} of the intended instant", duration(end.max_skew_us))
    };
    format!(
        "{} of {} in flight at once, {skew}; {} in {}",
        end.peak_in_flight,
        s.header.concurrency.map_or(s.n, |c| if s.header.stretch_us.is_some() { c } else { c.min(s.n) }),
        bytes(end.body_bytes),
        duration(end.duration_us)
    )
}

fn busy(end: &BurstEnd) -> Option<String> {
    let [p50, p99, most] = end.own_lag_us;
    (p99 > NOTABLE_LAG_US).then(|| {
        format!(
            "this machine woke up late by {} (p50), {} (p99), {} at most: the lane may be better than these figures",
            duration(p50),
            duration(p99),
            duration(most)
        )
    })
}

/// What so few attempts leave open; nothing where a burst without a miss would clear the bar (35 of 35 for 90 %).
fn few(n: u32, pass_percent: u32) -> Option<String> {
    let low = wilson(PassRate::new(n, n)?, Confidence::P95).low;
    if low * 100.0 >= f64::from(pass_percent) {
        return None;
    }
    let worst = if p90_is_the_worst(n) { format!(", and p90 of {n} is the worst attempt") } else { String::new() };
    let low = share(low, &[pass_percent]);
    Some(format!("{}: {n}/{n} still allows a true rate of {low} %{worst}", counted(n.into(), "attempt")))
}

#[cfg(test)]
mod tests;
