//! The bit arrays of the articles: a bitmap with one hash, and the textbook Bloom filter with k hash functions.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::SeenSet;

/// A Bloom filter as textbooks have it: m bits anywhere in one array, and k independent hash functions (XXH3 with
/// k seeds). With k = 1 it is a bitmap.
pub struct Textbook {
    words: Vec<u64>,
    bits: u64,
    probes: u32,
}

impl Textbook {
    /// A filter of m bits with k hash functions.
    pub fn new(bits: u64, probes: u32) -> Self {
        Self { words: vec![0; bits.div_ceil(64) as usize], bits: bits.max(1), probes }
    }

    /// A filter with a number of bits for each key.
    pub fn with_bits_per_key(keys: u64, bits_per_key: f64, probes: u32) -> Self {
        Self::new((keys as f64 * bits_per_key).round() as u64, probes)
    }

    /// The bit of a URL for one hash function: the word, and the bit in it.
    fn position(&self, url: &str, number: u32) -> (usize, u64) {
        let hash = xxh3_64_with_seed(url.as_bytes(), u64::from(number));
        let bit = ((u128::from(hash) * u128::from(self.bits)) >> 64) as u64;
        ((bit / 64) as usize, 1 << (bit % 64))
    }

    /// Adds a URL.
    pub fn add(&mut self, url: &str) {
        for number in 0..self.probes {
            let (word, bit) = self.position(url, number);
            self.words[word] |= bit;
        }
    }

    /// Returns true if all bits of a URL are set.
    pub fn has(&self, url: &str) -> bool {
        (0..self.probes).all(|number| {
            let (word, bit) = self.position(url, number);
            self.words[word] & bit != 0
        })
    }
}

impl SeenSet for Textbook {
    fn insert(&mut self, urls: &[&str]) -> Result<(), String> {
        urls.iter().for_each(|url| self.add(url));
        Ok(())
    }

    fn contains(&mut self, urls: &[&str], found: &mut Vec<bool>) -> Result<(), String> {
        found.extend(urls.iter().map(|url| self.has(url)));
        Ok(())
    }
}
