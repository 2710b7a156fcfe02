//! Where a task class goes from where it is: up when a trigger fired, down when a lower rung has held, away when the decision
//! is too old.

use super::ladder::{Candidate, Ladder, Standing, Why, compare_rates};
use crate::config::Day;
use crate::lane::Kind;
use crate::stats::PassRate;

/// The lane to which a task class moves when the trigger of a lane on `from` fired: the lowest rung above it that is feasible.
///
/// A lane that holds is feasible; where none above holds, one that only lacks data. One that is out, or that nobody asked
/// for, is not. Within a rung the better behaviour at the peak goes first.
pub fn next_rung(candidates: &[Candidate], ladder: &Ladder, from: Kind) -> Option<usize> {
    let best = |wanted: Standing| {
        let above = (0..candidates.len()).filter(|at| candidates[*at].kind > from && ladder.standings[*at].0 == wanted);
        above.min_by(|a, b| {
            let (a, b) = (&candidates[*a], &candidates[*b]);
            a.kind
                .cmp(&b.kind)
                .then_with(|| compare_rates(b.decision.pass_rate, a.decision.pass_rate))
                .then_with(|| a.arguments.compare(b.arguments))
        })
    };
    best(Standing::Holds).or_else(|| best(Standing::Undecided))
}

/// Has a lane held on every one of its last `days` working days? A day without data has not: what nobody saw held nothing.
/// `days` of 0 asks for nothing and moves nothing.
///
/// * `by_day`: pass rate of the deciding window, one entry per working day, oldest first.
pub fn held_throughout(by_day: &[Option<PassRate>], days: u32, pass_percent: u32) -> bool {
    let days = days as usize;
    days > 0
        && by_day.len() >= days
        && by_day[by_day.len() - days..].iter().all(|rate| rate.is_some_and(|r| r.reaches(pass_percent)))
}

/// The day on which a decision of `day` expires: `days` later. From that day on it holds no longer. `None` beyond the
/// calendar.
pub fn expires_on(day: Day, days: u32) -> Option<Day> {
    let date = day.date().checked_add(jiff::Span::new().days(i64::from(days))).ok()?;
    date.to_string().parse().ok()
}

/// The lane that comes nearest to holding where none does: the highest pass rate in its deciding window, then the lower rung.
/// Lanes without a figure, and those that nothing measured could bring back, are passed over.
pub fn least_bad(candidates: &[Candidate], ladder: &Ladder) -> Option<usize> {
    let open = |at: &usize| {
        let (standing, why) = &ladder.standings[*at];
        let barred = why.iter().any(|w| matches!(w, Why::LimitBelowNeed { .. } | Why::Reason { .. }));
        *standing == Standing::Out && !barred && candidates[*at].decision.pass_rate.is_some()
    };
    (0..candidates.len()).filter(open).min_by(|a, b| {
        let (a, b) = (&candidates[*a], &candidates[*b]);
        compare_rates(b.decision.pass_rate, a.decision.pass_rate)
            .then_with(|| a.kind.cmp(&b.kind))
            .then_with(|| a.arguments.compare(b.arguments))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Arguments, Declared, Evidence, Thresholds, WindowCount, climb, decide};
    use crate::stats::RetryRate;

    fn candidate(lane: &str, kind: Kind, passed: u32, days: u32) -> Candidate {
        let evidence = Evidence {
            windows: vec![WindowCount { window: "16:00".into(), rate: PassRate::new(passed, 24) }],
            declared_peak: Some("16:00".into()),
            complete_days: days,
            missing: Vec::new(),
            retries: RetryRate::new(0, 96),
        };
        Candidate {
            lane: lane.into(),
            kind,
            decision: decide(&evidence, &Thresholds::default()),
            owner: None,
            barred: Vec::new(),
            arguments: Arguments::default(),
        }
    }

    fn next(candidates: &[Candidate], from: Kind) -> Option<&str> {
        let ladder = climb(candidates, Declared::default());
        next_rung(candidates, &ladder, from).map(|at| candidates[at].lane.as_str())
    }

    #[test]
    fn the_next_rung_is_the_lowest_feasible_one_and_a_server_without_an_owner_is_skipped() {
        let all = [
            candidate("a", Kind::FreeHosted, 12, 3),
            candidate("b", Kind::FreeServer, 24, 3),
            candidate("c", Kind::PaidHosted, 23, 3),
            candidate("e", Kind::PaidHosted, 24, 3),
            candidate("d", Kind::SelfHosted, 24, 3),
        ];
        assert_eq!(next(&all, Kind::FreeHosted), Some("e"));
        assert_eq!(next(&all, Kind::PaidHosted), None, "nobody declared a reason for a box of one's own");
        assert_eq!(next(&all[..2], Kind::FreeHosted), None);
    }

    #[test]
    fn where_nothing_above_holds_a_lane_that_lacks_data_is_next() {
        let all = [candidate("a", Kind::FreeHosted, 12, 3), candidate("c", Kind::PaidHosted, 24, 1)];
        assert_eq!(next(&all, Kind::FreeHosted), Some("c"));
    }

    #[test]
    fn a_lower_rung_must_have_held_on_each_day_and_a_day_without_data_is_none() {
        let days = |passed: &[u32]| passed.iter().map(|p| PassRate::new(*p, 8)).collect::<Vec<_>>();
        assert!(held_throughout(&days(&[3, 8, 8]), 2, 90));
        assert!(!held_throughout(&days(&[8, 7, 8]), 2, 90));
        assert!(!held_throughout(&days(&[8]), 2, 90));
        assert!(!held_throughout(&days(&[8, 8]), 0, 90), "off by default");
        assert!(!held_throughout(&[PassRate::new(8, 8), None], 2, 90));
    }

    #[test]
    fn a_decision_expires_over_ends_of_months_and_years() {
        let day = |text: &str| text.parse::<Day>().unwrap();
        assert_eq!(expires_on(day("2026-11-30"), 14), Some(day("2026-12-14")));
        assert_eq!(expires_on(day("2026-12-25"), 14), Some(day("2027-01-08")));
        assert_eq!(expires_on(day("9999-12-31"), 1), None);
    }

    #[test]
    fn the_least_bad_lane_passes_most_often_at_its_deciding_window() {
        let all = [candidate("a", Kind::FreeHosted, 12, 3), candidate("c", Kind::PaidHosted, 20, 3)];
        let ladder = climb(&all, Declared::default());
        assert_eq!(least_bad(&all, &ladder), Some(1));
    }
}
