//! The client's own lag: how late this process wakes up when it asked to be woken.
//!
//! A busy client hears of bytes late and would pass its own slowness off as the lane's. A small task asks to be woken
//! every few milliseconds on the same event loop that reads the streams; how much later than asked it runs is the lag
//! that any stream may have suffered at that moment. The timer's own grain (1 ms) is part of the figure.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Time between two wake-ups.
const EVERY: Duration = Duration::from_millis(5);
/// Lags below this are within the timer's grain and the scheduler's; they are counted, but not kept one by one.
const WORTH_KEEPING: Duration = Duration::from_millis(2);
/// Most single lags that are kept (the newest): five minutes of a client that is late every time.
const KEPT: usize = 60_000;

#[derive(Debug)]
struct Seen {
    /// Counts by lag in steps of 100 us up to 100 ms; the last one holds everything beyond.
    counts: Vec<u64>,
    largest: Duration,
    /// Moments of late wake-ups and how late they were.
    late: VecDeque<(Instant, Duration)>,
    /// The wake-up that is due: while it is overdue, the lag is going on.
    due: Instant,
}

const STEP_US: u64 = 100;
const STEPS: usize = 1_001;

/// A running probe; it stops when dropped.
#[derive(Debug)]
pub struct LagProbe {
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

impl Drop for LagProbe {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl LagProbe {
    /// Starts on the current event loop.
    pub fn start() -> Self {
        let first = Instant::now() + EVERY;
        let seen = Arc::new(Mutex::new(Seen {
            counts: vec![0; STEPS],
            largest: Duration::ZERO,
            late: VecDeque::new(),
            due: first,
        }));
        let shared = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            let mut due = first;
            loop {
                tokio::time::sleep_until(due).await;
                let now = Instant::now();
                let lag = now.saturating_duration_since(due);
                due = now + EVERY;
                let mut seen = lock(&shared);
                seen.due = due;
                let step = (lag.as_micros() as u64 / STEP_US) as usize;
                seen.counts[step.min(STEPS - 1)] += 1;
                seen.largest = seen.largest.max(lag);
                if lag >= WORTH_KEEPING {
                    if seen.late.len() == KEPT {
                        seen.late.pop_front();
                    }
                    seen.late.push_back((now, lag));
                }
            }
        });
        Self { seen, task }
    }

    /// Longest lag between two moments, microseconds. Lags under 2 ms are within the timer's grain and count as 0.
    pub fn between(&self, from: Instant, to: Instant) -> u64 {
        let seen = lock(&self.seen);
        let known = seen
            .late
            .iter()
            .rev()
            .take_while(|(at, _)| *at >= from)
            // A late wake-up covers the whole time from when it was due.
            .filter(|(at, lag)| *at - *lag <= to)
            .map(|(_, lag)| *lag)
            .max();
        let going_on = to.saturating_duration_since(seen.due);
        let longest = known.unwrap_or_default().max(if going_on >= WORTH_KEEPING { going_on } else { Duration::ZERO });
        longest.as_micros() as u64
    }

    /// p50, p99 and largest lag since the start, microseconds (the first two in steps of 100). `None` before the
    /// first wake-up.
    pub fn figures(&self) -> Option<[u64; 3]> {
        let seen = lock(&self.seen);
        let total: u64 = seen.counts.iter().sum();
        let rank = |percent: u64| {
            let wanted = (total * percent).div_ceil(100).max(1);
            let mut sum = 0;
            let step = seen.counts.iter().position(|count| {
                sum += count;
                sum >= wanted
            });
            step.map(|s| (s as u64 * STEP_US).min(seen.largest.as_micros() as u64))
        };
        (total > 0).then_some([rank(50)?, rank(99)?, seen.largest.as_micros() as u64])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_punctual_loop_has_no_lag() {
        let probe = LagProbe::start();
        let begin = Instant::now();
        assert_eq!(probe.figures(), None);
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(probe.between(begin, Instant::now()), 0);
        assert!(probe.figures().is_some_and(|[p50, _, largest]| p50 == 0 && largest <= 1_000));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stalled_loop_shows_in_the_tries_that_it_touched_and_in_no_other() {
        let probe = LagProbe::start();
        tokio::time::sleep(Duration::from_millis(20)).await;
        let before = Instant::now();
        // The clock jumps while the loop could not run: exactly what a stall looks like from inside.
        tokio::time::advance(Duration::from_millis(80)).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        let after = Instant::now();
        assert!(probe.between(before, after) >= 75_000, "{}", probe.between(before, after));
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(probe.between(after + Duration::from_millis(10), Instant::now()), 0);
    }
}
