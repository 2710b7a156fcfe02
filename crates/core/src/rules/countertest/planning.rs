//! A counter-test that is undecided: how many bursts would decide it?

use super::{CounterVerdict, DECIDES_AT, counter_test};
use crate::rules::certainty::PROBABILITY;
use crate::stats::binomial::distribution;
use crate::stats::exact::critical::Different;
use crate::stats::{Confidence, PassRate, newcombe};

/// So many further bursts a side are looked at: ten weeks of working days. Who needs more has no question of today.
pub const MAX_FURTHER_BURSTS: u32 = 50;

/// So many attempts a side are looked at, whatever the size of a burst: the exact test takes long beyond it.
pub const MAX_PLANNED_ATTEMPTS: u32 = 600;

/// Counts less likely than this cannot change a probability that is compared with 80 %.
const NEGLIGIBLE: f64 = 1e-12;

/// Further bursts on each side after which the counter-test is decided with [`PROBABILITY`], if both true rates are
/// those seen. 0 when it is decided already; `None` when not within [`MAX_FURTHER_BURSTS`] and
/// [`MAX_PLANNED_ATTEMPTS`].
///
/// * `burst_attempts`: attempts of one further burst.
/// * `margin`: as for [`counter_test`].
///
/// Decided means improved, worse or no change that matters. The probability is the exact sum over all further passes
/// of both sides, with the rules of [`counter_test`] for each table. It grows with teeth, counts being whole; the answer
/// is found by doubling and halving: with it the probability is reached, with one burst less it is not.
///
/// Source: exact power of an unconditional test, Suissa and Shuster 1985, "Exact unconditional sample sizes for the 2 x 2
/// binomial trial".
pub fn bursts_that_would_decide(before: PassRate, after: PassRate, burst_attempts: u32, margin: f64) -> Option<u32> {
    let larger = before.of().max(after.of());
    let room = MAX_PLANNED_ATTEMPTS.checked_sub(larger)?;
    if counter_test(before, after, margin).ok()?.verdict != CounterVerdict::Undecided {
        return Some(0);
    }
    let most = room.checked_div(burst_attempts)?.min(MAX_FURTHER_BURSTS);
    let enough = |bursts: u32| decided(before, after, bursts * burst_attempts, margin) >= PROBABILITY;
    let (mut too_few, mut bursts) = (0, 1.min(most));
    while bursts > too_few && !enough(bursts) {
        too_few = bursts;
        bursts = (bursts * 2).min(most);
    }
    if bursts == too_few {
        return None;
    }
    while bursts - too_few > 1 {
        let middle = too_few + (bursts - too_few) / 2;
        if enough(middle) { bursts = middle } else { too_few = middle }
    }
    Some(bursts)
}

/// Probability that the counter-test is decided after `further` attempts on each side at the rates seen.
fn decided(before: PassRate, after: PassRate, further: u32, margin: f64) -> f64 {
    let (n1, n2) = (before.of() + further, after.of() + further);
    let different = Different::at(DECIDES_AT, n1, n2);
    let (first, second) = (distribution(further, before.share()), distribution(further, after.share()));
    let mut sum = 0.0;
    for (more_before, p1) in (before.passed()..).zip(&first).filter(|(_, p)| **p > NEGLIGIBLE) {
        for (more_after, p2) in (after.passed()..).zip(&second).filter(|(_, p)| **p > NEGLIGIBLE) {
            let settled = different.holds(more_before, more_after)
                || PassRate::new(more_before, n1).zip(PassRate::new(more_after, n2)).is_some_and(|(b, a)| {
                    let interval = newcombe(b, a, Confidence::P95);
                    -margin <= interval.low && interval.high <= margin
                });
            sum += if settled { p1 * p2 } else { 0.0 };
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::binomial::pmf;

    fn rate(passed: u32, of: u32) -> PassRate {
        PassRate::new(passed, of).unwrap()
    }

    /// The whole counter-test on every table.
    fn by_hand(before: PassRate, after: PassRate, further: u32, margin: f64) -> f64 {
        let mut sum = 0.0;
        for x1 in 0..=further {
            for x2 in 0..=further {
                let now = |r: PassRate, x: u32| rate(r.passed() + x, r.of() + further);
                let verdict = counter_test(now(before, x1), now(after, x2), margin).unwrap().verdict;
                if verdict != CounterVerdict::Undecided {
                    sum += pmf(x1, further, before.share()) * pmf(x2, further, after.share());
                }
            }
        }
        sum
    }

    #[test]
    fn the_number_of_bursts_agrees_with_the_counter_test_on_every_table() {
        for (before, after, size, margin) in
            [(rate(2, 8), rate(6, 8), 4, 0.25), (rate(8, 8), rate(8, 8), 2, 0.25), (rate(5, 6), rate(2, 6), 3, 0.3)]
        {
            let bursts = bursts_that_would_decide(before, after, size, margin).unwrap();
            assert!(bursts > 0);
            assert!(by_hand(before, after, bursts * size, margin) >= PROBABILITY, "{bursts}");
            if bursts > 1 {
                assert!(by_hand(before, after, (bursts - 1) * size, margin) < PROBABILITY, "{bursts}");
            }
        }
    }

    #[test]
    fn two_perfect_bursts_are_no_change_after_one_more() {
        // Newcombe's interval of n/n twice is +-3.8415 / (n + 3.8415): 0.324 for 8, 0.194 for 16.
        assert_eq!(bursts_that_would_decide(rate(8, 8), rate(8, 8), 8, 0.25), Some(1));
        assert_eq!(bursts_that_would_decide(rate(8, 8), rate(8, 8), 8, 0.33), Some(0));
    }

    #[test]
    fn what_is_decided_needs_nothing_and_what_never_ends_has_no_number() {
        assert_eq!(bursts_that_would_decide(rate(12, 24), rate(21, 24), 8, 0.25), Some(0));
        // No margin at all, and no difference: only chance could decide, in five of a hundred.
        assert_eq!(bursts_that_would_decide(rate(4, 8), rate(4, 8), 1, 0.0), None);
        assert_eq!(bursts_that_would_decide(rate(300, 700), rate(300, 700), 8, 0.01), None);
        assert_eq!(bursts_that_would_decide(rate(4, 8), rate(5, 8), 0, 0.25), None);
    }
}
