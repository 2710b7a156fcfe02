//! What the team declares beside what is measured: needs against the limits that lanes state, reasons that rule rungs out,
//! and the needs for which a burst test is the wrong tool.

use serde::Serialize;

use super::ladder::{Declared, Why};
use crate::config::{Limits, Needs, Reasons};
use crate::lane::Kind;

/// Minutes of generation a day from which inline bursts are the wrong measure: "tens of minutes" begins at two tens.
pub const LONG_GENERATION_MINUTES: u32 = 20;

/// A need that the terms of a lane can state a limit for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// Requests a minute of the whole team.
    RequestsPerMinute,
    /// Tokens a minute of the whole team.
    TokensPerMinute,
    /// Requests in flight at once.
    Concurrency,
}

impl Need {
    /// The stable spelling, which is that of the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RequestsPerMinute => "requests_per_minute",
            Self::TokensPerMinute => "tokens_per_minute",
            Self::Concurrency => "concurrency",
        }
    }
}

/// One need held against what a lane states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeedCheck {
    /// Which need.
    pub need: Need,
    /// What the team needs.
    pub needed: u64,
    /// What the terms of the lane state; `None`: nothing is known.
    pub stated: Option<u64>,
}

impl NeedCheck {
    /// Do the terms promise as much as is needed? `None` where they state nothing.
    pub fn met(self) -> Option<bool> {
        self.stated.map(|stated| stated >= self.needed)
    }
}

/// A declared reason that is no matter of cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasonKey {
    /// Data may not leave the house.
    DataMustNotLeave,
    /// No rate limit of somebody else is acceptable.
    RateLimitsNotAcceptable,
    /// The price may not move.
    PriceMustNotMove,
}

impl ReasonKey {
    /// The stable spelling, which is that of the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DataMustNotLeave => "data_must_not_leave",
            Self::RateLimitsNotAcceptable => "rate_limits_not_acceptable",
            Self::PriceMustNotMove => "price_must_not_move",
        }
    }

    /// Does the reason rule the rung out? Data that may not leave leaves no rung but one's own machines; limits and prices
    /// are those of hosted lanes, paid or free: a free tier is a snapshot.
    pub const fn rules_out(self, kind: Kind) -> bool {
        match self {
            Self::DataMustNotLeave => !matches!(kind, Kind::SelfHosted),
            Self::RateLimitsNotAcceptable | Self::PriceMustNotMove => {
                matches!(kind, Kind::FreeHosted | Kind::PaidHosted)
            }
        }
    }
}

/// A need for which this is the wrong tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongTool {
    /// A strict limit for the 99th percentile.
    StrictP99 {
        /// The limit, milliseconds.
        p99_ms: u64,
    },
    /// Data may not leave.
    DataMustNotLeave,
    /// Generation of tens of minutes a day.
    LongGeneration {
        /// Minutes a day of one developer.
        minutes: u32,
    },
}

impl WrongTool {
    /// The stable spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::StrictP99 { .. } => "strict_p99",
            Self::DataMustNotLeave => "data_must_not_leave",
            Self::LongGeneration { .. } => "long_generation",
        }
    }
}

/// The declared needs against the stated limits of one lane.
pub fn check_needs(needs: &Needs, limits: &Limits) -> Vec<NeedCheck> {
    let all = [
        (Need::RequestsPerMinute, needs.team_requests_per_minute(), limits.requests_per_minute),
        (Need::TokensPerMinute, needs.team_tokens_per_minute(), limits.tokens_per_minute),
        (Need::Concurrency, needs.concurrency, limits.concurrency),
    ];
    all.into_iter().filter_map(|(need, needed, stated)| Some(NeedCheck { need, needed: needed?, stated })).collect()
}

/// What keeps a lane of that rung out whatever it measures: limits below a need, and reasons.
pub fn bars(kind: Kind, checks: &[NeedCheck], reasons: &Reasons) -> Vec<Why> {
    let limits = checks.iter().filter_map(|check| {
        let stated = check.stated.filter(|stated| *stated < check.needed)?;
        Some(Why::LimitBelowNeed { need: check.need, needed: check.needed, stated })
    });
    let reasons = reason_keys(reasons).filter(|reason| reason.rules_out(kind)).map(|reason| Why::Reason { reason });
    limits.chain(reasons).collect()
}

/// What is declared, as the ladder takes it.
///
/// A paid lane is needed where latency must be promised by contract, and where a number is needed that the terms of no lower
/// lane promise.
///
/// * `lower`: the checks of each lane below `paid-hosted`.
pub fn declared(needs: &Needs, reasons: &Reasons, lower: &[Vec<NeedCheck>]) -> Declared {
    let promised = lower.iter().any(|checks| checks.iter().all(|check| check.met() == Some(true)));
    let numbers = !check_needs(needs, &Limits::default()).is_empty();
    Declared { paid_need: needs.contractual_latency || (numbers && !promised), data_path: !reasons.is_empty() }
}

/// The declared needs for which a burst test is the wrong tool.
pub fn wrong_tools(needs: &Needs, reasons: &Reasons) -> Vec<WrongTool> {
    let p99 = needs.p99_ms.map(|p99_ms| WrongTool::StrictP99 { p99_ms });
    let data = reasons.data_must_not_leave.as_ref().map(|_| WrongTool::DataMustNotLeave);
    let long = needs.generation_minutes_per_day.filter(|minutes| *minutes >= LONG_GENERATION_MINUTES);
    p99.into_iter().chain(data).chain(long.map(|minutes| WrongTool::LongGeneration { minutes })).collect()
}

fn reason_keys(reasons: &Reasons) -> impl Iterator<Item = ReasonKey> {
    let all = [
        (ReasonKey::DataMustNotLeave, reasons.data_must_not_leave.is_some()),
        (ReasonKey::RateLimitsNotAcceptable, reasons.rate_limits_not_acceptable.is_some()),
        (ReasonKey::PriceMustNotMove, reasons.price_must_not_move.is_some()),
    ];
    all.into_iter().filter_map(|(key, declared)| declared.then_some(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs() -> Needs {
        Needs { requests_per_minute: Some(60), concurrency: Some(8), ..Needs::default() }
    }

    #[test]
    fn a_stated_limit_below_a_need_keeps_a_lane_out_and_an_unknown_one_does_not() {
        let limits = Limits { requests_per_minute: Some(20), ..Limits::default() };
        let checks = check_needs(&needs(), &limits);
        assert_eq!(checks.iter().map(|c| c.met()).collect::<Vec<_>>(), [Some(false), None]);
        let why = bars(Kind::FreeHosted, &checks, &Reasons::default());
        assert_eq!(why, [Why::LimitBelowNeed { need: Need::RequestsPerMinute, needed: 60, stated: 20 }]);
        let enough = Limits { requests_per_minute: Some(60), ..Limits::default() };
        assert_eq!(bars(Kind::FreeHosted, &check_needs(&needs(), &enough), &Reasons::default()), []);
    }

    #[test]
    fn a_need_asks_for_a_paid_lane_unless_a_lower_one_promises_all_of_it() {
        let lower = |rpm, concurrency| {
            vec![check_needs(&needs(), &Limits { requests_per_minute: rpm, concurrency, ..Limits::default() })]
        };
        let paid = |lower: &[Vec<NeedCheck>]| declared(&needs(), &Reasons::default(), lower).paid_need;
        assert!(paid(&[]));
        assert!(paid(&lower(Some(60), None)), "an unknown limit promises nothing");
        assert!(!paid(&lower(Some(60), Some(8))));
        assert!(!declared(&Needs::default(), &Reasons::default(), &[]).paid_need);
        let contract = Needs { contractual_latency: true, ..Needs::default() };
        assert!(declared(&contract, &Reasons::default(), &[]).paid_need);
    }

    #[test]
    fn reasons_rule_out_the_rungs_that_they_are_about() {
        let data = Reasons { data_must_not_leave: Some("contract".into()), ..Reasons::default() };
        let price = Reasons { price_must_not_move: Some("budget".into()), ..Reasons::default() };
        let out = |reasons: &Reasons| {
            Kind::ALL.into_iter().filter(|kind| !bars(*kind, &[], reasons).is_empty()).collect::<Vec<_>>()
        };
        assert_eq!(out(&data), [Kind::FreeHosted, Kind::FreeServer, Kind::PaidHosted]);
        assert_eq!(out(&price), [Kind::FreeHosted, Kind::PaidHosted]);
        assert!(declared(&Needs::default(), &price, &[]).data_path);
    }

    #[test]
    fn the_wrong_tool_is_named_from_tens_of_minutes_on() {
        let minutes = |minutes| Needs { generation_minutes_per_day: Some(minutes), ..Needs::default() };
        let told = |needs: &Needs| wrong_tools(needs, &Reasons::default());
        assert_eq!(told(&minutes(19)), []);
        assert_eq!(told(&minutes(20)), [WrongTool::LongGeneration { minutes: 20 }]);
        let strict = Needs { p99_ms: Some(900), ..Needs::default() };
        assert_eq!(told(&strict), [WrongTool::StrictP99 { p99_ms: 900 }]);
    }
}
