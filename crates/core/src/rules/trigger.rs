//! Does what was decided still hold? The trigger looks at the last working days only.

use serde::Serialize;

use super::Thresholds;
use crate::stats::{PassRate, RetryRate};

/// What to do with the task class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Stay on the rung.
    Stay,
    /// Move one feasible rung up.
    Graduate,
    /// Nothing was measured in the period.
    NotEnoughData,
}

impl Action {
    /// The stable spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stay => "stay",
            Self::Graduate => "graduate",
            Self::NotEnoughData => "not_enough_data",
        }
    }
}

/// What fired a trigger, with its figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerCause {
    /// The peak was bad on too many of the last working days.
    BadDays {
        /// Bad days.
        bad: u32,
        /// Days with data among the last working days.
        of: u32,
    },
    /// Too many attempts needed a retry.
    Retries {
        /// What was seen.
        rate: RetryRate,
    },
}

/// How a trigger stands, with the figures that it used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerState {
    /// What to do.
    pub action: Action,
    /// Days with data among the last working days; fewer than asked for is worth a word.
    pub days_considered: u32,
    /// Those of them below the threshold.
    pub bad_days: u32,
    /// Retry rate of the period.
    pub retries: Option<RetryRate>,
    /// What fired; empty for [`Action::Stay`].
    pub causes: Vec<TriggerCause>,
}

/// Judges the trigger.
///
/// * `peak_by_day`: pass rate of the peak window, one entry per working day, oldest first. `None`: the burst is missing
///   that day; the day still takes its place among the last ones, but is neither good nor bad.
/// * `retries`: retry rate over all bursts of the last working days.
pub fn judge_trigger(
    peak_by_day: &[Option<PassRate>],
    retries: Option<RetryRate>,
    thresholds: &Thresholds,
) -> TriggerState {
    let last = peak_by_day.len().saturating_sub(thresholds.trigger_days as usize);
    let (mut days_considered, mut bad_days) = (0, 0);
    for rate in peak_by_day[last..].iter().flatten() {
        days_considered += 1;
        bad_days += u32::from(rate.below(thresholds.trigger_pass_percent));
    }
    let mut causes = Vec::new();
    if bad_days > 0 && bad_days >= thresholds.trigger_bad_days {
        causes.push(TriggerCause::BadDays { bad: bad_days, of: days_considered });
    }
    if let Some(rate) = retries.filter(|r| r.exceeds(thresholds.trigger_retry_percent)) {
        causes.push(TriggerCause::Retries { rate });
    }
    let action = if !causes.is_empty() {
        Action::Graduate
    } else if days_considered == 0 && retries.is_none() {
        Action::NotEnoughData
    } else {
        Action::Stay
    };
    TriggerState { action, days_considered, bad_days, retries, causes }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(days: &[(u32, u32)], retries: Option<RetryRate>) -> TriggerState {
        let rates: Vec<_> = days.iter().map(|(passed, n)| PassRate::new(*passed, *n)).collect();
        judge_trigger(&rates, retries, &Thresholds::default())
    }

    #[test]
    fn two_bad_days_of_the_last_three_fire_and_older_ones_are_forgotten() {
        let quiet = RetryRate::new(0, 24);
        assert_eq!(state(&[(2, 8), (8, 8), (6, 8)], quiet).action, Action::Graduate);
        assert_eq!(state(&[(2, 8), (2, 8), (8, 8), (8, 8), (2, 8)], quiet).action, Action::Stay);
        // Exactly 80 % is no bad day.
        assert_eq!(state(&[(8, 10), (8, 10), (8, 10)], quiet).bad_days, 0);
    }

    #[test]
    fn a_missing_day_is_neither_good_nor_bad() {
        let got = state(&[(2, 8), (0, 0), (2, 8)], RetryRate::new(0, 16));
        assert_eq!((got.action, got.days_considered, got.bad_days), (Action::Graduate, 2, 2));
        assert_eq!(got.causes, [TriggerCause::BadDays { bad: 2, of: 2 }]);
        assert_eq!(state(&[(2, 8), (0, 0), (0, 0)], RetryRate::new(0, 8)).action, Action::Stay);
        assert_eq!(state(&[(0, 0)], None).action, Action::NotEnoughData);
    }

    #[test]
    fn retries_above_the_threshold_fire_on_their_own() {
        let rate = RetryRate::new(11, 96);
        let got = state(&[(8, 8)], rate);
        assert_eq!(got.action, Action::Graduate);
        assert_eq!(got.causes, [TriggerCause::Retries { rate: rate.unwrap() }]);
    }
}
