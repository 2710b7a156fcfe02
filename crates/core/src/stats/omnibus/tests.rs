use proptest::prelude::*;

use super::*;
use crate::stats::fisher_two_sided;

fn rates(counts: &[(u32, u32)]) -> Vec<PassRate> {
    counts.iter().map(|(passed, of)| PassRate::new(*passed, *of).unwrap()).collect()
}

fn p(counts: &[(u32, u32)]) -> f64 {
    omnibus(&rates(counts)).unwrap()
}

fn near(got: f64, want: f64, relative: f64) {
    assert!((got - want).abs() <= relative * want, "{got} instead of {want}");
}

fn table_of(counts: &[(u32, u32)]) -> Table {
    let (passed, all) = counts.iter().fold((0, 0), |(p, n), c| (p + c.0, n + c.1));
    let common = f64::from(passed) / f64::from(all);
    let mut windows: Vec<Window> = rates(counts).iter().map(|r| Window::new(*r, common)).collect();
    windows.sort_by_key(|w| w.logs.len());
    Table { windows, passed, all_log: pmf(passed, all, common).ln() }
}

fn choose(n: u32, k: u32) -> u128 {
    (0..k).fold(1, |c, i| c * u128::from(n - i) / u128::from(i + 1))
}

/// Every table one by one, in whole numbers.
fn by_hand(counts: &[(u32, u32)]) -> f64 {
    fn walk(sizes: &[u32], left: u32, product: u128, seen: u128, sums: &mut (u128, u128)) {
        let Some((first, rest)) = sizes.split_first() else {
            if left == 0 {
                sums.1 += product;
                sums.0 += if product <= seen { product } else { 0 };
            }
            return;
        };
        for here in 0..=left.min(*first) {
            walk(rest, left - here, product * choose(*first, here), seen, sums);
        }
    }
    let sizes: Vec<u32> = counts.iter().map(|c| c.1).collect();
    let seen = counts.iter().map(|c| choose(c.1, c.0)).product();
    let mut sums = (0, 0);
    walk(&sizes, counts.iter().map(|c| c.0).sum(), 1, seen, &mut sums);
    sums.0 as f64 / sums.1 as f64
}

#[test]
fn tables_worked_by_hand_come_out() {
    // 2/2, 0/2, 1/2: 20 ways to place 3 passes. Products: (1,1,1) 8; the six orders of (2,1,0) 2 each, 12 in all.
    near(p(&[(2, 2), (0, 2), (1, 2)]), 12.0 / 20.0, 1e-12);
    near(p(&[(1, 2), (1, 2), (1, 2)]), 1.0, 1e-12);
    // 4/4, 0/4, 0/4: C(12, 4) = 495 ways, three of them like this.
    near(p(&[(4, 4), (0, 4), (0, 4)]), 3.0 / 495.0, 1e-12);
}

#[test]
fn what_cannot_differ_has_a_p_of_one() {
    assert_eq!((p(&[]), p(&[(3, 8)]), p(&[(8, 8), (24, 24)]), p(&[(0, 8), (0, 3), (0, 1)])), (1.0, 1.0, 1.0, 1.0));
}

#[test]
fn a_lane_that_breaks_down_at_four_differs_beyond_chance_and_one_that_loses_two_does_not() {
    near(p(&[(23, 24), (22, 24), (12, 24), (24, 24)]), by_hand(&[(23, 24), (22, 24), (12, 24), (24, 24)]), 1e-10);
    assert!(p(&[(23, 24), (22, 24), (12, 24), (24, 24)]) < 1e-5);
    assert!(p(&[(24, 24), (24, 24), (22, 24), (24, 24)]) > 0.05);
}

#[test]
fn four_windows_of_two_hundred_attempts_are_still_worked_out_to_the_end() {
    let counts = [(170, 200), (160, 200), (150, 200), (165, 200)];
    assert!(table_of(&counts).exact().is_some());
}

#[test]
fn where_both_ways_can_be_gone_the_inversion_agrees_with_the_exact_sum() {
    for counts in [
        vec![(20, 24), (18, 24), (16, 24), (21, 24), (17, 24), (19, 24), (12, 24), (20, 24)],
        vec![(20, 24), (18, 24), (16, 24), (21, 24), (9, 24), (19, 24), (12, 24), (20, 24)],
        vec![(40, 48), (30, 40), (39, 48), (41, 48), (25, 40)],
        vec![(7, 8), (5, 8), (6, 8), (2, 8), (4, 8), (8, 8), (3, 8), (6, 8), (5, 8), (6, 8), (7, 8), (1, 8)],
    ] {
        let table = table_of(&counts);
        let exact = table.exact().unwrap();
        let share = inversion::p_value(&table) / exact;
        assert!((0.99..=1.1).contains(&share), "{share} of {exact}");
    }
}

#[test]
fn forty_eight_windows_have_a_p_value() {
    // One pass rate for all, scattered as a lane of 75 % scatters: nothing to see.
    let even: Vec<(u32, u32)> = (0..48).map(|i| (18 - 3 + (i * 5) % 7, 24)).collect();
    assert!(table_of(&even).exact().is_none(), "worked out after all: the test needs a larger table");
    // By 100,000 tables drawn without putting back (Python's random.sample): 0.6338, standard error 0.0015.
    let got = p(&even);
    assert!((0.6338 - 0.005..0.6338 * 1.1 + 0.005).contains(&got), "{got}");
    // One hour of the day far below: 0.00279, standard error 0.00017.
    let mut odd = even;
    odd[30] = (4, 24);
    let got = p(&odd);
    assert!((0.002_79 - 0.000_5..0.002_79 * 1.1 + 0.000_5).contains(&got), "{got}");
}

#[test]
fn few_misses_are_worked_out_to_the_end_in_any_number_of_windows() {
    // 23 misses in 23 windows of 48: no table is likelier, so all are in the sum.
    let flat: Vec<(u32, u32)> = (0..48).map(|i| (24 - i % 2 - u32::from(i == 0), 24)).skip(1).collect();
    let exact = table_of(&flat).exact().expect("worked out");
    near(exact, 1.0, 1e-9);
}

#[test]
fn many_windows_with_a_few_misses_each_agree_with_drawn_tables() {
    // 60 misses in 30 of 48 windows; 200,000 tables drawn without putting back: 0.01473, standard error 0.00027.
    let misses = (0..30).map(|i| if i % 5 == 0 { 4 } else { 1 + i % 2 }).chain([0; 18]);
    let counts: Vec<(u32, u32)> = misses.map(|m| (24 - m, 24)).collect();
    assert!(table_of(&counts).exact().is_none());
    let got = p(&counts);
    assert!((0.014_73 - 0.000_8..0.014_73 * 1.1 + 0.000_8).contains(&got), "{got}");
}

#[test]
fn a_table_beyond_the_limit_is_refused_with_a_way_on() {
    let refused = omnibus(&rates(&[(1, 8), (1, MAX_OMNIBUS)])).unwrap_err();
    assert_eq!(refused, StatsError::TooLarge { given: u64::from(MAX_OMNIBUS) + 8, limit: MAX_OMNIBUS });
    assert!(refused.hint().is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn the_sum_equals_that_over_every_single_table(
        counts in prop::collection::vec((1_u32..7, 0_u32..7), 2..6),
    ) {
        let counts: Vec<(u32, u32)> = counts.into_iter().map(|(n, x)| (x % (n + 1), n)).collect();
        let (got, want) = (p(&counts), by_hand(&counts));
        prop_assert!((got - want).abs() <= 1e-9 * want, "{} instead of {}", got, want);
    }

    #[test]
    fn two_windows_give_fishers_test(n1 in 1_u32..60, n2 in 1_u32..60, x1 in 0_u32..60, x2 in 0_u32..60) {
        let counts = [(x1 % (n1 + 1), n1), (x2 % (n2 + 1), n2)];
        let both = rates(&counts);
        let fisher = fisher_two_sided(both[0], both[1]).unwrap();
        prop_assert!((p(&counts) - fisher).abs() <= 1e-9 * fisher);
    }

    #[test]
    fn neither_the_order_of_windows_nor_the_name_of_a_pass_matters(
        counts in prop::collection::vec((1_u32..20, 0_u32..20), 2..6),
    ) {
        let counts: Vec<(u32, u32)> = counts.into_iter().map(|(n, x)| (x % (n + 1), n)).collect();
        let mirrored: Vec<(u32, u32)> = counts.iter().rev().map(|(x, n)| (n - x, *n)).collect();
        let (there, back) = (p(&counts), p(&mirrored));
        prop_assert!((there - back).abs() <= 1e-9 * there && there > 0.0 && there <= 1.0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn the_inversion_is_at_most_ten_percent_too_large_and_one_too_small(
        counts in prop::collection::vec(12_u32..=22, 7..9),
    ) {
        let table = table_of(&counts.iter().map(|x| (*x, 24)).collect::<Vec<_>>());
        let exact = table.exact().unwrap();
        let share = inversion::p_value(&table) / exact;
        prop_assert!((0.99..=1.1).contains(&share), "{} of {}", share, exact);
    }
}
