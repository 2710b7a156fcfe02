//! Compressed time: how much real time one simulated second takes.

use std::time::Duration;

/// Real time per simulated second.
///
/// A lane plans in simulated time and is served in real time; whoever measures it multiplies back with
/// [`Scale::simulated`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    nanos_per_second: u64,
}

impl Scale {
    /// A simulated second is a second.
    pub const REAL: Self = Self { nanos_per_second: 1_000_000_000 };

    /// A simulated second takes 20 ms: the scale of the demo.
    ///
    /// Why not less: timers tick in milliseconds and a busy machine stalls a process for tens of them. At 20 ms a floor
    /// of 25 s is 500 ms of real time, and the demo's lanes stay away from it by 250 ms on either side.
    pub const DEMO: Self = Self { nanos_per_second: 20_000_000 };

    /// A scale of `real` per simulated second. `None` below 1 ms, which timers cannot keep, and above 1 s, which
    /// would be slower than the thing itself.
    pub fn per_second(real: Duration) -> Option<Self> {
        let nanos_per_second = u64::try_from(real.as_nanos()).ok()?;
        (1_000_000..=1_000_000_000).contains(&nanos_per_second).then_some(Self { nanos_per_second })
    }

    /// Real time that a span of simulated time takes, rounded down to nanoseconds.
    pub fn real(self, simulated: Duration) -> Duration {
        from_nanos(simulated.as_nanos() * u128::from(self.nanos_per_second) / 1_000_000_000)
    }

    /// Simulated time that a span of real time stands for, rounded down to nanoseconds.
    pub fn simulated(self, real: Duration) -> Duration {
        from_nanos(real.as_nanos() * 1_000_000_000 / u128::from(self.nanos_per_second))
    }

    /// Microseconds of real time per simulated second.
    pub fn micros_per_second(self) -> u64 {
        self.nanos_per_second / 1000
    }
}

fn from_nanos(nanos: u128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulated_floor_of_25_seconds_takes_half_a_second_in_the_demo() {
        assert_eq!(Scale::DEMO.real(Duration::from_secs(25)), Duration::from_millis(500));
        assert_eq!(Scale::DEMO.simulated(Duration::from_millis(500)), Duration::from_secs(25));
    }

    #[test]
    fn a_scale_that_timers_cannot_keep_is_refused() {
        assert_eq!(Scale::per_second(Duration::from_micros(999)), None);
        assert_eq!(Scale::per_second(Duration::from_millis(1001)), None);
        assert_eq!(Scale::per_second(Duration::from_secs(1)), Some(Scale::REAL));
    }

    #[test]
    fn the_longest_span_does_not_overflow() {
        assert_eq!(Scale::DEMO.simulated(Duration::MAX), Duration::from_nanos(u64::MAX));
    }
}
