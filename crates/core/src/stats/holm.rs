//! Several tests at once: who asks twenty lanes will find one that is odd by chance.

/// Holm's step-down adjustment: p values that can each be compared with the level meant for all of them together.
///
/// * `p`: 0 to 1, one per test, in any order. The adjusted ones (0 to 1) come back in the same order.
///
/// The smallest of m is multiplied by m, the next by m - 1 and so on; none is less than the one before it, none above 1.
/// Below a level they keep the chance of even one false alarm below that level, however the tests hang together.
///
/// Source: Holm 1979, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics
/// 6:65-70.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut adjusted = vec![0.0; p.len()];
    let mut former = 0.0_f64;
    for (step, &index) in order.iter().enumerate() {
        former = former.max(p[index] * (p.len() - step) as f64).min(1.0);
        adjusted[index] = former;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_adjustment_gives_what_paper_and_pencil_give() {
        // 4 x 0.005 = 0.02, 3 x 0.01 = 0.03, 2 x 0.03 = 0.06, and 0.04 may not fall below it.
        let got = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (got, want) in got.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((got - want).abs() < 1e-15, "{got} instead of {want}");
        }
        assert_eq!(holm(&[0.5, 0.6]), [1.0, 1.0]);
        assert_eq!(holm(&[0.03]), [0.03]);
        assert!(holm(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn adjusting_keeps_the_order_never_lowers_a_p_and_is_never_stricter_than_bonferroni(
            p in prop::collection::vec(0.0_f64..=1.0, 1..12),
        ) {
            let adjusted = holm(&p);
            for (a, &raw) in adjusted.iter().zip(&p) {
                prop_assert!(*a >= raw && *a <= (raw * p.len() as f64).min(1.0));
            }
            for i in 0..p.len() {
                for j in 0..p.len() {
                    prop_assert!(p[i] > p[j] || adjusted[i] <= adjusted[j]);
                }
            }
        }

        #[test]
        fn a_level_is_kept_exactly_when_the_step_down_procedure_rejects(
            p in prop::collection::vec(0.0_f64..0.2, 1..8), level in 0.01_f64..0.2,
        ) {
            // Holm's own wording: go up the sorted p values and stop at the first above level / (m - step).
            let mut sorted = p.clone();
            sorted.sort_by(f64::total_cmp);
            let rejected = sorted.iter().enumerate().take_while(|(i, p)| **p * (sorted.len() - i) as f64 <= level).count();
            prop_assert_eq!(holm(&p).iter().filter(|a| **a <= level).count(), rejected);
        }
    }
}
