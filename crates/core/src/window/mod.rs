//! Windows of local time: when bursts are due ([`plan`](mod@plan)), what happens to each as time goes by
//! ([`runtime`]), where several bursts of one window lie ([`spread`]), and which zone database to believe
//! ([`release`]).
//!
//! Nothing here reads a clock or a file: zones, instants and clock readings are arguments.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Time;
use thiserror::Error;

pub mod alive;
pub mod bursts;
pub mod plan;
pub mod release;
pub mod runtime;
pub mod spread;

pub use bursts::{BurstsError, PlannedBurst};
pub use plan::{Calendar, Flag, PlanError, PlannedWindow, plan};

/// Length of a window when nothing else is said, seconds (90 min).
pub const DEFAULT_LENGTH_S: u32 = 90 * 60;

/// A local time of day that begins a window. Written `16:00`; seconds show only where there are any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalTime(Time);

/// A text that is no local time of day.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is no time of day")]
pub struct BadLocalTime(pub String);

impl BadLocalTime {
    /// The next thing to try.
    pub fn hint(&self) -> String {
        "write hours and minutes with two digits each, from \"00:00\" to \"23:59\"".to_owned()
    }
}

impl LocalTime {
    /// Hour (0 to 23) and minute (0 to 59); `None` outside these.
    pub fn new(hour: u8, minute: u8) -> Option<Self> {
        Self::with_second(hour, minute, 0)
    }

    fn with_second(hour: u8, minute: u8, second: u8) -> Option<Self> {
        let part = |n: u8| i8::try_from(n).ok();
        Time::new(part(hour)?, part(minute)?, part(second)?, 0).ok().map(Self)
    }

    /// The same as a time of jiff.
    pub const fn time(self) -> Time {
        self.0
    }

    /// Seconds since local midnight by the dial, 0 to 86,399.
    pub fn second_of_day(self) -> u32 {
        let part = |n: i8| u32::from(n.unsigned_abs());
        part(self.0.hour()) * 3600 + part(self.0.minute()) * 60 + part(self.0.second())
    }
}

impl From<Time> for LocalTime {
    /// Fractions of a second are dropped: no window begins at one.
    fn from(time: Time) -> Self {
        Self(time.with().subsec_nanosecond(0).build().unwrap_or(time))
    }
}

impl FromStr for LocalTime {
    type Err = BadLocalTime;

    /// Reads `HH:MM` or `HH:MM:SS`, two digits each. `24:00`, `9:00` and a leap second (`:60`) are refused: each would
    /// be a second spelling of another time.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let two = |part: &str| match part.as_bytes() {
            [a @ b'0'..=b'9', b @ b'0'..=b'9'] => Some((a - b'0') * 10 + (b - b'0')),
            _ => None,
        };
        let parts: Option<Vec<u8>> = text.split(':').map(two).collect();
        match parts.as_deref() {
            Some([hour, minute]) => Self::new(*hour, *minute),
            Some([hour, minute, second]) => Self::with_second(*hour, *minute, *second),
            _ => None,
        }
        .ok_or_else(|| BadLocalTime(text.to_owned()))
    }
}

impl fmt::Display for LocalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hour, minute, second) = (self.0.hour(), self.0.minute(), self.0.second());
        match second {
            0 => write!(f, "{hour:02}:{minute:02}"),
            _ => write!(f, "{hour:02}:{minute:02}:{second:02}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_is_written_as_it_is_read() {
        for text in ["00:00", "09:05", "16:00", "23:59", "23:59:59"] {
            assert_eq!(text.parse::<LocalTime>().unwrap().to_string(), text);
        }
        assert_eq!("01:02:03".parse::<LocalTime>().unwrap().second_of_day(), 3_723);
        assert_eq!(LocalTime::from(Time::constant(16, 0, 0, 999)), "16:00".parse().unwrap());
    }

    #[test]
    fn what_is_no_time_of_day_is_refused_and_named() {
        for text in ["24:00", "9:00", "16", "16:60", "16:00:60", "16:00:00:00", "16h00", "+1:00", "１6:00", ""] {
            let error = text.parse::<LocalTime>().unwrap_err();
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}
