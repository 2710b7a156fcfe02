//! `[needs]`, `[reasons]` and `[cost]`: what the team declares beside what is measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::money::Usd;

/// What the team needs beyond the floor. Compared with the lanes' stated limits; some needs let a paid lane be chosen, some
/// say that this is the wrong tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Needs {
    /// Latency must be promised by contract.
    pub contractual_latency: bool,
    /// Requests in flight at once, 1 or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u64>,
    /// Developers who work at the same time, 1 to 1,000,000. The needs of each are multiplied by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub developers: Option<u32>,
    /// Requests a minute of the whole team, 1 or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u64>,
    /// Tokens a minute of the whole team, prompts and answers together, 1 or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u64>,
    /// Requests a minute of one developer, above 0 to 1,000,000, exact to a thousandth. Needs `developers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute_per_developer: Option<f64>,
    /// Tokens a minute of one developer, 1 or more. Needs `developers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute_per_developer: Option<u64>,
    /// A strict limit for the 99th percentile of latency, milliseconds, 1 or more: no shared lane can promise one, and the
    /// decision says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_ms: Option<u64>,
    /// Minutes of generation that one developer waits for in a day, 1 to 1,440: from tens of minutes on the decision says
    /// that inline bursts are the wrong measure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation_minutes_per_day: Option<u32>,
}

impl Needs {
    /// True when nothing is declared.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Requests a minute of the whole team: the larger of what is stated for the team and what its developers make together,
    /// rounded up. `None` where neither is declared.
    pub fn team_requests_per_minute(&self) -> Option<u64> {
        let of_all = self.requests_per_minute_per_developer.zip(self.developers).map(|(each, developers)| {
            // in thousandths, so that 0.1 of 30 people is 3 and not the 4 of a rounded up float
            let thousandths = (each * 1_000.0).round() as u64;
            thousandths.saturating_mul(developers.into()).div_ceil(1_000)
        });
        self.requests_per_minute.max(of_all)
    }

    /// Tokens a minute of the whole team: the larger of what is stated for the team and what its developers make together.
    /// `None` where neither is declared.
    pub fn team_tokens_per_minute(&self) -> Option<u64> {
        let of_all = self.tokens_per_minute_per_developer.zip(self.developers);
        self.tokens_per_minute.max(of_all.map(|(each, developers)| each.saturating_mul(developers.into())))
    }
}

/// Reasons for a rung that are no matter of cost, each in words: they are part of the decision and of its record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reasons {
    /// Why data may not leave the house.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_must_not_leave: Option<String>,
    /// Why no rate limit of somebody else is acceptable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limits_not_acceptable: Option<String>,
    /// Why the price may not move.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_must_not_move: Option<String>,
}

impl Reasons {
    /// True when none is declared.
    pub fn is_empty(&self) -> bool {
        self.declared().next().is_none()
    }

    /// The declared ones: key and words, in the order of the reference.
    pub fn declared(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("data_must_not_leave", &self.data_must_not_leave),
            ("rate_limits_not_acceptable", &self.rate_limits_not_acceptable),
            ("price_must_not_move", &self.price_must_not_move),
        ];
        all.into_iter().filter_map(|(key, words)| Some((key, words.as_deref()?)))
    }
}

/// Assumptions behind the cost of waiting and the price of a month.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CostSettings {
    /// What an hour of a developer costs, US dollars. Without it waiting is told in hours alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub developer_usd_per_hour: Option<Usd>,
    /// Developers who use the lane, 1 to 1,000,000. Without it the `developers` of `[needs]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub developers: Option<u32>,
    /// Requests of one developer on a working day, 1 to 1,000,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_developer_per_day: Option<u32>,
    /// Working days of a month, 1 to 31.
    pub working_days_per_month: u32,
}

impl Default for CostSettings {
    fn default() -> Self {
        Self {
            developer_usd_per_hour: None,
            developers: None,
            requests_per_developer_per_day: None,
            working_days_per_month: 21,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(toml: &str) -> Needs {
        toml::from_str(toml).unwrap()
    }

    #[test]
    fn what_each_developer_needs_is_multiplied_exactly_and_rounded_up() {
        let team = |toml: &str| needs(toml).team_requests_per_minute();
        assert_eq!(team("developers = 30\nrequests_per_minute_per_developer = 0.1"), Some(3));
        assert_eq!(team("developers = 31\nrequests_per_minute_per_developer = 0.1"), Some(4));
        assert_eq!(team("developers = 3\nrequests_per_minute_per_developer = 2"), Some(6));
        assert_eq!(
            needs("developers = 3\ntokens_per_minute_per_developer = 700").team_tokens_per_minute(),
            Some(2_100)
        );
    }

    #[test]
    fn of_two_statements_of_the_same_need_the_larger_counts_and_none_is_none() {
        let both = "developers = 30\nrequests_per_minute_per_developer = 0.1\nrequests_per_minute = ";
        assert_eq!(needs(&format!("{both}2")).team_requests_per_minute(), Some(3));
        assert_eq!(needs(&format!("{both}5")).team_requests_per_minute(), Some(5));
        assert_eq!(needs("developers = 30").team_requests_per_minute(), None);
        assert_eq!(needs("developers = 30").team_tokens_per_minute(), None);
        assert!(needs("").is_empty() && !needs("contractual_latency = true").is_empty());
    }

    #[test]
    fn only_reasons_that_are_written_are_declared() {
        let reasons: Reasons = toml::from_str("price_must_not_move = 'the budget is fixed for the quarter'").unwrap();
        let declared: Vec<_> = reasons.declared().collect();
        assert_eq!(declared, [("price_must_not_move", "the budget is fixed for the quarter")]);
        assert!(Reasons::default().is_empty() && !reasons.is_empty());
    }
}
