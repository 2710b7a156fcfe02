//! The one chart: pass rate of each lane in each window, with its interval and the bar that it has to reach, as SVG.
//!
//! Drawn with plotters (SVG only). Looked at beside it: kuva has better defaults, but costs 45 CPU seconds and 3 MB in a
//! release build where plotters costs 4, and writes no `viewBox`; charts-rs has no error bars; charming and plotly need
//! megabytes of script in the page and show nothing in print or without script. plotters writes fixed colours, so each
//! colour here is a sign that the page's style sheet (attribute selectors) turns into one of the light or dark theme.
//! Lanes differ by the form of their marker too, never by colour alone.

use peaklane_core::rules::Thresholds;
use peaklane_core::stats::PassRate;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use thiserror::Error;

use crate::sentence::{LaneView, name};
use crate::units::{counted, one_line, percent, shortened};

/// Colours of the lanes in the light theme (Okabe and Ito 2008, "Color universal design", darkened to a contrast of 3
/// against white), which are also the signs that the style sheet replaces.
pub const LANE_COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(190, 80, 0),
    RGBColor(0, 130, 95),
    RGBColor(170, 75, 130),
    RGBColor(120, 105, 0),
    RGBColor(70, 70, 190),
];

/// The same in the dark theme, in this order.
pub const LANE_COLOURS_DARK: [&str; 6] = ["#56b4e9", "#ff9a4d", "#2fd0a0", "#e79ac8", "#e0d04a", "#a5a5ff"];

/// Text and axes, grid, the bar, the peak's band: signs for the style sheet as well.
pub const INK: RGBColor = RGBColor(51, 51, 51);
/// The grid.
pub const GRID: RGBColor = RGBColor(221, 221, 221);
/// The line that rates have to reach.
pub const BAR: RGBColor = RGBColor(179, 38, 30);
/// The band behind the peak window.
pub const BAND: RGBColor = RGBColor(243, 243, 236);

/// A colour as plotters writes it: `#0072B2`.
pub fn sign(colour: RGBColor) -> String {
    format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2)
}

/// Why no chart was drawn.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChartError {
    /// There is not one window with a complete burst.
    #[error("no window with a complete burst to draw")]
    Nothing,
    /// The chart library failed.
    #[error("the chart was not drawn: {0}")]
    Drawing(String),
}

/// One rate with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The rate with its counts.
    pub rate: PassRate,
    /// Ends of its interval, shares.
    pub interval: (f64, f64),
}

/// One lane: a point per window, `None` where it has no complete burst.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Name of the lane.
    pub name: String,
    /// One per window.
    pub points: Vec<Option<Point>>,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Labels of the windows, in order.
    pub windows: Vec<String>,
    /// Which of them is the declared peak of the lanes.
    pub peak: Option<usize>,
    /// The lanes.
    pub lanes: Vec<Series>,
    /// What a rate has to reach, percent.
    pub bar_percent: u32,
}

impl Chart {
    /// Takes the windows of all lanes; a window that only some lanes have is drawn for these.
    ///
    /// # Errors
    /// [`ChartError::Nothing`] without a complete burst.
    pub fn of(views: &[LaneView<'_>], thresholds: &Thresholds) -> Result<Self, ChartError> {
        // Windows by the clock (their spelling sorts like it), bursts by hand last.
        let mut keys: Vec<(bool, String)> = Vec::new();
        for window in views.iter().flat_map(|v| &v.summary.windows).filter(|w| w.n > 0) {
            let key = (window.window.is_none(), name(window));
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys.sort();
        if keys.is_empty() {
            return Err(ChartError::Nothing);
        }
        let point = |view: &LaneView<'_>, key: &(bool, String)| {
            let mut windows = view.summary.windows.iter().enumerate();
            let (index, window) = windows.find(|(_, w)| (w.window.is_none(), name(w)) == *key)?;
            Some(Point { rate: window.pass_rate()?, interval: view.interval_of(index)? })
        };
        let lanes = views
            .iter()
            .map(|view| Series {
                name: one_line(&view.summary.lane),
                points: keys.iter().map(|key| point(view, key)).collect(),
            })
            .collect();
        let peak = views.iter().find_map(|v| v.peak);
        let peak = keys.iter().position(|(_, name)| Some(name.as_str()) == peak);
        let windows = keys.into_iter().map(|(_, name)| name).collect();
        Ok(Self { windows, peak, lanes, bar_percent: thresholds.pass_percent })
    }

    /// One sentence on what the chart shows, for those who do not see it.
    pub fn description(&self) -> String {
        let bar = self.bar_percent;
        let mut below = Vec::new();
        for lane in &self.lanes {
            for (window, point) in self.windows.iter().zip(&lane.points) {
                if let Some(rate) = point.map(|p| p.rate).filter(|r| r.below(bar)) {
                    below.push(format!(
                        "{} at {window} with {} of {} ({})",
                        lane.name,
                        rate.passed(),
                        rate.of(),
                        percent(rate.passed(), rate.of(), &[bar])
                    ));
                }
            }
        }
        let shown = format!(
            "Pass rate of {} in {}.",
            counted(self.lanes.len() as u64, "lane"),
            counted(self.windows.len() as u64, "window")
        );
        match below.as_slice() {
            [] => format!("{shown} All reach {bar} %."),
            below => format!("{shown} Below {bar} %: {}.", below.join("; ")),
        }
    }

    /// The drawing, as the inside of an `svg` element of `width` x `height` units.
    ///
    /// # Errors
    /// [`ChartError::Drawing`] when the library fails.
    pub fn svg(&self, width: u32, height: u32) -> Result<String, ChartError> {
        let mut svg = String::new();
        self.draw(&mut svg, width, height).map_err(|error| ChartError::Drawing(error.to_string()))?;
        let inside = svg.find('>').map_or("", |at| &svg[at + 1..]);
        Ok(inside.trim_end().trim_end_matches("</svg>").to_owned())
    }

    fn draw(&self, svg: &mut String, width: u32, height: u32) -> Result<(), Box<dyn std::error::Error>> {
        let narrow = width < 500;
        let root = SVGBackend::with_string(svg, (width, height)).into_drawing_area();
        let groups = self.windows.len() as f64;
        let mut chart = ChartBuilder::on(&root)
            .margin_top(14)
            .margin_right(10)
            .x_label_area_size(38)
            .y_label_area_size(if narrow { 52 } else { 58 })
            .build_cartesian_2d(0.0..groups, 0.0..100.0)?;
        if let Some(peak) = self.peak {
            let band = [(peak as f64, 0.0), (peak as f64 + 1.0, 100.0)];
            chart.draw_series([Rectangle::new(band, BAND.filled())])?;
        }
        let font = ("sans-serif", 17).into_font().color(&INK);
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(GRID)
            .y_labels(6)
            .x_labels(0)
            .y_label_formatter(&|y| format!("{y:.0} %"))
            .label_style(font.clone())
            .draw()?;
        // The library labels round positions; windows are labelled in their middle.
        let label = font.pos(Pos::new(HPos::Center, VPos::Top));
        let most = if narrow { 14 } else { 24 };
        for (index, window) in self.windows.iter().enumerate() {
            let mark = if self.peak == Some(index) { " ^" } else { "" };
            let text = format!("{}{mark}", shortened(window, most));
            let middle = EmptyElement::at((index as f64 + 0.5, 0.0));
            chart.draw_series([middle + Text::new(text, (0, 9), label.clone())])?;
        }
        let bar = f64::from(self.bar_percent);
        chart.draw_series(DashedLineSeries::new([(0.0, bar), (groups, bar)], 6, 4, BAR.stroke_width(1)))?;

        let spread = 0.72 / self.lanes.len().max(1) as f64;
        // Counts are written where neighbours leave room for them.
        let room = f64::from(width) / groups * spread;
        let small = ("sans-serif", 16).into_font().color(&INK).pos(Pos::new(HPos::Center, VPos::Top));
        for (number, lane) in self.lanes.iter().enumerate() {
            let colour = LANE_COLOURS[number % LANE_COLOURS.len()];
            for (group, point) in lane.points.iter().enumerate() {
                let Some(Point { rate, interval: (low, high) }) = *point else { continue };
                let x = group as f64 + 0.14 + spread * (number as f64 + 0.5);
                let (low, high, y) = (low * 100.0, high * 100.0, rate.share() * 100.0);
                let line = colour.stroke_width(2);
                chart.draw_series([PathElement::new(vec![(x, low), (x, high)], line)])?;
                for end in [low, high] {
                    chart.draw_series([EmptyElement::at((x, end)) + PathElement::new(vec![(-4, 0), (4, 0)], line)])?;
                }
                match marker(number) {
                    Marker::Circle(radius) => {
                        chart.draw_series([Circle::new((x, y), radius, colour.filled())])?;
                    }
                    Marker::Polygon(corners) => {
                        chart.draw_series([EmptyElement::at((x, y)) + Polygon::new(corners, colour.filled())])?;
                    }
                }
                if rate.below(self.bar_percent) && room >= 38.0 {
                    let text = format!("{}/{}", rate.passed(), rate.of());
                    chart.draw_series([EmptyElement::at((x, low)) + Text::new(text, (0, 5), small.clone())])?;
                }
            }
        }
        root.present()?;
        Ok(())
    }
}

/// Form of a lane's marker, pixels around its middle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Marker {
    /// Radius.
    Circle(i32),
    /// Corners.
    Polygon(Vec<(i32, i32)>),
}

/// The marker of the lane with this number; with the colours, 30 lanes differ.
pub fn marker(number: usize) -> Marker {
    match number % 5 {
        0 => Marker::Circle(6),
        1 => Marker::Polygon(vec![(-5, -5), (5, -5), (5, 5), (-5, 5)]),
        2 => Marker::Polygon(vec![(0, -7), (7, 5), (-7, 5)]),
        3 => Marker::Polygon(vec![(0, -7), (7, 0), (0, 7), (-7, 0)]),
        _ => Marker::Polygon(vec![(0, 7), (7, -5), (-7, -5)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{collapsing, flat, lane};
    use peaklane_core::lane::Kind;
    use peaklane_core::summary::LaneSummary;

    fn chart(summaries: &[LaneSummary]) -> Chart {
        let views: Vec<LaneView<'_>> = summaries.iter().map(|summary| LaneView::new(summary, Some("16:00"))).collect();
        Chart::of(&views, &Thresholds::default()).unwrap()
    }

    #[test]
    fn every_lane_has_a_point_in_every_window_at_its_exact_height() {
        let chart = chart(&[collapsing(), flat()]);
        assert_eq!((chart.windows.len(), chart.peak, chart.lanes.len()), (4, Some(2), 2));
        let svg = chart.svg(760, 340).unwrap();
        let of_lane = |number: usize, tag: &str| {
            let sign = sign(LANE_COLOURS[number]);
            svg.lines().filter(|l| l.starts_with(tag) && l.contains(&format!("fill=\"{sign}\""))).count()
        };
        assert_eq!((of_lane(0, "<circle"), of_lane(1, "<polygon")), (4, 4));
        // 12 of 24 stands in the middle between the 0 % and the 100 % line: 14 at the top, 340 - 38 at the bottom.
        let circles: Vec<&str> = svg.lines().filter(|l| l.starts_with("<circle")).collect();
        let cy: i32 = circles[2].split("cy=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
        assert!((cy - (14 + 302) / 2).abs() <= 1, "{cy}");
    }

    #[test]
    fn those_who_do_not_see_it_are_told_what_is_below_the_bar() {
        assert_eq!(
            chart(&[collapsing(), flat()]).description(),
            "Pass rate of 2 lanes in 4 windows. Below 90 %: lane-a at 16:00 with 12 of 24 (50 %)."
        );
        assert_eq!(chart(&[flat()]).description(), "Pass rate of 1 lane in 4 windows. All reach 90 %.");
    }

    #[test]
    fn a_window_name_cannot_bring_markup_into_the_drawing() {
        let summary = lane("<b>", Kind::FreeHosted, &[(Some("<script>x"), &[&[]])]);
        let svg = chart(&[summary]).svg(760, 340).unwrap();
        assert!(!svg.contains("<script") && svg.contains("&lt;script&gt;x"), "{svg}");
    }

    #[test]
    fn without_a_complete_burst_there_is_no_chart() {
        assert_eq!(Chart::of(&[], &Thresholds::default()), Err(ChartError::Nothing));
    }

    #[test]
    fn neighbouring_lanes_differ_by_form_and_by_colour() {
        for number in 0..30 {
            assert!((0..number).all(|other| {
                marker(number) != marker(other) || number % LANE_COLOURS.len() != other % LANE_COLOURS.len()
            }));
        }
    }
}
