//! The clocks that a watcher reads. Behind a trait, so that tests live through days of stepped clocks in no time.

use std::future::Future;
use std::time::Duration;

use jiff::Timestamp;
use peaklane_core::window::runtime::Reading;

/// Clocks, and a way to wait.
pub trait WallClock {
    /// The clocks now, read together.
    fn read(&self) -> Reading;

    /// Waits for a while. May take longer: whoever waits reads the clocks again.
    fn nap(&self, length: Duration) -> impl Future<Output = ()> + Send;
}

/// The clocks of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl WallClock for SystemClock {
    fn read(&self) -> Reading {
        Reading { wall: Timestamp::now(), awake: awake(), alive: alive() }
    }

    fn nap(&self, length: Duration) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(length)
    }
}

#[cfg(unix)]
fn clock(id: rustix::time::ClockId) -> Duration {
    let now = rustix::time::clock_gettime(id);
    // neither clock is ever negative
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Stands still while the machine is suspended: Linux `CLOCK_MONOTONIC`, and what Rust reads elsewhere.
#[cfg(target_os = "linux")]
fn awake() -> Duration {
    clock(rustix::time::ClockId::Monotonic)
}

#[cfg(not(target_os = "linux"))]
fn awake() -> Duration {
    use std::sync::OnceLock;
    use std::time::Instant;
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    BEGIN.get_or_init(Instant::now).elapsed()
}

/// Goes on in suspension: Linux `CLOCK_BOOTTIME`, macOS `CLOCK_MONOTONIC`.
#[cfg(target_os = "linux")]
fn alive() -> Option<Duration> {
    Some(clock(rustix::time::ClockId::Boottime))
}

#[cfg(target_os = "macos")]
fn alive() -> Option<Duration> {
    Some(clock(rustix::time::ClockId::Monotonic))
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn alive() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clocks_of_the_machine_never_go_back_and_suspension_is_counted_by_one_of_them() {
        let (first, second) = (SystemClock.read(), SystemClock.read());
        assert!(second.awake >= first.awake && second.alive >= first.alive);
        if let Some(alive) = second.alive {
            assert!(alive + Duration::from_secs(1) >= second.awake, "{second:?}");
        }
    }
}
