//! Estimates from the state of a filter: the number of its keys, and whether it holds too many.

/// Returns the number of distinct keys in a filter, from the share of its bits that are zero:
/// n = ln(zero) / ln(1 - p). `bit_probability` is p, the probability that one key sets a given bit
/// (1/N · k/L · 1/64 if blocked, about k/m if classic). Infinite if no bit is zero.
///
/// Source: Swamidass & Baldi 2007 for classic filters. The formula holds for blocked filters too,
/// because each bit is zero with probability (1 - p)ⁿ whatever its neighbours are. With t = n · p
/// the relative standard error is about √((eᵗ - t - 1)/m) / t (Whang, Vander-Zanden & Taylor
/// 1990): 0.8 % if 10,000 bits are half set, and less in larger filters. It grows quickly when few
/// bits are zero: 2.1 % if 1 % of 10,000 bits are.
#[must_use]
pub fn cardinality(zero_share: f64, bit_probability: f64) -> f64 {
    if zero_share >= 1.0 {
        return 0.0;
    }
    // Not by the formula, which is NaN for a filter of one bit.
    if zero_share <= 0.0 {
        return f64::INFINITY;
    }
    zero_share.ln() / (-bit_probability).ln_1p()
}

/// Returns whether the rate of a filter of `bits` bits is above its target by more than chance.
///
/// The tolerance is 2 %, for the error of an estimate, plus 20/√m: about three standard deviations
/// of the rate of a filter at its capacity, for ten probes or fewer.
#[must_use]
pub fn is_overfull(target_fpr: f64, fpr: f64, bits: u64) -> bool {
    target_fpr > 0.0 && fpr > target_fpr * (1.02 + 20.0 / (bits as f64).sqrt())
}

#[cfg(not(feature = "std"))]
use crate::no_std::*;
#[cfg(test)]
mod tests {
    use super::cardinality;

    #[test]
    fn cardinality_from_the_share_of_zero_bits() {
        assert!((cardinality((-0.5f64).exp(), 1e-6) / 500_000.0 - 1.0).abs() < 1e-5);
        assert_eq!(cardinality(1.0, 1e-6), 0.0);
        assert!(cardinality(0.0, 1e-6).is_infinite() && cardinality(0.0, 1.0).is_infinite());
    }
}
