//! The same probabilities without dice and without the rules: sums over everything that can be seen, with the thresholds
//! and the interval written out once more.

use crate::campaigns::{ATTEMPTS, BUSY, CORRELATION, DAYS, OTHERS, WINDOWS, change};

/// Probabilities of 0 to `n` passes of one burst. Correlated: beta-binomial, by rising factorials.
pub(crate) fn passes(n: u32, rate: f64, correlated: bool) -> Vec<f64> {
    let rising = |from: f64, steps: u32, by: f64| (0..steps).map(|i| from + by * f64::from(i)).product::<f64>();
    // with correlation c, a = rate (1 - c) / c; multiplied by c / (1 - c) the steps are c / (1 - c), and 0 without it
    let by = if correlated { CORRELATION / (1.0 - CORRELATION) } else { 0.0 };
    let choose = |k: u32| (0..k).fold(1.0, |c, i| c * f64::from(n - i) / f64::from(i + 1));
    (0..=n).map(|k| choose(k) * rising(rate, k, by) * rising(1.0 - rate, n - k, by) / rising(1.0, n, by)).collect()
}

/// Probabilities of the sum of two counts.
fn added(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; a.len() + b.len() - 1];
    for (i, p) in a.iter().enumerate() {
        for (j, q) in b.iter().enumerate() {
            sum[i + j] += p * q;
        }
    }
    sum
}

/// Probabilities of the passes of one window over all days.
fn window(rate: f64, correlated: bool) -> Vec<f64> {
    let burst = passes(ATTEMPTS, rate, correlated);
    (1..DAYS).fold(burst.clone(), |sum, _| added(&sum, &burst))
}

/// True when the burst-aware interval of three bursts ends below 90 %.
fn sure(bursts: [usize; DAYS as usize], z: f64) -> bool {
    let (m, k) = (f64::from(ATTEMPTS), f64::from(DAYS));
    let n = m * k;
    let p = bursts.iter().sum::<usize>() as f64 / n;
    let between = k / (k - 1.0) * bursts.iter().map(|x| (*x as f64 - m * p).powi(2)).sum::<f64>() / (n * n);
    let within = p * (1.0 - p) / n;
    let n = if within > 0.0 { n / (between / within).max(1.0) } else { n };
    (p + z * z / (2.0 * n) + z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt()) / (1.0 + z * z / n) < 0.9
}

/// What is true of a lane.
pub(crate) struct Truth {
    burst: Vec<f64>,
    busy: Vec<f64>,
    other_burst: Vec<f64>,
    other: Vec<f64>,
}

impl Truth {
    pub(crate) fn of(rate: f64, correlated: bool) -> Self {
        Self {
            burst: passes(ATTEMPTS, rate, correlated),
            busy: window(rate, correlated),
            other_burst: passes(ATTEMPTS, OTHERS, correlated),
            other: window(OTHERS, correlated),
        }
    }

    /// Fewer than so many of 24 pass in the busy window.
    pub(crate) fn out_below(&self, bar: usize) -> f64 {
        self.busy[..bar].iter().sum()
    }

    /// 21.6 of 24 are 90 %.
    pub(crate) fn declared_out(&self) -> f64 {
        self.out_below(22)
    }

    /// The worst of all reaches the bar where every window does.
    pub(crate) fn worst_out(&self) -> f64 {
        let all_hold = |other: &[f64]| other[22..].iter().sum::<f64>();
        1.0 - all_hold(&self.busy) * all_hold(&self.other).powi(WINDOWS.len() as i32 - 1)
    }

    /// Sum over every three bursts of a window that show it below the bar, each with a weight by its passes.
    fn shown_below(burst: &[f64], z: f64, weight: impl Fn(usize) -> f64) -> f64 {
        let mut sum = 0.0;
        for (i, p) in burst.iter().enumerate() {
            for (j, q) in burst.iter().enumerate() {
                for (k, r) in burst.iter().enumerate() {
                    let total = i + j + k;
                    if total < 22 && sure([i, j, k], z) {
                        sum += p * q * r * weight(total);
                    }
                }
            }
        }
        sum
    }

    pub(crate) fn declared_out_sure(&self) -> f64 {
        Self::shown_below(&self.burst, 1.959_963_984_540_054, |_| 1.0) // 97.5 % of the normal distribution
    }

    /// A window is the worst when those before it pass more often, and those after it at least as often.
    pub(crate) fn worst_out_sure(&self) -> f64 {
        const Z: f64 = 2.497_705_474_412_374; // 99.375 %: a side of 98.75 %
        let at_least = |w: usize, total: usize| {
            let passes = if w == BUSY { &self.busy } else { &self.other };
            passes.iter().skip(total).sum::<f64>()
        };
        let worst = |w: usize| {
            let burst = if w == BUSY { &self.burst } else { &self.other_burst };
            Self::shown_below(burst, Z, |total| {
                let before: f64 = (0..w).map(|v| at_least(v, total + 1)).product();
                before * (w + 1..WINDOWS.len()).map(|v| at_least(v, total)).product::<f64>()
            })
        };
        (0..WINDOWS.len()).map(worst).sum()
    }

    /// The trigger fires within so many days. Two bad days of three are two with at most one good day between, so all
    /// that has to be kept is how long ago the last bad day was.
    pub(crate) fn trigger_fires(&self, days: u32) -> f64 {
        let bad: f64 = self.burst[..7].iter().sum(); // 6.4 of 8 are 80 %
        let good = 1.0 - bad;
        // the last bad day: yesterday, the day before, longer ago or never
        let (mut one, mut two, mut long, mut fired) = (0.0, 0.0, 1.0, 0.0);
        for _ in 0..days {
            fired += (one + two) * bad;
            (one, two, long) = (long * bad, one * good, (two + long) * good);
        }
        fired
    }
}

/// Probabilities of improved, worse, no change, undecided.
pub(crate) fn counter_test(before: f64, after: f64, correlated: bool) -> [f64; 4] {
    let mut verdicts = [0.0; 4];
    let second = window(after, correlated);
    for (x1, p) in window(before, correlated).iter().enumerate() {
        for (x2, q) in second.iter().enumerate().filter(|(_, q)| p * **q > 1e-9) {
            verdicts[change(x1 as u32, x2 as u32)] += p * q;
        }
    }
    verdicts
}
