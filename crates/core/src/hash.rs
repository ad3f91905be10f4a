//! Hashes of keys, of 64 bits. The hash is part of the file format.
//!
//! A [`HashSpec`] is an algorithm and its seed. All algorithms are published and frozen; their test
//! vectors are below and in docs/reference/format.md. A changed algorithm gets a new id; ids are never reused.
//!
//! Cost on one core for 64 bytes: rapidhash about 4 ns, SipHash-1-3 about 25 ns.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use core::fmt;
use core::hash::Hasher as _;
use core::num::NonZeroU64;

use rapidhash::v3::{RapidSecrets, rapidhash_v3_inline};
use siphasher::sip::{SipHasher13, SipHasher24};

use crate::error::{Error, Result};

/// A hash function for keys: an algorithm and its seed.
///
/// * [`HashSpec::rapid`]: rapidhash v3, fast and portable, for keys that no adversary chooses. The
///   default, with seed 0. **A seed is no protection**: it is easy to generate millions of keys
///   with the same hash under every seed.
/// * [`HashSpec::rapid_keyed`]: rapidhash v3 with secrets derived from a 128-bit key. As fast, and
///   without the key an adversary cannot prepare colliding keys. For filters whose results the
///   adversary does not see, such as those of one run of a program.
/// * [`HashSpec::keyed`]: SipHash-1-3 with a secret 128-bit key, for keys chosen by an adversary who
///   may see the filter's results. The key is stored in the filter's file: keep such files private.
/// * [`HashSpec::keyed_apart`]: the same with a key that is not in the file, so that keys cannot be tested
///   with the file alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashSpec {
    algorithm: Algorithm,
    /// Of [`Algorithm::Locked`] the check value, as in the file.
    seed: [u8; 16],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Rapid,
    Sip13,
    RapidKeyed,
    Sip13Apart,
    /// [`Sip13Apart`](Self::Sip13Apart) without its secret. Only for filters that are never queried: it
    /// hashes nothing, and no function of the crate returns it.
    Locked,
}

/// The 16 random bytes that [`HashSpec::keyed_apart`] needs and no filter file has. Its `Debug` output shows
/// only the check value, which the files have.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 16]);

impl Secret {
    /// Creates a secret from its bytes, which should be random.
    #[must_use]
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Reads the content of a file: 32 hexadecimal digits, with or without a line end, or 16 bytes. `None` if
    /// it has another form.
    #[must_use]
    pub fn parse(content: &[u8]) -> Option<Self> {
        if let Ok(bytes) = content.try_into() {
            return Some(Self(bytes));
        }
        let line = content.strip_suffix(b"\n").unwrap_or(content);
        let digits = line.strip_suffix(b"\r").unwrap_or(line);
        let (pairs, []) = digits.as_chunks::<2>() else { return None };
        let pairs: &[[u8; 2]; 16] = pairs.try_into().ok()?;
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let mut bytes = [0; 16];
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = (digit(*high)? * 16 + digit(*low)?) as u8;
        }
        Some(Self(bytes))
    }

    /// Reads a secret from a file: see [`parse`](Self::parse).
    ///
    /// # Errors
    /// If the file cannot be read; with [`InvalidData`](std::io::ErrorKind::InvalidData) if it is no secret.
    #[cfg(feature = "std")]
    pub fn read_from(path: &std::path::Path) -> std::io::Result<Self> {
        use std::io::Read as _;
        let mut content = Vec::new();
        // More bytes than a secret has.
        std::fs::File::open(path)?.take(64).read_to_end(&mut content)?;
        Self::parse(&content).ok_or_else(|| {
            let text = "is no secret, expected 32 hexadecimal digits or 16 bytes";
            std::io::Error::new(std::io::ErrorKind::InvalidData, text)
        })
    }

    /// Returns the check value, by which a file recognizes its secret.
    fn check_value(&self) -> [u8; 8] {
        let mut sip = SipHasher24::new_with_key(&self.0);
        sip.write(CHECKED_TEXT);
        sip.finish().to_le_bytes()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret #{:016x}", u64::from_le_bytes(self.check_value()))
    }
}

/// The text whose hash is the check value of a secret.
const CHECKED_TEXT: &[u8] = b"petal secret";

impl Default for HashSpec {
    fn default() -> Self {
        Self::rapid(0)
    }
}

impl HashSpec {
    /// Returns rapidhash v3 as published, with its default secrets and this seed.
    ///
    /// The secrets are public. A word of the key that equals one of them makes a product zero, so
    /// the other factor, or all words before, have no effect. Such keys have the same hash under
    /// every seed.
    #[must_use]
    pub const fn rapid(seed: u64) -> Self {
        Self { algorithm: Algorithm::Rapid, seed: (seed as u128).to_le_bytes() }
    }

    /// Returns SipHash-1-3 with this key, which should be random and secret.
    #[must_use]
    pub const fn keyed(key: [u8; 16]) -> Self {
        Self { algorithm: Algorithm::Sip13, seed: key }
    }

    /// Returns SipHash-1-3 with this secret. Files of the filter have a check value in its place and are opened
    /// with the secret only, e.g. by [`AnyFilter::open_with`](crate::AnyFilter::open_with).
    #[must_use]
    pub const fn keyed_apart(secret: &Secret) -> Self {
        Self { algorithm: Algorithm::Sip13Apart, seed: secret.0 }
    }

    /// Returns rapidhash v3 with its seed and all its secrets derived from this key, which should be
    /// random and secret. In batches as fast as [`rapid`](Self::rapid); about 3 ns more for a single
    /// key.
    ///
    /// Without the key, an adversary cannot prepare colliding keys. Two keys chosen without it
    /// collide with a probability of at most about 2^-26 (keys of 17 bytes or more that differ by
    /// the complement of a word; other keys about 2^-64). Of n chosen keys at most about
    /// n log2(n) / 2^27 collide on average; such collisions occur in groups.
    ///
    /// This is not a pseudorandom function: an adversary who sees hashes or many results of the
    /// filter can learn about the key. Use [`keyed`](Self::keyed) in that case.
    #[must_use]
    pub const fn rapid_keyed(key: [u8; 16]) -> Self {
        Self { algorithm: Algorithm::RapidKeyed, seed: key }
    }

    /// Returns the hash of a key's bytes.
    #[inline]
    #[must_use]
    pub fn hash(&self, bytes: &[u8]) -> u64 {
        // Inlined for the default only, whose secrets are then constants in the code.
        if self.is_default() { Self::default_hash(bytes) } else { self.hash_by_call(bytes) }
    }

    /// Whether this is the default.
    #[inline]
    pub(crate) fn is_default(&self) -> bool {
        self.algorithm == Algorithm::Rapid && self.seed_words()[0] == 0
    }

    /// [`hash`](Self::hash) of the default.
    #[inline]
    pub(crate) fn default_hash(bytes: &[u8]) -> u64 {
        rapid(bytes, UNSEEDED)
    }

    /// [`hash`](Self::hash) by a call.
    #[inline]
    pub(crate) fn hash_by_call(&self, bytes: &[u8]) -> u64 {
        let [low, high] = self.seed_words();
        hash_by_call(self.algorithm, bytes, low, high)
    }

    /// Appends the hashes of many keys to `hashes`. Faster than single calls for short keys, because
    /// the setup is done once.
    #[inline]
    pub fn hash_all<K: AsRef<[u8]>>(&self, keys: impl Iterator<Item = K>, hashes: &mut Vec<u64>) {
        let [low, high] = self.seed_words();
        match self.algorithm {
            Algorithm::Rapid | Algorithm::RapidKeyed => {
                let secrets = self.rapid_secrets();
                // Not `extend`: the compiler would vectorise pairs of short keys, which takes twice
                // the time.
                keys.for_each(|key| hashes.push(rapid(key.as_ref(), &secrets)));
            }
            Algorithm::Sip13 | Algorithm::Sip13Apart | Algorithm::Locked => {
                self.assert_unlocked();
                let sip = SipHasher13::new_with_keys(low, high);
                hashes.extend(keys.map(|key| sip13(key.as_ref(), sip)));
            }
        }
    }

    /// Returns which of `shards` parts a hash belongs to, from 0 on: for keys that are divided among filters,
    /// each of a thread, a machine or a file.
    ///
    /// **Do not divide keys by bits of the hash itself.** A filter places keys by these bits. If all its
    /// keys have some of them in common, they take a part of its memory only, and it contains most of
    /// the keys that are looked up in it.
    ///
    /// The same on every machine and in every later version.
    ///
    /// ```
    /// use std::num::NonZeroU64;
    /// use petal::{BloomFilter, HashSpec};
    ///
    /// let shards = NonZeroU64::new(4).unwrap();
    /// let mut filters = vec![BloomFilter::with_fpr(1000, 0.01)?; 4];
    /// for key in ["one", "two", "three"] {
    ///     let hash = HashSpec::default().hash(key.as_bytes());
    ///     filters[HashSpec::shard(hash, shards) as usize].insert_mixed_hash(hash);
    /// }
    /// # Ok::<_, petal::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn shard(hash: u64, shards: NonZeroU64) -> u64 {
        // The finalizer of MurmurHash3, whose bits have no simple relation to those of the hash.
        let mixed = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        let mixed = (mixed ^ mixed >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        ((u128::from(mixed ^ mixed >> 33) * u128::from(shards.get())) >> 64) as u64
    }

    /// Returns a function that hashes the eight little-endian bytes of a word, for rapidhash only.
    #[inline]
    pub(crate) fn word_hasher(&self) -> Option<impl Fn(u64) -> u64 + Copy> {
        let secrets = self.rapid_secrets();
        matches!(self.algorithm, Algorithm::Rapid | Algorithm::RapidKeyed)
            .then_some(move |word: u64| rapid(&word.to_le_bytes(), &secrets))
    }

    /// Returns the seed and the secrets of rapidhash.
    #[inline]
    fn rapid_secrets(&self) -> RapidSecrets {
        let [low, high] = self.seed_words();
        match self.algorithm {
            Algorithm::RapidKeyed => keyed_secrets(low, high),
            _ => RapidSecrets::seed_cpp(low),
        }
    }

    /// Returns the seed as two little-endian words.
    #[inline]
    fn seed_words(&self) -> [u64; 2] {
        let seed = u128::from_le_bytes(self.seed);
        [seed as u64, (seed >> 64) as u64]
    }

    /// The algorithm's name: `rapidhash-v3`, `siphash-1-3`, `rapidhash-v3-keyed` or `siphash-1-3-apart`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.algorithm {
            Algorithm::Rapid => "rapidhash-v3",
            Algorithm::Sip13 => "siphash-1-3",
            Algorithm::RapidKeyed => "rapidhash-v3-keyed",
            Algorithm::Sip13Apart | Algorithm::Locked => "siphash-1-3-apart",
        }
    }

    /// The id of the algorithm in files.
    #[must_use]
    pub fn id(&self) -> u16 {
        match self.algorithm {
            Algorithm::Rapid => 1,
            Algorithm::Sip13 => 2,
            Algorithm::RapidKeyed => 5,
            Algorithm::Sip13Apart | Algorithm::Locked => 6,
        }
    }

    /// The seed or key, as stored in files: 16 bytes, of which unkeyed hashes use the first 8. The check value
    /// if the secret is apart.
    #[must_use]
    pub fn seed(&self) -> [u8; 16] {
        let mut seed = self.seed;
        if self.algorithm == Algorithm::Sip13Apart {
            seed = [0; 16];
            seed[..8].copy_from_slice(&Secret(self.seed).check_value());
        }
        seed
    }

    /// Whether the hash is keyed: its seed is a secret and must not be displayed.
    #[must_use]
    pub fn is_keyed(&self) -> bool {
        self.algorithm != Algorithm::Rapid
    }

    /// Whether the hash has a secret that is not in the files of its filters.
    #[must_use]
    pub fn is_secret_apart(&self) -> bool {
        matches!(self.algorithm, Algorithm::Sip13Apart | Algorithm::Locked)
    }

    /// Returns the hash of a file with the secret that it needs, if it needs one.
    pub(crate) fn unlocked(self, secret: Option<&Secret>) -> Result<Self> {
        if self.algorithm != Algorithm::Locked {
            return Ok(self);
        }
        let unlocked = Self::keyed_apart(secret.ok_or_else(Error::secret_missing)?);
        if unlocked.seed() != self.seed { Err(Error::wrong_secret()) } else { Ok(unlocked) }
    }

    fn assert_unlocked(&self) {
        assert!(self.algorithm != Algorithm::Locked, "a filter without its secret was queried");
    }

    /// Returns the hash with the id and seed of a file; locked if its secret is apart.
    pub(crate) fn from_file(id: u16, seed: [u8; 16]) -> Result<Self> {
        let algorithm = match id {
            1 => Algorithm::Rapid,
            2 => Algorithm::Sip13,
            5 => Algorithm::RapidKeyed,
            6 => Algorithm::Locked,
            _ => {
                let expected = "1 (rapidhash v3), 2 (SipHash-1-3), 5 (rapidhash v3, keyed) or 6 \
                                (SipHash-1-3, secret apart)";
                return Err(Error::invalid("hash", expected, id));
            }
        };
        let spec = Self { algorithm, seed };
        let is_short = matches!(algorithm, Algorithm::Rapid | Algorithm::Locked);
        if is_short && seed[8..] != [0; 8] {
            return Err(Error::invalid(
                "seed",
                "8 zero bytes after 8 bytes of seed or check value",
                "other bytes",
            ));
        }
        Ok(spec)
    }
}

/// The secrets for seed 0, the default. Deriving them takes longer than hashing a word.
const UNSEEDED: &RapidSecrets = &RapidSecrets::seed_cpp(0);

/// The first 1024 bits of the fraction of π: constants without hidden structure.
const PI: [u64; 16] = [
    0x243f_6a88_85a3_08d3,
    0x1319_8a2e_0370_7344,
    0xa409_3822_299f_31d0,
    0x082e_fa98_ec4e_6c89,
    0x4528_21e6_38d0_1377,
    0xbe54_66cf_34e9_0c6c,
    0xc0ac_29b7_c97c_50dd,
    0x3f84_d5b5_b547_0917,
    0x9216_d5d9_8979_fb1b,
    0xd131_0ba6_98df_b5ac,
    0x2ffd_72db_d01a_dfb7,
    0xb8e1_afed_6a26_7e96,
    0xba7c_9045_f12c_7f99,
    0x24a1_9947_b391_6cf7,
    0x0801_f2e2_858e_fc16,
    0x6369_20d8_7157_4e69,
];

/// Derives the seed and the secrets of rapidhash from a key.
///
/// Each is a folded product of both words of the key, each XORed with a constant. The secrets must
/// not have a known difference: the lanes of a long key start from one seed, so if `s0 ^ s1` is
/// known, an adversary can make two lanes equal, and they cancel.
#[inline]
const fn keyed_secrets(low: u64, high: u64) -> RapidSecrets {
    const fn derive(low: u64, high: u64, number: usize) -> u64 {
        let product = (low ^ PI[number]) as u128 * (high ^ PI[8 + number]) as u128;
        product as u64 ^ (product >> 64) as u64
    }
    let mut secrets = [0; 7];
    let mut number = 0;
    while number < secrets.len() {
        secrets[number] = derive(low, high, number);
        number += 1;
    }
    RapidSecrets { seed: derive(low, high, 7), secrets }
}

#[inline]
fn rapid(bytes: &[u8], secrets: &RapidSecrets) -> u64 {
    rapidhash_v3_inline::<true, false, false>(bytes, secrets)
}

/// Returns the hash of `bytes`. Not inlined, so that callers of [`HashSpec::hash`] can be. Takes
/// values, because a reference to the spec would keep the whole filter in memory, not registers.
#[inline(never)]
fn hash_by_call(algorithm: Algorithm, bytes: &[u8], low: u64, high: u64) -> u64 {
    match algorithm {
        Algorithm::Rapid => rapid(bytes, &RapidSecrets::seed_cpp(low)),
        Algorithm::RapidKeyed => rapid(bytes, &keyed_secrets(low, high)),
        Algorithm::Sip13 | Algorithm::Sip13Apart => {
            sip13(bytes, SipHasher13::new_with_keys(low, high))
        }
        Algorithm::Locked => unreachable!("a filter without its secret was queried"),
    }
}

#[inline]
fn sip13(bytes: &[u8], mut sip: SipHasher13) -> u64 {
    sip.write(bytes);
    sip.finish()
}

impl fmt::Debug for HashSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        if self.is_secret_apart() {
            let check = u128::from_le_bytes(self.seed());
            return write!(f, "{name} with secret #{check:016x}");
        }
        if self.is_keyed() {
            // Logs must not contain the key; the hash of no bytes identifies it.
            return write!(f, "{name} with key #{:016x}", self.hash(b""));
        }
        write!(f, "{name} with seed {:#x}", self.seed_words()[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_digits_or_bytes() {
        let key: [u8; 16] = core::array::from_fn(|i| 0xf0 + i as u8);
        let digits = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
        for text in [
            digits.to_owned(),
            digits.to_uppercase(),
            format!("{digits}\n"),
            format!("{digits}\r\n"),
        ] {
            assert_eq!(Secret::parse(text.as_bytes()), Some(Secret(key)), "{text:?}");
        }
        assert_eq!(Secret::parse(&key), Some(Secret(key)));
        let signed = format!("+{}", &digits[1..]);
        for other in
            ["", "f0", &digits[1..], &format!("{digits}0"), &format!("{digits}\n\n"), &signed]
        {
            assert_eq!(Secret::parse(other.as_bytes()), None, "{other:?}");
        }
    }

    #[test]
    fn rapidhash_equals_its_crate() {
        for (seed, bytes) in [(0, &b""[..]), (0, b"hello"), (7, b"https://example.org/a?b=c")] {
            let expect = rapidhash::v3::rapidhash_v3_seeded(bytes, &RapidSecrets::seed_cpp(seed));
            assert_eq!(HashSpec::rapid(seed).hash(bytes), expect);
        }
    }

    #[test]
    fn siphash_equals_published_vectors() {
        // The first vectors of the standard library's SipHash-1-3 tests, key 00..0f.
        let key: [u8; 16] = core::array::from_fn(|i| i as u8);
        let expect: [u64; 3] =
            [0xabac_0158_050f_c4dc, 0xc9f4_9bf3_7d57_ca93, 0x82cb_9b02_4dc7_d44d];
        for (length, expect) in expect.into_iter().enumerate() {
            let message: Vec<u8> = (0..length as u8).collect();
            assert_eq!(HashSpec::keyed(key).hash(&message), expect, "{length}");
        }
    }

    #[test]
    fn hash_and_seed_of_a_file_are_checked() {
        let mut seed = [0; 16];
        assert!(HashSpec::from_file(1, seed).is_ok() && HashSpec::from_file(2, [9; 16]).is_ok());
        seed[8] = 1;
        assert!(HashSpec::from_file(1, seed).unwrap_err().is_invalid());
        assert!(HashSpec::from_file(5, [9; 16]).unwrap() == HashSpec::rapid_keyed([9; 16]));
        // 3 and 4 were hashes of 128 bits.
        for unknown in [0, 3, 4, 7] {
            assert!(HashSpec::from_file(unknown, [0; 16]).unwrap_err().is_invalid());
        }
    }

    #[test]
    fn file_of_a_secret_apart_needs_that_secret() {
        let secret = Secret::new(core::array::from_fn(|i| i as u8));
        let spec = HashSpec::keyed_apart(&secret);
        assert_eq!(spec.hash(b""), HashSpec::keyed(secret.0).hash(b""));
        assert_ne!(spec, HashSpec::keyed(secret.0));
        let locked = HashSpec::from_file(spec.id(), spec.seed()).unwrap();
        assert!(locked.unlocked(Some(&secret)).unwrap() == spec);
        let missing = locked.unlocked(None).unwrap_err();
        let wrong = locked.unlocked(Some(&Secret::new([9; 16]))).unwrap_err();
        assert!(missing.is_secret_missing() && !wrong.is_secret_missing());
        assert!(missing.is_secret() && wrong.is_secret());
        assert!(HashSpec::default().unlocked(Some(&secret)).unwrap().is_default());
        let mut seed = spec.seed();
        seed[15] = 1;
        assert!(HashSpec::from_file(6, seed).unwrap_err().is_invalid());
        for shown in [format!("{secret:?}"), format!("{spec:?}"), format!("{locked:?}")] {
            assert!(!shown.contains("0100") && !shown.contains("0001"), "{shown}");
        }
    }

    #[test]
    fn hash_all_equals_single_hashes() {
        let text = [7u8; 200];
        let apart = HashSpec::keyed_apart(&Secret::new([5; 16]));
        for hash in
            [HashSpec::rapid(3), HashSpec::keyed([5; 16]), HashSpec::rapid_keyed([5; 16]), apart]
        {
            let mut hashes = vec![1];
            hash.hash_all((0..200).map(|length| &text[..length]), &mut hashes);
            assert!((0..200).all(|length| hashes[length + 1] == hash.hash(&text[..length])));
            let word =
                hash.word_hasher().map_or(hashes[9], |of_word| of_word(0x0707_0707_0707_0707));
            assert_eq!(word, hashes[9]);
        }
    }

    #[test]
    fn seed_changes_the_hash_and_debug_hides_the_key() {
        assert_ne!(HashSpec::rapid(1).hash(b"x"), HashSpec::rapid(2).hash(b"x"));
        for keyed in [HashSpec::keyed, HashSpec::rapid_keyed] {
            assert_ne!(keyed([1; 16]).hash(b"x"), keyed([2; 16]).hash(b"x"));
            let shown = format!("{:?}", keyed([0xab; 16]));
            assert!(!shown.contains("abab") && !shown.contains("171"), "{shown}");
        }
    }

    /// Every bit of the key changes the seed and each secret; no two secrets are equal.
    #[test]
    fn every_secret_depends_on_the_whole_key() {
        let key = 0x0f1e_2d3c_4b5a_6978_8796_a5b4_c3d2_e1f0_u128;
        let all = |key: u128| {
            let RapidSecrets { seed, secrets } = keyed_secrets(key as u64, (key >> 64) as u64);
            let [a, b, c, d, e, f, g] = secrets;
            [seed, a, b, c, d, e, f, g]
        };
        let of_key = all(key);
        for bit in 0..128 {
            let changed = all(key ^ (1 << bit));
            for (number, secret) in of_key.into_iter().enumerate() {
                let flipped = (secret ^ changed[number]).count_ones();
                assert!((8..=56).contains(&flipped), "secret {number}, bit {bit}: {flipped}");
                assert!(!of_key[..number].contains(&secret));
            }
        }
    }
}
