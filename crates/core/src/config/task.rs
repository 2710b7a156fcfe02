//! `[[task]]`: a task class, its prompt, its check, and the floor that it is judged by.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::calendar::Day;
use super::micros::Micros;
use super::settings::BurstSettings;
use crate::check::{Check, CheckForm};

/// Floor of a latency task where none is written: the longest that people wait for an inline answer.
pub const DEFAULT_FLOOR: Micros = Micros::from_secs(25);

/// Name of the task class that is there without any `[[task]]`.
pub const DEFAULT_TASK: &str = "inline-assist";

/// Its prompt: short, with an answer of known form and about the size of an inline suggestion.
pub const DEFAULT_PROMPT: &str = "Write a Python function `median(values)` that returns the median of a non-empty list of \
numbers without changing the list. Answer with the code of the function alone.";

/// The shortest stretch of a batch class ...
pub const LEAST_STRETCH: Micros = Micros::from_secs(1);

/// ... and the longest one.
pub const MOST_STRETCH: Micros = Micros::from_secs(4 * 3600);

/// How long the sustained stretch of a batch class runs where none is written.
pub const DEFAULT_STRETCH: Micros = Micros::from_secs(600);

/// Attempts that a batch class keeps in flight where neither it nor `[burst]` says how many.
pub const DEFAULT_BATCH_CONCURRENCY: u32 = 8;

/// A sort of work with one floor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Name, unique: letters, digits, `-`, `_` and `.`, at most 64, a letter or digit first.
    pub name: String,
    /// `latency` (judged by `floor`) or `batch` (judged by `tasks_per_hour`). Without it: `batch` where `tasks_per_hour` is
    /// written, else `latency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<TaskKind>,
    /// The prompt; either this or `prompt_file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// File with the prompt (UTF-8, at most 1 MiB); relative to the configuration file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_file: Option<String>,
    /// System message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Slowest acceptable round trip, retries and waits included; equal to it passes. `25s` where none is written. Not for
    /// batch tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<Micros>,
    /// Why the floor is what it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor_reason: Option<String>,
    /// Who set the floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor_author: Option<String>,
    /// Day on which the floor was set: before anything was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor_date: Option<Day>,
    /// Floor of a batch task: tasks an hour, 1 to 1,000,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks_per_hour: Option<u32>,
    /// How long a batch class works without a pause in each burst, 1 s to 4 h; `10m` where none is written. Not for latency
    /// tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stretch: Option<Micros>,
    /// Attempts that a batch class keeps in flight, 1 to 10,000. Without it the `concurrency` of `[burst]`, else 8. Not for
    /// latency tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// What a right answer looks like: `"none"`, `{ contains = "..." }`, `{ regex = "..." }`, `{ json = true }`,
    /// `{ json_keys = ["..."] }` or `{ exact = "..." }`. An empty answer is wrong for all of them.
    #[serde(default)]
    #[schemars(with = "CheckForm")]
    pub check: Check,
    /// Budget of the answer in tokens, 1 to 1,000,000; reasoning counts.
    #[serde(default = "default_max_tokens")]
    pub max_tokens: u32,
    /// Sampling temperature, 0 to 2.
    #[serde(default)]
    pub temperature: f64,
    /// Take an answer that stopped for lack of budget as whole, instead of as a fault of the configuration.
    #[serde(default)]
    pub accept_budget_stop: bool,
}

/// How a task class is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum TaskKind {
    /// By the round trip of each attempt.
    Latency,
    /// By tasks an hour.
    Batch,
}

impl Task {
    /// The class that is there without any `[[task]]`: `inline-assist`, 25 s, no check beyond "something was said".
    pub fn inline_assist() -> Self {
        Self {
            name: DEFAULT_TASK.to_owned(),
            kind: None,
            prompt: Some(DEFAULT_PROMPT.to_owned()),
            prompt_file: None,
            system: None,
            floor: None,
            floor_reason: None,
            floor_author: None,
            floor_date: None,
            tasks_per_hour: None,
            stretch: None,
            concurrency: None,
            check: Check::None,
            max_tokens: default_max_tokens(),
            temperature: 0.0,
            accept_budget_stop: false,
        }
    }

    /// How it is judged: as written, else by what floor it has.
    pub fn judged_by(&self) -> TaskKind {
        self.kind.unwrap_or(if self.tasks_per_hour.is_some() { TaskKind::Batch } else { TaskKind::Latency })
    }

    /// The latency floor; `None` for a batch task.
    pub fn latency_floor(&self) -> Option<Micros> {
        (self.judged_by() == TaskKind::Latency).then(|| self.floor.unwrap_or(DEFAULT_FLOOR))
    }

    /// How long the sustained stretch runs; `None` for a latency task, which has none.
    pub fn sustained_stretch(&self) -> Option<Micros> {
        (self.judged_by() == TaskKind::Batch).then(|| self.stretch.unwrap_or(DEFAULT_STRETCH))
    }

    /// Most attempts in flight: of a batch class its own number, else that of `[burst]`, else 8; of a latency class that of
    /// `[burst]`. `None`: all attempts of a burst are released together, or by its spacing.
    pub fn in_flight(&self, burst: &BurstSettings) -> Option<u32> {
        match self.judged_by() {
            TaskKind::Latency => burst.concurrency,
            TaskKind::Batch => self.concurrency.or(burst.concurrency).or(Some(DEFAULT_BATCH_CONCURRENCY)),
        }
    }
}

/// Room for an inline answer, and for the short reasoning that some models put before it.
const fn default_max_tokens() -> u32 {
    1024
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(keys: &str) -> Task {
        toml::from_str(&format!("name = \"t\"\nprompt = \"p\"\ntasks_per_hour = 60\n{keys}")).unwrap()
    }

    #[test]
    fn a_batch_class_works_ten_minutes_with_eight_in_flight_unless_it_says_otherwise() {
        let burst = |concurrency| BurstSettings { concurrency, ..BurstSettings::default() };
        assert_eq!(batch("").sustained_stretch(), Some(Micros::from_secs(600)));
        assert_eq!(batch("stretch = \"90s\"").sustained_stretch(), Some(Micros::from_secs(90)));
        assert_eq!(batch("").in_flight(&burst(None)), Some(8));
        assert_eq!(batch("").in_flight(&burst(Some(3))), Some(3));
        assert_eq!(batch("concurrency = 5").in_flight(&burst(Some(3))), Some(5));
    }

    #[test]
    fn a_latency_class_has_no_stretch_and_the_concurrency_of_the_burst() {
        let task = Task::inline_assist();
        assert_eq!(task.sustained_stretch(), None);
        assert_eq!(task.in_flight(&BurstSettings::default()), None);
        assert_eq!(task.in_flight(&BurstSettings { concurrency: Some(2), ..BurstSettings::default() }), Some(2));
    }
}
