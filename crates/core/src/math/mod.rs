//! The mathematics of false positives: pure functions, each with its source and range.
//!
//! Symbols in this module: `n` keys, `m` bits, `k` probes (bits that a key sets), ε the
//! false-positive rate, `N` blocks, `L` lanes of 64 bits in a block.
//!
//! Each layout has its own formula:
//!
//! * **classic**: k positions anywhere in m bits ([`classic_fpr`]);
//! * **blocked, k = L**: one bit in each lane of one block ([`blocked_fpr`]);
//! * **blocked, k < L**: one bit in each of k neighbouring lanes, starting at a lane that the key
//!   selects ([`blocked_fpr`]).
//!
//! The number of keys in a block is binomial, so a blocked filter has a higher rate than a classic
//! filter of the same size. The textbook formula ignores this; do not use it for blocked filters.
//!
//! A filter on 64-bit hashes cannot distinguish two keys with equal hashes. This is a lower bound
//! for every rate ([`hash_floor`]).

mod blocked;
mod classic;
mod estimates;
#[cfg(test)]
mod evaluations;
mod fingerprint_pairs;
mod fingerprints;
mod layers;
mod overlap;
mod probability;
mod saturation;
mod static_filter;

pub(crate) use blocked::ALTERNATING_FLOOR;
pub(crate) use blocked::approximate_blocked_fpr;
pub use blocked::blocked_fpr;
pub(crate) use classic::approximate_classic_fpr;
pub(crate) use classic::classic_bits;
pub use classic::{classic_fpr, optimal_probes, textbook_fpr};
pub(crate) use classic::{half_full_bits, half_full_capacity};
pub use estimates::{cardinality, is_overfull};
#[cfg(test)]
pub(crate) use evaluations::EVALUATIONS;
pub(crate) use fingerprint_pairs::fingerprint_pair_fpr;
pub(crate) use fingerprints::{collision_probability, distinct_keys, fingerprint_fpr};
pub(crate) use layers::expected_insertions;
pub(crate) use layers::growth_layer_share;
pub use layers::{generation_fpr, layer_share};
pub use overlap::{Estimate, Overlap};
pub(crate) use overlap::{blocked_standard_error, classic_standard_error, overlap};
pub(crate) use probability::Approximate;
pub(crate) use probability::probability_of_any;
pub use probability::{hash_floor, probability_of_either};
pub(crate) use saturation::saturated_share_after;
pub use static_filter::information_bits;
pub(crate) use static_filter::{static_columns, static_fpr};

#[cfg(test)]
mod tests {
    use super::*;

    /// NaN causes no panic or infinite loop.
    #[test]
    fn math_functions_accept_nan() {
        let nan = f64::NAN;
        assert_eq!(optimal_probes(nan), 1);
        assert!(classic_bits(1, nan).is_nan());
        assert!(cardinality(nan, nan).is_nan() && probability_of_either(nan, 0.5).is_nan());
        assert!(!is_overfull(nan, 0.5, 64) && !is_overfull(0.5, nan, 64));
        assert!(generation_fpr(nan, 3).is_nan() && probability_of_any([nan]).is_nan());
        assert!(expected_insertions(10, |_| f64::NAN).is_infinite());
        assert!(saturation::saturated_share(nan, 8) == 0.0 && layer_share(u32::MAX) < 1e-300);
        for error in [classic_standard_error(nan, 100, 3), blocked_standard_error(nan, 9, 8, 8)] {
            assert!(error.is_nan() || error >= 0.0);
        }
        assert!(overlap([nan; 3], |_| 1.0).intersection.error.is_infinite());
        for probes in [65, 255, u32::MAX] {
            assert!((0.0..=1.0).contains(&classic_fpr(3, 64, probes)));
        }
    }
}
