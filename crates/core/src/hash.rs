//! From bytes to 64 bits: the hash is part of the file format.
//!
//! A [`HashSpec`] is an algorithm and its seed. Both algorithms are published and frozen; their
//! test vectors are below and in docs/format.md. A change of either is a new id, never a new
//! meaning of an old one.
//!
//! Cost on one core: rapidhash about 4 ns for 64 bytes, SipHash-1-3 about 25 ns.

use std::fmt;
use std::hash::Hasher as _;

use rapidhash::v3::{RapidSecrets, rapidhash_v3_inline};
use siphasher::sip::SipHasher13;

use crate::error::{Error, Result};

/// How keys become 64-bit hashes: an algorithm and its seed.
///
/// * [`HashSpec::rapid`]: rapidhash v3, fast and portable, for keys nobody chooses to harm you.
///   The default, with seed 0.
/// * [`HashSpec::keyed`]: SipHash-1-3 with a secret 128-bit key, for keys an adversary may
///   choose. Without the key nobody can make keys that collide or that all seem present. The key
///   is stored in the filter's file: keep such files private.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashSpec {
    algorithm: Algorithm,
    seed: [u8; 16],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Rapid,
    Sip13,
}

impl Default for HashSpec {
    fn default() -> Self {
        Self::rapid(0)
    }
}

impl HashSpec {
    /// rapidhash v3 as published, with its default secrets and this seed.
    #[must_use]
    pub const fn rapid(seed: u64) -> Self {
        let mut bytes = [0; 16];
        let (low, _) = bytes.split_at_mut(8);
        low.copy_from_slice(&seed.to_le_bytes());
        Self { algorithm: Algorithm::Rapid, seed: bytes }
    }

    /// SipHash-1-3 with this key, which should be random and secret.
    #[must_use]
    pub const fn keyed(key: [u8; 16]) -> Self {
        Self { algorithm: Algorithm::Sip13, seed: key }
    }

    /// The hash of a key's bytes.
    #[inline]
    #[must_use]
    pub fn hash(&self, bytes: &[u8]) -> u64 {
        let [low, high] = self.words();
        if self.algorithm == Algorithm::Sip13 {
            return sip13_of(bytes, low, high);
        }
        let seeded;
        let secrets = if low == 0 {
            &UNSEEDED
        } else {
            seeded = RapidSecrets::seed_cpp(low);
            &seeded
        };
        rapid(bytes, secrets)
    }

    /// The hashes of many keys, put behind those in `hashes`. Faster than one by one for short
    /// keys: what all have in common is done once.
    #[inline]
    pub fn hash_all<K: AsRef<[u8]>>(&self, keys: impl Iterator<Item = K>, hashes: &mut Vec<u64>) {
        let [low, high] = self.words();
        match self.algorithm {
            Algorithm::Rapid => {
                let secrets = RapidSecrets::seed_cpp(low);
                // One by one: `extend` lets the compiler put pairs of short keys into vectors, for
                // which they are taken apart again and which take twice the time.
                keys.for_each(|key| hashes.push(rapid(key.as_ref(), &secrets)));
            }
            Algorithm::Sip13 => {
                let sip = SipHasher13::new_with_keys(low, high);
                hashes.extend(keys.map(|key| sip13(key.as_ref(), sip)));
            }
        }
    }

    /// How a word is hashed, as its eight little-endian bytes, where that is quickly said.
    #[inline]
    pub(crate) fn of_words(&self) -> Option<impl Fn(u64) -> u64 + Copy> {
        let [low, _] = self.words();
        let secrets = RapidSecrets::seed_cpp(low);
        (self.algorithm == Algorithm::Rapid)
            .then_some(move |word: u64| rapid(&word.to_le_bytes(), &secrets))
    }

    /// The seed as two little-endian words.
    #[inline]
    fn words(&self) -> [u64; 2] {
        let seed = u128::from_le_bytes(self.seed);
        [seed as u64, (seed >> 64) as u64]
    }

    /// The algorithm's name: `rapidhash-v3` or `siphash-1-3`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.algorithm {
            Algorithm::Rapid => "rapidhash-v3",
            Algorithm::Sip13 => "siphash-1-3",
        }
    }

    /// The algorithm's number in files.
    #[must_use]
    pub fn id(&self) -> u16 {
        match self.algorithm {
            Algorithm::Rapid => 1,
            Algorithm::Sip13 => 2,
        }
    }

    /// The seed or key, as stored in files: 16 bytes, of which rapidhash uses the first 8.
    #[must_use]
    pub fn seed(&self) -> [u8; 16] {
        self.seed
    }

    /// Whether the hash is keyed: a secret is in the seed, not to be shown.
    #[must_use]
    pub fn is_keyed(&self) -> bool {
        self.algorithm == Algorithm::Sip13
    }

    /// The hash that a file names.
    pub(crate) fn from_file(id: u16, seed: [u8; 16]) -> Result<Self> {
        match id {
            1 if seed[8..] == [0; 8] => Ok(Self { algorithm: Algorithm::Rapid, seed }),
            1 => Err(Error::invalid("seed", "8 zero bytes after 8 of seed", "others")),
            2 => Ok(Self { algorithm: Algorithm::Sip13, seed }),
            _ => Err(Error::invalid("hash", "1 (rapidhash v3) or 2 (SipHash-1-3)", id)),
        }
    }
}

/// The secrets of nearly all filters. To make them for every key takes longer than to hash a word.
static UNSEEDED: RapidSecrets = RapidSecrets::seed_cpp(0);

#[inline]
fn rapid(bytes: &[u8], secrets: &RapidSecrets) -> u64 {
    rapidhash_v3_inline::<true, false, false>(bytes, secrets)
}

/// By a call, for it is long, and shall not keep what calls [`HashSpec::hash`] from being inlined.
#[inline(never)]
fn sip13_of(bytes: &[u8], low: u64, high: u64) -> u64 {
    sip13(bytes, SipHasher13::new_with_keys(low, high))
}

#[inline]
fn sip13(bytes: &[u8], mut sip: SipHasher13) -> u64 {
    sip.write(bytes);
    sip.finish()
}

impl fmt::Debug for HashSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.algorithm {
            Algorithm::Rapid => write!(f, "rapidhash-v3 with seed {:#x}", self.words()[0]),
            // The key is a secret, also in logs; its hash of nothing tells two keys apart.
            Algorithm::Sip13 => write!(f, "siphash-1-3 with key #{:016x}", self.hash(b"")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rapidhash_is_what_its_own_crate_and_paper_say() {
        for (seed, bytes) in [(0, &b""[..]), (0, b"hello"), (7, b"https://example.org/a?b=c")] {
            let expect = rapidhash::v3::rapidhash_v3_seeded(bytes, &RapidSecrets::seed_cpp(seed));
            assert_eq!(HashSpec::rapid(seed).hash(bytes), expect);
        }
    }

    #[test]
    fn sip_is_the_reference_with_1_and_3_rounds() {
        // The first vectors of the standard library's SipHash-1-3 tests, key 00..0f.
        let key: [u8; 16] = std::array::from_fn(|i| i as u8);
        let expect: [u64; 3] =
            [0xabac_0158_050f_c4dc, 0xc9f4_9bf3_7d57_ca93, 0x82cb_9b02_4dc7_d44d];
        for (length, expect) in expect.into_iter().enumerate() {
            let message: Vec<u8> = (0..length as u8).collect();
            assert_eq!(HashSpec::keyed(key).hash(&message), expect, "{length}");
        }
    }

    #[test]
    fn many_together_are_as_one_by_one() {
        let text = [7u8; 200];
        for hash in [HashSpec::rapid(3), HashSpec::keyed([5; 16])] {
            let mut hashes = vec![1];
            hash.hash_all((0..200).map(|length| &text[..length]), &mut hashes);
            assert!((0..200).all(|length| hashes[length + 1] == hash.hash(&text[..length])));
        }
    }

    #[test]
    fn seeds_matter_and_secrets_stay_secret() {
        assert_ne!(HashSpec::rapid(1).hash(b"x"), HashSpec::rapid(2).hash(b"x"));
        assert_ne!(HashSpec::keyed([1; 16]).hash(b"x"), HashSpec::keyed([2; 16]).hash(b"x"));
        let shown = format!("{:?}", HashSpec::keyed([0xab; 16]));
        assert!(!shown.contains("abab") && !shown.contains("171"));
    }
}
