//! What a campaign may use up, what it has used, and what it would use: requests, tokens, money.

use serde::Serialize;

use crate::config::Campaign;

/// The caps of a campaign; `None`: no cap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// Requests, warm-ups and retries included.
    pub requests: Option<u64>,
    /// Tokens of prompts and answers.
    pub tokens: Option<u64>,
    /// Micro-dollars.
    pub micro_usd: Option<u64>,
}

/// What was used, or what would be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Requests: tries, warm-ups and retries included.
    pub requests: u64,
    /// Tokens of prompts and answers.
    pub tokens: u64,
    /// Micro-dollars.
    pub micro_usd: u64,
}

/// The cap that the next burst would pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Exceeded {
    /// `requests`, `tokens` or `micro_usd`: the unit of the figures.
    pub what: &'static str,
    /// The cap.
    pub cap: u64,
    /// Used so far.
    pub used: u64,
    /// What the next burst may need.
    pub next: u64,
}

impl From<&Campaign> for Caps {
    fn from(campaign: &Campaign) -> Self {
        Self {
            requests: campaign.budget_requests,
            tokens: campaign.budget_tokens,
            micro_usd: campaign.budget_usd.map(|usd| usd.micro_usd()),
        }
    }
}

impl Caps {
    /// True without any cap.
    pub const fn is_empty(&self) -> bool {
        self.requests.is_none() && self.tokens.is_none() && self.micro_usd.is_none()
    }

    /// The first cap that would be passed if `next` were used on top of `used`; reaching a cap exactly is allowed.
    pub fn exceeded(&self, used: Used, next: Used) -> Option<Exceeded> {
        let figures = [
            ("requests", self.requests, used.requests, next.requests),
            ("tokens", self.tokens, used.tokens, next.tokens),
            ("micro_usd", self.micro_usd, used.micro_usd, next.micro_usd),
        ];
        figures.into_iter().find_map(|(what, cap, used, next)| {
            cap.filter(|cap| used.saturating_add(next) > *cap).map(|cap| Exceeded { what, cap, used, next })
        })
    }
}

impl Used {
    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            tokens: self.tokens.saturating_add(other.tokens),
            micro_usd: self.micro_usd.saturating_add(other.micro_usd),
        }
    }

    /// The larger of each figure.
    #[must_use]
    pub fn at_least(self, other: Self) -> Self {
        Self {
            requests: self.requests.max(other.requests),
            tokens: self.tokens.max(other.tokens),
            micro_usd: self.micro_usd.max(other.micro_usd),
        }
    }
}

/// Tokens of a prompt, estimated where nobody counts them: a quarter of its bytes, rounded up. English text and code have
/// three to four bytes a token in the vocabularies of today; other scripts have fewer.
pub const fn estimated_tokens(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}

/// Price of tokens in micro-dollars, rounded up: a million tokens cost `usd_per_mtok` micro-dollars each million-th.
///
/// * `micro_usd_per_mtok`: price of a million tokens, micro-dollars.
pub fn price_of(tokens: u64, micro_usd_per_mtok: u64) -> u64 {
    let exact = u128::from(tokens) * u128::from(micro_usd_per_mtok);
    u64::try_from(exact.div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(requests: u64, tokens: u64, micro_usd: u64) -> Used {
        Used { requests, tokens, micro_usd }
    }

    #[test]
    fn a_cap_may_be_reached_and_not_passed() {
        let caps = Caps { requests: Some(20), tokens: None, micro_usd: Some(0) };
        assert_eq!(caps.exceeded(used(11, 1_000, 0), used(9, 1_000, 0)), None);
        let over = Exceeded { what: "requests", cap: 20, used: 12, next: 9 };
        assert_eq!(caps.exceeded(used(12, 0, 0), used(9, 0, 0)), Some(over));
        let money = Exceeded { what: "micro_usd", cap: 0, used: 0, next: 1 };
        assert_eq!(caps.exceeded(used(0, 0, 0), used(9, 0, 1)), Some(money));
        assert!(Caps::default().is_empty() && Caps::default().exceeded(used(9, 9, 9), used(9, 9, 9)).is_none());
    }

    #[test]
    fn prices_are_exact_and_rounded_up() {
        // 1,500 tokens at $2 a million: $0.003
        assert_eq!(price_of(1_500, 2_000_000), 3_000);
        assert_eq!(price_of(1, 1), 1);
        assert_eq!(price_of(0, u64::MAX), 0);
        assert_eq!(price_of(u64::MAX, u64::MAX), u64::MAX);
        assert_eq!((estimated_tokens(0), estimated_tokens(1), estimated_tokens(8)), (0, 1, 2));
    }
}
