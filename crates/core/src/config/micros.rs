//! A length of time as the configuration writes it: `25s`, `600ms`, `1m30s`, `90min`. Exact: whole microseconds.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A length of time in whole microseconds, at most [`Micros::MAX`]. Written with a unit: `25s`, `600ms`, `1m30s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Micros(u64);

/// Units from the largest down, with their microseconds. The first spelling of a unit is the one that is printed.
const UNITS: [(&[&str], u64); 6] = [
    (&["d"], 86_400_000_000),
    (&["h"], 3_600_000_000),
    (&["m", "min"], 60_000_000),
    (&["s"], 1_000_000),
    (&["ms"], 1_000),
    (&["us"], 1),
];

impl Micros {
    /// The longest time that a configuration may name: 366 days. Nothing waits without a bound.
    pub const MAX: Self = Self(366 * 86_400_000_000);

    /// So many microseconds; `None` beyond [`Micros::MAX`].
    pub const fn from_us(us: u64) -> Option<Self> {
        if us <= Self::MAX.0 { Some(Self(us)) } else { None }
    }

    /// So many whole seconds. For constants.
    ///
    /// # Panics
    /// Beyond [`Micros::MAX`].
    pub const fn from_secs(secs: u32) -> Self {
        let us = secs as u64 * 1_000_000;
        assert!(us <= Self::MAX.0, "a length of time beyond 366 days");
        Self(us)
    }

    /// So many whole milliseconds. For constants.
    pub const fn from_millis(millis: u32) -> Self {
        Self(millis as u64 * 1_000)
    }

    /// Microseconds.
    pub const fn as_us(self) -> u64 {
        self.0
    }

    /// As the standard library's duration.
    pub const fn as_duration(self) -> Duration {
        Duration::from_micros(self.0)
    }

    /// True for no time at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

/// Why a text is no length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLength {
    /// A number without a unit.
    #[error("`{0}` has no unit: write `{0}s`, `{0}ms` or `{0}min`")]
    NoUnit(String),
    /// A unit that is not known.
    #[error(
        "`{unit}` in `{text}` is no unit of time: the units are us, ms, s, min (or m), h, d, as in `25s` or `1m30s`"
    )]
    UnknownUnit {
        /// The whole text.
        text: String,
        /// The part that is no unit.
        unit: String,
    },
    /// A unit twice, or a smaller one before a larger one.
    #[error("the units of `{0}` must come once each and from large to small, as in `1h30m`")]
    Order(String),
    /// Nothing, a sign, or something else than digits before a unit.
    #[error("`{0}` is no length of time: write a number and a unit, as in `25s`, `600ms` or `1m30s`")]
    Malformed(String),
    /// A fraction finer than a microsecond.
    #[error("`{0}` is finer than a microsecond")]
    TooFine(String),
    /// Longer than [`Micros::MAX`].
    #[error("`{0}` is longer than 366 days")]
    TooLong(String),
}

impl FromStr for Micros {
    type Err = BadLength;

    /// Numbers with units from large to small; a number may have a decimal fraction (`1.5s`) as long as whole
    /// microseconds come out.
    fn from_str(text: &str) -> Result<Self, BadLength> {
        let malformed = || BadLength::Malformed(text.to_owned());
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(malformed());
        }
        let mut total: u128 = 0;
        let mut next_unit = 0;
        while !rest.is_empty() {
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
            let (number, tail) = rest.split_at(digits);
            let letters = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
            let (unit, after) = tail.split_at(letters);
            if number.is_empty() {
                return Err(malformed());
            }
            let unit = unit.trim();
            if unit.is_empty() {
                return Err(BadLength::NoUnit(number.to_owned()));
            }
            let Some(at) = UNITS.iter().position(|(names, _)| names.contains(&unit)) else {
                return Err(BadLength::UnknownUnit { text: text.to_owned(), unit: unit.to_owned() });
            };
            if at < next_unit {
                return Err(BadLength::Order(text.to_owned()));
            }
            next_unit = at + 1;
            total += part(number, UNITS[at].1, text)?;
            rest = after;
        }
        u64::try_from(total).ok().and_then(Self::from_us).ok_or_else(|| BadLength::TooLong(text.to_owned()))
    }
}

/// One number times its unit, in microseconds, without a float on the way.
fn part(number: &str, unit_us: u64, text: &str) -> Result<u128, BadLength> {
    let malformed = || BadLength::Malformed(text.to_owned());
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    // twelve digits are far beyond the longest time, and small enough for the products below
    if whole.len() > 12 || fraction.len() > 12 {
        return Err(BadLength::TooLong(text.to_owned()));
    }
    let whole: u128 = whole.parse().map_err(|_| malformed())?;
    let scale = 10_u128.pow(u32::try_from(fraction.len()).map_err(|_| malformed())?);
    let fraction: u128 = fraction.parse().map_err(|_| malformed())?;
    let scaled = fraction * u128::from(unit_us);
    if !scaled.is_multiple_of(scale) {
        return Err(BadLength::TooFine(text.to_owned()));
    }
    Ok(whole * u128::from(unit_us) + scaled / scale)
}

impl fmt::Display for Micros {
    /// The shortest exact spelling with whole numbers, from large to small: `1h30m`, `25s`, `1s500ms`; nothing is `0s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0s");
        }
        let mut left = self.0;
        for (names, us) in UNITS {
            if left >= us {
                write!(f, "{}{}", left / us, names[0])?;
                left %= us;
            }
        }
        Ok(())
    }
}

impl Serialize for Micros {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Micros {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Length;
        impl Visitor<'_> for Length {
            type Value = Micros;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a length of time with its unit, such as \"25s\" or \"600ms\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Micros, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Micros, E> {
                Err(E::custom(bare(number)))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Micros, E> {
                Err(E::custom(bare(number)))
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Micros, E> {
                Err(E::custom(bare(number)))
            }
        }
        // a number is refused: whoever writes 25 means seconds today and milliseconds tomorrow
        fn bare(number: impl fmt::Display) -> String {
            format!("`{number}` has no unit: write \"{number}s\", \"{number}ms\" or \"{number}min\" (with quotes)")
        }
        deserializer.deserialize_any(Length)
    }
}

impl JsonSchema for Micros {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "title": "duration",
            "type": "string",
            "pattern": "^\\s*([0-9.]+\\s*(d|h|min|m|s|ms|us)\\s*)+$",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn us(text: &str) -> u64 {
        text.parse::<Micros>().unwrap().as_us()
    }

    #[test]
    fn a_length_of_time_is_read_exactly() {
        assert_eq!(us("25s"), 25_000_000);
        assert_eq!(us("600ms"), 600_000);
        assert_eq!(us("1m30s"), 90_000_000);
        assert_eq!(us("90min"), 5_400_000_000);
        assert_eq!(us("1.5s"), 1_500_000);
        assert_eq!(us("0.000001s"), 1);
        assert_eq!(us("1h 30min"), 5_400_000_000);
        assert_eq!(us("0s"), 0);
    }

    #[test]
    fn a_length_of_time_without_a_known_unit_in_order_is_refused_with_the_way_to_write_it() {
        let why = |text: &str| text.parse::<Micros>().unwrap_err().to_string();
        assert!(why("25").contains("`25s`"));
        assert!(why("25 parsecs").contains("parsecs"));
        assert!(why("30s1m").contains("large to small"));
        assert!(why("1s1s").contains("once each"));
        assert!(why("0.0000001s").contains("finer"));
        assert!(why("367d").contains("366 days"));
        for text in ["", "-5s", "s", "1..5s", "1.s", ".5s", "999999999999999d"] {
            assert!(text.parse::<Micros>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_length_of_time_survives_being_printed_and_read(us in 0..=Micros::MAX.as_us()) {
            let length = Micros::from_us(us).unwrap();
            prop_assert_eq!(length.to_string().parse::<Micros>().unwrap(), length);
        }

        #[test]
        fn no_text_makes_the_reader_of_lengths_panic(text in ".{0,24}") {
            let _ = text.parse::<Micros>();
        }
    }
}
