//! The ladder: rungs are tried from the bottom, the first lane that holds is chosen.
//!
//! `free-hosted` and `free-server` have to clear the bars themselves; a server needs a named owner who patches it too.
//! `paid-hosted` is chosen when every lower rung is out, or a need is declared that they cannot meet. `self-hosted` needs a
//! declared reason: a box that passes a burst is not yet a reason to run one.
//!
//! Among lanes that hold on one rung the order of arguments is: behaviour at the peak, operations load, price.

use std::cmp::Ordering;
use std::num::NonZeroU32;

use super::decision::{Decision, DecisionVerdict, Obstacle};
use super::needs::{Need, ReasonKey};
use crate::lane::Kind;
use crate::stats::PassRate;

/// Days after which the last patch of a server is stale.
pub const STALE_PATCH_DAYS: u32 = 90;

/// Who looks after a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Who.
    pub name: String,
    /// Days since the last patch; `None`: no date is stated.
    pub patched_days_ago: Option<u32>,
}

/// One lane that stands for choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Name of the lane.
    pub lane: String,
    /// Its rung.
    pub kind: Kind,
    /// The verdict on its measurements.
    pub decision: Decision,
    /// Who patches it, for the rungs that need one.
    pub owner: Option<Owner>,
    /// What keeps it out whatever it measures: a stated limit below a need, a declared reason.
    pub barred: Vec<Why>,
    /// What decides between lanes that hold on one rung and pass equally often.
    pub arguments: Arguments,
}

/// The arguments behind the behaviour at the peak, in this order. What is not stated cannot be an argument for a lane:
/// unknown stands behind every figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// Work that running the lane takes, minutes a month.
    pub ops_minutes_per_month: Option<u64>,
    /// Price of 1,000 requests, micro-dollars.
    pub micro_usd_per_1000: Option<u64>,
}

impl Arguments {
    /// The better arguments stand first.
    pub fn compare(self, other: Self) -> Ordering {
        let known_first = |a: Option<u64>, b: Option<u64>| (a.is_none(), a).cmp(&(b.is_none(), b));
        known_first(self.ops_minutes_per_month, other.ops_minutes_per_month)
            .then_with(|| known_first(self.micro_usd_per_1000, other.micro_usd_per_1000))
    }
}

/// What was declared beforehand, apart from measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    /// Contractual latency, concurrency or requests and tokens per minute that only a paid lane promises.
    pub paid_need: bool,
    /// Data may not leave, rate limits cannot be accepted, or the price must not move: the data path is the problem.
    pub data_path: bool,
}

/// Why a lane is not chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It does not clear a bar.
    Obstacle(Obstacle),
    /// No owner is named for patching.
    NoOwner,
    /// The owner states no date of the last patch.
    NoPatchDate,
    /// The last patch is older than [`STALE_PATCH_DAYS`].
    StalePatch {
        /// Days since.
        days: u32,
    },
    /// A lower rung holds already.
    LowerHolds {
        /// The lane.
        lane: String,
    },
    /// A lower rung is not decided yet.
    LowerUndecided {
        /// The lane.
        lane: String,
    },
    /// No data-path reason is declared.
    NoReason,
    /// Another lane of the same rung has the better arguments.
    BetterBeside {
        /// The lane.
        lane: String,
        /// What told them apart.
        by: Argument,
    },
    /// It holds, but a declared need is one that only a higher rung promises.
    NeedPromised {
        /// The lane.
        lane: String,
    },
    /// What its terms state is below a declared need.
    LimitBelowNeed {
        /// Which.
        need: Need,
        /// What is needed.
        needed: u64,
        /// What the terms state.
        stated: u64,
    },
    /// A declared reason rules its rung out.
    Reason {
        /// Which.
        reason: ReasonKey,
    },
}

/// What told two lanes of one rung apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// It passes more often in the deciding window.
    Peak,
    /// It takes less work.
    Operations,
    /// It costs less.
    Price,
    /// Nothing: it stands first in the configuration.
    Order,
}

impl Argument {
    /// The stable spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Peak => "peak",
            Self::Operations => "operations",
            Self::Price => "price",
            Self::Order => "order",
        }
    }
}

/// How a lane stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It holds; whether it is the chosen one says [`Ladder::chosen`].
    Holds,
    /// It does not.
    Out,
    /// Too little data.
    Undecided,
    /// It was not asked for.
    NotApplicable,
}

impl Standing {
    /// The stable spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Out => "out",
            Self::Undecided => "undecided",
            Self::NotApplicable => "n/a",
        }
    }
}

/// The verdict over all lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ladder {
    /// Index of the chosen lane; `None`: nothing holds, or something is undecided below what would.
    pub chosen: Option<usize>,
    /// One for each candidate, in their order: how it stands, and why it is not chosen (empty for the chosen one).
    pub standings: Vec<(Standing, Vec<Why>)>,
}

/// Climbs the ladder.
pub fn climb(candidates: &[Candidate], declared: Declared) -> Ladder {
    let mut standings: Vec<(Standing, Vec<Why>)> = candidates.iter().map(|c| own_standing(c, declared)).collect();
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    // Within a rung the better arguments stand first; a tie keeps the given order.
    order.sort_by(|&a, &b| {
        let (a, b) = (&candidates[a], &candidates[b]);
        a.kind
            .cmp(&b.kind)
            .then_with(|| compare_rates(b.decision.pass_rate, a.decision.pass_rate))
            .then_with(|| a.arguments.compare(b.arguments))
    });
    let mut chosen: Option<usize> = None;
    let mut undecided: Option<usize> = None;
    for &at in &order {
        let kind = candidates[at].kind;
        match standings[at].0 {
            Standing::Holds => {
                let needed = kind == Kind::PaidHosted && declared.paid_need;
                if let Some(lower) = chosen {
                    let lane = candidates[lower].lane.clone();
                    let why = if candidates[lower].kind == kind {
                        Why::BetterBeside { lane, by: told_apart(&candidates[lower], &candidates[at]) }
                    } else {
                        Why::LowerHolds { lane }
                    };
                    if needed && candidates[lower].kind < kind {
                        let lane = candidates[at].lane.clone();
                        standings[lower].1.push(Why::NeedPromised { lane });
                        chosen = Some(at);
                    } else {
                        standings[at].1.push(why);
                    }
                } else if let Some(lower) = undecided.filter(|&u| candidates[u].kind < kind && !needed) {
                    standings[at].1.push(Why::LowerUndecided { lane: candidates[lower].lane.clone() });
                } else {
                    chosen = Some(at);
                }
            }
            Standing::Undecided => {
                undecided.get_or_insert(at);
            }
            Standing::Out | Standing::NotApplicable => {}
        }
    }
    Ladder { chosen, standings }
}

fn own_standing(candidate: &Candidate, declared: Declared) -> (Standing, Vec<Why>) {
    let mut why: Vec<Why> = candidate.decision.obstacles.iter().cloned().map(Why::Obstacle).collect();
    if candidate.kind == Kind::FreeServer {
        why.extend(owner_fault(candidate.owner.as_ref()));
    }
    if candidate.kind == Kind::SelfHosted && !declared.data_path {
        why.push(Why::NoReason);
        return (Standing::NotApplicable, why);
    }
    if !candidate.barred.is_empty() {
        // However it measures: more data would not bring it back.
        why.splice(0..0, candidate.barred.iter().cloned());
        return (Standing::Out, why);
    }
    let standing = match candidate.decision.verdict {
        DecisionVerdict::NotEnoughData | DecisionVerdict::NotEnoughDays => Standing::Undecided,
        DecisionVerdict::NotOk => Standing::Out,
        DecisionVerdict::FreeOk if why.is_empty() => Standing::Holds,
        DecisionVerdict::FreeOk => Standing::Out,
    };
    (standing, why)
}

fn owner_fault(owner: Option<&Owner>) -> Option<Why> {
    let Some(owner) = owner.filter(|o| !o.name.trim().is_empty()) else { return Some(Why::NoOwner) };
    match owner.patched_days_ago {
        None => Some(Why::NoPatchDate),
        Some(days) if days > STALE_PATCH_DAYS => Some(Why::StalePatch { days }),
        Some(_) => None,
    }
}

/// The first argument in which the better lane is better.
fn told_apart(better: &Candidate, other: &Candidate) -> Argument {
    if compare_rates(better.decision.pass_rate, other.decision.pass_rate).is_ne() {
        return Argument::Peak;
    }
    let (a, b) = (better.arguments, other.arguments);
    match (a.ops_minutes_per_month == b.ops_minutes_per_month, a.micro_usd_per_1000 == b.micro_usd_per_1000) {
        (false, _) => Argument::Operations,
        (true, false) => Argument::Price,
        (true, true) => Argument::Order,
    }
}

pub(super) fn compare_rates(a: Option<PassRate>, b: Option<PassRate>) -> Ordering {
    let nothing = PassRate::new(0, NonZeroU32::MIN.get());
    match (a.or(nothing), b.or(nothing)) {
        (Some(a), Some(b)) => a.compare(b),
        _ => Ordering::Equal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Evidence, Thresholds, WindowCount, decide};
    use crate::stats::RetryRate;

    fn candidate(lane: &str, kind: Kind, passed: u32, days: u32) -> Candidate {
        let evidence = Evidence {
            windows: vec![WindowCount { window: "16:00".into(), rate: PassRate::new(passed, 24) }],
            declared_peak: Some("16:00".into()),
            complete_days: days,
            missing: Vec::new(),
            retries: RetryRate::new(0, 96),
        };
        let owner = Some(Owner { name: "ops".into(), patched_days_ago: Some(10) });
        Candidate {
            lane: lane.into(),
            kind,
            decision: decide(&evidence, &Thresholds::default()),
            owner,
            barred: Vec::new(),
            arguments: Arguments::default(),
        }
    }

    fn chosen(candidates: &[Candidate], declared: Declared) -> Option<&str> {
        climb(candidates, declared).chosen.map(|at| candidates[at].lane.as_str())
    }

    #[test]
    fn the_lowest_rung_that_holds_is_chosen_whatever_stands_above() {
        let all = [candidate("c", Kind::PaidHosted, 24, 3), candidate("a", Kind::FreeHosted, 22, 3)];
        let ladder = climb(&all, Declared::default());
        assert_eq!(ladder.chosen, Some(1));
        assert_eq!(ladder.standings[0], (Standing::Holds, vec![Why::LowerHolds { lane: "a".into() }]));
    }

    #[test]
    fn a_paid_lane_is_chosen_when_every_lower_rung_is_out() {
        let all = [candidate("a", Kind::FreeHosted, 12, 3), candidate("c", Kind::PaidHosted, 24, 3)];
        assert_eq!(chosen(&all, Declared::default()), Some("c"));
    }

    #[test]
    fn a_lower_rung_without_enough_data_keeps_the_higher_one_waiting() {
        let all = [candidate("a", Kind::FreeHosted, 24, 2), candidate("c", Kind::PaidHosted, 24, 3)];
        let ladder = climb(&all, Declared::default());
        assert_eq!(ladder.chosen, None);
        assert_eq!(ladder.standings[1].1, [Why::LowerUndecided { lane: "a".into() }]);
        assert_eq!(chosen(&all, Declared { paid_need: true, data_path: false }), Some("c"));
    }

    #[test]
    fn a_server_without_an_owner_or_with_a_stale_patch_is_out() {
        let mut server = candidate("b", Kind::FreeServer, 24, 3);
        assert_eq!(chosen(std::slice::from_ref(&server), Declared::default()), Some("b"));
        server.owner = Some(Owner { name: "ops".into(), patched_days_ago: Some(90) });
        assert_eq!(chosen(std::slice::from_ref(&server), Declared::default()), Some("b"));
        server.owner = Some(Owner { name: "ops".into(), patched_days_ago: Some(91) });
        let ladder = climb(std::slice::from_ref(&server), Declared::default());
        assert_eq!(ladder.standings[0], (Standing::Out, vec![Why::StalePatch { days: 91 }]));
        server.owner = None;
        assert_eq!(climb(&[server], Declared::default()).standings[0].1, [Why::NoOwner]);
    }

    #[test]
    fn a_box_that_passes_is_no_reason_to_run_one() {
        let own = [candidate("d", Kind::SelfHosted, 24, 3)];
        assert_eq!(climb(&own, Declared::default()).standings[0], (Standing::NotApplicable, vec![Why::NoReason]));
        assert_eq!(chosen(&own, Declared { paid_need: false, data_path: true }), Some("d"));
    }

    #[test]
    fn nothing_holds_is_an_answer_and_the_better_of_two_on_one_rung_is_chosen() {
        let bad = [candidate("a", Kind::FreeHosted, 3, 3), candidate("c", Kind::PaidHosted, 4, 3)];
        assert_eq!(chosen(&bad, Declared::default()), None);
        let two = [candidate("a1", Kind::FreeHosted, 22, 3), candidate("a2", Kind::FreeHosted, 24, 3)];
        assert_eq!(chosen(&two, Declared::default()), Some("a2"));
    }

    #[test]
    fn of_two_that_pass_equally_often_operations_go_before_price_and_unknown_stands_last() {
        let with = |lane: &str, ops: Option<u64>, price: Option<u64>| {
            let arguments = Arguments { ops_minutes_per_month: ops, micro_usd_per_1000: price };
            Candidate { arguments, ..candidate(lane, Kind::PaidHosted, 24, 3) }
        };
        let best = |all: &[Candidate]| {
            let ladder = climb(all, Declared::default());
            let by = ladder.standings.iter().flat_map(|(_, why)| why).find_map(|why| match why {
                Why::BetterBeside { by, .. } => Some(*by),
                _ => None,
            });
            (ladder.chosen.unwrap(), by.unwrap())
        };
        assert_eq!(best(&[with("a", Some(120), Some(1)), with("b", Some(60), Some(9))]), (1, Argument::Operations));
        assert_eq!(best(&[with("a", Some(60), Some(9)), with("b", Some(60), Some(1))]), (1, Argument::Price));
        assert_eq!(best(&[with("a", None, Some(1)), with("b", Some(60), None)]), (1, Argument::Operations));
        assert_eq!(best(&[with("a", None, None), with("b", None, None)]), (0, Argument::Order));
        let worse = Candidate { arguments: Arguments::default(), ..candidate("c", Kind::PaidHosted, 22, 3) };
        assert_eq!(best(&[worse, with("b", Some(600), Some(9))]), (1, Argument::Peak));
    }

    #[test]
    fn a_barred_lane_is_out_even_without_data_and_keeps_nobody_waiting() {
        let barred = vec![Why::LimitBelowNeed { need: Need::RequestsPerMinute, needed: 60, stated: 20 }];
        let free = Candidate { barred, ..candidate("a", Kind::FreeHosted, 24, 2) };
        let all = [free, candidate("c", Kind::PaidHosted, 24, 3)];
        let ladder = climb(&all, Declared::default());
        assert_eq!((ladder.chosen, ladder.standings[0].0), (Some(1), Standing::Out));
        assert!(matches!(ladder.standings[0].1[0], Why::LimitBelowNeed { needed: 60, stated: 20, .. }));
    }

    #[test]
    fn a_need_that_only_a_paid_lane_promises_goes_before_a_lower_rung_that_holds() {
        let all = [candidate("a", Kind::FreeHosted, 24, 3), candidate("c", Kind::PaidHosted, 24, 3)];
        let ladder = climb(&all, Declared { paid_need: true, data_path: false });
        assert_eq!(ladder.chosen, Some(1));
        assert_eq!(ladder.standings[0].1, [Why::NeedPromised { lane: "c".into() }]);
    }
}
