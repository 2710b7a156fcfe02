//! Right answers per hour: what a batch class is judged by, with an interval that knows how few answers there were.

use super::interval::{Confidence, Interval};

const HOUR_US: u64 = 3_600_000_000;

/// Right answers that came within so long. Keeps both, so that no rate loses the time that it was seen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throughput {
    right: u32,
    us: u64,
}

impl Throughput {
    /// * `us`: how long was counted, microseconds. `None` for no time at all: then there is no rate.
    pub fn new(right: u32, us: u64) -> Option<Self> {
        (us > 0).then_some(Self { right, us })
    }

    /// Right answers.
    pub const fn right(self) -> u32 {
        self.right
    }

    /// How long was counted, microseconds.
    pub const fn us(self) -> u64 {
        self.us
    }

    /// Right answers per hour.
    pub fn per_hour(self) -> f64 {
        f64::from(self.right) * HOUR_US as f64 / self.us as f64
    }

    /// True at `floor` right answers per hour or more. Exact: right x 1 h >= floor x time, no floats near a floor.
    pub fn reaches(self, floor: u32) -> bool {
        u128::from(self.right) * u128::from(HOUR_US) >= u128::from(floor) * u128::from(self.us)
    }

    /// Score interval of the rate, right answers per hour, as if answers came independently of each other (Poisson). A
    /// closed loop spaces its answers more evenly than that, so within one stretch the interval is rather too wide than
    /// too narrow.
    pub fn interval(self, confidence: Confidence) -> Interval {
        score(f64::from(self.right), 1.0, hours(self.us), confidence)
    }
}

/// The throughput of several bursts together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PooledThroughput {
    /// All right answers over all of the time.
    pub all: Throughput,
    /// Interval of the rate, right answers per hour.
    pub interval: Interval,
    /// Variance between the bursts against that of independent answers, at least 1.
    pub dispersion: f64,
}

/// Puts bursts together: their answers over their time, and the score interval with the dispersion between the bursts.
///
/// The dispersion is Pearson's chi-square over its degrees of freedom: the sum of (x - e)² / e over the m bursts, by m - 1,
/// with x right answers in a burst and e what its share of the time would give. It is never taken to be below 1; with one
/// burst, or without any right answer, nothing is known of it and it is 1. Answers and time are then divided by it, as
/// attempts are by their design effect. `None` without bursts, or when the counts overflow.
///
/// Sources: Barker 2002, "A comparison of nine confidence intervals for a Poisson parameter", The American Statistician
/// 56:85-89 (score interval); McCullagh and Nelder 1989, "Generalized linear models", 6.2.3 (dispersion).
pub fn pooled_throughput(bursts: &[Throughput], confidence: Confidence) -> Option<PooledThroughput> {
    let right = bursts.iter().try_fold(0_u32, |sum, one| sum.checked_add(one.right))?;
    let us = bursts.iter().try_fold(0_u64, |sum, one| sum.checked_add(one.us))?;
    let all = Throughput::new(right, us)?;
    let expected = |one: &Throughput| f64::from(right) * (one.us as f64 / us as f64);
    let pearson: f64 = bursts.iter().map(|one| (f64::from(one.right) - expected(one)).powi(2) / expected(one)).sum();
    let known = bursts.len() > 1 && right > 0;
    let dispersion = if known { (pearson / (bursts.len() - 1) as f64).max(1.0) } else { 1.0 };
    Some(PooledThroughput { all, interval: score(f64::from(right), dispersion, hours(us), confidence), dispersion })
}

/// Ends of the score interval of a Poisson rate: with k = events / dispersion and z the normal quantile,
/// k + z²/2 ± z √(k + z²/4), over the hours / dispersion. The lower end is exactly 0 without any event.
fn score(events: f64, dispersion: f64, hours: f64, confidence: Confidence) -> Interval {
    let z = confidence.z();
    let k = events / dispersion;
    let (centre, half) = (k + z * z / 2.0, z * (k + z * z / 4.0).sqrt());
    let per_hour = |count: f64| count * dispersion / hours;
    Interval { low: if events > 0.0 { per_hour((centre - half).max(0.0)) } else { 0.0 }, high: per_hour(centre + half) }
}

fn hours(us: u64) -> f64 {
    us as f64 / HOUR_US as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MINUTE_US: u64 = 60_000_000;

    fn seen(right: u32, minutes: u64) -> Throughput {
        Throughput::new(right, minutes * MINUTE_US).unwrap()
    }

    #[test]
    fn the_floor_itself_is_reached_and_one_microsecond_more_is_not() {
        // 10 answers in 10 minutes are 60 an hour.
        assert!(seen(10, 10).reaches(60));
        assert!(!Throughput::new(10, 10 * MINUTE_US + 1).unwrap().reaches(60));
        assert!(!seen(9, 10).reaches(60));
        assert_eq!(Throughput::new(10, 0), None);
        assert!((seen(10, 10).per_hour() - 60.0).abs() < 1e-12);
    }

    #[test]
    fn the_interval_is_that_of_paper_and_pencil() {
        // k = 10, z = 1.959964: 10 + 1.920729 ± 1.959964 x √(10 + 0.960365) = 11.920729 ± 6.488747; x 6 an hour.
        let Interval { low, high } = seen(10, 10).interval(Confidence::P95);
        assert!((low - 6.0 * 5.431_98).abs() < 1e-3 && (high - 6.0 * 18.409_48).abs() < 1e-3, "{low} {high}");
        let none = seen(0, 10).interval(Confidence::P95);
        assert_eq!(none.low, 0.0);
        assert!((none.high - 6.0 * 3.841_459).abs() < 1e-4, "z² for no answer at all: {}", none.high);
    }

    #[test]
    fn bursts_that_differ_widen_the_interval_and_bursts_that_agree_do_not() {
        let even = pooled_throughput(&[seen(100, 10), seen(100, 10)], Confidence::P95).unwrap();
        assert_eq!((even.dispersion, even.interval), (1.0, seen(200, 20).interval(Confidence::P95)));
        // e = 100 each: (50² + 50²) / 100 / 1 = 50
        let odd = pooled_throughput(&[seen(150, 10), seen(50, 10)], Confidence::P95).unwrap();
        assert!((odd.dispersion - 50.0).abs() < 1e-12);
        assert_eq!(odd.all, even.all);
        assert!(odd.interval.low < even.interval.low && odd.interval.high > even.interval.high);
        assert_eq!(pooled_throughput(&[], Confidence::P95), None);
        let none = pooled_throughput(&[seen(0, 10), seen(0, 10)], Confidence::P95).unwrap();
        assert_eq!((none.dispersion, none.interval.low), (1.0, 0.0));
    }

    proptest! {
        #[test]
        fn the_interval_holds_its_own_rate_and_the_order_of_bursts_does_not_matter(
            counts in prop::collection::vec((0_u32..500, 1_u64..60), 1..6)
        ) {
            let bursts: Vec<Throughput> = counts.iter().map(|(right, minutes)| seen(*right, *minutes)).collect();
            let pooled = pooled_throughput(&bursts, Confidence::P95).unwrap();
            prop_assert!(pooled.interval.holds(pooled.all.per_hour()), "{pooled:?}");
            let turned: Vec<Throughput> = bursts.iter().rev().copied().collect();
            let again = pooled_throughput(&turned, Confidence::P95).unwrap();
            prop_assert!((again.interval.high - pooled.interval.high).abs() <= 1e-9 * pooled.interval.high);
        }
    }
}
