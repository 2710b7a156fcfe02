//! What `check` shows of a sound configuration.

use peaklane_core::config::TaskKind;
use peaklane_report::palette::{Palette, Tone};
use peaklane_report::table::{Align, Cell, Column, Table, escape_markdown, wrap};
use peaklane_report::units::{bytes, count, counted, limit};
use serde_json::Value;

use super::extent::Extent;
use super::look::{CheckReport, KeyState, LaneLook, TaskLook};
use crate::exit::Exit;
use crate::failure::Failure;

/// Where the texts of the last block begin.
const INDENT: usize = 10;

/// As text for people. Ends with a newline.
pub(super) fn render(report: &CheckReport, width: usize, palette: Palette) -> String {
    let mut out = format!("{}\n\n", palette.paint(Tone::Strong, &headline(report)));
    out.push_str(&lanes(&report.lanes).render(width, palette));
    out.push('\n');
    out.push_str(&tasks(&report.tasks).render(width, palette));
    out.push('\n');
    for (about, text) in facts(report) {
        for (number, line) in wrap(&text, width.saturating_sub(INDENT)).iter().enumerate() {
            let about = if number == 0 { about } else { "" };
            let fill = " ".repeat(INDENT.saturating_sub(about.len()));
            out.push_str(&format!("{}{fill}{line}\n", palette.paint(Tone::Dim, about)));
        }
    }
    out
}

/// As Markdown.
pub(super) fn markdown(report: &CheckReport) -> String {
    let facts: String =
        facts(report).iter().map(|(about, text)| format!("- {about}: {}\n", escape_markdown(text))).collect();
    let headline = escape_markdown(&headline(report));
    format!("**{headline}**\n\n{}\n{}\n{facts}", lanes(&report.lanes).markdown(), tasks(&report.tasks).markdown())
}

/// As CSV: one line per figure, `lanes.0.name,lane-a`, since lanes, tasks and counts share no columns.
///
/// # Errors
/// None in practice: a string takes every byte.
pub(super) fn csv(report: &Value) -> Result<String, Failure> {
    let mut rows = vec![("key".to_owned(), "value".to_owned())];
    flatten(report, "", &mut rows);
    let mut writer = csv::Writer::from_writer(Vec::new());
    let written = rows.iter().try_for_each(|(key, value)| writer.write_record([key, value]));
    written.map_err(|error| Failure::of(Exit::Unmeasured, &error, None))?;
    let bytes = writer.into_inner().map_err(|error| Failure::of(Exit::Unmeasured, error.error(), None))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn flatten(value: &Value, path: &str, rows: &mut Vec<(String, String)>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| flatten(value, &below(key), rows)),
        Value::Array(items) => {
            (0..).zip(items).for_each(|(index, item): (u32, _)| flatten(item, &below(&index.to_string()), rows))
        }
        Value::Null => rows.push((path.to_owned(), String::new())),
        Value::String(text) => rows.push((path.to_owned(), text.clone())),
        plain => rows.push((path.to_owned(), plain.to_string())),
    }
}

fn headline(report: &CheckReport) -> String {
    let keys = report.lanes.iter().filter(|lane| lane.key == KeyState::NotSet).count();
    let missing = if keys == 0 { String::new() } else { format!(", but {} not set here", variables(keys)) };
    format!("{} can be used{missing}", report.source)
}

fn variables(n: usize) -> String {
    if n == 1 { "1 key variable is".to_owned() } else { format!("{n} key variables are") }
}

fn lanes(lanes: &[LaneLook]) -> Table {
    let mut table = Table::new(vec![
        Column::words("lane", "lane"),
        Column::words("kind", "kind"),
        Column::words("model", "model"),
        Column::words("key", "key"),
        Column::words("url", "address"),
    ]);
    for lane in lanes {
        let source = lane.key_from.as_deref().unwrap_or_default();
        let (key, tone) = match lane.key {
            KeyState::None => ("none".to_owned(), Tone::Plain),
            KeyState::Ready => (source.to_owned(), Tone::Good),
            KeyState::NotSet => (format!("{source} (not set)"), Tone::Warn),
            KeyState::Unusable => (format!("{source} (unusable)"), Tone::Bad),
        };
        table.row(vec![
            Cell::text(&lane.name),
            Cell::text(lane.kind.name()),
            Cell::text(&lane.model),
            Cell::text(key).tone(tone),
            Cell::text(lane.url.as_deref().unwrap_or_default()),
        ]);
    }
    table
}

fn tasks(tasks: &[TaskLook]) -> Table {
    let mut table = Table::new(vec![
        Column::words("task", "task"),
        Column::words("floor", "floor"),
        Column::words("check", "check"),
        Column::shown("prompt", Align::Right),
        Column::shown("budget", Align::Right),
    ]);
    for task in tasks {
        let floor = match (task.judged_by, task.floor_ms, task.tasks_per_hour) {
            (TaskKind::Latency, Some(floor), _) => limit(floor.0),
            (TaskKind::Batch, _, Some(rate)) => format!("{} an hour", counted(rate.into(), "task")),
            _ => String::new(),
        };
        table.row(vec![
            Cell::text(&task.name),
            Cell::text(floor),
            Cell::text(task.check),
            Cell::text(bytes(task.prompt_bytes as u64)),
            Cell::text(counted(task.max_tokens.into(), "token")),
        ]);
    }
    table
}

/// What would be measured, a line each.
fn facts(report: &CheckReport) -> Vec<(&'static str, String)> {
    let Some(extent) = &report.extent else { return Vec::new() };
    let mut facts = vec![("measures", product(extent))];
    facts.push(("requests", requests(extent)));
    if extent.campaign {
        facts.extend(extent.sites.iter().map(|site| ("windows", windows(site))));
        facts.push(("days", days(extent)));
    }
    facts
}

fn product(extent: &Extent) -> String {
    let mut factors = vec![counted(extent.lanes as u64, "lane"), counted(extent.tasks as u64, "task")];
    if extent.campaign {
        match extent.sites.as_slice() {
            [only] => factors.push(counted(only.windows.len() as u64, "window")),
            sites => {
                let windows: usize = sites.iter().map(|site| site.windows.len()).sum();
                factors.push(format!(
                    "{} at {}",
                    counted(windows as u64, "window"),
                    counted(sites.len() as u64, "site")
                ));
            }
        }
        factors.push(counted(extent.days.into(), "day"));
        if extent.bursts_per_window > 1 {
            factors.push(counted(extent.bursts_per_window.into(), "burst"));
        }
    }
    let bursts = counted(extent.bursts, "burst");
    let attempts = counted(extent.attempts_per_burst.into(), "attempt");
    let by_hand = if extent.campaign { "" } else { ", once (there is no [campaign])" };
    format!("{} = {bursts} of {attempts}{by_hand}", factors.join(" x "))
}

fn requests(extent: &Extent) -> String {
    let stretches = match extent.stretches {
        0 => String::new(),
        n => format!("; of batch classes {} by the clock", counted(n, "stretch").replace("stretchs", "stretches")),
    };
    let warmups = (extent.bursts - extent.stretches) * u64::from(extent.warmup_per_burst);
    let warmups = if warmups == 0 { String::new() } else { format!(" ({} of them to warm up)", count(warmups)) };
    let retries = match extent.retries_at_most {
        0 => "no retries".to_owned(),
        1 => format!("at most {} with 1 retry each", count(extent.requests_at_most)),
        n => format!("at most {} with {n} retries each", count(extent.requests_at_most)),
    };
    format!("{}{warmups}, {retries}{stretches}", count(extent.requests))
}

fn windows(site: &super::extent::SiteExtent) -> String {
    let one = |w: &super::extent::PlannedWindow| {
        format!("{}{} for {}", w.start, if w.peak { " (peak)" } else { "" }, limit(w.length_ms.0))
    };
    let list: Vec<String> = site.windows.iter().map(one).collect();
    let lanes = site.name.as_ref().map(|name| format!("{name}, {}: ", counted(site.lanes as u64, "lane")));
    format!("{}{}; {}", lanes.unwrap_or_default(), list.join(", "), site.time_zone)
}

fn days(extent: &Extent) -> String {
    match extent.dates.as_slice() {
        [] => format!("{} that count, from the day on which the campaign is started", extent.days),
        dates if dates.len() <= 10 => dates.iter().map(|d| d.date.as_str()).collect::<Vec<_>>().join(", "),
        [first, .., last] => format!("{} from {} to {}", extent.days, first.date, last.date),
        [only] => only.date.clone(),
    }
}
