//! The time that a user waited for one attempt: from its intended start, over all tries and waits.

use super::StatsError;

/// One try of an attempt on the attempt's own time line, microseconds from any common zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrySpan {
    /// When the try began (its request sent).
    pub begin_us: u64,
    /// First token that is no reasoning, if it was seen.
    pub first_answer_us: Option<u64>,
    /// Last byte of the answer, or the moment of the failure.
    pub end_us: u64,
}

/// The times of an attempt, as its user saw them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptTimes {
    /// Intended start to the end of the last try, microseconds.
    pub latency_us: u64,
    /// Tries after the first.
    pub retries: u32,
    /// Intended start to the first answer of the last try, microseconds.
    pub first_answer_us: Option<u64>,
    /// Begin of the last try to its first answer, microseconds: what a tool that forgets retries would report.
    pub first_answer_of_last_try_us: Option<u64>,
}

/// Adds up an attempt. The intended start counts, not the first request: a client that starts late, or waits before a
/// retry, must not hide it (coordinated omission).
///
/// * `intended_us`: intended start on the time line of the tries; a try before it counts as beginning at it.
/// * `tries`: in order; the last one is the one whose answer counts.
///
/// # Errors
/// [`StatsError::NoSamples`] without any try.
///
/// Source: Tene, "How not to measure latency" (coordinated omission).
pub fn attempt_times(intended_us: u64, tries: &[TrySpan]) -> Result<AttemptTimes, StatsError> {
    let last = tries.last().ok_or(StatsError::NoSamples)?;
    Ok(AttemptTimes {
        latency_us: last.end_us.saturating_sub(intended_us),
        retries: u32::try_from(tries.len() - 1).unwrap_or(u32::MAX),
        first_answer_us: last.first_answer_us.map(|at| at.saturating_sub(intended_us)),
        first_answer_of_last_try_us: last.first_answer_us.map(|at| at.saturating_sub(last.begin_us)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_start_and_a_wait_before_a_retry_are_part_of_the_latency() {
        // Intended at 100, sent at 150, failed at 200; again at 500, first answer at 600, whole at 900.
        let tries = [
            TrySpan { begin_us: 150, first_answer_us: None, end_us: 200 },
            TrySpan { begin_us: 500, first_answer_us: Some(600), end_us: 900 },
        ];
        let times = attempt_times(100, &tries).unwrap();
        assert_eq!(times.latency_us, 800);
        assert_eq!(times.retries, 1);
        assert_eq!(times.first_answer_us, Some(500));
        assert_eq!(times.first_answer_of_last_try_us, Some(100));
        assert_eq!(attempt_times(0, &[]), Err(StatsError::NoSamples));
    }
}
