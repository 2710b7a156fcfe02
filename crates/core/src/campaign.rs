//! What a campaign locks when it starts, and what makes two campaigns one: whoever changes the prompt, a floor, N, the
//! windows or a threshold starts a new series instead of silently mixing.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::burst::{Connections, PromptMode};
use crate::config::{
    BurstSettings, Campaign, Config, Day, Lane, RetrySettings, RulesSettings, SiteCampaign, Task, Timeouts,
};
use crate::lane::{Api, Kind};

/// Number of the form of [`Locked`] as it is stored.
pub const LOCKED_FORMAT: u32 = 1;

/// All that a campaign is judged by later, as it was when the campaign started. Stored as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Locked {
    /// [`LOCKED_FORMAT`].
    pub format: u32,
    /// Name of the site; `None` where the configuration has none.
    pub site: Option<String>,
    /// IANA zone of its local times.
    pub time_zone: String,
    /// Days and windows; `start_date` is always there.
    pub campaign: Campaign,
    /// How bursts are fired; `seed` is that of the campaign.
    pub burst: BurstSettings,
    /// When a try is made again.
    pub retry: RetrySettings,
    /// When a try is given up.
    pub timeouts: Timeouts,
    /// Thresholds of decision, triggers and counter-tests.
    pub rules: RulesSettings,
    /// The task classes with the text of their prompts, and with reason, author and date of their floors.
    pub tasks: Vec<Task>,
    /// The lanes as they were. A lane that joins or leaves later changes no other lane's series.
    pub lanes: Vec<LockedLane>,
}

/// What of a lane makes its answers comparable: one changed field is another series of that lane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LockedLane {
    /// Name.
    pub name: String,
    /// Rung.
    pub kind: Kind,
    /// API.
    pub api: Api,
    /// Model asked for.
    pub model: String,
    /// Address without query, which may hold a key.
    pub base_url: String,
    /// Region, as stated.
    pub region: Option<String>,
    /// `temperature` is sent.
    pub send_temperature: bool,
    /// `seed` is sent.
    pub send_seed: bool,
    /// Name of the budget's field.
    pub max_tokens_field: String,
    /// What is merged into each request, as JSON.
    pub extra_body: serde_json::Map<String, serde_json::Value>,
}

impl From<&Lane> for LockedLane {
    fn from(lane: &Lane) -> Self {
        Self {
            name: lane.name.clone(),
            kind: lane.kind,
            api: lane.api,
            model: lane.model.clone(),
            base_url: lane.base_url.split(['?', '#']).next().unwrap_or_default().to_owned(),
            region: lane.region.clone(),
            send_temperature: lane.send_temperature,
            send_seed: lane.send_seed,
            max_tokens_field: lane.max_tokens_field.name().to_owned(),
            extra_body: lane.extra_body.clone(),
        }
    }
}

/// What is part of the identity, in this order and spelling. Budgets, what comes after the campaign, the lanes, and the
/// reasons of floors are not: they change no figure.
#[derive(Serialize)]
struct Identity<'a> {
    site: Option<&'a str>,
    time_zone: &'a str,
    days: u32,
    windows: Vec<(String, u64)>,
    peak: Option<String>,
    workdays_only: bool,
    weekend: &'a [u8],
    holidays: Vec<String>,
    late_tolerance_us: u64,
    bursts_per_window: u32,
    attempts: u32,
    concurrency: Option<u32>,
    spacing_us: u64,
    warmup: u32,
    prompt_mode: PromptMode,
    connections: Connections,
    order: &'static str,
    retry: (u32, u64, u64, bool),
    timeouts_us: (u64, u64, u64),
    rules: &'a RulesSettings,
    tasks: Vec<Task>,
}

impl Locked {
    /// What would be locked if the campaign of a site started with `start_date` now.
    ///
    /// * `config`: with the texts of prompt files in `prompt`, as the front door loads it.
    pub fn new(config: &Config, site: &SiteCampaign, start_date: Day) -> Self {
        let measured = config.lanes.iter().filter(|lane| site.lanes.contains(&lane.name));
        Self {
            format: LOCKED_FORMAT,
            site: site.name.clone(),
            time_zone: site.time_zone.clone(),
            campaign: Campaign { start_date: Some(start_date), ..site.campaign.clone() },
            burst: config.burst.clone(),
            retry: config.retry.clone(),
            timeouts: config.timeouts.clone(),
            rules: config.rules.clone(),
            tasks: config.tasks.clone(),
            lanes: measured.map(LockedLane::from).collect(),
        }
    }

    /// Twelve hexadecimal digits over all that two campaigns must share to be of one series; the first day is no part.
    pub fn plan_hash(&self) -> String {
        let (campaign, burst, retry) = (&self.campaign, &self.burst, &self.retry);
        let identity = Identity {
            site: self.site.as_deref(),
            time_zone: &self.time_zone,
            days: campaign.days,
            windows: campaign.windows_in_order().iter().map(|w| (w.start.to_string(), w.length.as_us())).collect(),
            peak: campaign.declared_peak().map(|peak| peak.to_string()),
            workdays_only: campaign.workdays_only,
            weekend: &campaign.weekend,
            holidays: campaign.holidays.iter().map(ToString::to_string).collect(),
            late_tolerance_us: campaign.late_tolerance.as_us(),
            bursts_per_window: campaign.bursts_per_window,
            attempts: burst.attempts,
            concurrency: burst.concurrency,
            spacing_us: burst.spacing.as_us(),
            warmup: burst.warmup,
            prompt_mode: burst.prompt_mode,
            connections: burst.connections,
            order: burst.order.name(),
            retry: (retry.max, retry.backoff_base.as_us(), retry.backoff_cap.as_us(), retry.jitter),
            timeouts_us: (self.timeouts.first_byte.as_us(), self.timeouts.idle.as_us(), self.timeouts.total.as_us()),
            rules: &self.rules,
            tasks: self.tasks.iter().map(without_commentary).collect(),
        };
        let text = serde_json::to_string(&identity).unwrap_or_default();
        Sha256::digest(text).iter().take(6).map(|byte| format!("{byte:02x}")).collect()
    }

    /// The id of the campaign: [`Self::plan_hash`] and the first day, `7f3a9c01b2d4-2026-12-01`.
    pub fn id(&self) -> String {
        let day = self.campaign.start_date.map(|day| day.to_string()).unwrap_or_default();
        format!("{}-{day}", self.plan_hash())
    }

    /// The lane of that name.
    pub fn lane(&self, name: &str) -> Option<&LockedLane> {
        self.lanes.iter().find(|lane| lane.name == name)
    }
}

/// Reason, author and date of a floor, and where its prompt came from, change no figure.
fn without_commentary(task: &Task) -> Task {
    Task { floor_reason: None, floor_author: None, floor_date: None, prompt_file: None, ..task.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(extra: &str) -> Config {
        let text = format!(
            "time_zone = \"Europe/Berlin\"\n[campaign]\n{extra}\n[[lane]]\nname = \"lane-a\"\nkind = \"free-hosted\"\n\
             base_url = \"https://lane-a.example/v1?key=secret\"\nmodel = \"m\"\n[[task]]\nname = \"t\"\nprompt = \"Say hello.\"\n"
        );
        crate::config::parse(&text).unwrap()
    }

    fn locked(config: &Config) -> Locked {
        Locked::new(config, &config.sites()[0], "2026-12-01".parse().unwrap())
    }

    #[test]
    fn what_changes_a_figure_changes_the_hash_and_what_is_commentary_does_not() {
        let base = config("");
        let hash = locked(&base).plan_hash();
        assert_eq!(hash.len(), 12);
        assert_eq!(locked(&base).id(), format!("{hash}-2026-12-01"));
        let changed = |change: fn(&mut Config)| {
            let mut other = base.clone();
            change(&mut other);
            locked(&other).plan_hash() != hash
        };
        assert!(changed(|c| c.tasks[0].prompt = Some("Say goodbye.".into())));
        assert!(changed(|c| c.tasks[0].max_tokens += 1));
        assert!(changed(|c| c.tasks[0].floor = Some("24s".parse().unwrap())));
        assert!(changed(|c| c.burst.attempts = 9));
        assert!(changed(|c| c.retry.max = 3));
        assert!(changed(|c| c.rules.pass_percent = 89));
        assert!(changed(|c| c.time_zone = Some("Asia/Seoul".into())));
        assert!(changed(|c| c.campaign.as_mut().unwrap().days = 4));
        assert!(changed(|c| c.campaign.as_mut().unwrap().windows.truncate(3)));
        assert!(!changed(|c| c.tasks[0].floor_author = Some("somebody".into())));
        assert!(!changed(|c| c.campaign.as_mut().unwrap().budget_requests = Some(5)));
        assert!(!changed(|c| c.lanes[0].model = "n".into()));
        assert!(!changed(|c| c.burst.seed = Some(5)));
    }

    #[test]
    fn the_stored_form_comes_back_as_it_was_and_holds_no_query() {
        let before = locked(&config("windows = [\"09:00\", { start = \"16:00\", length = \"2h\" }]"));
        let text = serde_json::to_string(&before).unwrap();
        assert!(!text.contains("secret"), "{text}");
        let after: Locked = serde_json::from_str(&text).unwrap();
        assert_eq!(after, before);
        assert_eq!(after.id(), before.id());
    }
}
