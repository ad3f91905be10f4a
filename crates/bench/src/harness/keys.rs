//! Generated keys, inserted ones and absent ones.
//!
//! Inserted key `i` is `mix(2i)`, absent key `i` is `mix(2i + 1)`: distinct, random-looking, and generated again when
//! needed. As bytes, a key is a made-up URL of [`TEXT_BYTES`] bytes that ends in that number.

use std::ops::Range;

use crate::permutation::mix;

/// Length of a key as bytes.
pub const TEXT_BYTES: usize = 64;
const HEAD: &str = "https://shop.example/kitchen/kettles-and-pots/item-";

/// Which keys of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySet {
    /// Keys that are inserted.
    Present,
    /// Keys that are never inserted.
    Absent,
    /// Both at random, so that the processor cannot predict a branch on the result.
    Mixed,
}

/// Keys, generated before the clock starts.
#[derive(Clone, Debug)]
pub struct Keys {
    numbers: Vec<u64>,
    texts: Vec<Vec<u8>>,
}

impl Keys {
    /// One key for each number in the range. Byte keys are generated only if `texts` is set.
    pub fn new(set: KeySet, range: Range<u64>, texts: bool) -> Self {
        let odd = |at: u64| match set {
            KeySet::Present => 0,
            KeySet::Absent => 1,
            KeySet::Mixed => mix(!at) & 1,
        };
        let numbers: Vec<u64> = range.map(|at| mix(2 * at + odd(at))).collect();
        let texts = if texts { numbers.iter().map(|&key| text(key)).collect() } else { Vec::new() };
        Self { numbers, texts }
    }

    /// Returns the number of keys.
    pub fn len(&self) -> u64 {
        self.numbers.len() as u64
    }

    /// Returns whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The keys as numbers, or as mixed hashes.
    pub fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// The keys as bytes, each allocated separately.
    pub fn texts(&self) -> &[Vec<u8>] {
        &self.texts
    }
}

fn text(key: u64) -> Vec<u8> {
    let digits = TEXT_BYTES - HEAD.len();
    format!("{HEAD}{key:0digits$x}").into_bytes()[..TEXT_BYTES].to_vec()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_are_distinct_and_absent_keys_are_others() {
        let present = Keys::new(KeySet::Present, 0..2_000, true);
        let absent = Keys::new(KeySet::Absent, 0..2_000, true);
        let mixed = Keys::new(KeySet::Mixed, 0..2_000, true);
        let numbers: HashSet<_> = present.numbers().iter().chain(absent.numbers()).collect();
        let texts: HashSet<_> = present.texts().iter().chain(absent.texts()).collect();
        assert_eq!((numbers.len(), texts.len()), (4_000, 4_000));
        assert!(texts.iter().all(|text| text.len() == TEXT_BYTES));
        assert!(mixed.numbers().iter().all(|key| numbers.contains(key)));
        let inserted: HashSet<_> = present.numbers().iter().collect();
        let found = mixed.numbers().iter().filter(|key| inserted.contains(key)).count();
        assert!((800..1_200).contains(&found), "{found}");
    }

    #[test]
    fn byte_keys_are_optional() {
        assert!(Keys::new(KeySet::Present, 0..10, false).texts().is_empty());
    }
}
