//! Estimates of the number of keys of two filters, their union and their intersection, with
//! standard errors.
//!
//! All estimates derive from the numbers of clear bits of both filters and of their OR, each by
//! [`cardinality`](super::cardinality): |A ∩ B| = |A| + |B| - |A ∪ B|.
//!
//! **Error of one estimate.** Let q be the probability that a key sets a given bit, y = 1 - q, and
//! V(n) the variance of the number Z of clear bits with n keys. To first order the variance of the
//! estimate is σ²(n) = V(n) / (M yⁿ ln y)², where M is the number of bits. V(n) is the sum over all
//! pairs of bits of (1 - 2q + r)ⁿ - y²ⁿ, where r is the probability that one key sets both bits of
//! the pair; this is exact. Whang, Vander-Zanden & Taylor 1990 give it for one probe, where r = 0.
//! In blocks r is not 0 for bits of different lanes, which all depend on the number of keys in the
//! block. Since the total number of keys is fixed, this nearly cancels: at a rate of 1 % the error
//! is 4 % larger than that of a classic filter of the same size.
//!
//! **Joint errors.** If two filters have i keys in common, keys of only one filter affect only its
//! bits, so Cov(Z, Z') = y^(keys in only one) · V(i), and the covariance of the estimates is σ²(i).
//! With a, b, u and i keys in A, B, their union and intersection,
//!
//! Var |A ∩ B| = σ²(u) + 2σ²(i) - σ²(a) - σ²(b),
//!
//! and the variance of J = |A ∩ B| / |A ∪ B| = (|A| + |B|) / |A ∪ B| - 1 is
//!
//! \[σ²(a) + σ²(b) + 2σ²(i) - 2(1 + J)(σ²(a) + σ²(b)) + (1 + J)² σ²(u)\] / u².
//!
//! Source: our own derivation by the delta method (e.g. Lehmann & Casella 1998, 1.8); Swamidass &
//! Baldi 2007 for the estimates. Range: filters of at least a few hundred bits, some of them clear.
//! Tests compare it with simulations of all layouts. Assumes independent uniform hashes.

use super::blocked::LANE_BITS;
#[cfg(not(feature = "std"))]
use crate::no_std::*;

/// An estimated number with its standard error: the true number is within two standard errors in
/// 19 of 20 cases, unless it is close to a limit such as 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The estimate; NaN if unknown.
    pub value: f64,
    /// Its standard error; infinite if unknown.
    pub error: f64,
}

/// Estimates of the sizes of two sets of keys, of their union and their intersection.
///
/// The sizes follow from the numbers of clear bits of both filters and of their OR, by
/// [`cardinality`](super::cardinality): |A ∩ B| = |A| + |B| - |A ∪ B|. The errors are our own derivation by
/// the delta method. They hold for filters of at least a few hundred bits, some of them clear, and
/// independent uniform hashes.
///
/// Source of the estimates: Swamidass & Baldi 2007.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Overlap {
    /// Keys in the first set.
    pub left: Estimate,
    /// Keys in the second set.
    pub right: Estimate,
    /// Keys in at least one of the sets.
    pub union: Estimate,
    /// Keys in both sets.
    pub intersection: Estimate,
    /// The Jaccard index: intersection divided by union; 1 for two empty sets.
    pub jaccard: Estimate,
}

/// Returns the overlap of two sets of keys from the estimated sizes of the first set, the second
/// set and their union. `error` returns the standard error of an estimate for a number of keys:
/// [`classic_standard_error`] or [`blocked_standard_error`].
///
/// The estimate of a filter without clear bits is infinite. If the union is such a filter, intersection
/// and Jaccard index are unknown, unless one of the sets is empty.
#[must_use]
pub(crate) fn overlap([left, right, union]: [f64; 3], error: impl Fn(f64) -> f64) -> Overlap {
    let estimate = |value: f64| {
        let error = if value.is_finite() { error(value) } else { f64::INFINITY };
        Estimate { value, error }
    };
    let (a, b, u) = (estimate(left), estimate(right), estimate(union));
    if !u.value.is_finite() {
        let (value, error) =
            if left == 0.0 || right == 0.0 { (0.0, 0.0) } else { (f64::NAN, f64::INFINITY) };
        let common = Estimate { value, error };
        return Overlap { left: a, right: b, union: u, intersection: common, jaccard: common };
    }
    // By chance the estimate of the union may exceed the sum of both, or be below one of them.
    let both = (left + right - union).clamp(0.0, left.min(right));
    let i = estimate(both);
    let [aa, bb, uu, ii] = [a, b, u, i].map(|estimate| estimate.error.powi(2));
    let intersection = Estimate { value: both, error: (uu + 2.0 * ii - aa - bb).max(0.0).sqrt() };
    let share = if union > 0.0 { (both / union).min(1.0) } else { 1.0 };
    let whole = 1.0 + share;
    let variance = 2.0 * ii + (1.0 - 2.0 * whole) * (aa + bb) + whole * whole * uu;
    let error = if union > 0.0 { variance.max(0.0).sqrt() / union } else { 0.0 };
    let jaccard = Estimate { value: share, error };
    Overlap { left: a, right: b, union: u, intersection, jaccard }
}

/// Returns the standard error of [`cardinality`](super::cardinality) for a classic filter:
/// `probes` independent positions, with replacement, in `bits` bits.
#[must_use]
pub(crate) fn classic_standard_error(keys: f64, bits: u64, probes: u32) -> f64 {
    let (m, balls) = (bits as f64, keys * f64::from(probes));
    if bits < 2 || keys <= 0.0 {
        return if keys > 0.0 { f64::INFINITY } else { 0.0 };
    }
    let clear = (-1.0 / m).ln_1p();
    // Everything is divided by the squared share of clear bits: 1/yⁿ, and for two different bits
    // (1 - 2/m) / (1 - 1/m)² = 1 - 1/(m-1)² for each ball.
    let one = (-balls * clear).exp_m1();
    let apart = ((-1.0 / (m - 1.0).powi(2)).ln_1p() * balls).exp_m1();
    let variance = (one - apart + m * apart) / m;
    variance.max(0.0).sqrt() / (f64::from(probes) * -clear)
}

/// Returns the standard error of [`cardinality`](super::cardinality) for a blocked filter: one bit
/// in each of `probes` neighbouring lanes of one of `blocks` blocks of `lanes` lanes.
#[must_use]
pub(crate) fn blocked_standard_error(keys: f64, blocks: u64, lanes: u32, probes: u32) -> f64 {
    if keys <= 0.0 {
        return 0.0;
    }
    let (blocks, l, k) = (blocks.max(1) as f64, f64::from(lanes), f64::from(probes));
    let m = blocks * l * LANE_BITS;
    let bit_probability = k / m;
    let clear = (-bit_probability).ln_1p();
    // (1 - 2q + r)ⁿ / y²ⁿ - 1 for a pair of bits that one key sets with probability r.
    let excess = |r: f64| {
        let base = 1.0 - bit_probability;
        (keys * ((r - bit_probability * bit_probability) / (base * base)).ln_1p()).exp_m1()
    };
    // Pairs of bits that no key sets both: in one lane, or in different blocks.
    let apart = excess(0.0);
    let one = (-keys * clear).exp_m1();
    // Pairs of bits in lanes at this distance, which the windows of some starts cover both.
    let lane_pairs: f64 = (1..lanes)
        .map(|distance| {
            let starts = covering(lanes, probes, distance);
            LANE_BITS * (excess(f64::from(starts) / l / (LANE_BITS * LANE_BITS) / blocks) - apart)
        })
        .sum();
    let variance = (one - apart + lane_pairs + m * apart) / m;
    variance.max(0.0).sqrt() / -clear
}

/// Returns the number of starts for which a window of `probes` lanes, cyclic in `lanes`, covers both
/// of two lanes at a distance.
fn covering(lanes: u32, probes: u32, distance: u32) -> u32 {
    let covers = |start: u32, lane: u32| (lanes + lane - start) % lanes < probes;
    (0..lanes).filter(|&start| covers(start, 0) && covers(start, distance)).count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The formula of Whang, Vander-Zanden & Taylor is the case of one probe.
    #[test]
    fn one_probe_equals_linear_counting() {
        for (keys, bits) in [(1e4, 10_000u64), (3e5, 100_000), (1e6, 10_000_000)] {
            let (m, t) = (bits as f64, keys / bits as f64);
            let expect = ((t.exp() - t - 1.0) / m).sqrt() / t * keys;
            let error = classic_standard_error(keys, bits, 1);
            assert!((error / expect - 1.0).abs() < 1e-3, "{keys} {bits}: {error} {expect}");
        }
    }

    #[test]
    fn blocked_error_is_slightly_larger() {
        let classic = classic_standard_error(1e6, 512 * 20_000, 8);
        let blocked = blocked_standard_error(1e6, 20_000, 8, 8);
        assert!((1.03..1.05).contains(&(blocked / classic)), "{blocked} {classic}");
    }

    /// One key sets exactly k bits, so its estimate has no error.
    #[test]
    fn error_of_a_single_key_is_zero() {
        for (lanes, probes) in [(8, 8), (8, 3), (16, 16), (16, 11)] {
            for blocks in [1, 10, 1000] {
                let error = blocked_standard_error(1.0, blocks, lanes, probes);
                assert!(error < 1e-4, "{lanes} {probes} {blocks}: {error}");
            }
        }
    }

    #[test]
    fn empty_full_and_equal_filters() {
        let error = |keys| blocked_standard_error(keys, 100, 8, 8);
        let none = overlap([0.0; 3], error);
        assert_eq!((none.union.value, none.union.error, none.jaccard.value), (0.0, 0.0, 1.0));
        let full = overlap([10.0, f64::INFINITY, f64::INFINITY], error);
        assert!(full.left.error.is_finite() && full.right.error.is_infinite());
        assert!(full.jaccard.error.is_infinite() && full.intersection.error.is_infinite());
        assert!(full.jaccard.value.is_nan() && full.intersection.value.is_nan());
        let empty = overlap([0.0, f64::INFINITY, f64::INFINITY], error);
        assert_eq!((empty.intersection.value, empty.intersection.error), (0.0, 0.0));
        // The same set twice: the intersection has the error of one set, the Jaccard index none.
        let same = overlap([1000.0; 3], error);
        assert!((same.intersection.error / same.left.error - 1.0).abs() < 1e-9);
        assert!(same.jaccard.value == 1.0 && same.jaccard.error < 1e-9, "{same:?}");
        // Far more keys than bits.
        assert!(
            classic_standard_error(1e300, 64, 3).is_infinite()
                || classic_standard_error(1e300, 64, 3) > 1e9
        );
        assert!(
            !blocked_standard_error(1e300, 1, 8, 8).is_nan()
                && !classic_standard_error(5.0, 1, 3).is_nan()
        );
    }
}
