//! Block hashes: enough of a prompt to know how much of it another one repeats, at an eighth of its size.
//!
//! Each hash stands for the whole beginning up to the end of its block, as the block hashes of inference engines do, so
//! that one equal hash means that all before it is equal too.

use super::compare::BLOCK_BYTES;

/// Odd constants with well mixed bits (of SplitMix64 and the golden ratio).
const K: [u64; 4] = [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0xd6e8_feb8_6659_fd93];

/// A prompt's hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// One per whole block.
    blocks: Vec<u64>,
    /// Length of the text.
    bytes: usize,
    /// Of the whole text, the last piece included.
    whole: u64,
}

impl Chain {
    /// Hashes a text.
    pub fn of(text: &[u8]) -> Self {
        Self::after(&[], text)
    }

    /// Hashes a text of which the first blocks are known: those of another text that begins alike.
    pub fn after(known: &[u64], text: &[u8]) -> Self {
        let mut blocks = Vec::with_capacity(text.len() / BLOCK_BYTES);
        blocks.extend_from_slice(known);
        let mut hash = known.last().copied().unwrap_or(K[3]);
        let (rest, tail) = text[known.len() * BLOCK_BYTES..].as_chunks::<BLOCK_BYTES>();
        for block in rest {
            hash = mix_block(hash, block);
            blocks.push(hash);
        }
        Self { whole: tail_of(hash, tail), blocks, bytes: text.len() }
    }

    /// Hashes of whole blocks.
    pub fn blocks(&self) -> &[u64] {
        &self.blocks
    }

    /// Length of the text, bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Stands for the whole text.
    pub fn whole(&self) -> u64 {
        self.whole
    }

    /// How many whole blocks both begin with.
    pub fn common_blocks(&self, other: &Self) -> usize {
        let n = self.blocks.len().min(other.blocks.len());
        // Equal up to some point and different ever after, since each hash holds all before it.
        let (mut low, mut high) = (0, n);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.blocks[middle] == other.blocks[middle] { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Bytes that `later`, whose text is given, shares with this one, of which only the hashes are left: whole blocks,
    /// or all of it where it is repeated whole. `true`: the figure is exact.
    pub fn common_with(&self, later: &Self, text: &[u8]) -> (usize, bool) {
        let blocks = self.common_blocks(later);
        if blocks == self.blocks.len() && text.len() >= self.bytes {
            let hash = self.blocks.last().copied().unwrap_or(K[3]);
            if tail_of(hash, &text[blocks * BLOCK_BYTES..self.bytes]) == self.whole {
                return (self.bytes, true);
            }
        }
        (blocks * BLOCK_BYTES, false)
    }
}

fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

fn mix_block(hash: u64, block: &[u8; BLOCK_BYTES]) -> u64 {
    let (words, _) = block.as_chunks::<8>();
    let word = |n: usize| u64::from_le_bytes(words[n]);
    // Four products that do not wait for one another, folded into the chain by one that does.
    let a = mix(word(0) ^ K[0], word(1) ^ K[1]);
    let b = mix(word(2) ^ K[1], word(3) ^ K[2]);
    let c = mix(word(4) ^ K[2], word(5) ^ K[3]);
    let d = mix(word(6) ^ K[3], word(7) ^ K[0]);
    mix(hash ^ a ^ b.rotate_left(17), c.rotate_left(31) ^ d.rotate_left(47) ^ K[1])
}

fn tail_of(hash: u64, tail: &[u8]) -> u64 {
    let mut block = [0; BLOCK_BYTES];
    block[..tail.len()].copy_from_slice(tail);
    mix_block(hash ^ mix(tail.len() as u64 + 1, K[2]), &block)
}

/// Stands for a short text by itself, such as a segment or a line.
pub fn hash_of(text: &[u8]) -> u64 {
    Chain::of(text).whole
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::compare::common;
    use super::*;

    #[test]
    fn a_text_and_the_same_with_a_zero_byte_are_two() {
        assert_ne!(hash_of(b"a"), hash_of(b"a\0"));
        assert_ne!(hash_of(b""), hash_of(b"\0"));
    }

    proptest! {
        #[test]
        fn hashes_tell_the_same_as_the_texts_in_whole_blocks(
            shared in prop::collection::vec(any::<u8>(), 0..400),
            a in prop::collection::vec(any::<u8>(), 0..200),
            b in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let (a, b) = ([&shared[..], &a].concat(), [&shared[..], &b].concat());
            let (x, y) = (Chain::of(&a), Chain::of(&b));
            let exact = common(&a, &b);
            prop_assert_eq!(x.common_blocks(&y), exact / BLOCK_BYTES);
            let (told, is_exact) = x.common_with(&y, &b);
            if exact == a.len() {
                prop_assert_eq!((told, is_exact), (exact, true));
            } else {
                prop_assert_eq!((told, is_exact), (exact / BLOCK_BYTES * BLOCK_BYTES, false));
            }
            let known = &x.blocks()[..exact / BLOCK_BYTES];
            prop_assert_eq!(Chain::after(known, &b), y);
        }
    }
}
