//! Keys that a filter holds by construction, and keys that it does not.
//!
//! Key number `i` of those inserted is `mix(2i)`, of those never inserted `mix(2i + 1)`: distinct, random-looking, and
//! made anew wherever they are needed. As a text it is a made-up URL of [`TEXT_BYTES`] bytes with that number at its end.

use std::ops::Range;

use crate::permutation::mix;

/// Bytes of a key that is a text.
pub const TEXT_BYTES: usize = 64;
const HEAD: &str = "https://shop.example/kitchen/kettles-and-pots/item-";

/// Which keys of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those that are inserted.
    Present,
    /// Those that never are.
    Absent,
    /// Either, by chance: a branch on the answer cannot be foreseen.
    Mixed,
}

/// Keys, made before anybody is timed.
#[derive(Clone, Debug)]
pub struct Keys {
    numbers: Vec<u64>,
    texts: Vec<Vec<u8>>,
}

impl Keys {
    /// The keys of a range, one for each number in it; texts only if they are wanted.
    pub fn new(which: Which, range: Range<u64>, texts: bool) -> Self {
        let odd = |at: u64| match which {
            Which::Present => 0,
            Which::Absent => 1,
            Which::Mixed => mix(!at) & 1,
        };
        let numbers: Vec<u64> = range.map(|at| mix(2 * at + odd(at))).collect();
        let texts = if texts { numbers.iter().map(|&key| text(key)).collect() } else { Vec::new() };
        Self { numbers, texts }
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.numbers.len() as u64
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// As numbers, or as hashes that are given.
    pub fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// As texts, each in a piece of memory of its own.
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
    fn distinct_disjoint_and_as_long_as_said() {
        let present = Keys::new(Which::Present, 0..2_000, true);
        let absent = Keys::new(Which::Absent, 0..2_000, true);
        let mixed = Keys::new(Which::Mixed, 0..2_000, true);
        let numbers: HashSet<_> = present.numbers().iter().chain(absent.numbers()).collect();
        let texts: HashSet<_> = present.texts().iter().chain(absent.texts()).collect();
        assert_eq!((numbers.len(), texts.len()), (4_000, 4_000));
        assert!(texts.iter().all(|text| text.len() == TEXT_BYTES));
        assert!(mixed.numbers().iter().all(|key| numbers.contains(key)));
        let there: HashSet<_> = present.numbers().iter().collect();
        let found = mixed.numbers().iter().filter(|key| there.contains(key)).count();
        assert!((800..1_200).contains(&found), "{found}");
    }

    #[test]
    fn texts_are_made_on_request() {
        assert!(Keys::new(Which::Present, 0..10, false).texts().is_empty());
    }
}
