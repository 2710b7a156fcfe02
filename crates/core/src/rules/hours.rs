//! Do the hours of a lane differ beyond chance, and which of them can be used?
//!
//! One exact test per lane over all of its windows, and Holm's adjustment over the lanes that were asked: picking out the
//! window or the lane that looks odd and testing only that one would find something in every campaign.
//!
//! The attempts of a burst share a queue, and an exact test of single attempts would take one bad day for a bad hour. So
//! the counts are first divided by the design effect of the bursts within their windows (Rao and Scott): where the bursts of
//! a window agree, that changes nothing.

use serde::Serialize;

use super::Thresholds;
use crate::stats::{
    Confidence, Interval, PassRate, StatsError, clustered_wilson, effective_rate, holm, omnibus, pooled_design_effect,
};
use crate::summary::{window_order, worst_of};

/// Adjusted p at or below which the windows of a lane differ beyond chance.
pub const DIFFERS_AT: f64 = 0.05;

/// One window of a lane with its complete bursts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowBursts {
    /// Local begin, `16:00`.
    pub window: String,
    /// The complete bursts, one a day or several; none: nothing is known of the window.
    pub bursts: Vec<PassRate>,
}

impl WindowBursts {
    /// Passes of all attempts. `None` without a burst, or when the counts overflow.
    pub fn rate(&self) -> Option<PassRate> {
        PassRate::sum(&self.bursts)
    }
}

/// What can be said of the hours of a lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum HoursVerdict {
    /// A hard scheduling constraint: the windows differ beyond chance, and some reach the bar while others do not.
    HardConstraint {
        /// Windows that reach the bar, in the order of the day.
        usable: Vec<String>,
        /// Windows that do not.
        not_usable: Vec<String>,
    },
    /// No window stands out: no difference beyond chance, or all are on the same side of the bar.
    Uniform,
    /// Fewer than two windows have a complete burst.
    NotEnoughData,
}

impl HoursVerdict {
    /// The stable spelling.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::HardConstraint { .. } => "hard_constraint",
            Self::Uniform => "uniform",
            Self::NotEnoughData => "not_enough_data",
        }
    }
}

/// The worst window, which was picked after the fact.
#[derive(Clone, Debug, PartialEq)]
pub struct PickedWorst {
    /// Its name.
    pub window: String,
    /// Its rate.
    pub rate: PassRate,
    /// Windows that were looked at.
    pub looks: u32,
    /// 95 % interval that holds for all windows together (Bonferroni over `looks`), aware of bursts.
    pub interval: Interval,
}

/// The hours of one lane and task class, with the figures that were used.
#[derive(Clone, Debug, PartialEq)]
pub struct Hours {
    /// The verdict.
    pub verdict: HoursVerdict,
    /// P of the exact test that all windows have one rate, 0 to 1, as if attempts were independent. `None` with fewer
    /// than two windows.
    pub omnibus_p: Option<f64>,
    /// How much less than their number the attempts say, at least 1: see [`pooled_design_effect`].
    pub design_effect: f64,
    /// P of the same test on the counts divided by the design effect.
    pub clustered_p: Option<f64>,
    /// `clustered_p` after Holm's adjustment over the lanes: this one decides.
    pub adjusted_p: Option<f64>,
    /// The worst window, the earliest on a tie. `None` without any burst.
    pub worst: Option<PickedWorst>,
}

impl Hours {
    /// True when the windows differ beyond chance, whatever side of the bar they are on.
    pub fn differ(&self) -> bool {
        self.adjusted_p.is_some_and(|p| p <= DIFFERS_AT)
    }
}

/// Judges the hours of all lanes that are looked at together (one entry a lane and task class); the verdicts come back in
/// the same order. Lanes with fewer than two measured windows are not tested and do not weigh on the others.
///
/// # Errors
/// [`StatsError::TooLarge`] when a lane has more attempts than an exact test is meant for.
pub fn judge_hours(lanes: &[Vec<WindowBursts>], thresholds: &Thresholds) -> Result<Vec<Hours>, StatsError> {
    let tested: Vec<Tested> = lanes.iter().map(|lane| test(lane)).collect::<Result<_, _>>()?;
    let mut adjusted = holm(&tested.iter().filter_map(|t| t.clustered_p).collect::<Vec<_>>()).into_iter();
    Ok(lanes
        .iter()
        .zip(tested)
        .map(|(lane, Tested { omnibus_p, design_effect, clustered_p })| {
            let adjusted_p = clustered_p.and_then(|_| adjusted.next());
            let verdict = verdict(lane, adjusted_p, thresholds);
            Hours { verdict, omnibus_p, design_effect, clustered_p, adjusted_p, worst: worst(lane) }
        })
        .collect())
}

/// The figures of one lane before it is seen beside the others.
struct Tested {
    omnibus_p: Option<f64>,
    design_effect: f64,
    clustered_p: Option<f64>,
}

fn test(lane: &[WindowBursts]) -> Result<Tested, StatsError> {
    let rates: Vec<PassRate> = lane.iter().filter_map(WindowBursts::rate).collect();
    let design_effect = pooled_design_effect(&lane.iter().map(|w| w.bursts.as_slice()).collect::<Vec<_>>());
    if rates.len() < 2 {
        return Ok(Tested { omnibus_p: None, design_effect, clustered_p: None });
    }
    let omnibus_p = omnibus(&rates)?;
    let clustered_p = if design_effect > 1.0 {
        omnibus(&rates.iter().map(|r| effective_rate(*r, design_effect)).collect::<Vec<_>>())?
    } else {
        omnibus_p
    };
    Ok(Tested { omnibus_p: Some(omnibus_p), design_effect, clustered_p: Some(clustered_p) })
}

fn in_order(lane: &[WindowBursts]) -> Vec<(&WindowBursts, PassRate)> {
    let mut measured: Vec<_> = lane.iter().filter_map(|w| Some((w, w.rate()?))).collect();
    measured.sort_by(|a, b| window_order(Some(&a.0.window)).cmp(&window_order(Some(&b.0.window))));
    measured
}

fn verdict(lane: &[WindowBursts], adjusted_p: Option<f64>, thresholds: &Thresholds) -> HoursVerdict {
    let Some(p) = adjusted_p else { return HoursVerdict::NotEnoughData };
    let (mut usable, mut not_usable) = (Vec::new(), Vec::new());
    for (window, rate) in in_order(lane) {
        let side = if rate.reaches(thresholds.pass_percent) { &mut usable } else { &mut not_usable };
        side.push(window.window.clone());
    }
    if p > DIFFERS_AT || usable.is_empty() || not_usable.is_empty() {
        return HoursVerdict::Uniform;
    }
    HoursVerdict::HardConstraint { usable, not_usable }
}

fn worst(lane: &[WindowBursts]) -> Option<PickedWorst> {
    let measured = in_order(lane);
    let (window, rate) = measured[worst_of(measured.iter().map(|(_, rate)| Some(*rate)))?];
    let looks = u32::try_from(measured.len()).unwrap_or(u32::MAX);
    let interval = clustered_wilson(&window.bursts, Confidence::P95.shared_by(looks))?.interval;
    Some(PickedWorst { window: window.window.clone(), rate, looks, interval })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::wilson;

    /// Three bursts of 8 a window, as even as the passes allow.
    fn lane(windows: &[(&str, u32)]) -> Vec<WindowBursts> {
        let bursts =
            |passed: u32| (0..3).filter_map(|day| PassRate::new((passed + 2 - day) / 3, 8)).collect::<Vec<_>>();
        windows.iter().map(|(w, passed)| WindowBursts { window: (*w).into(), bursts: bursts(*passed) }).collect()
    }

    fn judge(lanes: &[Vec<WindowBursts>]) -> Vec<Hours> {
        judge_hours(lanes, &Thresholds::default()).unwrap()
    }

    #[test]
    fn a_lane_that_breaks_down_in_the_afternoon_has_a_hard_scheduling_constraint() {
        let got = &judge(&[lane(&[("16:00", 12), ("21:00", 24), ("9:00", 23), ("12:30", 22)])])[0];
        let names = |all: &[&str]| all.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let want =
            HoursVerdict::HardConstraint { usable: names(&["9:00", "12:30", "21:00"]), not_usable: names(&["16:00"]) };
        assert_eq!(got.verdict, want);
        assert_eq!(got.adjusted_p, got.omnibus_p);
    }

    #[test]
    fn a_lane_that_is_bad_all_day_or_loses_two_attempts_has_none() {
        let all = judge(&[
            lane(&[("09:00", 12), ("16:00", 13), ("21:00", 12)]),
            lane(&[("09:00", 24), ("12:30", 24), ("16:00", 21), ("21:00", 24)]),
        ]);
        assert_eq!(all[0].verdict, HoursVerdict::Uniform);
        assert_eq!(all[1].verdict, HoursVerdict::Uniform);
        assert!(!all[1].differ());
    }

    #[test]
    fn hours_that_differ_below_the_bar_alone_are_no_schedule() {
        let got = &judge(&[lane(&[("09:00", 20), ("16:00", 3)])])[0];
        assert!(got.differ());
        assert_eq!(got.verdict, HoursVerdict::Uniform);
    }

    #[test]
    fn what_is_beyond_chance_for_one_lane_may_be_chance_among_many() {
        // Fisher: 24/24 against 19/24 has p = 2 x C(24, 5) / C(48, 5) = 85008 / 1712304.
        let odd = || lane(&[("09:00", 24), ("16:00", 19)]);
        let even = || lane(&[("09:00", 24), ("16:00", 24)]);
        assert!(matches!(judge(&[odd()])[0].verdict, HoursVerdict::HardConstraint { .. }));
        let among = judge(&[even(), odd(), Vec::new()]);
        assert_eq!(among[1].verdict, HoursVerdict::Uniform);
        let (raw, adjusted) = (among[1].omnibus_p.unwrap(), among[1].adjusted_p.unwrap());
        assert!((raw - 85_008.0 / 1_712_304.0).abs() < 1e-12, "{raw}");
        assert!((adjusted - 2.0 * raw).abs() < 1e-12, "the lane without data does not count: {adjusted}");
    }

    #[test]
    fn two_bad_days_are_no_bad_hour() {
        // 12 of 24 at 16:00 both times: once every day, once because two days were lost nearly whole.
        let at_four = |passes: [u32; 3]| {
            let mut lane = lane(&[("09:00", 24), ("12:30", 24), ("16:00", 12), ("21:00", 24)]);
            lane[2].bursts = passes.iter().map(|p| PassRate::new(*p, 8).unwrap()).collect();
            lane
        };
        let every_day = &judge(&[at_four([4, 4, 4])])[0];
        assert!(matches!(every_day.verdict, HoursVerdict::HardConstraint { .. }));
        assert_eq!((every_day.design_effect, every_day.clustered_p), (1.0, every_day.omnibus_p));
        // spread 4² + 2² + 2² = 24 against 1/4 x 16 = 4
        let two_days = &judge(&[at_four([8, 2, 2])])[0];
        assert!((two_days.design_effect - 6.0).abs() < 1e-12);
        assert_eq!(two_days.verdict, HoursVerdict::Uniform);
        assert!(two_days.omnibus_p == every_day.omnibus_p && two_days.clustered_p > two_days.omnibus_p);
    }

    #[test]
    fn one_window_alone_is_not_enough_to_compare() {
        let mut one = lane(&[("09:00", 24), ("16:00", 12)]);
        one[1].bursts.clear();
        let got = &judge(&[one])[0];
        assert_eq!((&got.verdict, got.omnibus_p), (&HoursVerdict::NotEnoughData, None));
        assert_eq!(got.worst.as_ref().map(|w| w.window.as_str()), Some("09:00"));
        assert_eq!(judge(&[Vec::new()])[0].worst, None);
    }

    #[test]
    fn the_interval_of_the_worst_window_pays_for_having_been_picked() {
        let got = judge(&[lane(&[("09:00", 24), ("12:30", 24), ("16:00", 22), ("21:00", 22)])]);
        let worst = got[0].worst.as_ref().unwrap();
        assert_eq!((worst.window.as_str(), worst.looks), ("16:00", 4));
        assert_eq!(worst.interval, wilson(worst.rate, Confidence::new(0.9875).unwrap()));
    }
}
