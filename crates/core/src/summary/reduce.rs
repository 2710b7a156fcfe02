//! Attempts to counts and quantiles: the one reduction that a burst and a window share.

use super::{MissCount, Quantile};
use crate::attempt::Verdict;
use crate::burst::{AttemptFigures, BurstHeader};
use crate::outcome::Outcome;
use crate::stats::{Portion, nearest_rank_with_unfinished};

/// What is known without the header: counts and quantiles of some attempts.
#[derive(Debug)]
pub(super) struct Reduced {
    pub(super) made: u32,
    pub(super) passed: u32,
    pub(super) findings: u32,
    pub(super) retried: u32,
    pub(super) retries: u32,
    pub(super) misses: Vec<MissCount>,
    pub(super) latency: Ranked,
    pub(super) ttft: Option<Ranked>,
    pub(super) first_answer: Option<Ranked>,
    pub(super) span_us: Option<u64>,
    pub(super) right_in_stretch: Option<u32>,
    pub(super) prompt_tokens: Option<u64>,
    pub(super) cached_tokens: Option<u64>,
    pub(super) completion_tokens: Option<u64>,
}

/// Times in ascending order, and how many attempts never came so far.
#[derive(Debug)]
pub(super) struct Ranked {
    sorted_us: Vec<u64>,
    unfinished: u64,
    /// What every unfinished attempt exceeds: the largest of the finished times, the floor and the total limit.
    beyond_us: u64,
}

impl Ranked {
    fn new(mut times_us: Vec<u64>, unfinished: u64, at_least_us: u64) -> Self {
        times_us.sort_unstable();
        let beyond_us = times_us.last().copied().unwrap_or(0).max(at_least_us);
        Self { sorted_us: times_us, unfinished, beyond_us }
    }

    /// The quantile; `None` without attempts.
    pub(super) fn at(&self, portion: Portion) -> Option<Quantile> {
        let value = nearest_rank_with_unfinished(&self.sorted_us, self.unfinished, portion).ok()?;
        Some(value.map_or(Quantile::Exceeds(self.beyond_us), Quantile::Value))
    }
}

/// Times that take four bytes each as long as they are below 71 minutes: a burst may have a hundred thousand.
#[derive(Clone, Debug, Default)]
struct Times {
    small_us: Vec<u32>,
    large_us: Vec<u64>,
}

impl Times {
    fn push(&mut self, us: u64) {
        match u32::try_from(us) {
            Ok(us) => self.small_us.push(us),
            Err(_) => self.large_us.push(us),
        }
    }

    fn into_vec(self) -> Vec<u64> {
        self.small_us.into_iter().map(u64::from).chain(self.large_us).collect()
    }
}

/// Times of one moment over all attempts that count.
#[derive(Clone, Debug, Default)]
struct Moments {
    seen: Times,
    never: u64,
    /// A whole answer without this moment: nobody took it, so it is unknown and not infinite.
    unknown: bool,
}

impl Moments {
    fn add(&mut self, at_us: Option<u64>, finished: bool) {
        match at_us {
            Some(us) => self.seen.push(us),
            None if finished => self.unknown = true,
            None => self.never += 1,
        }
    }

    fn ranked(self, at_least_us: u64) -> Option<Ranked> {
        (!self.unknown).then(|| Ranked::new(self.seen.into_vec(), self.never, at_least_us))
    }
}

/// Where misses that are no outcome stand in the table of counts.
const TOO_SLOW: usize = Outcome::ALL.len();
const WRONG_ANSWER: usize = TOO_SLOW + 1;

/// Counts and times of attempts, taken in one by one as they end; some 12 bytes are kept of each, 20 in a stretch.
#[derive(Clone, Debug, Default)]
pub struct Reduction {
    made: u32,
    passed: u32,
    findings: u32,
    retried: u32,
    retries: u32,
    missed: [u32; WRONG_ANSWER + 1],
    finished: Moments,
    ttft: Moments,
    first_answer: Moments,
    prompt: Option<u64>,
    cached: Option<u64>,
    completion: Option<u64>,
    /// First intended start and last end, microseconds since the Unix epoch.
    span: Option<(i64, i64)>,
    start_unknown: bool,
    /// How long the stretch runs; `None` for a burst of a fixed number.
    stretch_us: Option<u64>,
    /// When the right answers of a stretch were whole, microseconds since the Unix epoch: which of them came within it is
    /// known once its first start is.
    right_ends: Vec<i64>,
}

impl Reduction {
    /// Nothing yet of a burst of that sort.
    pub fn of(header: &BurstHeader) -> Self {
        Self { stretch_us: header.stretch_us, ..Self::default() }
    }

    /// Takes in one attempt; the order does not matter. Warm-up attempts are not among them.
    pub fn add(&mut self, f: &AttemptFigures) {
        self.made += 1;
        self.retried += u32::from(f.retries > 0);
        self.retries = self.retries.saturating_add(f.retries);
        add(&mut self.prompt, f.prompt_tokens);
        add(&mut self.cached, f.cached_tokens);
        add(&mut self.completion, f.completion_tokens);
        match f.intended_unix_us {
            Some(start) => {
                let end = start.saturating_add_unsigned(f.latency_us);
                let (first, last) = self.span.unwrap_or((start, end));
                self.span = Some((first.min(start), last.max(end)));
                if self.stretch_us.is_some() && f.verdict == Verdict::Pass {
                    self.right_ends.push(end);
                }
            }
            None => self.start_unknown = true,
        }
        match f.verdict {
            Verdict::ConfigFinding => {
                // Counts neither way, so it has no rank among the latencies either.
                self.findings += 1;
                return;
            }
            Verdict::Pass => self.passed += 1,
            Verdict::TooSlow => self.missed[TOO_SLOW] += 1,
            Verdict::WrongAnswer => self.missed[WRONG_ANSWER] += 1,
            Verdict::Failed => self.missed[f.outcome as usize] += 1,
        }
        self.finished.add(f.verdict.finished().then_some(f.latency_us), false);
        self.ttft.add(f.ttft_us, f.verdict.finished());
        self.first_answer.add(f.first_answer_us, f.verdict.finished());
    }

    /// Attempts taken in.
    pub fn made(&self) -> u32 {
        self.made
    }

    pub(super) fn reduced(self, at_least_us: u64) -> Reduced {
        let right_in_stretch = self.right_in_stretch();
        Reduced {
            made: self.made,
            passed: self.passed,
            findings: self.findings,
            retried: self.retried,
            retries: self.retries,
            misses: named(&self.missed),
            latency: Ranked::new(self.finished.seen.into_vec(), self.finished.never, at_least_us),
            ttft: self.ttft.ranked(at_least_us),
            first_answer: self.first_answer.ranked(at_least_us),
            span_us: self
                .span
                .filter(|_| !self.start_unknown)
                .and_then(|(first, last)| u64::try_from(last.checked_sub(first)?).ok()),
            right_in_stretch,
            prompt_tokens: self.prompt,
            cached_tokens: self.cached,
            completion_tokens: self.completion,
        }
    }

    /// Right answers that were whole when the stretch ended, its last microsecond included; those that were in flight then
    /// are left out.
    fn right_in_stretch(&self) -> Option<u32> {
        let (first, _) = self.span.filter(|_| !self.start_unknown)?;
        let end = first.saturating_add_unsigned(self.stretch_us?);
        u32::try_from(self.right_ends.iter().filter(|at| **at <= end).count()).ok()
    }
}

/// Reduces attempts. `at_least_us`: what an unfinished attempt exceeds at least (floor, total limit).
pub(super) fn reduce<'a>(figures: impl IntoIterator<Item = &'a AttemptFigures>, at_least_us: u64) -> Reduced {
    let mut reduction = Reduction::default();
    figures.into_iter().for_each(|f| reduction.add(f));
    reduction.reduced(at_least_us)
}

/// Adds what was reported; a count that nobody reports stays unknown.
fn add(sum: &mut Option<u64>, reported: Option<u64>) {
    if let Some(tokens) = reported {
        *sum = Some(sum.unwrap_or(0).saturating_add(tokens));
    }
}

/// Counts with names, most frequent first, then by name.
fn named(counts: &[u32]) -> Vec<MissCount> {
    let mut misses: Vec<MissCount> = counts
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
        .map(|(index, count)| {
            let class = match index {
                TOO_SLOW => Verdict::TooSlow.name(),
                WRONG_ANSWER => Verdict::WrongAnswer.name(),
                // A failed attempt whose last try was whole contradicts itself; it is still a miss.
                _ if Outcome::ALL[index].is_ok() => Verdict::Failed.name(),
                _ => Outcome::ALL[index].name(),
            };
            MissCount { class: class.to_owned(), count: *count }
        })
        .collect();
    misses.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.class.cmp(&b.class)));
    misses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_stands_at_its_own_place_in_the_table_of_misses() {
        for (place, outcome) in Outcome::ALL.into_iter().enumerate() {
            assert_eq!(outcome as usize, place, "{outcome}");
        }
    }
}
