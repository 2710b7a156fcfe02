//! What `peaklane decide` shows: the choice in one line, one line for each lane, hours, trigger, and what to do next.

mod json;
mod lines;
mod record;
mod routing;
mod trade_off;

use peaklane_core::choice::Choice;
use peaklane_core::rules::Standing;
use unicode_width::UnicodeWidthStr;

pub use json::{choice_json, json};
pub use lines::{hints, hours_line, record_line, trigger_line};
pub use record::markdown_record;
pub use routing::{NoRouting, litellm, routing_json};
pub use trade_off::{Cold, trade_off};

use crate::decision::{Beside, reasons};
use crate::notes::{self, Note};
use crate::palette::{Palette, Tone};
use crate::table::{Cell, Column, Table, escape_markdown, wrap};
use crate::units::one_line;

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The choice and its lines.
    Short,
    /// The trade-off table below it too.
    Full,
}

/// The sentence that matters: `inline-assist -> lane-c (paid-hosted)`.
pub fn headline(choice: &Choice) -> String {
    let site = choice.site.as_deref().map(|site| format!("{} · ", one_line(site))).unwrap_or_default();
    let task = one_line(&choice.task);
    match choice.chosen() {
        Some(lane) => format!("{site}{task} -> {} ({})", one_line(&lane.lane), lane.kind),
        None if choice.lacks_data() => format!("{site}{task} -> no decision yet: too little data"),
        None if choice.split.is_some() => format!("{site}{task} -> no lane holds all day, a split by hours does"),
        None => format!("{site}{task} -> no lane holds"),
    }
}

/// How sure, and until when: `provisional · expires 2026-12-14`.
fn certainty_words(choice: &Choice) -> String {
    if choice.lacks_data() {
        return String::new();
    }
    let sure = choice.chosen().map(|_| if choice.is_conclusive() { "conclusive" } else { "provisional" });
    let expires = choice.expires.map(|day| format!("expires {day}"));
    sure.map(str::to_owned).into_iter().chain(expires).collect::<Vec<_>>().join(" · ")
}

/// All choices as text, a blank line between two. Ends with a newline.
///
/// * `width`: columns of the terminal.
pub fn render(choices: &[Choice], detail: Detail, width: usize, palette: Palette) -> String {
    choices.iter().map(|choice| block(choice, detail, width, palette)).collect::<Vec<_>>().join("\n")
}

fn block(choice: &Choice, detail: Detail, width: usize, palette: Palette) -> String {
    let (left, right) = (headline(choice), certainty_words(choice));
    let gap = width.min(100).saturating_sub(left.width() + right.width());
    let gap = if gap >= 2 { " ".repeat(gap) } else { "\n  ".to_owned() };
    let mut out = palette.paint(Tone::Strong, &left);
    if !right.is_empty() {
        out.push_str(&format!("{gap}{}", palette.paint(Tone::Dim, &right)));
    }
    out.push('\n');
    for line in table(choice).render(width.saturating_sub(2), palette).lines().skip(1) {
        out.push_str(&format!("  {line}\n"));
    }
    let fired = choice.fired();
    let mut say = |text: String, tone: Tone| {
        for line in wrap(&text, width) {
            out.push_str(&format!("{}\n", palette.paint(tone, &line)));
        }
    };
    if let Some(text) = hours_line(choice) {
        say(text, Tone::Plain);
    }
    say(trigger_line(choice), if fired { Tone::Bad } else { Tone::Plain });
    if let Some(text) = record_line(choice) {
        say(text, if choice.expired() { Tone::Bad } else { Tone::Plain });
    }
    let told = notes(choice);
    if !told.is_empty() {
        out.push_str(&notes::render(&told, width, palette));
    }
    if detail == Detail::Full {
        out.push_str(&format!("\n{}", trade_off::text(choice, width, palette)));
        out.push_str(&notes::render(&assumptions(choice), width, palette));
    }
    for hint in hints(choice) {
        for (number, line) in wrap(&format!("hint: {hint}"), width).into_iter().enumerate() {
            let line = if number > 0 { format!("      {line}") } else { line };
            out.push_str(&format!("{line}\n"));
        }
    }
    out
}

/// One row for each lane: standing and reasons.
pub fn table(choice: &Choice) -> Table {
    let mut table = Table::new(vec![
        Column::data("site"),
        Column::data("task"),
        Column::words("lane", "lane"),
        Column::words("kind", "kind"),
        Column::words("standing", "stands"),
        Column::data("chosen"),
        Column::data("window"),
        Column::data("passed"),
        Column::data("n"),
        Column::data("retried"),
        Column::data("attempts"),
        Column::data("conclusive"),
        Column::data("usd_per_1000_requests"),
        Column::words("why", "why"),
    ]);
    for (at, lane) in choice.lanes.iter().enumerate() {
        let (standing, _) = &choice.ladder.standings[at];
        let tone = match standing {
            Standing::Holds => Tone::Good,
            Standing::Out => Tone::Bad,
            Standing::Undecided | Standing::NotApplicable => Tone::Dim,
        };
        let rate = choice.candidates[at].decision.pass_rate;
        table.row(vec![
            Cell::value(choice.site.clone()),
            Cell::value(choice.task.clone()),
            Cell::text(&lane.lane),
            Cell::text(lane.kind.name()),
            Cell::text(standing.name()).tone(tone),
            Cell::value(choice.ladder.chosen == Some(at)),
            Cell::value(lane.deciding_window().map(|w| w.window.clone())),
            Cell::value(rate.map(|r| r.passed())),
            Cell::value(rate.map(|r| r.of())),
            Cell::value(lane.retries.rate().map(|r| r.retried())),
            Cell::value(lane.retries.rate().map(|r| r.of())),
            Cell::value(lane.is_conclusive()),
            Cell::value(lane.micro_usd_per_1000.map(usd)),
            Cell::text(why(choice, at)),
        ]);
    }
    table
}

/// Dollars as JSON carries them.
pub(crate) fn usd(micro_usd: u64) -> f64 {
    micro_usd as f64 / 1e6
}

/// Why a lane stands as it does.
pub(crate) fn why(choice: &Choice, at: usize) -> String {
    let (candidate, figures) = (&choice.candidates[at], &choice.lanes[at]);
    let chosen = choice.ladder.chosen == Some(at);
    let certainty = figures.pass_certainty.as_ref();
    let beside = Beside {
        interval: certainty.map(|c| c.clustered.interval.pair()).filter(|_| chosen),
        peak_retries: figures.deciding_window().and_then(|w| w.retries.rate()),
    };
    let said = reasons(candidate, &choice.ladder.standings[at].1, &choice.thresholds, &beside);
    let below = choice.lanes.iter().enumerate().filter(|(_, l)| l.kind < figures.kind);
    let mut below = below.map(|(i, _)| choice.ladder.standings[i].0).peekable();
    if chosen && below.peek().is_some() && below.all(|s| s != Standing::Holds) {
        return format!("{said}: every lower rung is out");
    }
    said
}

/// What stands beside the choice: declared reasons, the wrong tool, limits that nobody states, simulated lanes.
pub fn notes(choice: &Choice) -> Vec<Note> {
    let mut all = Vec::new();
    if choice.lanes.iter().any(|l| l.simulated) {
        all.push(Note::warning("simulated", "these figures come from simulated lanes"));
    }
    if let (None, Some(at)) = (choice.ladder.chosen, choice.least_bad) {
        let lane = &choice.lanes[at];
        let needed = lines::what_would_have_to_change(choice, at);
        all.push(Note::plain("least bad", format!("{}: it would hold if {needed}", one_line(&lane.lane))));
    }
    for wrong in &choice.wrong_tools {
        all.push(Note::warning("wrong tool", lines::wrong_tool_words(*wrong)));
    }
    for (key, words) in &choice.reasons {
        all.push(Note::plain("reason", format!("{key}: {}", one_line(words))));
    }
    let unknown: Vec<(String, Option<String>)> = choice
        .lanes
        .iter()
        .map(|lane| {
            let needs: Vec<String> = lane
                .needs
                .iter()
                .filter(|check| check.met().is_none())
                .map(|check| {
                    format!("{} {}", crate::units::count(check.needed), crate::decision::need_words(check.need))
                })
                .collect();
            let text = format!("its terms state no limit to hold {} against", crate::words::list(&needs));
            (one_line(&lane.lane), (!needs.is_empty()).then_some(text))
        })
        .collect();
    all.extend(notes::told_once("unknown", Tone::Warn, &unknown));
    let missing: Vec<(String, Option<String>)> = choice
        .lanes
        .iter()
        .map(|lane| {
            let days: Vec<String> =
                lane.missing.iter().map(|(date, why)| format!("{date} ({})", one_line(why))).collect();
            let window = lane.deciding_window().map_or("the deciding window", |w| w.window.as_str());
            let text = format!("no burst that counts at {window} on {}", crate::words::list(&days));
            (one_line(&lane.lane), (!days.is_empty()).then_some(text))
        })
        .collect();
    all.extend(notes::told_once("missing", Tone::Dim, &missing));
    for lane in choice.lanes.iter().filter(|l| l.other_series > 0) {
        let text = format!(
            "{}: {} series of another model, prompt or floor left out; the newest counts",
            one_line(&lane.lane),
            crate::units::count(lane.other_series.into())
        );
        all.push(Note::warning("series", text));
    }
    if let Some(at) = choice.down {
        let text = format!(
            "{} held on the last {} working days: by the rule of `step_down_days` the task class may move back to it",
            one_line(&choice.lanes[at].lane),
            choice.rules.step_down_days
        );
        all.push(Note::plain("down", text));
    }
    all
}

/// What the costs of the trade-off table rest on; nothing where none is told.
fn assumptions(choice: &Choice) -> Vec<Note> {
    let requests = choice.lanes.iter().find_map(|l| l.waiting).map(|w| w.requests);
    let note = requests.map(|requests| {
        let requests = crate::units::counted(requests, "request");
        Note::plain("assumed", format!("costs assume {requests} a month, spread evenly over the windows"))
    });
    note.into_iter().collect()
}

/// All choices as Markdown, the trade-off table included.
pub fn markdown(choices: &[Choice]) -> String {
    let mut out = String::new();
    for choice in choices {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&format!("### {}\n\n", escape_markdown(&headline(choice))));
        let sure = certainty_words(choice);
        if !sure.is_empty() {
            out.push_str(&format!("{sure}\n\n"));
        }
        out.push_str(&format!("{}\n{}\n", table(choice).markdown(), trade_off(choice).markdown()));
        let lines = hours_line(choice).into_iter().chain([trigger_line(choice)]).chain(record_line(choice));
        for line in lines {
            out.push_str(&format!("- {}\n", escape_markdown(&line)));
        }
        out.push_str(&notes::markdown(&notes(choice)));
        out.push_str(&notes::markdown(&assumptions(choice)));
        for hint in hints(choice) {
            out.push_str(&format!("- hint: {}\n", escape_markdown(&hint)));
        }
    }
    out
}

/// All lanes of all choices as CSV.
///
/// # Errors
/// None in practice.
pub fn csv(choices: &[Choice]) -> Result<String, csv::Error> {
    let mut out = String::new();
    for (number, choice) in choices.iter().enumerate() {
        let text = table(choice).csv()?;
        let body = if number == 0 { text.as_str() } else { text.split_once('\n').map_or("", |(_, rest)| rest) };
        out.push_str(body);
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
