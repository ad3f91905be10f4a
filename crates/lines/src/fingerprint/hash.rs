//! The two hashes of a line. Both have new random keys in every run.
//!
//! * The **hash**: 64 bits of rapidhash v3 with secrets from a random 128-bit key, used by filters.
//!   In exact jobs filters only rule lines out, so a collision costs time but never changes the
//!   output. In approximate jobs a collision is a wrong line. The secrets must be random as well as
//!   the seed: under the published secrets anyone can write lines that collide for every seed.
//! * The **fingerprint**: 128 bits of SipHash-2-4 under a random 128-bit key, used for exact
//!   decisions. Without reading the memory of the process, no one can make two lines collide with
//!   better odds than chance: for n distinct lines the probability of any wrong result is at most
//!   n² / 2¹²⁹ (10¹⁰ lines: 1.5·10⁻¹⁹).
//!
//! Cost on 64-byte lines, one core: hash about 4 ns; fingerprint about 44 ns, or 18 ns if eight are
//! computed together in vector registers. Keyed BLAKE3 took 54 ns (123 ns at 67 bytes, where it
//! needs a second block). Only lines that a filter cannot rule out are fingerprinted.
//!
//! Source: Aumasson & Bernstein, "SipHash: a fast short-input PRF" (2012), the 128-bit form of
//! the reference code.

use std::hash::Hasher as _;

use petal::HashSpec;
use siphasher::sip128::{Hasher128 as _, SipHasher24};

use super::siphash::{LANES, sip_2_4_128};
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

    fn new(high: u64, low: u64) -> Self {
        Self { high, low: if high | low == 0 { 1 } else { low } }
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
    key: [u64; 2],
    /// Derives the key of the filter hash, together with `key`.
    tweak: u64,
    spec: HashSpec,
}

/// The key of the filter hash is the fingerprint of this text followed by the tweak.
const FILTER_KEY: &[u8; 16] = b"petal filter key";

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
        Self { key: [0; 2], tweak: 0, spec: HashSpec::rapid(0) }
    }

    /// Returns the keys. Anyone who has them can write lines that collide.
    pub(crate) fn secret_keys(&self) -> [u64; 3] {
        [self.key[0], self.key[1], self.tweak]
    }

    /// Hash functions with the keys of another run.
    pub(crate) fn with_keys([first, second, tweak]: [u64; 3]) -> Self {
        let mut sip = SipHasher24::new_with_keys(first, second);
        sip.write(FILTER_KEY);
        sip.write(&tweak.to_le_bytes());
        let derived = sip.finish128().as_bytes();
        Self { key: [first, second], tweak, spec: HashSpec::rapid_keyed(derived) }
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
    #[inline]
    pub(crate) fn fingerprint(&self, line: &[u8]) -> Fingerprint {
        let mut sip = SipHasher24::new_with_keys(self.key[0], self.key[1]);
        sip.write(line);
        let hash = sip.finish128();
        Fingerprint::new(hash.h1, hash.h2)
    }

    /// Appends the fingerprints of lines to `fingerprints`.
    pub(crate) fn fingerprints<'a>(
        &self,
        lines: impl Iterator<Item = &'a [u8]>,
        fingerprints: &mut Vec<Fingerprint>,
    ) {
        let mut group = [&[][..]; LANES];
        let mut filled = 0;
        for line in lines {
            group[filled] = line;
            filled += 1;
            if filled < LANES {
                continue;
            }
            filled = 0;
            match sip_2_4_128(self.key, &group) {
                Some([high, low]) => {
                    let pairs = high.into_iter().zip(low);
                    fingerprints.extend(pairs.map(|(high, low)| Fingerprint::new(high, low)));
                }
                None => fingerprints.extend(group.map(|line| self.fingerprint(line))),
            }
        }
        fingerprints.extend(group[..filled].iter().map(|line| self.fingerprint(line)));
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
    use petal_testkit::rng::Rng;

    #[test]
    fn bytes_round_trip() {
        let fingerprint = Fingerprint { high: 0x0102_0304_0506_0708, low: 0x1112_1314_1516_1718 };
        assert_eq!(fingerprint.to_bytes()[..8], [8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(Fingerprint::from_bytes(&fingerprint.to_bytes()), fingerprint);
    }

    #[test]
    fn fingerprints_are_siphash_2_4_128_of_the_reference() {
        // First vectors of the reference code: key 00..0f, messages "", 00, 00 01.
        let hasher = LineHasher::with_keys([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908, 0]);
        let expect = [
            (&[][..], [0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6]),
            (&[0][..], [0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44]),
            (&[0, 1][..], [0x81, 0x77, 0x22, 0x8d, 0xa4, 0xa4, 0x5d, 0xc7]),
        ];
        for (message, first) in expect {
            assert_eq!(hasher.fingerprint(message).to_bytes()[..8], first, "{message:?}");
        }
    }

    #[test]
    fn batch_equals_single_fingerprints() {
        let hasher = LineHasher::random().unwrap();
        let mut rng = Rng::new(3);
        let text: Vec<u8> = (0..4000).map(|_| rng.next_u64() as u8).collect();
        for (count, longest) in [(0, 9), (7, 9), (8, 70), (100, 1), (100, 17), (1000, 300)] {
            let line = |_| {
                let start = rng.below(3600);
                &text[start..start + rng.below(longest)]
            };
            let lines: Vec<&[u8]> = (0..count).map(line).collect();
            let mut fingerprints = Vec::new();
            hasher.fingerprints(lines.iter().copied(), &mut fingerprints);
            let one_by_one: Vec<_> = lines.iter().map(|line| hasher.fingerprint(line)).collect();
            assert_eq!(fingerprints, one_by_one, "{count} lines of up to {longest} bytes");
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
