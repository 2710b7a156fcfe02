//! Sessions that were recorded elsewhere: how much of each prompt the next one repeats, and where it ceases to.

use peaklane_core::prefix::trace::{Pair, TraceSession};

use crate::calls::words;
use crate::notes::{self, Note};
use crate::palette::{Palette, Tone};
use crate::table::{Cell, Column, Table};
use crate::units::{bytes, count, counted, one_line, shortened};

/// Breaks that are told one by one of one session.
const TOLD: usize = 8;
/// Longest path in a note.
const MOST_PATH: usize = 60;

/// The table and the breaks.
pub fn render(sessions: &[TraceSession], width: usize, palette: Palette) -> String {
    let broken: Vec<&TraceSession> = sessions.iter().filter(|s| !s.breaks.is_empty()).collect();
    let (text, tone) = match broken.as_slice() {
        [] => ("Every prompt repeats the former one whole".to_owned(), Tone::Good),
        some => {
            let breaks: u64 = some.iter().map(|s| s.breaks.len() as u64).sum();
            let lost: u64 = some.iter().flat_map(|s| s.breaks.iter().map(|b| b.lost)).sum();
            let of = format!("{} of {}", count(some.len() as u64), counted(sessions.len() as u64, "session"));
            (format!("{} in {of}: {} of prompts to be read again", counted(breaks, "break"), bytes(lost)), Tone::Warn)
        }
    };
    let mut out = format!("{}\n\n{}", palette.paint(tone, &text), table(sessions).render(width, palette));
    let notes = notes_of(sessions);
    if !notes.is_empty() {
        out.push('\n');
        out.push_str(&notes::render(&notes, width, palette));
    }
    out
}

/// The same as Markdown.
pub fn markdown(sessions: &[TraceSession]) -> String {
    let notes = notes_of(sessions);
    let below = if notes.is_empty() { String::new() } else { format!("\n{}", notes::markdown(&notes)) };
    format!("{}{below}", table(sessions).markdown())
}

fn notes_of(sessions: &[TraceSession]) -> Vec<Note> {
    let mut notes = Vec::new();
    for session in sessions {
        let broken: Vec<&Pair> = session.pair_list.iter().filter(|p| p.lost > 0).collect();
        for pair in broken.iter().take(TOLD) {
            let what = pair.first_divergence.as_ref().map_or_else(String::new, |found| {
                format!(", by {} at {}", words(found.kind), shortened(&one_line(&found.path), MOST_PATH))
            });
            let text = format!(
                "{}: call {} repeats {} % of call {}{what}; {} lost",
                one_line(&session.session),
                pair.to,
                (pair.reuse * 100.0).floor(),
                pair.from,
                bytes(pair.lost),
            );
            notes.push(Note::warning("break", text));
        }
        if broken.len() > TOLD {
            let more = count((broken.len() - TOLD) as u64);
            notes.push(Note::plain("break", format!("{}: {more} more", one_line(&session.session))));
        }
    }
    notes
}

/// One row per session.
pub fn table(sessions: &[TraceSession]) -> Table {
    let mut table = Table::new(vec![
        Column::words("session", "session"),
        Column::words("harness", "harness"),
        Column::words("version", "version"),
        Column::data("file"),
        Column::figures("calls", "calls"),
        Column::figures("helper_calls", "helpers"),
        Column::figures("tools", "tools"),
        Column::figures("first_prompt_bytes", "first prompt"),
        Column::figures("last_prompt_bytes", "last"),
        Column::figures("append_only_pairs", "append-only"),
        Column::data("pairs"),
        Column::figures("reuse_min", "reuse, least"),
        Column::figures("reuse_mean", "mean"),
        Column::figures("reuse_min_other_order", "system first"),
        Column::figures("session_hit_ratio", "could be cached"),
    ]);
    for s in sessions {
        let number = |n: u64| Cell::new(count(n), n);
        let share = |v: Option<f64>| {
            v.map_or_else(Cell::absent, |v| {
                let cell = Cell::new(format!("{} %", (v * 100.0).floor()), v);
                if v < 1.0 { cell.tone(Tone::Warn) } else { cell }
            })
        };
        let name = |t: &Option<String>| t.as_ref().map_or_else(Cell::absent, Cell::text);
        let ratio =
            |v: Option<f64>| v.map_or_else(Cell::absent, |v| Cell::new(format!("{} %", (v * 100.0).floor()), v));
        table.row(vec![
            Cell::text(&s.session),
            name(&s.harness),
            name(&s.version),
            Cell::value(s.file.clone()),
            number(s.calls),
            number(s.helper_calls),
            number(s.tools),
            Cell::new(bytes(s.first_prompt_bytes), s.first_prompt_bytes),
            Cell::new(bytes(s.last_prompt_bytes), s.last_prompt_bytes),
            Cell::new(format!("{} of {}", count(s.append_only_pairs), count(s.pairs)), s.append_only_pairs),
            Cell::value(s.pairs),
            share(s.reuse_min),
            share(s.reuse_mean),
            share(s.reuse_min_other_order),
            ratio(s.session_hit_ratio),
        ]);
    }
    table
}
