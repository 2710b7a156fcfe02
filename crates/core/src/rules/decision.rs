//! Does a lane hold at the hours that decide?

use serde::Serialize;

use super::Thresholds;
use crate::stats::{PassRate, RetryRate};
use crate::summary::{window_order, worst_of};

/// One window of a campaign, summed over its days.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowCount {
    /// Local begin, `16:00`.
    pub window: String,
    /// Passes and attempts of the complete bursts; `None` without any.
    pub rate: Option<PassRate>,
}

/// What a campaign found out about one lane and task class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// All windows, in any order.
    pub windows: Vec<WindowCount>,
    /// The window that was declared the peak beforehand; it takes the place of the worst one.
    pub declared_peak: Option<String>,
    /// Working days with complete data.
    pub complete_days: u32,
    /// Bursts that should have been and were not: local date and window.
    pub missing: Vec<(String, String)>,
    /// Retry rate over all bursts of the campaign; `None` without attempts.
    pub retries: Option<RetryRate>,
}

/// The verdict on one lane and task class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionVerdict {
    /// The lane holds: on the lowest rung, free is good enough.
    FreeOk,
    /// The lane does not hold.
    NotOk,
    /// A burst of the deciding window is missing, or nothing was measured: neither a pass nor a failure.
    NotEnoughData,
    /// Too few complete days.
    NotEnoughDays,
}

impl DecisionVerdict {
    /// The stable spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FreeOk => "free_ok",
            Self::NotOk => "not_ok",
            Self::NotEnoughData => "not_enough_data",
            Self::NotEnoughDays => "not_enough_days",
        }
    }
}

/// What stood in the way of "holds", with its figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Fewer complete days than are needed.
    TooFewDays {
        /// Complete days.
        days: u32,
        /// Needed days.
        needed: u32,
    },
    /// The deciding window has no complete burst, or no window has one.
    NotMeasured,
    /// Bursts of the deciding window are missing on these dates.
    Missing {
        /// Local dates, as given.
        dates: Vec<String>,
    },
    /// No attempt, so no retry rate.
    NoRetryRate,
    /// The deciding window passes less often than it must.
    PassRate {
        /// What was seen.
        rate: PassRate,
        /// What it must reach, percent.
        needed_percent: u32,
    },
    /// Retries are too frequent.
    Retries {
        /// What was seen.
        rate: RetryRate,
        /// What it must stay below, percent.
        below_percent: u32,
    },
}

/// A verdict with the figures that it used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The verdict.
    pub verdict: DecisionVerdict,
    /// The window that decided: the declared peak, else the worst one.
    pub deciding_window: Option<String>,
    /// The deciding window was declared beforehand.
    pub declared: bool,
    /// Pass rate of the deciding window.
    pub pass_rate: Option<PassRate>,
    /// The window with the lowest pass rate, the earliest on a tie; stands beside a declared peak.
    pub worst_window: Option<String>,
    /// Pass rate of the worst window.
    pub worst_rate: Option<PassRate>,
    /// All windows thrown together: describes no hour of the day and decides nothing. Only to say what the lane is *not*.
    pub pooled: Option<PassRate>,
    /// Retry rate over the campaign.
    pub retries: Option<RetryRate>,
    /// What stood in the way, the reason for the verdict first; empty when the lane holds.
    pub obstacles: Vec<Obstacle>,
}

/// Decides whether a lane holds.
///
/// Too few days or a missing burst of the deciding window give no verdict on the lane at all, even where what was seen
/// is bad already. A burst missing in another window does not stand in the way.
pub fn decide(evidence: &Evidence, thresholds: &Thresholds) -> Decision {
    let mut windows: Vec<&WindowCount> = evidence.windows.iter().collect();
    windows.sort_by(|a, b| window_order(Some(&a.window)).cmp(&window_order(Some(&b.window))));
    let worst = worst_of(windows.iter().map(|w| w.rate)).map(|index| windows[index]);
    let deciding_window = evidence.declared_peak.clone().or_else(|| worst.map(|w| w.window.clone()));
    let deciding = |w: &str| Some(w) == deciding_window.as_deref();
    let pass_rate = windows.iter().find(|w| deciding(&w.window)).and_then(|w| w.rate);
    let dates: Vec<String> = evidence.missing.iter().filter(|(_, w)| deciding(w)).map(|(d, _)| d.clone()).collect();

    let mut obstacles = Vec::new();
    let mut verdict = DecisionVerdict::FreeOk;
    let mut hinder = |because: DecisionVerdict, obstacle: Obstacle| {
        if verdict == DecisionVerdict::FreeOk {
            verdict = because;
        }
        obstacles.push(obstacle);
    };
    if evidence.complete_days < thresholds.days {
        let obstacle = Obstacle::TooFewDays { days: evidence.complete_days, needed: thresholds.days };
        hinder(DecisionVerdict::NotEnoughDays, obstacle);
    }
    if pass_rate.is_none() {
        hinder(DecisionVerdict::NotEnoughData, Obstacle::NotMeasured);
    }
    if !dates.is_empty() {
        hinder(DecisionVerdict::NotEnoughData, Obstacle::Missing { dates });
    }
    if evidence.retries.is_none() {
        hinder(DecisionVerdict::NotEnoughData, Obstacle::NoRetryRate);
    }
    if let Some(rate) = pass_rate.filter(|r| !r.reaches(thresholds.pass_percent)) {
        hinder(DecisionVerdict::NotOk, Obstacle::PassRate { rate, needed_percent: thresholds.pass_percent });
    }
    if let Some(rate) = evidence.retries.filter(|r| !r.below(thresholds.retry_below_percent)) {
        hinder(DecisionVerdict::NotOk, Obstacle::Retries { rate, below_percent: thresholds.retry_below_percent });
    }
    Decision {
        verdict,
        declared: evidence.declared_peak.is_some(),
        pass_rate,
        worst_window: worst.map(|w| w.window.clone()),
        worst_rate: worst.and_then(|w| w.rate),
        pooled: pooled(&evidence.windows),
        retries: evidence.retries,
        deciding_window,
        obstacles,
    }
}

fn pooled(windows: &[WindowCount]) -> Option<PassRate> {
    PassRate::sum(&windows.iter().filter_map(|w| w.rate).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(windows: &[(&str, u32, u32)]) -> Evidence {
        Evidence {
            windows: windows
                .iter()
                .map(|(window, passed, n)| WindowCount { window: (*window).into(), rate: PassRate::new(*passed, *n) })
                .collect(),
            declared_peak: None,
            complete_days: 3,
            missing: Vec::new(),
            retries: RetryRate::new(0, 96),
        }
    }

    fn verdict(evidence: &Evidence) -> DecisionVerdict {
        decide(evidence, &Thresholds::default()).verdict
    }

    #[test]
    fn a_declared_peak_decides_and_the_worst_window_stands_beside_it() {
        let mut seen = evidence(&[("09:00", 12, 24), ("16:00", 24, 24)]);
        assert_eq!(verdict(&seen), DecisionVerdict::NotOk);
        seen.declared_peak = Some("16:00".into());
        let got = decide(&seen, &Thresholds::default());
        assert_eq!(got.verdict, DecisionVerdict::FreeOk);
        assert_eq!((got.declared, got.worst_window.as_deref()), (true, Some("09:00")));
        seen.declared_peak = Some("18:00".into());
        assert_eq!(verdict(&seen), DecisionVerdict::NotEnoughData);
    }

    #[test]
    fn a_missing_burst_matters_only_in_the_deciding_window() {
        let mut seen = evidence(&[("09:00", 24, 24), ("16:00", 22, 24)]);
        seen.missing = vec![("2026-06-02".into(), "09:00".into())];
        assert_eq!(verdict(&seen), DecisionVerdict::FreeOk);
        seen.missing.push(("2026-06-02".into(), "16:00".into()));
        let got = decide(&seen, &Thresholds::default());
        assert_eq!(got.verdict, DecisionVerdict::NotEnoughData);
        assert_eq!(got.obstacles, [Obstacle::Missing { dates: vec!["2026-06-02".into()] }]);
    }

    #[test]
    fn nothing_measured_is_no_verdict_on_the_lane() {
        assert_eq!(verdict(&evidence(&[])), DecisionVerdict::NotEnoughData);
        assert_eq!(verdict(&evidence(&[("16:00", 0, 0)])), DecisionVerdict::NotEnoughData);
        assert_eq!(
            verdict(&Evidence { retries: None, ..evidence(&[("16:00", 8, 8)]) }),
            DecisionVerdict::NotEnoughData
        );
    }

    #[test]
    fn windows_are_ordered_by_the_clock_and_not_by_their_spelling() {
        let got = decide(&evidence(&[("16:00", 4, 8), ("9:00", 1, 2)]), &Thresholds::default());
        assert_eq!(got.worst_window.as_deref(), Some("9:00"));
    }

    #[test]
    fn every_obstacle_is_named_with_the_reason_first() {
        let mut seen = evidence(&[("16:00", 12, 24)]);
        seen.retries = RetryRate::new(5, 100);
        let got = decide(&seen, &Thresholds::default());
        let rate = PassRate::new(12, 24).unwrap();
        let retries = RetryRate::new(5, 100).unwrap();
        assert_eq!(
            got.obstacles,
            [Obstacle::PassRate { rate, needed_percent: 90 }, Obstacle::Retries { rate: retries, below_percent: 5 }]
        );
        let stricter = Thresholds { pass_percent: 50, retry_below_percent: 6, ..Thresholds::default() };
        assert_eq!(decide(&seen, &stricter).verdict, DecisionVerdict::FreeOk);
    }
}
