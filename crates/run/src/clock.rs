//! The wall clock, tied to the monotonic one once per run, so that a clock step cannot bend a latency.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// Wall clock now, milliseconds since the Unix epoch.
pub fn wall_ms() -> i64 {
    wall_us() / 1_000
}

/// Wall clock now, microseconds since the Unix epoch.
pub fn wall_us() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
    }
}

/// A moment of both clocks. Other moments are told from it by the monotonic distance.
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    wall_us: i64,
    mono: Instant,
}

impl Anchor {
    /// Ties the two clocks together now.
    pub fn now() -> Self {
        Self { wall_us: wall_us(), mono: Instant::now() }
    }

    /// The wall time of a monotonic moment, microseconds since the Unix epoch.
    pub fn unix_us(&self, at: Instant) -> i64 {
        if at >= self.mono {
            self.wall_us + (at - self.mono).as_micros() as i64
        } else {
            self.wall_us - (self.mono - at).as_micros() as i64
        }
    }
}

/// `20261130T160000.123456Z`: sortable, fit for file names.
pub fn compact_utc(unix_us: i64) -> String {
    jiff::Timestamp::from_microsecond(unix_us)
        .map(|t| t.strftime("%Y%m%dT%H%M%S.%6fZ").to_string())
        .unwrap_or_else(|_| unix_us.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compact_time_sorts_like_the_time_itself() {
        assert_eq!(compact_utc(1_796_054_400_123_456), "20261130T160000.123456Z");
        assert!(compact_utc(0) < compact_utc(1_000_000));
    }
}
