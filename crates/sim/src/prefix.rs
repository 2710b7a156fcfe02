//! The prefix cache of a simulated lane: which blocks of a prompt were seen before. Only counts; it makes nothing faster.

use std::collections::HashSet;

use crate::draw::fingerprint;

/// Bytes that stand for one token. A crude tokenizer, enough for a client: English text and code have 3 to 5.
const BYTES_PER_TOKEN: usize = 4;
/// Tokens in one block of the cache, as in vLLM's default.
const BLOCK_TOKENS: usize = 16;
/// Blocks remembered (1 Mi tokens); a full cache forgets everything, as a restart would.
const MOST_BLOCKS: usize = 65_536;

/// Blocks that were seen, each named together with everything before it.
#[derive(Debug, Default)]
pub(crate) struct PrefixCache {
    blocks: HashSet<u64>,
}

/// Tokens of a prompt, and how many of them were cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PromptTokens {
    pub(crate) all: u64,
    pub(crate) cached: u64,
}

impl PrefixCache {
    /// Looks a prompt up and remembers it. At least one token is never cached, since something must be computed.
    pub(crate) fn serve(&mut self, prompt: &str) -> PromptTokens {
        let all = prompt.len().div_ceil(BYTES_PER_TOKEN).max(1) as u64;
        let mut matched = 0;
        let mut matching = true;
        let mut chain = 0u64;
        for block in prompt.as_bytes().chunks_exact(BLOCK_TOKENS * BYTES_PER_TOKEN) {
            chain = fingerprint(block) ^ chain.rotate_left(17).wrapping_mul(3);
            matching = matching && self.blocks.contains(&chain);
            matched += u64::from(matching);
            if !matching {
                if self.blocks.len() >= MOST_BLOCKS {
                    self.blocks.clear();
                }
                self.blocks.insert(chain);
            }
        }
        PromptTokens { all, cached: (matched * BLOCK_TOKENS as u64).min(all - 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identical_prompt_is_cached_in_whole_blocks_but_for_the_last_token() {
        let mut cache = PrefixCache::default();
        let prompt = "x".repeat(64 * 3 + 10);
        assert_eq!(cache.serve(&prompt), PromptTokens { all: 51, cached: 0 });
        assert_eq!(cache.serve(&prompt), PromptTokens { all: 51, cached: 48 });
        let exact = "y".repeat(64);
        cache.serve(&exact);
        assert_eq!(cache.serve(&exact), PromptTokens { all: 16, cached: 15 });
    }

    #[test]
    fn a_nonce_in_front_leaves_nothing_cached_and_one_behind_costs_its_own_block_only() {
        let mut cache = PrefixCache::default();
        let body = "z".repeat(128);
        cache.serve(&format!("{body}{}", "1".repeat(64)));
        assert_eq!(cache.serve(&format!("{body}{}", "2".repeat(64))).cached, 32);
        assert_eq!(cache.serve(&format!("nonce-2 {body}")).cached, 0);
    }

    #[test]
    fn an_empty_prompt_has_one_token() {
        assert_eq!(PrefixCache::default().serve(""), PromptTokens { all: 1, cached: 0 });
    }
}
