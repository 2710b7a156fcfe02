//! Nonces: what makes each attempt's prompt begin differently, so that a prefix cache cannot answer for it.
//!
//! A nonce depends on the run, the attempt and the seed, not on the lane: all lanes of a burst get the same ones.

/// Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators": the finaliser of SplitMix64.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A number from the parts of an identity; different parts give unrelated numbers.
pub fn number(seed: u64, run: &str, index: u64) -> u64 {
    let text = run.bytes().fold(mix(seed ^ 0x9e37_79b9_7f4a_7c15), |h, b| mix(h ^ u64::from(b)));
    mix(text ^ mix(index.wrapping_add(0x9e37_79b9_7f4a_7c15)))
}

/// The text that stands before everything else: `[5c1e0a9b7d3f] `.
pub fn text(seed: u64, run: &str, index: u64) -> String {
    format!("[{:012x}] ", number(seed, run, index) >> 16)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn attempts_and_runs_never_share_a_nonce_and_lanes_always_do() {
        let all: HashSet<String> = ["run-1", "run-2"].iter().flat_map(|r| (0..50_000).map(|i| text(7, r, i))).collect();
        assert_eq!(all.len(), 100_000);
        assert_eq!(text(7, "run-1", 3), text(7, "run-1", 3));
        assert_ne!(text(7, "run-1", 3), text(8, "run-1", 3));
    }
}
