//! `[campaign]`: the days and the local windows in which bursts run.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, MapAccess, Visitor};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::calendar::{ClockTime, Day, TOML_DATETIME};
use super::micros::Micros;
use super::money::Usd;

/// Length of a window where none is written: 90 minutes, or up to the next window where that begins earlier.
pub const DEFAULT_WINDOW_LENGTH: Micros = Micros::from_secs(90 * 60);

/// One day, the longest window.
pub(super) const ONE_DAY: Micros = Micros::from_secs(24 * 3600);

/// When a campaign measures. Local times are those of `time_zone`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Campaign {
    /// First day, `YYYY-MM-DD`. Without it the campaign begins on the day on which it is started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_date: Option<Day>,
    /// Days that count, 1 to 366, after weekends and holidays are taken out.
    pub days: u32,
    /// Local windows, at most 48: a begin (`"16:00"`, 90 minutes long or up to the next window), or a begin and a length
    /// (`{ start = "16:00", length = "2h" }`).
    pub windows: Vec<Window>,
    /// Begin of the window with the peak of your own demand, declared before anything is measured. Without it `16:00`
    /// where the windows are the default four, else none is declared and the worst window observed decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak: Option<ClockTime>,
    /// Measure on working days only.
    pub workdays_only: bool,
    /// Days of the week without work, as ISO numbers: 1 is Monday, 7 is Sunday.
    pub weekend: Vec<u8>,
    /// Dates without work, at most 1,000.
    pub holidays: Vec<Day>,
    /// How late a burst may still start (after a sleep or a restart) before its window is recorded as missed. At most
    /// 24 h.
    pub late_tolerance: Micros,
    /// Bursts in each window, 1 to 60: the first at its begin, more spread over its length.
    pub bursts_per_window: u32,
    /// Most requests of the whole campaign, warm-ups and retries included, 1 or more. At the cap it stops, and says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_requests: Option<u64>,
    /// Most tokens of the whole campaign, prompts and answers together, 1 or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<u64>,
    /// Most that the whole campaign may cost by the prices of its lanes, US dollars; `0` is a campaign that may cost
    /// nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<Usd>,
    /// What `watch` does after the last day: `peak` goes on with the bursts of the peak window, so that triggers have data;
    /// `stop` ends.
    pub after: AfterCampaign,
}

/// What happens once a campaign's days are over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum AfterCampaign {
    /// The bursts of the peak window go on.
    #[default]
    Peak,
    /// Nothing more is measured.
    Stop,
}

impl AfterCampaign {
    /// The stable spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Peak => "peak",
            Self::Stop => "stop",
        }
    }
}

impl Default for Campaign {
    fn default() -> Self {
        Self {
            start_date: None,
            days: 3,
            windows: default_windows(),
            peak: None,
            workdays_only: true,
            weekend: vec![6, 7],
            holidays: Vec::new(),
            late_tolerance: Micros::from_secs(600),
            bursts_per_window: 1,
            budget_requests: None,
            budget_tokens: None,
            budget_usd: None,
            after: AfterCampaign::Peak,
        }
    }
}

/// 09:00, 12:30, 16:00 and 21:00: begin of work, noon, the afternoon overlap of time zones, a quiet hour to compare with.
fn default_windows() -> Vec<Window> {
    [(9, 0), (12, 30), (16, 0), (21, 0)]
        .into_iter()
        .filter_map(|(hour, minute)| ClockTime::new(hour, minute))
        .map(|start| Window { start, length: None })
        .collect()
}

/// A window as it is written. Its effective length is in [`Campaign::windows_in_order`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Local begin.
    pub start: ClockTime,
    /// Length as written, if it is; at most 24 h.
    pub length: Option<Micros>,
}

/// A window with its effective length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSpan {
    /// Local begin.
    pub start: ClockTime,
    /// Length: as written, else 90 minutes or up to the next window.
    pub length: Micros,
}

impl Campaign {
    /// The window that was declared as the peak: as written, or `16:00` with the default windows.
    pub fn declared_peak(&self) -> Option<ClockTime> {
        self.peak.or_else(|| (self.windows == default_windows()).then(|| ClockTime::new(16, 0))?)
    }

    /// The windows from the earliest to the latest, each with its effective length.
    pub fn windows_in_order(&self) -> Vec<WindowSpan> {
        let mut sorted = self.windows.clone();
        sorted.sort_by_key(|w| w.start);
        let spans = sorted.iter().enumerate().map(|(i, window)| {
            let gap = until_next(&sorted, i);
            WindowSpan { start: window.start, length: window.length.unwrap_or(DEFAULT_WINDOW_LENGTH.min(gap)) }
        });
        spans.collect()
    }
}

/// From the begin of one window to the begin of the next, over midnight after the last; 24 h for a single one.
pub(super) fn until_next(sorted: &[Window], index: usize) -> Micros {
    const DAY_MINUTES: u32 = 24 * 60;
    let here = sorted[index].start.minute_of_day();
    let next = sorted[(index + 1) % sorted.len()].start.minute_of_day();
    let minutes = (next + DAY_MINUTES - here) % DAY_MINUTES;
    Micros::from_secs(60 * if minutes == 0 { DAY_MINUTES } else { minutes })
}

impl Serialize for Window {
    /// As short as it may be written: without a length only the begin.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(length) = self.length else { return self.start.serialize(serializer) };
        let mut table = serializer.serialize_struct("Window", 2)?;
        table.serialize_field("start", &self.start)?;
        table.serialize_field("length", &length)?;
        table.end()
    }
}

impl<'de> Deserialize<'de> for Window {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;
        impl<'de> Visitor<'de> for Form {
            type Value = Window;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a window such as \"16:00\" or { start = \"16:00\", length = \"90min\" }")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Window, E> {
                text.parse().map(|start| Window { start, length: None }).map_err(E::custom)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Window, A::Error> {
                let (mut start, mut length) = (None, None);
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "start" => start = Some(map.next_value()?),
                        "length" => length = Some(map.next_value()?),
                        bare if bare.starts_with(TOML_DATETIME) => {
                            return Err(de::Error::custom(
                                "write the begin as text, with quotes and to the minute: \"16:00\"",
                            ));
                        }
                        other => return Err(de::Error::unknown_field(other, &["start", "length"])),
                    }
                }
                let start = start.ok_or_else(|| de::Error::missing_field("start"))?;
                Ok(Window { start, length })
            }
        }
        deserializer.deserialize_any(Form)
    }
}

impl JsonSchema for Window {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Window".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let start = generator.subschema_for::<ClockTime>();
        let length = generator.subschema_for::<Micros>();
        json_schema!({
            "title": "window",
            "description": "A local window: its begin, or its begin and its length.",
            "anyOf": [
                start,
                {
                    "type": "object",
                    "properties": { "start": start, "length": length },
                    "required": ["start"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn campaign(toml: &str) -> Campaign {
        toml::from_str(toml).unwrap()
    }

    fn minutes(campaign: &Campaign) -> Vec<(String, u64)> {
        let spans = campaign.windows_in_order();
        spans.iter().map(|w| (w.start.to_string(), w.length.as_us() / 60_000_000)).collect()
    }

    #[test]
    fn a_window_lasts_ninety_minutes_unless_the_next_begins_earlier_or_its_length_is_written() {
        let written = campaign("windows = [\"16:00\", { start = \"09:00\", length = \"2h\" }, \"12:30\", \"13:15\"]");
        let want = [("09:00", 120), ("12:30", 45), ("13:15", 90), ("16:00", 90)];
        assert_eq!(minutes(&written), want.map(|(start, length)| (start.to_owned(), length)));
    }

    #[test]
    fn a_window_before_midnight_ends_where_the_first_of_the_next_day_begins() {
        let night = campaign("windows = [\"00:30\", \"23:45\"]");
        assert_eq!(minutes(&night), [("00:30".to_owned(), 90), ("23:45".to_owned(), 45)]);
        assert_eq!(minutes(&campaign("windows = [\"23:45\"]")), [("23:45".to_owned(), 90)]);
    }

    #[test]
    fn sixteen_o_clock_is_the_peak_only_where_nobody_chose_other_windows() {
        let peak = |toml: &str| campaign(toml).declared_peak().map(|p| p.to_string());
        assert_eq!(peak(""), Some("16:00".to_owned()));
        assert_eq!(peak("windows = [\"09:00\", \"16:00\"]"), None);
        assert_eq!(peak("windows = [\"09:00\", \"16:00\"]\npeak = \"09:00\""), Some("09:00".to_owned()));
    }
}
