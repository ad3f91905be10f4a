//! The rate of a filter of fingerprints: n keys, R fingerprints.
//!
//! A hash h becomes the fingerprint ⌊h · R / 2⁶⁴⌋. A query errs if some key has its fingerprint;
//! keys with equal hashes are among those, so that the floor set by the hash is in it.

/// The false-positive rate with `keys` distinct keys among `fingerprints`: 1 - (1 - c)ⁿ, where c
/// is the chance that two hashes have one fingerprint, at most 1/R + R/2¹³⁰.
///
/// The second term is what it makes that 2⁶⁴ hashes cannot be shared out evenly: with a = 2⁶⁴/R
/// and f the fraction of a, c = (a² + f·(1-f)) · R/2¹²⁸ (each fingerprint has ⌊a⌋ hashes or one
/// more), and f·(1-f) is at most 1/4.
/// Source: Bender et al. 2012, "Don't thrash: how to cache your hash on flash", with equality
/// where they have a bound.
#[must_use]
pub fn fingerprints(keys: u64, fingerprints: u64) -> f64 {
    if keys == 0 {
        return 0.0;
    }
    -(keys as f64 * (-alike(fingerprints)).ln_1p()).exp_m1()
}

/// The chance that two hashes have one fingerprint, of so many: [`fingerprints`] for one key.
#[must_use]
pub fn alike(fingerprints: u64) -> f64 {
    let range = fingerprints.max(1) as f64;
    (1.0 / range + range / 2f64.powi(130)).min(1.0)
}

/// The number of distinct keys behind so many distinct fingerprints of all that there are:
/// n = ln(1 - d/R) / ln(1 - 1/R). Infinite when all are there.
///
/// The occupancy problem, as [`cardinality`](super::cardinality) with one bit a key. The relative
/// standard error is about √(d/2) / R for d far below R, which is next to nothing.
#[must_use]
pub fn keys_behind(distinct: u64, fingerprints: u64) -> f64 {
    let range = fingerprints.max(1) as f64;
    if distinct == 0 || distinct >= fingerprints {
        return if distinct == 0 { 0.0 } else { f64::INFINITY };
    }
    (-(distinct as f64) / range).ln_1p() / (-1.0 / range).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_literature_and_the_inverse() {
        // Load 0.95 and 8 bits: 1 - exp(-0.95/256).
        let rate = fingerprints(950_000, 256_000_000);
        assert!((rate - (1.0 - (-0.95f64 / 256.0).exp())).abs() < 1e-9, "{rate}");
        for (keys, range) in [(1, 1000u64), (500, 1000), (1_000_000, 1 << 30), (10, 1 << 62)] {
            // So many fingerprints are there in the mean.
            let distinct = fingerprints(keys, range) * range as f64;
            let again = keys_behind(distinct.round() as u64, range);
            assert!((again - keys as f64).abs() <= 2.0, "{keys} {range}: {again}");
        }
        assert_eq!(keys_behind(0, 5), 0.0);
        assert!(keys_behind(5, 5).is_infinite());
    }

    /// All hashes of a small world, shared out among fingerprints.
    #[test]
    fn uneven_shares_are_counted() {
        let hashes = 1u64 << 10;
        for range in 1..=hashes / 2 {
            let mut shares = vec![0u64; range as usize];
            (0..hashes).for_each(|hash| shares[(hash * range / hashes) as usize] += 1);
            let pairs: u64 = shares.iter().map(|share| share * share).sum();
            let chance = pairs as f64 / (hashes * hashes) as f64;
            let (range, hashes) = (range as f64, hashes as f64);
            let bound = 1.0 / range + range / (hashes * hashes * 4.0);
            assert!(chance <= bound * (1.0 + 1e-12), "{range}: {chance} {bound}");
        }
    }

    #[test]
    fn extremes_stay_probabilities() {
        for keys in [0, 1, u64::MAX] {
            for range in [0, 1, 2, 1 << 63] {
                assert!((0.0..=1.0).contains(&fingerprints(keys, range)), "{keys} {range}");
            }
        }
    }
}
