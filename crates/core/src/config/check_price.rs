//! The rules of a price by hours: in one zone, and never two prices at one time.

use super::check::Found;
use super::error::KeyPath;
use super::price::{Price, overlap};

const MAX_HOURS: usize = 48;

/// Looks at the price that stands at `place`.
pub(super) fn check(price: &Price, place: &KeyPath, found: &mut Found) {
    let list = || [place.clone(), vec!["hours".into()]].concat();
    if price.hours.len() > MAX_HOURS {
        let what = format!("`hours` names {} ranges", price.hours.len());
        return found.key(list(), what, format!("name at most {MAX_HOURS}"));
    }
    for (index, hours) in price.hours.iter().enumerate() {
        let key = |name: &str| [list(), vec![index.into(), name.into()]].concat();
        found.zone(key("zone"), "zone", &hours.zone);
        found.weekdays(&key("days"), "days", &hours.days);
        if hours.days.is_empty() {
            found.key(key("days"), "`days` is empty", "name a day (1 is Monday), or leave `days` out for all");
        }
        // which of two zones is ahead changes with their clocks: ranges can only be held apart in one
        if let Some(first) = price.hours.first().filter(|first| !first.zone.eq_ignore_ascii_case(&hours.zone)) {
            let what = format!("the hours of one lane are in two zones, `{}` and `{}`", first.zone, hours.zone);
            found.key(key("zone"), what, "state them all in the zone in which the lane's operator states them");
            continue;
        }
        let earlier = price.hours[..index]
            .iter()
            .position(|earlier| hours.in_week().any(|here| earlier.in_week().any(|there| overlap(here, there))));
        let itself = own_overlap(hours.in_week().collect());
        if let Some(earlier) = earlier {
            let other = &price.hours[earlier];
            let (from, to) = (hours.from, hours.to);
            let what = format!("the hours {from} to {to} run into the hours {} to {}", other.from, other.to);
            found.key(key("from"), what, "give each hour of a day one price");
        } else if itself {
            let what = format!("`days` of the hours {} to {} names a day twice", hours.from, hours.to);
            found.key(key("days"), what, "name each day once");
        }
    }
}

/// One range lasts a day at most, so that it can only meet itself where a day is named twice.
fn own_overlap(ranges: Vec<(u32, u32)>) -> bool {
    (0..ranges.len()).any(|at| ranges[..at].iter().any(|before| overlap(*before, ranges[at])))
}

#[cfg(test)]
mod tests {
    use super::super::check::tests::{LANE, problem, problems};

    fn lane(hours: &[&str]) -> String {
        let ranges: Vec<String> =
            hours.iter().map(|h| format!("{{ {h}, input_usd_per_mtok = 2, output_usd_per_mtok = 8 }}")).collect();
        let hours = ranges.join(",\n");
        format!("{LANE}[lane.price]\ninput_usd_per_mtok = 1\noutput_usd_per_mtok = 4\nhours = [{hours}]\n")
    }

    const DAY: &str = "from = '08:30', to = '18:30', zone = 'Asia/Shanghai'";

    #[test]
    fn hours_that_touch_or_lie_on_other_days_are_apart() {
        let evening = "from = '18:30', to = '08:30', zone = 'asia/shanghai'";
        assert_eq!(problems(&lane(&[DAY, evening])), [""; 0]);
        let (weekdays, sunday) = (format!("{DAY}, days = [1, 2, 3, 4, 5]"), format!("{DAY}, days = [7]"));
        assert_eq!(problems(&lane(&[&weekdays, &sunday])), [""; 0]);
        assert_eq!(problems(&lane(&["from = '00:00', to = '00:00', zone = 'UTC'"])), [""; 0]);
    }

    #[test]
    fn no_hour_has_two_prices() {
        let told = problem(&lane(&[DAY, "from = '18:29', to = '20:00', zone = 'Asia/Shanghai', days = [3]"]));
        assert!(
            told.starts_with(
                "the hours 18:29 to 20:00 run into the hours 08:30 to 18:30 in [[lane]] 1, `price`, `hours` 2"
            ),
            "{told}"
        );
        // Sunday's night reaches into Monday morning
        let night = "from = '22:00', to = '06:00', zone = 'UTC', days = [7]";
        let monday = "from = '05:00', to = '07:00', zone = 'UTC', days = [1]";
        assert!(problem(&lane(&[night, monday])).contains("05:00 to 07:00 run into the hours 22:00 to 06:00"));
        assert_eq!(problems(&lane(&[night, &monday.replace("[1]", "[2]")])), [""; 0]);
    }

    #[test]
    fn hours_name_their_days_once_and_all_in_one_zone() {
        let with = |days: &str| problem(&lane(&[&format!("{DAY}, days = {days}")]));
        assert!(with("[]").starts_with("`days` is empty"));
        assert!(with("[8]").starts_with("`days` names the day 8"));
        assert!(with("[2, 2]").contains("names a day twice"));
        let zones = problem(&lane(&[DAY, "from = '20:00', to = '21:00', zone = 'Europe/Berlin'"]));
        assert!(zones.contains("in two zones, `Asia/Shanghai` and `Europe/Berlin`"), "{zones}");
        assert!(problem(&lane(&["from = '08:30', to = '18:30', zone = '../x'"])).contains("is no name of a zone"));
        let range = "from = '08:00', to = '08:01', zone = 'UTC', days = [1]";
        assert!(problem(&lane(&[range; 49])).starts_with("`hours` names 49 ranges"));
    }
}
