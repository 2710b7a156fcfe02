//! One session: its lineages, and everything that earlier prompts could have warmed.

use std::collections::{HashMap, HashSet};

use super::super::chain::{Chain, hash_of};
use super::super::compare::BLOCK_BYTES;
use super::super::prompt::{Part, Prompt};

/// Most lineages of a session: a main one and its sub-agents. The longest unused goes.
pub(super) const MOST_LINEAGES: usize = 32;
/// Most blocks of abandoned prompts that a session remembers: 16 MiB of text.
pub(super) const MOST_OLD_BLOCKS: usize = 256 << 10;
/// Most lines of a system text that are looked at.
const MOST_LINES: usize = 4_096;
/// How many of the sessions used last are looked through for an unnamed call that repeats no last message.
pub(super) const RECENT: usize = 64;

/// The newest prompt of one line of calls, each going on from the one before.
#[derive(Debug)]
pub(super) struct Lineage {
    /// When it was used last, which is its place among the texts that are kept.
    pub(super) tick: u64,
    pub(super) seq: u32,
    pub(super) chain: Chain,
    /// The text; `None` when there was no more room for it.
    pub(super) prompt: Option<Prompt>,
    pub(super) helper: bool,
    first_message: Option<u64>,
    pub(super) last_message: Option<u64>,
    lines: HashSet<u64>,
    /// Where the system text ends, and the messages begin.
    head_bytes: usize,
}

impl Lineage {
    pub(super) fn new(
        prompt: Prompt,
        chain: Chain,
        helper: bool,
        seq: u32,
        messages: &[u64],
        lines: HashSet<u64>,
    ) -> Self {
        let head_bytes = prompt.borders().1;
        let (first_message, last_message) = (messages.first().copied(), messages.last().copied());
        Self { tick: 0, seq, chain, prompt: Some(prompt), helper, first_message, last_message, lines, head_bytes }
    }

    pub(super) fn text_bytes(&self) -> usize {
        // Segments beside the text: names of roles and places, some 80 bytes each.
        self.prompt.as_ref().map_or(0, |p| p.text.capacity() + p.segments.capacity() * 80)
    }

    pub(super) fn hash_bytes(&self) -> usize {
        8 * self.chain.blocks().len() + 16 * self.lines.len() + 256
    }
}

/// One session.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) seq: u32,
    pub(super) last_ms: u64,
    /// Its place among the sessions by last use.
    pub(super) tick: u64,
    pub(super) lineages: Vec<Lineage>,
    /// Blocks of prompts that their lineage has left, and the call they were of.
    old: HashMap<u64, u32>,
    tools_seen: bool,
    largest_bytes: usize,
    largest_lines: HashSet<u64>,
    /// The prompt before, and how often it was repeated.
    last: Option<(u64, usize)>,
    repeats: u32,
}

impl Session {
    /// Is it a call beside the main lineage? One without tools where the session has some; in a session without tools,
    /// one that shares under half of the system lines of the largest call so far and begins another conversation. A short
    /// system text of which a clock changes the only line is still that of the same agent.
    pub(super) fn is_helper(&mut self, prompt: &Prompt, messages: &[u64]) -> bool {
        if prompt.asked.tools > 0 {
            if !self.tools_seen {
                self.tools_seen = true;
                // What came without tools before was a title, not the begin of this.
                self.lineages.iter_mut().for_each(|l| l.helper = true);
            }
            return false;
        }
        if self.tools_seen {
            return true;
        }
        let lines = system_lines(prompt);
        let first = messages.first().copied();
        let goes_on = first.is_some() && self.lineages.iter().any(|l| !l.helper && l.first_message == first);
        let helper = self.largest_bytes > 0 && !goes_on && !half_shared(&self.largest_lines, &lines);
        if prompt.text.len() > self.largest_bytes {
            (self.largest_bytes, self.largest_lines) = (prompt.text.len(), lines);
        }
        helper
    }

    /// The lineage that a prompt goes on from: of those that it can go on from the one with the longest common beginning,
    /// the newest of equal ones.
    pub(super) fn former(&self, chain: &Chain, messages: &[u64], lines: &HashSet<u64>) -> Option<usize> {
        let candidates = self.lineages.iter().enumerate().filter(|(_, l)| !l.helper);
        let goes_on = |l: &Lineage| {
            let same = |hash: Option<u64>| hash.is_some_and(|h| messages.contains(&h));
            let first = l.first_message.is_none() || l.first_message == messages.first().copied();
            first || same(l.last_message) || (!l.lines.is_empty() && half_shared(&l.lines, lines))
        };
        let fitting = candidates.filter(|(_, l)| goes_on(l));
        fitting.max_by_key(|(_, l)| (l.chain.common_blocks(chain), l.seq)).map(|(n, _)| n)
    }

    /// Does a prompt repeat more than half of the conversation of one of the lineages?
    pub(super) fn shares_history(&self, chain: &Chain, prompt: &Prompt) -> bool {
        let head = prompt.borders().1;
        self.lineages.iter().filter(|l| !l.helper && l.head_bytes == head).any(|l| {
            let common = l.chain.common_blocks(chain) * BLOCK_BYTES;
            let history = l.chain.bytes().saturating_sub(head);
            history > 0 && common.saturating_sub(head) * 2 > history
        })
    }

    /// The longest beginning shared with any earlier prompt, in whole blocks, and the call of that prompt.
    pub(super) fn best(&self, chain: &Chain) -> (usize, Option<u32>) {
        let blocks = chain.blocks();
        let holder = |n: usize| {
            let at = |l: &&Lineage| l.chain.blocks().get(n) == Some(&blocks[n]);
            self.lineages.iter().filter(at).map(|l| l.seq).max().or_else(|| self.old.get(&blocks[n]).copied())
        };
        // All earlier prompts together hold each beginning of what they hold, so the edge can be halved for.
        let (mut low, mut high) = (0, blocks.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if holder(middle).is_some() { low = middle + 1 } else { high = middle }
        }
        (low, low.checked_sub(1).and_then(holder))
    }

    /// Counts repeats of one prompt.
    pub(super) fn repeat(&mut self, chain: &Chain) -> u32 {
        let this = (chain.whole(), chain.bytes());
        self.repeats = if self.last == Some(this) { self.repeats + 1 } else { 0 };
        self.last = Some(this);
        self.repeats
    }

    /// Remembers the blocks of a prompt that its lineage leaves, from the first that the next one does not share.
    pub(super) fn leave(&mut self, chain: &Chain, from_block: usize, seq: u32) {
        for block in &chain.blocks()[from_block.min(chain.blocks().len())..] {
            if self.old.len() >= MOST_OLD_BLOCKS {
                return;
            }
            self.old.insert(*block, seq);
        }
    }

    pub(super) fn hash_bytes(&self) -> usize {
        let lineages: usize = self.lineages.iter().map(Lineage::hash_bytes).sum();
        // A map of 12 bytes an entry is at most 7/8 full and doubles: 32 bytes at worst.
        lineages + 32 * self.old.len() + 16 * self.largest_lines.len() + 512
    }

    pub(super) fn text_bytes(&self) -> usize {
        self.lineages.iter().map(Lineage::text_bytes).sum()
    }
}

/// Does `lines` have at least half of those of `of`?
pub(super) fn half_shared(of: &HashSet<u64>, lines: &HashSet<u64>) -> bool {
    of.iter().filter(|line| lines.contains(line)).count() * 2 >= of.len()
}

/// Hashes of the lines of a prompt's system text.
pub(super) fn system_lines(prompt: &Prompt) -> HashSet<u64> {
    lines_of(prompt).into_iter().take(MOST_LINES).map(hash_of).collect()
}

/// The lines themselves, as they are written in JSON.
pub(in super::super) fn lines_of(prompt: &Prompt) -> Vec<&[u8]> {
    let system = (0..prompt.segments.len()).filter(|n| prompt.segments[*n].part == Part::System);
    let mut lines = Vec::new();
    for n in system {
        let mut rest = prompt.segment(n);
        while let Some(at) = memchr::memmem::find(rest, b"\\n") {
            lines.push(&rest[..at]);
            rest = &rest[at + 2..];
        }
        lines.push(rest);
    }
    lines.retain(|line| !line.is_empty());
    lines
}
