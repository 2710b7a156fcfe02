//! `[rules]`: every threshold of the decision, of its triggers and of counter-tests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rules::Thresholds;

/// What a lane has to reach, what moves a task class, and how long a decision holds. Locked when a campaign starts.
/// Percents are whole numbers, 0 to 100.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RulesSettings {
    /// Pass rate of the peak window that a lane must reach, percent; equal is enough.
    pub pass_percent: u32,
    /// Retry rate of the campaign that a lane must stay below, percent, 1 to 100; equal is too much.
    pub retry_below_percent: u32,
    /// Complete days before there is a verdict, 1 to 366.
    pub days: u32,
    /// Share of a window's bursts of a batch class that must reach its `tasks_per_hour`, percent; equal is enough.
    pub batch_pass_percent: u32,
    /// A day whose pass rate at the peak is below this is a bad day, percent.
    pub trigger_pass_percent: u32,
    /// So many bad days fire the trigger, 1 to `trigger_days`.
    pub trigger_bad_days: u32,
    /// The last working days that a trigger looks at, 1 to 60.
    pub trigger_days: u32,
    /// A retry rate above this fires the trigger, percent; equal stays.
    pub trigger_retry_percent: u32,
    /// Days until a decision expires, 1 to 366.
    pub expiry_days: u32,
    /// Largest difference of pass rates that does not matter in a counter-test, points of percent.
    pub counter_margin_percent: u32,
    /// Days to wait between a change and the end of its counter-test, 0 to 60.
    pub counter_wait_days: u32,
    /// Working days on which a lower rung must have held, one after the other up to now, before a task class moves back down
    /// to it, 0 to 60; 0 never moves it down.
    pub step_down_days: u32,
}

impl Default for RulesSettings {
    fn default() -> Self {
        let thresholds = Thresholds::default();
        Self {
            pass_percent: thresholds.pass_percent,
            retry_below_percent: thresholds.retry_below_percent,
            days: thresholds.days,
            batch_pass_percent: 90,
            trigger_pass_percent: thresholds.trigger_pass_percent,
            trigger_bad_days: thresholds.trigger_bad_days,
            trigger_days: thresholds.trigger_days,
            trigger_retry_percent: thresholds.trigger_retry_percent,
            expiry_days: 14,
            counter_margin_percent: 25,
            counter_wait_days: 2,
            step_down_days: 0,
        }
    }
}

impl RulesSettings {
    /// What the rules of the decision and its triggers take.
    pub const fn thresholds(&self) -> Thresholds {
        Thresholds {
            pass_percent: self.pass_percent,
            retry_below_percent: self.retry_below_percent,
            days: self.days,
            trigger_pass_percent: self.trigger_pass_percent,
            trigger_bad_days: self.trigger_bad_days,
            trigger_days: self.trigger_days,
            trigger_retry_percent: self.trigger_retry_percent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_section_the_thresholds_are_those_of_the_rules() {
        assert_eq!(RulesSettings::default().thresholds(), Thresholds::default());
    }

    #[test]
    fn every_threshold_that_is_written_reaches_the_rules() {
        let text = "pass_percent = 91\nretry_below_percent = 6\ndays = 4\ntrigger_pass_percent = 81\ntrigger_bad_days = 3\n\
                    trigger_days = 5\ntrigger_retry_percent = 11\n";
        let want = Thresholds {
            pass_percent: 91,
            retry_below_percent: 6,
            days: 4,
            trigger_pass_percent: 81,
            trigger_bad_days: 3,
            trigger_days: 5,
            trigger_retry_percent: 11,
        };
        assert_eq!(toml::from_str::<RulesSettings>(text).unwrap().thresholds(), want);
    }
}
