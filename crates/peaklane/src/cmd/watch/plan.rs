//! `watch --dry-run`: the plan, burst by burst, out of the configuration alone.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use peaklane_core::campaign::Locked;
use peaklane_core::config::{Config, Day, SiteCampaign};
use peaklane_core::window::bursts::{PlannedSlot, bursts, slots};
use peaklane_core::window::{BurstsError, Flag};
use peaklane_report::watch::plan::{PlannedLine, json, table};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::{Format, Globals};
use crate::load::{UnknownZone, time_zone};
use crate::out;

/// Prints the plan of every site.
pub(super) fn show(config: &Config, sites: &[SiteCampaign], globals: &Globals) -> Result<Exit, Failure> {
    let mut lines = Vec::new();
    for site in sites {
        lines.extend(site_lines(config, site)?);
    }
    out::print(&match globals.format {
        Format::Table => table(&lines).render(globals.width, globals.palette),
        Format::Json => format!("{:#}\n", json(&lines)),
        Format::Csv => table(&lines).csv().map_err(|error| Failure::of(Exit::Unmeasured, &error, None))?,
        Format::Md => table(&lines).markdown(),
    })?;
    Ok(Exit::Fine)
}

fn site_lines(config: &Config, site: &SiteCampaign) -> Result<Vec<PlannedLine>, Failure> {
    let zone = zone_of(site)?;
    let start = site.campaign.start_date.map_or_else(|| today(&zone), Day::date);
    // The day is no part of the hash.
    let hash = Locked::new(config, site, day(start)?).plan_hash();
    let bursts = bursts(&site.campaign, &hash, start, &zone)?;
    let planned = slots(&bursts, &site.lanes, &config.tasks, config.burst.order);
    let lines = planned.into_iter().map(|PlannedSlot { burst, lane, task, at }| PlannedLine {
        site: site.name.clone(),
        date: burst.date.to_string(),
        window: burst.window.to_string(),
        utc: at.map(|at| at.to_string()),
        flag: burst.flag.map(Flag::name),
        lane: lane.to_owned(),
        task: task.to_owned(),
    });
    Ok(lines.collect())
}

/// The zone of a site.
pub(super) fn zone_of(site: &SiteCampaign) -> Result<TimeZone, Failure> {
    Ok(time_zone(&site.time_zone)?)
}

/// Today there.
pub(super) fn today(zone: &TimeZone) -> Date {
    zone.to_datetime(Timestamp::now()).date()
}

/// A date as the configuration has it.
pub(super) fn day(date: Date) -> Result<Day, Failure> {
    date.to_string().parse().map_err(|error| Failure::of(Exit::Usage, &error, None))
}

impl From<UnknownZone> for Failure {
    fn from(error: UnknownZone) -> Self {
        Self::of(Exit::Usage, &error, error.hint())
    }
}

impl From<BurstsError> for Failure {
    fn from(error: BurstsError) -> Self {
        Self::of(Exit::Usage, &error, error.hint())
    }
}
