//! The choice of every task class of one site.

use std::collections::BTreeSet;

use jiff::tz::TimeZone;

use super::figures::{Frame, LaneName, lane_figures};
use super::split::split;
use super::trigger::{newest, step_down, trigger};
use super::{Choice, Gap, LaneFigures, Planned, Recorded, Seen, planned_dates};
use crate::campaign::Locked;
use crate::config::{Config, Day, RulesSettings};
use crate::lane::Kind;
use crate::rules::{Candidate, NeedCheck, Thresholds, climb, declared, expires_on, least_bad, wrong_tools};

/// All that a choice is made from.
pub struct Inputs<'a> {
    /// Name of the site, where there are several.
    pub site: Option<&'a str>,
    /// Zone of its local times.
    pub time_zone: Option<&'a str>,
    /// Id of the campaign, and what it locked.
    pub campaign: Option<(&'a str, &'a Locked)>,
    /// The configuration, where there is one.
    pub config: Option<&'a Config>,
    /// The peak that was named by hand; what a campaign locked goes before it.
    pub peak: Option<String>,
    /// The bursts of the campaign, or all of the files.
    pub bursts: &'a [Seen],
    /// Planned bursts that did not come about.
    pub gaps: &'a [Gap],
    /// Decisions on record, oldest first.
    pub recorded: &'a [Recorded],
    /// The local date that is "today".
    pub as_of: Day,
    /// All of that day counts, not only what was due so far.
    pub whole_day: bool,
    /// Looks a zone up by its name.
    pub zones: &'a dyn Fn(&str) -> Option<TimeZone>,
}

impl std::fmt::Debug for Inputs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inputs").field("site", &self.site).field("as_of", &self.as_of).finish_non_exhaustive()
    }
}

/// The choices of all task classes, by name. Thresholds are those that the campaign locked, else those of the configuration,
/// else the defaults.
pub fn choices(inputs: &Inputs<'_>) -> Vec<Choice> {
    let mut tasks: BTreeSet<&str> =
        inputs.bursts.iter().filter(|b| b.header.window.is_some()).map(|b| b.header.task.as_str()).collect();
    if let Some((_, locked)) = inputs.campaign {
        tasks.extend(locked.tasks.iter().map(|task| task.name.as_str()));
    }
    tasks.into_iter().map(|task| choice(inputs, task)).collect()
}

fn choice(inputs: &Inputs<'_>, task: &str) -> Choice {
    let locked = inputs.campaign.map(|(_, locked)| locked);
    let fallback = RulesSettings::default();
    let rules = locked.map(|l| &l.rules).or(inputs.config.map(|c| &c.rules)).unwrap_or(&fallback).clone();
    let header = inputs.bursts.iter().map(|b| &b.header).filter(|h| h.task == task).max_by_key(|h| h.started_unix_us);
    let locked_task = locked.and_then(|l| l.tasks.iter().find(|t| t.name == task));
    let batch = header
        .map_or_else(|| locked_task.is_some_and(|t| t.tasks_per_hour.is_some()), |h| h.tasks_per_hour_floor.is_some());
    let thresholds = Thresholds {
        pass_percent: if batch { rules.batch_pass_percent } else { rules.pass_percent },
        ..rules.thresholds()
    };
    let planned: Option<Planned> = locked.and_then(|l| planned_dates(l).ok());
    let peak = peak(inputs);
    let frame = Frame {
        inputs,
        task,
        peak: peak.as_deref(),
        rules: &rules,
        thresholds: &thresholds,
        planned: planned.as_ref(),
    };
    let names = lane_names(inputs, task);
    let (candidates, lanes): (Vec<Candidate>, Vec<LaneFigures>) =
        names.iter().map(|name| lane_figures(&frame, name)).unzip();
    let lower: Vec<Vec<NeedCheck>> =
        lanes.iter().filter(|l| l.kind < Kind::PaidHosted).map(|l| l.needs.clone()).collect();
    let none = Config::default();
    let config = inputs.config.unwrap_or(&none);
    let declared = declared(&config.needs, &config.reasons, &lower);
    let ladder = climb(&candidates, declared);
    let recorded = newest(inputs, task).cloned();
    let trigger = trigger(&frame, &candidates, &lanes, &ladder, recorded.as_ref());
    let down = step_down(&frame, &lanes, &ladder, recorded.as_ref());
    let split = if declared.paid_need { None } else { split(&candidates, &lanes, &ladder, &thresholds) };
    let chosen = ladder.chosen.map(|at| candidates[at].lane.clone());
    let stands = recorded.as_ref().filter(|r| r.expires > inputs.as_of && r.lane == chosen);
    let floor_words = locked_task.map(|t| {
        let date = t.floor_date.map(|d| d.to_string());
        [t.floor_reason.clone(), t.floor_author.clone(), date].into_iter().flatten().collect()
    });
    Choice {
        site: inputs.site.map(str::to_owned),
        time_zone: inputs.time_zone.map(str::to_owned),
        task: task.to_owned(),
        floor_us: header.map_or(0, |h| h.floor_us),
        tasks_per_hour_floor: header.and_then(|h| h.tasks_per_hour_floor),
        floor_words: floor_words.unwrap_or_default(),
        campaign: inputs.campaign.map(|(id, _)| id.to_owned()),
        as_of: inputs.as_of,
        expires: stands.map(|r| r.expires).or_else(|| expires_on(inputs.as_of, rules.expiry_days)),
        least_bad: if ladder.chosen.is_none() { least_bad(&candidates, &ladder) } else { None },
        locked: locked.is_some(),
        reasons: config.reasons.declared().map(|(key, words)| (key.to_owned(), words.to_owned())).collect(),
        wrong_tools: wrong_tools(&config.needs, &config.reasons),
        thresholds,
        peak,
        candidates,
        lanes,
        ladder,
        split,
        recorded,
        trigger,
        down,
        rules,
    }
}

/// The declared peak: as locked, else as named, else that of the configuration where such a window was measured.
fn peak(inputs: &Inputs<'_>) -> Option<String> {
    if let Some((_, locked)) = inputs.campaign {
        return locked.campaign.declared_peak().map(|peak| peak.to_string());
    }
    let of_site = |config: &Config| {
        let site = config.sites().into_iter().find(|s| s.name.as_deref() == inputs.site);
        site.map(|s| s.campaign).or_else(|| config.campaign.clone())?.declared_peak().map(|peak| peak.to_string())
    };
    let measured = |peak: &String| inputs.bursts.iter().any(|b| b.header.window.as_ref() == Some(peak));
    inputs.peak.clone().or_else(|| inputs.config.and_then(of_site).filter(measured))
}

/// The lanes that stand for choice: those of the campaign, or those that were measured; without those that the configuration
/// no longer has. By rung, then in the order of the configuration.
fn lane_names(inputs: &Inputs<'_>, task: &str) -> Vec<LaneName> {
    let mut names: Vec<LaneName> = Vec::new();
    if let Some((_, locked)) = inputs.campaign {
        let all = locked.lanes.iter();
        names.extend(all.map(|l| LaneName { name: l.name.clone(), kind: l.kind, model: l.model.clone() }));
    }
    for header in inputs.bursts.iter().map(|b| &b.header).filter(|h| h.task == task && h.window.is_some()) {
        if names.iter().all(|n| n.name != header.lane) {
            names.push(LaneName { name: header.lane.clone(), kind: header.kind, model: header.model.clone() });
        }
    }
    let place = |name: &str| inputs.config.and_then(|c| c.lanes.iter().position(|l| l.name == name));
    if inputs.config.is_some() {
        names.retain(|n| place(&n.name).is_some());
    }
    names.sort_by(|a, b| (a.kind, place(&a.name), &a.name).cmp(&(b.kind, place(&b.name), &b.name)));
    names
}
