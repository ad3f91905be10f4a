//! Distinct keys with equal hashes, as an adversary would generate them.
//!
//! rapidhash multiplies words of the key, each XORed with a secret or a state. A word that equals its secret makes the
//! product zero, so the other factor has no effect. The secrets are public and do not depend on the seed, so these
//! keys collide **under every seed**. Each [`Family`] exploits another step of the algorithm, with at least one family
//! for each class of lengths. There is no family of keys of up to 7 bytes: their words are shorter than a secret.
//!
//! No key contains a line feed, a zero byte or a carriage return.

/// The published secrets of rapidhash v3.
const SECRETS: [u64; 7] = [
    0x2d35_8dcc_aa6c_78a5,
    0x8bb8_4b93_962e_acc9,
    0x4b33_a62e_d433_d4a3,
    0x4d5a_2da5_1de1_aa47,
    0xa076_1d64_78bd_642f,
    0xe703_7ed1_a0b4_28db,
    0x90ed_1765_281c_388c,
];

/// A set of distinct keys with the same hash.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// The length class and the step of the algorithm.
    pub name: &'static str,
    make: fn([u8; 8]) -> Vec<u8>,
}

impl Family {
    /// Returns a key; different for each number below 26^8.
    #[must_use]
    pub fn key(&self, number: u64) -> Vec<u8> {
        let mut rest = number;
        let letters = std::array::from_fn(|_| {
            let letter = b'a' + (rest % 26) as u8;
            rest /= 26;
            letter
        });
        (self.make)(letters)
    }

    /// Returns the first `count` keys.
    pub fn keys(self, count: u64) -> impl Iterator<Item = Vec<u8>> {
        (0..count).map(move |number| self.key(number))
    }

    /// Returns a file with the first `count` keys as lines.
    #[must_use]
    pub fn lines(self, count: u64) -> Vec<u8> {
        self.keys(count)
            .flat_map(|mut key| {
                key.push(b'\n');
                key
            })
            .collect()
    }
}

/// Keys with the same hash under rapidhash v3 with any seed.
pub const RAPID: [Family; 12] = [
    family("8 to 16 bytes: the first word", |free| key(16, [(0, word(1))], [8], free)),
    family("17 to 48: the first word", |free| key(32, [(0, word(2))], [8], free)),
    family("17 to 48: the second step", |free| key(40, [(16, word(2))], [0], free)),
    family("17 to 48: the last step", |free| key(24, [(8, last(24))], [0, 16], free)),
    family("49 to 112: the third step", |free| key(60, [(32, word(1))], [0, 24], free)),
    family("49 to 112: the fifth step", |free| key(96, [(64, word(2))], [8, 56], free)),
    family("49 to 112: the sixth step", |free| key(112, [(80, word(1))], [0, 88], free)),
    family("above 112: a lane", |free| key(128, [(0, word(0))], [8], free)),
    family("above 112: two lanes cancel", |free| {
        key(128, [(0, *b"same hat"), (16, cancelling(*b"same hat"))], [8, 24], free)
    }),
    family("above 112: a lane of the second loop", |free| {
        key(300, [(112 + 48, word(3))], [48, 56, 112 + 56], free)
    }),
    family("above 112: the first step after the loops", |free| {
        key(300, [(224, word(2))], [0, 100, 216], free)
    }),
    family("above 112: the last step", |free| {
        key(1000, [(984, last(1000 - 8 * 112))], [500], free)
    }),
];

const fn family(name: &'static str, make: fn([u8; 8]) -> Vec<u8>) -> Family {
    Family { name, make }
}

/// Returns the word whose product with this secret is zero.
fn word(secret: usize) -> [u8; 8] {
    SECRETS[secret].to_le_bytes()
}

/// Returns the word 16 bytes before the end that makes the last product zero, if `left` bytes follow the loops.
fn last(left: u64) -> [u8; 8] {
    (SECRETS[1] ^ left).to_le_bytes()
}

/// Returns the word of lane 1 that makes its state equal to that of lane 0 with this word.
fn cancelling(lane_0: [u8; 8]) -> [u8; 8] {
    (u64::from_le_bytes(lane_0) ^ SECRETS[0] ^ SECRETS[1]).to_le_bytes()
}

/// Returns a key of this length with words and free letters at the given offsets.
fn key<const W: usize, const F: usize>(
    length: usize,
    words: [(usize, [u8; 8]); W],
    free_at: [usize; F],
    free: [u8; 8],
) -> Vec<u8> {
    let mut key = vec![b'x'; length];
    for (at, word) in words.into_iter().chain(free_at.map(|at| (at, free))) {
        key[at..at + 8].copy_from_slice(&word);
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn keys_are_distinct_lines() {
        for family in RAPID {
            let keys: HashSet<_> = family.keys(1000).chain([family.key((1 << 37) - 1)]).collect();
            assert_eq!(keys.len(), 1001, "{}", family.name);
            let plain = |key: &Vec<u8>| !key.iter().any(|byte| b"\n\r\0".contains(byte));
            assert!(keys.iter().all(plain), "{}", family.name);
        }
        let first = RAPID[1].key(0);
        assert_eq!(first[..8], [0xa3, 0xd4, 0x33, 0xd4, 0x2e, 0xa6, 0x33, 0x4b]);
        assert_eq!(RAPID[1].lines(2).len(), 66);
    }
}
