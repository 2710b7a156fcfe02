//! Money: whole micro-dollars, read from decimal text without a float on the way.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An amount of US dollars in whole micro-dollars, 0 to [`Usd::MAX`]. Written `0.15` or `"0.15"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usd(u64);

impl Usd {
    /// The largest price that a configuration may name: a million dollars.
    pub const MAX: Self = Self(1_000_000_000_000);

    /// So many micro-dollars; `None` beyond [`Usd::MAX`].
    pub const fn from_micro_usd(micro: u64) -> Option<Self> {
        if micro <= Self::MAX.0 { Some(Self(micro)) } else { None }
    }

    /// Micro-dollars.
    pub const fn micro_usd(self) -> u64 {
        self.0
    }
}

/// Why a text is no price.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPrice {
    /// Below zero.
    #[error("`{0}` is negative: a price is 0 or more")]
    Negative(String),
    /// Not a decimal number.
    #[error("`{0}` is no price in US dollars: write a plain decimal number such as 0.15")]
    Malformed(String),
    /// More than six decimals that matter.
    #[error("`{0}` is finer than a millionth of a dollar")]
    TooFine(String),
    /// More than [`Usd::MAX`].
    #[error("`{0}` is more than a million dollars")]
    TooLarge(String),
}

impl FromStr for Usd {
    type Err = BadPrice;

    fn from_str(text: &str) -> Result<Self, BadPrice> {
        let malformed = || BadPrice::Malformed(text.to_owned());
        let plain = text.trim();
        if plain.starts_with('-') {
            return Err(BadPrice::Negative(text.to_owned()));
        }
        let (whole, fraction) = plain.split_once('.').unwrap_or((plain, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(fraction) {
            return Err(malformed());
        }
        let fraction = fraction.trim_end_matches('0');
        if fraction.len() > 6 {
            return Err(BadPrice::TooFine(text.to_owned()));
        }
        let too_large = || BadPrice::TooLarge(text.to_owned());
        let whole: u64 = whole.parse().map_err(|_| too_large())?;
        // "15" of 0.15 is filled up to "150000" millionths
        let micro: u64 = format!("{fraction:0<6}").parse().map_err(|_| malformed())?;
        whole
            .checked_mul(1_000_000)
            .and_then(|w| w.checked_add(micro))
            .and_then(Self::from_micro_usd)
            .ok_or_else(too_large)
    }
}

impl fmt::Display for Usd {
    /// Plain decimal without trailing zeros: `0.15`, `3`, `0.000001`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, micro) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if micro == 0 {
            return write!(f, "{whole}");
        }
        let digits = format!("{micro:06}");
        write!(f, "{whole}.{}", digits.trim_end_matches('0'))
    }
}

impl Serialize for Usd {
    /// As decimal text, so that no reader turns it into a float.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Price;
        impl Visitor<'_> for Price {
            type Value = Usd;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a price in US dollars, such as 0.15 or \"0.15\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Usd, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Usd, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Usd, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Usd, E> {
                // `{}` prints the shortest decimal that reads back as the same float: the digits that were written
                self.visit_str(&number.to_string())
            }
        }
        deserializer.deserialize_any(Price)
    }
}

impl JsonSchema for Usd {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Usd".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "title": "price", "type": ["number", "string"], "minimum": 0, "pattern": "^[0-9]+(\\.[0-9]+)?$" })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Deserialize)]
    struct Priced {
        price: Usd,
    }

    fn micro(toml: &str) -> Result<u64, String> {
        toml::from_str::<Priced>(toml).map(|p| p.price.micro_usd()).map_err(|e| e.message().to_owned())
    }

    #[test]
    fn a_price_is_the_digits_that_were_written_and_not_the_nearest_float() {
        assert_eq!(micro("price = 0.15"), Ok(150_000));
        assert_eq!(micro("price = \"0.15\""), Ok(150_000));
        assert_eq!(micro("price = 0.0375"), Ok(37_500));
        assert_eq!(micro("price = 3"), Ok(3_000_000));
        assert_eq!(micro("price = 0.000001"), Ok(1));
        assert_eq!(micro("price = 1e-6"), Ok(1));
        assert_eq!(micro("price = 0"), Ok(0));
        assert_eq!(micro("price = 1000000"), Ok(1_000_000_000_000));
    }

    #[test]
    fn a_price_is_never_negative_nor_infinite_nor_no_number() {
        assert!(micro("price = -0.5").unwrap_err().contains("negative"));
        assert!(micro("price = nan").unwrap_err().contains("no price"));
        assert!(micro("price = inf").unwrap_err().contains("no price"));
        assert!(micro("price = -inf").unwrap_err().contains("negative"));
        assert!(micro("price = 0.0000001").unwrap_err().contains("finer"));
        assert!(micro("price = 1000000.01").unwrap_err().contains("million"));
        assert!(micro("price = \"$3\"").unwrap_err().contains("no price"));
        assert!(micro("price = true").unwrap_err().contains("a price in US dollars"));
    }

    proptest! {
        #[test]
        fn a_price_survives_being_printed_and_read(micro in 0..=Usd::MAX.micro_usd()) {
            let price = Usd::from_micro_usd(micro).unwrap();
            prop_assert_eq!(price.to_string().parse::<Usd>().unwrap(), price);
        }

        #[test]
        fn a_price_written_as_a_bare_number_is_the_same_as_in_quotes(micro in 0..=Usd::MAX.micro_usd()) {
            let text = Usd::from_micro_usd(micro).unwrap().to_string();
            prop_assert_eq!(super::tests::micro(&format!("price = {text}")), Ok(micro));
        }
    }
}
