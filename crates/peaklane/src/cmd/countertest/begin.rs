//! `countertest begin`: notes what is, before anything is changed.

use jiff::Timestamp;
use peaklane_core::config::{Config, SiteCampaign};
use peaklane_core::countertest::{
    Place, REGISTERED_FORMAT, Registered, Side, Snapshot, Span, newest_campaign, side, worst,
};
use peaklane_core::summary::BurstData;
use peaklane_run::clock::wall_us;
use peaklane_store::Ledger;

use super::BeginArgs;
use super::context::{Bursts, Standing, configuration, moment, now_of, print, reading, snapshot, store, stored, zone};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::out;

/// What a configuration without a zone is taken to mean.
const NO_ZONE: &str = "UTC";

/// Registers and shows it.
///
/// # Errors
/// [`Failure`]: exit code 2 for names that nothing has and where one is open already, 3 where nothing was measured before.
pub(super) fn run(args: &BeginArgs, globals: &Globals) -> Result<Exit, Failure> {
    let config = configuration(globals)?;
    let site = site(args, &config)?;
    let zone_name = site.as_ref().map(|s| s.time_zone.clone()).or_else(|| config.time_zone.clone());
    let zone_name = zone_name.unwrap_or_else(|| NO_ZONE.to_owned());
    let zone = zone(&zone_name)?;
    let now_unix_us = moment(args.as_of, &zone)?;
    let lane = chosen("lane", args.lane.as_ref(), &names(&config))?;
    let tasks: Vec<String> = config.tasks.iter().map(|t| t.name.clone()).collect();
    let task = chosen("task", args.task.as_ref(), &tasks)?;
    if args.change.trim().is_empty() {
        return Err(
            Failure::usage("`--change` says nothing").with_hint("say in a few words what you are about to change")
        );
    }
    for (option, name) in [("to", &args.to), ("beside", &args.beside)] {
        let Some(name) = name else { continue };
        chosen(option, Some(name), &names(&config))?;
        if *name == lane || (option == "beside" && args.to.as_ref() == Some(name)) {
            return Err(Failure::usage(format!("`--{option}` names `{name}`, which is a lane of the change itself"))
                .with_hint("name another lane"));
        }
    }

    let (reader, path) = reading(globals)?;
    let known = stored(&reader)?;
    if let Some(open) = known.iter().find(|t| t.ended.is_none() && (&t.lane, &t.task) == (&lane, &task)) {
        return Err(Failure::usage(format!("`{}` is open: {}", open.id, open.change))
            .with_hint("one change at a time: `peaklane countertest end`, or `end --give-up`"));
    }
    let bursts = Bursts::of(globals, &task)?;
    let data = bursts.data();
    let tested = taken(&config, &lane, &task)?;
    let wanted: Vec<String> = args.window.iter().map(ToString::to_string).collect();
    let before = Before::of(&data, &tested, site.as_ref(), &wanted, now_unix_us)?;
    let beside = beside(args, &config, &data, &before, (&lane, &task))?;
    let day = Timestamp::from_microsecond(now_unix_us).map(|at| at.to_zoned_datetime(zone.clone()).date().to_string());
    let test = Registered {
        format: REGISTERED_FORMAT,
        id: id(&day.unwrap_or_default(), &lane, &task, &known),
        change: args.change.clone(),
        lane,
        to: args.to.clone(),
        task: task.clone(),
        site: before.site,
        zone: zone_name,
        windows: before.sides.iter().map(|s| s.window.clone()).collect(),
        campaign: before.campaign,
        margin_percent: config.rules.counter_margin_percent,
        wait_days: config.rules.counter_wait_days,
        begun_unix_us: now_unix_us,
        in_retrospect: args.as_of.is_some() && now_unix_us < wall_us(),
        tested,
        target: args.to.as_ref().map(|to| taken(&config, to, &task)).transpose()?,
        unchanged: beside.as_ref().map(|(_, lane, _)| lane.clone()),
        before_beside: beside.as_ref().map(|(.., sides)| sides.clone()).unwrap_or_default(),
        beside: beside.map(|(name, ..)| name),
        before: before.sides,
        not_before_unix_us: now_unix_us,
        looks: 0,
        seen: None,
        ended: None,
    };
    drop(reader);
    store(&Ledger::open(&path)?, &test, now_unix_us)?;
    next_step(&test, globals);
    let mut test = test;
    let (found, _) = test.notice(&now_of(&config, &test), now_unix_us);
    print(&[Standing::of(test, Some(found), &bursts, now_unix_us)?], globals)?;
    Ok(Exit::Fine)
}

fn next_step(test: &Registered, globals: &Globals) {
    let (windows, days) = (test.windows.join(", "), test.wait_days);
    let change = match &test.to {
        Some(to) => format!("measure `{to}` now"),
        None => "make the one change in the configuration now".to_owned(),
    };
    out::note(
        globals,
        &format!(
            "{change}, run the same bursts at {windows} (`watch`, or `burst --window`), wait {days} days, then `end`"
        ),
    );
}

fn names(config: &Config) -> Vec<String> {
    config.lanes.iter().map(|l| l.name.clone()).collect()
}

/// The one that was named, or the only one.
fn chosen(what: &str, named: Option<&String>, known: &[String]) -> Result<String, Failure> {
    let failure = match (named, known) {
        (Some(name), _) if known.contains(name) => return Ok(name.clone()),
        (None, [only]) => return Ok(only.clone()),
        (Some(name), _) => Failure::usage(format!("`--{what}` names `{name}`, which the configuration does not have")),
        (None, _) => Failure::usage(format!("`--{what}` is needed: there are several")),
    };
    Err(failure.with_hint(format!("there are {}", known.join(", "))))
}

fn site(args: &BeginArgs, config: &Config) -> Result<Option<SiteCampaign>, Failure> {
    let sites = config.sites();
    let named: Vec<String> = sites.iter().filter_map(|s| s.name.clone()).collect();
    if named.is_empty() && args.site.is_none() {
        return Ok(sites.into_iter().next());
    }
    let name = chosen("site", args.site.as_ref(), &named)?;
    Ok(sites.into_iter().find(|s| s.name.as_ref() == Some(&name)))
}

fn taken(config: &Config, lane: &str, task: &str) -> Result<Snapshot, Failure> {
    snapshot(config, lane, task).ok_or_else(|| {
        Failure::usage(format!("the configuration has no lane `{lane}` or no task class `{task}`"))
            .with_hint("`peaklane check` shows what it has")
    })
}

/// What stands before the change.
struct Before {
    campaign: Option<String>,
    site: Option<String>,
    /// Window by window, the deciding one first.
    sides: Vec<Side>,
    to_unix_us: i64,
}

impl Before {
    fn of(
        data: &[BurstData<'_>],
        tested: &Snapshot,
        site: Option<&SiteCampaign>,
        wanted: &[String],
        to_unix_us: i64,
    ) -> Result<Self, Failure> {
        let series = &tested.series;
        let windows = windows(data, site, wanted)?;
        let site_name = site.and_then(|s| s.name.clone());
        let place = Place { site: site_name.as_deref(), windows: &windows, campaign: None };
        let campaign = newest_campaign(data, series, &place, to_unix_us);
        let place = Place { campaign: campaign.as_deref(), ..place };
        let mut sides = side(data, series, &place, Span { from_unix_us: i64::MIN, to_unix_us });
        let peak = site.and_then(|s| s.campaign.declared_peak()).map(|peak| peak.to_string());
        let deciding = match peak.filter(|peak| windows.contains(peak)) {
            Some(peak) => Some(peak),
            None => worst(&sides).map(|side| side.window.clone()),
        };
        let (lane, task) = (&series.lane, &series.task);
        let measured =
            sides.iter().find(|s| Some(&s.window) == deciding.as_ref()).is_some_and(|s| !s.bursts.is_empty());
        if !measured {
            let window = deciding.unwrap_or_else(|| windows.join(", "));
            return Err(Failure::unmeasured(format!(
                "no burst of `{lane}` and `{task}` as the configuration has them now counts in the window {window}"
            ))
            .with_hint("measure first (`peaklane watch`, or `burst --window`), then begin, and change only then"));
        }
        // A window that was not measured before has nothing to be compared with.
        sides.retain(|side| !side.bursts.is_empty());
        sides.sort_by_key(|side| Some(&side.window) != deciding.as_ref());
        Ok(Self { campaign, site: site_name, sides, to_unix_us })
    }

    /// The same of another lane.
    fn of_lane(&self, data: &[BurstData<'_>], lane: &Snapshot) -> Vec<Side> {
        let windows: Vec<String> = self.sides.iter().map(|s| s.window.clone()).collect();
        let place = Place { site: self.site.as_deref(), windows: &windows, campaign: self.campaign.as_deref() };
        side(data, &lane.series, &place, Span { from_unix_us: i64::MIN, to_unix_us: self.to_unix_us })
    }
}

/// The windows of the campaign, or those that bursts carry, in the order of the day; only the wanted ones, if any are.
fn windows(data: &[BurstData<'_>], site: Option<&SiteCampaign>, wanted: &[String]) -> Result<Vec<String>, Failure> {
    let mut known: Vec<String> = match site {
        Some(site) => site.campaign.windows_in_order().iter().map(|w| w.start.to_string()).collect(),
        None => data.iter().filter_map(|b| b.header.window.clone()).collect(),
    };
    known.sort();
    known.dedup();
    for window in wanted {
        chosen("window", Some(window), &known)?;
    }
    known.retain(|window| wanted.is_empty() || wanted.contains(window));
    Ok(known)
}

/// The lane beside with its bursts before: the named one, else the first that was measured in the deciding window.
fn beside(
    args: &BeginArgs,
    config: &Config,
    data: &[BurstData<'_>],
    before: &Before,
    (lane, task): (&str, &str),
) -> Result<Option<(String, Snapshot, Vec<Side>)>, Failure> {
    let measured = |name: &str| {
        let snapshot = snapshot(config, name, task)?;
        let sides = before.of_lane(data, &snapshot);
        sides.first().is_some_and(|s| !s.bursts.is_empty()).then(|| (name.to_owned(), snapshot, sides))
    };
    match &args.beside {
        Some(name) => match measured(name) {
            Some(found) => Ok(Some(found)),
            None => Err(Failure::unmeasured(format!("the lane beside, `{name}`, was not measured in the same window"))
                .with_hint("name a lane that was, or leave `--beside` out")),
        },
        None => {
            let others = config.lanes.iter().map(|l| l.name.as_str());
            let mut others = others.filter(|name| *name != lane && args.to.as_deref() != Some(*name));
            Ok(others.find_map(measured))
        }
    }
}

/// An id that no counter-test has yet.
fn id(day: &str, lane: &str, task: &str, known: &[Registered]) -> String {
    let first = format!("countertest-{day}-{lane}-{task}");
    let taken = |id: &String| known.iter().any(|test| test.id == *id);
    if !taken(&first) {
        return first;
    }
    (2u32..).map(|n| format!("{first}-{n}")).find(|id| !taken(id)).unwrap_or(first)
}
