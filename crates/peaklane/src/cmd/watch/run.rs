//! `watch` and `watch --due`: the loop with real clocks, a real gun and a voice.

use peaklane_core::budget::Caps;
use peaklane_core::campaign::Locked;
use peaklane_core::config::{Config, Day, SiteCampaign};
use peaklane_core::forecast::Forecast;
use peaklane_core::watch::Note;
use peaklane_core::window::bursts::{bursts, slots};
use peaklane_report::notes;
use peaklane_report::watch::{forecast, words};
use peaklane_run::burst::Stop;
use peaklane_run::watch::{Candidate, Ended, Keeper, Plan, Site, SystemClock, WatchError, watch};
use rand::RngExt as _;
use serde_json::json;

use super::WatchArgs;
use super::gun::{StoreGun, zone};
use super::plan::{day, today, zone_of};
use crate::cmd::countertest;
use crate::cmd::lanes::event_loop;
use crate::cmd::shots::{Pace, guard_together};
use crate::cmd::system::{raise_file_limit, stop_on_signal, survive_the_file_size_limit};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::{Format, Globals};
use crate::out;

pub(super) fn run(
    args: &WatchArgs,
    config: &Config,
    sites: &[SiteCampaign],
    globals: &Globals,
) -> Result<Exit, Failure> {
    let paces: Vec<Pace> = config.tasks.iter().map(|task| Pace::of(config, task)).collect();
    guard_together(&paces)?;
    let at_once = paces.iter().map(Pace::at_once).max().unwrap_or(1);
    raise_file_limit(at_once, config.burst.order, config.lanes.len())?;
    let plan = plan(args, config, sites)?;
    // A change that no burst shows (a region, a key) counts from here on.
    countertest::look(config, globals.store.path(), globals);
    let runtime = event_loop()?;
    survive_the_file_size_limit(&runtime);
    let ended = runtime.block_on(async {
        let gun = StoreGun::new(config, globals.store.path())?;
        gun.check()?;
        let (pull, stop) = Stop::pair();
        stop_on_signal(pull);
        let keeper = Keeper::new(globals.store.path().to_owned());
        let mut voice = Voice { config, sites, caps: plan.caps, globals, failed: None };
        let ended = watch(&plan, &SystemClock, &gun, &keeper, stop, |note: &Note| voice.tell(note)).await;
        voice.failed.map_or(Ok(ended?), Err)
    })?;
    match ended {
        Ended::Finished | Ended::Stopped | Ended::NothingDue => Ok(Exit::Fine),
        Ended::Budget(exceeded) => {
            let why = exceeded.map_or_else(
                || "the campaign was stopped by its budget".to_owned(),
                |exceeded| words::budget(&exceeded),
            );
            Err(Failure::unmeasured(why).with_hint(
                "what was measured stays; a campaign with another budget begins anew: raise the cap, `peaklane watch --fresh`",
            ))
        }
        Ended::StoppedElsewhere => Err(Failure::unmeasured("every campaign of this configuration was stopped")
            .with_hint("another configuration replaced it in this store; `peaklane watch --fresh` begins it anew")),
    }
}

fn plan(args: &WatchArgs, config: &Config, sites: &[SiteCampaign]) -> Result<Plan, Failure> {
    let drawn = config.burst.seed.unwrap_or_else(|| u64::from(rand::rng().random::<u32>()));
    let sites = sites.iter().map(|site| {
        let zone = zone_of(site)?;
        let start = site.campaign.start_date.map_or_else(|| day(today(&zone)), Ok)?;
        let mut locked = Locked::new(config, site, start);
        locked.burst.seed = Some(drawn);
        let candidate = Candidate {
            locked,
            day_is_given: site.campaign.start_date.is_some(),
            fresh: args.fresh,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        Ok(Site { candidate, zone })
    });
    let caps = config.campaign.as_ref().map(Caps::from).unwrap_or_default();
    Ok(Plan { sites: sites.collect::<Result<_, Failure>>()?, due: args.due, order: config.burst.order, caps })
}

/// Tells notes: lines for people on standard error, or one JSON object a line on standard output.
struct Voice<'a> {
    config: &'a Config,
    sites: &'a [SiteCampaign],
    caps: Caps,
    globals: &'a Globals,
    /// Nobody listens any more.
    failed: Option<Failure>,
}

impl Voice<'_> {
    fn tell(&mut self, note: &Note) {
        match self.globals.format {
            Format::Json => self.line(&serde_json::to_value(note).unwrap_or_default()),
            _ if self.globals.quiet => {}
            _ => out::say(&words::lines(note, self.globals.stderr_palette)),
        }
        if let Note::CampaignBegun { name, first_date, .. } = note {
            self.forecast(name.site.as_deref(), first_date);
        }
    }

    /// What the campaign will cost, when it begins.
    fn forecast(&mut self, site: Option<&str>, first_date: &str) {
        let site = self.sites.iter().find(|one| one.name.as_deref() == site);
        let Some(forecast) = site.and_then(|site| forecast_of(self.config, site, first_date.parse().ok()?)) else {
            return;
        };
        match self.globals.format {
            Format::Json => {
                let mut object = json!(forecast);
                object["event"] = "forecast".into();
                self.line(&object);
            }
            _ if self.globals.quiet => {}
            _ => {
                let lines = forecast::notes(&forecast, self.caps);
                out::say(&notes::render(&lines, self.globals.width, self.globals.stderr_palette));
            }
        }
    }

    fn line(&mut self, object: &serde_json::Value) {
        if let Err(failure) = out::print(&format!("{object}\n")) {
            self.failed.get_or_insert(failure);
        }
    }
}

fn forecast_of(config: &Config, site: &SiteCampaign, first: Day) -> Option<Forecast> {
    let hash = Locked::new(config, site, first).plan_hash();
    let planned = bursts(&site.campaign, &hash, first.date(), &zone(&site.time_zone)?).ok()?;
    let slots = slots(&planned, &site.lanes, &config.tasks, config.burst.order);
    let due = slots.iter().filter_map(|slot| Some((slot.lane, slot.task, slot.burst.date.to_string(), slot.at?)));
    Some(Forecast::of(config, due, &zone))
}

impl From<WatchError> for Failure {
    fn from(error: WatchError) -> Self {
        match error {
            WatchError::Store(error) => error.into(),
            WatchError::Plan(error) => error.into(),
        }
    }
}
