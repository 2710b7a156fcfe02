//! Where the bursts of one window lie when there are several: the first at the window's start, the others spread over
//! its length at offsets that look random and are the same every time.
//!
//! Random, because evenly spaced bursts would beat in step with somebody's hourly job. The same every time, because a
//! restart, a second watcher and a dry run must all see one plan.

use jiff::civil::Date;
use thiserror::Error;

use super::LocalTime;

/// Why bursts cannot be spread over a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SpreadError {
    /// A window has one burst at least.
    #[error("a window without bursts measures nothing")]
    NoBursts,
    /// Two bursts would begin less than [`MIN_GAP_S`] apart.
    #[error("{bursts} bursts do not fit into a window of {length_s} s: they may begin less than {MIN_GAP_S} s apart")]
    TooMany {
        /// Bursts asked for.
        bursts: u32,
        /// Length of the window, seconds.
        length_s: u32,
    },
}

impl SpreadError {
    /// The next thing to try.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoBursts => Some("set `bursts_per_window` to 1 or more".to_owned()),
            Self::TooMany { length_s, .. } => {
                let most = (length_s / (2 * MIN_GAP_S)).max(1);
                Some(format!("use {most} or fewer bursts, or a longer window"))
            }
        }
    }
}

/// Least time between the starts of two bursts of a window, seconds: a burst without retries whose attempts all run
/// into a 60 s limit is over by then, so that two bursts do not stand in the queue that they measure.
pub const MIN_GAP_S: u32 = 60;

/// Offsets of the bursts of one window from its start, seconds, ascending; the first is 0 and all are below `length_s`.
///
/// The length is cut into `bursts` equal slots; each burst after the first begins in the first half of its slot, so
/// that neighbours are at least half a slot apart. Offsets are elapsed time: a clock change inside the window moves
/// nothing.
///
/// * `campaign`: any stable id; another id gives other offsets.
/// * `length_s`: length of the window, seconds; one burst fits any length.
///
/// # Errors
/// [`SpreadError::NoBursts`] for 0 bursts, [`SpreadError::TooMany`] when half a slot is shorter than [`MIN_GAP_S`].
pub fn offsets_s(
    campaign: &str,
    date: Date,
    window: LocalTime,
    bursts: u32,
    length_s: u32,
) -> Result<Vec<u32>, SpreadError> {
    let slot = length_s.checked_div(bursts).ok_or(SpreadError::NoBursts)?;
    if bursts > 1 && slot / 2 < MIN_GAP_S {
        return Err(SpreadError::TooMany { bursts, length_s });
    }
    let mut state = fnv1a(format!("{campaign}\0{date}\0{window}").as_bytes());
    Ok((0..bursts)
        .map(|index| match index {
            0 => 0,
            // a slot is at most 2^32 s, so the bias of the remainder is below 2^-32
            _ => index * slot + u32::try_from(splitmix64(&mut state) % u64::from(slot / 2 + 1)).unwrap_or(0),
        })
        .collect())
}

/// 64-bit FNV-1a: a text to a seed.
///
/// Source: Fowler, Noll, Vo, "The FNV non-cryptographic hash algorithm" (draft-eastlake-fnv), 64-bit constants.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// The next number of a SplitMix64 sequence.
///
/// Source: Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators"; constants of Vigna's
/// `splitmix64.c`.
fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> LocalTime {
        text.parse().unwrap()
    }

    #[test]
    fn the_generators_give_their_published_numbers() {
        // the reference output of splitmix64.c for seed 1234567
        let mut state = 1_234_567;
        let first: [u64; 3] = std::array::from_fn(|_| splitmix64(&mut state));
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
        // the test vectors of the FNV draft
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn one_burst_lies_at_the_start_of_any_window() {
        assert_eq!(offsets_s("c", date(2026, 11, 30), at("16:00"), 1, 1), Ok(vec![0]));
    }

    #[test]
    fn bursts_that_would_share_a_queue_are_refused_with_the_number_that_fits() {
        // 5400 s: 45 bursts have slots of 120 s, 46 have 117 s
        assert!(offsets_s("c", date(2026, 11, 30), at("16:00"), 45, 5_400).is_ok());
        let error = offsets_s("c", date(2026, 11, 30), at("16:00"), 46, 5_400).unwrap_err();
        assert_eq!(error, SpreadError::TooMany { bursts: 46, length_s: 5_400 });
        assert!(error.hint().unwrap().contains("use 45 or fewer"));
        assert_eq!(offsets_s("c", date(2026, 11, 30), at("16:00"), 0, 5_400), Err(SpreadError::NoBursts));
    }

    #[test]
    fn other_days_windows_and_campaigns_have_other_offsets() {
        let base = offsets_s("c", date(2026, 11, 30), at("16:00"), 4, 5_400).unwrap();
        assert_ne!(base, offsets_s("d", date(2026, 11, 30), at("16:00"), 4, 5_400).unwrap());
        assert_ne!(base, offsets_s("c", date(2026, 12, 1), at("16:00"), 4, 5_400).unwrap());
        assert_ne!(base, offsets_s("c", date(2026, 11, 30), at("09:00"), 4, 5_400).unwrap());
    }

    proptest! {
        #[test]
        fn offsets_begin_at_zero_ascend_stay_inside_and_never_change(
            campaign in ".{0,12}", day in 1_i8..=28, hour in 0_u8..24, bursts in 1_u32..=20, length_s in 2_400_u32..=86_400,
        ) {
            let window = LocalTime::new(hour, 0).unwrap();
            let once = offsets_s(&campaign, date(2026, 2, day), window, bursts, length_s).unwrap();
            prop_assert_eq!(once.len(), bursts as usize);
            prop_assert_eq!(once[0], 0);
            prop_assert!(once.iter().all(|o| *o < length_s));
            prop_assert!(once.windows(2).all(|w| w[1] - w[0] >= MIN_GAP_S));
            prop_assert_eq!(once, offsets_s(&campaign, date(2026, 2, day), window, bursts, length_s).unwrap());
        }
    }
}
