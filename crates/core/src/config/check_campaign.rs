//! The rules of `[campaign]` and of each `[[site]]`: windows apart, the peak among them, days to measure on.

use std::collections::BTreeSet;

use super::Config;
use super::calendar::{ClockTime, Day};
use super::campaign::{Campaign, ONE_DAY, Window, until_next};
use super::check::Found;
use super::error::KeyPath;
use super::site::Site;

const MAX_SITES: usize = 24;
const MAX_WINDOWS: usize = 48;
const MAX_HOLIDAYS: usize = 1_000;
const MAX_BUDGET: u64 = 1_000_000_000_000;

/// From the name of a key to where it stands.
type Place<'a> = &'a dyn Fn(&str) -> KeyPath;

pub(super) fn check(config: &Config, found: &mut Found) {
    if let Some(campaign) = &config.campaign {
        check_campaign(campaign, found);
    }
    if config.sites.len() > MAX_SITES {
        let what = format!("there are {} sites", config.sites.len());
        return found.table(KeyPath::new(), what, format!("name at most {MAX_SITES}"));
    }
    let mut names = BTreeSet::new();
    for (index, site) in config.sites.iter().enumerate() {
        let key = |name: &str| vec!["site".into(), index.into(), name.into()];
        found.name(key("name"), "site", &site.name, &mut names);
        found.zone(key("time_zone"), "time_zone", &site.time_zone);
        lanes_of(site, config, &key, found);
        match &config.campaign {
            Some(campaign) => check_site(site, campaign, index, found),
            None => {
                let what = format!("site `{}` is part of no campaign", site.name);
                found.table(vec!["site".into(), index.into()], what, "add a [campaign] with its days");
            }
        }
    }
}

fn check_campaign(campaign: &Campaign, found: &mut Found) {
    let key = |name: &str| vec!["campaign".into(), name.into()];
    found.range(key("days"), "days", campaign.days.into(), 1..=366);
    found.range(key("bursts_per_window"), "bursts_per_window", campaign.bursts_per_window.into(), 1..=60);
    for (name, budget) in [("budget_requests", campaign.budget_requests), ("budget_tokens", campaign.budget_tokens)] {
        if let Some(budget) = budget {
            found.range(key(name), name, budget, 1..=MAX_BUDGET);
        }
    }
    found.weekdays(&key("weekend"), "weekend", &campaign.weekend);
    if no_day_is_left(campaign) {
        let next = "leave a day to measure on, or set `workdays_only = false`";
        found.key(key("weekend"), "`weekend` names all seven days", next);
    }
    holidays(&campaign.holidays, &key, found);
    found.at_most(key("late_tolerance"), "late_tolerance", campaign.late_tolerance, ONE_DAY);
    if windows(&campaign.windows, &key, found)
        && let Some(peak) = campaign.peak
    {
        peak_among(peak, &campaign.windows, &key, found);
    }
}

/// What a site says itself; the rest has been looked at in `[campaign]`.
fn check_site(site: &Site, shared: &Campaign, index: usize, found: &mut Found) {
    let key = |name: &str| vec!["site".into(), index.into(), name.into()];
    let here = site.campaign(shared);
    if let Some(weekend) = &site.weekend {
        found.weekdays(&key("weekend"), "weekend", weekend);
    }
    // told once, in [campaign], where the site changes nothing about it
    if no_day_is_left(&here) && (site.weekend.is_some() || site.workdays_only.is_some()) {
        let name = if site.weekend.is_some() { "weekend" } else { "workdays_only" };
        let what = format!("site `{}` has a weekend of all seven days", site.name);
        found.key(key(name), what, "leave a day to measure on, or set `workdays_only = false`");
    }
    if let Some(free) = &site.holidays {
        holidays(free, &key, found);
    }
    let sound = site.windows.as_ref().is_none_or(|own| windows(own, &key, found));
    match (site.peak, shared.peak, &site.windows) {
        _ if !sound => {}
        (Some(own), _, _) => peak_among(own, &here.windows, &key, found),
        // without a peak of its own the site would silently have none
        (None, Some(peak), Some(own)) if own.iter().all(|window| window.start != peak) => {
            let what = format!("the windows of site `{}` lack the peak \"{peak}\" of [campaign]", site.name);
            found.key(key("windows"), what, "add `peak = \"HH:MM\"` to the site, the begin of one of its windows");
        }
        _ => {}
    }
}

fn lanes_of(site: &Site, config: &Config, key: Place<'_>, found: &mut Found) {
    let Some(lanes) = &site.lanes else { return };
    if lanes.is_empty() {
        let what = format!("site `{}` measures no lane", site.name);
        return found.key(key("lanes"), what, "name a lane, or leave `lanes` out for all");
    }
    let mut seen = BTreeSet::new();
    for (index, name) in lanes.iter().enumerate() {
        let at = || [key("lanes"), vec![index.into()]].concat();
        if config.lane(name).is_none() {
            let known = config.lanes.iter().map(|lane| lane.name.as_str());
            let nearest = known.min_by_key(|known| strsim::damerau_levenshtein(name, known));
            let next = nearest.map_or_else(|| "name one of the lanes".to_owned(), |n| format!("did you mean `{n}`?"));
            found.key(at(), format!("no [[lane]] is called {name:?}"), next);
        } else if !seen.insert(name) {
            found.key(at(), format!("lane \"{name}\" stands twice"), "leave one out");
        }
    }
}

fn no_day_is_left(campaign: &Campaign) -> bool {
    campaign.workdays_only && (1..=7).all(|day| campaign.weekend.contains(&day))
}

fn holidays(days: &[Day], key: Place<'_>, found: &mut Found) {
    if days.len() > MAX_HOLIDAYS {
        let what = format!("`holidays` names {} days", days.len());
        found.key(key("holidays"), what, format!("name at most {MAX_HOLIDAYS}"));
    }
}

/// False where there are none or too many: then nothing is said of the peak.
fn windows(written: &[Window], key: Place<'_>, found: &mut Found) -> bool {
    if written.is_empty() {
        let next = "name at least the window of your peak, such as [\"16:00\"]";
        found.key(key("windows"), "`windows` is empty", next);
        return false;
    }
    if written.len() > MAX_WINDOWS {
        let what = format!("`windows` names {} windows", written.len());
        found.key(key("windows"), what, format!("name at most {MAX_WINDOWS}"));
        return false;
    }
    let mut seen = BTreeSet::new();
    for (index, window) in written.iter().enumerate() {
        let at = || [key("windows"), vec![index.into()]].concat();
        if !seen.insert(window.start) {
            found.key(at(), format!("window \"{}\" stands twice", window.start), "leave one out");
        }
        if window.length.is_some_and(|length| length.is_zero() || length > ONE_DAY) {
            let what = format!("window \"{}\" has an impossible length", window.start);
            found.key(at(), what, "write more than 0s and at most 24h");
        }
    }
    if seen.len() == written.len() {
        overlaps(written, key, found);
    }
    true
}

fn peak_among(peak: ClockTime, windows: &[Window], key: Place<'_>, found: &mut Found) {
    let begins: BTreeSet<ClockTime> = windows.iter().map(|window| window.start).collect();
    if !begins.contains(&peak) {
        let begins: Vec<String> = begins.iter().map(ToString::to_string).collect();
        let next = format!("write the begin of one of them: {}", begins.join(", "));
        found.key(key("peak"), format!("`peak` \"{peak}\" is none of the windows"), next);
    }
}

/// A written length that reaches into the next window. (A length that is not written ends there by itself.)
fn overlaps(written: &[Window], key: Place<'_>, found: &mut Found) {
    let mut order: Vec<usize> = (0..written.len()).collect();
    order.sort_by_key(|index| written[*index].start);
    let sorted: Vec<Window> = order.iter().map(|index| written[*index]).collect();
    for (place, index) in order.iter().enumerate() {
        let (window, gap) = (sorted[place], until_next(&sorted, place));
        let next = sorted[(place + 1) % sorted.len()];
        if window.length.is_some_and(|length| length > gap && length <= ONE_DAY) {
            let what = format!("window \"{}\" runs into window \"{}\"", window.start, next.start);
            let at = [key("windows"), vec![(*index).into()]].concat();
            found.key(at, what, format!("give it a length of at most {gap}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::tests::{LANE, campaign, problem, problems};

    /// A campaign at one site with these keys.
    fn site(keys: &str) -> String {
        format!("[campaign]\npeak = '16:00'\n[[site]]\nname = 'pune'\ntime_zone = 'Asia/Kolkata'\n{keys}\n{LANE}")
    }

    #[test]
    fn a_site_brings_its_own_zone_so_that_none_is_needed_at_the_top() {
        assert_eq!(problems(&site("")), [""; 0]);
        assert_eq!(problems(&format!("time_zone = 'UTC'\n{}", site(""))), [""; 0]);
        let told = problem(&site("").replace("Asia/Kolkata", "Asia//Kolkata"));
        assert!(told.starts_with("`time_zone` \"Asia//Kolkata\" is no name of a zone in [[site]] 1"), "{told}");
    }

    #[test]
    fn the_windows_of_a_site_keep_the_rules_of_all_windows() {
        assert_eq!(problems(&site("windows = ['11:00', '16:00']")), [""; 0]);
        assert_eq!(problems(&site("windows = ['11:00']\npeak = '11:00'")), [""; 0]);
        assert!(problem(&site("windows = []")).starts_with("`windows` is empty in [[site]] 1"));
        assert!(problem(&site("windows = ['16:00', '16:00']")).contains("stands twice in [[site]] 1"));
        let overlap = problem(&site("windows = [{ start = '15:00', length = '2h' }, '16:00']"));
        assert!(overlap.starts_with("window \"15:00\" runs into window \"16:00\" in [[site]] 1"), "{overlap}");
        let peak = problem(&site("peak = '11:00'"));
        assert!(peak.starts_with("`peak` \"11:00\" is none of the windows in [[site]] 1"), "{peak}");
        assert!(peak.ends_with("09:00, 12:30, 16:00, 21:00"), "{peak}");
        let lost = problem(&site("windows = ['11:00']"));
        assert!(lost.starts_with("the windows of site `pune` lack the peak \"16:00\" of [campaign]"), "{lost}");
    }

    #[test]
    fn a_site_has_a_day_to_measure_on() {
        let week = "[1, 2, 3, 4, 5, 6, 7]";
        assert!(problem(&site("weekend = [8]")).starts_with("`weekend` names the day 8 in [[site]] 1"));
        assert!(problem(&site(&format!("weekend = {week}"))).contains("all seven days in [[site]] 1"));
        assert_eq!(problems(&site(&format!("weekend = {week}\nworkdays_only = false"))), [""; 0]);
        let anyday = site("workdays_only = true")
            .replace("[campaign]", &format!("[campaign]\nweekend = {week}\nworkdays_only = false"));
        assert!(problem(&anyday).starts_with("site `pune` has a weekend of all seven days"));
        // what is wrong in [campaign] is told there, and once
        let shared = site("").replace("[campaign]", &format!("[campaign]\nweekend = {week}"));
        assert!(problem(&shared).contains("in [campaign]"));
    }

    #[test]
    fn a_site_measures_lanes_that_there_are() {
        assert_eq!(problems(&site("lanes = ['a']")), [""; 0]);
        let told = problem(&site("lanes = ['a', 'b']"));
        assert_eq!(told, "no [[lane]] is called \"b\" in [[site]] 1: did you mean `a`?");
        assert!(problem(&site("lanes = ['a', 'a']")).contains("lane \"a\" stands twice"));
        assert!(problem(&site("lanes = []")).starts_with("site `pune` measures no lane"));
    }

    #[test]
    fn sites_have_names_of_their_own_and_a_campaign() {
        let twice = site("[[site]]\nname = 'pune'\ntime_zone = 'UTC'");
        assert!(problem(&twice).starts_with("`name` \"pune\" is taken by an earlier [[site]] in [[site]] 2"));
        assert!(problem(&site("").replace("'pune'", "'pu ne'")).contains("is no name"));
        let alone = format!("[[site]]\nname = 'pune'\ntime_zone = 'Asia/Kolkata'\n{LANE}");
        assert!(problem(&alone).starts_with("site `pune` is part of no campaign"));
        let many: String = (0..25).map(|n| format!("[[site]]\nname = 's{n}'\ntime_zone = 'UTC'\n")).collect();
        assert!(problem(&format!("[campaign]\n{many}{LANE}")).starts_with("there are 25 sites"));
    }

    #[test]
    fn the_caps_of_a_campaign_are_positive_and_money_may_be_none() {
        assert_eq!(
            problems(&campaign("budget_requests = 1\nbudget_tokens = 1\nbudget_usd = 0\nafter = 'stop'")),
            [""; 0]
        );
        for key in ["budget_requests", "budget_tokens"] {
            assert!(problem(&campaign(&format!("{key} = 0"))).starts_with(&format!("`{key}` is 0 in [campaign]")));
        }
    }
}
