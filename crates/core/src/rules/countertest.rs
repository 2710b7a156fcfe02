//! Before anybody migrates: did the one change make a difference?

mod planning;

use serde::{Deserialize, Serialize};

use crate::stats::{
    Confidence, Interval, PassRate, StatsError, barnard_two_sided, boschloo_improved, fisher_improved,
    fisher_two_sided, newcombe,
};

pub use planning::{MAX_FURTHER_BURSTS, MAX_PLANNED_ATTEMPTS, bursts_that_would_decide};

/// Significance at which Barnard's test decides.
const DECIDES_AT: f64 = 0.05;

/// The outcome of a counter-test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CounterVerdict {
    /// More passes after than chance explains.
    Improved,
    /// Fewer passes after than chance explains.
    Worse,
    /// The difference lies within the margin: no change that matters.
    NoChange,
    /// Neither a change nor its absence is shown: more bursts.
    Undecided,
}

impl CounterVerdict {
    /// The stable spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Improved => "improved",
            Self::Worse => "worse",
            Self::NoChange => "no_change",
            Self::Undecided => "undecided",
        }
    }
}

/// A counter-test with all figures. P values are 0 to 1, differences -1 to 1 (after - before).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CounterTest {
    /// Passes before the change.
    pub before: PassRate,
    /// Passes after it.
    pub after: PassRate,
    /// The largest difference that does not matter, as a share.
    pub margin: f64,
    /// Pass rate after - pass rate before.
    pub difference: f64,
    /// Newcombe's 95 % interval of the difference.
    pub interval: Interval,
    /// Barnard's exact test, two-sided: this one decides.
    pub barnard_two_sided_p: f64,
    /// Boschloo's exact test, one-sided for more passes.
    pub boschloo_improved_p: f64,
    /// Fisher's exact test, two-sided: shown beside.
    pub fisher_two_sided_p: f64,
    /// Fisher's exact test, one-sided for more passes.
    pub fisher_improved_p: f64,
    /// The verdict.
    pub verdict: CounterVerdict,
}

/// Judges one pre-registered change.
///
/// * `margin`: the largest difference that does not matter, as a share (0.25 is 25 points); reaching it still does not.
///
/// # Errors
/// [`StatsError::TooMany`] when a side has more attempts than an exact test is meant for.
pub fn counter_test(before: PassRate, after: PassRate, margin: f64) -> Result<CounterTest, StatsError> {
    let barnard_two_sided_p = barnard_two_sided(before, after)?;
    let interval = newcombe(before, after, Confidence::P95);
    let verdict = if barnard_two_sided_p <= DECIDES_AT {
        if after.compare(before).is_gt() { CounterVerdict::Improved } else { CounterVerdict::Worse }
    } else if -margin <= interval.low && interval.high <= margin {
        CounterVerdict::NoChange
    } else {
        CounterVerdict::Undecided
    };
    Ok(CounterTest {
        before,
        after,
        margin,
        difference: after.share() - before.share(),
        interval,
        barnard_two_sided_p,
        boschloo_improved_p: boschloo_improved(before, after)?,
        fisher_two_sided_p: fisher_two_sided(before, after)?,
        fisher_improved_p: fisher_improved(before, after)?,
        verdict,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(before: (u32, u32), after: (u32, u32), margin: f64) -> CounterVerdict {
        let rate = |(passed, of)| PassRate::new(passed, of).unwrap();
        counter_test(rate(before), rate(after), margin).unwrap().verdict
    }

    #[test]
    fn the_same_two_perfect_bursts_show_no_change_only_where_the_margin_is_wide_enough() {
        // Newcombe's interval of 8/8 against 8/8 is +-0.3244 (1 - 0.6756, the Wilson end of 8 of 8).
        assert_eq!(verdict((8, 8), (8, 8), 0.25), CounterVerdict::Undecided);
        assert_eq!(verdict((8, 8), (8, 8), 0.33), CounterVerdict::NoChange);
    }

    #[test]
    fn a_change_is_named_by_its_direction_even_within_the_margin() {
        assert_eq!(verdict((12, 24), (21, 24), 1.0), CounterVerdict::Improved);
        assert_eq!(verdict((21, 24), (12, 24), 1.0), CounterVerdict::Worse);
    }
}
