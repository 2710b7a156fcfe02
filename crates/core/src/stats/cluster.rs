//! Attempts of one burst share a queue: how much less than their number do they say?

use super::rate::PassRate;

/// One design effect for several groups of bursts (the windows of a lane), at least 1.
///
/// It compares the spread of the bursts within their groups with that of independent attempts, pooled over the groups:
/// with x of m passes in a burst and p of n in its group, the sum of (x - m p)² over all bursts against the sum of
/// p (1 - p) (n - sum of m² / n) over all groups, which is what it would be on average. Differences *between* groups do
/// not enter. Groups with one burst, or where everything went the same way, say nothing; where all are like that, 1.
///
/// Pooled, it is steadier than the effect of one window with its two or three bursts.
///
/// Source: Rao and Scott 1992, "A simple method for the analysis of clustered binary data", Biometrics 48:577-585.
pub fn pooled_design_effect(groups: &[&[PassRate]]) -> f64 {
    let (mut spread, mut expected) = (0.0, 0.0);
    for bursts in groups {
        let Some(all) = PassRate::sum(bursts) else { continue };
        let (p, n) = (all.share(), f64::from(all.of()));
        for burst in *bursts {
            let m = f64::from(burst.of());
            spread += (f64::from(burst.passed()) - m * p).powi(2);
            expected -= p * (1.0 - p) * m * m / n;
        }
        expected += p * (1.0 - p) * n;
    }
    // a single burst leaves nothing but rounding in both
    if expected > 1e-9 { (spread / expected).max(1.0) } else { 1.0 }
}

/// The rate that independent attempts would have to show to say as much: both counts divided by the design effect (at
/// least 1) and rounded, so that an exact test can take them. At least one attempt is left.
///
/// Source: Rao and Scott 1992; the rounding is ours.
pub fn effective_rate(rate: PassRate, design_effect: f64) -> PassRate {
    let effect = if design_effect > 1.0 { design_effect } else { 1.0 };
    let of = ((f64::from(rate.of()) / effect).round() as u32).max(1);
    let passed = ((rate.share() * f64::from(of)).round() as u32).min(of);
    PassRate::new(passed, of).unwrap_or(rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bursts(passes: &[u32]) -> Vec<PassRate> {
        passes.iter().map(|p| PassRate::new(*p, 8).unwrap()).collect()
    }

    fn effect(groups: &[&[u32]]) -> f64 {
        let groups: Vec<_> = groups.iter().map(|g| bursts(g)).collect();
        pooled_design_effect(&groups.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    #[test]
    fn the_pooled_effect_is_that_of_paper_and_pencil() {
        // 8, 8, 0 of 8: p = 2/3; spread (8/3)² + (8/3)² + (16/3)² = 128/3; expected 2/9 x (24 - 8) = 32/9; 12.
        assert!((effect(&[&[8, 8, 0]]) - 12.0).abs() < 1e-12);
        // beside 4, 4, 4 of 8: no spread, expected 1/4 x 16 = 4 more; 128/3 / (32/9 + 4) = 5.647.
        assert!((effect(&[&[8, 8, 0], &[4, 4, 4]]) - 96.0 / 17.0).abs() < 1e-12);
        // a window without a miss says nothing of the spread
        assert!((effect(&[&[8, 8, 0], &[8, 8, 8]]) - 12.0).abs() < 1e-12);
    }

    #[test]
    fn single_bursts_and_even_ones_leave_the_attempts_as_they_are() {
        assert_eq!((effect(&[&[4], &[7], &[1]]), effect(&[&[4, 4, 4]]), effect(&[&[], &[8, 8]])), (1.0, 1.0, 1.0));
        // The windows differ, the bursts of each do not.
        assert_eq!(effect(&[&[8, 8], &[1, 1]]), 1.0);
    }

    #[test]
    fn an_effective_rate_keeps_its_share_as_well_as_whole_counts_can() {
        let rate = |passed, of| PassRate::new(passed, of).unwrap();
        assert_eq!(effective_rate(rate(16, 24), 12.0), rate(1, 2));
        assert_eq!(effective_rate(rate(18, 24), 3.0), rate(6, 8));
        assert_eq!(effective_rate(rate(5, 8), 1.0), rate(5, 8));
        assert_eq!(effective_rate(rate(5, 8), 1e9), rate(1, 1));
        assert_eq!(effective_rate(rate(5, 8), f64::NAN), rate(5, 8));
    }

    proptest! {
        #[test]
        fn one_window_alone_has_the_effect_of_its_own_interval(passes in prop::collection::vec(0_u32..=8, 1..6)) {
            let bursts = bursts(&passes);
            let own = crate::stats::clustered_wilson(&bursts, crate::stats::Confidence::P95).unwrap().design_effect;
            let pooled = pooled_design_effect(&[bursts.as_slice()]);
            prop_assert!((pooled - own).abs() < 1e-9 * own, "{} {}", pooled, own);
        }
    }
}
