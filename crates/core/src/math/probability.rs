//! Probabilities of combined events, and of equal hashes.

/// The probability that at least one of two independent events occurs: a + b - ab.
#[must_use]
pub fn probability_of_either(a: f64, b: f64) -> f64 {
    a + b - a * b
}

/// The probability that at least one of several independent events occurs: 1 - Π (1 - pᵢ).
#[must_use]
pub(crate) fn probability_of_any(probabilities: impl IntoIterator<Item = f64>) -> f64 {
    let log_none: f64 = probabilities.into_iter().map(|p| (-p).ln_1p()).sum();
    -log_none.exp_m1()
}

/// The lowest rate of any filter on 64-bit hashes: the probability that the hash of a query equals
/// the hash of some key, 1 - (1 - 2⁻⁶⁴)ⁿ ≈ n/2⁶⁴.
#[must_use]
pub fn hash_floor(keys: u64) -> f64 {
    -(-(keys as f64) / 2f64.powi(64)).exp_m1()
}

/// A rate from a sum with cancellation, and a bound of its error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Approximate {
    pub(crate) fpr: f64,
    pub(crate) error: f64,
}

/// Terms that [`sum_of_powers`] calculates at once.
const TERMS: usize = 8;

/// Returns `start` + Σ weight · base^exponent for bases in [0, 1] with errors of up to 2⁻⁵⁰; the stated
/// error is at least twice what they and the rounding can cause.
///
/// An error δ of a base changes its power by exponent · base^(exponent - 1) · δ, which is far less than
/// exponent · δ for most bases.
///
/// Cost: two multiplications per term and bit of the exponent, in vectors.
pub(super) fn sum_of_powers(
    start: f64,
    terms: impl IntoIterator<Item = (f64, f64)>,
    exponent: u64,
) -> Approximate {
    let mut terms = terms.into_iter();
    let (mut sum, mut size) = (start, start.abs());
    loop {
        let (mut weights, mut bases, mut powers) = ([0.0; TERMS], [0.0; TERMS], [1.0; TERMS]);
        let mut count = 0;
        for (at, (weight, base)) in terms.by_ref().take(TERMS).enumerate() {
            (weights[at], bases[at]) = (weight, base);
            count += 1;
        }
        if count == 0 {
            let error = 8.0 * size * (exponent as f64 + 1.0) * 2f64.powi(-50);
            return Approximate { fpr: sum, error };
        }
        let last = if exponent == 0 { [1.0; TERMS] } else { bases };
        // Powers of one less.
        let mut left = exponent.saturating_sub(1);
        while left > 0 {
            if left & 1 == 1 {
                powers.iter_mut().zip(bases).for_each(|(power, base)| *power *= base);
            }
            bases.iter_mut().for_each(|base| *base *= *base);
            left >>= 1;
        }
        for ((weight, power), base) in weights.into_iter().zip(powers).zip(last) {
            sum += weight * (power * base);
            size += weight.abs() * power;
        }
    }
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
