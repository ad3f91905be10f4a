//! The rate of a filter that stores fingerprints: n keys, R possible fingerprints.
//!
//! The fingerprint of a hash h is ⌊h · R / 2⁶⁴⌋. A query is a false positive if some key has its
//! fingerprint. This includes keys with an equal hash, so no separate hash floor is needed.

/// Returns the false-positive rate with `keys` distinct keys and `fingerprints` possible
/// fingerprints: 1 - (1 - c)ⁿ, where c is [`collision_probability`].
///
/// Source: Bender et al. 2012, "Don't thrash: how to cache your hash on flash", with equality
/// in place of their bound.
#[must_use]
pub(crate) fn fingerprint_fpr(keys: u64, fingerprints: u64) -> f64 {
    if keys == 0 {
        return 0.0;
    }
    -(keys as f64 * (-collision_probability(fingerprints)).ln_1p()).exp_m1()
}

/// Returns an upper bound for the probability that two hashes have the same fingerprint:
/// 1/R + R/2¹³⁰.
///
/// The second term is there because 2⁶⁴ hashes cannot be divided evenly. With a = 2⁶⁴/R and f the
/// fraction of a, each fingerprint has ⌊a⌋ hashes or one more, so the probability is
/// (a² + f·(1-f)) · R/2¹²⁸, and f·(1-f) is at most 1/4.
#[must_use]
pub(crate) fn collision_probability(fingerprints: u64) -> f64 {
    let range = fingerprints.max(1) as f64;
    (1.0 / range + range / 2f64.powi(130)).min(1.0)
}

/// Returns the estimated number of distinct keys of a filter that contains `distinct` of
/// `fingerprints` possible fingerprints: n = ln(1 - d/R) / ln(1 - 1/R). Infinite if it contains all.
///
/// This is the occupancy problem, as in [`cardinality`](super::cardinality) with one bit a key. The
/// relative standard error is about √(d/2) / R for d far below R, which is negligible.
#[must_use]
pub(crate) fn distinct_keys(distinct: u64, fingerprints: u64) -> f64 {
    let range = fingerprints.max(1) as f64;
    if distinct == 0 || distinct >= fingerprints {
        return if distinct == 0 { 0.0 } else { f64::INFINITY };
    }
    (-(distinct as f64) / range).ln_1p() / (-1.0 / range).ln_1p()
}

#[cfg(not(feature = "std"))]
use crate::no_std::*;
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_rate_and_inverse() {
        // Load 0.95 and 8 bits: 1 - exp(-0.95/256).
        let fpr = fingerprint_fpr(950_000, 256_000_000);
        assert!((fpr - (1.0 - (-0.95f64 / 256.0).exp())).abs() < 1e-9, "{fpr}");
        for (keys, range) in [(1, 1000u64), (500, 1000), (1_000_000, 1 << 30), (10, 1 << 62)] {
            let mean_distinct = fingerprint_fpr(keys, range) * range as f64;
            let estimate = distinct_keys(mean_distinct.round() as u64, range);
            assert!((estimate - keys as f64).abs() <= 2.0, "{keys} {range}: {estimate}");
        }
        assert_eq!(distinct_keys(0, 5), 0.0);
        assert!(distinct_keys(5, 5).is_infinite());
    }

    /// Counts all pairs of 10-bit hashes.
    #[test]
    fn bound_holds_for_uneven_shares() {
        let hashes = 1u64 << 10;
        for range in 1..=hashes / 2 {
            let mut shares = vec![0u64; range as usize];
            (0..hashes).for_each(|hash| shares[(hash * range / hashes) as usize] += 1);
            let pairs: u64 = shares.iter().map(|share| share * share).sum();
            let probability = pairs as f64 / (hashes * hashes) as f64;
            let (range, hashes) = (range as f64, hashes as f64);
            let bound = 1.0 / range + range / (hashes * hashes * 4.0);
            assert!(probability <= bound * (1.0 + 1e-12), "{range}: {probability} {bound}");
        }
    }

    #[test]
    fn extreme_arguments_give_probabilities() {
        for keys in [0, 1, u64::MAX] {
            for range in [0, 1, 2, 1 << 63] {
                assert!((0.0..=1.0).contains(&fingerprint_fpr(keys, range)), "{keys} {range}");
            }
        }
    }
}
