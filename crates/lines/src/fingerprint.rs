//! The two hashes of a line, both keyed afresh for every run.
//!
//! * The **key**: 64 bits of rapidhash v3 with secrets from a random 128-bit key. It only feeds
//!   filters. In the exact verbs filters only narrow: a collision costs time, never an answer. In
//!   the approximate ones a collision is a wrong line, so its secrets must be as random as its
//!   seed: under the published ones anybody can write lines that collide under every seed.
//! * The **fingerprint**: 128 bits of SipHash-2-4 under a random 128-bit key. It decides. Nobody
//!   who cannot read our memory can make two lines collide with better odds than chance: for n
//!   distinct lines the probability of any wrong answer is at most n² / 2¹²⁹ (10¹⁰ lines:
//!   1.5·10⁻¹⁹).
//!
//! Cost on 64-byte lines, one core: key about 4 ns, fingerprint about 44 ns, or 18 ns where eight
//! go together in vector registers; keyed BLAKE3 took 54 ns (123 ns at 67 bytes, where it needs a
//! second block), so SipHash it is. Only lines that a filter could not rule out are fingerprinted.
//!
//! Source: Aumasson & Bernstein, "SipHash: a fast short-input PRF" (2012), the 128-bit form of
//! the reference code.

use std::hash::Hasher as _;

use petal::HashSpec;
use siphasher::sip128::{Hasher128 as _, SipHasher24};

use crate::error::{Error, Result};
use crate::vector::{LANES, sip_2_4_128};

/// 128 keyed bits that stand for a line. Never all zero: a table marks free slots with that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint {
    /// Chooses the partition.
    pub(crate) high: u64,
    /// Chooses the slot in a table.
    pub(crate) low: u64,
}

impl Fingerprint {
    /// Bytes of a fingerprint in a spilled record.
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

/// The hashes of one run: made once, shared by every pass of it.
#[derive(Clone)]
pub(crate) struct Hashes {
    key: [u64; 2],
    /// What the filter's key is derived from, beside `key`.
    tweak: u64,
    keys: HashSpec,
}

/// What the filter's key is the fingerprint of, with the tweak behind it.
const FILTER_KEY: &[u8; 16] = b"petal filter key";

impl Hashes {
    /// Fresh random keys from the operating system.
    pub(crate) fn random() -> Result<Self> {
        let word = || getrandom::u64().map_err(|_| Error::random());
        Ok(Self::with_keys([word()?, word()?, word()?]))
    }

    /// Those of filters that everybody makes alike: filters take rapidhash with seed 0, as filter
    /// files do. Anybody can write lines that collide.
    pub(crate) fn public() -> Self {
        Self { key: [0; 2], tweak: 0, keys: HashSpec::rapid(0) }
    }

    /// The keys, to be kept as secret as the answer is to be right.
    pub(crate) fn keys(&self) -> [u64; 3] {
        [self.key[0], self.key[1], self.tweak]
    }

    /// Hashes with the keys of another run.
    pub(crate) fn with_keys([first, second, tweak]: [u64; 3]) -> Self {
        let mut sip = SipHasher24::new_with_keys(first, second);
        sip.write(FILTER_KEY);
        sip.write(&tweak.to_le_bytes());
        let derived = sip.finish128().as_bytes();
        Self { key: [first, second], tweak, keys: HashSpec::rapid_keyed(derived) }
    }

    /// How lines become filter keys.
    pub(crate) fn spec(&self) -> &HashSpec {
        &self.keys
    }

    /// The 64-bit filter key of a line.
    #[inline]
    pub(crate) fn key(&self, line: &[u8]) -> u64 {
        self.keys.hash(line)
    }

    /// The 128-bit fingerprint of a line.
    #[inline]
    pub(crate) fn fingerprint(&self, line: &[u8]) -> Fingerprint {
        let mut sip = SipHasher24::new_with_keys(self.key[0], self.key[1]);
        sip.write(line);
        let hash = sip.finish128();
        Fingerprint::new(hash.h1, hash.h2)
    }

    /// The fingerprints of lines, put behind those in `prints`.
    pub(crate) fn fingerprints<'a>(
        &self,
        lines: impl Iterator<Item = &'a [u8]>,
        prints: &mut Vec<Fingerprint>,
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
                    prints.extend(pairs.map(|(high, low)| Fingerprint::new(high, low)));
                }
                None => prints.extend(group.map(|line| self.fingerprint(line))),
            }
        }
        prints.extend(group[..filled].iter().map(|line| self.fingerprint(line)));
    }
}

/// The 128-bit keyed fingerprints of keys that are not lines of files, 16 bytes each, put behind
/// what is in `prints`. Whoever knows the key of the fingerprints can make two keys collide.
pub fn fingerprints<'a>(key: [u8; 16], keys: impl Iterator<Item = &'a [u8]>, prints: &mut Vec<u8>) {
    let Fingerprint { high, low } = Fingerprint::from_bytes(&key);
    let mut found = Vec::with_capacity(keys.size_hint().0);
    Hashes::with_keys([high, low, 0]).fingerprints(keys, &mut found);
    prints.extend(found.into_iter().flat_map(Fingerprint::to_bytes));
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use petal_testkit::rng::Rng;

    #[test]
    fn bytes_round_trip() {
        let print = Fingerprint { high: 0x0102_0304_0506_0708, low: 0x1112_1314_1516_1718 };
        assert_eq!(print.to_bytes()[..8], [8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(Fingerprint::from_bytes(&print.to_bytes()), print);
    }

    #[test]
    fn fingerprints_are_siphash_2_4_128_of_the_reference() {
        // First vectors of the reference code: key 00..0f, messages "", 00, 00 01.
        let hashes = Hashes::with_keys([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908, 0]);
        let expect = [
            (&[][..], [0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6]),
            (&[0][..], [0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44]),
            (&[0, 1][..], [0x81, 0x77, 0x22, 0x8d, 0xa4, 0xa4, 0x5d, 0xc7]),
        ];
        for (message, first) in expect {
            assert_eq!(hashes.fingerprint(message).to_bytes()[..8], first, "{message:?}");
        }
    }

    #[test]
    fn many_together_are_as_one_by_one() {
        let hashes = Hashes::random().unwrap();
        let mut rng = Rng::new(3);
        let text: Vec<u8> = (0..4000).map(|_| rng.next_u64() as u8).collect();
        for (count, longest) in [(0, 9), (7, 9), (8, 70), (100, 1), (100, 17), (1000, 300)] {
            let line = |_| {
                let start = rng.below(3600);
                &text[start..start + rng.below(longest)]
            };
            let lines: Vec<&[u8]> = (0..count).map(line).collect();
            let mut prints = Vec::new();
            hashes.fingerprints(lines.iter().copied(), &mut prints);
            let one_by_one: Vec<_> = lines.iter().map(|line| hashes.fingerprint(line)).collect();
            assert_eq!(prints, one_by_one, "{count} lines of up to {longest} bytes");
        }
    }

    #[test]
    fn every_run_has_its_own_keys() {
        let (a, b) = (Hashes::random().unwrap(), Hashes::random().unwrap());
        assert_ne!(a.fingerprint(b"line"), b.fingerprint(b"line"));
        assert_ne!(a.key(b"line"), b.key(b"line"));
        assert_eq!(a.fingerprint(b"line"), a.clone().fingerprint(b"line"));
    }

    #[test]
    fn keys_of_another_run_give_its_hashes() {
        let a = Hashes::random().unwrap();
        let b = Hashes::with_keys(a.keys());
        assert_eq!((a.key(b"line"), a.spec()), (b.key(b"line"), b.spec()));
        let [first, second, tweak] = a.keys();
        for other in
            [[first ^ 1, second, tweak], [first, second ^ 1, tweak], [first, second, !tweak]]
        {
            assert_ne!(Hashes::with_keys(other).key(b"line"), a.key(b"line"));
        }
        assert!(a.spec().is_keyed() && *Hashes::public().spec() == HashSpec::default());
    }

    /// Prepared lines collide under the hash that everybody knows, and not under that of a run.
    #[test]
    fn prepared_lines_have_keys_of_their_own_in_every_run() {
        for family in petal_testkit::collide::RAPID {
            let distinct = |hashes: &Hashes| {
                let keys: HashSet<u64> = family.keys(1000).map(|line| hashes.key(&line)).collect();
                keys.len()
            };
            assert_eq!(distinct(&Hashes::public()), 1, "{}", family.name);
            assert_eq!(distinct(&Hashes::random().unwrap()), 1000, "{}", family.name);
        }
    }
}
