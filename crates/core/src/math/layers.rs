//! Rates of filters that consist of several Bloom filters: the layers of a scalable filter, the
//! generations of a windowed filter.
//!
//! A query returns true if any of them contains the key. They hold different keys and are
//! independent, so the rate is 1 - Π (1 - εᵢ), which is at most Σ εᵢ.

/// Returns the share of the target rate that layer number `layer` of a scalable filter may use:
/// ¼ · (¾)ⁱ. Layer 0 is the oldest. The sum over all layers is less than 1.
///
/// The product is exact up to layer 32 and correctly rounded above, so that it is the same on
/// every machine. Source: Almeida, Baquero, Preguiça & Hutchison 2007, "Scalable Bloom filters".
#[must_use]
pub fn layer_share(layer: u32) -> f64 {
    // The product is 0 long before layer 4096.
    (0..layer.min(4096)).fold(0.25, |share, _| share * 0.75)
}

/// Returns the share of the target rate that layer number `layer` of a scalable filter may use if
/// the first layer leaves 1 / `parts` of it to all later ones: 1 - 1 / `parts` for layer 0, and
/// [`layer_share`] of the rest for the others. The sum over all layers is less than 1.
///
/// Correctly rounded up to layer 32, so that it is the same on every machine.
#[must_use]
pub(crate) fn growth_layer_share(layer: u32, parts: u64) -> f64 {
    let parts = parts as f64;
    layer.checked_sub(1).map_or(1.0 - 1.0 / parts, |later| layer_share(later) / parts)
}

/// Returns the rate of one of `generations` filters whose combined rate is `fpr`: 1 - (1 - ε)^(1/G).
#[must_use]
pub fn generation_fpr(fpr: f64, generations: u32) -> f64 {
    -((-fpr).ln_1p() / f64::from(generations)).exp_m1()
}

/// Returns the expected number of distinct keys inserted by the time a filter has counted `new` of
/// them as new; the others were false positives. With ε(x) the rate `fpr(x)` at x keys, this is the
/// N with N - ∫₀ᴺ ε(x) dx = `new`. Infinite if the filter saturates earlier.
///
/// A filter that counts only new keys must be sized for this number; otherwise it holds more keys
/// than it counts and exceeds its target rate.
///
/// Source: the N-th key is new with probability 1 - ε(N - 1). The integral is by Simpson's rule in
/// sixteen steps, the solution by Newton's method from below, since the left side is concave;
/// usually in two steps.
#[must_use]
pub(crate) fn expected_insertions(new: u64, fpr: impl Fn(u64) -> f64) -> f64 {
    const STEPS: u32 = 16;
    let mean_up_to = |keys: f64| {
        let at = |step: u32| {
            let weight = match step {
                0 | STEPS => 1.0,
                odd if odd % 2 == 1 => 4.0,
                _ => 2.0,
            };
            weight * fpr((keys * f64::from(step) / f64::from(STEPS)) as u64)
        };
        let last = at(STEPS);
        let mean = (0..STEPS).map(at).sum::<f64>() + last;
        (mean / f64::from(3 * STEPS), last)
    };
    let (new, mut keys) = (new as f64, new as f64);
    for _ in 0..200 {
        let (mean, last) = mean_up_to(keys);
        let slope = (1.0 - last).max(0.5);
        let step = (new + keys * mean - keys) / slope;
        // A bound for the next Newton step: the rate grows with at most the 16th power.
        let remainder = (step / keys).powi(2) * 8.0 * last / slope;
        if step <= keys * 1e-9 || slope > 0.5 && remainder <= 1e-10 {
            return keys + step;
        }
        keys += step;
    }
    f64::INFINITY
}

#[cfg(not(feature = "std"))]
use crate::no_std::*;
#[cfg(test)]
mod tests {
    use super::super::{blocked_fpr, classic_fpr, probability_of_any};
    use super::*;

    #[test]
    fn layer_shares_sum_to_less_than_one() {
        let sum = |layers| (0..layers).map(layer_share).sum::<f64>();
        assert!(sum(1000) <= 1.0 && sum(60) > 0.999_999);
        assert_eq!((layer_share(0), layer_share(2)), (0.25, 0.25 * 0.75 * 0.75));
        assert_eq!(layer_share(32), 3f64.powi(32) / 2f64.powi(66));
    }

    #[test]
    fn growth_layer_shares_sum_to_less_than_one() {
        for parts in [2, 3, 4, 32, 1 << 16] {
            let sum = |layers| (0..layers).map(|at| growth_layer_share(at, parts)).sum::<f64>();
            assert!(sum(1000) <= 1.0 && sum(60) > 1.0 - 1e-6, "{parts}");
        }
        let shares = [0, 1, 2, 3].map(|layer| growth_layer_share(layer, 4));
        assert_eq!(shares, [0.75, 1.0 / 16.0, 3.0 / 64.0, 9.0 / 256.0]);
    }

    #[test]
    fn generations_combine_to_the_target_rate() {
        for fpr in [0.5, 0.01, 1e-9] {
            for generations in 2..13 {
                let one = generation_fpr(fpr, generations);
                let combined = probability_of_any((0..generations).map(|_| one));
                assert!((combined / fpr - 1.0).abs() < 1e-12, "{fpr} {generations}");
            }
        }
    }

    /// Adds key by key, as in the definition.
    #[test]
    fn expected_insertions_equals_the_sum_over_keys() {
        let blocked = |keys| blocked_fpr(keys, 1000, 8, 4);
        let classic = |keys| classic_fpr(keys, 100_000, 1);
        let both: [&dyn Fn(u64) -> f64; 2] = [&blocked, &classic];
        for fpr in both {
            let (mut new, mut inserted) = (0.0, 0);
            for goal in [1000u64, 10_000, 50_000] {
                while new < goal as f64 {
                    new += 1.0 - fpr(inserted);
                    inserted += 1;
                }
                let found = expected_insertions(goal, fpr);
                let error = found / inserted as f64 - 1.0;
                assert!(error.abs() < 2e-3, "{goal} {inserted} {found}");
            }
        }
        assert_eq!(expected_insertions(1000, |_| 0.0), 1000.0);
        assert_eq!(expected_insertions(1000, |_| 1.0), f64::INFINITY);
    }
}
