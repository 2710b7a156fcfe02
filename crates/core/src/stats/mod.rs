//! Small, citable statistics: rates with their counts, exact ranks, intervals, exact tests.
//!
//! Everything here is integer arithmetic where a threshold is near, and plain floats where only a curve or an interval
//! end comes out. No random numbers and no approximations by simulation: the same counts give the same bits.

pub mod binomial;
pub mod cluster;
pub mod exact;
pub mod holm;
pub mod interval;
pub mod latency;
pub mod normal;
pub mod omnibus;
pub mod quantile;
pub mod rate;
pub mod throughput;

pub use cluster::{effective_rate, pooled_design_effect};
pub use exact::{barnard_two_sided, boschloo_improved, fisher_improved, fisher_two_sided};
pub use holm::holm;
pub use interval::{Clustered, Confidence, Interval, clopper_pearson, clustered_wilson, newcombe, wilson};
pub use latency::{AttemptTimes, TrySpan, attempt_times};
pub use omnibus::omnibus;
pub use quantile::{Portion, RankInterval, linear, nearest_rank, nearest_rank_with_unfinished, quantile_interval};
pub use rate::{PassRate, RetryRate, RetryTally, percent_text};
pub use throughput::{PooledThroughput, Throughput, pooled_throughput};

/// What stops a statistic from being computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StatsError {
    /// There is nothing to take a quantile or a time of.
    #[error("no samples")]
    NoSamples,
    /// A quantile outside (0, 1].
    #[error("quantile {given} is outside of 0 (excluded) to 1")]
    BadQuantile {
        /// What was asked for.
        given: String,
    },
    /// A confidence outside (0, 1).
    #[error("confidence {given} is not between 0 and 1")]
    BadConfidence {
        /// What was asked for.
        given: f64,
    },
    /// An exact test over more attempts than it is meant for.
    #[error("an exact test of {given} attempts a side is beyond the limit of {limit}")]
    TooMany {
        /// Attempts of the larger side.
        given: u32,
        /// The limit.
        limit: u32,
    },
    /// An exact test of many rates over more attempts than it is meant for.
    #[error("an exact test over {given} attempts in all is beyond the limit of {limit}")]
    TooLarge {
        /// Attempts of all rates.
        given: u64,
        /// The limit.
        limit: u32,
    },
}

impl StatsError {
    /// The next thing to try, if there is an obvious one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoSamples => None,
            Self::BadQuantile { .. } => Some("give a share such as 0.9".into()),
            Self::BadConfidence { .. } => Some("give a share such as 0.95".into()),
            Self::TooMany { .. } => {
                Some("compare the intervals of the two rates: at this size they say the same as the exact test".into())
            }
            Self::TooLarge { .. } => Some("compare the intervals of the rates, or test fewer windows or days".into()),
        }
    }
}
