//! The two hashes of a line. Both have new random keys in every run.
//!
//! * The **hash**: 64 bits of rapidhash v3 with secrets from a random 128-bit key, used by filters.
//!   In exact jobs filters only rule lines out, so a collision costs time but never changes the
//!   output. In approximate jobs a collision is a wrong line. The secrets must be random as well as
//!   the seed: under the published secrets anyone can write lines that collide for every seed.
//! * The **fingerprint**: 128 bits under a random key, used for exact decisions. [`aes`](super::aes)
//!   has the function and its bound: for n distinct lines, chosen without the key, the probability of
//!   any wrong result is at most about n² / 2¹¹⁴ (10¹⁰ lines: 5·10⁻¹⁵).
//!
//! Source of the expansion of the keys: Aumasson & Bernstein, "SipHash: a fast short-input PRF" (2012).

use std::hash::Hasher as _;

use petal::HashSpec;
use siphasher::sip128::{Hasher128 as _, SipHasher24};

use super::aes::Key;
use crate::error::{Error, Result};

/// The 128-bit keyed hash of a line. Never zero, which marks free slots of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint {
    /// Determines the partition.
    pub(crate) high: u64,
    /// Determines the slot in a table.
    pub(crate) low: u64,
}

impl Fingerprint {
    /// Length in bytes.
    pub(crate) const BYTES: usize = 16;

    #[inline]
    fn new(hash: u128) -> Self {
        let hash = hash.max(1);
        Self { high: (hash >> 64) as u64, low: hash as u64 }
    }

    /// Returns a number in whose order the slots of a table ascend.
    #[inline]
    pub(crate) fn order(self) -> u128 {
        u128::from(self.low) << 64 | u128::from(self.high)
    }

    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.high.to_le_bytes());
        bytes[8..].copy_from_slice(&self.low.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let (high, low) = bytes.split_at(8);
        let word = |half: &[u8]| u64::from_le_bytes(*half.first_chunk().expect("8 bytes"));
        Self { high: word(high), low: word(low) }
    }
}

/// The hash functions of one run, shared by all its passes.
#[derive(Clone)]
pub(crate) struct LineHasher {
    keys: [u64; 3],
    key: Key,
    spec: HashSpec,
}

impl LineHasher {
    /// Generates random keys; in a test, those of [`repeatable_keys`].
    pub(crate) fn random() -> Result<Self> {
        #[cfg(debug_assertions)]
        if let Some(keys) = repeatable_keys() {
            return Ok(Self::with_keys(keys));
        }
        Self::from_system()
    }

    fn from_system() -> Result<Self> {
        let word = || getrandom::u64().map_err(|_| Error::random());
        Ok(Self::with_keys([word()?, word()?, word()?]))
    }

    /// The public hash of filter files: rapidhash with seed 0. Anyone can write lines that collide.
    pub(crate) fn public() -> Self {
        Self { spec: HashSpec::rapid(0), ..Self::with_keys([0; 3]) }
    }

    /// Returns the keys. Anyone who has them can write lines that collide.
    pub(crate) fn secret_keys(&self) -> [u64; 3] {
        self.keys
    }

    /// Hash functions with the keys of another run.
    pub(crate) fn with_keys(keys: [u64; 3]) -> Self {
        let [first, second, tweak] = keys;
        let expand = |purpose: &[u8; 16], number: usize| {
            let mut sip = SipHasher24::new_with_keys(first, second);
            sip.write(purpose);
            sip.write(&[tweak, number as u64].map(u64::to_le_bytes).concat());
            sip.finish128()
        };
        Self {
            keys,
            key: Key::new(|number| expand(b"petal line block", number).as_u128()),
            spec: HashSpec::rapid_keyed(expand(b"petal filter key", 0).as_bytes()),
        }
    }

    /// Returns the hash that filters use.
    pub(crate) fn spec(&self) -> &HashSpec {
        &self.spec
    }

    /// Returns the 64-bit hash of a line.
    #[inline]
    pub(crate) fn filter_hash(&self, line: &[u8]) -> u64 {
        self.spec.hash(line)
    }

    /// Returns the 128-bit fingerprint of a line.
    pub(crate) fn fingerprint(&self, line: &[u8]) -> Fingerprint {
        let mut found = Fingerprint::default();
        self.key.for_each([line].into_iter(), |hash| found = Fingerprint::new(hash));
        found
    }

    /// Appends the fingerprints of lines to `fingerprints`.
    pub(crate) fn fingerprints<'a>(
        &self,
        lines: impl Iterator<Item = &'a [u8]>,
        fingerprints: &mut Vec<Fingerprint>,
    ) {
        self.key.for_each(lines, |hash| fingerprints.push(Fingerprint::new(hash)));
    }
}

/// Returns keys that depend only on the number in `PETAL_TEST_SEED`, if it is set, and on how many
/// keys this thread has made: what a job does by chance is then the same in every run of a test.
/// Only builds with debug assertions read it.
#[cfg(debug_assertions)]
fn repeatable_keys() -> Option<[u64; 3]> {
    thread_local! {
        static MADE: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }
    let seed = std::env::var("PETAL_TEST_SEED").ok()?.parse().ok()?;
    let made = MADE.get();
    MADE.set(made + 1);
    Some([seed, made, 0])
}

/// Appends the 128-bit keyed fingerprints of keys to `fingerprints`, 16 bytes each. Anyone who
/// has the key of the fingerprints can make two keys collide.
pub fn fingerprints<'a>(
    key: [u8; 16],
    keys: impl Iterator<Item = &'a [u8]>,
    fingerprints: &mut Vec<u8>,
) {
    let Fingerprint { high, low } = Fingerprint::from_bytes(&key);
    let mut found = Vec::with_capacity(keys.size_hint().0);
    LineHasher::with_keys([high, low, 0]).fingerprints(keys, &mut found);
    fingerprints.extend(found.into_iter().flat_map(Fingerprint::to_bytes));
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn bytes_round_trip() {
        let fingerprint = Fingerprint { high: 0x0102_0304_0506_0708, low: 0x1112_1314_1516_1718 };
        assert_eq!(fingerprint.to_bytes()[..8], [8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(Fingerprint::from_bytes(&fingerprint.to_bytes()), fingerprint);
    }

    /// From a program in Python, written from docs/reference/format-other.md alone.
    #[test]
    fn fingerprints_are_those_of_the_format_document() {
        let hasher = LineHasher::with_keys([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908, 0]);
        let long: Vec<u8> = (0..=255).chain(0..=255).chain(*b"end").collect();
        let expected: [(&[u8], u64, u64); 7] = [
            (b"", 0, 1),
            (b"a", 0x168c_4fae_1b01_7b71, 0x3b39_231e_a5e4_b33d),
            (b"petal", 0x93b2_92cc_376b_3f5d, 0x57a3_680e_69ab_2eb2),
            (b"twelve bytes", 0x3bb2_1c3a_afe0_2327, 0x242c_f6d3_fc46_e550),
            (b"aaaaaaaaaaaaaaaa", 0x60e2_84d8_d4ab_b134, 0x9bee_6da8_85c1_7c4f),
            (b"https://example.org/a/page", 0x6a8a_7674_40de_0803, 0x7a9d_56b8_b33e_c7cc),
            (&long, 0x2fb2_7475_9ec9_57d7, 0x2c48_95bb_0ec2_561f),
        ];
        for (line, high, low) in expected {
            assert_eq!(hasher.fingerprint(line), Fingerprint { high, low }, "{}", line.len());
        }
    }

    #[test]
    fn each_run_has_its_own_keys() {
        let (a, b) = (LineHasher::from_system().unwrap(), LineHasher::from_system().unwrap());
        assert_ne!(a.fingerprint(b"line"), b.fingerprint(b"line"));
        assert_ne!(a.filter_hash(b"line"), b.filter_hash(b"line"));
        assert_eq!(a.fingerprint(b"line"), a.clone().fingerprint(b"line"));
    }

    #[test]
    fn keys_of_another_run_give_its_hashes() {
        let a = LineHasher::random().unwrap();
        let b = LineHasher::with_keys(a.secret_keys());
        assert_eq!((a.filter_hash(b"line"), a.spec()), (b.filter_hash(b"line"), b.spec()));
        let [first, second, tweak] = a.secret_keys();
        for other in
            [[first ^ 1, second, tweak], [first, second ^ 1, tweak], [first, second, !tweak]]
        {
            assert_ne!(LineHasher::with_keys(other).filter_hash(b"line"), a.filter_hash(b"line"));
        }
        assert!(a.spec().is_keyed() && *LineHasher::public().spec() == HashSpec::default());
    }

    /// Lines that collide under the public hash do not collide under the keys of a run.
    #[test]
    fn prepared_collisions_need_the_public_hash() {
        for family in petal_testkit::collide::RAPID {
            let distinct = |hasher: &LineHasher| {
                let keys: HashSet<u64> =
                    family.keys(1000).map(|line| hasher.filter_hash(&line)).collect();
                keys.len()
            };
            assert_eq!(distinct(&LineHasher::public()), 1, "{}", family.name);
            assert_eq!(distinct(&LineHasher::random().unwrap()), 1000, "{}", family.name);
        }
    }
}
