//! How sure is a verdict? And how many more bursts would make it sure?

use serde::Serialize;

use crate::stats::binomial::{at_least, at_most};
use crate::stats::interval::wilson_at;
use crate::stats::quantile::{first_true, last_true};
use crate::stats::{Clustered, Confidence, Interval, PassRate, clustered_wilson};

/// Probability with which the promised number of further bursts is to settle the matter.
pub const PROBABILITY: f64 = 0.8;

/// So many further bursts are looked at: more than two years of working days at two a day.
pub const MAX_BURSTS: u32 = 1000;

/// A rate that is held against a bar.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The complete bursts of the deciding window.
    pub bursts: &'a [PassRate],
    /// Attempts of one further burst.
    pub burst_attempts: u32,
    /// The rate to reach, percent (equal is enough).
    pub percent: u32,
    /// Windows among which this one was picked after the fact; 1 for a declared peak.
    pub looks: u32,
}

/// How sure it is on which side of the bar the true rate lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Certainty {
    /// The rate seen.
    pub rate: PassRate,
    /// The rate seen reaches the bar.
    pub reaches: bool,
    /// The interval that was held against the bar, and how much less than their number the attempts say.
    pub clustered: Clustered,
    /// Two-sided confidence of that interval, 0 to 1: 0.95, or more for a picked window.
    pub confidence: f64,
    /// The answer.
    pub state: CertaintyState,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "certainty", rename_all = "snake_case")]
pub enum CertaintyState {
    /// The interval lies on one side of the bar.
    Conclusive,
    /// It does not.
    Provisional {
        /// Further bursts after which it does with [`PROBABILITY`]; `None`: not within [`MAX_BURSTS`].
        bursts_needed: Option<u32>,
        /// The true rate that this assumes, 0 to 1: the one seen.
        assumed_rate: f64,
        /// [`PROBABILITY`].
        probability: f64,
    },
}

impl CertaintyState {
    /// True for [`Self::Conclusive`].
    pub const fn is_conclusive(self) -> bool {
        matches!(self, Self::Conclusive)
    }
}

/// Says how sure the side of the bar is, and what would make it sure. `None` without a complete burst, or when the counts
/// overflow.
///
/// The interval is Wilson's, aware of bursts ([`clustered_wilson`]), at 95 % shared by the windows looked at
/// ([`Confidence::shared_by`]). It clears the bar from above when its lower end reaches it (the bar itself is enough) and
/// from below when its upper end is less.
///
/// Bursts needed: the smallest k up to [`MAX_BURSTS`] for which, with X of m = k N / d further passes at the rate seen,
/// the interval of (x / d + X) of (n / d + m) lies on the side of the rate seen with a binomial probability of
/// [`PROBABILITY`] or more. d is the design effect so far, as if it stayed: N attempts of a burst are worth N / d. Counts
/// being whole, that probability rises with teeth; k is where it first gets there. The rate seen is not the true rate, so
/// this is a plan, not a promise: after 24 of 24, k assumes that no attempt will ever fail.
///
/// For a retry rate give the attempts without a retry and 100 - the limit.
///
/// Source: sample size by exact binomial power, Chernick and Liu 2002, "The saw-toothed behavior of power versus sample
/// size and software solutions", The American Statistician 56:149-155, with the interval above as the test.
pub fn certainty(question: &Question<'_>) -> Option<Certainty> {
    let found = settle(question)?;
    if found.state.is_conclusive() {
        return Some(found);
    }
    let state = CertaintyState::Provisional {
        bursts_needed: bursts_needed(question, &found),
        assumed_rate: found.rate.share(),
        probability: PROBABILITY,
    };
    Some(Certainty { state, ..found })
}

/// [`certainty`] without the search: `bursts_needed` is `None`. Cheap, for who only asks whether it is conclusive.
pub fn settle(question: &Question<'_>) -> Option<Certainty> {
    let rate = PassRate::sum(question.bursts)?;
    let confidence = Confidence::P95.shared_by(question.looks);
    let clustered = clustered_wilson(question.bursts, confidence)?;
    let reaches = rate.reaches(question.percent);
    let state = if clears(clustered.interval, reaches, question.percent) {
        CertaintyState::Conclusive
    } else {
        CertaintyState::Provisional { bursts_needed: None, assumed_rate: rate.share(), probability: PROBABILITY }
    };
    Some(Certainty { rate, reaches, clustered, confidence: confidence.share(), state })
}

/// An interval clears the bar on the side of the rate that it belongs to.
fn clears(interval: Interval, reaches: bool, percent: u32) -> bool {
    let bar = f64::from(percent) / 100.0;
    if reaches { interval.low >= bar } else { interval.high < bar }
}

fn bursts_needed(question: &Question<'_>, now: &Certainty) -> Option<u32> {
    (1..=MAX_BURSTS).find(|bursts| {
        let further = bursts.checked_mul(question.burst_attempts);
        further.is_some_and(|further| probability(question, now, further) >= PROBABILITY)
    })
}

/// Probability that the interval clears the bar after `further` attempts at the rate seen.
fn probability(question: &Question<'_>, now: &Certainty, further: u32) -> f64 {
    let (effect, rate) = (now.clustered.design_effect, now.rate.share());
    let worth = (f64::from(further) / effect) as u32;
    let (passed, n) = (f64::from(now.rate.passed()) / effect, now.clustered.effective_n);
    let cleared = |more: u32| {
        let total = n + f64::from(worth);
        let share = ((passed + f64::from(more)) / total).clamp(0.0, 1.0);
        clears(wilson_at(share, total, Confidence::P95.shared_by(question.looks)), now.reaches, question.percent)
    };
    if now.reaches {
        first_true(0, worth, cleared).map_or(0.0, |least| at_least(least, worth, rate))
    } else {
        last_true(0, worth, cleared).map_or(0.0, |most| at_most(most, worth, rate))
    }
}

#[cfg(test)]
mod tests;
