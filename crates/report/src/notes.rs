//! The lines below a table: how it was measured, what was odd, and what the numbers cannot show.

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::palette::{Palette, Tone};
use crate::table::wrap;

/// Where the texts of the notes begin.
const INDENT: usize = 13;

/// One line below a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What it is about, one word or two: `prompts`, `cold start`.
    pub about: &'static str,
    /// The note itself.
    pub text: String,
    /// How loud it is.
    pub tone: Tone,
}

impl Note {
    /// A note that explains.
    pub fn plain(about: &'static str, text: impl Into<String>) -> Self {
        Self { about, text: text.into(), tone: Tone::Dim }
    }

    /// A note that wants to be read.
    pub fn warning(about: &'static str, text: impl Into<String>) -> Self {
        Self { about, text: text.into(), tone: Tone::Warn }
    }
}

/// The notes as aligned lines, wrapped at `width` columns.
pub fn render(notes: &[Note], width: usize, palette: Palette) -> String {
    let mut out = String::new();
    for note in notes {
        for (number, line) in wrap(&note.text, width.saturating_sub(INDENT).max(24)).iter().enumerate() {
            let about = if number == 0 { note.about } else { "" };
            let fill = " ".repeat(INDENT.saturating_sub(about.width()));
            out.push_str(&format!("{}{fill}{}\n", palette.paint(Tone::Dim, about), palette.paint(note.tone, line)));
        }
    }
    out
}

/// The notes as a list of objects with `about` and `text`.
pub fn json(notes: &[Note]) -> Value {
    notes.iter().map(|note| json!({"about": note.about, "text": note.text})).collect()
}

/// The notes as a Markdown list.
pub fn markdown(notes: &[Note]) -> String {
    let line = |note: &Note| format!("- {}: {}\n", note.about, crate::table::escape_markdown(&note.text));
    notes.iter().map(line).collect()
}

/// Tells the same thing of several lanes once: lanes with the same text are put together, in order; where all `lanes`
/// share it, they are not named.
pub fn told_once(about: &'static str, tone: Tone, per_lane: &[(String, Option<String>)]) -> Vec<Note> {
    let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
    for (lane, text) in per_lane {
        let Some(text) = text else { continue };
        let lanes = match groups.iter_mut().find(|(known, _)| known == text) {
            Some((_, lanes)) => lanes,
            None => {
                groups.push((text, Vec::new()));
                &mut groups.last_mut().expect("one was just pushed").1
            }
        };
        if !lanes.contains(lane) {
            lanes.push(lane.clone());
        }
    }
    let all_of_them = groups.len() == 1 && per_lane.iter().all(|(_, text)| text.is_some());
    groups
        .into_iter()
        .map(|(text, lanes)| {
            let text = if all_of_them { text.to_owned() } else { format!("{}: {text}", crate::words::list(&lanes)) };
            Note { about, text, tone }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_for_all_lanes_is_said_once_and_without_their_names() {
        let say = |texts: &[Option<&str>]| {
            let named: Vec<(String, Option<String>)> =
                (1..).zip(texts).map(|(i, t)| (format!("lane-{i}"), t.map(str::to_owned))).collect();
            told_once("x", Tone::Dim, &named).into_iter().map(|n| n.text).collect::<Vec<_>>()
        };
        assert_eq!(say(&[Some("same"), Some("same")]), ["same"]);
        assert_eq!(say(&[Some("same"), None, Some("same")]), ["lane-1 and lane-3: same"]);
        assert_eq!(say(&[Some("one"), Some("two")]), ["lane-1: one", "lane-2: two"]);
        assert_eq!(say(&[None, None]), Vec::<String>::new());
    }

    #[test]
    fn a_long_note_wraps_below_its_own_text() {
        let notes = [Note::plain("prompts", "each attempt has its own nonce and so on")];
        assert_eq!(
            render(&notes, 40, Palette::PLAIN),
            "prompts      each attempt has its own\n             nonce and so on\n"
        );
    }
}
