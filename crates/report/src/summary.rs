//! What `peaklane summary` shows: one block per lane, one row per window, and the sentence that matters below.
//!
//! There is no row for the lane as a whole, on purpose: 95 % at 09:00 and 50 % at 16:00 is no 72 % lane.

mod json;

use std::collections::BTreeSet;

use peaklane_core::burst::{BurstState, PromptMode};
use peaklane_core::rules::Thresholds;
use peaklane_core::stats::{Confidence, PassRate, PooledThroughput, pooled_throughput, wilson};
use peaklane_core::summary::{DayCount, LaneSummary, MissCount, Quantile, WindowSummary};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::burst::{exceeds_ms, p90_head, quantile_cell, simulated_note};
use crate::extra::{control_note, missed_words};
use crate::notes::{self, Note};
use crate::palette::{Palette, Tone};
use crate::sentence::{LaneView, constraint, name};
use crate::table::{Align, Cell, Column, Table, escape_markdown};
use crate::throughput::hourly;
use crate::units::{interval, money, ms, one_line, percent};
use crate::words::misses;

pub use self::json::json;

/// All lanes as text, a blank line between two. Ends with a newline.
///
/// * `width`: columns of the terminal.
pub fn render(views: &[LaneView<'_>], thresholds: &Thresholds, width: usize, palette: Palette) -> String {
    let mut blocks: Vec<String> = views.iter().map(|view| block(view, views, thresholds, width, palette)).collect();
    let notes = notes(views);
    if !notes.is_empty() {
        blocks.push(notes::render(&notes, width, palette));
    }
    blocks.join("\n")
}

fn block(view: &LaneView<'_>, all: &[LaneView<'_>], thresholds: &Thresholds, width: usize, palette: Palette) -> String {
    let (left, right) = title(view, all);
    let gap = width.min(100).saturating_sub(left.width() + right.width());
    let mut out = palette.paint(Tone::Strong, &left);
    if !right.is_empty() {
        let gap = if gap >= 2 { " ".repeat(gap) } else { "\n".to_owned() };
        out.push_str(&format!("{gap}{}", palette.paint(Tone::Dim, &right)));
    }
    out.push('\n');
    out.push_str(&table(&[*view], thresholds).render(width, palette));
    if let Some(text) = footer(view, thresholds) {
        for line in crate::table::wrap(&text, width) {
            out.push_str(&format!("{line}\n"));
        }
    }
    out
}

/// What the lane is, and how much was measured: `lane-a · free-hosted · inline-assist, floor 25 s` and `3 days x 8 attempts
/// a window, peak 16:00`. What else tells it from the others of `all` stands behind it: model, prompt hash.
pub fn title(view: &LaneView<'_>, all: &[LaneView<'_>]) -> (String, String) {
    let s = view.summary;
    let mut left = heading(s);
    let alike: Vec<&LaneSummary> = all.iter().map(|v| v.summary).filter(|o| heading(o) == left).collect();
    if alike.iter().any(|o| o.model != s.model) {
        left.push_str(&format!(" · {}", one_line(&s.model)));
    }
    if alike.iter().any(|o| o.model == s.model && o.prompt_hash != s.prompt_hash) {
        left.push_str(&format!(" · prompt {}", one_line(&s.prompt_hash)));
    }
    if alike.iter().any(|o| o.model == s.model && o.prompt_hash == s.prompt_hash && o.prompt_mode != s.prompt_mode) {
        left.push_str(&format!(" · {} prompts", s.prompt_mode.name()));
    }
    let mut right: Vec<String> = Vec::new();
    right.extend(s.site.as_deref().map(|site| format!("at {}", one_line(site))));
    let windows: Vec<&WindowSummary> = s.windows.iter().filter(|w| w.window.is_some()).collect();
    if !windows.is_empty() {
        right.extend(amount(&windows));
        right.extend(view.peak.map(|peak| format!("peak {}", one_line(peak))));
    }
    (left, right.join(", "))
}

fn heading(s: &LaneSummary) -> String {
    let floor = crate::burst::floor(s.floor_us, s.tasks_per_hour_floor);
    format!("{} · {} · {}, floor {floor}", one_line(&s.lane), s.kind, one_line(&s.task))
}

/// `3 days x 8 attempts a window` where all windows have the same; else the range of attempts.
fn amount(windows: &[&WindowSummary]) -> Option<String> {
    let days = |w: &WindowSummary| {
        let mut dates: Vec<_> = w.days.iter().filter(|d| d.state == BurstState::Complete).map(|d| &d.date).collect();
        dates.sort();
        dates.dedup();
        dates.len()
    };
    let first = windows.first()?;
    let (least, most) = (windows.iter().map(|w| w.n).min()?, windows.iter().map(|w| w.n).max()?);
    let count = days(first);
    let same = least == most && windows.iter().all(|w| days(w) == count) && count > 0;
    match (same, first.n.checked_rem(u32::try_from(count).ok()?)) {
        (true, Some(0)) => {
            let each = first.n / u32::try_from(count).ok()?;
            Some(format!("{count} {} x {each} attempts a window", if count == 1 { "day" } else { "days" }))
        }
        _ if least == most => Some(format!("{least} attempts a window")),
        _ => Some(format!("{least}-{most} attempts a window")),
    }
}

/// The marks explained, and the constraint.
pub fn footer(view: &LaneView<'_>, thresholds: &Thresholds) -> Option<String> {
    let windows = view.summary.windows.iter().any(|w| w.window.is_some());
    let marks = match (view.peak_index(), view.worst_index()) {
        _ if !windows => None,
        (Some(peak), Some(worst)) if peak != worst => Some("^ peak, v worst."),
        (Some(_), _) => Some("^ peak."),
        (None, Some(_)) => Some("v worst window (no peak declared)."),
        (None, None) => None,
    };
    let text: Vec<String> = marks.map(str::to_owned).into_iter().chain(constraint(view, thresholds)).collect();
    (!text.is_empty()).then(|| text.join(" "))
}

/// What holds for all lanes.
pub fn notes(views: &[LaneView<'_>]) -> Vec<Note> {
    let mut notes: Vec<Note> =
        simulated_note(views.iter().map(|v| (v.summary.lane.as_str(), v.summary.simulated))).into_iter().collect();
    let identical: Vec<(String, Option<String>)> = views
        .iter()
        .map(|v| {
            let says = (v.summary.prompt_mode == PromptMode::Identical)
                .then(|| "identical prompts: these figures measure the prefix cache too".to_owned());
            (one_line(&v.summary.lane), says)
        })
        .collect();
    notes.extend(notes::told_once("prompts", Tone::Warn, &identical));
    notes.extend(control_note(&views.iter().map(|v| v.extra).collect::<Vec<_>>()));
    // Bursts by hand are shown one by one, with plain intervals.
    let mut windows = views.iter().flat_map(|v| &v.summary.windows).filter(|w| w.window.is_some());
    let clustered = windows.any(|w| w.design_effect.is_some_and(|d| d > 1.0));
    let picked = |v: &LaneView<'_>| v.worst_index().is_some_and(|i| v.peak_index() != Some(i));
    if views.iter().any(picked) {
        let text = "that of a worst window picked afterwards is wider: it shares its 5 % with all windows looked at";
        notes.push(Note::plain("intervals", text));
    }
    if clustered {
        let text = "wider than for independent attempts where bursts of one window differ: attempts of one burst share a queue";
        notes.push(Note::plain("intervals", text));
    }
    notes
}

/// One line of the table: a window, or one burst by hand.
struct Row<'a> {
    label: String,
    date: Option<&'a str>,
    window: Option<&'a str>,
    peak: bool,
    worst: bool,
    bursts: u32,
    passed: u32,
    n: u32,
    interval: Option<(f64, f64)>,
    p50: Option<Quantile>,
    p90: Option<Quantile>,
    ttft: Option<Quantile>,
    first_answer: Option<Quantile>,
    retried: u32,
    retries: Option<u32>,
    misses: Option<&'a [MissCount]>,
    by_day: String,
    throughput: Option<PooledThroughput>,
    micro_usd_per_1000: Option<u64>,
    missed: u32,
    note: String,
}

fn rows<'a>(view: &LaneView<'a>) -> Vec<Row<'a>> {
    let (peak, worst) = (view.peak_index(), view.worst_index());
    let mut rows = Vec::new();
    for (index, w) in view.summary.windows.iter().enumerate() {
        if w.window.is_none() {
            rows.extend(w.days.iter().map(by_hand));
            continue;
        }
        let extra = w.window.as_deref().and_then(|window| view.extra_of(window));
        let missed = extra.map_or(&[][..], |e| &e.missed);
        let (is_peak, is_worst) = (peak == Some(index), worst == Some(index));
        let mark = if is_peak {
            " ^"
        } else if is_worst {
            " v"
        } else {
            ""
        };
        rows.push(Row {
            label: format!("{}{mark}", name(w)),
            date: None,
            window: w.window.as_deref(),
            peak: is_peak,
            worst: is_worst,
            bursts: w.bursts,
            passed: w.passed,
            n: w.n,
            interval: view.interval_of(index),
            p50: w.p50,
            p90: w.p90,
            ttft: w.ttft_p50,
            first_answer: w.first_answer_p50,
            retried: w.retried,
            retries: Some(w.retries),
            misses: Some(&w.misses),
            by_day: by_day(w),
            throughput: w.throughput,
            micro_usd_per_1000: extra.and_then(|e| e.micro_usd_per_1000),
            missed: u32::try_from(missed.len()).unwrap_or(u32::MAX),
            note: [uncounted(&w.days), missed_words(missed)]
                .into_iter()
                .filter(|t| !t.is_empty())
                .collect::<Vec<_>>()
                .join("; "),
        });
    }
    rows
}

/// One burst by hand, with its own figures.
fn by_hand(day: &DayCount) -> Row<'_> {
    let counts = day.state == BurstState::Complete;
    Row {
        label: begin_of(&day.burst).or(day.date.as_deref().map(one_line)).unwrap_or_else(|| one_line(&day.burst)),
        date: day.date.as_deref(),
        window: None,
        peak: false,
        worst: false,
        bursts: u32::from(counts),
        passed: day.passed,
        n: if counts { day.n } else { 0 },
        interval: PassRate::new(day.passed, day.n).filter(|_| counts).map(|r| wilson(r, Confidence::P95).pair()),
        p50: day.p50.filter(|_| counts),
        p90: day.p90,
        ttft: day.ttft_p50.filter(|_| counts),
        first_answer: day.first_answer_p50.filter(|_| counts),
        retried: day.retried,
        retries: counts.then_some(day.retries),
        misses: counts.then_some(day.misses.as_slice()),
        by_day: String::new(),
        throughput: day.throughput.and_then(|one| pooled_throughput(&[one], Confidence::P95)),
        micro_usd_per_1000: None,
        missed: 0,
        note: if counts { String::new() } else { format!("{}, not counted", day.state.name()) },
    }
}

/// When a burst began, from its id (`20261130T160000.123456Z-...`): two bursts of one day are told apart by it.
fn begin_of(burst: &str) -> Option<String> {
    let part = |range: std::ops::Range<usize>| burst.get(range).filter(|p| p.bytes().all(|b| b.is_ascii_digit()));
    let (year, month, day) = (part(0..4)?, part(4..6)?, part(6..8)?);
    let (hour, minute) = (part(9..11)?, part(11..13)?);
    (burst.get(8..9)? == "T").then(|| format!("{year}-{month}-{day} {hour}:{minute}Z"))
}

/// Passes of each day in the order of the days, `2 4 2`: the trend. A burst that does not count is `-`. Empty for a single
/// day, and for more than a week, where the figures of each day are for programs.
fn by_day(window: &WindowSummary) -> String {
    let days: BTreeSet<_> = window.days.iter().map(|day| &day.date).collect();
    if !(2..=7).contains(&days.len()) {
        return String::new();
    }
    let of_day =
        |day: &DayCount| if day.state == BurstState::Complete { day.passed.to_string() } else { "-".to_owned() };
    window.days.iter().map(of_day).collect::<Vec<_>>().join(" ")
}

/// Bursts that are on record and count neither way: `2026-11-24 void, not counted`.
fn uncounted(days: &[DayCount]) -> String {
    let left_out = days.iter().filter(|d| d.state != BurstState::Complete);
    let told: Vec<String> = left_out
        .map(|d| format!("{} {}", d.date.as_deref().map_or_else(|| one_line(&d.burst), one_line), d.state.name()))
        .collect();
    if told.is_empty() { String::new() } else { format!("{}, not counted", told.join(", ")) }
}

/// The rows of all lanes in one table; people see the window's columns, programs the lane's too.
pub fn table(views: &[LaneView<'_>], thresholds: &Thresholds) -> Table {
    let all: Vec<(&LaneView<'_>, Row<'_>)> =
        views.iter().flat_map(|v| rows(v).into_iter().map(move |r| (v, r))).collect();
    let head = if all.iter().all(|(_, r)| r.window.is_none()) { "begin" } else { "window" };
    let counts: Vec<u32> = all.iter().map(|(_, r)| r.n).collect();
    let lane = if views.len() > 1 { Column::words("lane", "lane") } else { Column::data("lane") };
    // The trend stands where the median would: a terminal has no room for both, and programs get both.
    let trend = all.iter().any(|(_, r)| !r.by_day.is_empty());
    let p50 = if trend { Column::data("p50_ms") } else { Column::figures("p50_ms", "p50") };
    let mut table = Table::new(vec![
        lane,
        Column::data("kind"),
        Column::data("task"),
        Column::data("model"),
        Column::data("floor_ms"),
        Column::data("prompt_mode"),
        Column::data("simulated"),
        Column::shown(head, Align::Left),
        Column::data("window"),
        Column::data("date"),
        Column::data("peak"),
        Column::data("worst"),
        Column::data("bursts"),
        Column::shown("pass", Align::Right),
        Column::data("passed"),
        Column::data("n"),
        Column::figures("pass_rate", ""),
        Column::shown("by day", Align::Left),
        Column::shown("95 % interval", Align::Right),
        Column::data("pass_low"),
        Column::data("pass_high"),
        p50,
        Column::figures("p90_ms", p90_head(&counts)),
        Column::data("p90_exceeds_ms"),
        Column::figures("ttft_p50_ms", "TTFT p50"),
        Column::data("first_answer_p50_ms"),
        Column::figures("retry_rate", "retries"),
        Column::data("attempts_with_retry"),
        Column::data("retries"),
        Column::shown("tasks/h", Align::Right),
        Column::data("tasks_per_hour"),
        Column::data("tasks_per_hour_low"),
        Column::data("tasks_per_hour_high"),
        Column::shown("$/1,000", Align::Right),
        Column::data("usd_per_1000_requests"),
        Column::data("missed"),
        Column::words("misses", ""),
    ]);
    for (view, row) in &all {
        table.row(cells(view, row, thresholds));
    }
    table
}

fn cells(view: &LaneView<'_>, r: &Row<'_>, thresholds: &Thresholds) -> Vec<Cell> {
    let s = view.summary;
    let bars = [thresholds.pass_percent, thresholds.trigger_pass_percent];
    let rate = PassRate::new(r.passed, r.n);
    let tone =
        rate.map_or(Tone::Dim, |rate| if rate.reaches(thresholds.pass_percent) { Tone::Good } else { Tone::Bad });
    let retry_bars = [thresholds.retry_below_percent, thresholds.trigger_retry_percent];
    let words = [misses(r.misses.unwrap_or_default()), r.note.clone()];
    let words = words.into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>().join("; ");
    let counted = |n: u32| if r.n > 0 { Cell::value(n) } else { Cell::value(Value::Null) };
    vec![
        Cell::text(&s.lane),
        Cell::value(s.kind.name()),
        Cell::value(s.task.clone()),
        Cell::value(s.model.clone()),
        if s.floor_us > 0 { Cell::value(ms(s.floor_us)) } else { Cell::absent() },
        Cell::value(s.prompt_mode.name()),
        Cell::value(s.simulated),
        Cell::text(&r.label).tone(if r.peak { Tone::Strong } else { Tone::Plain }),
        Cell::value(r.window),
        Cell::value(r.date),
        Cell::value(r.peak),
        Cell::value(r.worst),
        Cell::value(r.bursts),
        if r.n > 0 { Cell::text(format!("{}/{}", r.passed, r.n)).tone(tone) } else { Cell::absent() },
        counted(r.passed),
        Cell::value(r.n),
        match rate {
            Some(rate) => Cell::new(rate.text(&bars), rate.share()).tone(tone),
            None => Cell::absent(),
        },
        Cell::text(&r.by_day),
        Cell::text(interval(r.interval, &bars)),
        Cell::value(r.interval.map(|i| i.0)),
        Cell::value(r.interval.map(|i| i.1)),
        quantile_cell(r.p50, s.floor_us),
        quantile_cell(r.p90, s.floor_us),
        Cell::value(exceeds_ms(r.p90)),
        quantile_cell(r.ttft, s.floor_us),
        match r.first_answer {
            Some(Quantile::Value(us)) => Cell::value(ms(us)),
            _ => Cell::value(Value::Null),
        },
        if r.n > 0 {
            Cell::new(percent(r.retried, r.n, &retry_bars), f64::from(r.retried) / f64::from(r.n))
        } else {
            Cell::absent()
        },
        counted(r.retried),
        r.retries.map_or(Cell::value(Value::Null), counted),
        match (r.throughput, s.tasks_per_hour_floor) {
            (Some(seen), Some(floor)) => {
                let tone = if seen.all.reaches(floor) { Tone::Good } else { Tone::Bad };
                Cell::text(hourly(seen.all, floor)).tone(tone)
            }
            _ => Cell::text(""),
        },
        Cell::value(r.throughput.map(|t| t.all.per_hour())),
        Cell::value(r.throughput.map(|t| t.interval.low)),
        Cell::value(r.throughput.map(|t| t.interval.high)),
        Cell::text(r.micro_usd_per_1000.map(money).unwrap_or_default()),
        Cell::value(r.micro_usd_per_1000.map(|micro| micro as f64 / 1e6)),
        Cell::value(r.missed),
        Cell::text(words),
    ]
}

/// All lanes as Markdown: a heading, a table and a sentence each.
pub fn markdown(views: &[LaneView<'_>], thresholds: &Thresholds) -> String {
    let mut blocks: Vec<String> = Vec::new();
    for view in views {
        let (left, right) = title(view, views);
        let mut block = format!("### {}\n\n", escape_markdown(&left));
        if !right.is_empty() {
            block.push_str(&format!("{}\n\n", escape_markdown(&right)));
        }
        block.push_str(&table(&[*view], thresholds).markdown());
        if let Some(text) = footer(view, thresholds) {
            block.push_str(&format!("\n{}\n", escape_markdown(&text)));
        }
        blocks.push(block);
    }
    let notes = notes(views);
    if !notes.is_empty() {
        blocks.push(notes::markdown(&notes));
    }
    blocks.join("\n")
}

/// One CSV line per lane and window (or burst by hand).
///
/// # Errors
/// As [`Table::csv`].
pub fn csv(views: &[LaneView<'_>], thresholds: &Thresholds) -> Result<String, csv::Error> {
    table(views, thresholds).csv()
}

#[cfg(test)]
mod tests;
