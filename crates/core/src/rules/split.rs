//! A split by hours: one lane until 16:00, another from then on.

use crate::summary::window_order;

/// Hours of the day at which one lane is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HourRange {
    /// Local begin, `09:00`; belongs to the range.
    pub from: String,
    /// Local end, which no longer belongs to it; at or before `from` it is that of the next day.
    pub to: String,
    /// The lane, as an index of whoever asked.
    pub lane: usize,
    /// The windows in which it was measured to hold, in the order of the day.
    pub windows: Vec<String>,
}

/// The hours of a day by lane. The hours between two windows belong to the lane of the former window, the hours after the
/// last one up to the first window of the next day to the lane of the last.
///
/// * `holders`: for each window the lane that is to be used there, in any order; `None`: no lane holds.
///
/// `None` where a window has no lane, and where one lane holds all day: then there is nothing to split.
pub fn ranges_of(holders: &[(String, Option<usize>)]) -> Option<Vec<HourRange>> {
    let mut sorted: Vec<(&str, usize)> =
        holders.iter().map(|(window, lane)| Some((window.as_str(), (*lane)?))).collect::<Option<_>>()?;
    sorted.sort_by(|a, b| window_order(Some(a.0)).cmp(&window_order(Some(b.0))));
    let first = *sorted.first()?;
    if sorted.iter().all(|(_, lane)| *lane == first.1) {
        return None;
    }
    let mut ranges: Vec<HourRange> = Vec::new();
    for (window, lane) in sorted {
        match ranges.last_mut() {
            Some(last) if last.lane == lane => last.windows.push(window.to_owned()),
            last => {
                if let Some(last) = last {
                    window.clone_into(&mut last.to);
                }
                let (from, to) = (window.to_owned(), first.0.to_owned());
                ranges.push(HourRange { from, to, lane, windows: vec![window.to_owned()] });
            }
        }
    }
    // Over midnight: the last lane of the day may be the first one of the next.
    if ranges.len() > 2 && ranges[0].lane == ranges[ranges.len() - 1].lane {
        let early = ranges.remove(0);
        if let Some(last) = ranges.last_mut() {
            last.to = early.to;
            last.windows.splice(0..0, early.windows);
        }
    }
    Some(ranges)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(holders: &[(&str, Option<usize>)]) -> Option<Vec<String>> {
        let holders: Vec<_> = holders.iter().map(|(w, lane)| ((*w).to_owned(), *lane)).collect();
        Some(ranges_of(&holders)?.iter().map(|r| format!("{} {}-{}", r.lane, r.from, r.to)).collect())
    }

    #[test]
    fn the_hours_between_windows_belong_to_the_former_one() {
        let day = [("21:00", Some(1)), ("09:00", Some(0)), ("12:30", Some(0)), ("16:00", Some(1))];
        assert_eq!(told(&day).unwrap(), ["0 09:00-16:00", "1 16:00-09:00"]);
    }

    #[test]
    fn a_lane_that_is_last_of_the_day_and_first_of_the_next_has_one_range_over_midnight() {
        let day = [("09:00", Some(0)), ("16:00", Some(2)), ("21:00", Some(0))];
        assert_eq!(told(&day).unwrap(), ["2 16:00-21:00", "0 21:00-16:00"]);
    }

    #[test]
    fn one_lane_all_day_and_a_window_without_any_leave_nothing_to_split() {
        assert_eq!(told(&[("09:00", Some(0)), ("16:00", Some(0))]), None);
        assert_eq!(told(&[("09:00", Some(0)), ("16:00", None)]), None);
        assert_eq!(told(&[]), None);
    }

    proptest! {
        #[test]
        fn the_ranges_cover_the_day_once_and_each_window_lies_in_its_own_lanes_range(
            lanes in prop::collection::vec(0_usize..3, 1..12),
        ) {
            let holders: Vec<_> = lanes.iter().zip(8..).map(|(l, hour)| (format!("{hour:02}:00"), Some(*l))).collect();
            if let Some(ranges) = ranges_of(&holders) {
                for (at, range) in ranges.iter().enumerate() {
                    prop_assert_eq!(&range.to, &ranges[(at + 1) % ranges.len()].from);
                    for window in &range.windows {
                        let lane = holders.iter().find(|(w, _)| w == window).unwrap().1;
                        prop_assert_eq!(lane, Some(range.lane));
                    }
                }
                prop_assert_eq!(ranges.iter().map(|r| r.windows.len()).sum::<usize>(), holders.len());
            }
        }
    }
}
