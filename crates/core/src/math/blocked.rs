//! The false-positive rate of blocked Bloom filters.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
#[cfg(feature = "std")]
use std::{
    borrow::Cow,
    sync::{Mutex, OnceLock},
};

use super::probability::{Approximate, sum_of_powers};

/// Bits in a lane.
pub(super) const LANE_BITS: f64 = 64.0;

/// The rate below which the alternating sum of [`blocked_fpr`] has no accurate digits, so that the
/// result is accurate only if `probes == lanes`.
pub(crate) const ALTERNATING_FLOOR: f64 = 1e-10;

/// Returns the false-positive rate of a blocked filter with `keys` keys in `blocks` blocks of
/// `lanes` lanes, where a key sets one bit in each of `probes` neighbouring lanes.
///
/// Exact for independent uniform hashes and any number of blocks, with the dependence between
/// neighbouring lanes. With a = 63/64 and t(r, S) the number of lanes of S in which a key sets a
/// bit if its window starts at lane r, inclusion and exclusion over the lanes of the query window
/// W gives
///
/// ε = Σ over S ⊆ W of (-1)^|S| · (1 + E(S)/N)^n,  E(S) = 1/L · Σ over r of (a^t(r,S) - 1).
///
/// For large N this is the Poisson sum of Putze, Sanders & Singler 2007. For k = L the terms
/// depend on |S| alone, and the function sums over the load of the block instead, without
/// cancellation. For k < L the alternating sum has an absolute error of about 10⁻¹¹.
///
/// # Panics
/// If `lanes` is not 8 or 16, or `probes` is not in `1..=lanes`.
#[must_use]
pub fn blocked_fpr(keys: u64, blocks: u64, lanes: u32, probes: u32) -> f64 {
    assert!(matches!(lanes, 8 | 16) && (1..=lanes).contains(&probes), "invalid blocked layout");
    #[cfg(test)]
    super::evaluations::count();
    let (n, blocks) = (keys as f64, blocks.max(1) as f64);
    if probes == lanes {
        let set = |load: f64| -(load * (-1.0 / LANE_BITS).ln_1p()).exp_m1();
        return mean_over_load(n, blocks, set, lanes);
    }
    let term = |term: &Term| term.weight * (n * (term.change / blocks).ln_1p()).exp();
    terms(lanes, probes).iter().map(term).sum::<f64>().clamp(0.0, 1.0)
}

/// Returns [`blocked_fpr`] with an error that matters only near a target: from the alternating sum
/// and powers by repeated multiplication.
pub(crate) fn approximate_blocked_fpr(
    keys: u64,
    blocks: u64,
    lanes: u32,
    probes: u32,
) -> Approximate {
    let inverse = 1.0 / blocks.max(1) as f64;
    let base = |change: f64| 1.0 + change * inverse;
    if probes < lanes {
        let terms = terms(lanes, probes);
        return sum_of_powers(0.0, terms.iter().map(|term| (term.weight, base(term.change))), keys);
    }
    let (mut weight, mut clear) = (1.0, 1.0);
    let terms = (1..=lanes).map(|size| {
        weight *= -f64::from(lanes - size + 1) / f64::from(size);
        clear *= 1.0 - 1.0 / LANE_BITS;
        (weight, base(clear - 1.0))
    });
    sum_of_powers(1.0, terms, keys)
}

/// Returns the mean of set(load)^lanes over the binomial number of keys in a block.
fn mean_over_load(n: f64, blocks: f64, set: impl Fn(f64) -> f64, lanes: u32) -> f64 {
    let power = lanes as i32;
    let mean = n / blocks;
    if blocks == 1.0 || mean > 600.0 {
        // With one block the load is n; at a high load its spread has no effect.
        return set(mean).powi(power);
    }
    let max_load = (mean + 12.0 * mean.sqrt() + 60.0).min(n);
    let odds = 1.0 / (blocks - 1.0);
    let mut probability = (n * (-1.0 / blocks).ln_1p()).exp();
    let (mut load, mut fpr) = (0.0, 0.0);
    while load <= max_load {
        fpr += probability * set(load).powi(power);
        probability *= (n - load) / (load + 1.0) * odds;
        load += 1.0;
    }
    fpr.clamp(0.0, 1.0)
}

/// All subsets S of the query window with equal E(S), combined.
#[derive(Clone)]
struct Term {
    /// E(S) of [`blocked_fpr`]: the effect of one key on the probability that all of S is clear.
    change: f64,
    /// (-1)^|S| times the number of these subsets.
    weight: f64,
}

/// Returns the terms of a layout, which are calculated once. No thread waits for another one: in a child process, a
/// thread that calculated them during the fork does not exist.
#[cfg(feature = "std")]
fn terms(lanes: u32, probes: u32) -> Cow<'static, [Term]> {
    static OF_8_LANES: [OnceLock<Vec<Term>>; 8] = [const { OnceLock::new() }; 8];
    static OF_16_LANES: [OnceLock<Vec<Term>>; 16] = [const { OnceLock::new() }; 16];
    /// Held by the only thread that sets a cell.
    static SETTING: Mutex<()> = Mutex::new(());
    let cell =
        if lanes == 8 { &OF_8_LANES[probes as usize] } else { &OF_16_LANES[probes as usize] };
    if let Some(terms) = cell.get() {
        return Cow::Borrowed(terms);
    }
    let terms = calculate_terms(lanes, probes);
    match SETTING.try_lock() {
        Ok(_setting) => Cow::Borrowed(cell.get_or_init(|| terms)),
        Err(_) => Cow::Owned(terms),
    }
}

/// Returns the terms of a layout, calculated for each call: there is no `OnceLock` without std.
#[cfg(not(feature = "std"))]
fn terms(lanes: u32, probes: u32) -> Vec<Term> {
    calculate_terms(lanes, probes)
}

fn calculate_terms(lanes: u32, probes: u32) -> Vec<Term> {
    let window = (1u32 << probes) - 1;
    let rotated = |start: u32| (window << start | window << start >> lanes) & ((1 << lanes) - 1);
    // E(S) depends only on how many starts hit 0, 1, 2, … lanes of S: 5 bits for each count.
    let mut groups = alloc::collections::BTreeMap::<u128, f64>::new();
    for subset in 0..=window {
        let mut hit = 0u128;
        for start in 0..lanes {
            hit += 1 << (5 * (subset & rotated(start)).count_ones());
        }
        let sign = if subset.count_ones() % 2 == 0 { 1.0 } else { -1.0 };
        *groups.entry(hit).or_default() += sign;
    }
    let change = |hit: u128| {
        let starts = |lanes: i32| (hit >> (5 * lanes) & 31) as f64;
        let clear = |lanes: i32| (f64::from(lanes) * (-1.0 / LANE_BITS).ln_1p()).exp_m1();
        (1..=16).map(|lanes| starts(lanes) * clear(lanes)).sum::<f64>() / f64::from(lanes)
    };
    let term = |(hit, weight)| Term { change: change(hit), weight };
    groups.into_iter().map(term).filter(|term| term.weight != 0.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_value() {
        // Boost.Bloom's fast_multiblock64<8>: 10.1 bits per key for 1 %.
        let fpr = blocked_fpr(1_000_000, 10_100_000 / 512, 8, 8);
        assert!((fpr / 0.01 - 1.0).abs() < 0.01, "{fpr}");
    }

    /// Compares the alternating sum with the sum over loads, which shares no code with it.
    #[test]
    fn alternating_sum_equals_load_sum() {
        for lanes in [8u32, 16] {
            for (n, blocks) in [(100, 2), (1000, 17), (1_000_000, 20_000), (10_000_000, 900_000)] {
                let mut alternating = 0.0;
                let mut subsets = 1.0;
                for size in 0..=lanes {
                    let change = (f64::from(size) * (-1.0 / LANE_BITS).ln_1p()).exp_m1();
                    let clear = (f64::from(n) * (change / f64::from(blocks)).ln_1p()).exp();
                    alternating += if size % 2 == 0 { subsets * clear } else { -subsets * clear };
                    subsets *= f64::from(lanes - size) / f64::from(size + 1);
                }
                let loads = blocked_fpr(n as u64, blocks as u64, lanes, lanes);
                assert!((alternating - loads).abs() < 1e-11 + loads * 1e-6, "{lanes} {n} {loads}");
            }
        }
    }

    /// Compares with the mean over all starts of a few keys in one block.
    #[test]
    fn alternating_sum_equals_mean_over_all_starts() {
        for (lanes, keys) in [(8u32, 4u32), (16, 3)] {
            for probes in 1..=lanes {
                let mut mean = 0.0;
                for starts in 0..lanes.pow(keys) {
                    let start = |key: u32| starts / lanes.pow(key) % lanes;
                    let sets = |lane: u32, key: u32| (lane + lanes - start(key)) % lanes < probes;
                    let load = |lane: u32| (0..keys).filter(|&key| sets(lane, key)).count() as i32;
                    let set = |lane: u32| 1.0 - (1.0 - 1.0 / LANE_BITS).powi(load(lane));
                    mean += (0..probes).map(set).product::<f64>();
                }
                mean /= f64::from(lanes.pow(keys));
                let fpr = blocked_fpr(u64::from(keys), 1, lanes, probes);
                assert!((fpr - mean).abs() < 1e-11, "{lanes} {probes}: {fpr} {mean}");
            }
        }
    }

    #[test]
    fn approximation_is_within_its_error() {
        for (lanes, probes) in [(8, 8), (8, 6), (8, 1), (16, 16), (16, 12), (16, 7)] {
            for (n, blocks) in [(1, 1), (20, 1), (60, 2), (500, 11), (1000, 40), (100_000, 2000)] {
                let Approximate { fpr, error } = approximate_blocked_fpr(n, blocks, lanes, probes);
                let exact = blocked_fpr(n, blocks, lanes, probes);
                // Fewer probes than lanes have an error of their own.
                let own = if probes < lanes { 1e-10 } else { 1e-12 };
                assert!((fpr - exact).abs() < error + own, "{lanes} {probes} {n}: {fpr} {exact}");
                let small = if lanes == 8 { 3e-10 } else { 1e-7 };
                assert!(error < small * n as f64 / 10.0, "{lanes} {probes} {n}: {error}");
            }
        }
    }

    #[test]
    fn extreme_arguments_give_probabilities() {
        for lanes in [8, 16] {
            for probes in 1..=lanes {
                for (n, blocks) in
                    [(0, 1), (1, 1), (1, u64::MAX), (u64::MAX, 1), (1 << 40, 1 << 30)]
                {
                    let fpr = blocked_fpr(n, blocks, lanes, probes);
                    assert!((0.0..=1.0).contains(&fpr), "{lanes} {probes} {n} {blocks} {fpr}");
                }
            }
        }
    }
}
