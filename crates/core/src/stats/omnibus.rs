//! One exact test for many windows: could all of them have one and the same pass rate?
//!
//! Freeman and Halton's extension of Fisher's test to r x 2 tables: given how many attempts each window had and how many
//! passed in all, sum the probabilities of all tables that are no more likely than the one seen.
//!
//! Tables are never listed one by one. The windows are cut into two halves; each half keeps, for each number of passes, its
//! different probabilities with the mass that has them; the halves then meet by walking two sorted lists against each
//! other. Where even that is too much ([`MAX_STATES`]), `inversion` takes the same sum from the characteristic function.

mod inversion;

use std::ops::RangeInclusive;

use super::StatsError;
use super::binomial::pmf;
use super::rate::PassRate;

/// Largest number of attempts over all windows. 48 windows of 400 attempts are below it.
pub const MAX_OMNIBUS: u32 = 20_000;

/// So many different probabilities a half are worked out exactly; beyond it the sum is taken by inversion.
pub const MAX_STATES: usize = 60_000;

/// Logarithms of probabilities nearer than this are one and the same, computed in two ways (as in the test of two rates).
const SAME: f64 = 1e-7;

/// While tables are built up, closer neighbours are one: far below [`SAME`], far above rounding.
const MERGED: f64 = 1e-10;

/// Mass below this share of the probability of the table seen cannot change the sum.
const NEGLIGIBLE: f64 = 1e-20;

/// Freeman and Halton's exact test that all rates are equal, two-sided: the p value, 0 to 1.
///
/// It takes attempts as independent: bursts that share a queue differ more than chance, and then p is too small. Fewer than
/// two rates cannot differ: 1. For two rates this is [`super::fisher_two_sided`].
///
/// Exact to about 12 digits where the tables can be worked out, which is always so for the usual four windows of some
/// hundred attempts. For many windows with many passes and many misses each, p comes from an inversion, is up to 10 %
/// of itself too large and at most 1 % too small, and is never said to be less than 1e-10.
///
/// # Errors
/// [`StatsError::TooLarge`] above [`MAX_OMNIBUS`] attempts in all.
///
/// Source: Freeman and Halton 1951, "Note on an exact treatment of contingency, goodness of fit and other problems of
/// significance", Biometrika 38:141-149; that no listing of all tables is needed: Mehta and Patel 1983.
pub fn omnibus(rates: &[PassRate]) -> Result<f64, StatsError> {
    let all: u64 = rates.iter().map(|r| u64::from(r.of())).sum();
    let all = u32::try_from(all)
        .ok()
        .filter(|n| *n <= MAX_OMNIBUS)
        .ok_or(StatsError::TooLarge { given: all, limit: MAX_OMNIBUS })?;
    let passed: u32 = rates.iter().map(|r| r.passed()).sum();
    if rates.len() < 2 || passed == 0 || passed == all {
        return Ok(1.0); // there is one table only
    }
    let common = f64::from(passed) / f64::from(all);
    let mut windows: Vec<Window> = rates.iter().map(|r| Window::new(*r, common)).collect();
    windows.sort_by_key(|w| w.logs.len());
    let table = Table { windows, passed, all_log: pmf(passed, all, common).ln() };
    Ok(table.exact().unwrap_or_else(|| inversion::p_value(&table)))
}

/// One window: the log probabilities of its counts at the common rate, and the count seen.
struct Window {
    logs: Vec<f64>,
    seen: u32,
}

impl Window {
    fn new(rate: PassRate, common: f64) -> Self {
        Self { logs: (0..=rate.of()).map(|k| pmf(k, rate.of(), common).ln()).collect(), seen: rate.passed() }
    }

    fn attempts(&self) -> usize {
        self.logs.len() - 1
    }
}

/// The table seen. Any common rate gives the same conditional probabilities; the observed one keeps them large.
struct Table {
    /// Small ones first, so that equal ones stand together and merge.
    windows: Vec<Window>,
    /// Passes over all windows, the fixed margin.
    passed: u32,
    /// Log probability of that many passes.
    all_log: f64,
}

/// Tables of a half with the same passes and the same probability.
#[derive(Clone, Copy)]
struct State {
    /// Log probability of each.
    log: f64,
    /// Probability of all of them together.
    mass: f64,
}

/// States by number of passes, each list ascending.
type Half = Vec<Vec<State>>;

impl Table {
    /// Log probability of the table seen, before it is divided by that of the margin.
    fn seen_log(&self) -> f64 {
        self.windows.iter().map(|w| w.logs[w.seen as usize]).sum()
    }

    /// Misses over all windows, the other margin.
    fn misses(&self) -> usize {
        self.windows.iter().map(Window::attempts).sum::<usize>() - self.passed as usize
    }

    /// The p value, or `None` where there are too many states.
    fn exact(&self) -> Option<f64> {
        let (first, second) = self.windows.split_at(self.middle());
        let (first, second) = (self.half(first)?, self.half(second)?);
        let limit = self.seen_log() + SAME;
        let mut sum = 0.0;
        for (passes, states) in first.iter().enumerate() {
            let rest = (self.passed as usize).checked_sub(passes).and_then(|rest| second.get(rest));
            sum += rest.map_or(0.0, |rest| mass_up_to(states, rest, limit));
        }
        Some((sum / self.all_log.exp()).min(1.0))
    }

    /// Where to cut, so that both halves have about as many tables.
    fn middle(&self) -> usize {
        let size = |w: &Window| (w.logs.len() as f64).ln();
        let all: f64 = self.windows.iter().map(size).sum();
        let mut before = 0.0;
        let middle = self.windows.iter().position(|w| {
            before += size(w);
            before * 2.0 > all + 1e-9 // rounding must not move the middle of equal windows
        });
        // At least one on each side.
        middle.unwrap_or(0).max(1).min(self.windows.len() - 1)
    }

    fn half(&self, windows: &[Window]) -> Option<Half> {
        let least = self.seen_log().exp() * NEGLIGIBLE;
        let mut half: Half = vec![vec![State { log: 0.0, mass: 1.0 }]];
        let (most, misses) = (self.passed as usize, self.misses());
        let mut attempts = 0;
        for window in windows {
            attempts += window.attempts();
            half = add(&half, window, attempts.saturating_sub(misses)..=most, least);
            if half.iter().map(Vec::len).sum::<usize>() > MAX_STATES {
                return None;
            }
        }
        Some(half)
    }
}

/// One more window; other numbers of passes than the `possible` ones would break the margins.
fn add(half: &Half, window: &Window, possible: RangeInclusive<usize>, least: f64) -> Half {
    let most = (half.len() - 1 + window.attempts()).min(*possible.end());
    (0..=most)
        .map(|passes| {
            let mut states: Vec<State> = Vec::new();
            if passes < *possible.start() {
                return states;
            }
            for here in passes.saturating_sub(half.len() - 1)..=window.attempts().min(passes) {
                let (log, p) = (window.logs[here], window.logs[here].exp());
                let more = half[passes - here].iter().map(|s| State { log: s.log + log, mass: s.mass * p });
                states.extend(more.filter(|s| s.mass > least));
            }
            states.sort_by(|a, b| a.log.total_cmp(&b.log));
            states.dedup_by(|next, kept| {
                let same = next.log - kept.log <= MERGED;
                if same {
                    kept.mass += next.mass;
                }
                same
            });
            states
        })
        .collect()
}

/// Mass of all pairs whose logs add up to `limit` or less.
fn mass_up_to(first: &[State], second: &[State], limit: f64) -> f64 {
    let mut up_to = Vec::with_capacity(second.len() + 1);
    up_to.push(0.0);
    let mut sum = 0.0;
    for state in second {
        sum += state.mass;
        up_to.push(sum);
    }
    let mut end = second.len();
    let mut all = 0.0;
    for state in first {
        while end > 0 && state.log + second[end - 1].log > limit {
            end -= 1;
        }
        all += state.mass * up_to[end];
    }
    all
}

#[cfg(test)]
mod tests;
