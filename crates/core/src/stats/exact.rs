//! Exact tests of two pass rates: Fisher's (conditional), and Boschloo's and Barnard's (unconditional).
//!
//! The unconditional tests ask for the largest probability, over every common pass rate, of a table at least as
//! extreme as the one seen. For each count before, the extreme counts after are those below one bound or from another on
//! (both statistics grow with the difference; Barnard's convexity, Röhmel and Mansmann 1999), so one evaluation costs
//! only as many steps as there are attempts.

pub(crate) mod critical;

use std::cmp::Ordering;
use std::f64::consts::FRAC_PI_2;

use super::StatsError;
use super::binomial::{Hypergeometric, distribution};
use super::quantile::{first_true, last_true};
use super::rate::PassRate;

/// Largest number of attempts a side: beyond it an exact test takes seconds and says what the intervals say.
pub const MAX_EXACT: u32 = 10_000;

/// Two probabilities nearer than this (relative) are one and the same, computed in two ways (R uses the same).
const SAME: f64 = 1.0 + 1e-7;

fn within_limit(before: PassRate, after: PassRate) -> Result<(), StatsError> {
    let given = before.of().max(after.of());
    if given > MAX_EXACT { Err(StatsError::TooMany { given, limit: MAX_EXACT }) } else { Ok(()) }
}

/// Passes after, given all passes: hypergeometric when both rates are the same.
fn margins(before: u32, after: u32, n_before: u32, n_after: u32) -> Hypergeometric {
    Hypergeometric { first: n_after, second: n_before, drawn: before + after }
}

/// Fisher's exact test, one-sided: how likely are at least as many passes after, if nothing changed?
///
/// # Errors
/// [`StatsError::TooMany`] above [`MAX_EXACT`] attempts a side.
///
/// Source: Fisher 1935, "The logic of inductive inference".
pub fn fisher_improved(before: PassRate, after: PassRate) -> Result<f64, StatsError> {
    within_limit(before, after)?;
    Ok(margins(before.passed(), after.passed(), before.of(), after.of()).at_least(after.passed()))
}

/// Fisher's exact test, two-sided: the probability of all tables that are no more likely than the one seen.
///
/// # Errors
/// [`StatsError::TooMany`] above [`MAX_EXACT`] attempts a side.
///
/// Source: Fisher 1935; the sum over less likely tables is the definition of R and scipy.
pub fn fisher_two_sided(before: PassRate, after: PassRate) -> Result<f64, StatsError> {
    within_limit(before, after)?;
    let tables = margins(before.passed(), after.passed(), before.of(), after.of());
    let seen = tables.pmf(after.passed()) * SAME;
    let sum: f64 = (tables.low()..=tables.high()).map(|k| tables.pmf(k)).filter(|p| *p <= seen).sum();
    Ok(sum.min(1.0))
}

/// Boschloo's exact test, one-sided for more passes after: like Barnard's, with Fisher's one-sided p as the statistic.
/// Never larger than Fisher's p.
///
/// # Errors
/// [`StatsError::TooMany`] above [`MAX_EXACT`] attempts a side.
///
/// Source: Boschloo 1970, "Raised conditional level of significance for the 2x2-table when testing the equality of two
/// probabilities".
pub fn boschloo_improved(before: PassRate, after: PassRate) -> Result<f64, StatsError> {
    let seen = fisher_improved(before, after)? * SAME;
    let (n1, n2) = (before.of(), after.of());
    let extreme = (0..=n1)
        .map(|x1| {
            let from = first_true(0, n2, |x2| margins(x1, x2, n1, n2).at_least(x2) <= seen);
            Extreme { below: 0, from: from.unwrap_or(n2 + 1) }
        })
        .collect();
    Ok(Region { n1, n2, extreme }.largest_probability())
}

/// Barnard's exact test, two-sided, with the pooled Wald statistic: the test that decides a counter-test.
///
/// # Errors
/// [`StatsError::TooMany`] above [`MAX_EXACT`] attempts a side.
///
/// Source: Barnard 1945, "A new test for 2x2 tables"; the statistic as in Suissa and Shuster 1985.
pub fn barnard_two_sided(before: PassRate, after: PassRate) -> Result<f64, StatsError> {
    within_limit(before, after)?;
    let (n1, n2) = (before.of(), after.of());
    let seen = Wald::of(before.passed(), after.passed(), n1, n2);
    if seen.difference == 0 {
        return Ok(1.0); // every table is at least as extreme
    }
    Ok(Region { n1, n2, extreme: extreme_from(seen, n1, n2) }.largest_probability())
}

/// All tables that are at least as extreme as `seen`, whose difference is not 0.
fn extreme_from(seen: Wald, n1: u32, n2: u32) -> Vec<Extreme> {
    (0..=n1)
        .map(|x1| {
            let reached = |x2| Wald::of(x1, x2, n1, n2).at_least_as_extreme_as(seen);
            // The difference is 0 where x2 = x1 n2 / n1: worse lies below, improved above.
            let product = u64::from(x1) * u64::from(n2);
            let (last_worse, first_better) = (product.div_ceil(u64::from(n1)), product / u64::from(n1) + 1);
            let below = (last_worse > 0)
                .then(|| last_true(0, (last_worse - 1) as u32, reached))
                .flatten()
                .map_or(0, |last| last + 1);
            Extreme { below, from: first_true(first_better as u32, n2, reached).unwrap_or(n2 + 1) }
        })
        .collect()
}

/// The squared pooled Wald statistic as a fraction of integers, without the factor that all tables share.
#[derive(Clone, Copy)]
struct Wald {
    /// |x2 n1 - x1 n2|, at most [`MAX_EXACT`] squared.
    difference: u128,
    /// Passes x misses of both together; 0 when all went the same way, and then the difference is 0 too.
    variance: u128,
}

impl Wald {
    fn of(x1: u32, x2: u32, n1: u32, n2: u32) -> Self {
        let (x1, x2, n1, n2) = (u128::from(x1), u128::from(x2), u128::from(n1), u128::from(n2));
        let passes = x1 + x2;
        Self { difference: (x2 * n1).abs_diff(x1 * n2), variance: passes * (n1 + n2 - passes) }
    }

    /// Exact, so that ties are ties: at most 1e16 squared... times 4e8, which 128 bits hold.
    fn at_least_as_extreme_as(self, seen: Self) -> bool {
        self.difference > 0
            && self.difference * self.difference * seen.variance >= seen.difference * seen.difference * self.variance
    }

    /// By the statistic; meant for differences other than 0.
    fn compare(&self, other: &Self) -> Ordering {
        let (mine, theirs) = (self.difference * self.difference, other.difference * other.difference);
        (mine * other.variance).cmp(&(theirs * self.variance))
    }
}

/// The extreme counts after, for one count before: all below `below` and all from `from` on.
struct Extreme {
    below: u32,
    from: u32,
}

/// All extreme tables.
struct Region {
    n1: u32,
    n2: u32,
    extreme: Vec<Extreme>,
}

impl Region {
    /// Probability of the region when both sides pass with probability sin²(angle).
    fn probability(&self, angle: f64) -> f64 {
        let p = angle.sin().powi(2);
        let (first, second) = (distribution(self.n1, p), distribution(self.n2, p));
        let mut up_to = Vec::with_capacity(second.len() + 1); // up_to[k] = P(X2 < k)
        let mut sum = 0.0;
        up_to.push(0.0);
        for term in &second {
            sum += term;
            up_to.push(sum);
        }
        let mut from = vec![0.0; second.len() + 1]; // from[k] = P(X2 >= k), summed on its own to keep small tails
        for k in (0..second.len()).rev() {
            from[k] = from[k + 1] + second[k];
        }
        let side = |e: &Extreme| up_to[e.below as usize] + from[e.from as usize];
        first.iter().zip(&self.extreme).map(|(b, e)| b * side(e)).sum()
    }

    /// True when the largest probability is above `level`; most often known from the grid alone.
    fn exceeds(&self, level: f64) -> bool {
        let best = self.grid().fold(0.0, f64::max);
        // Between grid points a peak rises by far less than a tenth.
        best > level || (best >= 0.9 * level && self.largest_probability() > level)
    }

    /// Number of steps of the grid.
    fn points(&self) -> u32 {
        (6 * (self.n1 + self.n2) + 64).min(2048)
    }

    /// Probabilities on the grid.
    fn grid(&self) -> impl Iterator<Item = f64> {
        let points = self.points();
        (0..=points).map(move |i| self.probability(FRAC_PI_2 * f64::from(i) / f64::from(points)))
    }

    /// Largest probability over all common pass rates.
    ///
    /// In the angle the function is a trigonometric polynomial of degree n1 + n2 at most, so a grid of several points per
    /// attempt shows every peak; the grid is bounded, as peaks of large samples are wide (about 1/sqrt(n)). The best
    /// peaks are then closed in on by golden section.
    fn largest_probability(&self) -> f64 {
        let points = self.points();
        let angle = |i: u32| FRAC_PI_2 * f64::from(i) / f64::from(points);
        let grid: Vec<f64> = self.grid().collect();
        let best = grid.iter().copied().fold(0.0, f64::max);
        let mut largest = best;
        for i in 0..=points {
            let here = grid[i as usize];
            let left = i.checked_sub(1).map_or(0.0, |l| grid[l as usize]);
            let right = grid.get(i as usize + 1).copied().unwrap_or(0.0);
            // Between grid points a peak rises by far less than a tenth.
            if here >= left && here >= right && here >= 0.9 * best {
                largest = largest.max(self.peak(angle(i.saturating_sub(1)), angle((i + 1).min(points))));
            }
        }
        largest.min(1.0)
    }

    /// Golden section between two angles that hold one peak.
    fn peak(&self, mut low: f64, mut high: f64) -> f64 {
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        let (mut a, mut b) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
        let (mut at_a, mut at_b) = (self.probability(a), self.probability(b));
        // 40 steps narrow the bracket by 4e-9; near a peak the value is then exact to rounding.
        for _ in 0..40 {
            if at_a < at_b {
                (low, a, at_a) = (a, b, at_b);
                b = low + GOLDEN * (high - low);
                at_b = self.probability(b);
            } else {
                (high, b, at_b) = (b, a, at_a);
                a = high - GOLDEN * (high - low);
                at_a = self.probability(a);
            }
        }
        at_a.max(at_b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate(passed: u32, of: u32) -> PassRate {
        PassRate::new(passed, of).unwrap()
    }

    #[test]
    fn the_exact_tests_agree_with_a_reference_on_uneven_samples() {
        // Fisher: scipy 1.17.1, fisher_exact (two-sided, "less"). Barnard and Boschloo: the region over exact fractions and
        // scipy's binom.pmf on a grid of 10,000 rates, closed in with minimize_scalar; scipy's own barnard_exact says the
        // same but for 3/10 to 9/15, where its search stops at 0.185623.
        let table = [
            ((3, 10), (9, 15), 0.18563415125186472, 0.08338620485278204, 0.22619464261677216, 0.14419168124915874),
            ((7, 24), (10, 16), 0.03828226975565493, 0.022464063930334358, 0.053085343407924056, 0.03880287406427563),
            (
                (20, 40),
                (33, 40),
                0.0023350080981778443,
                0.0011675040490889221,
                0.004106912722051841,
                0.0020534563610259205,
            ),
            ((1, 5), (30, 50), 0.1006168339579317, 0.05462404070327282, 0.15575114243260743, 0.10690875285769845),
            ((10, 10), (3, 7), 0.005054020183901507, 1.0, 0.014705882352941173, 1.0),
        ];
        for (before, after, barnard, boschloo, two_sided, one_sided) in table {
            let (b, a) = (rate(before.0, before.1), rate(after.0, after.1));
            for (what, got, want, relative) in [
                ("barnard", barnard_two_sided(b, a).unwrap(), barnard, 1e-9),
                ("boschloo", boschloo_improved(b, a).unwrap(), boschloo, 1e-9),
                ("fisher two-sided", fisher_two_sided(b, a).unwrap(), two_sided, 1e-12),
                ("fisher one-sided", fisher_improved(b, a).unwrap(), one_sided, 1e-12),
            ] {
                assert!((got - want).abs() <= relative * want, "{what} of {before:?} {after:?}: {got}, not {want}");
            }
        }
    }

    #[test]
    fn two_equal_rates_show_no_difference_at_all() {
        for (before, after) in [(rate(8, 8), rate(8, 8)), (rate(0, 8), rate(0, 24)), (rate(1, 2), rate(12, 24))] {
            assert_eq!(barnard_two_sided(before, after), Ok(1.0));
        }
        assert_eq!(fisher_two_sided(rate(8, 8), rate(24, 24)), Ok(1.0));
        assert_eq!(boschloo_improved(rate(8, 8), rate(8, 8)), Ok(1.0));
    }

    #[test]
    fn a_test_beyond_its_size_is_refused_with_a_way_on() {
        let refused = barnard_two_sided(rate(1, 8), rate(1, MAX_EXACT + 1)).unwrap_err();
        assert_eq!(refused, StatsError::TooMany { given: MAX_EXACT + 1, limit: MAX_EXACT });
        assert!(refused.hint().is_some());
    }

    /// The region by brute force, in floats as a textbook would, and the plain grid maximum.
    fn barnard_by_hand(before: PassRate, after: PassRate) -> f64 {
        let (n1, n2) = (before.of(), after.of());
        let wald = |x1: u32, x2: u32| {
            let (a, b) = (f64::from(x1) / f64::from(n1), f64::from(x2) / f64::from(n2));
            let pooled = f64::from(x1 + x2) / f64::from(n1 + n2);
            let variance = pooled * (1.0 - pooled) * (1.0 / f64::from(n1) + 1.0 / f64::from(n2));
            if variance <= 0.0 { 0.0 } else { (b - a).abs() / variance.sqrt() }
        };
        let seen = wald(before.passed(), after.passed()) - 1e-9;
        (1..2000)
            .map(|i| {
                let p = f64::from(i) / 2000.0;
                let (d1, d2) = (distribution(n1, p), distribution(n2, p));
                let mut sum = 0.0;
                for x1 in 0..=n1 {
                    for x2 in 0..=n2 {
                        if wald(x1, x2) >= seen {
                            sum += d1[x1 as usize] * d2[x2 as usize];
                        }
                    }
                }
                sum
            })
            .fold(0.0, f64::max)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn barnards_test_equals_the_sum_over_all_tables(n1 in 1_u32..9, n2 in 1_u32..9, x1 in 0_u32..9, x2 in 0_u32..9) {
            let (before, after) = (rate(x1 % (n1 + 1), n1), rate(x2 % (n2 + 1), n2));
            let (got, want) = (barnard_two_sided(before, after).unwrap(), barnard_by_hand(before, after));
            // The plain grid may miss a little of the peak, never the other way round.
            prop_assert!(got >= want - 1e-12 && got <= want * 1.001 + 1e-12, "{got} {want}");
        }

        #[test]
        fn boschloos_p_is_never_above_fishers_and_grows_with_passes_before(
            n in 1_u32..20, x1 in 0_u32..20, x2 in 0_u32..20,
        ) {
            let (before, after) = (rate(x1 % (n + 1), n), rate(x2 % (n + 1), n));
            let p = boschloo_improved(before, after).unwrap();
            prop_assert!(p <= fisher_improved(before, after).unwrap() * (1.0 + 1e-6));
            if before.passed() < n {
                let more = rate(before.passed() + 1, n);
                prop_assert!(boschloo_improved(more, after).unwrap() >= p * (1.0 - 1e-6));
            }
        }
    }
}
