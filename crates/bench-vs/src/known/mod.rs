//! `cargo x bench known`: sets of known keys that are built once and then queried, side by side.
//!
//! A key is 20 random bytes as 40 hexadecimal digits, as in published lists of digests. [`sets`] has petal's filters and
//! the rivals. [`measure`] builds one and queries it, in a process of its own ([`program`]); [`cold`] queries a file that
//! is not in the page cache. Keys are generated, and the CPU time of that is not part of the figures.

pub mod cold;
mod mapped;
pub mod measure;
pub mod program;
pub mod sets;

use std::time::Duration;

use crate::process::cpu_time;

/// A key.
pub type Key = [u8; 40];

/// The rate of every filter that has one to choose.
pub const RATE: f64 = 1.0 / 128.0;

/// Keys of one call.
pub const BATCH: usize = 1_024;

/// Which keys: none is of two kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Keys of the set.
    Member,
    /// Keys that are known not to be in the set.
    Other,
    /// All other keys.
    Absent,
}

/// Returns the key with this number.
pub fn key(kind: Kind, number: u64) -> Key {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut state = number ^ (kind as u64) << 60;
    let mut key = [0; 40];
    for digits in key.chunks_mut(16) {
        let word = random(&mut state).to_le_bytes();
        for (digits, byte) in digits.chunks_exact_mut(2).zip(word) {
            digits[0] = HEX[usize::from(byte >> 4)];
            digits[1] = HEX[usize::from(byte & 15)];
        }
    }
    key
}

/// SplitMix64. Source: Steele, Lea & Flood 2014.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let mut word = state.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    *state ^= word;
    word ^ word >> 31
}

/// The keys that a set is built of, in batches.
pub struct Feed {
    /// The number of members.
    pub members: u64,
    /// The number of known non-members.
    pub others: u64,
    /// The CPU time in which keys were generated.
    generation: Duration,
}

impl Feed {
    /// No key was generated yet.
    pub fn new(members: u64, others: u64) -> Self {
        Self { members, others, generation: Duration::ZERO }
    }

    /// Passes all keys to `each` that are of one type.
    ///
    /// # Errors
    /// Those of `each`.
    pub fn all(
        &mut self,
        kind: Kind,
        mut each: impl FnMut(&[Key]) -> Result<(), String>,
    ) -> Result<(), String> {
        let count = match kind {
            Kind::Member => self.members,
            Kind::Other => self.others,
            Kind::Absent => 0,
        };
        let mut keys = Vec::with_capacity(BATCH);
        for first in (0..count).step_by(BATCH) {
            let start = cpu_time();
            keys.clear();
            keys.extend((first..count.min(first + BATCH as u64)).map(|number| key(kind, number)));
            self.generation += cpu_time() - start;
            each(&keys)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_are_distinct_lower_case_digits() {
        let kinds = [Kind::Member, Kind::Other, Kind::Absent];
        let keys = kinds.into_iter().flat_map(|kind| (0..20_000).map(move |at| key(kind, at)));
        let distinct: HashSet<Key> = keys.collect();
        assert_eq!(distinct.len(), 60_000);
        let digits = |key: &Key| key.iter().all(|digit| b"0123456789abcdef".contains(digit));
        assert!(distinct.iter().all(digits));
        // Every place has every digit about as often.
        for place in 0..40 {
            let ones = distinct.iter().filter(|key| key[place] == b'7').count();
            assert!((3_300..4_200).contains(&ones), "{place}: {ones}");
        }
    }
}
