//! Dates and times of day as the configuration writes them: `2026-12-01`, `16:00`. Civil, without a zone.

use std::fmt;
use std::str::FromStr;

use jiff::civil;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How the key begins under which TOML's own dates and times arrive (`day = 2026-12-01`, without quotes).
pub(super) const TOML_DATETIME: &str = "$__toml";

/// A date of the calendar, written `YYYY-MM-DD` (with or without quotes). Years 1900 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(civil::Date);

/// A time of day to the minute, written `HH:MM` from `00:00` to `23:59`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClockTime(civil::Time);

/// A text that is no date.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadDay {
    /// Not of the form `YYYY-MM-DD`.
    #[error("`{0}` is no date: write YYYY-MM-DD, as in 2026-12-01")]
    Form(String),
    /// Of the right form, but not on the calendar.
    #[error("`{0}` is not on the calendar: there is no such day")]
    NoSuchDay(String),
}

/// A text that is no time of day.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no time of day: write \"HH:MM\" from \"00:00\" to \"23:59\"")]
pub struct BadClockTime(pub String);

/// `None` unless the text is so many digits and nothing else.
fn digits<T: FromStr>(text: &str, count: usize) -> Option<T> {
    (text.len() == count && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

impl Day {
    /// The date.
    pub const fn date(self) -> civil::Date {
        self.0
    }
}

impl ClockTime {
    /// Full or other minutes of a day; `None` outside `00:00` to `23:59`.
    pub fn new(hour: i8, minute: i8) -> Option<Self> {
        civil::Time::new(hour, minute, 0, 0).ok().map(Self)
    }

    /// The time of day.
    pub const fn time(self) -> civil::Time {
        self.0
    }

    /// Minutes since midnight by the clock, 0 to 1439.
    pub fn minute_of_day(self) -> u32 {
        u32::from(self.0.hour().unsigned_abs()) * 60 + u32::from(self.0.minute().unsigned_abs())
    }
}

impl FromStr for Day {
    type Err = BadDay;
    fn from_str(text: &str) -> Result<Self, BadDay> {
        let form = || BadDay::Form(text.to_owned());
        let mut parts = text.split('-');
        let (Some(year), Some(month), Some(day), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(form());
        };
        let (Some(year), Some(month), Some(day)) = (digits::<i16>(year, 4), digits(month, 2), digits(day, 2)) else {
            return Err(form());
        };
        if year < 1900 {
            return Err(BadDay::NoSuchDay(text.to_owned()));
        }
        civil::Date::new(year, month, day).map(Self).map_err(|_| BadDay::NoSuchDay(text.to_owned()))
    }
}

impl FromStr for ClockTime {
    type Err = BadClockTime;
    fn from_str(text: &str) -> Result<Self, BadClockTime> {
        let read = || {
            let (hour, minute) = text.split_once(':')?;
            Self::new(digits(hour, 2)?, digits(minute, 2)?)
        };
        read().ok_or_else(|| BadClockTime(text.to_owned()))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.0.year(), self.0.month(), self.0.day())
    }
}

impl fmt::Display for ClockTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0.hour(), self.0.minute())
    }
}

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for ClockTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Date;
        impl<'de> Visitor<'de> for Date {
            type Value = Day;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a date such as \"2026-12-01\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Day, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Day, A::Error> {
                match map.next_entry::<String, String>()? {
                    Some((key, text)) if key.starts_with(TOML_DATETIME) => self.visit_str(&text),
                    _ => Err(de::Error::custom("this is a table: write a date such as \"2026-12-01\"")),
                }
            }
        }
        deserializer.deserialize_any(Date)
    }
}

impl<'de> Deserialize<'de> for ClockTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Time;
        impl<'de> Visitor<'de> for Time {
            type Value = ClockTime;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time of day such as \"16:00\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<ClockTime, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<ClockTime, A::Error> {
                Err(de::Error::custom("write the time of day as text, with quotes and to the minute: \"16:00\""))
            }
        }
        deserializer.deserialize_any(Time)
    }
}

impl JsonSchema for Day {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Date".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "title": "date", "type": "string", "format": "date" })
    }
}

impl JsonSchema for ClockTime {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ClockTime".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "title": "time of day", "type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$" })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_days_of_the_calendar_are_dates() {
        assert_eq!("2028-02-29".parse::<Day>().unwrap().to_string(), "2028-02-29");
        assert_eq!("2026-02-29".parse::<Day>(), Err(BadDay::NoSuchDay("2026-02-29".into())));
        assert_eq!("2026-13-01".parse::<Day>(), Err(BadDay::NoSuchDay("2026-13-01".into())));
        for text in ["2026-2-03", "03.02.2026", "2026-02", "2026-02-03T00:00", "", "+026-02-03"] {
            assert_eq!(text.parse::<Day>(), Err(BadDay::Form(text.into())), "{text}");
        }
    }

    #[test]
    fn a_time_of_day_has_two_digits_each_and_ends_before_midnight() {
        assert_eq!("16:05".parse::<ClockTime>().unwrap().minute_of_day(), 965);
        assert_eq!("00:00".parse::<ClockTime>().unwrap().minute_of_day(), 0);
        for text in ["24:00", "9:00", "16", "16:60", "16:00:00", "-1:00", "4pm", ""] {
            assert!(text.parse::<ClockTime>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_date_may_stand_without_quotes() {
        #[derive(Deserialize)]
        struct When {
            day: Day,
        }
        let bare: When = toml::from_str("day = 2026-12-01").unwrap();
        let quoted: When = toml::from_str("day = \"2026-12-01\"").unwrap();
        assert_eq!(bare.day, quoted.day);
        assert!(toml::from_str::<When>("day = 2026-12-01T16:00:00Z").is_err());
        assert!(toml::from_str::<When>("day = { year = \"2026\" }").is_err());
    }

    proptest! {
        #[test]
        fn a_time_of_day_survives_being_printed_and_read(hour in 0..24_i8, minute in 0..60_i8) {
            let time = ClockTime::new(hour, minute).unwrap();
            prop_assert_eq!(time.to_string().parse::<ClockTime>().unwrap(), time);
        }
    }
}
