//! Sessions that were recorded whole: lines of request bodies in, figures out.
//!
//! Here a session's calls are all known, so that helper calls can be told from the whole and each call is held against
//! the one before it in the main lineage, however little the two share.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::compare::{self, BLOCK_BYTES};
use super::prompt::{Prompt, PromptError};
use super::scan::{Scan, ScanError};
use super::sessions::lines_of;
use super::{Bounds, Sessions, diverge};
use crate::call::{Divergence, SessionBy};
use crate::lane::Api;

/// A line that is no call.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// Not the shape of a line.
    #[error("not a recorded call: {0}")]
    Line(#[from] serde_json::Error),
    /// An API that is not known.
    #[error("`api` is `{api}`; known are chat, completions, messages, responses")]
    Api {
        /// As given.
        api: String,
    },
    /// A body without a prompt.
    #[error("the body of call {seq}: {source}")]
    Body {
        /// Number of the call.
        seq: u64,
        /// What is wrong with it.
        source: PromptError,
    },
}

/// One line: `{"harness", "version", "session", "seq", "t_ms", "api", "body"}`.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(default)]
    harness: Option<String>,
    #[serde(default)]
    version: Option<String>,
    session: String,
    #[serde(default)]
    seq: Option<u64>,
    api: String,
    #[serde(borrow)]
    body: &'a RawValue,
}

/// One recorded call.
#[derive(Debug)]
pub struct TraceCall {
    harness: Option<String>,
    version: Option<String>,
    session: String,
    seq: Option<u64>,
    prompt: Prompt,
    /// The body as compact JSON in the order sent.
    raw: Vec<u8>,
}

impl TraceCall {
    /// Reads one line.
    ///
    /// # Errors
    /// [`TraceError`] for what is no recorded call.
    pub fn read(line: &str) -> Result<Self, TraceError> {
        let line: Line<'_> = serde_json::from_str(line)?;
        let api: Api = line.api.parse().map_err(|_| TraceError::Api { api: line.api.clone() })?;
        let body = line.body.get();
        let broken = |source: PromptError| TraceError::Body { seq: line.seq.unwrap_or(0), source };
        let prompt = Prompt::from_body(api, body.as_bytes()).map_err(broken)?;
        let mut raw = Vec::with_capacity(body.len());
        Scan::new(body, false).value(&mut raw).map_err(|e: ScanError| broken(e.into()))?;
        Ok(Self { harness: line.harness, version: line.version, session: line.session, seq: line.seq, prompt, raw })
    }

    /// The session that it belongs to.
    pub fn session(&self) -> &str {
        &self.session
    }
}

/// Two calls of the main lineage, one after the other. Shares are rounded to four places.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// Number of the former call.
    pub from: u64,
    /// Number of the later call.
    pub to: u64,
    /// Size of the former prompt, bytes.
    pub a_bytes: u64,
    /// Size of the later prompt, bytes.
    pub b_bytes: u64,
    /// Bytes that both begin with.
    pub common: u64,
    /// `common / a_bytes`: 1.0 is append-only.
    pub reuse: f64,
    /// `common / b_bytes`: what a cache can serve of the later prompt.
    pub warm: f64,
    /// `reuse` in whole 64-byte blocks.
    pub blocks: f64,
    /// `a_bytes - common`.
    pub lost: u64,
    /// Segment of the former prompt with the first difference.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// `reuse` over the bodies as sent.
    pub raw: f64,
    /// The longest beginning of the later prompt that any earlier one had, as a share of it.
    pub reuse_best: f64,
    /// What the first difference is.
    pub first_divergence: Option<Divergence>,
}

/// A pair that is not append-only, in short.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Break {
    /// Number of the former call.
    pub from: u64,
    /// Number of the later call.
    pub to: u64,
    /// Segment of the former prompt with the first difference.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// Bytes of the former prompt behind it.
    pub lost: u64,
    /// Share of the former prompt that was repeated.
    pub reuse: f64,
}

/// A recorded session in figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceSession {
    /// The file it was read from.
    pub file: Option<String>,
    /// Its harness.
    pub harness: Option<String>,
    /// The harness's version.
    pub version: Option<String>,
    /// Its name.
    pub session: String,
    /// All calls.
    pub calls: u64,
    /// Calls beside the main lineage: titles, commit messages.
    pub helper_calls: u64,
    /// Size of the first prompt of the main lineage, bytes.
    pub first_prompt_bytes: u64,
    /// Size of its last one, bytes.
    pub last_prompt_bytes: u64,
    /// Tools offered, at most.
    pub tools: u64,
    /// Lowest `reuse` of a pair; `None` without pairs.
    pub reuse_min: Option<f64>,
    /// Mean of `reuse` over the pairs.
    pub reuse_mean: Option<f64>,
    /// Lowest `reuse` where the system text stands before the tools.
    pub reuse_min_other_order: Option<f64>,
    /// Pairs whose former prompt is repeated whole.
    pub append_only_pairs: u64,
    /// Pairs.
    pub pairs: u64,
    /// Bytes of all later prompts.
    pub bytes_resent: u64,
    /// Bytes of these that a cache could have served.
    pub bytes_warm: u64,
    /// Share of all prompt bytes of the main lineage that a cache could have served, the first call cold.
    pub session_hit_ratio: Option<f64>,
    /// The pairs that are not append-only.
    pub breaks: Vec<Break>,
    /// All pairs.
    pub pair_list: Vec<Pair>,
}

/// Four decimal places, halves to even, as the expected figures are rounded.
fn round4(value: f64) -> f64 {
    format!("{value:.4}").parse().unwrap_or(value)
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

/// Figures of one session's calls, in the order in which they were made. `None` without calls.
pub fn session_of(file: Option<&str>, calls: &[TraceCall]) -> Option<TraceSession> {
    let first = calls.first()?;
    let helpers = helpers(calls);
    let main: Vec<usize> = (0..calls.len()).filter(|n| !helpers[*n]).collect();
    let best = best(calls);
    let seq = |n: usize| calls[n].seq.unwrap_or(n as u64 + 1);
    let mut pairs = Vec::new();
    let mut reuses = Vec::new();
    let mut other_order = Vec::new();
    let (mut resent, mut warm) = (0, 0);
    for pair in main.windows(2) {
        let (a, b) = (&calls[pair[0]], &calls[pair[1]]);
        let (from, to) = (a.prompt.text.len(), b.prompt.text.len());
        let common = compare::common(&a.prompt.text, &b.prompt.text);
        let (blocks, of) = (common / BLOCK_BYTES, from / BLOCK_BYTES);
        reuses.push(share(common, from));
        other_order.push(share(compare::common_other_order(&a.prompt, &b.prompt), from));
        resent += to as u64;
        warm += common as u64;
        pairs.push(Pair {
            from: seq(pair[0]),
            to: seq(pair[1]),
            a_bytes: from as u64,
            b_bytes: to as u64,
            common: common as u64,
            reuse: round4(share(common, from)),
            warm: round4(share(common, to)),
            blocks: round4(share(blocks, of)),
            lost: (from - common) as u64,
            place: compare::place(&a.prompt, common),
            raw: round4(share(compare::common(&a.raw, &b.raw), a.raw.len())),
            reuse_best: round4(share(best[pair[1]].max(common), to)),
            first_divergence: diverge::diverge(&a.prompt, &b.prompt, common),
        });
    }
    let bytes = |n: Option<&usize>| n.map_or(0, |n| calls[*n].prompt.text.len() as u64);
    let first_bytes = bytes(main.first());
    let breaks = pairs.iter().filter(|p| p.lost > 0);
    let lowest = |list: &[f64]| list.iter().copied().reduce(f64::min).map(round4);
    Some(TraceSession {
        file: file.map(str::to_owned),
        harness: first.harness.clone(),
        version: first.version.clone(),
        session: first.session.clone(),
        calls: calls.len() as u64,
        helper_calls: helpers.iter().filter(|h| **h).count() as u64,
        first_prompt_bytes: first_bytes,
        last_prompt_bytes: bytes(main.last()),
        tools: calls.iter().map(|c| u64::from(c.prompt.asked.tools)).max().unwrap_or(0),
        reuse_min: lowest(&reuses),
        reuse_mean: (!reuses.is_empty()).then(|| round4(reuses.iter().sum::<f64>() / reuses.len() as f64)),
        reuse_min_other_order: lowest(&other_order),
        append_only_pairs: pairs.iter().filter(|p| p.lost == 0).count() as u64,
        pairs: pairs.len() as u64,
        bytes_resent: resent,
        bytes_warm: warm,
        session_hit_ratio: (first_bytes + resent > 0 && !pairs.is_empty())
            .then(|| round4(warm as f64 / (first_bytes + resent) as f64)),
        breaks: breaks
            .map(|p| Break { from: p.from, to: p.to, place: p.place.clone(), lost: p.lost, reuse: p.reuse })
            .collect(),
        pair_list: pairs,
    })
}

/// Which calls are beside the main lineage: those without tools where the session has some; in a session without tools,
/// those that share under half of the system lines of its largest call.
fn helpers(calls: &[TraceCall]) -> Vec<bool> {
    if calls.iter().any(|c| c.prompt.asked.tools > 0) {
        return calls.iter().map(|c| c.prompt.asked.tools == 0).collect();
    }
    let Some(largest) = calls.iter().reduce(|a, b| if b.prompt.text.len() > a.prompt.text.len() { b } else { a })
    else {
        return Vec::new();
    };
    let wanted = lines_of(&largest.prompt);
    let shares_half = |call: &TraceCall| {
        let lines: std::collections::HashSet<&[u8]> = lines_of(&call.prompt).into_iter().collect();
        wanted.iter().filter(|line| lines.contains(*line)).count() * 2 >= wanted.len()
    };
    calls.iter().map(|call| !shares_half(call)).collect()
}

/// For each call the longest beginning that any earlier one shares with it, bytes in whole blocks.
fn best(calls: &[TraceCall]) -> Vec<usize> {
    let mut sessions = Sessions::new(Bounds { text_bytes: 0, ..Bounds::default() }, "");
    let name = |call: &TraceCall| Some((SessionBy::Path, call.session.clone()));
    let each = calls.iter().map(|call| sessions.enter(name(call), call.prompt.clone(), 0).figures.best_bytes);
    each.map(|bytes| bytes.unwrap_or(0) as usize).collect()
}
