//! Sessions that were recorded whole: lines of request bodies in, figures out.
//!
//! Here a session's calls are all known, so that helper calls can be told from the whole and each call is held against
//! the one before it in the main lineage, however little the two share.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::prompt::{Prompt, PromptError};
use super::scan::{Scan, ScanError};
use crate::call::Divergence;
use crate::lane::Api;

mod reduce;

pub use self::reduce::{TraceReducer, session_of};

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

#[cfg(test)]
mod tests;
