//! How much a configuration would measure: bursts, attempts, requests, and the dates on which clocks are changed.

use std::collections::BTreeSet;

use peaklane_core::config::{Campaign, Config, SiteCampaign, TaskKind};
use peaklane_core::summary::Ms;
use peaklane_core::window::{Calendar, Flag, LocalTime, PlanError, plan};
use serde::Serialize;

use crate::load::time_zone;

/// What would be measured. Without a campaign it is one burst by hand, with one window and one day.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Extent {
    /// True with a `[campaign]`.
    pub campaign: bool,
    /// Lanes.
    pub lanes: usize,
    /// Task classes.
    pub tasks: usize,
    /// The sites; one without a name where the configuration has no `[[site]]`, none without a campaign.
    pub sites: Vec<SiteExtent>,
    /// Windows of a day, earliest first, of the only site; empty without a campaign and with several sites.
    pub windows: Vec<PlannedWindow>,
    /// Days that count.
    pub days: u32,
    /// First day, where it is written.
    pub start_date: Option<String>,
    /// The dates of the only site, where the first is written.
    pub dates: Vec<PlannedDate>,
    /// Bursts of each lane and task class in a window.
    pub bursts_per_window: u32,
    /// Bursts in all.
    pub bursts: u64,
    /// Bursts of batch classes among them: each runs by the clock, so that its requests are not known beforehand.
    pub stretches: u64,
    /// Attempts of a burst.
    pub attempts_per_burst: u32,
    /// Warm-up attempts before each burst.
    pub warmup_per_burst: u32,
    /// Requests without any retry: attempts and warm-ups of all bursts of a fixed number.
    pub requests: u64,
    /// Requests when every attempt needs all its retries.
    pub requests_at_most: u64,
    /// Retries that an attempt may need.
    pub retries_at_most: u32,
}

/// The campaign at one site.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SiteExtent {
    /// Name; null where the configuration has no `[[site]]`.
    pub name: Option<String>,
    /// IANA zone of its local times.
    pub time_zone: String,
    /// Lanes measured from it.
    pub lanes: usize,
    /// Windows of a day, earliest first.
    pub windows: Vec<PlannedWindow>,
    /// The dates, where the first is written.
    pub dates: Vec<PlannedDate>,
    /// Bursts in all.
    pub bursts: u64,
}

/// A window of the day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedWindow {
    /// Local begin, `16:00`.
    pub start: String,
    /// Its length, milliseconds.
    pub length_ms: Ms,
    /// It is the declared peak.
    pub peak: bool,
}

/// A date of the campaign with what is special about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedDate {
    /// Local date, `YYYY-MM-DD`.
    pub date: String,
    /// Windows of that date that clocks move: `[window, flag]`.
    pub moved: Vec<(String, &'static str)>,
}

/// Counts what the configuration would measure.
///
/// # Errors
/// [`PlanError`] for days that are on no calendar.
pub(super) fn extent(config: &Config) -> Result<Extent, PlanError> {
    let campaign = config.campaign.as_ref();
    let (days, bursts_per_window) = campaign.map_or((1, 1), |c| (c.days, c.bursts_per_window));
    let (lanes, tasks) = (config.lanes.len(), config.tasks.len());
    let sites: Vec<SiteExtent> =
        config.sites().iter().map(|site| site_extent(site, tasks)).collect::<Result<_, _>>()?;
    let bursts = match campaign {
        Some(_) => sites.iter().map(|site| site.bursts).sum(),
        None => (lanes * tasks) as u64,
    };
    let batch = config.tasks.iter().filter(|task| task.judged_by() == TaskKind::Batch).count() as u64;
    let stretches = (bursts * batch).checked_div(tasks as u64).unwrap_or_default();
    let each = u64::from(config.burst.attempts) + u64::from(config.burst.warmup);
    let requests = (bursts - stretches) * each;
    let (windows, dates) = match sites.as_slice() {
        [only] => (only.windows.clone(), only.dates.clone()),
        _ => Default::default(),
    };
    Ok(Extent {
        campaign: campaign.is_some(),
        lanes,
        tasks,
        sites,
        windows,
        days,
        start_date: campaign.and_then(|c| c.start_date).map(|day| day.to_string()),
        dates,
        bursts_per_window,
        bursts,
        stretches,
        attempts_per_burst: config.burst.attempts,
        warmup_per_burst: config.burst.warmup,
        requests,
        requests_at_most: requests * (1 + u64::from(config.retry.max)),
        retries_at_most: config.retry.max,
    })
}

fn site_extent(site: &SiteCampaign, tasks: usize) -> Result<SiteExtent, PlanError> {
    let campaign = &site.campaign;
    let windows = windows(campaign);
    let places = [site.lanes.len() as u64, tasks as u64, windows.len() as u64];
    Ok(SiteExtent {
        name: site.name.clone(),
        time_zone: site.time_zone.clone(),
        lanes: site.lanes.len(),
        bursts: places.into_iter().chain([campaign.days.into(), campaign.bursts_per_window.into()]).product(),
        windows,
        dates: dates(campaign, &site.time_zone)?,
    })
}

fn windows(campaign: &Campaign) -> Vec<PlannedWindow> {
    let peak = campaign.declared_peak();
    let spans = campaign.windows_in_order().into_iter();
    let planned = spans.map(|span| PlannedWindow {
        start: span.start.to_string(),
        length_ms: Ms(span.length.as_us()),
        peak: Some(span.start) == peak,
    });
    planned.collect()
}

/// The dates of a campaign whose first day is written; none otherwise, since it begins when it is started.
fn dates(campaign: &Campaign, zone: &str) -> Result<Vec<PlannedDate>, PlanError> {
    // a zone that nobody knows has been told before
    let (Some(start), Some(Ok(zone))) = (campaign.start_date, Some(time_zone(zone))) else { return Ok(Vec::new()) };
    let calendar = Calendar {
        windows: campaign.windows_in_order().iter().map(|span| LocalTime::from(span.start.time())).collect(),
        start_date: start.date(),
        days: campaign.days,
        workdays_only: campaign.workdays_only,
        weekend: campaign.weekend.clone(),
        holidays: campaign.holidays.iter().map(|day| day.date()).collect::<BTreeSet<_>>(),
    };
    let mut dates: Vec<PlannedDate> = Vec::new();
    for entry in plan(&calendar, &zone)? {
        let date = entry.date.to_string();
        if dates.last().is_none_or(|last| last.date != date) {
            dates.push(PlannedDate { date, moved: Vec::new() });
        }
        if let (Some(flag), Some(last)) = (entry.flag, dates.last_mut()) {
            last.moved.push((entry.window.to_string(), flag.name()));
        }
    }
    Ok(dates)
}

/// Windows that a change of the clocks moves or takes away, in words.
pub(super) fn odd_dates(extent: &Extent) -> Vec<String> {
    let words = |flag: &str| {
        let known = [Flag::Gap, Flag::Fold, Flag::Merged, Flag::NoSuchDate].into_iter().find(|f| f.name() == flag);
        match known {
            Some(Flag::Gap) => "does not exist, the clocks are put forward: it begins right after",
            Some(Flag::Fold) => "exists twice, the clocks are put back: it begins at the first",
            Some(Flag::Merged) => "falls on the same instant as another window: it has no burst of its own",
            Some(Flag::NoSuchDate) => "is on a date that the zone skips: there is no burst",
            None => "is moved",
        }
    };
    let dates = extent.sites.iter().flat_map(|site| &site.dates);
    let moved = dates.flat_map(|d| d.moved.iter().map(move |(window, flag)| (d, window, *flag)));
    moved.map(|(d, window, flag)| format!("{} {window} {}", d.date, words(flag))).collect()
}

/// Limits that a lane states and that the plan would pass by itself: misses would then say nothing about the lane.
pub(super) fn limits_passed(config: &Config, extent: &Extent) -> Vec<String> {
    let burst = u64::from(extent.attempts_per_burst) + u64::from(extent.warmup_per_burst);
    let sites = config.sites();
    let mut passed = Vec::new();
    for lane in &config.lanes {
        // sites share the quota of a lane; a day without a campaign has one burst
        let here = sites.iter().filter(|site| site.lanes.contains(&lane.name));
        let windows: usize = here.map(|site| site.campaign.windows.len()).sum();
        let windows = if sites.is_empty() { 1 } else { windows as u64 };
        let latency = config.tasks.iter().filter(|task| task.judged_by() == TaskKind::Latency).count() as u64;
        let a_day = burst * latency * windows * u64::from(extent.bursts_per_window);
        let mut compare = |needed: u64, stated: Option<u64>, what: &str| {
            if let Some(stated) = stated.filter(|stated| needed > *stated) {
                let name = &lane.name;
                passed.push(format!(
                    "lane `{name}` states {stated} requests a {what}, {needed} are planned without any retry"
                ));
            }
        };
        // attempts of a burst come together unless they are spaced by more than a minute in all
        if extent.attempts_per_burst > 0 && config.burst.spacing.is_zero() {
            compare(u64::from(extent.attempts_per_burst), lane.limits.requests_per_minute, "minute");
        }
        compare(a_day, lane.limits.requests_per_day, "day");
    }
    passed
}

#[cfg(test)]
mod tests {
    use super::*;
    use peaklane_core::config::parse_checked;

    fn config(campaign: &str, rest: &str) -> Config {
        let text = format!(
            "time_zone = \"Europe/Berlin\"\n{campaign}\n{rest}\n[[lane]]\nname = \"a\"\nkind = \"free-hosted\"\n\
             base_url = \"http://h/v1\"\nmodel = \"m\"\n[lane.limits]\nrequests_per_minute = 7\nrequests_per_day = 70\n\
             [[lane]]\nname = \"b\"\nkind = \"paid-hosted\"\nbase_url = \"http://h/v1\"\nmodel = \"m\"\n"
        );
        parse_checked(&text).unwrap()
    }

    #[test]
    fn a_campaign_is_lanes_times_tasks_times_windows_times_days() {
        let config = config("[campaign]\ndays = 3", "[burst]\nattempts = 8\nwarmup = 1\n[retry]\nmax = 2");
        let extent = extent(&config).unwrap();
        // 2 lanes x 1 task x 4 windows x 3 days = 24 bursts; 24 x (8 + 1) = 216; each tried at most 3 times: 648
        assert_eq!((extent.bursts, extent.requests, extent.requests_at_most), (24, 216, 648));
        assert_eq!(extent.windows.iter().map(|w| w.peak).collect::<Vec<_>>(), [false, false, true, false]);
        assert!(extent.dates.is_empty(), "without a start date no date is known");
    }

    #[test]
    fn without_a_campaign_there_is_one_burst_for_each_lane_and_task() {
        let extent = extent(&config("", "[burst]\nattempts = 5\nwarmup = 0\n[retry]\nmax = 0")).unwrap();
        assert_eq!((extent.bursts, extent.requests, extent.requests_at_most), (2, 10, 10));
        assert!(!extent.campaign && extent.windows.is_empty());
    }

    #[test]
    fn a_window_that_the_clocks_skip_is_told_beforehand() {
        // Berlin: 2026-03-29 is a Sunday, clocks go from 02:00 to 03:00
        let campaign =
            "[campaign]\nstart_date = \"2026-03-28\"\ndays = 2\nworkdays_only = false\nwindows = [\"02:30\"]";
        let extent = extent(&config(campaign, "")).unwrap();
        assert_eq!(extent.dates.iter().map(|d| d.date.as_str()).collect::<Vec<_>>(), ["2026-03-28", "2026-03-29"]);
        let told = odd_dates(&extent);
        assert!(told.len() == 1 && told[0].starts_with("2026-03-29 02:30 does not exist"), "{told:?}");
    }

    #[test]
    fn a_plan_beyond_the_stated_limits_of_a_lane_is_told_beforehand() {
        let config = config("[campaign]\ndays = 3", "[burst]\nattempts = 18\nwarmup = 0");
        let told = limits_passed(&config, &extent(&config).unwrap());
        // 18 at once against 7 a minute; 18 x 4 windows = 72 a day against 70
        assert_eq!(
            told,
            [
                "lane `a` states 7 requests a minute, 18 are planned without any retry",
                "lane `a` states 70 requests a day, 72 are planned without any retry",
            ]
        );
    }
}
