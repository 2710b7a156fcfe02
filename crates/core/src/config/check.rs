//! The rules across keys. Every rule is looked at, and all problems are told together.

use std::collections::BTreeSet;

use super::Config;
use super::campaign::ONE_DAY;
use super::error::{KeyPath, Problem};
use super::micros::Micros;
use super::{check_campaign, check_decision, check_lane, check_task};

const MAX_LANES: usize = 100;
const MAX_TASKS: usize = 100;
const ONE_HOUR: Micros = Micros::from_secs(3600);

/// All problems of a configuration, section by section.
pub(super) fn problems(config: &Config) -> Vec<Problem> {
    let mut found = Found::default();
    time_zone(config, &mut found);
    check_campaign::check(config, &mut found);
    numbers(config, &mut found);
    if let Some(control) = &config.control {
        check_lane::address(&control.url, "url", vec!["control".into(), "url".into()], &mut found);
    }
    lanes(config, &mut found);
    tasks(config, &mut found);
    check_decision::check(config, &mut found);
    found.problems
}

/// What was found so far.
#[derive(Default)]
pub(super) struct Found {
    problems: Vec<Problem>,
}

impl Found {
    pub(super) fn key(&mut self, path: KeyPath, what: impl Into<String>, next: impl Into<String>) {
        self.problems.push(Problem::of_key(path, what).next_step(next));
    }

    pub(super) fn table(&mut self, path: KeyPath, what: impl Into<String>, next: impl Into<String>) {
        self.problems.push(Problem::of_table(path, what).next_step(next));
    }

    /// A number outside its range.
    pub(super) fn range(&mut self, path: KeyPath, key: &str, value: u64, range: std::ops::RangeInclusive<u64>) {
        if !range.contains(&value) {
            let next = format!("write a number from {} to {}", range.start(), range.end());
            self.key(path, format!("`{key}` is {value}"), next);
        }
    }

    /// A length of time beyond the most that is allowed.
    pub(super) fn at_most(&mut self, path: KeyPath, key: &str, value: Micros, most: Micros) {
        if value > most {
            self.key(path, format!("`{key}` is {value}"), format!("write at most {most}"));
        }
    }

    /// A text that says nothing.
    pub(super) fn blank(&mut self, path: KeyPath, key: &str, text: Option<&String>) {
        if text.is_some_and(|text| text.trim().is_empty()) {
            self.key(path, format!("`{key}` is blank"), "fill it in or leave it out");
        }
    }

    /// Days of the week that are no ISO numbers.
    pub(super) fn weekdays(&mut self, path: &KeyPath, key: &str, days: &[u8]) {
        for (index, day) in days.iter().enumerate() {
            if !(1..=7).contains(day) {
                let at = [path.clone(), vec![index.into()]].concat();
                self.key(at, format!("`{key}` names the day {day}"), "write ISO numbers: 1 is Monday, 7 is Sunday");
            }
        }
    }

    /// A text that cannot be the name of a zone. Whether there is such a zone is looked up where the database is.
    pub(super) fn zone(&mut self, path: KeyPath, key: &str, zone: &str) {
        let well_formed = !zone.is_empty()
            && zone.len() <= 64
            && zone.starts_with(|c: char| c.is_ascii_alphabetic())
            && !zone.contains("//")
            && zone.bytes().all(|b| b.is_ascii_alphanumeric() || b"/_-+".contains(&b));
        if !well_formed {
            let next = "write a name of the IANA zone database such as \"Europe/Berlin\" or \"UTC\"";
            self.key(path, format!("`{key}` {zone:?} is no name of a zone"), next);
        }
    }

    /// A name that two entries of a list share, or that is no name.
    pub(super) fn name(&mut self, path: KeyPath, section: &str, name: &str, seen: &mut BTreeSet<String>) {
        let well_formed = name.len() <= 64
            && name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        if !well_formed {
            let next = "use letters, digits, `-`, `_` and `.`, at most 64, with a letter or digit first";
            self.key(path, format!("`name` {name:?} is no name"), next);
        } else if !seen.insert(name.to_owned()) {
            self.key(path, format!("`name` \"{name}\" is taken by an earlier [[{section}]]"), "give each its own name");
        }
    }
}

fn time_zone(config: &Config, found: &mut Found) {
    match &config.time_zone {
        None if config.campaign.is_some() && config.sites.is_empty() => {
            let next = "local windows need it: add `time_zone = \"Europe/Berlin\"` (your IANA zone) before the first [section]";
            found.table(KeyPath::new(), "`time_zone` is missing", next);
        }
        Some(zone) => found.zone(vec!["time_zone".into()], "time_zone", zone),
        None => {}
    }
}

fn numbers(config: &Config, found: &mut Found) {
    let burst = |key: &str| vec!["burst".into(), key.into()];
    found.range(burst("attempts"), "attempts", config.burst.attempts.into(), 1..=1_000_000);
    found.range(burst("warmup"), "warmup", config.burst.warmup.into(), 0..=10);
    if let Some(concurrency) = config.burst.concurrency {
        found.range(burst("concurrency"), "concurrency", concurrency.into(), 1..=10_000);
    }
    if let Some(seed) = config.burst.seed {
        // TOML and SQLite both count to there
        found.range(burst("seed"), "seed", seed, 0..=i64::MAX as u64);
    }
    found.at_most(burst("spacing"), "spacing", config.burst.spacing, ONE_HOUR);

    let retry = |key: &str| vec!["retry".into(), key.into()];
    found.range(retry("max"), "max", config.retry.max.into(), 0..=20);
    found.at_most(retry("backoff_cap"), "backoff_cap", config.retry.backoff_cap, ONE_HOUR);
    if config.retry.backoff_base > config.retry.backoff_cap {
        let what = format!(
            "`backoff_base` {} is longer than `backoff_cap` {}",
            config.retry.backoff_base, config.retry.backoff_cap
        );
        found.key(retry("backoff_base"), what, "shorten the base or raise the cap");
    }

    let limits = &config.timeouts;
    for (key, limit) in [("first_byte", limits.first_byte), ("idle", limits.idle), ("total", limits.total)] {
        let path = vec!["timeouts".into(), key.into()];
        if limit.is_zero() {
            found.key(path, format!("`{key}` is no time at all"), "write a limit such as \"60s\"");
        } else {
            found.at_most(path.clone(), key, limit, ONE_DAY);
            if limit > limits.total {
                let what = format!("`{key}` {limit} is longer than `total` {}", limits.total);
                found.key(path, what, "the total limit would always come first: shorten it or raise `total`");
            }
        }
    }
}

fn lanes(config: &Config, found: &mut Found) {
    if config.lanes.is_empty() {
        let next = "add one with name, kind, base_url and model (`peaklane init` writes an example)";
        return found.table(KeyPath::new(), "there is no [[lane]]", next);
    }
    if config.lanes.len() > MAX_LANES {
        let what = format!("there are {} lanes", config.lanes.len());
        return found.table(KeyPath::new(), what, format!("name at most {MAX_LANES}"));
    }
    let mut names = BTreeSet::new();
    for (index, lane) in config.lanes.iter().enumerate() {
        found.name(vec!["lane".into(), index.into(), "name".into()], "lane", &lane.name, &mut names);
        check_lane::check(lane, index, found);
    }
}

fn tasks(config: &Config, found: &mut Found) {
    if config.tasks.len() > MAX_TASKS {
        let what = format!("there are {} task classes", config.tasks.len());
        return found.table(KeyPath::new(), what, format!("name at most {MAX_TASKS}"));
    }
    let mut names = BTreeSet::new();
    for (index, task) in config.tasks.iter().enumerate() {
        found.name(vec!["task".into(), index.into(), "name".into()], "task", &task.name, &mut names);
        check_task::check(task, index, config.timeouts.total, found);
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
pub(super) mod tests;
