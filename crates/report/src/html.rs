//! The page: one HTML file that needs nothing else. It says first what was found, then shows the chart, the tables and how
//! it was measured; it follows the reader's light or dark theme, fits a telephone and prints.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use peaklane_core::rules::Thresholds;

use crate::chart::{BAND, BAR, Chart, ChartError, GRID, INK, LANE_COLOURS, LANE_COLOURS_DARK, Marker, marker, sign};
use crate::notes::Note;
use crate::palette::Tone;
use crate::sentence::{LaneView, finding};
use crate::summary;
use crate::table::{Align, Table};
use crate::units::{limit, one_line};

/// What is on the page.
#[derive(Clone, Debug)]
pub struct PageView<'a> {
    /// Title of the page and its heading.
    pub title: &'a str,
    /// Below the heading: what was measured and when, in the caller's words.
    pub subtitle: &'a str,
    /// The answer, where there is one: stands first.
    pub answer: Option<&'a str>,
    /// How each lane stands to the answer, and why.
    pub standing: Option<&'a Table>,
    /// The lanes.
    pub lanes: &'a [LaneView<'a>],
    /// What they had to reach.
    pub thresholds: &'a Thresholds,
    /// How it was measured, beside what the lanes' own figures tell.
    pub notes: &'a [Note],
    /// Version of peaklane.
    pub tool_version: &'a str,
}

/// The page as one text.
///
/// # Errors
/// [`ChartError::Drawing`] when the chart library fails; a page without a complete burst has no chart and says so.
pub fn page(view: &PageView<'_>) -> Result<String, ChartError> {
    let chart = match Chart::of(view.lanes, view.thresholds) {
        Ok(chart) => Some(figure(&chart)?),
        Err(ChartError::Nothing) => None,
        Err(error) => return Err(error),
    };
    let simulated = view.lanes.iter().any(|l| l.summary.simulated);
    let all_simulated = simulated && view.lanes.iter().all(|l| l.summary.simulated);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "peaklane " (view.tool_version) };
                title { (view.title) }
                style { (PreEscaped(style())) }
            }
            body {
                main {
                    header {
                        h1 { (view.title) }
                        @if !view.subtitle.is_empty() { p.subtitle { (view.subtitle) } }
                    }
                    @if simulated {
                        p.banner role="note" {
                            @if all_simulated { strong { "These lanes are simulated." } " Nothing here was measured at a real one." }
                            @else { strong { "Some of these lanes are simulated" } ": " (simulated_names(view.lanes)) "." }
                        }
                    }
                    section aria-labelledby="findings" {
                        h2 id="findings" { "Findings" }
                        @if let Some(answer) = view.answer { p.answer { (answer) } }
                        @if view.lanes.is_empty() { p { "Nothing was measured yet." } }
                        ul.findings {
                            @for lane in view.lanes { li { (finding(lane, view.thresholds)) } }
                        }
                        @if let Some(standing) = view.standing { (table(standing)) }
                    }
                    section aria-labelledby="chart" {
                        h2 id="chart" { "Pass rate by window" }
                        @match chart {
                            Some(figure) => (figure),
                            None => p { "No burst is complete yet: there is nothing to draw." },
                        }
                    }
                    section aria-labelledby="lanes" {
                        h2 id="lanes" { "Lanes" }
                        @for lane in view.lanes { (lane_table(lane, view.lanes, view.thresholds)) }
                    }
                    (measured(view))
                    footer { "Made by peaklane " (view.tool_version) "." }
                }
            }
        }
    };
    Ok(page.into_string())
}

fn simulated_names(lanes: &[LaneView<'_>]) -> String {
    let names: Vec<String> = lanes.iter().filter(|l| l.summary.simulated).map(|l| one_line(&l.summary.lane)).collect();
    crate::words::list(&names)
}

/// The chart twice, for a wide and for a narrow page (the style shows one of them), with its legend in the page's text, so
/// that long names wrap.
fn figure(chart: &Chart) -> Result<Markup, ChartError> {
    let drawing = |class: &str, width: u32, height: u32| -> Result<Markup, ChartError> {
        let ids = (format!("{class}-title"), format!("{class}-desc"));
        Ok(html! {
            svg.chart.(class) viewBox={ "0 0 " (width) " " (height) } role="img" aria-labelledby={ (ids.0) " " (ids.1) } {
                title id=(ids.0) { "Pass rate by window" }
                desc id=(ids.1) { (chart.description()) }
                (PreEscaped(chart.svg(width, height)?))
            }
        })
    };
    Ok(html! {
        figure {
            ul.legend {
                @for (number, lane) in chart.lanes.iter().enumerate() {
                    li { (legend_marker(number)) (lane.name) }
                }
                li {
                    svg.key.chart viewBox="0 0 24 16" aria-hidden="true" {
                        line x1="0" y1="8" x2="24" y2="8" stroke=(sign(BAR)) stroke-width="1.5" stroke-dasharray="6 4" {}
                    }
                    (chart.bar_percent) " % bar"
                }
            }
            (drawing("wide", 860, 380)?)
            (drawing("narrow", 380, 380)?)
            figcaption {
                "Markers: attempts that passed of all attempts in the window. Lines: 95 % interval. "
                @if chart.peak.is_some() { "^ and shaded: the declared peak." }
            }
        }
    })
}

fn legend_marker(number: usize) -> Markup {
    let colour = sign(LANE_COLOURS[number % LANE_COLOURS.len()]);
    html! {
        svg.key.chart viewBox="-8 -8 16 16" aria-hidden="true" {
            @match marker(number) {
                Marker::Circle(radius) => circle cx="0" cy="0" r=(radius) fill=(colour) {},
                Marker::Polygon(corners) => polygon
                    points=(corners.iter().map(|(x, y)| format!("{x},{y}")).collect::<Vec<_>>().join(" "))
                    fill=(colour) {},
            }
        }
    }
}

fn lane_table(lane: &LaneView<'_>, all: &[LaneView<'_>], thresholds: &Thresholds) -> Markup {
    let (left, right) = summary::title(lane, all);
    html! {
        article.lane {
            h3 { (left) }
            @if !right.is_empty() { p.amount { (right) } }
            (table(&summary::table(&[*lane], thresholds)))
            @if let Some(text) = summary::footer(lane, thresholds) { p.constraint { (text) } }
        }
    }
}

/// A table of what a person sees, in a frame that scrolls sideways where the page is too narrow.
fn table(table: &Table) -> Markup {
    let shown = table.shown();
    let class = |align: Align| if align == Align::Right { "figure" } else { "words" };
    // Without words at its end a table would spread its figures over the whole page.
    let short = shown.last().is_some_and(|(.., align)| *align == Align::Right);
    html! {
        div.scroll tabindex="0" role="group" aria-label="table" {
            table.short[short] {
                thead {
                    tr {
                        @for (_, head, align) in &shown {
                            th scope="col" class=(class(*align)) {
                                @if head.is_empty() { span.hidden { (unnamed(*align)) } } @else { (head) }
                            }
                        }
                    }
                }
                tbody {
                    @for row in table.rows() {
                        tr {
                            @for (position, (index, _, align)) in shown.iter().enumerate() {
                                @let cell = &row[*index];
                                @if position == 0 {
                                    th scope="row" class={ "words " (tone(cell.as_tone())) } { (cell.as_text()) }
                                } @else {
                                    td class={ (class(*align)) " " (tone(cell.as_tone())) } { (cell.as_text()) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What a column without a head is called where it is read aloud.
fn unnamed(align: Align) -> &'static str {
    if align == Align::Right { "rate" } else { "misses" }
}

fn tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Warn => "warn",
        Tone::Dim => "dim",
        Tone::Strong => "strong",
    }
}

/// The definitions behind the figures, and the notes.
fn measured(view: &PageView<'_>) -> Markup {
    let mut floors: Vec<u64> = view.lanes.iter().map(|l| l.summary.floor_us).filter(|us| *us > 0).collect();
    floors.sort_unstable();
    floors.dedup();
    let floors = floors.into_iter().map(limit).collect::<Vec<_>>().join(", ");
    let notes = summary::notes(view.lanes);
    html! {
        section aria-labelledby="measured" {
            h2 id="measured" { "How it was measured" }
            dl {
                dt { "pass" }
                dd {
                    "The answer arrived whole, satisfies the task's check, and took no longer than the floor"
                    @if !floors.is_empty() { " (" (floors) ")" }
                    ", from its intended start, retries and waits included. A failed, cut, empty or wrong answer is a miss."
                }
                dt { "rates" }
                dd {
                    "Windows are never pooled into one figure of a lane. Beside each rate stands its 95 % interval: few "
                    "attempts say little."
                }
                dt { "p90" }
                dd {
                    "Nearest rank over all attempts; one that never finished ranks last, so that p90 can be \"> limit\". Up "
                    "to 9 attempts it is the worst one, and is called so."
                }
                dt { "TTFT" }
                dd { "First token of any kind, reasoning included, from the intended start." }
                dt { "bars" }
                dd {
                    "A lane holds where " (view.thresholds.pass_percent) " % or more pass and fewer than "
                    (view.thresholds.retry_below_percent) " % of attempts are retried."
                }
                @for note in notes.iter().filter(|n| n.about != "simulated").chain(view.notes) {
                    dt { (note.about) }
                    dd { (note.text) }
                }
            }
        }
    }
}

/// The style sheet: the colours of the drawing are replaced by those of the theme.
fn style() -> String {
    let mut css = String::from(STYLE);
    let mut rule = |colour: String, variable: &str| {
        css.push_str(&format!(
            ".chart [fill=\"{colour}\"]{{fill:var(--{variable})}}.chart [stroke=\"{colour}\"]{{stroke:var(--{variable})}}\n"
        ));
    };
    for (colour, variable) in [(INK, "ink"), (GRID, "grid"), (BAR, "bar"), (BAND, "band")] {
        rule(sign(colour), variable);
    }
    for (number, colour) in LANE_COLOURS.into_iter().enumerate() {
        rule(sign(colour), &format!("lane{number}"));
    }
    let list = |colours: &[String]| -> String {
        colours.iter().enumerate().map(|(number, colour)| format!("--lane{number}:{colour};")).collect()
    };
    let light: Vec<String> = LANE_COLOURS.into_iter().map(sign).collect();
    let dark: Vec<String> = LANE_COLOURS_DARK.iter().map(|c| (*c).to_owned()).collect();
    css.push_str(&format!(":root{{{}}}\n", list(&light)));
    css.push_str(&format!("@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}\n", list(&dark)));
    css
}

const STYLE: &str = include_str!("page.css");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{collapsing, flat, lane, limited};
    use peaklane_core::lane::Kind;
    use peaklane_core::summary::LaneSummary;

    fn shown(summaries: &[LaneSummary], title: &str) -> String {
        let lanes: Vec<LaneView<'_>> = summaries.iter().map(|summary| LaneView::new(summary, Some("16:00"))).collect();
        let view = PageView {
            title,
            subtitle: "3 days, 4 windows",
            answer: None,
            standing: None,
            lanes: &lanes,
            thresholds: &Thresholds::default(),
            notes: &[Note::plain("clock", "compressed 200 times")],
            tool_version: "0.1.0",
        };
        page(&view).unwrap()
    }

    #[test]
    fn the_page_needs_nothing_from_anywhere() {
        let page = shown(&[collapsing(), flat()], "Lanes");
        for outside in ["http://", "https://", "src=", "@import", "url(", "<link", "<script", "<iframe"] {
            assert!(!page.contains(outside), "the page has `{outside}`");
        }
        assert!(page.starts_with("<!DOCTYPE html>"));
    }

    #[test]
    fn a_lane_named_like_a_tag_is_shown_and_not_run() {
        let evil = lane("<script>alert(1)</script>", Kind::FreeHosted, &[(Some("\"><img>"), &[&[limited()]])]);
        let page = shown(&[evil], "<b>title</b> & co");
        assert!(!page.contains("<script") && !page.contains("<img") && !page.contains("<b>"));
        for escaped in ["&lt;script&gt;alert(1)&lt;/script&gt;", "&lt;b&gt;title&lt;/b&gt; &amp; co", "&gt;&lt;img&gt;"]
        {
            assert!(page.contains(escaped), "no {escaped}");
        }
    }

    #[test]
    fn findings_come_before_the_chart_and_the_chart_before_the_tables() {
        let page = shown(&[collapsing(), flat()], "Lanes");
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no `{text}`"));
        assert!(at("collapses at 16:00") < at("<figure"));
        assert!(at("<figure") < at("<table"));
        assert!(at("Hard scheduling constraint") < at("compressed 200 times"));
        for text in ["12/24", "31-69 %", "7 rate limited, 5 too slow", "&gt; 60 s"] {
            at(text);
        }
    }

    #[test]
    fn the_drawing_has_a_title_and_a_description_for_those_who_do_not_see_it() {
        let page = shown(&[collapsing()], "Lanes");
        for size in ["wide", "narrow"] {
            assert!(page.contains(&format!("aria-labelledby=\"{size}-title {size}-desc\"")));
            assert!(page.contains(&format!("<desc id=\"{size}-desc\">Pass rate of")));
        }
        // Ids are unique, or the labels would point at another drawing.
        let mut ids: Vec<&str> = page.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all);
    }

    #[test]
    fn every_colour_of_the_drawing_follows_the_theme() {
        let page = shown(&[collapsing(), flat()], "Lanes");
        let (style, body) = page.split_once("</style>").unwrap();
        for attribute in ["fill=\"#", "stroke=\"#"] {
            for part in body.split(attribute).skip(1) {
                let colour = part.split('"').next().unwrap();
                assert!(style.contains(&format!("[{attribute}{colour}\"]")), "{attribute}{colour} stays as it is");
            }
        }
    }

    #[test]
    fn simulated_lanes_are_called_so_in_plain_words() {
        assert!(!shown(&[flat()], "Lanes").contains("simulated"));
        let mut summary = flat();
        summary.simulated = true;
        assert!(shown(&[summary.clone()], "Lanes").contains("<strong>These lanes are simulated.</strong>"));
        let page = shown(&[summary, collapsing()], "Lanes");
        assert!(page.contains("Some of these lanes are simulated</strong>: lane-c."), "{page}");
    }

    #[test]
    fn a_page_without_a_complete_burst_says_so() {
        let page = shown(&[], "Lanes");
        assert!(page.contains("No burst is complete yet") && page.contains("Nothing was measured yet."));
    }
}
