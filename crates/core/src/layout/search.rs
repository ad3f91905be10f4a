//! Searches for the smallest size at a rate, and the checks and the rounding that all layouts share.

use crate::byte_size::ByteSize;
use crate::error::{Error, Result};
use crate::math::{self, Approximate};
#[cfg(not(feature = "std"))]
use crate::no_std::*;

/// Bytes of a cache line, the unit of all storage.
pub(crate) const LINE_BYTES: u64 = 64;
pub(super) const LINE_BITS: u64 = LINE_BYTES * 8;
/// Maximum number of cache lines of a filter (2⁵⁶ bytes).
pub(super) const MAX_LINES: u64 = 1 << 50;
pub(super) const MAX_BITS: u64 = MAX_LINES * LINE_BITS;

/// Checks that `fpr` is in (0, 1) and well above the hash floor. Returns the capacity, at least 1.
pub(crate) fn check_target(capacity: u64, fpr: f64) -> Result<u64> {
    if !(fpr > 0.0 && fpr < 1.0) {
        return Err(Error::fpr(fpr));
    }
    let capacity = capacity.max(1);
    let floor = math::hash_floor(capacity);
    if floor > fpr / 2.0 {
        return Err(Error::unattainable(capacity, fpr, floor));
    }
    Ok(capacity)
}

/// Returns the number of whole cache lines in `bytes`.
pub(super) fn check_memory(bytes: u64) -> Result<u64> {
    let lines = bytes / LINE_BYTES;
    if lines == 0 || lines > MAX_LINES {
        return Err(Error::no_memory(bytes));
    }
    Ok(lines)
}

/// Highly composite numbers, each of which divides the next.
pub(super) const ROUND_UNITS: [u64; 6] = [12, 60, 360, 5040, 55_440, 720_720];

/// The smallest size that [`round_up`] may change.
pub(super) const ROUNDED_FROM: u64 = 1000 * ROUND_UNITS[0];

/// Rounds a size up to a multiple of the largest unit that is at most a thousandth of it, so that
/// it has many divisors.
pub(super) fn round_up(size: u64, max: u64) -> u64 {
    let unit = ROUND_UNITS.into_iter().rev().find(|unit| *unit <= size / 1000).unwrap_or(1);
    Some(size.next_multiple_of(unit)).filter(|rounded| *rounded <= max).unwrap_or(size)
}

/// Returns the smallest number up to `max` that fits, if all larger numbers fit too.
pub(super) fn smallest_fitting(max: u64, fits: impl Fn(u64) -> bool) -> Option<u64> {
    let mut high = 1;
    while !fits(high) {
        if high >= max {
            return None;
        }
        high = (high * 2).min(max);
    }
    // Invariant: `high` fits, `low` does not.
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

/// Returns a rate that is on the same side of `fpr` as the exact one: the approximation if it is far
/// enough from `fpr`.
pub(super) fn compared_with(
    fpr: f64,
    floor: f64,
    approximation: Option<Approximate>,
    exact: impl FnOnce() -> f64,
) -> f64 {
    // Exact rates have errors, too: up to 10⁻¹⁰, or the last digits.
    let is_far = |rate: f64, error: f64| (rate - fpr).abs() > error + 1e-10 + 1e-9 * fpr;
    approximation
        .map(|found| (math::probability_of_either(found.fpr, floor), found.error))
        .filter(|&(rate, error)| is_far(rate, error))
        // A rate that is less than the error can be negative; it is then far below `fpr`.
        .map_or_else(exact, |(rate, error)| if rate > 0.0 { rate } else { error.min(fpr) })
}

/// Returns the smallest number up to `max` for which `fpr_of` is at most `fpr`, if `fpr_of` is
/// decreasing. Near the result `fpr_of` should fall with about the power `slope`, and `guess` is
/// the start of the search: a good guess takes three or four evaluations.
pub(crate) fn smallest_for_fpr(
    max: u64,
    guess: u64,
    slope: f64,
    fpr: f64,
    fpr_of: impl Fn(u64) -> f64,
) -> Option<u64> {
    if max == 0 {
        return None;
    }
    // The largest number known not to fit and the smallest known to fit, each with the logarithm of
    // its rate relative to `fpr`.
    let (mut low, mut high) = (None::<(u64, f64)>, None::<(u64, f64)>);
    let mut next = guess.clamp(1, max);
    for turn in 1u32.. {
        let found = fpr_of(next);
        let point = Some((next, (found / fpr).ln()));
        if found <= fpr {
            high = point
        } else {
            low = point
        }
        // Extrapolates by the slope; after two steps on the same side, by at least a factor of 2.
        let extrapolate = |at: u64, excess: f64| {
            let factor = (excess / slope).exp();
            let min_factor = if turn < 3 { 1.0 } else { 2.0 };
            at as f64
                * if excess > 0.0 { factor.max(min_factor) } else { factor.min(1.0 / min_factor) }
        };
        next = match (low, high) {
            (None, Some((1, _))) => return Some(1),
            (Some((at, _)), None) if at == max => return None,
            (Some((below, _)), Some((at, _))) if at - below == 1 => return Some(at),
            (None, Some((at, excess))) => (extrapolate(at, excess) as u64).clamp(1, at - 1),
            (Some((at, excess)), None) => {
                (extrapolate(at, excess).ceil() as u64).clamp(at + 1, max)
            }
            (Some((below, over)), Some((at, under))) => {
                let share = over / (over - under);
                let root = (below as f64) * (at as f64 / below as f64).powf(share);
                let middle = below + (at - below) / 2;
                let between = share > 0.0 && share < 1.0 && turn % 4 != 0;
                let next = if between { root.ceil() as u64 } else { middle };
                next.clamp(below + 1, at - 1)
            }
            (None, None) => return None,
        };
    }
    None
}

/// Returns a capacity whose filter at `fpr`, of `size_bytes` bytes, fits in `memory`, while the
/// filter of one more key does not. A larger capacity may fit if the size falls, by up to 2 %.
pub(super) fn max_capacity(
    memory: ByteSize,
    fpr: f64,
    size_bytes: impl Fn(u64) -> Result<u64>,
) -> Result<u64> {
    check_target(1, fpr)?;
    Ok(largest_fitting(|keys| size_bytes(keys).is_ok_and(|size| size <= memory.as_u64())))
}

/// Returns the largest number that fits, if all smaller numbers fit too; otherwise a number that
/// fits while the next does not.
pub(crate) fn largest_fitting(fits: impl Fn(u64) -> bool) -> u64 {
    smallest_fitting(1 << 62, |keys| !fits(keys)).unwrap_or(1 << 62) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_sizes_have_many_divisors_and_cost_a_thousandth() {
        for size in [1, 999, 11_999, 12_000, 19_727, 60_001, 5_040_001, 1 << 40, 1 << 50] {
            let rounded = round_up(size, 1 << 50);
            assert!((size..=size + size / 1000).contains(&rounded) && rounded <= 1 << 50);
            let divisors = (1..=1000u64).filter(|by| rounded.is_multiple_of(*by)).count();
            assert!(size < 12_000 || size == 1 << 50 || divisors >= 6, "{size} {rounded}");
        }
        assert_eq!((round_up(11_999, 1 << 50), round_up(12_001, 1 << 50)), (11_999, 12_012));
        assert_eq!(round_up(1 << 50, 1 << 50), 1 << 50);
    }
}
