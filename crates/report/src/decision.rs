//! The decision in words: which lane, and why not each of the others.

use peaklane_core::rules::{Argument, Candidate, Ladder, Need, Obstacle, ReasonKey, Standing, Thresholds, Why};
use peaklane_core::stats::RetryRate;
use serde_json::{Value, json};

use crate::palette::{Palette, Tone};
use crate::table::{Cell, Column, Table};
use crate::units::{count, interval};

/// A decision over one task class.
#[derive(Clone, Copy, Debug)]
pub struct DecisionView<'a> {
    /// The task class.
    pub task: &'a str,
    /// The lanes that stood for choice.
    pub candidates: &'a [Candidate],
    /// How they stand.
    pub ladder: &'a Ladder,
    /// The bars.
    pub thresholds: &'a Thresholds,
}

/// The sentence that matters: `inline-assist -> lane-c (paid-hosted)`.
pub fn headline(view: &DecisionView<'_>) -> String {
    match view.ladder.chosen.map(|at| &view.candidates[at]) {
        Some(chosen) => format!("{} -> {} ({})", view.task, chosen.lane, chosen.kind),
        None if view.ladder.standings.iter().any(|(s, _)| *s == Standing::Undecided) => {
            format!("{} -> no decision yet: too little data", view.task)
        }
        None => format!("{} -> no lane holds", view.task),
    }
}

/// Headline and one line per lane.
pub fn render(view: &DecisionView<'_>, width: usize, palette: Palette) -> String {
    let mut out = format!("{}\n", palette.paint(Tone::Strong, &headline(view)));
    for line in table(view).render(width.saturating_sub(2), palette).lines().skip(1) {
        out.push_str(&format!("  {line}\n"));
    }
    out
}

/// One row per lane: standing and reasons.
pub fn table(view: &DecisionView<'_>) -> Table {
    let mut table = Table::new(vec![
        Column::words("lane", "lane"),
        Column::words("kind", "kind"),
        Column::words("standing", "stands"),
        Column::words("why", "why"),
    ]);
    for (candidate, (standing, why)) in view.candidates.iter().zip(&view.ladder.standings) {
        let tone = match standing {
            Standing::Holds => Tone::Good,
            Standing::Out => Tone::Bad,
            Standing::Undecided | Standing::NotApplicable => Tone::Dim,
        };
        table.row(vec![
            Cell::text(&candidate.lane),
            Cell::text(candidate.kind.name()),
            Cell::text(standing.name()).tone(tone),
            Cell::text(reasons(candidate, why, view.thresholds, &Beside::default())),
        ]);
    }
    table
}

/// The decision for programs.
pub fn json(view: &DecisionView<'_>) -> Value {
    let lanes: Vec<Value> = view
        .candidates
        .iter()
        .zip(&view.ladder.standings)
        .map(|(c, (standing, why))| {
            json!({
                "lane": c.lane,
                "kind": c.kind.name(),
                "standing": standing.name(),
                "verdict": c.decision.verdict.name(),
                "deciding_window": c.decision.deciding_window,
                "passed": c.decision.pass_rate.map(|r| r.passed()),
                "n": c.decision.pass_rate.map(|r| r.of()),
                "why": reasons(c, why, view.thresholds, &Beside::default()),
            })
        })
        .collect();
    let chosen = view.ladder.chosen.map(|at| &view.candidates[at]);
    json!({
        "task": view.task,
        "chosen": chosen.map(|c| &c.lane),
        "kind": chosen.map(|c| c.kind.name()),
        "sentence": headline(view),
        "lanes": lanes,
    })
}

/// Figures that stand beside those of the rules.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Beside {
    /// Interval of the pass rate in the deciding window, shares.
    pub(crate) interval: Option<(f64, f64)>,
    /// Retries in the deciding window alone.
    pub(crate) peak_retries: Option<RetryRate>,
}

/// Why a lane stands as it does, with its figures.
pub(crate) fn reasons(candidate: &Candidate, why: &[Why], thresholds: &Thresholds, beside: &Beside) -> String {
    let decision = &candidate.decision;
    let window = decision.deciding_window.as_deref().unwrap_or("the deciding window");
    let bars = [thresholds.pass_percent, thresholds.retry_below_percent];
    let mut parts: Vec<String> = Vec::new();
    let failed = |w: &Why| matches!(w, Why::Obstacle(Obstacle::PassRate { .. }));
    if let Some(rate) = decision.pass_rate
        && !why.iter().any(failed)
    {
        let band = beside.interval.map(|i| format!(" ({})", interval(Some(i), &bars))).unwrap_or_default();
        parts.push(format!("{window} passes {}/{} = {}{band}", rate.passed(), rate.of(), rate.text(&bars)));
    }
    parts.extend(why.iter().map(|w| match w {
        Why::Obstacle(Obstacle::PassRate { rate, needed_percent }) => {
            format!("{window} passes {}/{} = {} (needs {needed_percent} %)", rate.passed(), rate.of(), rate.text(&bars))
        }
        Why::Obstacle(Obstacle::Retries { rate, below_percent }) => {
            let peak = beside.peak_retries.filter(|peak| peak.exceeds(*below_percent));
            let peak = peak.map(|peak| format!(", {} at {window}", peak.text(&bars))).unwrap_or_default();
            format!("retries {} (needs < {below_percent} %){peak}", rate.text(&bars))
        }
        Why::Obstacle(Obstacle::TooFewDays { days, needed }) => format!("{days} of {needed} days are complete"),
        Why::Obstacle(Obstacle::NotMeasured) => format!("{window} was not measured"),
        Why::Obstacle(Obstacle::Missing { dates }) => format!("bursts of {window} are missing: {}", dates.join(", ")),
        Why::Obstacle(Obstacle::NoRetryRate) => "no retry rate".into(),
        Why::NoOwner => "no owner is named for patching".into(),
        Why::NoPatchDate => "its owner states no date of the last patch".into(),
        Why::StalePatch { days } => format!("last patched {days} days ago"),
        Why::LowerHolds { lane } => format!("{lane}, a lower rung, holds already"),
        Why::LowerUndecided { lane } => format!("{lane}, a lower rung, is not decided yet"),
        Why::NoReason => "no data-path reason is declared".into(),
        Why::BetterBeside { lane, by } => match by {
            Argument::Peak => format!("{lane}, of the same rung, passes more often"),
            Argument::Operations => format!("{lane}, of the same rung, takes less work"),
            Argument::Price => format!("{lane}, of the same rung, costs less"),
            Argument::Order => format!("{lane}, of the same rung, stands before it"),
        },
        Why::NeedPromised { lane } => format!("only {lane} promises a declared need"),
        Why::LimitBelowNeed { need, needed, stated } => {
            format!("its terms allow {} {}, needed are {}", count(*stated), need_words(*need), count(*needed))
        }
        Why::Reason { reason } => match reason {
            ReasonKey::DataMustNotLeave => "data may not leave the house".into(),
            ReasonKey::RateLimitsNotAcceptable => "no rate limit of somebody else is acceptable".into(),
            ReasonKey::PriceMustNotMove => "the price may not move".into(),
        },
    }));
    parts.join("; ")
}

/// A need as it stands behind a number: `requests a minute`.
pub(crate) const fn need_words(need: Need) -> &'static str {
    match need {
        Need::RequestsPerMinute => "requests a minute",
        Need::TokensPerMinute => "tokens a minute",
        Need::Concurrency => "requests at once",
    }
}

#[cfg(test)]
mod tests {
    use peaklane_core::lane::Kind;
    use peaklane_core::rules::{Arguments, Declared, Evidence, WindowCount, climb, decide};
    use peaklane_core::stats::PassRate;

    use super::*;

    fn candidate(lane: &str, kind: Kind, passed: u32, retried: u32) -> Candidate {
        let evidence = Evidence {
            windows: vec![WindowCount { window: "16:00".into(), rate: PassRate::new(passed, 24) }],
            declared_peak: Some("16:00".into()),
            complete_days: 3,
            missing: Vec::new(),
            retries: RetryRate::new(retried, 96),
        };
        Candidate {
            lane: lane.into(),
            kind,
            decision: decide(&evidence, &Thresholds::default()),
            owner: None,
            barred: Vec::new(),
            arguments: Arguments::default(),
        }
    }

    #[test]
    fn each_rung_that_was_not_chosen_says_why_with_its_counts() {
        let candidates = [
            candidate("lane-a", Kind::FreeHosted, 12, 8),
            candidate("lane-b", Kind::FreeServer, 23, 0),
            candidate("lane-c", Kind::PaidHosted, 24, 0),
            candidate("lane-d", Kind::SelfHosted, 24, 0),
        ];
        let thresholds = Thresholds::default();
        let ladder = climb(&candidates, Declared::default());
        let view =
            DecisionView { task: "inline-assist", candidates: &candidates, ladder: &ladder, thresholds: &thresholds };
        insta::assert_snapshot!(render(&view, 110, Palette::PLAIN), @r"
        inline-assist -> lane-c (paid-hosted)
          lane-a  free-hosted  out     16:00 passes 12/24 = 50 % (needs 90 %); retries 8 % (needs < 5 %)
          lane-b  free-server  out     16:00 passes 23/24 = 96 %; no owner is named for patching
          lane-c  paid-hosted  holds   16:00 passes 24/24 = 100 %
          lane-d  self-hosted  n/a     16:00 passes 24/24 = 100 %; no data-path reason is declared
        ");
    }
}
