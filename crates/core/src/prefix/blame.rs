//! Who lost the cache: the harness, which changed the prompt, or the server, which no longer had it.

use serde::{Deserialize, Serialize};

use crate::call::PrefixFigures;
use crate::record::Usage;

/// Tokens that a server may fall short of what the prompts share before it is said to have lost something: engines
/// cache whole blocks, of 16 to 128 tokens, and hosted ones begin at 1,024.
const BLOCK_TOKENS: u64 = 128;
/// Below so many shared tokens hosted caches keep nothing.
const SMALLEST_CACHED_TOKENS: u64 = 1_024;
/// Least part of what the prompts share that a server must have served for nothing to be called lost, in percent: how
/// many tokens the shared bytes are is an estimate from the prompt's own tokens per byte.
const SERVED_PERCENT: u64 = 90;
/// Least part of the former prompt, in percent, that a lineage must repeat to count as unbroken: templates and our form
/// end messages differently.
const UNBROKEN_PERCENT: u64 = 98;

/// The side that lost the cached prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// Nothing was lost.
    Nobody,
    /// The prompt did not go on from the former one.
    Harness,
    /// The prompt went on, and the server served less of it than it could have.
    Server,
    /// Both.
    Both,
}

impl Blame {
    /// The stable spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nobody => "nobody",
            Self::Harness => "harness",
            Self::Server => "server",
            Self::Both => "both",
        }
    }
}

/// Prompt tokens that a perfect cache could have served, after the figures: the shared bytes at this prompt's own tokens
/// per byte. An estimate. `None` without reported prompt tokens or without a former prompt.
pub fn servable_tokens(figures: &PrefixFigures, usage: &Usage) -> Option<u64> {
    scaled(figures.common_bytes?, usage.prompt?, figures.prompt_bytes)
}

/// Tokens that are prefilled again because the prompt parted from the former one: the bytes of the former one behind the
/// parting. An estimate, from reported tokens per byte. `None` as in [`servable_tokens`].
pub fn refilled_tokens(figures: &PrefixFigures, prompt_tokens: Option<u64>) -> Option<u64> {
    scaled(figures.lost_bytes()?.min(figures.prompt_bytes), prompt_tokens?, figures.prompt_bytes)
}

fn scaled(bytes: u64, tokens: u64, of_bytes: u64) -> Option<u64> {
    (of_bytes > 0).then(|| (u128::from(bytes) * u128::from(tokens) / u128::from(of_bytes)) as u64)
}

/// Who lost what could have been cached.
///
/// The harness's side is known from the prompts alone, the server's only where it reports cached tokens: without them,
/// or where too little is shared for a hosted cache, only the harness can be blamed. `None` without a former prompt.
pub fn blame(figures: &PrefixFigures, usage: &Usage) -> Option<Blame> {
    let (common, former) = (figures.common_bytes?, figures.former_bytes?);
    let broken = common * 100 < former * UNBROKEN_PERCENT;
    let evicted = match (servable_tokens(figures, usage), usage.cached) {
        (Some(servable), Some(cached)) => {
            servable >= SMALLEST_CACHED_TOKENS && (cached + BLOCK_TOKENS) * 100 < servable * SERVED_PERCENT
        }
        _ => false,
    };
    Some(match (broken, evicted) {
        (false, false) => Blame::Nobody,
        (true, false) => Blame::Harness,
        (false, true) => Blame::Server,
        (true, true) => Blame::Both,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(former: u64, common: u64, prompt: u64) -> PrefixFigures {
        PrefixFigures {
            prompt_bytes: prompt,
            former_bytes: Some(former),
            common_bytes: Some(common),
            ..PrefixFigures::default()
        }
    }

    fn usage(prompt: u64, cached: Option<u64>) -> Usage {
        Usage { prompt: Some(prompt), cached, ..Usage::default() }
    }

    #[test]
    fn each_side_is_blamed_for_its_own_part() {
        let unbroken = figures(40_000, 40_000, 44_000);
        let broken = figures(40_000, 4_000, 44_000);
        assert_eq!(servable_tokens(&unbroken, &usage(11_000, None)), Some(10_000));
        assert_eq!(blame(&unbroken, &usage(11_000, Some(9_984))), Some(Blame::Nobody));
        assert_eq!(blame(&unbroken, &usage(11_000, Some(0))), Some(Blame::Server));
        assert_eq!(blame(&unbroken, &usage(11_000, None)), Some(Blame::Nobody), "nothing was reported");
        // 1,000 tokens are shared, which a hosted cache need not keep.
        assert_eq!(blame(&broken, &usage(11_000, Some(0))), Some(Blame::Harness));
        assert_eq!(refilled_tokens(&broken, Some(11_000)), Some(9_000));
        let large = figures(40_000, 20_000, 44_000);
        assert_eq!(blame(&large, &usage(11_000, Some(0))), Some(Blame::Both));
        assert_eq!(blame(&large, &usage(11_000, Some(4_992))), Some(Blame::Harness));
        assert_eq!(blame(&PrefixFigures::default(), &usage(11_000, Some(0))), None);
    }
}
