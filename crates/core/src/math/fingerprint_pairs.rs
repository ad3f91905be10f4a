//! The rate of a filter that looks for a fingerprint in two blocks.

use super::collision_probability;

/// Returns the false-positive rate with `keys` distinct keys, `fingerprints` possible fingerprints in
/// all blocks together, and pairs of blocks in regions of `region` blocks:
/// 1 - (1 - (2 - 1/L) · c)ⁿ, where c is [`collision_probability`] and L is `region`.
///
/// A query is a false positive if some key has its pair of blocks and its fingerprint in a block. That
/// key's first block is one of the pair, with probability c for each of both. The two blocks of a
/// region add up to a number modulo L that the fingerprint determines, so they are the same block for
/// 1/L of all keys. This does not depend on which of its two blocks has a key.
///
/// Source: Pandey et al. 2021, "Vector quotient filters", section 5, with equality in place of their
/// bound.
#[must_use]
pub(crate) fn fingerprint_pair_fpr(keys: u64, fingerprints: u64, region: u64) -> f64 {
    if keys == 0 {
        return 0.0;
    }
    let blocks = 2.0 - 1.0 / region.max(1) as f64;
    let collision = (blocks * collision_probability(fingerprints)).min(1.0);
    -(keys as f64 * (-collision).ln_1p()).exp_m1()
}

#[cfg(not(feature = "std"))]
use crate::no_std::*;
#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::fingerprint_fpr;

    #[test]
    fn known_rates() {
        // 8-bit tags, 80 buckets and 45 keys a block: two blocks of 45/80 keys a bucket.
        let fpr = fingerprint_pair_fpr(45_000, 1000 * 80 * 256, 1000);
        assert!((fpr / (2.0 * 45.0 / 80.0 / 256.0) - 1.0).abs() < 0.01, "{fpr}");
        assert_eq!(fingerprint_pair_fpr(10, 1000, 1), fingerprint_fpr(10, 1000));
        assert_eq!(fingerprint_pair_fpr(0, 1000, 10), 0.0);
    }

    /// Counts the blocks of all pairs.
    #[test]
    fn share_of_pairs_of_one_block() {
        for region in [1u64, 2, 3, 10, 11] {
            let pairs = (0..region).flat_map(|sum| (0..region).map(move |block| (sum, block)));
            let same = pairs.filter(|(sum, block)| (sum + region - block) % region == *block);
            assert_eq!(same.count() as u64, region, "1/L of L² pairs");
        }
    }
}
