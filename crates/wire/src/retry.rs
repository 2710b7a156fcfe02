//! The one retry layer: tries become an attempt.
//!
//! Back-off doubles from `base` to `cap` with equal jitter (half fixed, half random), after M. Brooker, "Exponential
//! Backoff And Jitter", 2015. What the server asks for is honoured to the millisecond and jitter only ever added,
//! never taken off. What cannot succeed (quota, key, bad request, wrong format) is not tried again.

use std::time::Duration;

use bytes::Bytes;
use peaklane_core::record::TryRecord;
use tokio::time::Instant;

use crate::client::{Client, Limits, Target, Tried};

/// When and how often to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Most retries (tries beyond the first).
    pub max_retries: u32,
    /// First back-off.
    pub base: Duration,
    /// Longest back-off of our own.
    pub cap: Duration,
    /// Spread waits at random, so that eight refused attempts do not come back as one. Without it a back-off is its whole
    /// length and a wait that a server asks for is kept to the millisecond.
    pub jitter: bool,
    /// Longest wait that a server may ask for; beyond it the attempt ends with the failure at hand.
    pub longest_wait: Duration,
}

impl Default for RetryPolicy {
    /// No retries; 0.5 s to 8 s of back-off, waits of up to 60 s where retries are allowed.
    fn default() -> Self {
        Self {
            max_retries: 0,
            base: Duration::from_millis(500),
            cap: Duration::from_secs(8),
            jitter: true,
            longest_wait: Duration::from_secs(60),
        }
    }
}

impl RetryPolicy {
    /// How long to wait before retry number `retry` (from 1), or `None` when there is to be none. `dice` is in 0..1.
    pub fn wait(&self, record: &TryRecord, retry: u32, dice: f64) -> Option<Duration> {
        if retry > self.max_retries || !record.outcome.retryable() {
            return None;
        }
        match record.retry_after_ms {
            Some(ms) => {
                let asked = Duration::from_millis(ms);
                // Up to a tenth of the base on top, so that eight refused attempts do not come back as one.
                let spread = if self.jitter { dice.clamp(0.0, 1.0) } else { 0.0 };
                (asked <= self.longest_wait).then(|| asked + self.base.mul_f64(spread / 10.0))
            }
            None => {
                let grown = self.base.saturating_mul(1 << (retry - 1).min(16)).min(self.cap);
                let spread = if self.jitter { dice.clamp(0.0, 1.0) } else { 1.0 };
                Some(grown.mul_f64(0.5 + spread / 2.0))
            }
        }
    }
}

/// An attempt: its tries, each with its moments.
#[derive(Debug)]
pub struct Attempted {
    /// At least one.
    pub tries: Vec<Tried>,
}

impl Attempted {
    /// The moment at which the outcome of the attempt was known.
    ///
    /// # Panics
    /// Never: an attempt has at least one try.
    pub fn ended(&self) -> Instant {
        self.tries.last().expect("an attempt has at least one try").ended
    }
}

/// Tries until an answer is whole, nothing more can succeed, or the retries are used up. Each try gets a request id
/// made from `request_id` and its number.
pub async fn attempt(
    client: &Client,
    target: &Target,
    body: &Bytes,
    request_id: Option<&str>,
    limits: &Limits,
    policy: &RetryPolicy,
    mut dice: impl FnMut() -> f64,
) -> Attempted {
    let mut tries: Vec<Tried> = Vec::with_capacity(1);
    loop {
        let number = tries.len() as u32;
        let id = request_id.map(|id| if number == 0 { id.to_owned() } else { format!("{id}-r{number}") });
        let tried = client.try_once(target, body, id.as_deref(), limits).await;
        let wait = policy.wait(&tried.record, number + 1, dice());
        let ended = tried.ended;
        tries.push(tried);
        match wait {
            // From the moment the failure was known, not from the one at which we got round to it.
            Some(wait) => tokio::time::sleep_until(ended + wait).await,
            None => return Attempted { tries },
        }
    }
}

#[cfg(test)]
mod tests {
    use peaklane_core::outcome::Outcome;
    use proptest::prelude::*;

    use super::*;

    fn record(outcome: Outcome, after_ms: Option<u64>) -> TryRecord {
        let mut record = TryRecord::new(outcome);
        record.retry_after_ms = after_ms;
        record
    }

    const POLICY: RetryPolicy = RetryPolicy {
        max_retries: 3,
        base: Duration::from_millis(400),
        cap: Duration::from_secs(1),
        jitter: true,
        longest_wait: Duration::from_secs(60),
    };

    #[test]
    fn back_off_doubles_up_to_its_cap_with_half_of_it_fixed() {
        let waits = |dice: f64| -> Vec<u128> {
            let failed = record(Outcome::ServerError, None);
            (1..=3).map(|n| POLICY.wait(&failed, n, dice).unwrap().as_millis()).collect()
        };
        assert_eq!(waits(0.0), [200, 400, 500]);
        assert_eq!(waits(1.0), [400, 800, 1000]);
    }

    #[test]
    fn without_jitter_waits_are_whole_and_exact() {
        let policy = RetryPolicy { jitter: false, ..POLICY };
        let wait = |outcome, after| policy.wait(&record(outcome, after), 1, 0.3);
        assert_eq!(wait(Outcome::ServerError, None), Some(Duration::from_millis(400)));
        assert_eq!(wait(Outcome::RateLimited, Some(700)), Some(Duration::from_millis(700)));
    }

    #[test]
    fn a_quota_a_refused_key_and_a_success_are_not_tried_again_and_nor_is_a_wait_beyond_reason() {
        for outcome in [Outcome::QuotaExhausted, Outcome::Auth, Outcome::BadRequest, Outcome::BadBody, Outcome::Ok] {
            assert_eq!(POLICY.wait(&record(outcome, Some(1)), 1, 0.5), None, "{outcome}");
        }
        assert_eq!(POLICY.wait(&record(Outcome::RateLimited, Some(61_000)), 1, 0.5), None);
        assert_eq!(POLICY.wait(&record(Outcome::RateLimited, None), 4, 0.5), None);
    }

    proptest! {
        #[test]
        fn a_server_that_asks_for_a_wait_is_never_asked_again_earlier(ms in 0u64..60_000, dice in 0.0f64..1.0) {
            let wait = POLICY.wait(&record(Outcome::RateLimited, Some(ms)), 1, dice).unwrap();
            prop_assert!(wait >= Duration::from_millis(ms) && wait <= Duration::from_millis(ms + 40));
        }
    }
}
