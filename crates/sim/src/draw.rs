//! Seeded dice: the same key gives the same throws on every machine, in any order of calls to other dice.
//!
//! SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators"; constants of its
//! reference implementation). Enough for a script: nobody's statistics hang on its quality.

/// Dice that were keyed by what they decide about.
#[derive(Clone, Debug)]
pub(crate) struct Dice {
    state: u64,
}

impl Dice {
    /// Dice for one decision; `key` names it: seed, lane, day, minute, slot, ...
    pub(crate) fn new(key: &[u64]) -> Self {
        let mut dice = Self { state: 0x7065_616b_6c61_6e65 };
        for part in key {
            // Each part passes the mixer, so that (1, 2) and (2, 1) or (0, 3) are unrelated.
            dice.state = dice.next().rotate_left(23) ^ part;
        }
        dice
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from `low` to `high`, both included. The bias of the multiply-shift is below 2^-32 for the spans here.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        let span = u128::from(high.saturating_sub(low)) + 1;
        low + ((u128::from(self.next()) * span) >> 64) as u64
    }

    /// Puts `cards` into a random order (Fisher and Yates).
    pub(crate) fn shuffle<T>(&mut self, cards: &mut [T]) {
        for i in (1..cards.len()).rev() {
            let j = self.between(0, i as u64) as usize;
            cards.swap(i, j);
        }
    }
}

/// FNV-1a over bytes (Fowler, Noll and Vo), finished by one mixer round: names a prompt within a burst.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    let fnv = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3));
    Dice { state: fnv }.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mixer_is_the_published_one() {
        // First outputs of the reference splitmix64.c for the state 1234567 (Rosetta Code, "Pseudo-random numbers/Splitmix64").
        let mut dice = Dice { state: 1_234_567 };
        let seen: Vec<u64> = (0..5).map(|_| dice.next()).collect();
        assert_eq!(
            seen,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821
            ]
        );
    }

    #[test]
    fn a_throw_stays_within_its_bounds_and_reaches_both() {
        let mut dice = Dice::new(&[7]);
        let seen: Vec<u64> = (0..1000).map(|_| dice.between(3, 6)).collect();
        assert_eq!(seen.iter().min(), Some(&3));
        assert_eq!(seen.iter().max(), Some(&6));
        assert_eq!(Dice::new(&[7]).between(9, 9), 9);
    }

    #[test]
    fn the_order_of_the_key_matters() {
        assert_ne!(Dice::new(&[1, 2]).next(), Dice::new(&[2, 1]).next());
        assert_ne!(Dice::new(&[0]).next(), Dice::new(&[0, 0]).next());
    }
}
