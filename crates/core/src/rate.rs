//! The mathematics of false positives: pure functions, each with its source and range.
//!
//! Legend, used here and nowhere else: `n` keys, `m` bits, `k` probes (bits a key sets), ε the
//! false-positive rate, `N` blocks, `L` lanes of 64 bits in a block.
//!
//! Three layouts have a rate of their own:
//!
//! * **classic**: k positions anywhere in m bits ([`classic`]);
//! * **blocked, k = L**: one bit in each lane of one block;
//! * **blocked, k < L**: one bit in each of k neighbouring lanes, beginning at a lane that the
//!   key chooses ([`blocked`] has both).
//!
//! A block gets a binomial number of keys, so a blocked filter is worse than a classic one of the
//! same size; the textbook formula does not know that and must not be used for it.
//!
//! A hash has 64 bits. Two keys with equal hashes cannot be told apart by any filter, which puts
//! a floor under every rate ([`hash_floor`]).

mod counting;
mod layers;
mod overlap;
mod quotient;
mod ribbon;
mod wide;

use std::f64::consts::LN_2;
use std::sync::OnceLock;

pub use counting::{stuck, stuck_after};
pub use layers::{any_of, distinct, generation, growth_layer_share, layer_share};
pub use overlap::{Estimate, Overlap, blocked_error, classic_error, overlap};
pub use quotient::{alike, fingerprints, keys_behind};
pub use ribbon::{mixed, mixture};
pub use wide::{wide, wide_floor, wide_half};

#[cfg(test)]
thread_local! {
    /// Rates that were calculated on this thread: what a search for a size costs.
    pub(crate) static EVALUATIONS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

#[inline]
fn count_evaluation() {
    #[cfg(test)]
    EVALUATIONS.with(|count| count.set(count.get() + 1));
}

/// Bits in a lane.
const LANE: f64 = 64.0;

/// The number of probes that makes the rate of a classic filter least: k = ln 2 · m/n, rounded,
/// at least 1 and at most 255; 1 for what is no number of bits. Source: Bloom 1970; Broder &
/// Mitzenmacher 2004.
#[must_use]
pub fn optimal_probes(bits_per_key: f64) -> u32 {
    if bits_per_key.is_nan() {
        return 1;
    }
    (bits_per_key * LN_2).round().clamp(1.0, 255.0) as u32
}

/// Bits a classic filter needs for `keys` at `rate`, if its number of probes need not be whole:
/// m = n · log2(1/ε) / ln 2. A lower bound for a whole number of probes.
#[must_use]
pub fn classic_bits(keys: u64, rate: f64) -> f64 {
    keys as f64 * -rate.log2() / LN_2
}

/// Keys that a classic filter of `bits` holds at `rate`: the inverse of [`classic_bits`].
#[must_use]
pub fn classic_keys(bits: u64, rate: f64) -> f64 {
    bits as f64 * LN_2 / -rate.log2()
}

/// The false-positive rate of a classic filter: `probes` independent positions, with
/// replacement, in `bits`.
///
/// The mean of (X/m)^k over the number X of bits set. Exact up to 1024 bits. Above, to second
/// order: p^k + k(k-1)/2 · p^(k-2) · Var(X/m), with p = 1 - (1 - 1/m)^(kn), which is good to
/// four parts in a thousand for up to 24 probes, and better with the square of the size. The
/// textbook's p^k alone is too low for small filters.
/// Source: Bose et al. 2008, Christensen, Roginsky & Jimeno 2010; the variance is that of the
/// occupancy problem.
#[must_use]
pub fn classic(keys: u64, bits: u64, probes: u32) -> f64 {
    count_evaluation();
    let (m, k) = (bits as f64, f64::from(probes));
    let balls = keys as f64 * k;
    if bits <= EXACT_BITS && balls <= 4.0 * m && probes <= MOST_EXACT_PROBES {
        return classic_exact(keys * u64::from(probes), bits, probes);
    }
    classic_second_order(keys, bits, probes)
}

/// [`classic`] to second order, whatever the size: the start of a search for exact sizes.
pub(crate) fn classic_second_order(keys: u64, bits: u64, probes: u32) -> f64 {
    let (m, k) = (bits as f64, f64::from(probes));
    let balls = keys as f64 * k;
    let zero = (balls * (-1.0 / m).ln_1p()).exp();
    let zero_pair = (balls * (-2.0 / m).ln_1p()).exp();
    let set = 1.0 - zero;
    let variance = (zero / m + zero_pair * (1.0 - 1.0 / m) - zero * zero).max(0.0);
    let spread = k * (k - 1.0) / 2.0 * set.powf(k - 2.0) * variance;
    (set.powf(k) + if probes > 1 { spread } else { 0.0 }).clamp(0.0, 1.0)
}

/// Up to here the second-order formula of [`classic`] can be off by more than that.
pub(crate) const EXACT_BITS: u64 = 1024;
/// Up to this product of balls and bits, going ball by ball is the faster way.
const BY_BALL: u64 = 2048;
/// As many as any filter has.
const MOST_EXACT_PROBES: u32 = 64;

/// [`classic`] exactly, for a number of positions ("balls") that were thrown.
///
/// With a Poisson number of balls of mean z, bits are independent, each set with the chance
/// w = 1 - e^(-z/m). The k positions of a query hit j different bits with a chance q_j, and all
/// of them are set with the chance wʲ, so that the rate is Q(w) = Σ q_j wʲ. The rate for exactly b
/// balls is b!/(2πi) ∮ eᶻ Q(w(z)) / z^(b+1) dz. The integrand has positive coefficients, and the
/// circle |z| = b goes through its saddle point: the sum over equidistant points cancels nothing
/// and converges exponentially, here to about 10⁻¹².
///
/// Source: analytical depoissonization, Jacquet & Szpankowski 1998; Trefethen & Weideman 2014 for
/// the sum. Cost: some 3 √b points, a power series of `probes` terms at each.
fn classic_exact(balls: u64, bits: u64, probes: u32) -> f64 {
    if balls == 0 {
        return 0.0;
    }
    let (b, m) = (balls as f64, bits as f64);
    if balls * bits <= BY_BALL {
        return classic_by_ball(balls, bits as usize, probes);
    }
    let mut hit = [0.0; MOST_EXACT_PROBES as usize + 1];
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
        let angle = at as f64 * (std::f64::consts::TAU / points as f64);
        let (sin, cos) = angle.sin_cos();
        let (turned_sin, turned_cos) = (b * (sin - angle)).sin_cos();
        // Each point but those on the real axis has a conjugate.
        let twice = if at == 0 || 2 * at == points { 1.0 } else { 2.0 };
        let weight = twice * (b * (cos - 1.0)).exp();
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
    // The same sum for Q = 1 is known to be 1, which gives the factor b!.
    (sum / weights).clamp(0.0, 1.0)
}

/// [`classic_exact`] for tiny filters, from the distribution of the number of bits set.
fn classic_by_ball(balls: u64, bits: usize, probes: u32) -> f64 {
    let m = bits as f64;
    let mut chance = vec![0.0; bits + 1];
    chance[0] = 1.0;
    for ball in 0..balls as usize {
        for set in (1..=bits.min(ball + 1)).rev() {
            let comes = (bits - set + 1) as f64;
            chance[set] = (chance[set] * set as f64 + chance[set - 1] * comes) / m;
        }
        chance[0] = 0.0;
    }
    let rate = |set: usize| chance[set] * (set as f64 / m).powi(probes as i32);
    (0..=bits).map(rate).sum::<f64>().clamp(0.0, 1.0)
}

/// The false-positive rate of a blocked filter with `keys` in `blocks` of `lanes` lanes, of which
/// a key sets one bit in each of `probes` neighbouring ones.
///
/// Exact for independent uniform hashes, for any number of blocks, with the dependence between
/// neighbouring lanes. With a = 63/64 and t(r, S) the number of lanes of S that a key beginning
/// at lane r touches, inclusion and exclusion over the lanes of the query window W gives
///
/// ε = Σ over S ⊆ W of (-1)^|S| · (1 + E(S)/N)^n,  E(S) = 1/L · Σ over r of (a^t(r,S) - 1).
///
/// For large N this is the Poisson sum of Putze, Sanders & Singler 2007. For k = L the terms
/// depend on |S| alone, and the sum is taken over the load of the block instead, which cancels
/// nothing. For k < L the alternating sum is good to about 10⁻¹¹.
///
/// # Panics
/// If `lanes` is not 8 or 16, or `probes` is not in `1..=lanes`.
#[must_use]
pub fn blocked(keys: u64, blocks: u64, lanes: u32, probes: u32) -> f64 {
    assert!(matches!(lanes, 8 | 16) && (1..=lanes).contains(&probes), "no such layout");
    count_evaluation();
    let (n, blocks) = (keys as f64, blocks.max(1) as f64);
    if probes == lanes {
        return by_load(n, blocks, |load| -(load * (-1.0 / LANE).ln_1p()).exp_m1(), lanes);
    }
    let term = |term: &Term| term.weight * (n * (term.change / blocks).ln_1p()).exp();
    terms(lanes, probes).iter().map(term).sum::<f64>().clamp(0.0, 1.0)
}

/// Below this the alternating sum of [`blocked`] has lost its digits, and only `probes == lanes`
/// can be trusted.
pub const ALTERNATING_FLOOR: f64 = 1e-10;

/// The mean of set(load)^lanes over the binomial number of keys in a block.
fn by_load(n: f64, blocks: f64, set: impl Fn(f64) -> f64, lanes: u32) -> f64 {
    let power = lanes as i32;
    let mean = n / blocks;
    if blocks == 1.0 || mean > 600.0 {
        // All keys in the one block; or so many in each that the spread no longer matters.
        return set(mean).powi(power);
    }
    let most = (mean + 12.0 * mean.sqrt() + 60.0).min(n);
    let odds = 1.0 / (blocks - 1.0);
    let mut chance = (n * (-1.0 / blocks).ln_1p()).exp();
    let (mut load, mut rate) = (0.0, 0.0);
    while load <= most {
        rate += chance * set(load).powi(power);
        chance *= (n - load) / (load + 1.0) * odds;
        load += 1.0;
    }
    rate.clamp(0.0, 1.0)
}

/// All subsets of the query window with the same effect, taken together.
struct Term {
    /// E(S) of [`blocked`]: how much one key changes the chance that all of S stays clear.
    change: f64,
    /// (-1)^|S| times the number of such subsets.
    weight: f64,
}

fn terms(lanes: u32, probes: u32) -> &'static [Term] {
    static OF_8: [OnceLock<Vec<Term>>; 8] = [const { OnceLock::new() }; 8];
    static OF_16: [OnceLock<Vec<Term>>; 16] = [const { OnceLock::new() }; 16];
    let cell = if lanes == 8 { &OF_8[probes as usize] } else { &OF_16[probes as usize] };
    cell.get_or_init(|| count_terms(lanes, probes))
}

fn count_terms(lanes: u32, probes: u32) -> Vec<Term> {
    let window = (1u32 << probes) - 1;
    let ring = |start: u32| (window << start | window << start >> lanes) & ((1 << lanes) - 1);
    // What decides E(S) is how many starts touch S in 0, 1, 2, … lanes: 5 bits for each.
    let mut groups = std::collections::BTreeMap::<u128, f64>::new();
    for subset in 0..=window {
        let mut touched = 0u128;
        for start in 0..lanes {
            touched += 1 << (5 * (subset & ring(start)).count_ones());
        }
        let sign = if subset.count_ones() % 2 == 0 { 1.0 } else { -1.0 };
        *groups.entry(touched).or_default() += sign;
    }
    let change = |touched: u128| {
        let starts = |lanes: i32| (touched >> (5 * lanes) & 31) as f64;
        let clear = |lanes: i32| (f64::from(lanes) * (-1.0 / LANE).ln_1p()).exp_m1();
        (1..=16).map(|lanes| starts(lanes) * clear(lanes)).sum::<f64>() / f64::from(lanes)
    };
    let term = |(touched, weight)| Term { change: change(touched), weight };
    groups.into_iter().map(term).filter(|term| term.weight != 0.0).collect()
}

/// The rate that no filter on 64-bit hashes can go below: some key's hash is the query's, with
/// probability 1 - (1 - 2⁻⁶⁴)^n ≈ n/2⁶⁴.
#[must_use]
pub fn hash_floor(keys: u64) -> f64 {
    -(-(keys as f64) / 2f64.powi(64)).exp_m1()
}

/// The chance of at least one of two independent events: a + b - ab.
#[must_use]
pub fn either(a: f64, b: f64) -> f64 {
    a + b - a * b
}

/// Whether a filter of `bits` bits errs more often than planned, and not by chance.
///
/// Let pass are 2 %, for what was estimated, and 20/√m of it: about three times what the rate of a
/// filter that was filled to its plan strays by chance, with ten probes or fewer.
#[must_use]
pub fn overfull(target: f64, now: f64, bits: u64) -> bool {
    target > 0.0 && now > target * (1.02 + 20.0 / (bits as f64).sqrt())
}

/// The number of distinct keys in a filter, from the share of its bits that are still zero:
/// n = ln(zero) / ln(1 - touch), where `touch` is the chance that one key sets a given bit (1/N ·
/// k/L · 1/64 if blocked, about k/m if classic). Infinite when no bit is zero.
///
/// Source: Swamidass & Baldi 2007 for the classic filter. It holds for blocks too, since each
/// bit is clear with probability (1 - touch)^n whatever its neighbours are. With t = n · touch the
/// relative standard error is about √((eᵗ - t - 1)/m) / t (Whang, Vander-Zanden & Taylor 1990):
/// 0.8 % when 10,000 bits are half set, and less the larger the filter. It grows fast when few
/// bits are left clear: 2.1 % when 1 % of 10,000 are.
#[must_use]
pub fn cardinality(zero_share: f64, touch: f64) -> f64 {
    if zero_share >= 1.0 {
        return 0.0;
    }
    zero_share.ln() / (-touch).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(value: f64, expect: f64, part: f64) {
        assert!((value - expect).abs() <= expect * part, "{value} is not {expect}");
    }

    #[test]
    fn the_literature() {
        // Broder & Mitzenmacher's table; m = 20n, k = 10.
        close(classic(1_000_000_000, 20_000_000_000, 10), 8.89e-5, 1e-3);
        // ε = 0.001: 14.38 bits a key and ten probes.
        close(classic_bits(1000, 0.001), 14_378.0, 1e-4);
        assert_eq!(optimal_probes(14.38), 10);
        for nothing in [f64::NAN, f64::NEG_INFINITY, -1.0, 0.0] {
            assert_eq!(optimal_probes(nothing), 1);
        }
        assert_eq!(optimal_probes(f64::INFINITY), 255);
        // 4 GB for five billion keys: 6.4 bits a key, four probes, 4.66 %.
        close(classic(5_000_000_000, 32_000_000_000, 4), 0.0466, 2e-3);
        // Boost.Bloom's fast_multiblock64<8>: 10.1 bits a key for 1 %.
        close(blocked(1_000_000, 10_100_000 / 512, 8, 8), 0.01, 0.01);
    }

    #[test]
    fn sizing_and_rate_are_inverses() {
        for rate in [0.1, 0.01, 1e-3, 1e-4, 1e-6, 1e-9] {
            let bits = classic_bits(1_000_000, rate);
            close(classic_keys(bits as u64, rate), 1e6, 1e-6);
            let probes = optimal_probes(bits / 1e6);
            // A whole number of probes costs up to 5 % of the rate.
            close(classic(1_000_000, bits as u64, probes), rate, 0.06);
        }
    }

    /// Against the plain recursion for the distribution of the number of bits set.
    #[test]
    fn the_classic_rate_is_the_mean_over_all_fills() {
        for bits in [1usize, 2, 40, 64, 300, 1024, 1025, 1500] {
            for probes in [1u32, 2, 4, 7, 10, 21, 24] {
                for load in [0.3, 0.7, 1.5, 3.9, 4.1] {
                    let keys = (bits as f64 * load / f64::from(probes)) as u64;
                    let mut chance = vec![1.0];
                    chance.resize(bits + 1, 0.0);
                    for _ in 0..keys * u64::from(probes) {
                        let before = chance.clone();
                        for set in 0..=bits {
                            let grown = if set > 0 { before[set - 1] } else { 0.0 };
                            let (stays, grows) = (set as f64, (bits + 1 - set) as f64);
                            chance[set] = (before[set] * stays + grown * grows) / bits as f64;
                        }
                    }
                    let rate = |set: usize| (set as f64 / bits as f64).powi(probes as i32);
                    let exact: f64 = (0..=bits).map(|set| chance[set] * rate(set)).sum();
                    // As documented; a load above 4 is nearly full, and of no use to anybody.
                    let part = if bits <= 1024 && load < 4.0 { 1e-9 } else { 4e-3 };
                    if bits >= 300 || load < 4.0 {
                        close(classic(keys, bits as u64, probes), exact, part);
                    }
                }
            }
        }
    }

    /// The alternating sum against the load sum, which shares no code with it.
    #[test]
    fn both_sums_agree_where_both_apply() {
        for lanes in [8u32, 16] {
            for (n, blocks) in [(100, 2), (1000, 17), (1_000_000, 20_000), (10_000_000, 900_000)] {
                let mut alternating = 0.0;
                let mut ways = 1.0;
                for size in 0..=lanes {
                    let change = (f64::from(size) * (-1.0 / LANE).ln_1p()).exp_m1();
                    let clear = (f64::from(n) * (change / f64::from(blocks)).ln_1p()).exp();
                    alternating += if size % 2 == 0 { ways * clear } else { -ways * clear };
                    ways *= f64::from(lanes - size) / f64::from(size + 1);
                }
                let loads = blocked(n as u64, blocks as u64, lanes, lanes);
                assert!((alternating - loads).abs() < 1e-11 + loads * 1e-6, "{lanes} {n} {loads}");
            }
        }
    }

    /// Every choice of starts of a few keys in one block, weighed one by one.
    #[test]
    fn the_alternating_sum_is_the_mean_over_all_starts() {
        for (lanes, keys) in [(8u32, 4u32), (16, 3)] {
            for probes in 1..=lanes {
                let mut mean = 0.0;
                for starts in 0..lanes.pow(keys) {
                    let start = |key: u32| starts / lanes.pow(key) % lanes;
                    let touches =
                        |lane: u32, key: u32| (lane + lanes - start(key)) % lanes < probes;
                    let load =
                        |lane: u32| (0..keys).filter(|&key| touches(lane, key)).count() as i32;
                    let set = |lane: u32| 1.0 - (1.0 - 1.0 / LANE).powi(load(lane));
                    mean += (0..probes).map(set).product::<f64>();
                }
                mean /= f64::from(lanes.pow(keys));
                let rate = blocked(u64::from(keys), 1, lanes, probes);
                assert!((rate - mean).abs() < 1e-11, "{lanes} {probes}: {rate} {mean}");
            }
        }
    }

    #[test]
    fn the_floor_and_the_cardinality() {
        close(hash_floor(500_000_000), 2.7e-11, 0.01);
        close(hash_floor(1_000_000_000_000), 5.4e-8, 0.01);
        close(cardinality((-0.5f64).exp(), 1e-6), 500_000.0, 1e-5);
        assert_eq!(cardinality(1.0, 1e-6), 0.0);
        assert!(cardinality(0.0, 1e-6).is_infinite());
        close(either(0.5, 0.5), 0.75, 1e-12);
    }

    #[test]
    fn extremes_stay_probabilities() {
        for lanes in [8, 16] {
            for probes in 1..=lanes {
                for (n, blocks) in
                    [(0, 1), (1, 1), (1, u64::MAX), (u64::MAX, 1), (1 << 40, 1 << 30)]
                {
                    let rate = blocked(n, blocks, lanes, probes);
                    assert!((0.0..=1.0).contains(&rate), "{lanes} {probes} {n} {blocks} {rate}");
                }
            }
        }
        assert_eq!(classic(0, 64, 5), 0.0);
        close(classic(u64::MAX, 64, 5), 1.0, 1e-12);
    }
}
