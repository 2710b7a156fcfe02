//! The calls of one recorded session, taken one by one, to its figures.

use std::collections::HashSet;

use super::super::compare::{self, BLOCK_BYTES};
use super::super::prompt::Prompt;
use super::super::sessions::lines_of;
use super::super::{Bounds, Sessions, diverge};
use super::{Break, Pair, TraceCall, TraceSession};
use crate::call::SessionBy;

/// Takes the calls of one session in the order in which they were made.
///
/// Of a session with tools only the newest prompt is held, however long it is: a call without tools is a helper there.
/// One without tools is held whole, since only its largest call tells which of them are helpers.
#[derive(Debug)]
pub struct TraceReducer {
    harness: Option<String>,
    version: Option<String>,
    session: String,
    calls: u64,
    helper_calls: u64,
    tools: u64,
    /// Calls without tools, while no call had any.
    waiting: Vec<Held>,
    main: Main,
    /// All prompts so far, as hashes, for the longest shared beginning.
    before: Sessions,
}

/// What is needed of a call to hold the next one against it.
#[derive(Debug)]
struct Held {
    seq: u64,
    prompt: Prompt,
    raw: Vec<u8>,
    /// Longest beginning that any earlier call shares with it, bytes in whole blocks.
    best_bytes: usize,
}

impl TraceReducer {
    /// Begins with the first call, whose session and harness name the whole.
    pub fn new(first: TraceCall) -> Self {
        let mut this = Self {
            harness: first.harness.clone(),
            version: first.version.clone(),
            session: first.session.clone(),
            calls: 0,
            helper_calls: 0,
            tools: 0,
            waiting: Vec::new(),
            main: Main::default(),
            before: Sessions::new(Bounds { text_bytes: 0, ..Bounds::default() }, ""),
        };
        this.add(first);
        this
    }

    /// The next call.
    pub fn add(&mut self, call: TraceCall) {
        self.calls += 1;
        let name = Some((SessionBy::Path, self.session.clone()));
        let best = self.before.enter(name, call.prompt.clone(), 0).figures.best_bytes;
        let held = Held {
            seq: call.seq.unwrap_or(self.calls),
            prompt: call.prompt,
            raw: call.raw,
            best_bytes: best.unwrap_or(0) as usize,
        };
        let tools = u64::from(held.prompt.asked.tools);
        if tools > 0 {
            // Whatever came without tools before was a helper.
            self.helper_calls += self.waiting.drain(..).len() as u64;
            self.main.add(held);
        } else if self.tools > 0 {
            self.helper_calls += 1;
        } else {
            self.waiting.push(held);
        }
        self.tools = self.tools.max(tools);
    }

    /// The figures.
    ///
    /// * `file`: where the calls were read from.
    pub fn finish(mut self, file: Option<&str>) -> TraceSession {
        let helpers = helpers(&self.waiting);
        for (held, helper) in std::mem::take(&mut self.waiting).into_iter().zip(helpers) {
            if helper {
                self.helper_calls += 1;
            } else {
                self.main.add(held);
            }
        }
        let main = self.main;
        let lowest = |list: &[f64]| list.iter().copied().reduce(f64::min).map(round4);
        let reuses = &main.reuses;
        let breaks = main.pairs.iter().filter(|p| p.lost > 0);
        TraceSession {
            file: file.map(str::to_owned),
            harness: self.harness,
            version: self.version,
            session: self.session,
            calls: self.calls,
            helper_calls: self.helper_calls,
            first_prompt_bytes: main.first_bytes,
            last_prompt_bytes: main.former.as_ref().map_or(0, |last| last.prompt.text.len() as u64),
            tools: self.tools,
            reuse_min: lowest(reuses),
            reuse_mean: (!reuses.is_empty()).then(|| round4(reuses.iter().sum::<f64>() / reuses.len() as f64)),
            reuse_min_other_order: lowest(&main.other_order),
            append_only_pairs: main.pairs.iter().filter(|p| p.lost == 0).count() as u64,
            pairs: main.pairs.len() as u64,
            bytes_resent: main.resent,
            bytes_warm: main.warm,
            session_hit_ratio: (main.first_bytes + main.resent > 0 && !main.pairs.is_empty())
                .then(|| round4(main.warm as f64 / (main.first_bytes + main.resent) as f64)),
            breaks: breaks
                .map(|p| Break { from: p.from, to: p.to, place: p.place.clone(), lost: p.lost, reuse: p.reuse })
                .collect(),
            pair_list: main.pairs,
        }
    }
}

/// The main lineage.
#[derive(Debug, Default)]
struct Main {
    former: Option<Held>,
    first_bytes: u64,
    pairs: Vec<Pair>,
    /// Shares as they are, since means are taken before rounding.
    reuses: Vec<f64>,
    other_order: Vec<f64>,
    resent: u64,
    warm: u64,
}

impl Main {
    fn add(&mut self, b: Held) {
        match self.former.take() {
            None => self.first_bytes = b.prompt.text.len() as u64,
            Some(a) => self.pair(&a, &b),
        }
        self.former = Some(b);
    }

    fn pair(&mut self, a: &Held, b: &Held) {
        let (from, to) = (a.prompt.text.len(), b.prompt.text.len());
        let common = compare::common(&a.prompt.text, &b.prompt.text);
        self.reuses.push(share(common, from));
        self.other_order.push(share(compare::common_other_order(&a.prompt, &b.prompt), from));
        self.resent += to as u64;
        self.warm += common as u64;
        self.pairs.push(Pair {
            from: a.seq,
            to: b.seq,
            a_bytes: from as u64,
            b_bytes: to as u64,
            common: common as u64,
            reuse: round4(share(common, from)),
            warm: round4(share(common, to)),
            blocks: round4(share(common / BLOCK_BYTES, from / BLOCK_BYTES)),
            lost: (from - common) as u64,
            place: compare::place(&a.prompt, common),
            raw: round4(share(compare::common(&a.raw, &b.raw), a.raw.len())),
            reuse_best: round4(share(b.best_bytes.max(common), to)),
            first_divergence: diverge::diverge(&a.prompt, &b.prompt, common),
        });
    }
}

/// Figures of one session's calls, in the order in which they were made. `None` without calls.
pub fn session_of(file: Option<&str>, calls: impl IntoIterator<Item = TraceCall>) -> Option<TraceSession> {
    let mut calls = calls.into_iter();
    let mut reducer = TraceReducer::new(calls.next()?);
    calls.for_each(|call| reducer.add(call));
    Some(reducer.finish(file))
}

/// Which calls of a session without tools are beside the main lineage: those that share under half of the system lines
/// of its largest call.
fn helpers(calls: &[Held]) -> Vec<bool> {
    let Some(largest) = calls.iter().reduce(|a, b| if b.prompt.text.len() > a.prompt.text.len() { b } else { a })
    else {
        return Vec::new();
    };
    let wanted = lines_of(&largest.prompt);
    let shares_half = |call: &Held| {
        let lines: HashSet<&[u8]> = lines_of(&call.prompt).into_iter().collect();
        wanted.iter().filter(|line| lines.contains(*line)).count() * 2 >= wanted.len()
    };
    calls.iter().map(|call| !shares_half(call)).collect()
}

/// Four decimal places, halves to even, as the expected figures are rounded.
pub(super) fn round4(value: f64) -> f64 {
    format!("{value:.4}").parse().unwrap_or(value)
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}
