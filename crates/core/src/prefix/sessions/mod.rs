//! Calls as they come: which session and which lineage each belongs to, and what it shares with what went before.
//!
//! Kept of each lineage is its newest prompt: block hashes always, the text while there is room. So the memory of
//! thousands of sessions is bounded, and figures of a lineage whose text had to go are still right to 64 bytes.

mod lineage;
mod store;

use std::collections::{BTreeMap, HashMap};

pub(super) use self::lineage::lines_of;
use self::lineage::{Lineage, Session, system_lines};
use super::chain::{Chain, hash_of};
use super::prompt::{Part, Prompt};
use super::{compare, diverge};
use crate::call::{PrefixFigures, SessionBy};

/// Bounds on what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Texts of newest prompts, bytes; the oldest go first.
    pub text_bytes: usize,
    /// Block hashes, bytes; whole sessions go, the longest unused first.
    pub hash_bytes: usize,
    /// Sessions.
    pub sessions: usize,
    /// A call that names no session goes on with one only within this time, milliseconds.
    pub idle_ms: u64,
}

impl Default for Bounds {
    /// 256 MiB of texts, 512 MiB of hashes (5,000 sessions of 200,000 tokens), 20,000 sessions, two hours.
    fn default() -> Self {
        Self { text_bytes: 256 << 20, hash_bytes: 512 << 20, sessions: 20_000, idle_ms: 2 * 3_600 * 1_000 }
    }
}

/// Where a call belongs and what it shares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Name of the session.
    pub session: String,
    /// How that is known.
    pub by: SessionBy,
    /// Number of the call within it, from 1.
    pub seq: u32,
    /// Same prompt as the call before: 1 for its first repeat.
    pub retry: u32,
    /// The figures.
    pub figures: PrefixFigures,
}

/// All sessions that are going on.
#[derive(Debug)]
pub struct Sessions {
    bounds: Bounds,
    /// Before the number of a session that has no name of its own.
    prefix: String,
    numbered: u64,
    named: HashMap<String, Session>,
    /// Unnamed lineages by the hash of their last message.
    by_last: HashMap<u64, String>,
    /// Sessions by their last use.
    used: BTreeMap<u64, String>,
    /// Lineages whose texts are kept, by their last use.
    texts: BTreeMap<u64, String>,
    tick: u64,
    text_bytes: usize,
    hash_bytes: usize,
}

impl Sessions {
    /// None yet. `prefix` begins the names of sessions that have none: unique to the process, so that two proxies on one
    /// store do not mix theirs.
    pub fn new(bounds: Bounds, prefix: &str) -> Self {
        Self {
            bounds,
            prefix: prefix.to_owned(),
            numbered: 0,
            named: HashMap::new(),
            by_last: HashMap::new(),
            used: BTreeMap::new(),
            texts: BTreeMap::new(),
            tick: 0,
            text_bytes: 0,
            hash_bytes: 0,
        }
    }

    /// Sessions kept now.
    pub fn len(&self) -> usize {
        self.named.len()
    }

    /// True before the first call.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// Bytes of texts and of hashes kept now.
    pub fn kept_bytes(&self) -> (usize, usize) {
        (self.text_bytes, self.hash_bytes)
    }

    /// Takes the next call.
    ///
    /// * `name`: the session, where anything names it. Without one the call belongs to the session whose newest prompt it
    ///   goes on from: it repeats that prompt's last message, or all of it. Sharing tools and system text alone makes no
    ///   session, since every run of one harness does.
    /// * `now_ms`: any clock that only goes forward.
    pub fn enter(&mut self, name: Option<(SessionBy, String)>, prompt: Prompt, now_ms: u64) -> Placed {
        let messages = message_hashes(&prompt);
        let chain = Chain::of(&prompt.text);
        let (by, name) = match name {
            Some(found) => found,
            None => match self.going_on(&prompt, &chain, &messages, now_ms) {
                Some(name) => (SessionBy::Prefix, name),
                None => {
                    self.numbered += 1;
                    (SessionBy::New, format!("{}{}", self.prefix, self.numbered))
                }
            },
        };
        self.tick += 1;
        let tick = self.tick;
        let mut session = self.take_session(&name);
        session.seq += 1;
        session.last_ms = now_ms;
        let unnamed = matches!(by, SessionBy::Prefix | SessionBy::New);
        let helper = session.is_helper(&prompt, &messages);
        let lines = system_lines(&prompt);
        let former = if helper { None } else { session.former(&chain, &messages, &lines) };
        let figures = figures(&session, former, helper, &prompt, &chain);
        let retry = session.repeat(&chain);
        let line = Lineage::new(prompt, chain, helper, session.seq, &messages, lines);
        self.keep(&mut session, &name, former, line, tick, unnamed);
        let placed = Placed { session: name.clone(), by, seq: session.seq, retry, figures };
        self.put_session(name, session, tick);
        placed
    }

    /// The session that an unnamed call goes on with.
    fn going_on(&self, prompt: &Prompt, chain: &Chain, messages: &[u64], now_ms: u64) -> Option<String> {
        let fresh = |name: &&String| {
            self.named.get(*name).is_some_and(|s| now_ms.saturating_sub(s.last_ms) <= self.bounds.idle_ms)
        };
        // The newest message first: the longest history wins.
        let by_message = messages.iter().rev().filter_map(|hash| self.by_last.get(hash)).find(fresh);
        if let Some(name) = by_message {
            return Some(name.clone());
        }
        // The last message was touched (a reminder taken out of it): most of the conversation before it is repeated.
        let recent = self.used.values().rev().take(lineage::RECENT).filter(|name| name.starts_with(&self.prefix));
        recent.filter(fresh).find(|name| self.named[*name].shares_history(chain, prompt)).cloned()
    }
}

/// Figures of a prompt within its session, before the session takes it in.
fn figures(session: &Session, former: Option<usize>, helper: bool, prompt: &Prompt, chain: &Chain) -> PrefixFigures {
    let mut figures = PrefixFigures {
        prompt_bytes: prompt.text.len() as u64,
        segments: prompt.segments.len() as u32,
        helper,
        exact: true,
        ..PrefixFigures::default()
    };
    if let Some(line) = former.map(|n| &session.lineages[n]) {
        figures.former_seq = Some(line.seq);
        figures.former_bytes = Some(line.chain.bytes() as u64);
        let (common, exact) = match &line.prompt {
            Some(old) => (compare::common(&old.text, &prompt.text), true),
            None => line.chain.common_with(chain, &prompt.text),
        };
        figures.common_bytes = Some(common as u64);
        figures.exact = exact;
        if let Some(old) = &line.prompt {
            let whole = common == old.text.len();
            let other = if whole { common } else { compare::common_other_order(old, prompt) };
            figures.common_other_order_bytes = Some(other as u64);
            figures.divergence = diverge::diverge(old, prompt, common);
        }
    }
    if session.seq > 1 {
        let (blocks, seq) = session.best(chain);
        let best = (blocks * compare::BLOCK_BYTES) as u64;
        let own = figures.common_bytes.unwrap_or(0);
        (figures.best_bytes, figures.best_seq) =
            if own >= best && own > 0 { (Some(own), figures.former_seq) } else { (Some(best), seq) };
    }
    figures
}

/// Hashes of the messages of a prompt, in order.
fn message_hashes(prompt: &Prompt) -> Vec<u64> {
    let is_message = |n: &usize| matches!(prompt.segments[*n].part, Part::Message | Part::Text);
    (0..prompt.segments.len()).filter(is_message).map(|n| hash_of(prompt.segment(n))).collect()
}

#[cfg(test)]
mod tests;
