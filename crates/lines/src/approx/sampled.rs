//! A uniform sample of distinct keys, of bounded size, from any number of keys with any repeats.
//!
//! A key belongs to the sample if its mixed bits begin with `depth` zeros. When the sample is full,
//! `depth` grows by one and about half of the keys leave. So every distinct key is in it with
//! probability 2^-depth, however often it comes, and the number of distinct keys is about
//! (size of the sample) * 2^depth, with a standard error of 1.20 / sqrt(largest size).
//!
//! Source: Flajolet, "On adaptive sampling", Computing 43 (1990).

use std::collections::HashMap;

/// Keys of the sample, each with a number.
pub(super) struct Sampled {
    keys: HashMap<u64, f64>,
    depth: u32,
    most: usize,
}

/// Bytes that a key takes at most: while the table grows there are two of it.
const KEY_BYTES: u64 = 64;
const LEAST_KEYS: u64 = 1 << 10;
const MOST_KEYS: u64 = 1 << 20;

/// How deep a key stays in samples.
pub(super) fn depth_of(key: u64) -> u32 {
    // Filters use the bits of the key and its products with odd numbers; these are others.
    let mixed = (key ^ (key >> 31)).wrapping_mul(0x7fb5_d329_728e_a185);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x81da_def4_bc2d_d44d);
    (mixed ^ (mixed >> 33)).leading_zeros()
}

impl Sampled {
    /// An empty sample within this memory, at least this deep.
    pub(super) fn new(bytes: u64, depth: u32) -> Self {
        let most = (bytes / KEY_BYTES).clamp(LEAST_KEYS, MOST_KEYS) as usize;
        Self { keys: HashMap::new(), depth, most }
    }

    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// How many distinct keys each key of the sample stands for.
    pub(super) fn weight(&self) -> f64 {
        f64::from(self.depth).exp2()
    }

    pub(super) fn put(&mut self, key: u64, number: f64) {
        if depth_of(key) < self.depth {
            return;
        }
        self.keys.insert(key, number);
        while self.keys.len() > self.most {
            self.depth += 1;
            let depth = self.depth;
            self.keys.retain(|&key, _| depth_of(key) >= depth);
        }
    }

    pub(super) fn get(&self, key: u64) -> Option<f64> {
        self.keys.get(&key).copied()
    }

    pub(super) fn remove(&mut self, key: u64) -> Option<f64> {
        self.keys.remove(&key)
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = f64> + '_ {
        self.keys.values().copied()
    }

    /// The number of distinct keys, and its standard error: none while all are in the sample.
    pub(super) fn distinct(&self) -> (f64, f64) {
        let count = self.keys.len() as f64 * self.weight();
        let error = if self.depth == 0 { 0.0 } else { 1.2 * count / (self.most as f64).sqrt() };
        (count, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use petal_testkit::rng::Rng;

    #[test]
    fn distinct_keys_are_counted_within_the_error_however_often_they_come() {
        let mut rng = Rng::new(5);
        for distinct in [0, 1, 1000, 1024, 1025, 100_000] {
            let keys: Vec<u64> = (0..distinct).map(|_| rng.next_u64()).collect();
            let mut sampled = Sampled::new(0, 0);
            for &key in keys.iter().chain(&keys[..keys.len() / 3]) {
                sampled.put(key, 1.0);
            }
            let (count, error) = sampled.distinct();
            assert!((count - distinct as f64).abs() <= 5.0 * error, "{distinct}: {count} {error}");
            assert_eq!(error == 0.0, distinct <= 1024);
            assert!(sampled.numbers().count() <= 1024);
        }
    }
}
