//! One table, four forms: aligned text, Markdown, CSV and JSON. All four carry everything that the text shows.
//!
//! A column has a head (what a person sees), a key (what a program reads, with its unit), or both. An own thin layer
//! stands here instead of a table crate because those draw boxes by default, count the escape sequences of colours as
//! width unless they bring their own terminal code along, and know nothing of keys.

use serde_json::{Map, Value};
use unicode_width::UnicodeWidthStr;

use crate::palette::{Palette, Tone};
use crate::units::{ABSENT, one_line};

/// Spaces between two columns, and where they do not fit otherwise.
const GAP: usize = 2;
const NARROW_GAP: usize = 1;

/// A last column narrower than this goes on a line of its own below its row.
const LEAST_LAST_COLUMN: usize = 24;

/// On which side the cells of a column line up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Figures.
    Right,
}

/// One column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    key: Option<&'static str>,
    head: Option<String>,
    align: Align,
}

impl Column {
    /// A column of words, with `key` for programs.
    pub fn words(key: &'static str, head: impl Into<String>) -> Self {
        Self { key: Some(key), head: Some(head.into()), align: Align::Left }
    }

    /// A column of figures, with `key` for programs (the unit comes last: `p90_ms`).
    pub fn figures(key: &'static str, head: impl Into<String>) -> Self {
        Self { key: Some(key), head: Some(head.into()), align: Align::Right }
    }

    /// Shown to people only, since other columns carry its figures for programs.
    pub fn shown(head: impl Into<String>, align: Align) -> Self {
        Self { key: None, head: Some(head.into()), align }
    }

    /// For programs only.
    pub fn data(key: &'static str) -> Self {
        Self { key: Some(key), head: None, align: Align::Left }
    }
}

/// One cell: its text for people, its value for programs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    text: String,
    value: Value,
    tone: Tone,
}

impl Cell {
    /// A text that is its own value. Control characters are taken out of what is shown.
    pub fn text(text: impl AsRef<str>) -> Self {
        Self { text: one_line(text.as_ref()), value: Value::from(text.as_ref()), tone: Tone::Plain }
    }

    /// A value and how it is shown.
    pub fn new(text: impl AsRef<str>, value: impl Into<Value>) -> Self {
        Self { text: one_line(text.as_ref()), value: value.into(), tone: Tone::Plain }
    }

    /// A value for a column that only programs see.
    pub fn value(value: impl Into<Value>) -> Self {
        Self { text: String::new(), value: value.into(), tone: Tone::Plain }
    }

    /// A part of a diagram, kept with the spaces that put it in its place; of no value to programs.
    pub(crate) fn bar(bar: String) -> Self {
        Self { text: bar, value: Value::Null, tone: Tone::Plain }
    }

    /// Something that was not measured: `-` for people, null for programs.
    pub fn absent() -> Self {
        Self { text: ABSENT.to_owned(), value: Value::Null, tone: Tone::Dim }
    }

    /// The same cell in another tone.
    #[must_use]
    pub fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }

    /// What a person sees.
    pub fn as_text(&self) -> &str {
        &self.text
    }

    /// Its tone.
    pub fn as_tone(&self) -> Tone {
        self.tone
    }
}

/// Columns and rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row. Missing cells are filled with absent ones.
    ///
    /// # Panics
    /// When the row has more cells than there are columns.
    pub fn row(&mut self, mut cells: Vec<Cell>) {
        assert!(cells.len() <= self.columns.len(), "{} cells for {} columns", cells.len(), self.columns.len());
        cells.resize_with(self.columns.len(), Cell::absent);
        self.rows.push(cells);
    }

    /// Rows in it.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Columns that a person sees, as index and head. One whose cells are all empty is left out.
    pub fn shown(&self) -> Vec<(usize, &str, Align)> {
        let filled = |index: usize| self.rows.iter().any(|row| !row[index].text.is_empty());
        let columns = self.columns.iter().enumerate();
        columns.filter_map(|(i, c)| Some((i, c.head.as_deref()?, c.align))).filter(|(i, ..)| filled(*i)).collect()
    }

    /// The rows, cell by cell; [`Table::shown`] says which columns a person sees.
    pub fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }

    /// Aligned text, each line ended by a newline and none wider than `width` columns of a terminal, if the words allow
    /// it: the columns move together, the last one wraps, or moves below its row where little room is left.
    pub fn render(&self, width: usize, palette: Palette) -> String {
        let shown = self.shown();
        let Some(((last, last_head, last_align), front)) = shown.split_last() else { return String::new() };
        let cell_width = |index: usize, head: &str| {
            let cells = self.rows.iter().map(|row| row[index].text.width());
            cells.chain([head.width()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = front.iter().map(|(index, head, _)| cell_width(*index, head)).collect();
        let last_width = cell_width(*last, last_head);
        let wraps = *last_align == Align::Left && !front.is_empty();
        // What moves below its row or wraps takes no part in whether the columns fit.
        let least = widths.iter().map(|w| w + GAP).sum::<usize>() + if wraps { 0 } else { last_width + GAP };
        let gap = if least.saturating_sub(GAP) <= width { GAP } else { NARROW_GAP };
        let used: usize = widths.iter().map(|w| w + gap).sum();
        let room = width.saturating_sub(used);
        let longest_word = |text: &str| text.split_whitespace().map(UnicodeWidthStr::width).max().unwrap_or(0);
        let word = self.rows.iter().map(|row| longest_word(&row[*last].text)).max().unwrap_or(0);
        let own_line = wraps && last_width > room && (room < LEAST_LAST_COLUMN || word > room);

        let mut out = String::new();
        let mut line = |cells: &[(&str, Tone)], tail: (&str, Tone)| {
            let mut text = String::new();
            for (((cell, tone), width), (.., align)) in cells.iter().zip(&widths).zip(front) {
                let fill = " ".repeat(width.saturating_sub(cell.width()));
                let cell = palette.paint(*tone, cell);
                match align {
                    Align::Left => text.extend([cell.as_str(), &fill]),
                    Align::Right => text.extend([fill.as_str(), &cell]),
                }
                text.push_str(&" ".repeat(gap));
            }
            let (tail, tone) = tail;
            if own_line {
                out.push_str(text.trim_end());
                out.push('\n');
                for part in wrap(tail, width.saturating_sub(4)) {
                    out.push_str(&format!("    {}\n", palette.paint(tone, &part)));
                }
                return;
            }
            let parts = match last_align {
                Align::Left => wrap(tail, room.max(LEAST_LAST_COLUMN)),
                Align::Right => vec![format!("{}{tail}", " ".repeat(last_width.saturating_sub(tail.width())))],
            };
            for (number, part) in parts.iter().enumerate() {
                if number > 0 {
                    text = " ".repeat(used);
                }
                text.push_str(&palette.paint(tone, part));
                out.push_str(text.trim_end());
                out.push('\n');
            }
            if parts.is_empty() {
                out.push_str(text.trim_end());
                out.push('\n');
            }
        };
        let heads: Vec<(&str, Tone)> = front.iter().map(|(_, head, _)| (*head, Tone::Dim)).collect();
        line(&heads, (if own_line { "" } else { last_head }, Tone::Dim));
        for row in &self.rows {
            let cells: Vec<(&str, Tone)> = front.iter().map(|(i, ..)| (row[*i].text.as_str(), row[*i].tone)).collect();
            line(&cells, (&row[*last].text, row[*last].tone));
        }
        out
    }

    /// A Markdown table of what a person sees.
    pub fn markdown(&self) -> String {
        let shown = self.shown();
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut out = line(shown.iter().map(|(_, head, _)| escape_markdown(head)).collect());
        let rules = shown.iter().map(|(.., align)| if *align == Align::Right { "---:" } else { "---" }.to_owned());
        out.push_str(&line(rules.collect()));
        for row in &self.rows {
            out.push_str(&line(shown.iter().map(|(i, ..)| escape_markdown(&row[*i].text)).collect()));
        }
        out
    }

    /// CSV (RFC 4180, lines end with a newline): one column per key, absent values empty. Lists are written as people
    /// see them.
    ///
    /// # Errors
    /// None in practice: the rows are as long as the head, and a string takes every byte.
    pub fn csv(&self) -> Result<String, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let keyed: Vec<(usize, &str)> = self.keyed().collect();
        writer.write_record(keyed.iter().map(|(_, key)| *key))?;
        for row in &self.rows {
            writer.write_record(keyed.iter().map(|(index, _)| match &row[*index].value {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                Value::Array(_) | Value::Object(_) => row[*index].text.clone(),
                plain => plain.to_string(),
            }))?;
        }
        let bytes = writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A list of objects, one per row, with the keys of the columns.
    pub fn json(&self) -> Value {
        let object = |row: &Vec<Cell>| {
            let pairs = self.keyed().map(|(index, key)| (key.to_owned(), row[index].value.clone()));
            Value::Object(pairs.collect::<Map<_, _>>())
        };
        self.rows.iter().map(object).collect()
    }

    fn keyed(&self) -> impl Iterator<Item = (usize, &str)> {
        self.columns.iter().enumerate().filter_map(|(index, column)| Some((index, column.key?)))
    }
}

/// Breaks a text at its spaces into lines of at most `width` columns; a longer word keeps a line of its own. No line
/// for an empty text.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    if text.width() <= width && !text.trim().is_empty() {
        return vec![text.to_owned()]; // as it is: bars begin with spaces
    }
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A text that Markdown shows as it is: nothing in it is markup or HTML, and it cannot end a table's cell.
pub fn escape_markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in one_line(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new(vec![
            Column::words("lane", "lane"),
            Column::shown("pass", Align::Right),
            Column::data("passed"),
            Column::data("n"),
            Column::figures("p90_ms", "p90"),
            Column::words("misses", ""),
        ]);
        let row = |lane: &str, passed: u32, p90: Cell, misses: &str| {
            vec![
                Cell::text(lane),
                Cell::text(format!("{passed}/24")),
                Cell::value(passed),
                Cell::value(24),
                p90,
                Cell::text(misses),
            ]
        };
        table.row(row("lane-a", 23, Cell::new("14.2 s", 14_200), "1 rate limited"));
        table.row(row(
            "무료 레인",
            9,
            Cell::absent().tone(Tone::Bad),
            "a long story about a lane that was rate limited, cut and late",
        ));
        table.row(row("a|b <script>", 24, Cell::new("9.8 s", 9_800.5), ""));
        table
    }

    #[test]
    fn figures_line_up_on_the_right_and_wide_letters_count_double() {
        insta::assert_snapshot!(sample().render(60, Palette::PLAIN), @r"
        lane           pass     p90
        lane-a        23/24  14.2 s  1 rate limited
        무료 레인      9/24       -  a long story about a lane that
                                     was rate limited, cut and late
        a|b <script>  24/24   9.8 s
        ");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in [44, 60, 80, 100] {
            for line in sample().render(width, Palette::PLAIN).lines() {
                assert!(line.width() <= width, "{width}: {line}");
                assert_eq!(line, line.trim_end());
            }
        }
    }

    #[test]
    fn the_last_column_moves_below_its_row_where_no_room_is_left() {
        insta::assert_snapshot!(sample().render(44, Palette::PLAIN), @r"
        lane           pass     p90
        lane-a        23/24  14.2 s
            1 rate limited
        무료 레인      9/24       -
            a long story about a lane that was rate
            limited, cut and late
        a|b <script>  24/24   9.8 s
        ");
    }

    #[test]
    fn a_word_that_cannot_be_broken_moves_below_its_row() {
        let mut table = Table::new(vec![Column::words("lane", "lane"), Column::words("url", "address")]);
        table.row(vec![Cell::text("lane-a"), Cell::text("https://lane-a.example/v1/chat/completions")]);
        insta::assert_snapshot!(table.render(46, Palette::PLAIN), @r"
        lane
        lane-a
            https://lane-a.example/v1/chat/completions
        ");
        assert_eq!(table.render(50, Palette::PLAIN).lines().count(), 2);
    }

    #[test]
    fn figures_that_do_not_fit_move_together() {
        let mut table = Table::new(vec![
            Column::words("lane", "lane"),
            Column::figures("p50_ms", "p50"),
            Column::figures("p90_ms", "p90"),
        ]);
        table.row(vec![Cell::text("lane-a"), Cell::text("245 ms"), Cell::text("> 120 s")]);
        assert_eq!(table.render(23, Palette::PLAIN).lines().nth(1), Some("lane-a  245 ms  > 120 s"));
        assert_eq!(table.render(22, Palette::PLAIN).lines().nth(1), Some("lane-a 245 ms > 120 s"));
    }

    #[test]
    fn colour_changes_no_column() {
        let painted = sample().render(60, Palette::COLOUR);
        let mut plain = String::new();
        let mut rest = painted.as_str();
        while let Some(at) = rest.find('\u{1b}') {
            plain.push_str(&rest[..at]);
            rest = &rest[at + rest[at..].find('m').unwrap() + 1..];
        }
        plain.push_str(rest);
        assert_ne!(painted, plain);
        assert_eq!(plain, sample().render(60, Palette::PLAIN));
    }

    #[test]
    fn markdown_shows_a_name_with_a_bar_or_a_tag_as_it_is() {
        insta::assert_snapshot!(sample().markdown(), @r"
        | lane | pass | p90 |  |
        | --- | ---: | ---: | --- |
        | lane-a | 23/24 | 14.2 s | 1 rate limited |
        | 무료 레인 | 9/24 | - | a long story about a lane that was rate limited, cut and late |
        | a\|b &lt;script> | 24/24 | 9.8 s |  |
        ");
    }

    #[test]
    fn csv_and_json_carry_every_figure_with_its_key() {
        insta::assert_snapshot!(sample().csv().unwrap(), @r#"
        lane,passed,n,p90_ms,misses
        lane-a,23,24,14200,1 rate limited
        무료 레인,9,24,,"a long story about a lane that was rate limited, cut and late"
        a|b <script>,24,24,9800.5,
        "#);
        assert_eq!(
            sample().json()[1],
            serde_json::json!({"lane": "무료 레인", "passed": 9, "n": 24, "p90_ms": null, "misses": "a long story about a lane that was rate limited, cut and late"})
        );
    }

    #[test]
    fn a_column_without_any_text_takes_no_room() {
        let mut table =
            Table::new(vec![Column::words("a", "a"), Column::words("note", "note"), Column::figures("b", "b")]);
        table.row(vec![Cell::text("x"), Cell::text(""), Cell::new("1", 1)]);
        assert_eq!(table.render(80, Palette::PLAIN), "a  b\nx  1\n");
        assert_eq!(table.json(), serde_json::json!([{"a": "x", "note": "", "b": 1}]));
    }
}
