//! The Java sample that many articles print, rebuilt as it stands.
//!
//! `DEFAULT_SIZE = 2 << 24`, a `BitSet` of that size, the seeds 5, 7, 11, 13, 31, 37 and 61, and for each of them a
//! `SimpleHash` with the method
//!
//! ```java
//! public int hash(String value) {
//!     int result = 0;
//!     int len = value.length();
//!     for (int i = 0; i < len; i++) {
//!         result = seed * result + value.charAt(i);
//!     }
//!     return (cap - 1) & result;
//! }
//! ```
//!
//! `add` sets the seven bits, `contains` looks at them. The comment in the sample says 2^24 bits; `2 << 24` is 2^25.

use super::SeenSet;

/// The seeds of the sample.
pub const SEEDS: [i32; 7] = [5, 7, 11, 13, 31, 37, 61];
/// `2 << 24`, the size in the sample's code.
pub const DEFAULT_SIZE: i32 = 2 << 24;
/// The size in the sample's comment.
pub const SIZE_IN_COMMENT: i32 = 1 << 24;

/// The sample's filter.
pub struct JavaSample {
    bits: Vec<u64>,
    cap: i32,
}

impl Default for JavaSample {
    fn default() -> Self {
        Self::with_cap(DEFAULT_SIZE)
    }
}

impl JavaSample {
    /// The filter with another number of bits, a power of two.
    pub fn with_cap(cap: i32) -> Self {
        Self { bits: vec![0; (cap as usize).div_ceil(64)], cap }
    }

    /// `SimpleHash.hash`. Java's `int` wraps; `charAt` is a UTF-16 unit.
    pub fn hash(&self, seed: i32, value: &str) -> i32 {
        let result = value
            .encode_utf16()
            .fold(0_i32, |result, unit| seed.wrapping_mul(result).wrapping_add(i32::from(unit)));
        (self.cap - 1) & result
    }

    /// Returns whether the bit of one hash is set.
    pub fn has_bit(&self, seed: i32, value: &str) -> bool {
        let bit = self.hash(seed, value) as usize;
        self.bits[bit / 64] >> (bit % 64) & 1 == 1
    }

    /// `add`.
    pub fn add(&mut self, value: &str) {
        for seed in SEEDS {
            let bit = self.hash(seed, value) as usize;
            self.bits[bit / 64] |= 1 << (bit % 64);
        }
    }

    /// `contains`. As `ret = ret && bits.get(f.hash(value))` in the sample, it stops at the first bit that is 0.
    pub fn has(&self, value: &str) -> bool {
        SEEDS.iter().all(|&seed| self.has_bit(seed, value))
    }
}

impl SeenSet for JavaSample {
    fn insert(&mut self, urls: &[&str]) -> Result<(), String> {
        urls.iter().for_each(|url| self.add(url));
        Ok(())
    }

    fn contains(&mut self, urls: &[&str], found: &mut Vec<bool>) -> Result<(), String> {
        found.extend(urls.iter().map(|url| self.has(url)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `String.hashCode` is the same polynomial with the seed 31, whose values for these texts are well known.
    #[test]
    fn the_hash_with_seed_31_is_that_of_java_strings() {
        let sample = JavaSample::default();
        assert_eq!(sample.hash(31, "hello"), 99_162_322 & (DEFAULT_SIZE - 1));
        // "polygenelubricants" has Integer.MIN_VALUE: it wraps.
        assert_eq!(sample.hash(31, "polygenelubricants"), 0);
        assert_eq!(DEFAULT_SIZE, 1 << 25);
    }
}
