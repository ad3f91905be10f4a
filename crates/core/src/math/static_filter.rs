//! The rate of static filters, which compare a number of fingerprint bits for each query.
//!
//! Source: Dietzfelbinger & Pagh 2008, "Succinct data structures for retrieval and approximate
//! membership": with b bits per key, an absent key matches with probability 2^-b.

/// Returns the number of bits b to compare for a rate `fpr`, and the share of queries that compare
/// b + 1 bits: ε = 2^-b · (1 - share/2), with a share below 1.
///
/// The mean number of bits, b + share, exceeds log2(1/ε) by at most 0.087 (at ε = 0.72 · 2^-b),
/// which is 2.4 % at a rate of 10 %, 1.2 % at 1 % and 0.4 % at 10⁻⁶.
#[must_use]
pub(crate) fn static_columns(fpr: f64) -> (u32, f64) {
    let bits = (-fpr.log2()).floor().clamp(0.0, 1000.0);
    let share = 2.0 * (1.0 - fpr * bits.exp2());
    if share >= 1.0 {
        // Rounding made the logarithm slightly too small.
        return (bits as u32 + 1, 0.0);
    }
    (bits as u32, share.max(0.0))
}

/// Returns the rate if a share of all queries compares `bits + 1` bits and the others `bits`: the
/// inverse of [`static_columns`].
#[must_use]
pub(crate) fn static_fpr(bits: u32, share: f64) -> f64 {
    (-f64::from(bits)).exp2() * (1.0 - share / 2.0)
}

/// Returns the number of bits per key that no filter with the rate `fpr` can be smaller than, if it
/// works for any set of keys: log2(1/ε).
///
/// Source: Carter, Floyd, Gill, Markowsky & Wegman 1978, "Exact and approximate membership testers".
#[must_use]
pub fn information_bits(fpr: f64) -> f64 {
    -fpr.log2()
}

#[cfg(not(feature = "std"))]
use crate::no_std::*;
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_give_the_rate_and_cost_little() {
        for fpr in [0.9, 0.5, 0.3, 0.25, 0.1, 0.01, 1.0 / 128.0, 1e-3, 1e-6, 3e-10] {
            let (bits, share) = static_columns(fpr);
            assert!((0.0..1.0).contains(&share), "{fpr}: {share}");
            assert!((static_fpr(bits, share) / fpr - 1.0).abs() < 1e-12, "{fpr}");
            let excess = f64::from(bits) + share + fpr.log2();
            assert!((-1e-9..0.087).contains(&excess), "{fpr}: {excess}");
        }
        assert_eq!(static_columns(0.125), (3, 0.0));
    }
}
