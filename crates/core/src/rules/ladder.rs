//! The ladder: rungs are tried from the bottom, the first lane that holds is chosen.
//!
//! `free-hosted` and `free-server` have to clear the bars themselves; a server needs a named owner who patches it too.
//! `paid-hosted` is chosen when every lower rung is out, or a need is declared that they cannot meet. `self-hosted` needs a
//! declared reason: a box that passes a burst is not yet a reason to run one.

use std::num::NonZeroU32;

use super::decision::{Decision, DecisionVerdict, Obstacle};
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
    /// Another lane of the same rung passes more often.
    BetterBeside {
        /// The lane.
        lane: String,
    },
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
    // Within a rung the better peak behaviour stands first; a tie keeps the given order.
    order.sort_by(|&a, &b| {
        let (a, b) = (&candidates[a], &candidates[b]);
        a.kind.cmp(&b.kind).then_with(|| compare_rates(b.decision.pass_rate, a.decision.pass_rate))
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
                        Why::BetterBeside { lane }
                    } else {
                        Why::LowerHolds { lane }
                    };
                    if needed && candidates[lower].kind < kind {
                        let lane = candidates[at].lane.clone();
                        standings[lower].1.push(Why::BetterBeside { lane });
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

fn compare_rates(a: Option<PassRate>, b: Option<PassRate>) -> std::cmp::Ordering {
    let nothing = PassRate::new(0, NonZeroU32::MIN.get());
    match (a.or(nothing), b.or(nothing)) {
        (Some(a), Some(b)) => a.compare(b),
        _ => std::cmp::Ordering::Equal,
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
        Candidate { lane: lane.into(), kind, decision: decide(&evidence, &Thresholds::default()), owner }
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
}
