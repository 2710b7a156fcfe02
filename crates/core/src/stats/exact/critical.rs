//! Which tables of two given sizes would Barnard's test call different? For planning, where thousands of tables are asked.

use super::{Extreme, Region, Wald, extreme_from};

/// All tables of two sizes with Barnard's two-sided p at or below a level.
///
/// The p value falls with the statistic, so it is enough to find the smallest statistic that is still at or below the
/// level: some ten tests instead of one for each table.
pub(crate) struct Different {
    /// `None`: no table of this size is extreme enough.
    tables: Option<Vec<Extreme>>,
}

impl Different {
    /// For `n1` attempts before and `n2` after; `level` such as 0.05.
    pub(crate) fn at(level: f64, n1: u32, n2: u32) -> Self {
        let mut statistics: Vec<Wald> = (0..=n1)
            .flat_map(|x1| (0..=n2).map(move |x2| Wald::of(x1, x2, n1, n2)))
            .filter(|wald| wald.difference > 0)
            .collect();
        statistics.sort_by(Wald::compare);
        statistics.dedup_by(|a, b| a.compare(b).is_eq());
        let region = |wald: Wald| Region { n1, n2, extreme: extreme_from(wald, n1, n2) };
        let first = statistics.partition_point(|wald| region(*wald).exceeds(level));
        Self { tables: statistics.get(first).map(|wald| extreme_from(*wald, n1, n2)) }
    }

    /// True when `x1` passes before and `x2` after differ at the level.
    pub(crate) fn holds(&self, x1: u32, x2: u32) -> bool {
        let extreme = self.tables.as_ref().and_then(|tables| tables.get(x1 as usize));
        extreme.is_some_and(|e| x2 < e.below || x2 >= e.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{PassRate, barnard_two_sided};

    #[test]
    fn the_tables_called_different_are_those_whose_own_test_says_so() {
        for (n1, n2, level) in [(8, 8, 0.05), (5, 12, 0.05), (9, 7, 0.2), (2, 2, 0.05), (24, 24, 0.05)] {
            let different = Different::at(level, n1, n2);
            let mut both = [0, 0];
            // every table of the small sizes, every fifth of the large one
            for x1 in (0..=n1).step_by(if n1 > 20 { 5 } else { 1 }) {
                for x2 in 0..=n2 {
                    let (before, after) = (PassRate::new(x1, n1).unwrap(), PassRate::new(x2, n2).unwrap());
                    let own = barnard_two_sided(before, after).unwrap() <= level;
                    assert_eq!(different.holds(x1, x2), own, "{x1}/{n1} {x2}/{n2}");
                    both[usize::from(own)] += 1;
                }
            }
            assert!(both[0] > 0 && (n1 == 2 || both[1] > 0), "{both:?}");
        }
    }
}
