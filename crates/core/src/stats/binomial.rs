//! Binomial and hypergeometric probabilities, accurate in both tails.
//!
//! Source of the point probabilities: Loader 2000, "Fast and accurate computation of binomial probabilities" (the
//! saddle-point form that R uses). Tails are summed from the largest term outwards, so that a tiny tail keeps its digits.

use std::f64::consts::TAU;

/// A term smaller than this share of the sum so far cannot change it.
const NEGLIGIBLE: f64 = 1e-18;

/// ln(n!) minus Stirling's formula.
fn stirling_error(n: f64) -> f64 {
    if n <= 15.0 {
        let factorial: f64 = (1..=n as u32).map(f64::from).product();
        return factorial.ln() - ((n + 0.5) * n.ln() - n + 0.5 * TAU.ln());
    }
    let square = n * n;
    (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / 1188.0 / square) / square) / square) / square)
        / n
}

/// x ln(x / mean) + mean - x without cancellation where x is near the mean.
fn deviance(x: f64, mean: f64) -> f64 {
    if (x - mean).abs() >= 0.1 * (x + mean) {
        return x * (x / mean).ln() + mean - x;
    }
    let v = (x - mean) / (x + mean);
    let mut sum = (x - mean) * v;
    let mut term = 2.0 * x * v;
    let mut odd = 1.0;
    loop {
        term *= v * v;
        odd += 2.0;
        let next = sum + term / odd;
        if next == sum {
            return next;
        }
        sum = next;
    }
}

/// Probability of exactly `k` successes in `n` tries of probability `p` (0 to 1). 0 when `k > n`.
pub fn pmf(k: u32, n: u32, p: f64) -> f64 {
    if k > n {
        return 0.0;
    }
    if p <= 0.0 || p >= 1.0 {
        return f64::from(u8::from(k == if p <= 0.0 { 0 } else { n }));
    }
    let (x, size, q) = (f64::from(k), f64::from(n), 1.0 - p);
    if k == 0 {
        return (size * (-p).ln_1p()).exp();
    }
    if k == n {
        return (size * p.ln()).exp();
    }
    let log = stirling_error(size)
        - stirling_error(x)
        - stirling_error(size - x)
        - deviance(x, size * p)
        - deviance(size - x, size * q);
    (log - 0.5 * (TAU.ln() + x.ln() + (-x / size).ln_1p())).exp()
}

/// Sums `first` and what follows by `ratio(step)`, as long as it matters. The terms must shrink.
fn sum_outwards(first: f64, steps: u32, mut ratio: impl FnMut(u32) -> f64) -> f64 {
    let (mut term, mut sum) = (first, first);
    for step in 0..steps {
        term *= ratio(step);
        sum += term;
        if term <= sum * NEGLIGIBLE {
            break;
        }
    }
    sum
}

/// Probability of at most `k` successes in `n` tries of probability `p` (0 to 1).
pub fn at_most(k: u32, n: u32, p: f64) -> f64 {
    if k >= n || p <= 0.0 {
        return 1.0;
    }
    if p >= 1.0 {
        return 0.0;
    }
    if f64::from(k) >= f64::from(n) * p {
        return 1.0 - at_least(k + 1, n, p);
    }
    let odds = (1.0 - p) / p;
    sum_outwards(pmf(k, n, p), k, |step| f64::from(k - step) / f64::from(n - k + step + 1) * odds).min(1.0)
}

/// Probability of at least `k` successes in `n` tries of probability `p` (0 to 1).
pub fn at_least(k: u32, n: u32, p: f64) -> f64 {
    if k == 0 || p >= 1.0 {
        return f64::from(u8::from(k <= n));
    }
    if k > n || p <= 0.0 {
        return 0.0;
    }
    if f64::from(k) <= f64::from(n) * p {
        return 1.0 - at_most(k - 1, n, p);
    }
    let odds = p / (1.0 - p);
    sum_outwards(pmf(k, n, p), n - k, |step| f64::from(n - k - step) / f64::from(k + step + 1) * odds).min(1.0)
}

/// All probabilities of 0 to `n` successes, from the most likely count outwards.
pub(crate) fn distribution(n: u32, p: f64) -> Vec<f64> {
    let mut all = vec![0.0; n as usize + 1];
    if p <= 0.0 || p >= 1.0 {
        all[if p <= 0.0 { 0 } else { n as usize }] = 1.0;
        return all;
    }
    let mode = (((f64::from(n) + 1.0) * p) as u32).min(n);
    let odds = p / (1.0 - p);
    all[mode as usize] = pmf(mode, n, p);
    for k in mode..n {
        all[k as usize + 1] = all[k as usize] * (f64::from(n - k) / f64::from(k + 1) * odds);
    }
    for k in (1..=mode).rev() {
        all[k as usize - 1] = all[k as usize] * (f64::from(k) / f64::from(n - k + 1) / odds);
    }
    all
}

/// Drawing `drawn` of `first + second` without putting back: how many of `first` are among them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hypergeometric {
    pub(crate) first: u32,
    pub(crate) second: u32,
    pub(crate) drawn: u32,
}

impl Hypergeometric {
    /// Smallest possible count.
    pub(crate) fn low(self) -> u32 {
        self.drawn.saturating_sub(self.second)
    }

    /// Largest possible count.
    pub(crate) fn high(self) -> u32 {
        self.drawn.min(self.first)
    }

    /// Probability of exactly `k`.
    pub(crate) fn pmf(self, k: u32) -> f64 {
        if k < self.low() || k > self.high() {
            return 0.0;
        }
        let all = self.first + self.second;
        if self.drawn == 0 || self.drawn == all {
            return 1.0;
        }
        // Any p gives the same quotient; this one keeps all three terms large.
        let p = f64::from(self.drawn) / f64::from(all);
        pmf(k, self.first, p) * pmf(self.drawn - k, self.second, p) / pmf(self.drawn, all, p)
    }

    /// pmf(k + 1) / pmf(k).
    fn step_up(self, k: u32) -> f64 {
        let left = f64::from(self.first - k) * f64::from(self.drawn - k);
        left / (f64::from(k + 1) * f64::from(self.second + k + 1 - self.drawn))
    }

    /// Probability of `k` or more.
    pub(crate) fn at_least(self, k: u32) -> f64 {
        let (low, high) = (self.low(), self.high());
        if k <= low {
            return 1.0;
        }
        if k > high {
            return 0.0;
        }
        let mean = f64::from(self.first) * f64::from(self.drawn) / f64::from(self.first + self.second);
        if f64::from(k) > mean {
            sum_outwards(self.pmf(k), high - k, |step| self.step_up(k + step)).min(1.0)
        } else {
            let below = k - 1;
            1.0 - sum_outwards(self.pmf(below), below - low, |step| 1.0 / self.step_up(below - step - 1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, want: f64, relative: f64) {
        assert!((got - want).abs() <= relative * want.abs(), "{got} instead of {want}");
    }

    #[test]
    fn binomial_probabilities_agree_with_fractions_worked_by_hand() {
        near(pmf(2, 4, 0.5), 6.0 / 16.0, 1e-14);
        near(pmf(0, 3, 0.25), 27.0 / 64.0, 1e-14);
        near(pmf(3, 3, 0.25), 1.0 / 64.0, 1e-14);
        near(at_most(1, 4, 0.5), 5.0 / 16.0, 1e-14);
        near(at_least(3, 4, 0.5), 5.0 / 16.0, 1e-14);
        near(at_least(60, 60, 0.1), 1e-60, 1e-12);
        near(at_most(2, 4, 0.5), 11.0 / 16.0, 1e-14);
        assert_eq!(pmf(5, 4, 0.5), 0.0);
        assert_eq!((pmf(0, 4, 0.0), pmf(4, 4, 1.0), pmf(1, 4, 0.0)), (1.0, 1.0, 0.0));
        assert_eq!(
            (at_most(0, 4, 1.0), at_least(4, 4, 1.0), at_least(1, 4, 0.0), at_most(4, 4, 1.0)),
            (0.0, 1.0, 0.0, 1.0)
        );
    }

    #[test]
    fn a_whole_distribution_sums_to_one_and_equals_its_single_probabilities() {
        for (n, p) in [(8_u32, 0.9), (24, 0.03), (1000, 0.5), (5, 1.0), (5, 0.0)] {
            let all = distribution(n, p);
            near(all.iter().sum(), 1.0, 1e-12);
            for k in [0, n / 2, n] {
                let single = pmf(k, n, p);
                assert!((all[k as usize] - single).abs() <= 1e-12 * single + f64::MIN_POSITIVE, "{n} {p} {k}");
            }
        }
    }

    #[test]
    fn hypergeometric_tails_agree_with_fractions_worked_by_hand() {
        // 2 of 4 drawn, 2 marked: 1/6, 4/6, 1/6.
        let cards = Hypergeometric { first: 2, second: 2, drawn: 2 };
        near(cards.pmf(0), 1.0 / 6.0, 1e-14);
        near(cards.at_least(1), 5.0 / 6.0, 1e-14);
        near(cards.at_least(2), 1.0 / 6.0, 1e-14);
        assert_eq!((cards.at_least(0), cards.at_least(3)), (1.0, 0.0));
        // 3 marked, 1 not, 2 drawn: at least one marked; both with 3/6.
        let forced = Hypergeometric { first: 3, second: 1, drawn: 2 };
        assert_eq!(forced.low(), 1);
        near(forced.at_least(2), 0.5, 1e-14);
    }
}
