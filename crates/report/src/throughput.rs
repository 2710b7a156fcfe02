//! Right answers per hour in words: what a batch class is judged by.

use peaklane_core::stats::Throughput;
use peaklane_core::summary::BurstSummary;

use crate::units::{duration, limit};

/// Right answers per hour against the floor of a batch class.
pub(crate) fn of_burst(s: &BurstSummary) -> Option<String> {
    let floor = s.header.tasks_per_hour_floor?;
    Some(match (s.throughput(), s.throughput_holds()) {
        (Some(seen), Some(holds)) => {
            let verdict = if holds { "holds" } else { "does not hold" };
            let time = if s.header.stretch_us.is_some() { limit(seen.us()) } else { duration(seen.us()) };
            let interval = s.throughput_interval().map(|i| format!(" (95 %: {})", hourly_interval(i)));
            let late = s.passed.saturating_sub(seen.right());
            let late = if late > 0 { format!(", {late} more after its end") } else { String::new() };
            format!(
                "{} right answers an hour{}, {} in {time}{late} (needs {floor}): {verdict}",
                hourly(seen, floor),
                interval.unwrap_or_default(),
                seen.right(),
            )
        }
        _ => format!("not known (needs {floor} right answers an hour)"),
    })
}

/// Right answers per hour, whole where that does not carry them over the floor: 59.7 of 60 is not "60".
pub(crate) fn hourly(seen: Throughput, floor: u32) -> String {
    let rate = seen.per_hour();
    let short = !seen.reaches(floor) && rate.round() >= f64::from(floor);
    if short { format!("{:.1}", (rate * 10.0).floor() / 10.0) } else { format!("{rate:.0}") }
}

/// `52-113`, outwards, so that it never looks narrower than it is.
pub(crate) fn hourly_interval((low, high): (f64, f64)) -> String {
    format!("{:.0}-{:.0}", low.floor(), high.ceil())
}

#[cfg(test)]
mod tests {
    use peaklane_core::burst::BurstState;
    use peaklane_core::lane::Kind;
    use peaklane_core::summary::summarise;

    use super::*;
    use crate::sample;

    fn told(right: u32, late: u32, floor: u32) -> String {
        let mut header = sample::header("lane-a", Kind::PaidHosted, "2026-11-23", Some("16:00"));
        (header.stretch_us, header.tasks_per_hour_floor, header.attempts) = (Some(600_000_000), Some(floor), 0);
        let mut figures = vec![sample::pass(599_000); right as usize];
        figures.extend(vec![sample::pass(601_000); late as usize]);
        of_burst(&summarise(&header, BurstState::Complete, &figures)).unwrap()
    }

    #[test]
    fn a_stretch_says_what_came_within_it_and_what_came_too_late() {
        // 20 in 10 min: 6 x (20 + 1.92 -+ 1.96 x sqrt(20.96)) = 77.7 and 185.4.
        assert_eq!(
            told(20, 2, 100),
            "120 right answers an hour (95 %: 77-186), 20 in 10 min, 2 more after its end (needs 100): holds"
        );
        assert_eq!(
            told(20, 0, 121),
            "120 right answers an hour (95 %: 77-186), 20 in 10 min (needs 121): does not hold"
        );
    }

    #[test]
    fn a_rate_below_the_floor_is_never_rounded_up_to_it() {
        let seen = |right| Throughput::new(right, 3_601_000_000).unwrap();
        assert_eq!(hourly(seen(60), 60), "59.9");
        assert_eq!(hourly(seen(61), 60), "61");
    }
}
