//! The rate of wide filters: two blocked filters of the same layout, one on each word of a 128-bit
//! hash.
//!
//! A query returns true if both filters contain it. The words of a hash are independent, so the
//! rate is exactly the product of both rates, each with the hash floor of its word. The two words
//! of a query may collide with those of two different keys, so the floor of the pair is (n/2⁶⁴)²,
//! not n/2¹²⁸.
//!
//! Equal rates for both filters need the least space if the bits per key are convex in the
//! logarithm of the rate, which holds for blocks with the same number of lanes.

use super::{blocked::blocked_fpr, probability::hash_floor, probability::probability_of_either};
#[cfg(not(feature = "std"))]
use crate::no_std::*;

/// Returns the false-positive rate of a pair of blocked filters with `keys` keys, one filter on
/// each word of the hash, including both hash floors.
///
/// # Panics
/// As [`blocked_fpr`].
#[must_use]
pub fn wide_fpr(keys: u64, blocks: u64, lanes: u32, probes: u32) -> f64 {
    probability_of_either(blocked_fpr(keys, blocks, lanes, probes), hash_floor(keys)).powi(2)
}

/// Returns the lowest rate of such a pair: (1 - (1 - 2⁻⁶⁴)ⁿ)² ≈ (n/2⁶⁴)².
#[must_use]
pub fn wide_floor(keys: u64) -> f64 {
    hash_floor(keys).powi(2)
}

/// Returns the rate of each filter of a pair whose combined rate is `fpr`.
#[must_use]
pub fn wide_part_fpr(fpr: f64) -> f64 {
    fpr.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_includes_both_floors() {
        for keys in [1u64, 1000, 10_000_000_000, 1 << 60] {
            let floor = (keys as f64 / 2f64.powi(64)).powi(2);
            let relative = wide_floor(keys) / floor - 1.0;
            assert!(relative.abs() < 1e-9 || keys == 1 << 60, "{keys} {relative}");
            // With the maximum number of blocks only the floor remains.
            assert!(wide_fpr(keys, 1 << 50, 16, 16) >= wide_floor(keys));
        }
        assert!((wide_floor(10_000_000_000) / 2.94e-19 - 1.0).abs() < 0.01);
        assert!((wide_part_fpr(1e-12) - 1e-6).abs() < 1e-18);
    }

    /// With words of 10 bits, counts the queries of which both words are words of some key.
    #[test]
    fn words_collide_independently() {
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
        let expected = (1.0 - (1.0 - 1.0 / WORDS as f64).powi(keys as i32)).powi(2);
        assert!((sum / expected - 1.0).abs() < 0.01, "{sum} {expected}");
    }

    #[test]
    fn rate_is_the_product_of_both() {
        let part =
            probability_of_either(blocked_fpr(1_000_000, 40_000, 16, 16), hash_floor(1_000_000));
        assert_eq!(wide_fpr(1_000_000, 40_000, 16, 16), part * part);
    }
}
