//! Intervals beside every rate: Wilson for display, Clopper-Pearson as the exact one, Newcombe for a difference.

use super::StatsError;
use super::binomial::{at_least, at_most};
use super::normal::normal_quantile;
use super::rate::PassRate;

/// A two-sided confidence between 0 and 1 (both excluded).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Confidence(f64);

impl Confidence {
    /// 95 %, used wherever nothing else is said.
    pub const P95: Self = Self(0.95);

    /// A confidence as a share, such as 0.95.
    ///
    /// # Errors
    /// [`StatsError::BadConfidence`] for anything that is not between 0 and 1.
    pub fn new(share: f64) -> Result<Self, StatsError> {
        if share > 0.0 && share < 1.0 { Ok(Self(share)) } else { Err(StatsError::BadConfidence { given: share }) }
    }

    /// The confidence at which each of `looks` intervals must stand so that all of them hold together (Bonferroni):
    /// for the worst of several windows, picked after the fact. 0 looks count as one.
    #[must_use]
    pub fn shared_by(self, looks: u32) -> Self {
        Self(1.0 - (1.0 - self.0) / f64::from(looks.max(1)))
    }

    /// As a share, such as 0.95.
    pub const fn share(self) -> f64 {
        self.0
    }

    /// What is left on each side, such as 0.025.
    pub(crate) fn side(self) -> f64 {
        (1.0 - self.0) / 2.0
    }

    /// The normal quantile that belongs to it, such as 1.96.
    pub(crate) fn z(self) -> f64 {
        normal_quantile(0.5 + self.0 / 2.0)
    }
}

/// A closed interval of shares (0 to 1), of their difference (-1 to 1), or of a rate by the hour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Both ends as a pair.
    pub const fn pair(self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// True when `share` lies inside, ends included.
    pub fn holds(self, share: f64) -> bool {
        self.low <= share && share <= self.high
    }
}

/// Wilson score interval of a rate. Its end is exactly 0 or 1 where nothing or everything passed.
///
/// Source: Wilson 1927, "Probable inference, the law of succession, and statistical inference"; recommended for small
/// samples by Brown, Cai and DasGupta 2001.
pub fn wilson(rate: PassRate, confidence: Confidence) -> Interval {
    wilson_at(rate.share(), f64::from(rate.of()), confidence)
}

/// Wilson's interval of a share of `n` attempts, which need not be whole numbers: an effective sample.
pub(crate) fn wilson_at(share: f64, n: f64, confidence: Confidence) -> Interval {
    let z = confidence.z();
    let z2 = z * z;
    let centre = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = z / (1.0 + z2 / n) * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    // At the ends the formula is exact on paper, and rounding must not undo it.
    Interval {
        low: if share <= 0.0 { 0.0 } else { (centre - half).max(0.0) },
        high: if share >= 1.0 { 1.0 } else { (centre + half).min(1.0) },
    }
}

/// Exact (conservative) interval of a rate: never covers less than it says. 0 or 1 where nothing or everything passed.
///
/// Source: Clopper and Pearson 1934, "The use of confidence or fiducial limits illustrated in the case of the binomial".
pub fn clopper_pearson(rate: PassRate, confidence: Confidence) -> Interval {
    let (passed, n, side) = (rate.passed(), rate.of(), confidence.side());
    let low = if passed == 0 { 0.0 } else { where_true_begins(|p| at_least(passed, n, p) >= side) };
    let high = if passed == n { 1.0 } else { where_true_begins(|p| at_most(passed, n, p) <= side) };
    Interval { low, high }
}

/// The smallest share for which a predicate holds that is false at 0, true at 1 and changes once.
fn where_true_begins(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    loop {
        let middle = f64::midpoint(low, high);
        // Neighbouring floats: no closer answer exists.
        if middle <= low || middle >= high {
            return middle;
        }
        if holds(middle) { high = middle } else { low = middle }
    }
}

/// A rate over several bursts with an interval that knows that attempts of one burst share one queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clustered {
    /// The interval.
    pub interval: Interval,
    /// How much larger the variance is than that of independent attempts, at least 1.
    pub design_effect: f64,
    /// Attempts / design effect: the independent attempts that would say as much.
    pub effective_n: f64,
}

/// Wilson interval over several bursts with the effective sample size in place of the count.
///
/// The design effect compares the variance between bursts (ratio estimator) with the binomial one. It is never taken to
/// be below 1, so the interval is never narrower than the plain one; with fewer than two bursts, or where all attempts
/// went the same way, nothing is known of the spread between bursts and it is 1. From two or three bursts the estimate
/// is rough. `None` without bursts, or when the counts overflow.
///
/// Source: Rao and Scott 1992, "A simple method for the analysis of clustered binary data", Biometrics 48:577-585.
pub fn clustered_wilson(bursts: &[PassRate], confidence: Confidence) -> Option<Clustered> {
    let total = PassRate::sum(bursts)?;
    let (share, n, clusters) = (total.share(), f64::from(total.of()), bursts.len() as f64);
    let binomial = share * (1.0 - share) / n;
    let design_effect = if bursts.len() < 2 || binomial <= 0.0 {
        1.0
    } else {
        let spread: f64 = bursts.iter().map(|b| (f64::from(b.passed()) - f64::from(b.of()) * share).powi(2)).sum();
        (clusters / (clusters - 1.0) * spread / (n * n) / binomial).max(1.0)
    };
    let effective_n = n / design_effect;
    Some(Clustered { interval: wilson_at(share, effective_n, confidence), design_effect, effective_n })
}

/// Interval of the difference `after - before` of two independent rates, from their Wilson intervals.
///
/// Source: Newcombe 1998, "Interval estimation for the difference between independent proportions", method 10 (hybrid
/// score, no continuity correction).
pub fn newcombe(before: PassRate, after: PassRate, confidence: Confidence) -> Interval {
    let (first, second) = (wilson(before, confidence), wilson(after, confidence));
    let (p1, p2) = (before.share(), after.share());
    let difference = p2 - p1;
    Interval {
        low: difference - (p2 - second.low).hypot(first.high - p1),
        high: difference + (second.high - p2).hypot(p1 - first.low),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate(passed: u32, of: u32) -> PassRate {
        PassRate::new(passed, of).unwrap()
    }

    fn near(got: Interval, want: (f64, f64), within: f64) {
        assert!((got.low - want.0).abs() <= within && (got.high - want.1).abs() <= within, "{got:?}, not {want:?}");
    }

    #[test]
    fn intervals_agree_with_a_reference_at_other_sizes_and_confidences() {
        // scipy 1.17.1: binomtest(k, n).proportion_ci(c, "wilson"), and beta.ppf for Clopper-Pearson.
        let at = |c| Confidence::new(c).unwrap();
        near(wilson(rate(3, 10), at(0.9)), (0.1268765839031979, 0.5583002041301649), 1e-13);
        near(wilson(rate(1, 100), at(0.99)), (0.0011751454265122932, 0.07980112853499424), 1e-13);
        near(wilson(rate(5, 17), at(0.8)), (0.17580261918307233, 0.4487087309209458), 1e-13);
        near(clopper_pearson(rate(3, 10), at(0.9)), (0.0872644339141503, 0.6066242161054123), 1e-12);
        near(clopper_pearson(rate(1, 100), at(0.99)), (5.012416197765646e-05, 0.0719576824016363), 1e-12);
        near(clopper_pearson(rate(5, 17), at(0.8)), (0.15057691192474174, 0.4780714751836401), 1e-12);
        near(clopper_pearson(rate(0, 24), at(0.95)), (0.0, 0.14247359772252563), 1e-12);
        near(clopper_pearson(rate(99_995, 100_000), at(0.95)), (0.9998833205695797, 0.999983764943183), 1e-11);
    }

    #[test]
    fn newcombes_interval_gives_the_worked_example_of_his_paper() {
        // Newcombe 1998, table II, example (a): 56/70 - 48/80, method 10: 0.0524 to 0.3339.
        near(newcombe(rate(48, 80), rate(56, 70), Confidence::P95), (0.0524, 0.3339), 5e-5);
    }

    #[test]
    fn a_confidence_outside_of_zero_to_one_is_refused() {
        for bad in [0.0, 1.0, -0.1, 95.0, f64::NAN] {
            assert!(Confidence::new(bad).is_err(), "{bad}");
        }
        assert!((Confidence::P95.shared_by(4).share() - 0.9875).abs() < 1e-15);
        assert_eq!(Confidence::P95.shared_by(0), Confidence::P95);
    }

    #[test]
    fn bursts_that_agree_less_than_chance_would_widen_the_interval() {
        // 8/8, 8/8, 0/8: share 2/3, spread (8/3)^2 + (8/3)^2 + (16/3)^2 = 128/3; variance 3/2 * 128/3 / 576 = 1/9;
        // binomial (2/9)/24 = 1/108; design effect 12, so 24 attempts are worth 2.
        let got = clustered_wilson(&[rate(8, 8), rate(8, 8), rate(0, 8)], Confidence::P95).unwrap();
        assert!((got.design_effect - 12.0).abs() < 1e-12, "{got:?}");
        assert!((got.effective_n - 2.0).abs() < 1e-12, "{got:?}");
        let plain = wilson(rate(16, 24), Confidence::P95);
        assert!(got.interval.low < plain.low && got.interval.high > plain.high);
        // 4/8 three times: no spread at all between bursts, which is not taken for extra knowledge.
        let even = clustered_wilson(&[rate(4, 8); 3], Confidence::P95).unwrap();
        assert_eq!(even.interval, wilson(rate(12, 24), Confidence::P95));
        assert_eq!(clustered_wilson(&[], Confidence::P95), None);
    }

    proptest! {
        #[test]
        fn a_rate_lies_inside_its_intervals_and_the_exact_lower_end_is_not_above_wilsons_centre(
            of in 1_u32..400, part in 0_u32..400, confidence in 0.5_f64..0.999,
        ) {
            let rate = rate(part % (of + 1), of);
            let confidence = Confidence::new(confidence).unwrap();
            for interval in [wilson(rate, confidence), clopper_pearson(rate, confidence)] {
                prop_assert!(interval.holds(rate.share()), "{interval:?}");
                prop_assert!(interval.low >= 0.0 && interval.high <= 1.0);
            }
        }

        #[test]
        fn swapping_before_and_after_mirrors_the_difference(
            a in 0_u32..=20, b in 0_u32..=30,
        ) {
            let (before, after) = (rate(a, 20), rate(b, 30));
            let there = newcombe(before, after, Confidence::P95);
            let back = newcombe(after, before, Confidence::P95);
            prop_assert!((there.low + back.high).abs() < 1e-12 && (there.high + back.low).abs() < 1e-12);
        }

        #[test]
        fn an_interval_over_bursts_is_never_narrower_than_that_of_independent_attempts(
            passes in prop::collection::vec(0_u32..=8, 1..6),
        ) {
            let bursts: Vec<PassRate> = passes.iter().map(|p| rate(*p, 8)).collect();
            let clustered = clustered_wilson(&bursts, Confidence::P95).unwrap();
            let plain = wilson(rate(passes.iter().sum(), 8 * passes.len() as u32), Confidence::P95);
            prop_assert!(clustered.interval.low <= plain.low && clustered.interval.high >= plain.high);
        }
    }
}
