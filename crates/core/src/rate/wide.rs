//! The arithmetic of filters on both words of a 128-bit hash.
//!
//! Two blocked filters of equal shape, one on each word. A query is answered *yes* if both say so.
//! The words are independent, so are the bits of the two filters, and so are the two words of the
//! query: the rate is the product of both rates, exactly, each with the floor of its own word. That
//! the words of one query may collide with those of two different keys is part of it: the floor of
//! the pair is (n/2⁶⁴)², not n/2¹²⁸.
//!
//! Equal parts are best where the bits that a key needs are convex in the logarithm of the rate,
//! as they are for blocks from one number of lanes.

use super::{blocked, either, hash_floor};

/// The false-positive rate of a pair of blocked filters, one on each word of the hash, with
/// `keys` in each; both floors included.
///
/// # Panics
/// As [`blocked`].
#[must_use]
pub fn wide(keys: u64, blocks: u64, lanes: u32, probes: u32) -> f64 {
    either(blocked(keys, blocks, lanes, probes), hash_floor(keys)).powi(2)
}

/// The rate that such a pair cannot go below: (1 - (1 - 2⁻⁶⁴)^n)² ≈ (n/2⁶⁴)².
#[must_use]
pub fn wide_floor(keys: u64) -> f64 {
    hash_floor(keys).powi(2)
}

/// What each filter of a pair is to keep, so that both together keep `rate`.
#[must_use]
pub fn wide_half(rate: f64) -> f64 {
    rate.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_floors_are_in_it() {
        for keys in [1u64, 1000, 10_000_000_000, 1 << 60] {
            let floor = (keys as f64 / 2f64.powi(64)).powi(2);
            let relative = wide_floor(keys) / floor - 1.0;
            assert!(relative.abs() < 1e-9 || keys == 1 << 60, "{keys} {relative}");
            // As many blocks as there can be: nothing but the floor is left.
            assert!(wide(keys, 1 << 50, 16, 16) >= wide_floor(keys));
        }
        assert!((wide_floor(10_000_000_000) / 2.94e-19 - 1.0).abs() < 0.01);
        assert!((wide_half(1e-12) - 1e-6).abs() < 1e-18);
    }

    /// Words of 10 bits: the chance that both words of a query are those of some keys, by counting
    /// over all queries.
    #[test]
    fn words_collide_one_by_one() {
        const WORDS: u64 = 1 << 10;
        let (keys, mut sum, trials) = (300u64, 0.0, 200);
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(0xf135_7aea_2e62_a9c5).wrapping_add(1);
            state >> 54
        };
        for _ in 0..trials {
            let (mut low, mut high) = (vec![false; 1 << 10], vec![false; 1 << 10]);
            for _ in 0..keys {
                low[next() as usize] = true;
                high[next() as usize] = true;
            }
            let share =
                |words: &[bool]| words.iter().filter(|word| **word).count() as f64 / WORDS as f64;
            sum += share(&low) * share(&high) / f64::from(trials);
        }
        let expect = (1.0 - (1.0 - 1.0 / WORDS as f64).powi(keys as i32)).powi(2);
        assert!((sum / expect - 1.0).abs() < 0.01, "{sum} {expect}");
    }

    #[test]
    fn a_pair_is_the_product() {
        let half = either(blocked(1_000_000, 40_000, 16, 16), hash_floor(1_000_000));
        assert_eq!(wide(1_000_000, 40_000, 16, 16), half * half);
    }
}
