//! A counter-test judged: the deciding window of the changed lane, every other window and the unchanged lane beside it.

use serde::{Deserialize, Serialize};

use super::sides::Side;
use crate::rules::CounterVerdict;
use crate::rules::countertest::{CounterTest, bursts_that_would_decide, counter_test};
use crate::stats::{PassRate, StatsError};

/// One lane in one window, before and after, with all figures. P values are 0 to 1, differences -1 to 1 (after - before).
/// What could not be worked out, for lack of bursts on a side, is null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowFigures {
    /// Local begin of the window.
    pub window: String,
    /// Passes before.
    pub before_passed: u32,
    /// Attempts before.
    pub before_n: u32,
    /// Bursts before.
    pub before_bursts: u32,
    /// Passes after.
    pub after_passed: u32,
    /// Attempts after.
    pub after_n: u32,
    /// Bursts after.
    pub after_bursts: u32,
    /// Pass rate after - pass rate before.
    pub difference: Option<f64>,
    /// Newcombe's 95 % interval of the difference.
    pub difference_interval: Option<(f64, f64)>,
    /// Barnard's exact test, two-sided: it decides.
    pub barnard_two_sided_p: Option<f64>,
    /// Fisher's exact test, two-sided: shown beside.
    pub fisher_two_sided_p: Option<f64>,
    /// The verdict in this window.
    pub verdict: Option<CounterVerdict>,
}

/// What came of a counter-test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The verdict of the deciding window.
    pub verdict: CounterVerdict,
    /// Further bursts on each side after which it is decided with 80 % probability at the rates seen; 0 when it is, `None`
    /// when not within reach.
    pub bursts_needed: Option<u32>,
    /// The windows of the changed lane, the deciding one first.
    pub windows: Vec<WindowFigures>,
    /// The deciding window of the lane beside; `None` where no unchanged lane ran beside it.
    pub beside: Option<WindowFigures>,
    /// The lane beside changed too, by its own test: then the world did. `None` where that could not be tested.
    pub world_changed: Option<bool>,
    /// The lane itself was changed, nothing moved, and the world stood still: the rung was not the problem, and the migration
    /// is off.
    pub migration_off: bool,
}

/// Too little for a verdict: one of the sides of the deciding window has no burst.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum JudgeError {
    /// No burst on that side.
    #[error("no burst that counts in the window {window} {side} the change")]
    NoBurst {
        /// The deciding window.
        window: String,
        /// `before` or `after`.
        side: &'static str,
    },
    /// More attempts than the exact tests are meant for.
    #[error(transparent)]
    Stats(#[from] StatsError),
}

/// Both sides of a lane.
#[derive(Clone, Copy, Debug)]
pub struct Sides<'a> {
    /// Window by window, the deciding one first.
    pub before: &'a [Side],
    /// The same windows.
    pub after: &'a [Side],
}

/// Judges. The rates of windows are never put together: the first window decides, the others stand beside it.
///
/// * `margin_percent`: the largest difference that does not matter, points of percent.
/// * `lane_changed`: the lane itself was what changed.
///
/// # Errors
/// [`JudgeError`] where the deciding window lacks a side.
pub fn judge(
    tested: Sides<'_>,
    beside: Option<Sides<'_>>,
    margin_percent: u32,
    lane_changed: bool,
) -> Result<Judgement, JudgeError> {
    let margin = f64::from(margin_percent) / 100.0;
    let windows: Vec<WindowFigures> =
        tested.before.iter().map(|before| figures(before, tested.after, margin)).collect::<Result<_, _>>()?;
    let first = tested.before.first();
    let lacking = |side| JudgeError::NoBurst { window: first.map(|s| s.window.clone()).unwrap_or_default(), side };
    let before = first.and_then(Side::rate).ok_or_else(|| lacking("before"))?;
    let after = first.and_then(|s| opposite(s, tested.after)).and_then(Side::rate).ok_or_else(|| lacking("after"))?;
    let verdict = windows.first().and_then(|w| w.verdict).ok_or_else(|| lacking("after"))?;
    // The bursts to come are as large as the last one was.
    let size = first.and_then(|s| opposite(s, tested.after)).and_then(|s| s.bursts.last()).map_or(0, |b| b.n);
    let beside = beside.and_then(|sides| Some((sides.before.first()?, sides.after)));
    let beside = beside.map(|(before, after)| figures(before, after, margin)).transpose()?;
    let world_changed = beside.as_ref().and_then(|b| b.verdict).map(moved);
    Ok(Judgement {
        verdict,
        bursts_needed: bursts_that_would_decide(before, after, size, margin),
        windows,
        beside,
        world_changed,
        migration_off: lane_changed && verdict == CounterVerdict::NoChange && world_changed != Some(true),
    })
}

fn moved(verdict: CounterVerdict) -> bool {
    matches!(verdict, CounterVerdict::Improved | CounterVerdict::Worse)
}

fn opposite<'a>(side: &Side, others: &'a [Side]) -> Option<&'a Side> {
    others.iter().find(|other| other.window == side.window)
}

fn figures(before: &Side, after: &[Side], margin: f64) -> Result<WindowFigures, StatsError> {
    let rates = before.rate().zip(opposite(before, after).and_then(Side::rate));
    let mut figures = WindowFigures::counts(before, after);
    let Some((b, a)) = rates else { return Ok(figures) };
    let test: CounterTest = counter_test(b, a, margin)?;
    figures.difference = Some(test.difference);
    figures.difference_interval = Some(test.interval.pair());
    figures.barnard_two_sided_p = Some(test.barnard_two_sided_p);
    figures.fisher_two_sided_p = Some(test.fisher_two_sided_p);
    figures.verdict = Some(test.verdict);
    Ok(figures)
}

impl WindowFigures {
    /// The counts of a window without any test.
    pub(super) fn counts(before: &Side, after: &[Side]) -> Self {
        let after = opposite(before, after);
        let (b, a) = (before.rate(), after.and_then(Side::rate));
        let bursts = |side: &Side| u32::try_from(side.bursts.len()).unwrap_or(u32::MAX);
        Self {
            window: before.window.clone(),
            before_passed: b.map_or(0, PassRate::passed),
            before_n: b.map_or(0, PassRate::of),
            before_bursts: bursts(before),
            after_passed: a.map_or(0, PassRate::passed),
            after_n: a.map_or(0, PassRate::of),
            after_bursts: after.map_or(0, bursts),
            difference: None,
            difference_interval: None,
            barnard_two_sided_p: None,
            fisher_two_sided_p: None,
            verdict: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::countertest::sides::CountedBurst;

    /// A window whose bursts of 8 passed so often.
    fn window(name: &str, passes: &[u32]) -> Side {
        let burst =
            |(i, passed): (usize, &u32)| CountedBurst { id: format!("b{i}"), date: None, passed: *passed, n: 8 };
        Side { window: name.into(), bursts: passes.iter().enumerate().map(burst).collect() }
    }

    fn judged(before: &[Side], after: &[Side], beside: Option<(&[Side], &[Side])>, lane: bool) -> Judgement {
        let beside = beside.map(|(before, after)| Sides { before, after });
        judge(Sides { before, after }, beside, 25, lane).unwrap()
    }

    #[test]
    fn the_first_window_decides_and_the_others_stand_beside_it() {
        let before = [window("16:00", &[4, 4, 4]), window("09:00", &[8, 8, 8])];
        let after = [window("09:00", &[0, 0, 0]), window("16:00", &[7, 7, 7])];
        let found = judged(&before, &after, None, false);
        assert_eq!(found.verdict, CounterVerdict::Improved);
        assert_eq!(found.bursts_needed, Some(0));
        // counter-test-12of24-to-21of24
        let first = &found.windows[0];
        assert_eq!((first.before_passed, first.before_n, first.after_passed, first.after_n), (12, 24, 21, 24));
        assert_eq!(found.windows[1].verdict, Some(CounterVerdict::Worse));
        assert_eq!((found.world_changed, found.beside), (None, None));
    }

    #[test]
    fn only_where_the_lane_itself_changed_and_the_world_did_not_is_the_migration_off() {
        let same = [window("16:00", &[8, 8, 8])];
        let (good, bad) = ([window("16:00", &[8, 8, 8])], [window("16:00", &[0, 1, 0])]);
        assert!(judged(&same, &same, None, true).migration_off);
        assert!(!judged(&same, &same, None, false).migration_off);
        let still = judged(&same, &same, Some((&good, &good)), true);
        assert_eq!((still.migration_off, still.world_changed), (true, Some(false)));
        let moved = judged(&same, &same, Some((&good, &bad)), true);
        assert_eq!((moved.migration_off, moved.world_changed), (false, Some(true)));
    }

    #[test]
    fn a_side_without_a_burst_is_too_little_and_a_lane_beside_without_one_is_unknown() {
        let (some, none) = ([window("16:00", &[8])], [window("16:00", &[])]);
        let error = judge(Sides { before: &some, after: &none }, None, 25, false).unwrap_err();
        assert_eq!(error.to_string(), "no burst that counts in the window 16:00 after the change");
        assert!(judge(Sides { before: &none, after: &some }, None, 25, false).is_err());
        let beside = judged(&some, &some, Some((&some, &none)), false);
        assert_eq!(beside.world_changed, None);
        assert_eq!(beside.beside.unwrap().difference, None, "missing is blank, never 0");
        assert_eq!((beside.verdict, beside.bursts_needed), (CounterVerdict::Undecided, Some(1)));
    }

    #[test]
    fn swapping_the_sides_swaps_improved_and_worse() {
        let verdict = |before: u32, after: u32| {
            figures(&window("w", &[before]), &[window("w", &[after])], 0.4).unwrap().verdict.unwrap()
        };
        let mut seen = std::collections::HashSet::new();
        for (before, after) in (0..=8).flat_map(|before| (0..=8).map(move |after| (before, after))) {
            let mirrored = match verdict(before, after) {
                CounterVerdict::Improved => CounterVerdict::Worse,
                CounterVerdict::Worse => CounterVerdict::Improved,
                other => other,
            };
            assert_eq!(verdict(after, before), mirrored, "{before} and {after} of 8");
            seen.insert(mirrored);
        }
        assert_eq!(seen.len(), 4, "every verdict is met");
    }
}
