//! The configuration: the shape of `peaklane.toml`, how its text is read, and the rules that it must keep.
//!
//! Pure: the text comes in as an argument. Files, environment variables and the zone database are the business of the
//! front door (`peaklane::load`).
//!
//! ```
//! let text = r#"
//!     [[lane]]
//!     name = "lane-a"
//!     kind = "free-hosted"
//!     base_url = "https://lane-a.example/v1"
//!     model = "small-coder"
//!     key_env = "LANE_A_KEY"
//!
//!     [[task]]
//!     name = "inline-assist"
//!     prompt = "Say hello."
//!     floot = "25s"
//! "#;
//! let error = peaklane_core::config::parse(text).unwrap_err();
//! assert_eq!(error.to_string(), "unknown key `floot` in [[task]] 1 (line 12): did you mean `floor`?");
//! ```

mod calendar;
mod campaign;
mod check;
mod check_campaign;
mod check_decision;
mod check_lane;
mod check_price;
mod check_task;
mod error;
mod lane;
mod micros;
mod money;
mod needs;
mod notify;
pub mod presets;
mod price;
mod privacy;
mod read;
mod reference;
mod rules;
mod schema;
mod settings;
mod site;
mod task;
mod unknown;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use calendar::{BadClockTime, BadDay, ClockTime, Day};
pub use campaign::{AfterCampaign, Campaign, DEFAULT_WINDOW_LENGTH, Window, WindowSpan};
pub use check_lane::may_name_a_variable;
pub use error::{ConfigError, KeyPath, Problem, Step};
pub use lane::{Lane, Limits, MaxTokensField};
pub use micros::{BadLength, Micros};
pub use money::{BadPrice, Usd};
pub use needs::{CostSettings, Needs, Reasons};
pub use notify::Notify;
pub use price::{Price, PriceHours, PriceRow};
pub use privacy::{NAME_NOT_KEPT, Privacy};
pub use read::{MAX_TEXT_BYTES, line_of, parse, parse_checked};
pub use reference::reference;
pub use rules::RulesSettings;
pub use schema::{schema, schema_text};
pub use settings::{BurstSettings, Control, LaneOrder, RetrySettings, Timeouts};
pub use site::{Site, SiteCampaign};
pub use task::{
    DEFAULT_BATCH_CONCURRENCY, DEFAULT_FLOOR, DEFAULT_PROMPT, DEFAULT_STRETCH, DEFAULT_TASK, LEAST_STRETCH,
    MOST_STRETCH, Task, TaskKind,
};

/// All that `peaklane.toml` says. Made by [`parse`]; the rules across keys are checked by [`Config::check`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "peaklane.toml", description = "All that a configuration file says.")]
pub struct Config {
    /// IANA zone of all local times, such as `Europe/Berlin`. Needed by a campaign without a `[[site]]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// Days and windows of a campaign. Single bursts need none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub campaign: Option<Campaign>,
    /// How one burst is fired.
    #[serde(default)]
    pub burst: BurstSettings,
    /// What happens when a try fails in a way that may pass.
    #[serde(default)]
    pub retry: RetrySettings,
    /// When a try is given up.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// An endpoint of no lane, timed beside each burst of a campaign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Control>,
    /// Every threshold of the decision, of its triggers and of counter-tests.
    #[serde(default)]
    pub rules: RulesSettings,
    /// What the team needs beyond the floor.
    #[serde(default, skip_serializing_if = "Needs::is_empty")]
    pub needs: Needs,
    /// Reasons for a rung that are no matter of cost.
    #[serde(default, skip_serializing_if = "Reasons::is_empty")]
    pub reasons: Reasons,
    /// Assumptions behind the cost of waiting and the price of a month.
    #[serde(default)]
    pub cost: CostSettings,
    /// Who is told when a trigger fires or a decision expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<Notify>,
    /// What is kept of people and of what they are answered.
    #[serde(default)]
    pub privacy: Privacy,
    /// Places with a zone and windows of their own, at most 24. Without any there is one: `time_zone` and `[campaign]`.
    #[serde(default, rename = "site", skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<Site>,
    /// The lanes, 1 to 100.
    #[serde(default, rename = "lane")]
    pub lanes: Vec<Lane>,
    /// The task classes, at most 100. Without any there is one: `inline-assist` with a floor of 25 s and a prompt of its
    /// own.
    #[serde(default, rename = "task")]
    pub tasks: Vec<Task>,
}

impl Config {
    /// The rules across keys, all of them: names unique, windows apart, the peak among them, floors within the limits of
    /// time, keys not in the file, every number within its range.
    ///
    /// # Errors
    /// All problems together, without lines (see [`parse_checked`] for those).
    pub fn check(&self) -> Result<(), ConfigError> {
        ConfigError::unless_empty(check::problems(self))
    }

    /// The lane of that name.
    pub fn lane(&self, name: &str) -> Option<&Lane> {
        self.lanes.iter().find(|lane| lane.name == name)
    }

    /// Developers behind the assumptions of cost: those of `[cost]`, else those of `[needs]`.
    pub fn cost_developers(&self) -> Option<u32> {
        self.cost.developers.or(self.needs.developers)
    }

    /// The task class of that name.
    pub fn task(&self, name: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| task.name == name)
    }
}
