//! Attempts to counts and quantiles: the one reduction that a burst and a window share.

use super::{MissCount, Quantile};
use crate::attempt::Verdict;
use crate::burst::AttemptFigures;
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

/// Times of one moment over all attempts that count.
#[derive(Default)]
struct Moments {
    seen_us: Vec<u64>,
    never: u64,
    /// A whole answer without this moment: nobody took it, so it is unknown and not infinite.
    unknown: bool,
}

impl Moments {
    fn add(&mut self, at_us: Option<u64>, finished: bool) {
        match at_us {
            Some(us) => self.seen_us.push(us),
            None if finished => self.unknown = true,
            None => self.never += 1,
        }
    }

    fn ranked(self, at_least_us: u64) -> Option<Ranked> {
        (!self.unknown).then(|| Ranked::new(self.seen_us, self.never, at_least_us))
    }
}

/// Where misses that are no outcome stand in the table of counts.
const TOO_SLOW: usize = Outcome::ALL.len();
const WRONG_ANSWER: usize = TOO_SLOW + 1;

/// Reduces attempts. `at_least_us`: what an unfinished attempt exceeds at least (floor, total limit).
pub(super) fn reduce<'a>(figures: impl IntoIterator<Item = &'a AttemptFigures>, at_least_us: u64) -> Reduced {
    let (mut made, mut passed, mut findings, mut retried, mut retries) = (0_u32, 0_u32, 0_u32, 0_u32, 0_u32);
    let mut missed = [0_u32; WRONG_ANSWER + 1];
    let (mut finished, mut ttft, mut first_answer) = (Moments::default(), Moments::default(), Moments::default());
    let (mut prompt, mut cached, mut completion) = (None, None, None);
    for f in figures {
        made += 1;
        retried += u32::from(f.retries > 0);
        retries = retries.saturating_add(f.retries);
        add(&mut prompt, f.prompt_tokens);
        add(&mut cached, f.cached_tokens);
        add(&mut completion, f.completion_tokens);
        match f.verdict {
            Verdict::ConfigFinding => {
                // Counts neither way, so it has no rank among the latencies either.
                findings += 1;
                continue;
            }
            Verdict::Pass => passed += 1,
            Verdict::TooSlow => missed[TOO_SLOW] += 1,
            Verdict::WrongAnswer => missed[WRONG_ANSWER] += 1,
            Verdict::Failed => missed[f.outcome as usize] += 1,
        }
        finished.add(f.verdict.finished().then_some(f.latency_us), false);
        ttft.add(f.ttft_us, f.verdict.finished());
        first_answer.add(f.first_answer_us, f.verdict.finished());
    }
    Reduced {
        made,
        passed,
        findings,
        retried,
        retries,
        misses: named(&missed),
        latency: Ranked::new(finished.seen_us, finished.never, at_least_us),
        ttft: ttft.ranked(at_least_us),
        first_answer: first_answer.ranked(at_least_us),
        prompt_tokens: prompt,
        cached_tokens: cached,
        completion_tokens: completion,
    }
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
