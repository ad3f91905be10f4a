//! A uniform sample of distinct hashes, of bounded size, from any number of hashes with repeats.
//!
//! A hash belongs to the sample if its mixed bits begin with `depth` zeros. When the sample is full,
//! `depth` grows by one and about half of the hashes are removed. Every distinct hash is in the
//! sample with probability 2^-depth, independent of its repeats. The number of distinct hashes is
//! about (size of the sample) * 2^depth, with a standard error of 1.20 / sqrt(maximum size).
//!
//! Source: Flajolet, "On adaptive sampling", Computing 43 (1990).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A sample of hashes, each with a number.
pub(crate) struct HashSample {
    hashes: HashMap<u64, f64, BuildHasherDefault<IdentityHasher>>,
    depth: u32,
    max: usize,
}

/// Maximum memory of a hash in bytes: two tables exist while one grows.
const HASH_BYTES: u64 = 64;
const MIN_HASHES: u64 = 1 << 10;
/// A standard error of one per cent; a larger sample takes more time.
const MAX_HASHES: u64 = 1 << 14;

/// The identity: the values are hashes already.
#[derive(Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0.rotate_left(8) ^ u64::from(byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Returns the maximum depth of samples that contain a hash.
pub(crate) fn depth_of(hash: u64) -> u32 {
    mixed_bits(hash).leading_zeros()
}

/// Returns bits of a hash that are independent of those that filters use: those of the hash and of
/// its products with odd numbers. Different hashes have different bits.
pub(super) fn mixed_bits(hash: u64) -> u64 {
    let mixed = (hash ^ (hash >> 31)).wrapping_mul(0x7fb5_d329_728e_a185);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x81da_def4_bc2d_d44d);
    mixed ^ (mixed >> 33)
}

impl HashSample {
    /// An empty sample within `bytes` of memory, with an initial depth.
    pub(crate) fn new(bytes: u64, depth: u32) -> Self {
        let max = (bytes / HASH_BYTES).clamp(MIN_HASHES, MAX_HASHES) as usize;
        Self { hashes: HashMap::default(), depth, max }
    }

    /// An empty sample of at most this number of hashes.
    pub(crate) fn with_max(max: usize) -> Self {
        Self { hashes: HashMap::default(), depth: 0, max }
    }

    /// Returns the number of hashes whose sample fits in `bytes` of memory.
    pub(crate) fn hashes_within(bytes: u64) -> u64 {
        bytes / HASH_BYTES
    }

    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    pub(crate) fn len(&self) -> usize {
        self.hashes.len()
    }

    pub(crate) fn contains(&self, hash: u64) -> bool {
        self.hashes.contains_key(&hash)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, f64)> + '_ {
        self.hashes.iter().map(|(&hash, &number)| (hash, number))
    }

    /// Returns the number of hashes that another sample of the same depth contains too.
    pub(crate) fn shared(&self, other: &Self) -> usize {
        self.hashes.keys().filter(|hash| other.hashes.contains_key(hash)).count()
    }

    /// Returns the number of distinct hashes that each hash of the sample represents.
    pub(crate) fn weight(&self) -> f64 {
        f64::from(self.depth).exp2()
    }

    pub(crate) fn insert(&mut self, hash: u64, number: f64) {
        if depth_of(hash) < self.depth {
            return;
        }
        self.hashes.insert(hash, number);
        self.fit();
    }

    /// Adds 1 to the number of a hash, which is 0 before.
    pub(crate) fn add(&mut self, hash: u64) {
        if depth_of(hash) >= self.depth {
            *self.hashes.entry(hash).or_default() += 1.0;
            self.fit();
        }
    }

    fn fit(&mut self) {
        while self.hashes.len() > self.max {
            self.deepen(self.depth + 1);
        }
    }

    /// Raises the depth.
    pub(crate) fn deepen(&mut self, depth: u32) {
        if depth > self.depth {
            self.depth = depth;
            self.hashes.retain(|&hash, _| depth_of(hash) >= depth);
        }
    }

    pub(crate) fn get(&self, hash: u64) -> Option<f64> {
        self.hashes.get(&hash).copied()
    }

    pub(crate) fn remove(&mut self, hash: u64) -> Option<f64> {
        self.hashes.remove(&hash)
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = f64> + '_ {
        self.hashes.values().copied()
    }

    /// Returns the number of distinct hashes and its standard error, which is 0 while the sample
    /// contains all of them.
    pub(crate) fn distinct(&self) -> (f64, f64) {
        let count = self.hashes.len() as f64 * self.weight();
        let error = if self.depth == 0 { 0.0 } else { 1.2 * count / (self.max as f64).sqrt() };
        (count, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use petal_testkit::rng::Rng;

    #[test]
    fn distinct_count_is_within_its_error_for_any_repeats() {
        let mut rng = Rng::new(5);
        for distinct in [0, 1, 1000, 1024, 1025, 100_000] {
            let hashes: Vec<u64> = (0..distinct).map(|_| rng.next_u64()).collect();
            let mut sampled = HashSample::new(0, 0);
            for &hash in hashes.iter().chain(&hashes[..hashes.len() / 3]) {
                sampled.insert(hash, 1.0);
            }
            let (count, error) = sampled.distinct();
            assert!((count - distinct as f64).abs() <= 5.0 * error, "{distinct}: {count} {error}");
            assert_eq!(error == 0.0, distinct <= 1024);
            assert!(sampled.numbers().count() <= 1024);
        }
    }
}
