//! The rules that decide, as pure functions from counts to verdicts. Every threshold is an argument, every comparison
//! is exact, and every verdict carries the figures that it used. Sentences for people are made elsewhere.

pub mod certainty;
pub mod countertest;
pub mod decision;
pub mod hours;
pub mod ladder;
pub mod moves;
pub mod needs;
pub mod split;
pub mod trigger;

pub use certainty::{Certainty, CertaintyState, Question, certainty};
pub use countertest::{CounterTest, CounterVerdict, bursts_that_would_decide, counter_test};
pub use decision::{Decision, DecisionVerdict, Evidence, Obstacle, WindowCount, decide};
pub use hours::{Hours, HoursVerdict, PickedWorst, WindowBursts, judge_hours};
pub use ladder::{Argument, Arguments, Candidate, Declared, Ladder, Owner, Standing, Why, climb};
pub use moves::{expires_on, held_throughout, least_bad, next_rung};
pub use needs::{Need, NeedCheck, ReasonKey, WrongTool, bars, check_needs, declared, wrong_tools};
pub use split::{HourRange, ranges_of};
pub use trigger::{Action, TriggerCause, TriggerState, judge_trigger};

use serde::{Deserialize, Serialize};

/// What a lane has to reach, and what moves a task class up. Whole percents; every one is configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Thresholds {
    /// Pass rate of the deciding window that a lane must reach, percent (equal is enough). 90.
    pub pass_percent: u32,
    /// Retry rate of the campaign that a lane must stay below, percent (equal is too much). 5.
    pub retry_below_percent: u32,
    /// Complete days before there is a verdict. 3.
    pub days: u32,
    /// A day whose peak pass rate is below this is a bad day, percent. 80.
    pub trigger_pass_percent: u32,
    /// So many bad days fire the trigger... 2.
    pub trigger_bad_days: u32,
    /// ...within so many last working days. 3.
    pub trigger_days: u32,
    /// A retry rate above this fires the trigger, percent (equal stays). 10.
    pub trigger_retry_percent: u32,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            pass_percent: 90,
            retry_below_percent: 5,
            days: 3,
            trigger_pass_percent: 80,
            trigger_bad_days: 2,
            trigger_days: 3,
            trigger_retry_percent: 10,
        }
    }
}
