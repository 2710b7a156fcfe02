//! The figures of one lane and task class, out of its bursts.

use std::collections::BTreeMap;

use super::cost::{mean, price_of_1000, rent_of_1000, requests_a_month, waited_us, waiting};
use super::{ColdStart, Gap, Inputs, LaneFigures, Observed, Planned, Seen, Stated, WindowFigures};
use crate::burst::{BurstHeader, BurstState};
use crate::config::{Lane, RulesSettings};
use crate::lane::Kind;
use crate::outcome::Outcome;
use crate::rules::certainty::PROBABILITY;
use crate::rules::{
    Candidate, CertaintyState, Decision, Evidence, Owner, Question, Thresholds, WindowCount, bars, certainty,
};
use crate::rules::{check_needs, decide};
use crate::stats::{PassRate, RetryTally};
use crate::summary::{BurstData, lane_summaries, summarise};

/// What is the same for all lanes of a task class.
pub(super) struct Frame<'a> {
    pub(super) inputs: &'a Inputs<'a>,
    pub(super) task: &'a str,
    pub(super) peak: Option<&'a str>,
    pub(super) rules: &'a RulesSettings,
    pub(super) thresholds: &'a Thresholds,
    pub(super) planned: Option<&'a Planned>,
}

/// Name and rung of a lane before anything was measured.
pub(super) struct LaneName {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) model: String,
}

impl Frame<'_> {
    /// A day whose bursts are over: any before today, and today where all of it counts or something is on record.
    fn is_over(&self, date: &str, window: &str, bursts: &[&Seen]) -> bool {
        let today = self.inputs.as_of.to_string();
        let on_record = || {
            let is = |d: Option<&str>, w: Option<&str>| d == Some(date) && w == Some(window);
            bursts.iter().any(|b| is(b.header.date.as_deref(), b.header.window.as_deref()))
                || self.inputs.gaps.iter().any(|g| is(Some(&g.date), Some(&g.window)))
        };
        date < today.as_str() || (date == today && (self.inputs.whole_day || on_record()))
    }

    fn gap(&self, lane: &str, date: &str, window: &str) -> Option<&Gap> {
        let is = |g: &&Gap| g.lane == lane && g.task == self.task && g.date == date && g.window == window;
        self.inputs.gaps.iter().find(is)
    }

    /// Bursts that a window needs on a day to be complete.
    fn needed(&self) -> usize {
        self.planned.map_or(1, |p| p.bursts_per_window.max(1) as usize)
    }
}

/// What must be equal for bursts to be of one series.
fn series(header: &BurstHeader) -> (&str, &str, u64, bool, Kind, bool) {
    let identical = header.prompt_mode == crate::burst::PromptMode::Identical;
    (&header.model, &header.prompt_hash, header.floor_us, identical, header.kind, header.simulated)
}

/// The candidate and its figures.
pub(super) fn lane_figures(frame: &Frame<'_>, name: &LaneName) -> (Candidate, LaneFigures) {
    let of_lane = |b: &&Seen| {
        b.header.lane == name.name
            && b.header.task == frame.task
            && b.header.window.is_some()
            && b.header.date.is_some()
    };
    let all: Vec<&Seen> = frame.inputs.bursts.iter().filter(of_lane).collect();
    let newest = all.iter().max_by_key(|b| (b.header.started_unix_us, b.header.id.as_str()));
    let own = newest.map(|b| series(&b.header));
    let bursts: Vec<&Seen> = all.iter().copied().filter(|b| Some(series(&b.header)) == own).collect();
    let mut others: Vec<_> = all.iter().map(|b| series(&b.header)).filter(|s| Some(*s) != own).collect();
    others.sort_unstable();
    others.dedup();

    let lane = frame.inputs.config.and_then(|c| c.lane(&name.name));
    let windows = windows(frame, &bursts, lane);
    let counts: Vec<WindowCount> =
        windows.iter().map(|w| WindowCount { window: w.window.clone(), rate: w.rate }).collect();
    let retries = campaign_retries(frame, &bursts);
    let mut evidence = Evidence {
        windows: counts,
        declared_peak: frame.peak.map(str::to_owned),
        complete_days: 0,
        missing: Vec::new(),
        retries: retries.rate(),
    };
    // Which window decides depends on the rates alone; how many of its days are complete comes after.
    let deciding = decide(&evidence, frame.thresholds).deciding_window;
    let at = deciding.as_deref().and_then(|d| windows.iter().position(|w| w.window == d));
    let missing = deciding.as_deref().map(|d| missing(frame, &name.name, d, &bursts)).unwrap_or_default();
    evidence.complete_days = at.map_or(0, |at| windows[at].days);
    if evidence.complete_days < frame.thresholds.days
        && let Some(window) = &deciding
    {
        evidence.missing = missing.iter().map(|(date, _)| (date.clone(), window.clone())).collect();
    }
    let decision = decide(&evidence, frame.thresholds);
    let needs = needs_of(frame, lane);
    let stated = lane.map(stated).unwrap_or_default();
    let figures = LaneFigures {
        lane: name.name.clone(),
        kind: newest.map_or(name.kind, |b| b.header.kind),
        model: newest.map_or_else(|| name.model.clone(), |b| b.header.model.clone()),
        simulated: newest.is_some_and(|b| b.header.simulated),
        pass_certainty: pass_certainty(frame, at.map(|at| &windows[at]), &windows, &bursts),
        retry_certainty: retry_certainty(frame, &bursts),
        retries,
        cold: cold_start(&bursts),
        micro_usd_per_1000: price(frame, &windows, lane, name.kind),
        waited_us: mean(&windows.iter().map(|w| w.waited_us).collect::<Vec<_>>()),
        waiting: None,
        needs,
        stated,
        observed: observed(&bursts),
        missing,
        burst_ids: bursts.iter().filter(|b| counts_fully(b)).map(|b| b.header.id.clone()).collect(),
        other_series: u32::try_from(others.len()).unwrap_or(u32::MAX),
        deciding: at,
        windows,
    };
    finish(frame, figures, decision)
}

fn finish(frame: &Frame<'_>, mut figures: LaneFigures, decision: Decision) -> (Candidate, LaneFigures) {
    let config = frame.inputs.config;
    figures.waiting = config.zip(figures.waited_us).and_then(|(config, us)| waiting(us, config));
    let stated = &figures.stated;
    let patched_days_ago = stated.patched.and_then(|day| days_between(day, frame.inputs.as_of));
    let owner = stated.owner.clone().map(|name| Owner { name, patched_days_ago });
    let none = crate::config::Reasons::default();
    let candidate = Candidate {
        lane: figures.lane.clone(),
        kind: figures.kind,
        decision,
        owner,
        barred: bars(figures.kind, &figures.needs, config.map_or(&none, |c| &c.reasons)),
        arguments: crate::rules::Arguments {
            ops_minutes_per_month: stated.ops_hours_per_month.map(|hours| (hours * 60.0).round() as u64),
            micro_usd_per_1000: figures.micro_usd_per_1000,
        },
    };
    (candidate, figures)
}

/// Whole days from one to the other; 0 for one in the future.
fn days_between(from: crate::config::Day, to: crate::config::Day) -> Option<u32> {
    let days = from.date().until(to.date()).ok()?.get_days();
    u32::try_from(days.max(0)).ok()
}

fn needs_of(frame: &Frame<'_>, lane: Option<&Lane>) -> Vec<crate::rules::NeedCheck> {
    let limits = lane.map(|l| l.limits).unwrap_or_default();
    frame.inputs.config.map(|c| check_needs(&c.needs, &limits)).unwrap_or_default()
}

fn stated(lane: &Lane) -> Stated {
    Stated {
        ops_hours_per_month: lane.ops_hours_per_month,
        owner: lane.owner.clone(),
        patched: lane.patched,
        terms_url: lane.terms_url.clone(),
        terms_checked: lane.terms_checked,
        limits: lane.limits,
        affiliation: lane.affiliation.clone(),
        region: lane.region.clone(),
        rent_micro_usd_per_hour: lane.rent_usd_per_hour.map(|usd| usd.micro_usd()),
    }
}

/// A burst that counts: complete, without a finding, all attempts on record.
fn counts_fully(burst: &Seen) -> bool {
    summarise(&burst.header, burst.state, &burst.figures).pass_rate().is_some()
}

/// What a burst adds to the pass rate of its window: its attempts, or for a batch class the burst as a whole.
fn rate_of(burst: &Seen) -> Option<PassRate> {
    let summary = summarise(&burst.header, burst.state, &burst.figures);
    if burst.header.tasks_per_hour_floor.is_some() {
        return PassRate::new(u32::from(summary.throughput_holds()?), 1);
    }
    summary.pass_rate()
}

fn windows(frame: &Frame<'_>, bursts: &[&Seen], lane: Option<&Lane>) -> Vec<WindowFigures> {
    let data: Vec<BurstData<'_>> =
        bursts.iter().map(|b| BurstData { header: &b.header, state: b.state, figures: &b.figures }).collect();
    // One series has one summary.
    let Some(summary) = lane_summaries(&data).into_iter().next() else { return Vec::new() };
    let of_window = |window: Option<&str>| -> Vec<&Seen> {
        let here = bursts.iter().copied().filter(|b| b.header.window.as_deref() == window);
        here.filter(|b| counts_fully(b)).collect()
    };
    let one = |w: crate::summary::WindowSummary| {
        let retries = w.retry_tally();
        let here = of_window(w.window.as_deref());
        let counted: Vec<(String, PassRate)> =
            here.iter().filter_map(|b| Some((b.header.date.clone()?, rate_of(b)?))).collect();
        let mut by_date: BTreeMap<&str, usize> = BTreeMap::new();
        counted.iter().for_each(|(date, _)| *by_date.entry(date).or_default() += 1);
        let days = by_date.values().filter(|n| **n >= frame.needed()).count();
        let rates: Vec<PassRate> = counted.iter().map(|(_, rate)| *rate).collect();
        let attempts = || here.iter().flat_map(|b| &b.figures);
        Some(WindowFigures {
            rate: PassRate::sum(&rates),
            days: u32::try_from(days).unwrap_or(u32::MAX),
            p90: w.p90,
            misses: w.misses.clone(),
            micro_usd_per_1000: lane
                .and_then(|l| l.price.as_ref())
                .and_then(|price| price_of_1000(attempts(), price, frame.inputs.zones)),
            waited_us: waited_us(attempts()),
            bursts: counted,
            retries,
            window: w.window.clone()?,
        })
    };
    summary.windows.into_iter().filter_map(one).collect()
}

/// Retries over the days of the campaign; what was measured after it belongs to the triggers.
fn campaign_retries(frame: &Frame<'_>, bursts: &[&Seen]) -> RetryTally {
    let of_campaign =
        |b: &&&Seen| frame.planned.is_none_or(|p| b.header.date.as_ref().is_some_and(|date| p.dates.contains(date)));
    retries_of(bursts.iter().filter(of_campaign).copied())
}

pub(super) fn retries_of<'a>(bursts: impl Iterator<Item = &'a Seen>) -> RetryTally {
    bursts.filter(|b| counts_fully(b)).fold(RetryTally::default(), |sum, b| {
        let one = summarise(&b.header, b.state, &b.figures).retry_tally();
        RetryTally {
            attempts: sum.attempts.saturating_add(one.attempts),
            retried: sum.retried.saturating_add(one.retried),
            retries: sum.retries.saturating_add(one.retries),
        }
    })
}

/// Dates of the deciding window without all of its bursts, and why. A burst that was due before the campaign was begun is
/// no miss.
fn missing(frame: &Frame<'_>, lane: &str, window: &str, bursts: &[&Seen]) -> Vec<(String, String)> {
    let on = |date: &str| {
        let same = |b: &&&Seen| b.header.date.as_deref() == Some(date) && b.header.window.as_deref() == Some(window);
        bursts.iter().filter(same).copied().collect::<Vec<&Seen>>()
    };
    let dates: Vec<String> = match frame.planned {
        Some(planned) => planned.dates.clone(),
        None => {
            let mut seen: Vec<String> = bursts.iter().filter_map(|b| b.header.date.clone()).collect();
            seen.sort();
            seen.dedup();
            seen
        }
    };
    let mut found = Vec::new();
    for date in dates.into_iter().filter(|date| frame.is_over(date, window, bursts)) {
        let here = on(&date);
        if here.iter().filter(|b| counts_fully(b)).count() >= frame.needed() {
            continue;
        }
        let gap = frame.gap(lane, &date, window);
        if gap.is_some_and(|g| g.state == "before_start") || (frame.planned.is_none() && here.is_empty()) {
            continue;
        }
        let why = match (here.iter().find(|b| !counts_fully(b)), gap) {
            (Some(burst), _) if burst.state == BurstState::Running => "interrupted".to_owned(),
            (Some(burst), _) => summarise(&burst.header, burst.state, &burst.figures).state.name().to_owned(),
            (None, Some(gap)) => gap.reason.clone().unwrap_or_else(|| gap.state.clone()),
            (None, None) => "not on record".to_owned(),
        };
        found.push((date, why));
    }
    found
}

fn attempts_of_a_burst(bursts: &[&Seen]) -> u32 {
    bursts.last().map_or(8, |b| if b.header.tasks_per_hour_floor.is_some() { 1 } else { b.header.attempts.max(1) })
}

fn pass_certainty(
    frame: &Frame<'_>,
    deciding: Option<&WindowFigures>,
    windows: &[WindowFigures],
    bursts: &[&Seen],
) -> Option<crate::rules::Certainty> {
    let rates: Vec<PassRate> = deciding?.bursts.iter().map(|(_, rate)| *rate).collect();
    let measured = windows.iter().filter(|w| w.rate.is_some()).count();
    certainty(&Question {
        bursts: &rates,
        burst_attempts: attempts_of_a_burst(bursts),
        percent: frame.thresholds.pass_percent,
        looks: if frame.peak.is_some() { 1 } else { u32::try_from(measured).unwrap_or(u32::MAX).max(1) },
    })
}

/// The retry rate as a rate of attempts without a retry, held against what is left of 100 %.
fn retry_certainty(frame: &Frame<'_>, bursts: &[&Seen]) -> Option<crate::rules::Certainty> {
    let of_campaign =
        |b: &&&Seen| frame.planned.is_none_or(|p| b.header.date.as_ref().is_some_and(|d| p.dates.contains(d)));
    let rates: Vec<PassRate> = bursts
        .iter()
        .filter(of_campaign)
        .filter(|b| counts_fully(b))
        .filter_map(|b| {
            let tally = summarise(&b.header, b.state, &b.figures).retry_tally();
            PassRate::new(tally.attempts.checked_sub(tally.retried)?, tally.attempts)
        })
        .collect();
    let below = frame.thresholds.retry_below_percent;
    let percent = 100_u32.checked_sub(below)?;
    let question = Question { bursts: &rates, burst_attempts: attempts_of_a_burst(bursts), percent, looks: 1 };
    certainty(&question).map(|mut found| {
        // Exactly the limit is too much for a retry rate, while the bar of a pass rate is enough.
        let holds = campaign_retries(frame, bursts).rate().is_some_and(|rate| rate.below(below));
        if found.reaches != holds {
            found.reaches = holds;
            found.state = CertaintyState::Provisional {
                bursts_needed: None,
                assumed_rate: found.rate.share(),
                probability: PROBABILITY,
            };
        }
        found
    })
}

fn cold_start(bursts: &[&Seen]) -> Option<ColdStart> {
    let all: Vec<_> = bursts.iter().flat_map(|b| &b.warmups).collect();
    let mut answered: Vec<u64> = all.iter().filter(|c| c.outcome == Outcome::Ok).map(|c| c.latency_us).collect();
    answered.sort_unstable();
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    (!all.is_empty()).then(|| ColdStart {
        attempts: count(all.len()),
        failed: count(all.len() - answered.len()),
        median_us: crate::stats::nearest_rank(&answered, 50).ok(),
        slowest_us: answered.last().copied(),
    })
}

fn observed(bursts: &[&Seen]) -> Observed {
    let mut seen = Observed::default();
    let mut headers: BTreeMap<String, String> = BTreeMap::new();
    for burst in bursts {
        let limited = burst.figures.iter().filter(|f| f.outcome == Outcome::RateLimited).count();
        seen.rate_limited = seen.rate_limited.saturating_add(u32::try_from(limited).unwrap_or(u32::MAX));
        seen.attempts = seen.attempts.saturating_add(u32::try_from(burst.figures.len()).unwrap_or(u32::MAX));
        if limited == 0 && counts_fully(burst) {
            seen.in_flight = seen.in_flight.max(burst.peak_in_flight);
        }
        headers.extend(burst.limit_headers.iter().cloned());
    }
    seen.headers = headers.into_iter().collect();
    seen
}

/// By token, as the mean of the windows; by rent, where the requests of a month are known; nothing for a free lane without
/// a price.
fn price(frame: &Frame<'_>, windows: &[WindowFigures], lane: Option<&Lane>, kind: Kind) -> Option<u64> {
    let lane = lane?;
    if lane.price.is_some() {
        return mean(&windows.iter().map(|w| w.micro_usd_per_1000).collect::<Vec<_>>());
    }
    match lane.rent_usd_per_hour {
        Some(rent) => rent_of_1000(rent.micro_usd(), frame.inputs.config.and_then(requests_a_month)?),
        None => (kind == Kind::FreeHosted).then_some(0),
    }
}
