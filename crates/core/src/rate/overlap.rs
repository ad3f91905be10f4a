//! How large the keys of two filters, their union and what they have in common are, and how far
//! off these estimates may be.
//!
//! All comes of the numbers of clear bits of both filters and of their OR, each by
//! [`cardinality`](super::cardinality): |A ∩ B| = |A| + |B| - |A ∪ B|.
//!
//! **The error of one.** Let q be the chance that a key marks a given bit, y = 1 - q, and V(n) the
//! variance of the number Z of clear bits with n keys. To first order the variance of the estimate
//! is σ²(n) = V(n) / (M yⁿ ln y)², M being the number of bits. V(n) is the sum over all pairs of
//! bits of (1 - 2q + r)ⁿ - y²ⁿ, where r is the chance that one key marks both bits of the pair;
//! it is exact. Whang, Vander-Zanden & Taylor 1990 have it for one probe, where r = 0. In blocks r
//! is not 0 for bits of different lanes, which all depend on how many keys the block got. The
//! number of keys being fixed, that nearly cancels: at a rate of 1 % the error is 4 % larger than
//! that of a classic filter of the same size.
//!
//! **The errors together.** Of two filters whose keys have i in common, keys of one alone touch
//! its bits alone, so that Cov(Z, Z') = y^(keys in one alone) · V(i), and the covariance of the
//! estimates is just σ²(i). With a, b, u and i keys in A, B, their union and intersection,
//!
//! Var |A ∩ B| = σ²(u) + 2σ²(i) - σ²(a) - σ²(b),
//!
//! and that of J = |A ∩ B| / |A ∪ B| = (|A| + |B|) / |A ∪ B| - 1 is
//!
//! \[σ²(a) + σ²(b) + 2σ²(i) - 2(1 + J)(σ²(a) + σ²(b)) + (1 + J)² σ²(u)\] / u².
//!
//! Source: the above is our own derivation, by the delta method (e.g. Lehmann & Casella 1998, 1.8);
//! Swamidass & Baldi 2007 for the estimates. Range: filters of a few hundred bits or more with
//! a few bits clear; tests compare it with simulations of all layouts. Hashes are taken to be
//! independent and uniform.

/// A number that is estimated, and its standard error: the true one is within twice of it in 19
/// of 20 cases, as long as that is far from a limit such as 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// Its standard error; infinite if nothing is known.
    pub error: f64,
}

/// What two sets of keys have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Overlap {
    /// Keys of the one.
    pub left: Estimate,
    /// Keys of the other.
    pub right: Estimate,
    /// Keys that are in either.
    pub union: Estimate,
    /// Keys that are in both.
    pub intersection: Estimate,
    /// Their share of the union; 1 for two empty sets.
    pub jaccard: Estimate,
}

/// The overlap of two sets of keys, from the estimates of the one, the other, and the union.
/// `error` is the standard error of such an estimate with so many keys: [`classic_error`] or
/// [`blocked_error`].
///
/// A filter without clear bits tells nothing: its value is infinite, and so are all errors that
/// depend on it.
#[must_use]
pub fn overlap([left, right, union]: [f64; 3], error: impl Fn(f64) -> f64) -> Overlap {
    let estimate = |value: f64| {
        let error = if value.is_finite() { error(value) } else { f64::INFINITY };
        Estimate { value, error }
    };
    let (a, b, u) = (estimate(left), estimate(right), estimate(union));
    if !u.value.is_finite() {
        let unknown = Estimate { value: 0.0, error: f64::INFINITY };
        return Overlap { left: a, right: b, union: u, intersection: unknown, jaccard: unknown };
    }
    // By chance the union may seem to be larger than both together, or smaller than one.
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

/// The standard error of [`cardinality`](super::cardinality) for a classic filter: `probes`
/// independent positions, with replacement, in `bits`.
#[must_use]
pub fn classic_error(keys: f64, bits: u64, probes: u32) -> f64 {
    let (m, balls) = (bits as f64, keys * f64::from(probes));
    if bits < 2 || keys <= 0.0 {
        return if keys > 0.0 { f64::INFINITY } else { 0.0 };
    }
    let clear = (-1.0 / m).ln_1p();
    // All is divided by the square of the share of clear bits: 1/yⁿ, and for two different bits
    // (1 - 2/m) / (1 - 1/m)² = 1 - 1/(m-1)² for each ball.
    let one = (-balls * clear).exp_m1();
    let apart = ((-1.0 / (m - 1.0).powi(2)).ln_1p() * balls).exp_m1();
    let variance = (one - apart + m * apart) / m;
    variance.max(0.0).sqrt() / (f64::from(probes) * -clear)
}

/// The same for a blocked filter: one bit in each of `probes` neighbouring ones of `lanes` lanes
/// of one of the `blocks`.
#[must_use]
pub fn blocked_error(keys: f64, blocks: u64, lanes: u32, probes: u32) -> f64 {
    const LANE: f64 = super::LANE;
    if keys <= 0.0 {
        return 0.0;
    }
    let (blocks, l, k) = (blocks.max(1) as f64, f64::from(lanes), f64::from(probes));
    let m = blocks * l * LANE;
    let touch = k / m;
    let clear = (-touch).ln_1p();
    // (1 - 2q + r)ⁿ / y²ⁿ - 1 for a pair of bits that one key marks with chance r.
    let excess = |r: f64| {
        let base = 1.0 - touch;
        (keys * ((r - touch * touch) / (base * base)).ln_1p()).exp_m1()
    };
    // Bits that no key marks both: of one lane, or of different blocks.
    let apart = excess(0.0);
    let one = (-keys * clear).exp_m1();
    // Of lanes so far from each other: the windows of so many starts cover both.
    let lane_pairs: f64 = (1..lanes)
        .map(|distance| {
            let starts = covering(lanes, probes, distance);
            LANE * (excess(f64::from(starts) / l / (LANE * LANE) / blocks) - apart)
        })
        .sum();
    let variance = (one - apart + lane_pairs + m * apart) / m;
    variance.max(0.0).sqrt() / -clear
}

/// Of how many starts a window of `probes` lanes, in a ring of `lanes`, covers both of two lanes.
fn covering(lanes: u32, probes: u32, distance: u32) -> u32 {
    let covers = |start: u32, lane: u32| (lanes + lane - start) % lanes < probes;
    (0..lanes).filter(|&start| covers(start, 0) && covers(start, distance)).count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whang, Vander-Zanden & Taylor's formula is the case of one probe.
    #[test]
    fn one_probe_is_linear_counting() {
        for (keys, bits) in [(1e4, 10_000u64), (3e5, 100_000), (1e6, 10_000_000)] {
            let (m, t) = (bits as f64, keys / bits as f64);
            let expect = ((t.exp() - t - 1.0) / m).sqrt() / t * keys;
            let error = classic_error(keys, bits, 1);
            assert!((error / expect - 1.0).abs() < 1e-3, "{keys} {bits}: {error} {expect}");
        }
    }

    #[test]
    fn blocks_cost_little() {
        let classic = classic_error(1e6, 512 * 20_000, 8);
        let blocked = blocked_error(1e6, 20_000, 8, 8);
        assert!((1.03..1.05).contains(&(blocked / classic)), "{blocked} {classic}");
    }

    /// Of one block and few keys every outcome could be counted: one key marks exactly k bits.
    #[test]
    fn a_single_key_is_certain() {
        for (lanes, probes) in [(8, 8), (8, 3), (16, 16), (16, 11)] {
            for blocks in [1, 10, 1000] {
                let error = blocked_error(1.0, blocks, lanes, probes);
                assert!(error < 1e-4, "{lanes} {probes} {blocks}: {error}");
            }
        }
    }

    #[test]
    fn nothing_and_everything() {
        let error = |keys| blocked_error(keys, 100, 8, 8);
        let none = overlap([0.0; 3], error);
        assert_eq!((none.union.value, none.union.error, none.jaccard.value), (0.0, 0.0, 1.0));
        let full = overlap([10.0, f64::INFINITY, f64::INFINITY], error);
        assert!(full.left.error.is_finite() && full.right.error.is_infinite());
        assert!(full.jaccard.error.is_infinite() && full.intersection.error.is_infinite());
        // The same set twice: the union is as well known as one of them, and the share certain.
        let same = overlap([1000.0; 3], error);
        assert!((same.intersection.error / same.left.error - 1.0).abs() < 1e-9);
        assert!(same.jaccard.value == 1.0 && same.jaccard.error < 1e-9, "{same:?}");
        // More than all bits can tell of.
        assert!(classic_error(1e300, 64, 3).is_infinite() || classic_error(1e300, 64, 3) > 1e9);
        assert!(!blocked_error(1e300, 1, 8, 8).is_nan() && !classic_error(5.0, 1, 3).is_nan());
    }
}
