//! `[lane.price]`: what tokens cost, and what they cost at stated hours: some APIs are dearer in the hours of their peak.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::calendar::ClockTime;
use super::money::Usd;

/// Minutes of a day by the clock.
const DAY_MINUTES: u32 = 24 * 60;

/// Price by token, US dollars for a million tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Prompt tokens that no cache served, US dollars for a million.
    pub input_usd_per_mtok: Usd,
    /// Prompt tokens read from the prefix cache; without it they cost as much as the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input_usd_per_mtok: Option<Usd>,
    /// Generated tokens, reasoning included.
    pub output_usd_per_mtok: Usd,
    /// Hours with a price of their own, at most 48, all in one zone and none over another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hours: Vec<PriceHours>,
}

/// Hours of the week with a price of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceHours {
    /// Local begin; belongs to the range.
    pub from: ClockTime,
    /// Local end; no longer belongs to it. At or before `from` it is that of the next day.
    pub to: ClockTime,
    /// IANA zone of both, as the lane's operator states it.
    pub zone: String,
    /// Days of the week on which the range begins, as ISO numbers: 1 is Monday, 7 is Sunday.
    #[serde(default = "every_day")]
    pub days: Vec<u8>,
    /// Prompt tokens that no cache served, US dollars for a million, in these hours.
    pub input_usd_per_mtok: Usd,
    /// Prompt tokens read from the prefix cache, in these hours; without it they cost as much as the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input_usd_per_mtok: Option<Usd>,
    /// Generated tokens, reasoning included, in these hours.
    pub output_usd_per_mtok: Usd,
}

/// The prices that hold at one instant, US dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriceRow {
    /// Prompt tokens that no cache served.
    pub input_usd_per_mtok: Usd,
    /// Prompt tokens read from the prefix cache: as stated, else as much as the others.
    pub cached_input_usd_per_mtok: Usd,
    /// Generated tokens, reasoning included.
    pub output_usd_per_mtok: Usd,
}

fn every_day() -> Vec<u8> {
    (1..=7).collect()
}

impl Price {
    /// The prices at an instant: those of the range of hours that it falls into, else those of all other hours.
    ///
    /// * `zones`: looks a zone up by its name; pure code has no zone database.
    ///
    /// `None` where `zones` does not know a zone of the hours: then no price is known.
    pub fn at(&self, instant: Timestamp, zones: &dyn Fn(&str) -> Option<TimeZone>) -> Option<PriceRow> {
        for hours in &self.hours {
            let local = zones(&hours.zone)?.to_datetime(instant);
            let minute = u32::from(local.hour().unsigned_abs()) * 60 + u32::from(local.minute().unsigned_abs());
            if hours.hold(local.weekday().to_monday_one_offset().unsigned_abs(), minute) {
                return Some(hours.row());
            }
        }
        Some(self.other_hours())
    }

    /// The prices of all hours that have none of their own.
    pub fn other_hours(&self) -> PriceRow {
        PriceRow {
            input_usd_per_mtok: self.input_usd_per_mtok,
            cached_input_usd_per_mtok: self.cached_input_usd_per_mtok.unwrap_or(self.input_usd_per_mtok),
            output_usd_per_mtok: self.output_usd_per_mtok,
        }
    }
}

impl PriceHours {
    /// The prices of these hours.
    pub fn row(&self) -> PriceRow {
        PriceRow {
            input_usd_per_mtok: self.input_usd_per_mtok,
            cached_input_usd_per_mtok: self.cached_input_usd_per_mtok.unwrap_or(self.input_usd_per_mtok),
            output_usd_per_mtok: self.output_usd_per_mtok,
        }
    }

    /// True at that local minute of the day (0 to 1439) of that day of the week (1 is Monday).
    fn hold(&self, weekday: u8, minute: u32) -> bool {
        let (from, to) = (self.from.minute_of_day(), self.to.minute_of_day());
        let day_before = if weekday == 1 { 7 } else { weekday - 1 };
        if from < to {
            return self.days.contains(&weekday) && (from..to).contains(&minute);
        }
        self.days.contains(&weekday) && minute >= from || self.days.contains(&day_before) && minute < to
    }

    /// The range on each of its days as minutes of the week: begin (0 to 10,079; 0 is Monday 00:00) and length.
    pub(super) fn in_week(&self) -> impl Iterator<Item = (u32, u32)> {
        let (from, to) = (self.from.minute_of_day(), self.to.minute_of_day());
        let length = if from < to { to - from } else { DAY_MINUTES - from + to };
        self.days.iter().map(move |day| ((u32::from(*day) + 6) % 7 * DAY_MINUTES + from, length))
    }
}

/// True when two ranges of the week ([`PriceHours::in_week`]) have a minute in common.
pub(super) fn overlap((a, a_length): (u32, u32), (b, b_length): (u32, u32)) -> bool {
    const WEEK_MINUTES: u32 = 7 * DAY_MINUTES;
    // from the begin of the one to the begin of the other, round the week
    (b + WEEK_MINUTES - a) % WEEK_MINUTES < a_length || (a + WEEK_MINUTES - b) % WEEK_MINUTES < b_length
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn price(hours: &str) -> Price {
        toml::from_str(&format!("input_usd_per_mtok = 1\noutput_usd_per_mtok = 4\nhours = [{hours}]")).unwrap()
    }

    fn range(from: &str, to: &str, rest: &str) -> String {
        format!("{{ from = '{from}', to = '{to}', zone = 'Z', input_usd_per_mtok = 2, output_usd_per_mtok = 8{rest} }}")
    }

    /// Price of the prompt at that instant, in whole dollars; the zone is eight hours ahead of UTC.
    fn input_at(price: &Price, instant: &str) -> u64 {
        let zones = |_: &str| Some(TimeZone::fixed(jiff::tz::offset(8)));
        price.at(instant.parse().unwrap(), &zones).unwrap().input_usd_per_mtok.micro_usd() / 1_000_000
    }

    #[test]
    fn hours_have_a_price_from_their_first_minute_to_the_one_before_their_last() {
        let price = price(&range("08:30", "18:30", ""));
        // 08:30 there is 00:30 UTC, 18:30 there is 10:30 UTC
        for (instant, dollars) in [
            ("2026-12-01T00:29:59Z", 1),
            ("2026-12-01T00:30:00Z", 2),
            ("2026-12-01T10:29:59.999Z", 2),
            ("2026-12-01T10:30:00Z", 1),
        ] {
            assert_eq!(input_at(&price, instant), dollars, "{instant}");
        }
    }

    #[test]
    fn hours_over_midnight_belong_to_the_day_on_which_they_begin() {
        // Friday is day 5; 2026-12-04 is a Friday
        let price = price(&range("22:00", "06:00", ", days = [5]"));
        for (instant, dollars) in [
            ("2026-12-04T05:59:00+08:00", 1),
            ("2026-12-04T22:00:00+08:00", 2),
            ("2026-12-05T05:59:00+08:00", 2),
            ("2026-12-05T06:00:00+08:00", 1),
            ("2026-12-05T22:00:00+08:00", 1),
        ] {
            assert_eq!(input_at(&price, instant), dollars, "{instant}");
        }
    }

    #[test]
    fn hours_that_end_where_they_begin_last_a_whole_day() {
        let sunday = price(&range("00:00", "00:00", ", days = [7]"));
        for (instant, dollars) in
            [("2026-12-05T23:59:00+08:00", 1), ("2026-12-06T12:00:00+08:00", 2), ("2026-12-07T00:00:00+08:00", 1)]
        {
            assert_eq!(input_at(&sunday, instant), dollars, "{instant}");
        }
        let nine = price(&range("09:00", "09:00", ", days = [7]"));
        assert_eq!(input_at(&nine, "2026-12-07T08:59:00+08:00"), 2, "Monday morning belongs to the range of Sunday");
    }

    #[test]
    fn cached_tokens_cost_as_much_as_others_where_nothing_else_is_stated() {
        let price = price(&range("00:00", "00:00", ", cached_input_usd_per_mtok = 0"));
        let [one, nothing] = [1_000_000, 0].map(|micro| Usd::from_micro_usd(micro).unwrap());
        assert_eq!(price.other_hours().cached_input_usd_per_mtok, one);
        assert_eq!(price.hours[0].row().cached_input_usd_per_mtok, nothing);
    }

    #[test]
    fn in_a_zone_that_nobody_knows_there_is_no_price() {
        let noon: Timestamp = "2026-12-01T12:00:00Z".parse().unwrap();
        assert_eq!(price(&range("08:30", "18:30", "")).at(noon, &|_| None), None);
        assert_eq!(price("").at(noon, &|_| None), Some(price("").other_hours()), "without hours no zone is asked for");
    }

    proptest! {
        /// The check that keeps ranges apart and the look-up at an instant must mean the same minutes.
        #[test]
        fn two_ranges_overlap_exactly_where_some_minute_of_the_week_has_both_prices(
            a in (0..24_i8, 0..24_i8, proptest::sample::subsequence((1..=7_u8).collect::<Vec<_>>(), 0..=7)),
            b in (0..24_i8, 0..24_i8, proptest::sample::subsequence((1..=7_u8).collect::<Vec<_>>(), 0..=7)),
        ) {
            let [a, b] = [a, b].map(|(from, to, days)| {
                let rest = format!(", days = {days:?}");
                price(&range(&format!("{from:02}:00"), &format!("{to:02}:00"), &rest)).hours.remove(0)
            });
            let both = (1..=7_u8).any(|day| (0..24).any(|hour| a.hold(day, hour * 60) && b.hold(day, hour * 60)));
            prop_assert_eq!(a.in_week().any(|x| b.in_week().any(|y| overlap(x, y))), both);
        }
    }
}
