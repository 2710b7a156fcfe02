//! A counter-test in words: what was registered, what changed, what stands on both sides, and what came of it.

mod json;
mod words;

use peaklane_core::countertest::{Judgement, Notice, Registered, WindowFigures};
use peaklane_core::rules::CounterVerdict;
use serde_json::Value;

use crate::notes;
use crate::palette::{Palette, Tone};
use crate::table::{Align, Cell, Column, Table, escape_markdown};
use crate::units::{ABSENT, percent};

pub use json::json;
pub use words::{change_words, headline, refusal_words};

/// The bar that pass rates are shown against, so that rounding crosses none: that of the decision.
const BARS: [u32; 1] = [90];

/// A counter-test as it stands. Local times are `2026-12-01 16:20`, in the zone of the windows; `_utc` are RFC 3339.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterTestView<'a> {
    /// What was registered.
    pub test: &'a Registered,
    /// What the configuration shows now; `None` where it is not looked at any more.
    pub found: Option<Notice>,
    /// When it was registered.
    pub begun: Moment,
    /// Since when the change is in force.
    pub changed: Option<Moment>,
    /// From when on it may end.
    pub end_possible: Option<Moment>,
    /// That moment is over.
    pub ripe: bool,
    /// When it ended.
    pub ended: Option<Moment>,
    /// The windows of the changed lane, the deciding one first.
    pub windows: Vec<WindowFigures>,
    /// The lane beside in the deciding window.
    pub beside: Option<WindowFigures>,
    /// What came of it; `None` before it was judged, and when it was given up.
    pub judgement: Option<&'a Judgement>,
    /// Ids of the bursts after, of the changed lane.
    pub after: Vec<String>,
    /// Ids of the bursts after, of the lane beside.
    pub after_beside: Vec<String>,
}

/// One moment, for people and for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Local, `2026-12-01 16:20`.
    pub local: String,
    /// RFC 3339 in UTC.
    pub utc: String,
}

impl CounterTestView<'_> {
    /// How it stands: `open`, `ended`, `given_up`.
    pub fn state(&self) -> &'static str {
        match &self.test.ended {
            None => "open",
            Some(ended) if ended.judgement.is_some() => "ended",
            Some(_) => "given_up",
        }
    }

    fn tone(&self) -> Tone {
        match self.judgement.map(|j| j.verdict) {
            Some(CounterVerdict::Improved) => Tone::Good,
            Some(CounterVerdict::Worse) => Tone::Bad,
            Some(CounterVerdict::Undecided) => Tone::Warn,
            Some(CounterVerdict::NoChange) | None => Tone::Strong,
        }
    }
}

/// One after the other, a blank line between.
pub fn render(views: &[CounterTestView<'_>], width: usize, palette: Palette) -> String {
    let one = |view: &CounterTestView<'_>| {
        let headline = palette.paint(view.tone(), &headline(view));
        let mut out = format!("{headline}\n{}\n", palette.paint(Tone::Dim, &view.test.id));
        out.push_str(&table(std::slice::from_ref(view)).render(width, palette));
        out + &notes::render(&words::notes(view), width, palette)
    };
    views.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// The same as Markdown.
pub fn markdown(views: &[CounterTestView<'_>]) -> String {
    let one = |view: &CounterTestView<'_>| {
        let table = table(std::slice::from_ref(view)).markdown();
        format!(
            "**{}**\n\n{}\n\n{table}\n{}",
            escape_markdown(&headline(view)),
            escape_markdown(&view.test.id),
            notes::markdown(&words::notes(view))
        )
    };
    views.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// One row per window of the changed lane, and one of the lane beside; of several tests below each other.
pub fn table(views: &[CounterTestView<'_>]) -> Table {
    let mut table = Table::new(vec![
        Column::data("id"),
        Column::data("state"),
        Column::words("lane", "lane"),
        Column::data("role"),
        Column::data("task"),
        Column::words("window", "window"),
        Column::data("deciding"),
        Column::shown("before", Align::Right),
        Column::shown("", Align::Right),
        Column::data("before_passed"),
        Column::data("before_n"),
        Column::data("before_bursts"),
        Column::shown("after", Align::Right),
        Column::shown("", Align::Right),
        Column::data("after_passed"),
        Column::data("after_n"),
        Column::data("after_bursts"),
        Column::data("difference"),
        Column::shown("points (95 %)", Align::Right),
        Column::data("difference_low"),
        Column::data("difference_high"),
        Column::figures("barnard_two_sided_p", "Barnard"),
        Column::figures("fisher_two_sided_p", "Fisher"),
        Column::words("verdict", "verdict"),
    ]);
    for view in views {
        let name = view.test.to.as_ref().unwrap_or(&view.test.lane);
        for (at, figures) in view.windows.iter().enumerate() {
            table.row(row(view, name, "tested", figures, at == 0));
        }
        if let (Some(beside), Some(name)) = (&view.beside, &view.test.beside) {
            table.row(row(view, name, "beside", beside, false));
        }
    }
    table
}

fn row(view: &CounterTestView<'_>, lane: &str, role: &str, f: &WindowFigures, deciding: bool) -> Vec<Cell> {
    let shown = match role {
        "beside" => format!("beside {lane}"),
        _ if view.test.to.is_some() => format!("-> {lane}"),
        _ => lane.to_owned(),
    };
    let rate = |passed: u32, n: u32| match n {
        0 => [Cell::text(ABSENT).tone(Tone::Dim), Cell::text("")],
        _ => [Cell::text(format!("{passed}/{n}")), Cell::text(percent(passed, n, &BARS))],
    };
    // Nothing on a side is no count of passes.
    let passed = |passed: u32, n: u32| if n == 0 { Cell::absent() } else { Cell::value(passed) };
    let ([before, before_rate], [after, after_rate]) =
        (rate(f.before_passed, f.before_n), rate(f.after_passed, f.after_n));
    let p = |p: Option<f64>| p.map_or_else(Cell::absent, |p| Cell::new(words::p_value(p), p));
    let end = |pick: fn((f64, f64)) -> f64| f.difference_interval.map_or_else(Cell::absent, |i| Cell::value(pick(i)));
    let verdict = f.verdict.map_or_else(
        || Cell::new("", Value::Null),
        |v| Cell::new(words::short_verdict(v), v.name()).tone(if deciding { view.tone() } else { Tone::Plain }),
    );
    vec![
        Cell::value(view.test.id.as_str()),
        Cell::value(view.state()),
        Cell::new(shown, lane),
        Cell::value(role),
        Cell::value(view.test.task.as_str()),
        Cell::new(format!("{}{}", f.window, if deciding { " ^" } else { "" }), f.window.as_str()),
        Cell::value(deciding),
        before,
        before_rate,
        passed(f.before_passed, f.before_n),
        Cell::value(f.before_n),
        Cell::value(f.before_bursts),
        after,
        after_rate,
        passed(f.after_passed, f.after_n),
        Cell::value(f.after_n),
        Cell::value(f.after_bursts),
        f.difference.map_or_else(Cell::absent, Cell::value),
        f.difference.zip(f.difference_interval).map_or_else(Cell::absent, |(d, i)| Cell::text(words::points(d, i))),
        end(|i| i.0),
        end(|i| i.1),
        p(f.barnard_two_sided_p),
        p(f.fisher_two_sided_p),
        verdict,
    ]
}

/// The rate of a side in a sentence: `12/24 = 50 %`.
fn rate_words(passed: u32, n: u32) -> String {
    format!("{passed}/{n} = {}", percent(passed, n, &BARS))
}

#[cfg(test)]
mod tests;
