//! The border between serving and deciding: who a request is, and the trait of whoever decides what it gets.

use std::fmt;
use std::num::NonZeroUsize;

use peaklane_core::lane::Api;
use serde_json::Value;

use crate::plan::Plan;

/// A simulated day and time of day: what a lane's load depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Moment {
    day: u32,
    minute: u16,
}

impl Moment {
    /// Day `day` (from 0) at `hour`:`minute`. `None` outside 00:00 to 23:59.
    pub fn new(day: u32, hour: u16, minute: u16) -> Option<Self> {
        (hour < 24 && minute < 60).then_some(Self { day, minute: hour * 60 + minute })
    }

    /// Day `day` (from 0) at a time of day written `16:00`. `None` for anything else.
    pub fn parse(day: u32, time: &str) -> Option<Self> {
        let (hour, minute) = time.split_once(':')?;
        let digits = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
        (digits(hour) && digits(minute)).then_some(())?;
        Self::new(day, hour.parse().ok()?, minute.parse().ok()?)
    }

    /// The day, from 0.
    pub fn day(self) -> u32 {
        self.day
    }

    /// Minutes since midnight, 0 to 1439.
    pub fn minute(self) -> u16 {
        self.minute
    }
}

impl Default for Moment {
    /// The first day at 09:00.
    fn default() -> Self {
        Self { day: 0, minute: 9 * 60 }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "day {} {:02}:{:02}", self.day + 1, self.minute / 60, self.minute % 60)
    }
}

/// Which attempt of a burst a request belongs to. Found from the prompt's bytes, so that no special header is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// The moment that the owner of the lane has set.
    pub moment: Moment,
    /// Number of the attempt within the moment, from 0, in order of arrival.
    pub slot: u32,
    /// Number of the try within the attempt: 0 is the first, 1 the first retry.
    pub retry: u32,
    /// The lane has already given a whole answer in this moment: its model is loaded.
    pub warm: bool,
}

/// One request as a lane sees it.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// Whose turn it is.
    pub ticket: Ticket,
    /// API asked.
    pub api: Api,
    /// Model asked for.
    pub model: &'a str,
    /// The whole request.
    pub body: &'a Value,
    /// The credential as it came, for a lane that repeats it; never stored.
    pub credential: Option<&'a str>,
}

/// Headers and body of anything that arrived, for an owner who wants to look.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// HTTP method.
    pub method: &'a http::Method,
    /// Path and query.
    pub target: &'a str,
    /// Headers with credentials in them.
    pub headers: &'a http::HeaderMap,
    /// The body.
    pub body: &'a [u8],
}

/// Decides what each request of one lane gets.
pub trait LaneScript: Send + Sync + 'static {
    /// Models that the lane lists.
    fn models(&self) -> Vec<String>;

    /// Whether it serves a model; one that it does not is refused with 404. By default: the listed ones.
    fn serves(&self, model: &str) -> bool {
        self.models().iter().any(|listed| listed == model)
    }

    /// What this request gets. Must depend on `ask` alone (and on the script's own seed), never on a clock.
    fn plan(&self, ask: &Ask<'_>) -> Plan;

    /// Requests served at once; others wait in order of arrival. `None`: no limit.
    fn slots(&self) -> Option<NonZeroUsize> {
        None
    }

    /// Hears of everything that arrives, before it is answered.
    fn arrived(&self, _arrival: Arrival<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_is_two_digits_a_colon_and_two_digits() {
        assert_eq!(Moment::parse(2, "16:05"), Moment::new(2, 16, 5));
        assert_eq!(Moment::parse(2, "16:05").unwrap().minute(), 965);
        for bad in ["9:00", "24:00", "12:60", "+9:00", "0900", "", "09:00 "] {
            assert_eq!(Moment::parse(0, bad), None, "{bad}");
        }
        assert_eq!(Moment::parse(2, "16:05").unwrap().to_string(), "day 3 16:05");
    }
}
