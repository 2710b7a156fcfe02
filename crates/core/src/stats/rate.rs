//! Rates that keep their counts: 7 of 8 is not 70 of 80. Thresholds are compared as integers.

use std::cmp::Ordering;
use std::num::NonZeroU32;

/// Compares `part / of` with `percent` %, exactly.
fn against_percent(part: u32, of: NonZeroU32, percent: u32) -> Ordering {
    (u64::from(part) * 100).cmp(&(u64::from(percent) * u64::from(of.get())))
}

/// How many attempts of a burst (or of one window) passed. Keeps both counts, so that no rate loses its sample size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PassRate {
    passed: u32,
    of: NonZeroU32,
}

impl PassRate {
    /// `None` when nothing was attempted, or when more passed than were attempted.
    pub fn new(passed: u32, of: u32) -> Option<Self> {
        let of = NonZeroU32::new(of)?;
        (passed <= of.get()).then_some(Self { passed, of })
    }

    /// All attempts of several rates together. `None` without any, or when the counts overflow.
    pub fn sum(rates: &[Self]) -> Option<Self> {
        let passed = rates.iter().try_fold(0, |sum, r| u32::checked_add(sum, r.passed()))?;
        Self::new(passed, rates.iter().try_fold(0, |sum, r| u32::checked_add(sum, r.of()))?)
    }

    /// Attempts that passed.
    pub const fn passed(self) -> u32 {
        self.passed
    }

    /// Attempts in all, at least 1.
    pub const fn of(self) -> u32 {
        self.of.get()
    }

    /// True when the rate is `percent` or more. Exact: no floats near a threshold.
    pub fn reaches(self, percent: u32) -> bool {
        against_percent(self.passed, self.of, percent).is_ge()
    }

    /// True when the rate is less than `percent`. Exact.
    pub fn below(self, percent: u32) -> bool {
        !self.reaches(percent)
    }

    /// The rate as a share of 0 to 1, for curves and output; never for a threshold.
    pub fn share(self) -> f64 {
        f64::from(self.passed) / f64::from(self.of.get())
    }

    /// Which of two rates is the lower one, by exact cross multiplication: 1 of 2 equals 4 of 8.
    pub fn compare(self, other: Self) -> Ordering {
        (u64::from(self.passed) * u64::from(other.of.get())).cmp(&(u64::from(other.passed) * u64::from(self.of.get())))
    }

    /// The rate in percent as text; see [`percent_text`].
    pub fn text(self, thresholds: &[u32]) -> String {
        percent_text(self.passed, self.of, thresholds)
    }
}

/// How many attempts needed at least one retry. The one definition of "retry rate" here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RetryRate {
    retried: u32,
    of: NonZeroU32,
}

impl RetryRate {
    /// `None` when nothing was attempted, or when more were retried than were attempted.
    pub fn new(retried: u32, of: u32) -> Option<Self> {
        let of = NonZeroU32::new(of)?;
        (retried <= of.get()).then_some(Self { retried, of })
    }

    /// Attempts with at least one retry.
    pub const fn retried(self) -> u32 {
        self.retried
    }

    /// Attempts in all, at least 1.
    pub const fn of(self) -> u32 {
        self.of.get()
    }

    /// True when the rate is less than `percent`. Exact: exactly 5 % is not below 5 %.
    pub fn below(self, percent: u32) -> bool {
        against_percent(self.retried, self.of, percent).is_lt()
    }

    /// True when the rate is more than `percent`. Exact: exactly 10 % does not exceed 10 %.
    pub fn exceeds(self, percent: u32) -> bool {
        against_percent(self.retried, self.of, percent).is_gt()
    }

    /// The rate as a share of 0 to 1, for curves and output; never for a threshold.
    pub fn share(self) -> f64 {
        f64::from(self.retried) / f64::from(self.of.get())
    }

    /// The rate in percent as text; see [`percent_text`].
    pub fn text(self, thresholds: &[u32]) -> String {
        percent_text(self.retried, self.of, thresholds)
    }
}

/// Retries counted three ways, because reports of other tools use the other two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryTally {
    /// Attempts made.
    pub attempts: u32,
    /// Attempts with at least one retry.
    pub retried: u32,
    /// All retries.
    pub retries: u64,
}

impl RetryTally {
    /// Counts the retries of each attempt.
    pub fn of(retries_per_attempt: impl IntoIterator<Item = u32>) -> Self {
        retries_per_attempt.into_iter().fold(Self::default(), |tally, retries| Self {
            attempts: tally.attempts + 1,
            retried: tally.retried + u32::from(retries > 0),
            retries: tally.retries + u64::from(retries),
        })
    }

    /// Attempts with at least one retry / attempts. `None` without attempts.
    pub fn rate(self) -> Option<RetryRate> {
        RetryRate::new(self.retried, self.attempts)
    }

    /// Mean retries of an attempt, 0 or more. `None` without attempts. Not the retry rate.
    pub fn mean_per_attempt(self) -> Option<f64> {
        (self.attempts > 0).then(|| self.retries as f64 / f64::from(self.attempts))
    }

    /// Retries as a share of all requests sent, 0 to 1. `None` without attempts. Not the retry rate.
    pub fn share_of_requests(self) -> Option<f64> {
        (self.attempts > 0).then(|| self.retries as f64 / (self.retries as f64 + f64::from(self.attempts)))
    }
}

/// `part / of` in percent with as few decimals as keep rounding from crossing one of `thresholds` (percent), 0 or 100.
///
/// 179 of 199 beside a threshold of 90 is "89.9 %", never "90 %"; 1999 of 2000 is "99.95 %", since 100.0 would be untrue.
pub fn percent_text(part: u32, of: NonZeroU32, thresholds: &[u32]) -> String {
    let (part, of) = (u128::from(part), u128::from(of.get()));
    let mut scale: u128 = 1;
    // Two different ratios of 32-bit counts and whole percents differ by more than 1e-10 percent, so this ends.
    for decimals in 0..=12_usize {
        // Rounded half up, in units of the last decimal of a percent.
        let rounded = (part * 100 * scale * 2 + of) / (of * 2);
        let same_side = |t: u32| rounded.cmp(&(u128::from(t) * scale)) == (part * 100).cmp(&(u128::from(t) * of));
        if [0, 100].iter().chain(thresholds).all(|t| same_side(*t)) {
            let (whole, rest) = (rounded / scale, rounded % scale);
            return if decimals == 0 { format!("{whole} %") } else { format!("{whole}.{rest:0decimals$} %") };
        }
        scale *= 10;
    }
    format!("{part}/{of}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(part: u32, of: u32, thresholds: &[u32]) -> String {
        percent_text(part, NonZeroU32::new(of).unwrap(), thresholds)
    }

    #[test]
    fn a_rate_at_the_threshold_reaches_it_and_one_attempt_less_does_not() {
        assert!(PassRate::new(18, 20).unwrap().reaches(90));
        assert!(!PassRate::new(17, 20).unwrap().reaches(90));
        assert!(PassRate::new(17, 20).unwrap().below(90));
        assert!(!RetryRate::new(5, 100).unwrap().below(5));
        assert!(RetryRate::new(4, 100).unwrap().below(5));
        assert!(!RetryRate::new(10, 100).unwrap().exceeds(10));
        assert!(RetryRate::new(11, 100).unwrap().exceeds(10));
    }

    #[test]
    fn nothing_attempted_has_no_rate() {
        assert_eq!(PassRate::new(0, 0), None);
        assert_eq!(PassRate::new(9, 8), None);
        assert_eq!(RetryRate::new(0, 0), None);
        assert_eq!(RetryTally::of([]).rate(), None);
        assert_eq!(RetryTally::of([]).mean_per_attempt(), None);
        assert_eq!(RetryTally::of([]).share_of_requests(), None);
    }

    #[test]
    fn rounding_never_crosses_a_threshold() {
        assert_eq!(text(179, 199, &[90]), "89.9 %"); // 89.9497...
        assert_eq!(text(8996, 10_000, &[90]), "89.96 %"); // with one decimal: 90.0
        assert_eq!(text(18, 20, &[90]), "90 %");
        assert_eq!(text(23, 24, &[90]), "96 %"); // 95.83
        assert_eq!(text(901, 1000, &[90]), "90.1 %");
        assert_eq!(text(1999, 2000, &[90]), "99.95 %");
        assert_eq!(text(1, 1000, &[5]), "0.1 %");
        assert_eq!(text(8, 8, &[90]), "100 %");
        assert_eq!(text(0, 8, &[90]), "0 %");
    }

    #[test]
    fn equal_ratios_compare_as_equal_whatever_their_sample_size() {
        let half = PassRate::new(1, 2).unwrap();
        assert_eq!(half.compare(PassRate::new(40, 80).unwrap()), Ordering::Equal);
        assert_eq!(half.compare(PassRate::new(41, 80).unwrap()), Ordering::Less);
    }

    proptest! {
        #[test]
        fn a_shown_rate_lies_on_the_same_side_of_the_threshold_as_the_exact_one(
            of in 1_u32..=u32::MAX, part in 0_u32..=u32::MAX, threshold in 0_u32..=100,
        ) {
            let part = part % of;
            let shown = text(part, of, &[threshold]);
            let digits = shown.strip_suffix(" %").expect("every rate has a text of its own");
            let (whole, rest) = digits.split_once('.').unwrap_or((digits, ""));
            let scale = 10_u128.pow(rest.len() as u32);
            let shown_units = format!("{whole}{rest}").parse::<u128>().unwrap();
            let exact = (u128::from(part) * 100).cmp(&(u128::from(threshold) * u128::from(of)));
            prop_assert_eq!(shown_units.cmp(&(u128::from(threshold) * scale)), exact);
        }
    }
}
