//! The rules across keys. Every rule is looked at, and all problems are told together.

use std::collections::BTreeSet;

use super::Config;
use super::campaign::{Campaign, ONE_DAY, Window, until_next};
use super::check_lane;
use super::error::{KeyPath, Problem};
use super::micros::Micros;
use super::task::{Task, TaskKind};

const MAX_LANES: usize = 100;
const MAX_TASKS: usize = 100;
const MAX_WINDOWS: usize = 48;
const MAX_HOLIDAYS: usize = 1_000;
const MAX_TEXT: usize = 1024 * 1024;
const ONE_HOUR: Micros = Micros::from_secs(3600);

/// All problems of a configuration, section by section.
pub(super) fn problems(config: &Config) -> Vec<Problem> {
    let mut found = Found::default();
    time_zone(config, &mut found);
    if let Some(campaign) = &config.campaign {
        check_campaign(campaign, &mut found);
    }
    numbers(config, &mut found);
    if let Some(control) = &config.control {
        check_lane::address(&control.url, "url", vec!["control".into(), "url".into()], &mut found);
    }
    lanes(config, &mut found);
    tasks(config, &mut found);
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
    let path = || vec!["time_zone".into()];
    match &config.time_zone {
        None if config.campaign.is_some() => {
            let next = "local windows need it: add `time_zone = \"Europe/Berlin\"` (your IANA zone) before the first [section]";
            found.table(KeyPath::new(), "`time_zone` is missing", next);
        }
        Some(zone) => {
            let well_formed = !zone.is_empty()
                && zone.len() <= 64
                && zone.starts_with(|c: char| c.is_ascii_alphabetic())
                && !zone.contains("//")
                && zone.bytes().all(|b| b.is_ascii_alphanumeric() || b"/_-+".contains(&b));
            if !well_formed {
                let next = "write a name of the IANA zone database such as \"Europe/Berlin\" or \"UTC\"";
                found.key(path(), format!("`time_zone` {zone:?} is no name of a zone"), next);
            }
        }
        None => {}
    }
}

fn check_campaign(campaign: &Campaign, found: &mut Found) {
    let key = |name: &str| vec!["campaign".into(), name.into()];
    found.range(key("days"), "days", campaign.days.into(), 1..=366);
    found.range(key("bursts_per_window"), "bursts_per_window", campaign.bursts_per_window.into(), 1..=60);
    for (index, day) in campaign.weekend.iter().enumerate() {
        if !(1..=7).contains(day) {
            let mut path = key("weekend");
            path.push(index.into());
            found.key(path, format!("`weekend` names the day {day}"), "write ISO numbers: 1 is Monday, 7 is Sunday");
        }
    }
    let free: BTreeSet<u8> = campaign.weekend.iter().copied().collect();
    if campaign.workdays_only && (1..=7).all(|day| free.contains(&day)) {
        found.key(
            key("weekend"),
            "`weekend` names all seven days",
            "leave a day to measure on, or set `workdays_only = false`",
        );
    }
    if campaign.holidays.len() > MAX_HOLIDAYS {
        let what = format!("`holidays` names {} days", campaign.holidays.len());
        found.key(key("holidays"), what, format!("name at most {MAX_HOLIDAYS}"));
    }
    at_most(campaign.late_tolerance, ONE_DAY, key("late_tolerance"), "late_tolerance", found);
    windows(campaign, found);
}

fn windows(campaign: &Campaign, found: &mut Found) {
    let path = || vec!["campaign".into(), "windows".into()];
    let written = &campaign.windows;
    if written.is_empty() {
        return found.key(path(), "`windows` is empty", "name at least the window of your peak, such as [\"16:00\"]");
    }
    if written.len() > MAX_WINDOWS {
        let what = format!("`windows` names {} windows", written.len());
        return found.key(path(), what, format!("name at most {MAX_WINDOWS}"));
    }
    let mut seen = BTreeSet::new();
    for (index, window) in written.iter().enumerate() {
        let at = || [path(), vec![index.into()]].concat();
        if !seen.insert(window.start) {
            found.key(at(), format!("window \"{}\" stands twice", window.start), "leave one out");
        }
        if window.length.is_some_and(|length| length.is_zero() || length > ONE_DAY) {
            found.key(
                at(),
                format!("window \"{}\" has an impossible length", window.start),
                "write more than 0s and at most 24h",
            );
        }
    }
    if seen.len() == written.len() {
        overlaps(written, found);
    }
    if let Some(peak) = campaign.peak
        && !seen.contains(&peak)
    {
        let begins: Vec<String> = seen.iter().map(ToString::to_string).collect();
        let next = format!("write the begin of one of them: {}", begins.join(", "));
        found.key(vec!["campaign".into(), "peak".into()], format!("`peak` \"{peak}\" is none of the windows"), next);
    }
}

/// A written length that reaches into the next window. (A length that is not written ends there by itself.)
fn overlaps(written: &[Window], found: &mut Found) {
    let mut order: Vec<usize> = (0..written.len()).collect();
    order.sort_by_key(|index| written[*index].start);
    let sorted: Vec<Window> = order.iter().map(|index| written[*index]).collect();
    for (place, index) in order.iter().enumerate() {
        let (window, gap) = (sorted[place], until_next(&sorted, place));
        let next = sorted[(place + 1) % sorted.len()];
        if window.length.is_some_and(|length| length > gap && length <= ONE_DAY) {
            let what = format!("window \"{}\" runs into window \"{}\"", window.start, next.start);
            found.key(
                vec!["campaign".into(), "windows".into(), (*index).into()],
                what,
                format!("give it a length of at most {gap}"),
            );
        }
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
    at_most(config.burst.spacing, ONE_HOUR, burst("spacing"), "spacing", found);

    let retry = |key: &str| vec!["retry".into(), key.into()];
    found.range(retry("max"), "max", config.retry.max.into(), 0..=20);
    at_most(config.retry.backoff_cap, ONE_HOUR, retry("backoff_cap"), "backoff_cap", found);
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
            at_most(limit, ONE_DAY, path.clone(), key, found);
            if limit > limits.total {
                let what = format!("`{key}` {limit} is longer than `total` {}", limits.total);
                found.key(path, what, "the total limit would always come first: shorten it or raise `total`");
            }
        }
    }
}

fn at_most(value: Micros, most: Micros, path: KeyPath, key: &str, found: &mut Found) {
    if value > most {
        found.key(path, format!("`{key}` is {value}"), format!("write at most {most}"));
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
        check_task(task, index, config.timeouts.total, found);
    }
}

fn check_task(task: &Task, index: usize, total: Micros, found: &mut Found) {
    let key = |name: &str| vec!["task".into(), index.into(), name.into()];
    match (&task.prompt, &task.prompt_file) {
        (None, None) => {
            let what = format!("task `{}` has no prompt", task.name);
            found.table(vec!["task".into(), index.into()], what, "add `prompt = \"...\"` or `prompt_file = \"PATH\"`");
        }
        (Some(_), Some(_)) => {
            let what = format!("task `{}` has both `prompt` and `prompt_file`", task.name);
            found.key(key("prompt_file"), what, "leave one out");
        }
        (Some(prompt), None) if prompt.trim().is_empty() => {
            found.key(
                key("prompt"),
                format!("`prompt` of task `{}` is blank", task.name),
                "write what the lane is to do",
            );
        }
        _ => {}
    }
    for (name, text) in [("prompt", &task.prompt), ("system", &task.system)] {
        if text.as_ref().is_some_and(|text| text.len() > MAX_TEXT) {
            found.key(key(name), format!("`{name}` of task `{}` is longer than 1 MiB", task.name), "shorten it");
        }
    }
    if task.floor.is_some_and(Micros::is_zero) {
        found.key(
            key("floor"),
            format!("`floor` of task `{}` is no time at all", task.name),
            "write a floor such as \"25s\"",
        );
    }
    match (task.judged_by(), task.tasks_per_hour, task.floor) {
        (TaskKind::Batch, None, _) => {
            let what = format!("task `{}` is of kind batch but names no `tasks_per_hour`", task.name);
            found.key(key("kind"), what, "add `tasks_per_hour = N`");
        }
        (TaskKind::Batch, Some(_), Some(_)) => {
            let what = format!("batch task `{}` has a latency `floor`", task.name);
            found.key(
                key("floor"),
                what,
                "it is judged by `tasks_per_hour` alone: leave `floor` out, or make two task classes",
            );
        }
        (TaskKind::Latency, Some(_), _) => {
            let what = format!("task `{}` is of kind latency but names `tasks_per_hour`", task.name);
            found.key(key("tasks_per_hour"), what, "write `kind = \"batch\"` or leave `tasks_per_hour` out");
        }
        _ => {}
    }
    if let Some(rate) = task.tasks_per_hour {
        found.range(key("tasks_per_hour"), "tasks_per_hour", rate.into(), 1..=1_000_000);
    }
    if let Some(floor) = task.latency_floor()
        && floor > total
    {
        let what = format!("floor {floor} of task `{}` is longer than the total timeout {total}", task.name);
        found.key(key("floor"), what, format!("raise `total` in [timeouts] to at least {floor}, or lower the floor"));
    }
    found.range(key("max_tokens"), "max_tokens", task.max_tokens.into(), 1..=1_000_000);
    if !(0.0..=2.0).contains(&task.temperature) {
        found.key(key("temperature"), format!("`temperature` is {}", task.temperature), "write a number from 0 to 2");
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
