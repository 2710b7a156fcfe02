//! What a watcher tells: one value for each thing that happens. Words are made of them elsewhere; as JSON they are a stable
//! contract, one object a line, told apart by `event`.

use serde::Serialize;

use crate::budget::Exceeded;
use crate::burst::BurstState;

/// Which planned burst a note is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Id of the campaign.
    pub campaign: String,
    /// Site, where the configuration has several.
    pub site: Option<String>,
    /// Local date, `YYYY-MM-DD`.
    pub date: String,
    /// Local begin of the window, `16:00`.
    pub window: String,
    /// Number within the window, from 0.
    pub nth: u32,
    /// Name of the lane.
    pub lane: String,
    /// Name of the task class.
    pub task: String,
}

/// A campaign by its id and site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CampaignName {
    /// Id.
    pub campaign: String,
    /// Site, where the configuration has several.
    pub site: Option<String>,
}

/// The next burst of a lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NextBurst {
    /// Site, where the configuration has several.
    pub site: Option<String>,
    /// Name of the lane.
    pub lane: String,
    /// Local date and time at which it is due, `2026-12-01 16:00`.
    pub local: String,
    /// When it is due, microseconds since the Unix epoch (UTC).
    pub due_unix_us: i64,
    /// Whole seconds until then.
    pub in_s: u64,
}

/// How a burst went, in few figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shortly {
    /// Id of the burst.
    pub burst: String,
    /// How it stands.
    pub state: BurstState,
    /// Attempts that passed.
    pub passed: u32,
    /// Attempts planned.
    pub n: u32,
    /// Attempts with at least one retry.
    pub retried: u32,
    /// p90 of the latencies (of 8 attempts the worst), microseconds; `None` without attempts.
    pub p90_us: Option<u64>,
    /// `p90_us` is only a lower bound: that attempt never finished.
    pub p90_exceeds: bool,
    /// The most frequent class of miss, if there was one.
    pub miss: Option<String>,
    /// Cause and next step of a configuration finding.
    pub finding: Option<String>,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Note {
    /// A campaign begins now.
    CampaignBegun {
        /// Which.
        #[serde(flatten)]
        name: CampaignName,
        /// First local date.
        first_date: String,
        /// Last local date.
        last_date: String,
        /// Planned bursts.
        bursts: u64,
    },
    /// A campaign that was begun earlier goes on.
    CampaignContinued {
        /// Which.
        #[serde(flatten)]
        name: CampaignName,
        /// First local date.
        first_date: String,
        /// Last local date.
        last_date: String,
        /// Planned bursts.
        bursts: u64,
        /// Those of them that are over.
        over: u64,
    },
    /// The configuration changed: the former campaign is stopped, and its series ends.
    CampaignReplaced {
        /// The new one.
        #[serde(flatten)]
        name: CampaignName,
        /// Id of the former one.
        former: String,
        /// What changed: `tasks`, `burst`, `lane lane-a`.
        changed: Vec<String>,
    },
    /// A lane of the campaign is no longer in the file: its bursts are not run, and count as nothing.
    LaneGone {
        /// The campaign.
        #[serde(flatten)]
        name: CampaignName,
        /// The lane.
        lane: String,
    },
    /// A lane joined a campaign that had begun without it.
    LaneJoined {
        /// The campaign.
        #[serde(flatten)]
        name: CampaignName,
        /// The lane.
        lane: String,
    },
    /// Bursts that were due before the campaign was begun: no misses, but their day is not complete.
    BeforeStart {
        /// The campaign.
        #[serde(flatten)]
        name: CampaignName,
        /// How many.
        bursts: u64,
    },
    /// A burst begins.
    BurstBegun {
        /// Which.
        #[serde(flatten)]
        place: Place,
        /// Id of the burst.
        burst: String,
        /// Whole seconds after its instant.
        late_s: u32,
    },
    /// A burst came to its end.
    BurstEnded {
        /// Which.
        #[serde(flatten)]
        place: Place,
        /// How it went.
        #[serde(flatten)]
        shortly: Shortly,
    },
    /// A burst was cut off: half a burst is no burst, and it is not begun again.
    BurstInterrupted {
        /// Which.
        #[serde(flatten)]
        place: Place,
        /// What cut it off: `asleep`, `stopped`, `failed`, `abandoned`.
        reason: String,
    },
    /// A window passed without its burst.
    WindowMissed {
        /// Which.
        #[serde(flatten)]
        place: Place,
        /// Why: `asleep`, `clock`, `not_running`, `busy`, `stalled`.
        reason: String,
    },
    /// Another process has a burst in its hands; ours wait.
    AnotherWatcher {
        /// The burst.
        #[serde(flatten)]
        place: Place,
    },
    /// Answers call another model than those of the former burst.
    ModelChanged {
        /// Where it was seen.
        #[serde(flatten)]
        place: Place,
        /// The former names.
        before: Vec<String>,
        /// The present ones.
        after: Vec<String>,
    },
    /// Answers carry a fingerprint that the former burst had not.
    FingerprintChanged {
        /// Where it was seen.
        #[serde(flatten)]
        place: Place,
        /// The former fingerprints.
        before: Vec<String>,
        /// The present ones.
        after: Vec<String>,
    },
    /// The wall clock was stepped.
    ClockStepped {
        /// By so many seconds; negative: put back.
        by_s: i64,
    },
    /// The machine was suspended.
    Slept {
        /// For so many seconds.
        for_s: u64,
    },
    /// The store cannot be written: nothing is sent until it can.
    StoreAway {
        /// Why.
        error: String,
    },
    /// The store can be written again.
    StoreBack,
    /// A cap of the budget stopped the campaigns for good.
    BudgetStop {
        /// Which cap, and what was missing.
        #[serde(flatten)]
        exceeded: Exceeded,
    },
    /// The days of a campaign are over; bursts at its peak go on.
    AfterCampaign {
        /// The campaign.
        #[serde(flatten)]
        name: CampaignName,
        /// The windows that go on.
        windows: Vec<String>,
    },
    /// What is next, the earliest burst of each lane.
    Next {
        /// By lane.
        next: Vec<NextBurst>,
    },
    /// The campaign is over.
    Finished {
        /// Which.
        #[serde(flatten)]
        name: CampaignName,
    },
    /// Another watcher with another configuration, or a person, stopped the campaign.
    CampaignStopped {
        /// Which.
        #[serde(flatten)]
        name: CampaignName,
        /// Why: `replaced`, `budget`, `by hand`.
        why: String,
    },
    /// Ctrl-C or SIGTERM: the watcher ends, the campaign does not.
    Interrupted,
}

impl Note {
    /// The stable word under which the event is stored where it is one of the history: `model_changed`. `None` for what
    /// the slots tell anyway.
    pub const fn stored_kind(&self) -> Option<&'static str> {
        match self {
            Self::CampaignReplaced { .. } => Some("campaign_replaced"),
            Self::LaneGone { .. } => Some("lane_gone"),
            Self::LaneJoined { .. } => Some("lane_joined"),
            Self::ModelChanged { .. } => Some("model_changed"),
            Self::FingerprintChanged { .. } => Some("fingerprint_changed"),
            Self::ClockStepped { .. } => Some("clock_stepped"),
            Self::Slept { .. } => Some("slept"),
            Self::BudgetStop { .. } => Some("budget_stop"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_one_flat_object_with_its_event() {
        let name = CampaignName { campaign: "c".into(), site: None };
        let note = Note::LaneGone { name, lane: "lane-a".into() };
        let object = serde_json::to_value(&note).unwrap();
        assert_eq!(object, serde_json::json!({"event": "lane_gone", "campaign": "c", "site": null, "lane": "lane-a"}));
        assert_eq!(note.stored_kind(), Some("lane_gone"));
        assert_eq!(serde_json::to_value(Note::StoreBack).unwrap()["event"], "store_back");
    }
}
