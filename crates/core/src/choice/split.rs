//! A split by hours: where lower rungs hold at some windows, and another lane at the others.

use super::LaneFigures;
use super::cost::mean;
use crate::rules::{Candidate, HourRange, Ladder, Standing, Thresholds, Why, ranges_of};
use crate::stats::PassRate;

/// Hours by lane, each measured to hold there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The ranges; their lanes are indices of the choice.
    pub ranges: Vec<HourRange>,
    /// What it costs beside the chosen lane; `None` where a price is not known, or no lane is chosen.
    pub cost: Option<SplitCost>,
}

/// Prices of 1,000 requests, spread evenly over the windows, micro-dollars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitCost {
    /// With the split.
    pub split_micro_usd: u64,
    /// With the chosen lane alone.
    pub chosen_micro_usd: u64,
}

impl SplitCost {
    /// So many percent less, rounded down; 0 for no less.
    pub fn percent_less(self) -> u64 {
        let less = self.chosen_micro_usd.saturating_sub(self.split_micro_usd);
        (less * 100).checked_div(self.chosen_micro_usd).unwrap_or(0)
    }
}

/// A lane that may be used at hours at which it holds: nothing but its measurements stands against it.
fn is_open(standing: &(Standing, Vec<Why>)) -> bool {
    let measured = |w: &Why| {
        matches!(w, Why::Obstacle(_) | Why::LowerHolds { .. } | Why::LowerUndecided { .. } | Why::BetterBeside { .. })
    };
    standing.0 != Standing::NotApplicable && standing.1.iter().all(measured)
}

fn holds_at(figures: &LaneFigures, window: &str, thresholds: &Thresholds) -> Option<PassRate> {
    let at = figures.windows.iter().find(|w| w.window == window)?;
    let retries = at.retries.rate().is_some_and(|r| r.below(thresholds.retry_below_percent));
    at.rate.filter(|r| at.days >= thresholds.days && retries && r.reaches(thresholds.pass_percent))
}

/// The split that uses the lowest rung at each window, and the chosen lane where it is as low as any. `None` where it is no
/// split, where a window has no lane that holds, and where it costs as much as the chosen lane or more.
pub(super) fn split(
    candidates: &[Candidate],
    lanes: &[LaneFigures],
    ladder: &Ladder,
    thresholds: &Thresholds,
) -> Option<Split> {
    let mut windows: Vec<&str> = lanes.iter().flat_map(|l| &l.windows).map(|w| w.window.as_str()).collect();
    windows.sort_unstable();
    windows.dedup();
    let best_at = |window: &str| {
        (0..lanes.len())
            .filter(|at| is_open(&ladder.standings[*at]))
            .filter_map(|at| Some((at, holds_at(&lanes[at], window, thresholds)?)))
            .min_by(|(a, a_rate), (b, b_rate)| {
                let other = |at: usize| ladder.chosen != Some(at);
                lanes[*a]
                    .kind
                    .cmp(&lanes[*b].kind)
                    .then(other(*a).cmp(&other(*b)))
                    .then_with(|| b_rate.compare(*a_rate))
                    .then_with(|| candidates[*a].arguments.compare(candidates[*b].arguments))
            })
            .map(|(at, _)| at)
    };
    let holders: Vec<(String, Option<usize>)> =
        windows.into_iter().map(|window| (window.to_owned(), best_at(window))).collect();
    let ranges = ranges_of(&holders)?;
    let price = |at: usize, window: &str| {
        let lane = &lanes[at];
        let own = lane.windows.iter().find(|w| w.window == window).and_then(|w| w.micro_usd_per_1000);
        own.or(lane.micro_usd_per_1000)
    };
    let of = |lane: &dyn Fn(Option<usize>) -> Option<usize>| {
        mean(&holders.iter().map(|(window, at)| price(lane(*at)?, window)).collect::<Vec<_>>())
    };
    let split_micro_usd = of(&|at| at);
    let chosen_micro_usd = ladder.chosen.and_then(|chosen| of(&|_| Some(chosen)));
    let cost = split_micro_usd
        .zip(chosen_micro_usd)
        .map(|(split_micro_usd, chosen_micro_usd)| SplitCost { split_micro_usd, chosen_micro_usd });
    let dearer = cost.is_some_and(|c| c.split_micro_usd >= c.chosen_micro_usd);
    (!dearer).then_some(Split { ranges, cost })
}
