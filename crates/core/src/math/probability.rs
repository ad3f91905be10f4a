//! Probabilities of combined events, and of equal hashes.

/// The probability that at least one of two independent events occurs: a + b - ab.
#[must_use]
pub fn probability_of_either(a: f64, b: f64) -> f64 {
    a + b - a * b
}

/// The probability that at least one of several independent events occurs: 1 - Π (1 - pᵢ).
#[must_use]
pub fn probability_of_any(probabilities: impl IntoIterator<Item = f64>) -> f64 {
    let log_none: f64 = probabilities.into_iter().map(|p| (-p).ln_1p()).sum();
    -log_none.exp_m1()
}

/// The lowest rate of any filter on 64-bit hashes: the probability that the hash of a query equals
/// the hash of some key, 1 - (1 - 2⁻⁶⁴)ⁿ ≈ n/2⁶⁴.
#[must_use]
pub fn hash_floor(keys: u64) -> f64 {
    -(-(keys as f64) / 2f64.powi(64)).exp_m1()
}

#[cfg(not(feature = "std"))]
use crate::no_std::*;
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_probabilities() {
        assert!((probability_of_either(0.5, 0.5) - 0.75).abs() < 1e-12);
        assert_eq!(probability_of_any([0.5, 0.5]), 0.75);
        assert_eq!(probability_of_any([]), 0.0);
        assert!((hash_floor(500_000_000) / 2.7e-11 - 1.0).abs() < 0.01);
        assert!((hash_floor(1_000_000_000_000) / 5.4e-8 - 1.0).abs() < 0.01);
    }
}
