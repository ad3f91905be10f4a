//! Classic Bloom filters: size, number of probes and false-positive rate.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use core::f64::consts::{LN_2, TAU};

use super::probability::{Approximate, sum_of_powers};

/// Returns the number of probes that minimises the rate of a classic filter: k = ln 2 · m/n,
/// rounded, from 1 to 255; 1 if `bits_per_key` is not a number. Source: Bloom 1970; Broder &
/// Mitzenmacher 2004.
#[must_use]
pub fn optimal_probes(bits_per_key: f64) -> u32 {
    if bits_per_key.is_nan() {
        return 1;
    }
    (bits_per_key * LN_2).round().clamp(1.0, 255.0) as u32
}

/// Returns the number of bits of a classic filter for `keys` keys at the rate `fpr`, if the number
/// of probes need not be whole: m = n · log2(1/ε) / ln 2. A lower bound for whole numbers of
/// probes.
#[must_use]
pub(crate) fn classic_bits(keys: u64, fpr: f64) -> f64 {
    keys as f64 * -fpr.log2() / LN_2
}

/// Returns the false-positive rate of a classic filter: `probes` independent positions, with
/// replacement, in `bits` bits.
///
/// This is the mean of (X/m)^k over the number X of set bits. Exact up to 1024 bits. Above, to
/// second order: p^k + k(k-1)/2 · p^(k-2) · Var(X/m), with p = 1 - (1 - 1/m)^(kn); the relative
/// error is at most 0.4 % for up to 24 probes and falls with the square of the size. The textbook
/// formula p^k alone is too low for small filters.
///
/// Source: Bose et al. 2008, Christensen, Roginsky & Jimeno 2010; the variance is that of the
/// occupancy problem.
#[must_use]
pub fn classic_fpr(keys: u64, bits: u64, probes: u32) -> f64 {
    #[cfg(test)]
    super::evaluations::count();
    let (m, k) = (bits as f64, f64::from(probes));
    let balls = keys as f64 * k;
    if bits <= EXACT_BITS && balls <= 4.0 * m && probes <= MAX_EXACT_PROBES {
        return classic_fpr_exact(keys * u64::from(probes), bits, probes);
    }
    classic_fpr_second_order(keys, bits, probes)
}

/// Returns [`classic_fpr`] with an error that matters only near a target; `None` for large filters,
/// where the function itself is as fast, and for many probes.
///
/// Inclusion and exclusion over the positions of a query that are clear: with A_i the mean number of
/// sets of i different positions among the k of a query, the rate is Σ (-1)^i · A_i · (1 - i/m)^(kn).
/// The sum cancels down to 2⁻ᵏ from terms of up to 2ᵏ; with half of the bits set they are (3/2)ᵏ together.
pub(crate) fn approximate_classic_fpr(keys: u64, bits: u64, probes: u32) -> Option<Approximate> {
    let balls = keys.checked_mul(probes.into())?;
    if !(1..=EXACT_BITS).contains(&bits) || balls > 4 * bits || probes > MAX_SUM_PROBES {
        return None;
    }
    let (m, inverse) = (bits as f64, 1.0 / bits as f64);
    let mut sets = [0.0; MAX_SUM_PROBES as usize + 1];
    sets[0] = 1.0;
    for drawn in 1..=probes as usize {
        // The means before this draw: of one position less, and of the positions that it may be.
        let (mut fewer, mut left) = (1.0, m);
        for mean in &mut sets[1..=drawn] {
            let before = *mean;
            *mean = (before * (left - 1.0) + fewer * left) * inverse;
            (fewer, left) = (before, left - 1.0);
        }
    }
    let sign = |i: usize| if i.is_multiple_of(2) { 1.0 } else { -1.0 };
    let sets = sets.iter().take(probes as usize + 1).enumerate().skip(1);
    let terms = sets.map(|(i, sets)| (sign(i) * sets, 1.0 - i as f64 * inverse));
    Some(sum_of_powers(1.0, terms, balls))
}

/// The largest number of probes for which the sum of [`approximate_classic_fpr`] has accurate digits.
const MAX_SUM_PROBES: u32 = 24;

/// Returns the rate of a classic filter by the formula of textbooks and of most calculators:
/// (1 - e^(-kn/m))ᵏ. It takes bits as independent; [`classic_fpr`] does not and is higher, most of
/// all for small filters and many probes. For comparisons only.
///
/// Source: Bloom 1970, with e^(-kn/m) for (1 - 1/m)^(kn).
#[must_use]
pub fn textbook_fpr(keys: u64, bits: u64, probes: u32) -> f64 {
    let k = f64::from(probes);
    (-(-k * keys as f64 / bits as f64).exp_m1()).powf(k)
}

/// Returns [`classic_fpr`] to second order, for any size.
fn classic_fpr_second_order(keys: u64, bits: u64, probes: u32) -> f64 {
    let (m, k) = (bits as f64, f64::from(probes));
    let balls = keys as f64 * k;
    let zero = (balls * (-1.0 / m).ln_1p()).exp();
    let zero_pair = (balls * (-2.0 / m).ln_1p()).exp();
    let set = 1.0 - zero;
    let variance = (zero / m + zero_pair * (1.0 - 1.0 / m) - zero * zero).max(0.0);
    let spread = k * (k - 1.0) / 2.0 * set.powf(k - 2.0) * variance;
    (set.powf(k) + if probes > 1 { spread } else { 0.0 }).clamp(0.0, 1.0)
}

/// The largest size in bits for which the second-order formula of [`classic_fpr`] is not accurate
/// enough.
const EXACT_BITS: u64 = 1024;
/// The largest product of balls and bits for which [`classic_fpr_by_ball`] is faster.
const BY_BALL: u64 = 2048;
/// The maximum number of probes of any filter, and so of the exact calculation.
const MAX_EXACT_PROBES: u32 = 64;

/// Returns [`classic_fpr`] exactly, for a number of positions ("balls").
///
/// With a Poisson number of balls of mean z, bits are independent, and each is set with
/// probability w = 1 - e^(-z/m). The k positions of a query hit j different bits with probability
/// q_j, and all of these are set with probability wʲ, so the rate is Q(w) = Σ q_j wʲ. The rate for
/// exactly b balls is b!/(2πi) ∮ eᶻ Q(w(z)) / z^(b+1) dz. The integrand has positive coefficients,
/// and the circle |z| = b goes through its saddle point: the sum over equidistant points has no
/// cancellation and converges exponentially, here to about 10⁻¹².
///
/// Source: analytical depoissonization, Jacquet & Szpankowski 1998; Trefethen & Weideman 2014 for
/// the sum. Cost: about 3 √b points, with a power series of `probes` terms at each.
fn classic_fpr_exact(balls: u64, bits: u64, probes: u32) -> f64 {
    if balls == 0 {
        return 0.0;
    }
    let (b, m) = (balls as f64, bits as f64);
    if balls * bits <= BY_BALL {
        return classic_fpr_by_ball(balls, bits as usize, probes);
    }
    let mut hit = [0.0; MAX_EXACT_PROBES as usize + 1];
    hit[0] = 1.0;
    let hit = &mut hit[..=probes.min(bits as u32) as usize];
    for thrown in 0..probes as usize {
        for at in (1..hit.len().min(thrown + 2)).rev() {
            hit[at] = (hit[at] * at as f64 + hit[at - 1] * (m - (at - 1) as f64)) / m;
        }
        hit[0] = 0.0;
    }
    let points = (9.0 * b.sqrt()) as usize + 12 + probes as usize;
    let (mut sum, mut weights) = (0.0, 0.0);
    for at in 0..=points / 2 {
        let angle = at as f64 * (TAU / points as f64);
        let (sin, cos) = angle.sin_cos();
        let (turned_sin, turned_cos) = (b * (sin - angle)).sin_cos();
        // Every point off the real axis has a conjugate.
        let multiplicity = if at == 0 || 2 * at == points { 1.0 } else { 2.0 };
        let weight = multiplicity * (b * (cos - 1.0)).exp();
        let (clear_sin, clear_cos) = (-b / m * sin).sin_cos();
        let clear = (-b / m * cos).exp();
        let (re, im) = (1.0 - clear * clear_cos, -clear * clear_sin);
        let (mut x, mut y) = (0.0, 0.0);
        for share in hit.iter().rev() {
            (x, y) = (x * re - y * im + share, x * im + y * re);
        }
        weights += weight * turned_cos;
        sum += weight * (x * turned_cos - y * turned_sin);
        if weight < 1e-17 && weight * x.hypot(y) < 1e-17 * sum.abs() {
            break;
        }
    }
    // For Q = 1 the rate is 1, which gives the factor b!.
    (sum / weights).clamp(0.0, 1.0)
}

/// Returns [`classic_fpr_exact`] for tiny filters, from the distribution of the number of set bits.
fn classic_fpr_by_ball(balls: u64, bits: usize, probes: u32) -> f64 {
    let m = bits as f64;
    let mut probability = vec![0.0; bits + 1];
    probability[0] = 1.0;
    for ball in 0..balls as usize {
        for set in (1..=bits.min(ball + 1)).rev() {
            let clear = (bits - set + 1) as f64;
            probability[set] = (probability[set] * set as f64 + probability[set - 1] * clear) / m;
        }
        probability[0] = 0.0;
    }
    let fpr = |set: usize| probability[set] * (set as f64 / m).powi(probes as i32);
    (0..=bits).map(fpr).sum::<f64>().clamp(0.0, 1.0)
}

/// Returns the number of keys at which half of `bits` bits are set, where a filter with this number of
/// probes is the smallest for its rate: n = m ln 2 / k.
#[must_use]
pub(crate) fn half_full_capacity(bits: u64, probes: u32) -> u64 {
    (bits as f64 * core::f64::consts::LN_2 / f64::from(probes)) as u64
}

/// Returns the number of bits of which half are set at `keys` keys: the inverse of
/// [`half_full_capacity`].
#[must_use]
pub(crate) fn half_full_bits(keys: u64, probes: u32) -> u64 {
    (keys as f64 * f64::from(probes) / core::f64::consts::LN_2).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(value: f64, expected: f64, relative: f64) {
        assert!((value - expected).abs() <= expected * relative, "{value} is not {expected}");
    }

    #[test]
    fn approximation_is_within_its_error() {
        for probes in [1, 2, 3, 7, 10, 14, 20, 24] {
            for bits in [1, 2, 5, 13, 20, 29, 48, 64, 100, 585, 777, 1024] {
                for keys in [1, 2, 5, bits / 20, bits / 10, bits / 5] {
                    let Some(approximate) = approximate_classic_fpr(keys, bits, probes) else {
                        assert!(keys * u64::from(probes) > 4 * bits);
                        continue;
                    };
                    let Approximate { fpr, error } = approximate;
                    let exact = classic_fpr(keys, bits, probes);
                    assert!((fpr - exact).abs() < error + 1e-11 * exact, "{probes} {bits} {keys}");
                    // The sum of the terms with half of the bits set.
                    let half = keys as f64 * f64::from(probes) > 0.7 * bits as f64;
                    let terms = if half { 1.6f64 } else { 2.0 }.powi(probes as i32);
                    let small = terms * (bits as f64 + 64.0) * 4e-14;
                    assert!(error < small, "{probes} {bits} {keys}: {error}");
                }
            }
        }
        let none = [(60, 63, 7), (60, 1025, 7), (60, 600, 25), (u64::MAX, 600, 7), (1000, 600, 7)];
        assert!(none.iter().all(|&(n, m, k)| approximate_classic_fpr(n, m, k).is_none()));
    }

    #[test]
    fn published_values() {
        // Broder & Mitzenmacher's table; m = 20n, k = 10.
        assert_close(classic_fpr(1_000_000_000, 20_000_000_000, 10), 8.89e-5, 1e-3);
        // ε = 0.001: 14.38 bits per key and ten probes.
        assert_close(classic_bits(1000, 0.001), 14_378.0, 1e-4);
        assert_eq!(optimal_probes(14.38), 10);
        for bits_per_key in [f64::NAN, f64::NEG_INFINITY, -1.0, 0.0] {
            assert_eq!(optimal_probes(bits_per_key), 1);
        }
        assert_eq!(optimal_probes(f64::INFINITY), 255);
        // 4 GB for five billion keys: 6.4 bits per key, four probes, 4.66 %.
        assert_close(classic_fpr(5_000_000_000, 32_000_000_000, 4), 0.0466, 2e-3);
    }

    #[test]
    fn textbook_formula_is_too_low_for_small_filters() {
        // Bose et al. 2008: the true rate is above p^k, and equal to it in the limit.
        for (keys, bits, probes) in [(1, 8, 2), (6, 64, 7), (64, 640, 7), (1000, 10_000, 7)] {
            let (textbook, exact) =
                (textbook_fpr(keys, bits, probes), classic_fpr(keys, bits, probes));
            assert!(textbook < exact, "{keys} {bits} {probes}: {textbook} {exact}");
        }
        let (large, bits) = (1_000_000_000, 10_000_000_000);
        assert_close(textbook_fpr(large, bits, 7), classic_fpr(large, bits, 7), 1e-7);
    }

    #[test]
    fn bits_give_the_rate() {
        for fpr in [0.1, 0.01, 1e-3, 1e-4, 1e-6, 1e-9] {
            let bits = classic_bits(1_000_000, fpr);
            let probes = optimal_probes(bits / 1e6);
            // Rounding the number of probes changes the rate by up to 5 %.
            assert_close(classic_fpr(1_000_000, bits as u64, probes), fpr, 0.06);
        }
    }

    /// Compares with the recursion for the distribution of the number of set bits.
    #[test]
    fn rate_is_the_mean_over_all_fills() {
        for bits in [1usize, 2, 40, 64, 300, 1024, 1025, 1500] {
            for probes in [1u32, 2, 4, 7, 10, 21, 24] {
                for load in [0.3, 0.7, 1.5, 3.9, 4.1] {
                    let keys = (bits as f64 * load / f64::from(probes)) as u64;
                    let mut probability = vec![1.0];
                    probability.resize(bits + 1, 0.0);
                    for _ in 0..keys * u64::from(probes) {
                        let before = probability.clone();
                        for set in 0..=bits {
                            let fewer = if set > 0 { before[set - 1] } else { 0.0 };
                            let (same, more) = (set as f64, (bits + 1 - set) as f64);
                            probability[set] = (before[set] * same + fewer * more) / bits as f64;
                        }
                    }
                    let fpr = |set: usize| (set as f64 / bits as f64).powi(probes as i32);
                    let exact: f64 = (0..=bits).map(|set| probability[set] * fpr(set)).sum();
                    // As documented; a filter with a load above 4 is nearly full.
                    let relative = if bits <= 1024 && load < 4.0 { 1e-9 } else { 4e-3 };
                    if bits >= 300 || load < 4.0 {
                        assert_close(classic_fpr(keys, bits as u64, probes), exact, relative);
                    }
                }
            }
        }
    }

    #[test]
    fn extreme_arguments_give_probabilities() {
        assert_eq!(classic_fpr(0, 64, 5), 0.0);
        assert_close(classic_fpr(u64::MAX, 64, 5), 1.0, 1e-12);
    }
}
