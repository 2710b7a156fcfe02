//! The omnibus sum where the tables are too many to be worked out: by inversion of the characteristic function.
//!
//! With L the log probability of a table and S its passes, p is P(L <= seen and S = passed) / P(S = passed). The joint
//! characteristic function is a product over the windows, so each of its values costs one sum per window, and windows of
//! one size share it. S is a whole number, so a finite sum isolates `S = passed`; L is smoothed by a normal distribution
//! that is narrow against its spread and unfolded over a period that holds all of its mass.
//!
//! Source: Abate and Whitt 1992, "The Fourier-series method for inverting transforms of probability distributions".

use std::f64::consts::TAU;

use super::Table;

/// Width of the smoothing, in units of the natural logarithm. L spreads over several units where tables are many.
const SMOOTH: f64 = 0.02;

/// The sum goes this far above the table seen, so that tables exactly as likely (the same counts in other windows) are in
/// it in spite of the smoothing. What it takes in too much makes p a few percent larger, which is the safe side.
const BEYOND: f64 = 2.5 * SMOOTH;

/// No p below this is claimed: rounding and the ends of the period stay below it.
const LEAST: f64 = 1e-10;

/// Counts less likely than this are left out of the sums of a window.
const NEGLIGIBLE_LOG: f64 = -46.0; // 1e-20

#[derive(Clone, Copy)]
struct Complex {
    re: f64,
    im: f64,
}

impl Complex {
    const ONE: Self = Self { re: 1.0, im: 0.0 };

    fn turn(angle: f64) -> Self {
        Self { re: angle.cos(), im: angle.sin() }
    }

    fn times(self, by: Self) -> Self {
        Self { re: self.re * by.re - self.im * by.im, im: self.re * by.im + self.im * by.re }
    }

    fn power(self, mut exponent: u32) -> Self {
        let (mut base, mut result) = (self, Self::ONE);
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = result.times(base);
            }
            base = base.times(base);
            exponent >>= 1;
        }
        result
    }
}

/// Windows of one size: how many, and their counts that matter as (passes, log probability, probability).
struct Group {
    windows: u32,
    mean: f64,
    terms: Vec<(f64, f64, f64)>,
}

fn groups(table: &Table) -> Vec<Group> {
    let mut groups: Vec<(usize, Group)> = Vec::new();
    for window in &table.windows {
        match groups.iter_mut().find(|(size, _)| *size == window.logs.len()) {
            Some((_, group)) => group.windows += 1,
            None => {
                let counts = window.logs.iter().enumerate().filter(|(_, log)| **log > NEGLIGIBLE_LOG);
                let terms: Vec<_> = counts.map(|(k, log)| (k as f64, *log, log.exp())).collect();
                let mean = terms.iter().map(|(k, _, p)| k * p).sum();
                groups.push((window.logs.len(), Group { windows: 1, mean, terms }));
            }
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// The p value; see the head of the file for its error.
pub(super) fn p_value(table: &Table) -> f64 {
    let groups = groups(table);
    let count = table.windows.len() as f64;
    // From the likeliest table downwards; the tail of L is that of half a chi square with a degree of freedom a window.
    let highest: f64 =
        groups.iter().map(|g| f64::from(g.windows) * g.terms.iter().fold(f64::MIN, |m, t| m.max(t.1))).sum();
    let top = highest + 8.0 * SMOOTH;
    let period = count / 2.0 + 7.0 * count.sqrt() + 40.0;
    let bottom = top - period;
    let seen = table.seen_log() + BEYOND;
    if seen <= bottom {
        return LEAST;
    }
    // Passes over all windows are binomial: what is ten standard deviations away does not come in by the fold.
    let variance: f64 = groups
        .iter()
        .map(|g| f64::from(g.windows) * g.terms.iter().map(|(k, _, p)| p * (k - g.mean).powi(2)).sum::<f64>())
        .sum();
    let around = (10.0 * variance.sqrt() + 10.0).ceil() as u32;
    let steps = (6.5 * period / (TAU * SMOOTH)).ceil() as u32;

    let mut sum = (seen - bottom) * at(&groups, 0.0, around).re;
    for step in 1..=steps {
        let omega = TAU * f64::from(step) / period;
        let smooth = (-0.5 * (omega * SMOOTH).powi(2)).exp();
        let value = at(&groups, omega, around);
        // the integral of exp(-i omega y) from `bottom` to `seen`
        let (from, to) = (Complex::turn(-omega * bottom), Complex::turn(-omega * seen));
        let integral = Complex { re: (from.im - to.im) / omega, im: (to.re - from.re) / omega };
        sum += 2.0 * smooth * value.times(integral).re;
    }
    (sum / period / table.all_log.exp()).clamp(LEAST, 1.0)
}

/// E[exp(i omega L); S = passed]. Passes are counted from each window's mean, so that the sum over all of them is 0 there.
fn at(groups: &[Group], omega: f64, around: u32) -> Complex {
    // exp(i omega L) does not depend on the second angle: once per value of omega
    let turned: Vec<Vec<Complex>> = groups
        .iter()
        .map(|g| {
            g.terms
                .iter()
                .map(|(_, log, p)| {
                    let turn = Complex::turn(omega * log);
                    Complex { re: turn.re * p, im: turn.im * p }
                })
                .collect()
        })
        .collect();
    let mut sum = Complex { re: 0.0, im: 0.0 };
    for step in 0..around {
        let angle = TAU * f64::from(step) / f64::from(around);
        let one_pass = Complex::turn(angle);
        let mut product = Complex::ONE;
        for (group, turned) in groups.iter().zip(&turned) {
            // Counts follow one another, so one multiplication leads from each to the next.
            let mut turn = Complex::turn(angle * (group.terms.first().map_or(0.0, |t| t.0) - group.mean));
            let mut value = Complex { re: 0.0, im: 0.0 };
            for term in turned {
                let add = term.times(turn);
                value = Complex { re: value.re + add.re, im: value.im + add.im };
                turn = turn.times(one_pass);
            }
            product = product.times(value.power(group.windows));
        }
        sum = Complex { re: sum.re + product.re, im: sum.im + product.im };
    }
    Complex { re: sum.re / f64::from(around), im: sum.im / f64::from(around) }
}
