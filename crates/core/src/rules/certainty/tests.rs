use proptest::prelude::*;

use super::*;
use crate::stats::binomial::pmf;
use crate::stats::wilson;

fn bursts(passes: &[u32]) -> Vec<PassRate> {
    passes.iter().map(|p| PassRate::new(*p, 8).unwrap()).collect()
}

fn ask(passes: &[u32], percent: u32, looks: u32) -> Certainty {
    certainty(&Question { bursts: &bursts(passes), burst_attempts: 8, percent, looks }).unwrap()
}

fn needed(passes: &[u32], percent: u32, looks: u32) -> Option<u32> {
    match ask(passes, percent, looks).state {
        CertaintyState::Conclusive => Some(0),
        CertaintyState::Provisional { bursts_needed, .. } => bursts_needed,
    }
}

#[test]
fn three_days_without_a_miss_need_two_more() {
    // Wilson's lower end of n of n is n / (n + 3.8415): 0.8985 for 34, 0.9011 for 35; 24 + 2 x 8 = 40 is the first above.
    assert_eq!(needed(&[8, 8, 8], 90, 1), Some(2));
    assert_eq!(needed(&[8, 8, 8, 8, 8], 90, 1), Some(0));
    // At 98.75 % z is 2.4977 and 57 of 57 are needed: 24 + 5 x 8 = 64.
    assert_eq!(needed(&[8, 8, 8], 90, 4), Some(5));
}

#[test]
fn a_collapse_is_conclusive_at_once() {
    // 12 of 24: 31 to 69 %.
    let got = ask(&[4, 4, 4], 90, 1);
    assert!(got.state.is_conclusive() && !got.reaches);
    assert!(ask(&[4, 4, 4], 90, 4).state.is_conclusive());
}

#[test]
fn a_rate_at_the_bar_itself_is_never_settled() {
    let nine_of_ten = [PassRate::new(9, 10).unwrap()];
    let got = certainty(&Question { bursts: &nine_of_ten, burst_attempts: 10, percent: 90, looks: 1 }).unwrap();
    assert_eq!(
        got.state,
        CertaintyState::Provisional { bursts_needed: None, assumed_rate: 0.9, probability: PROBABILITY }
    );
}

#[test]
fn without_a_burst_there_is_nothing_to_be_sure_of() {
    assert_eq!(certainty(&Question { bursts: &[], burst_attempts: 8, percent: 90, looks: 1 }), None);
}

#[test]
fn bursts_that_disagree_make_a_verdict_less_sure() {
    // 16 of 24 both times; the plain interval ends at 82 %, with a design effect of 12 nothing is shown.
    assert!(ask(&[5, 6, 5], 90, 1).state.is_conclusive());
    let split = ask(&[8, 8, 0], 90, 1);
    assert!(!split.state.is_conclusive());
    // ... and a further burst is worth 8 / 12 of an attempt
    assert!(needed(&[8, 8, 0], 90, 1).unwrap() > 5, "{split:?}");
}

#[test]
fn a_bar_of_everything_cannot_be_shown_to_be_reached() {
    assert_eq!(needed(&[8, 8, 8], 100, 1), None);
    assert_eq!(needed(&[8, 7, 8], 0, 1), Some(0));
}

/// The same by summing over every number of further passes, with the plain interval.
fn by_hand(passed: u32, n: u32, size: u32, percent: u32, looks: u32) -> Option<u32> {
    let rate = PassRate::new(passed, n).unwrap();
    let bar = f64::from(percent) / 100.0;
    (1..=60).find(|k| {
        let further = k * size;
        let sum: f64 = (0..=further)
            .filter(|x| {
                let then = PassRate::new(passed + x, n + further).unwrap();
                let interval = wilson(then, Confidence::P95.shared_by(looks));
                if rate.reaches(percent) { interval.low >= bar } else { interval.high < bar }
            })
            .map(|x| pmf(x, further, rate.share()))
            .sum();
        sum >= PROBABILITY - 1e-12
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_number_of_bursts_equals_that_of_a_sum_over_all_that_may_come(
        passed in 0_u32..=24, size in 1_u32..12, percent in 50_u32..=95, looks in 1_u32..5,
    ) {
        let one = [PassRate::new(passed, 24).unwrap()];
        let got = certainty(&Question { bursts: &one, burst_attempts: size, percent, looks }).unwrap();
        if let CertaintyState::Provisional { bursts_needed, .. } = got.state {
            let want = by_hand(passed, 24, size, percent, looks);
            prop_assert_eq!(bursts_needed.filter(|k| *k <= 60), want);
        }
    }

    #[test]
    fn a_picked_window_is_never_surer_than_a_declared_one(
        passes in prop::collection::vec(0_u32..=8, 1..5), percent in 1_u32..=99,
    ) {
        let (declared, picked) = (ask(&passes, percent, 1), ask(&passes, percent, 4));
        prop_assert!(declared.state.is_conclusive() || !picked.state.is_conclusive());
    }
}
