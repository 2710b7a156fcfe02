//! Live progress on standard error: one line per lane. Drawn on a terminal only, and never with `-q`.

use std::sync::Mutex;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use peaklane_core::attempt::Verdict;
use peaklane_core::burst::BurstHeader;
use peaklane_run::burst::Event;

use crate::globals::Globals;

/// Bars of the lanes of one command.
pub(super) struct Progress {
    bars: Vec<(ProgressBar, Mutex<Counts>)>,
    all: MultiProgress,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    passed: u32,
    missed: u32,
    retries: u32,
}

impl Progress {
    /// One line for each burst: how many of its attempts are made, or how much of its stretch is left.
    pub(super) fn new(planned: &[&BurstHeader], globals: &Globals) -> Self {
        let target = if globals.progress { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let all = MultiProgress::with_draw_target(target);
        let width = planned.iter().map(|header| header.lane.chars().count()).max().unwrap_or(0);
        let style = ProgressStyle::with_template("{prefix}  {bar:16} {pos:>3}/{len}  {elapsed:>4}  {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bars = planned
            .iter()
            .map(|header| {
                let bar = all.add(ProgressBar::new(u64::from(header.attempts)));
                bar.set_style(header.stretch_us.map_or_else(|| style.clone(), stretch_style));
                bar.set_prefix(format!("{:width$}", header.lane));
                bar.set_message("waits");
                (bar, Mutex::default())
            })
            .collect();
        Self { bars, all }
    }

    /// Takes in what happened at one lane.
    pub(super) fn event(&self, lane: usize, event: Event) {
        let Some((bar, counts)) = self.bars.get(lane) else { return };
        let mut counts = counts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match event {
            Event::Warm(figures) => bar.set_message(format!("warm-up {:.1} s", figures.latency_us as f64 / 1e6)),
            Event::Released => {
                bar.reset_elapsed();
                bar.enable_steady_tick(Duration::from_millis(200));
                bar.set_message("released");
            }
            Event::Attempt(figures) => {
                counts.retries += figures.retries;
                if figures.verdict == Verdict::Pass {
                    counts.passed += 1;
                } else {
                    counts.missed += 1;
                }
                bar.inc(1);
                let Counts { passed, missed, retries } = *counts;
                let tail = if retries > 0 { format!(", {retries} retried") } else { String::new() };
                bar.set_message(format!("{passed} passed, {missed} missed{tail}"));
            }
        }
    }

    /// Removes the lines; the table says it all.
    pub(super) fn finish(&self) {
        for (bar, _) in &self.bars {
            bar.finish_and_clear();
        }
        // A line that cannot be removed is no failure of the measurement.
        let _ = self.all.clear();
    }
}

/// The line of a stretch: how much of it is left, then that what is in flight is waited for.
fn stretch_style(stretch_us: u64) -> ProgressStyle {
    let left = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        let left = Duration::from_micros(stretch_us).saturating_sub(state.elapsed()).as_secs_f64().ceil() as u64;
        let text = match left {
            0 => "the last ones".to_owned(),
            1..=99 => format!("{left} s left"),
            _ => format!("{}:{:02} min left", left / 60, left % 60),
        };
        // A line of progress that cannot be drawn is no failure of the measurement.
        let _ = out.write_str(&text);
    };
    ProgressStyle::with_template("{prefix}  {left:>14}  {pos:>4} done  {msg}")
        .map(|style| style.with_key("left", left))
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
}
