//! Quantiles by exact integer rank. A failed attempt ranks behind every finished one.

use std::str::FromStr;

use super::StatsError;
use super::binomial::{at_least, at_most};
use super::interval::Confidence;

/// A share in (0, 1] as an exact fraction, so that 0.9 of 10 is 9 and not a hair more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portion {
    numerator: u64,
    denominator: u64,
}

impl Portion {
    /// The median.
    pub const P50: Self = Self { numerator: 1, denominator: 2 };
    /// p90.
    pub const P90: Self = Self { numerator: 9, denominator: 10 };
    /// p95.
    pub const P95: Self = Self { numerator: 19, denominator: 20 };
    /// p99.
    pub const P99: Self = Self { numerator: 99, denominator: 100 };

    /// A whole percent.
    ///
    /// # Errors
    /// [`StatsError::BadQuantile`] outside 1 to 100.
    pub fn percent(percent: u32) -> Result<Self, StatsError> {
        if (1..=100).contains(&percent) {
            Ok(Self { numerator: u64::from(percent), denominator: 100 })
        } else {
            Err(StatsError::BadQuantile { given: format!("{percent} %") })
        }
    }

    /// As a float, for curves.
    pub fn share(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// The 1-based rank ceil(share x n), at least 1. 0 only for `n` = 0.
    pub fn rank(self, n: u64) -> u64 {
        let product = u128::from(self.numerator) * u128::from(n);
        // The share is at most 1, so the rank fits where n does.
        u64::try_from(product.div_ceil(u128::from(self.denominator))).unwrap_or(n)
    }
}

/// Reads a decimal such as `0.9` or `0.999` exactly; up to 18 decimals.
impl FromStr for Portion {
    type Err = StatsError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || StatsError::BadQuantile { given: text.to_owned() };
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        if decimals.len() > 18 || whole.is_empty() || !whole.chars().chain(decimals.chars()).all(|c| c.is_ascii_digit())
        {
            return Err(bad());
        }
        let denominator = 10_u64.pow(decimals.len() as u32);
        let numerator = format!("{whole}{decimals}").parse::<u64>().map_err(|_| bad())?;
        if numerator == 0 || numerator > denominator { Err(bad()) } else { Ok(Self { numerator, denominator }) }
    }
}

/// Smallest sample with at least `percent` % of all samples at or below it (nearest rank).
///
/// * `sorted_us`: microseconds, ascending, one per attempt.
/// * `percent`: 1 to 100; 90 is p90, as an exact integer rank. With 8 samples p90 is the largest one.
///
/// # Errors
/// [`StatsError::NoSamples`] for an empty slice, [`StatsError::BadQuantile`] for a `percent` outside 1 to 100.
///
/// Source: Hyndman and Fan 1996, "Sample quantiles in statistical packages", definition 1.
pub fn nearest_rank(sorted_us: &[u64], percent: u32) -> Result<u64, StatsError> {
    nearest_rank_with_unfinished(sorted_us, 0, Portion::percent(percent)?)?.ok_or(StatsError::NoSamples)
}

/// The same where some attempts never finished: they rank behind all others, as if infinite.
///
/// * `sorted_us`: microseconds of the finished attempts, ascending.
/// * `unfinished`: how many never finished (failed, or with a wrong answer).
///
/// `Ok(None)` when the rank falls on an unfinished attempt.
///
/// # Errors
/// [`StatsError::NoSamples`] when there is no attempt at all.
pub fn nearest_rank_with_unfinished(
    sorted_us: &[u64],
    unfinished: u64,
    portion: Portion,
) -> Result<Option<u64>, StatsError> {
    let all = sorted_us.len() as u64 + unfinished;
    if all == 0 {
        return Err(StatsError::NoSamples);
    }
    let index = usize::try_from(portion.rank(all) - 1).unwrap_or(usize::MAX);
    Ok(sorted_us.get(index).copied())
}

/// Linear interpolation at position share x (n - 1), the default of numpy: only to cross-check other tools' results.
///
/// Arguments and errors as in [`nearest_rank_with_unfinished`]; microseconds come back, or `Ok(None)` when the
/// interpolation touches an unfinished attempt.
///
/// Source: Hyndman and Fan 1996, definition 7.
pub fn linear(sorted_us: &[u64], unfinished: u64, portion: Portion) -> Result<Option<f64>, StatsError> {
    let all = sorted_us.len() as u64 + unfinished;
    if all == 0 {
        return Err(StatsError::NoSamples);
    }
    let position = u128::from(portion.numerator) * u128::from(all - 1);
    let (whole, rest) = (position / u128::from(portion.denominator), position % u128::from(portion.denominator));
    let at = |index: u128| usize::try_from(index).ok().and_then(|i| sorted_us.get(i)).map(|us| *us as f64);
    let Some(below) = at(whole) else { return Ok(None) };
    if rest == 0 {
        return Ok(Some(below));
    }
    Ok(at(whole + 1).map(|above| below + (above - below) * (rest as f64 / portion.denominator as f64)))
}

/// Which sorted samples bound a quantile of the population.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankInterval {
    /// 1-based rank of the lower bound; `None`: the sample is too small for a bound on this side.
    pub lower_rank: Option<u32>,
    /// 1-based rank of the upper bound; `None`: no finite bound. p90 of 8 has none.
    pub upper_rank: Option<u32>,
    /// Probability that the interval holds the quantile; a missing side counts as open.
    pub coverage: f64,
}

/// Interval for the `portion` quantile of what `n` samples were drawn from, by binomial order statistics with
/// (1 - confidence) / 2 on each side (2.5 % at 95 %). Failures sort last.
///
/// The number of samples below the quantile is binomial(n, portion): the lower rank is the largest l with
/// P(B < l) <= 2.5 %, the upper one the smallest u with P(B >= u) <= 2.5 %.
///
/// Source: Hahn and Meeker 1991, "Statistical intervals", section 5.2 (distribution-free intervals).
pub fn quantile_interval(n: u32, portion: Portion, confidence: Confidence) -> RankInterval {
    let (side, p) = (confidence.side(), portion.share());
    let lower_rank = last_true(1, n, |l| at_most(l - 1, n, p) <= side);
    let upper_rank = first_true(1, n, |u| at_least(u, n, p) <= side);
    let miss_below = lower_rank.map_or(0.0, |l| at_most(l - 1, n, p));
    let miss_above = upper_rank.map_or(0.0, |u| at_least(u, n, p));
    RankInterval { lower_rank, upper_rank, coverage: 1.0 - miss_below - miss_above }
}

/// First value of `low..=high` for which a predicate that never turns back to false holds.
pub(crate) fn first_true(low: u32, high: u32, holds: impl Fn(u32) -> bool) -> Option<u32> {
    if low > high || !holds(high) {
        return None;
    }
    let (mut low, mut high) = (low, high);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    Some(low)
}

/// Last value of `low..=high` for which a predicate that never turns back to true holds.
pub(crate) fn last_true(low: u32, high: u32, holds: impl Fn(u32) -> bool) -> Option<u32> {
    if low > high || !holds(low) {
        return None;
    }
    first_true(low, high, |value| !holds(value)).map_or(Some(high), |first_false| Some(first_false - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn p90_of_ten_is_the_ninth_and_p90_of_eight_is_the_largest() {
        let ten: Vec<u64> = (1..=10).collect();
        assert_eq!(nearest_rank(&ten, 90), Ok(9));
        assert_eq!(nearest_rank(&ten[..8], 90), Ok(8));
        assert_eq!(nearest_rank(&ten, 100), Ok(10));
        assert_eq!(nearest_rank(&ten, 1), Ok(1));
        assert_eq!(nearest_rank(&[], 90), Err(StatsError::NoSamples));
        assert!(matches!(nearest_rank(&ten, 0), Err(StatsError::BadQuantile { .. })));
        assert!(matches!(nearest_rank(&ten, 101), Err(StatsError::BadQuantile { .. })));
    }

    #[test]
    fn a_rank_that_falls_on_an_unfinished_attempt_has_no_value() {
        assert_eq!(nearest_rank_with_unfinished(&[1, 2, 3], 1, Portion::P50), Ok(Some(2)));
        assert_eq!(nearest_rank_with_unfinished(&[1, 2, 3], 1, Portion::P90), Ok(None));
        assert_eq!(nearest_rank_with_unfinished(&[], 4, Portion::P50), Ok(None));
        assert_eq!(linear(&[1, 2, 3], 1, Portion::P90), Ok(None));
        // Position 1 exactly: the unfinished third is not touched.
        assert_eq!(linear(&[1, 2], 1, Portion::P50), Ok(Some(2.0)));
    }

    #[test]
    fn a_decimal_share_is_read_exactly_or_refused() {
        assert_eq!("0.999".parse::<Portion>().unwrap().rank(1000), 999);
        assert_eq!("1".parse::<Portion>().unwrap().rank(7), 7);
        for bad in ["0", "0.0", "1.1", "-0.5", "", ".5", "0.9x", "p90", "0.1234567890123456789"] {
            assert!(bad.parse::<Portion>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_large_sample_bounds_its_median_on_both_sides() {
        // Binomial(100, 1/2): P(B <= 39) = 0.0176, P(B <= 40) = 0.0284; so ranks 40 and 61 (Hahn and Meeker, table A.15a).
        let got = quantile_interval(100, Portion::P50, Confidence::P95);
        assert_eq!((got.lower_rank, got.upper_rank), (Some(40), Some(61)));
        assert!((got.coverage - (1.0 - 2.0 * 0.017_600_100_108_852_4)).abs() < 1e-12, "{}", got.coverage);
        let one = quantile_interval(1, Portion::P50, Confidence::P95);
        assert_eq!(one, RankInterval { lower_rank: None, upper_rank: None, coverage: 1.0 });
    }

    proptest! {
        #[test]
        fn at_least_the_share_of_all_samples_lies_at_or_below_its_nearest_rank(
            mut samples in prop::collection::vec(0_u64..1000, 1..60), percent in 1_u32..=100,
        ) {
            samples.sort_unstable();
            let value = nearest_rank(&samples, percent).unwrap();
            let below_or_at = samples.iter().filter(|s| **s <= value).count() as u64;
            let below = samples.iter().filter(|s| **s < value).count() as u64;
            let n = samples.len() as u64;
            prop_assert!(below_or_at * 100 >= u64::from(percent) * n);
            prop_assert!(below * 100 < u64::from(percent) * n);
        }
    }
}
