//! From the configuration to a burst that can be fired, for `burst` and `watch`.

use std::sync::Arc;

use jiff::ZonedDateTime;
use peaklane_core::burst::BurstHeader;
use peaklane_core::config::{Config, Lane, Micros, Task};
use peaklane_run::burst::{BurstPlan, MAX_TOGETHER};
use peaklane_run::clock::{compact_utc, wall_us};
use peaklane_run::fleet::Shot;
use peaklane_run::plan_hash::plan_hash;
use peaklane_wire::client::Limits;
use peaklane_wire::lag::LagProbe;
use peaklane_wire::retry::RetryPolicy;
use rand::RngExt as _;

use super::lanes::ready;
use crate::failure::Failure;
use crate::load::time_zone;

/// When and as part of what a burst is fired.
#[derive(Clone, Debug)]
pub(super) struct Occasion {
    /// Id of the run: lanes that share it get the same nonces.
    pub(super) run: String,
    /// End of the ids of its bursts.
    pub(super) mark: String,
    /// Begin, microseconds since the Unix epoch (UTC).
    pub(super) started_unix_us: i64,
    /// Seed of nonces and order.
    pub(super) seed: u64,
    /// Local date.
    pub(super) date: String,
    /// Local begin of the window; `None` for a burst by hand.
    pub(super) window: Option<String>,
    /// Zone of both.
    pub(super) zone: Option<String>,
    /// Id of the campaign; `None` for a burst by hand.
    pub(super) campaign: Option<String>,
    /// Site of the campaign.
    pub(super) site: Option<String>,
}

impl Occasion {
    /// A burst by hand, now.
    pub(super) fn now(zone: Option<&str>, seed: u64) -> Self {
        let started_unix_us = wall_us();
        let mark = format!("{:08x}", rand::rng().random::<u32>());
        Self {
            run: format!("{}-{mark}", compact_utc(started_unix_us)),
            mark,
            started_unix_us,
            seed,
            date: local_date(zone),
            window: None,
            zone: zone.map(str::to_owned),
            campaign: None,
            site: None,
        }
    }
}

/// How many attempts a burst has, how many of them in flight, and for how long where they keep being begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    /// Attempts; 0 in a stretch, which has as many as it takes.
    pub(super) attempts: u32,
    /// Most in flight at once; `None`: all together.
    pub(super) concurrency: Option<u32>,
    /// How long attempts keep being begun; `None` for a fixed number.
    pub(super) stretch: Option<Micros>,
}

impl Pace {
    /// That of a task class: a batch class works for its stretch, the others make the attempts of `[burst]`.
    pub(super) fn of(config: &Config, task: &Task) -> Self {
        let stretch = task.sustained_stretch();
        let attempts = if stretch.is_some() { 0 } else { config.burst.attempts };
        Self { attempts, concurrency: task.in_flight(&config.burst), stretch }
    }

    /// Most attempts that are in flight at once.
    pub(super) fn at_once(&self) -> u32 {
        let most = if self.stretch.is_some() { u32::MAX } else { self.attempts };
        self.concurrency.unwrap_or(self.attempts).min(most)
    }
}

/// Refuses bursts that would release more attempts together than can be.
///
/// # Errors
/// [`Failure`] with exit code 2.
pub(super) fn guard_together(paces: &[Pace]) -> Result<(), Failure> {
    match paces.iter().find(|pace| pace.concurrency.is_none() && pace.attempts > MAX_TOGETHER) {
        Some(pace) => Err(Failure::usage(format!("{} attempts cannot be released together", pace.attempts)).with_hint(
            format!("`--concurrency N` keeps N in flight; without it up to {MAX_TOGETHER} are released at once"),
        )),
        None => Ok(()),
    }
}

/// What the shots at all lanes share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mould<'a> {
    /// Burst, retries.
    pub(super) config: &'a Config,
    /// What is asked and how it is judged.
    pub(super) task: &'a Task,
    /// Limits of each try.
    pub(super) limits: Limits,
    /// Answers are streamed.
    pub(super) stream: bool,
    /// Judged by tasks an hour, without a latency floor.
    pub(super) batch: bool,
    /// Attempts in number and time.
    pub(super) pace: Pace,
}

impl Mould<'_> {
    /// One shot at a lane. Reads its key; nothing is sent.
    ///
    /// # Errors
    /// As [`ready`].
    pub(super) fn shot(&self, lane: &Lane, occasion: &Occasion, lag: &Arc<LagProbe>) -> Result<Shot, Failure> {
        let Self { config, task, limits, stream, batch, pace } = *self;
        let ready = ready(lane, task, stream, occasion.seed, Some(lag))?;
        let burst = &config.burst;
        let floor_us = if batch { 0 } else { task.floor.or(task.latency_floor()).map_or(0, Micros::as_us) };
        let header = BurstHeader {
            id: format!("{}-{}-{}", compact_utc(occasion.started_unix_us), lane.name, occasion.mark),
            run: occasion.run.clone(),
            lane: lane.name.clone(),
            kind: lane.kind,
            api: lane.api,
            model: lane.model.clone(),
            base_url: shown_base(&lane.base_url),
            task: task.name.clone(),
            floor_us,
            tasks_per_hour_floor: task.tasks_per_hour.filter(|_| batch),
            stretch_us: pace.stretch.map(Micros::as_us),
            campaign: occasion.campaign.clone(),
            site: occasion.site.clone(),
            attempts: pace.attempts,
            concurrency: pace.concurrency,
            spacing_us: if pace.stretch.is_some() { 0 } else { burst.spacing.as_us() },
            prompt_mode: burst.prompt_mode,
            connections: burst.connections,
            stream,
            max_retries: config.retry.max,
            total_timeout_us: limits.total.as_micros() as u64,
            seed: occasion.seed,
            prompt_hash: plan_hash(task, stream),
            date: Some(occasion.date.clone()),
            window: occasion.window.clone(),
            zone: occasion.zone.clone(),
            started_unix_us: occasion.started_unix_us,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            simulated: false,
        };
        let plan = BurstPlan {
            header,
            warmup: burst.warmup,
            limits,
            retry: RetryPolicy {
                max_retries: config.retry.max,
                base: config.retry.backoff_base.as_duration(),
                cap: config.retry.backoff_cap.as_duration(),
                jitter: config.retry.jitter,
                ..RetryPolicy::default()
            },
            check: task.check.clone(),
            accept_budget_stop: task.accept_budget_stop,
        };
        Ok(Shot { client: ready.client, lane: ready.lane, plan })
    }
}

/// The base URL without its query, which may hold a key.
fn shown_base(base: &str) -> String {
    base.split(['?', '#']).next().unwrap_or_default().to_owned()
}

/// Today in the configured zone, else in the system's.
fn local_date(zone: Option<&str>) -> String {
    let now = ZonedDateTime::now();
    let there = zone.and_then(|zone| time_zone(zone).ok()).map(|zone| now.with_time_zone(zone));
    there.unwrap_or(now).date().to_string()
}
