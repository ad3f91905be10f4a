//! The layout of blocked Bloom filters.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use core::ops::RangeInclusive;

use super::search::{
    LINE_BYTES, MAX_LINES, ROUNDED_FROM, check_memory, check_target, compared_with,
    largest_fitting, max_capacity, round_up, smallest_fitting, smallest_for_fpr,
};
use crate::byte_size::ByteSize;
use crate::error::{Error, Result};
use crate::math;

/// The layout of a [`BloomFilter`](crate::BloomFilter): blocks of 8 or 16 lanes of 64 bits. A key
/// sets one bit in each of `probes` lanes of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedLayout {
    pub(super) blocks: u64,
    pub(super) lanes: u32,
    pub(super) probes: u32,
}

/// The rate below which blocks are pairs of cache lines: they save at least a tenth of the space
/// and take one and a half times the time (docs/design/filters.md).
pub(super) const PAIRS_BELOW: f64 = 2e-4;

/// The rate below which a pair that keeps [`PAIRS_BELOW`] is smaller than single lines for the rate
/// itself. It is used instead, so that no filter is larger than one for a lower rate.
pub(super) const PAIRS_SMALLER_BELOW: f64 = 3.5e-4;

/// The factor of space that fewer probes than lanes must save to be used: they need masks in vector
/// kernels.
#[cfg(test)]
pub(super) const MASK_COST: f64 = 1.02;

/// The probes that need the least space for large filters of single lines, each with the lowest
/// rate for which it does; all lanes below. `probes_of_a_rate_need_the_least_space` calculates them.
pub(super) const PROBES_OF_LINES: [(f64, u32); 6] =
    [(0.37986, 1), (0.1833, 2), (0.090568, 3), (0.044693, 4), (0.020463, 5), (0.010966, 6)];

/// The same for pairs of lines.
pub(super) const PROBES_OF_PAIRS: [(f64, u32); 2] = [(9.3548e-5, 12), (7.953e-5, 13)];

/// The rate below which the smallest layout is a pair of lines; above, it saves at most 0.4 %.
pub(super) const LEAST_PAIRS_BELOW: f64 = 0.02;

/// [`PROBES_OF_LINES`] for the least space, whatever the speed.
pub(super) const LEAST_OF_LINES: [(f64, u32); 7] = [
    (0.37986, 1),
    (0.1833, 2),
    (0.090568, 3),
    (0.044693, 4),
    (0.020463, 5),
    (0.0089299, 6),
    (0.0038271, 7),
];

/// The same for pairs of lines, below [`LEAST_PAIRS_BELOW`].
pub(super) const LEAST_OF_PAIRS: [(f64, u32); 10] = [
    (0.011505, 6),
    (0.0058491, 7),
    (0.0029481, 8),
    (0.0013644, 9),
    (5.8699e-4, 10),
    (2.3912e-4, 11),
    (9.3548e-5, 12),
    (3.567e-5, 13),
    (1.346e-5, 14),
    (5.0993e-6, 15),
];

impl BlockedLayout {
    /// Returns the smallest layout with a rate of at most `fpr` at `capacity` keys whose lanes and
    /// probes are the best for that rate at large capacities. They follow from the rate alone, so that
    /// filters of one rate can be compared and folded. Fewer probes than lanes must save 2 % of the
    /// space, because they are slower. From 12,000 blocks on the layout is up to 0.1 % larger, so
    /// that the number of blocks has many divisors for folding.
    ///
    /// # Errors
    /// If `fpr` is not between 0 and 1, or is not attainable with 64-bit hashes at this capacity.
    pub fn for_fpr(capacity: u64, fpr: f64) -> Result<Self> {
        let capacity = check_target(capacity, fpr)?;
        let (lanes, probes, fpr) = best_for(fpr);
        Self::rounded(Self::smallest_with_probes(capacity, fpr, lanes, probes), capacity, fpr)
    }

    /// Returns the layout of the least space with a rate of at most `fpr` at `capacity` keys. Unlike
    /// [`for_fpr`](Self::for_fpr) it uses fewer probes than lanes, and pairs of lines below 2 %,
    /// wherever they save space. Lanes and probes follow from the rate alone, except in filters of a
    /// few blocks, which may be smaller with others.
    ///
    /// # Errors
    /// As of [`for_fpr`](Self::for_fpr).
    pub(crate) fn for_least_space(capacity: u64, fpr: f64) -> Result<Self> {
        let capacity = check_target(capacity, fpr)?;
        let sized = |lanes: u32, table: &[(f64, u32)]| {
            let probes = probes_in(table, lanes, fpr);
            Self::rounded(Self::smallest_with_probes(capacity, fpr, lanes, probes), capacity, fpr)
        };
        let pair = if fpr < LEAST_PAIRS_BELOW { Some(sized(16, &LEAST_OF_PAIRS)?) } else { None };
        // A few blocks may be fewer with the probes of the default.
        let found = [sized(8, &LEAST_OF_LINES).ok(), pair, Self::for_fpr(capacity, fpr).ok()];
        let best = found.into_iter().flatten().min_by_key(Self::lines);
        best.ok_or_else(|| Error::unattainable(capacity, fpr, math::hash_floor(capacity)))
    }

    /// Returns the smallest layout with these lanes and probes that keeps `fpr` at `capacity` keys.
    fn smallest_with_probes(capacity: u64, fpr: f64, lanes: u32, probes: u32) -> Option<Self> {
        let layout = |blocks| Self { blocks, lanes, probes };
        // Blocked filters at useful rates take a tenth more than the bound for classic filters.
        let guess = 1.1 * math::classic_bits(capacity, fpr) / f64::from(lanes * 64);
        let slope = f64::from(probes) * core::f64::consts::LN_2;
        let floor = math::hash_floor(capacity);
        let fpr_of = |blocks| {
            let rate = math::approximate_blocked_fpr(capacity, blocks, lanes, probes);
            compared_with(fpr, floor, Some(rate), || layout(blocks).fpr(capacity))
        };
        smallest_for_fpr(MAX_LINES, guess as u64 + 1, slope, fpr, fpr_of).map(layout)
    }

    /// Rounds the number of blocks up; an error if there is no layout.
    fn rounded(best: Option<Self>, capacity: u64, fpr: f64) -> Result<Self> {
        let floor = || math::hash_floor(capacity);
        let best = best.ok_or_else(|| Error::unattainable(capacity, fpr, floor()))?;
        Ok(Self { blocks: round_up(best.blocks, MAX_LINES), ..best })
    }

    /// Returns the smallest layout with `probes` probes that keeps `fpr` at `capacity` keys: blocks
    /// of 8 lanes for up to 8 probes, of 16 lanes above.
    ///
    /// # Errors
    /// If `fpr` is not between 0 and 1 or is not attainable at this capacity, or `probes` is not 1
    /// to 16.
    pub(crate) fn for_fpr_with_probes(capacity: u64, fpr: f64, probes: u32) -> Result<Self> {
        let capacity = check_target(capacity, fpr)?;
        let Self { lanes, .. } = Self::for_bits(1, probes)?;
        if !probes_for(lanes, fpr).contains(&probes) {
            return Err(Error::invalid("probes", "8 or 16 at this low fpr", probes));
        }
        let best = Self::smallest_with_probes(capacity, fpr, lanes, probes);
        Self::rounded(best, capacity, fpr)
    }

    /// Returns the largest layout with `probes` probes that fits in `memory`.
    ///
    /// # Errors
    /// If `memory` is less than a block, or `probes` is not 1 to 16.
    pub(crate) fn for_memory_with_probes(memory: ByteSize, probes: u32) -> Result<Self> {
        let Self { lanes, .. } = Self::for_bits(1, probes)?;
        let blocks = memory.as_u64() / u64::from(lanes * 8);
        if blocks == 0 || blocks > MAX_LINES {
            return Err(Error::no_memory(memory.as_u64()));
        }
        Ok(Self { blocks, lanes, probes })
    }

    /// Returns a capacity for which [`for_fpr`](Self::for_fpr) fits in `memory`, within 2 % or one
    /// key of the maximum; 0 if there is none. A larger capacity may fit, because the size falls
    /// slightly where another number of probes becomes better or the rounding changes.
    ///
    /// # Errors
    /// If `fpr` is not between 0 and 1.
    pub(crate) fn max_capacity(memory: ByteSize, fpr: f64) -> Result<u64> {
        max_capacity(memory, fpr, |keys| Ok(Self::for_fpr(keys, fpr)?.size_bytes()))
    }

    /// Returns the layout that keeps `fpr` until `capacity` keys were counted as new. More keys
    /// than that were inserted by then, because some are false positives.
    pub(crate) fn for_counted_keys(capacity: u64, fpr: f64) -> Result<Self> {
        // At a higher rate nearly all keys are false positives, and the count hardly grows.
        let fpr = fpr.min(0.5);
        let layout = Self::for_fpr(capacity, fpr)?;
        if capacity == 0 || layout.keeps_one_more(capacity, fpr) {
            return Ok(layout);
        }
        // The count of all keys is then within a few thousandths of a key.
        let tolerance = 1e-3 / capacity as f64;
        let inserted =
            math::expected_insertions(capacity, |keys| layout.fpr_within(keys, tolerance));
        Self::for_fpr(inserted.ceil() as u64, fpr)
    }

    /// [`for_counted_keys`](Self::for_counted_keys) with the layout of the least space.
    pub(crate) fn least_for_counted_keys(capacity: u64, fpr: f64) -> Result<Self> {
        let layout = Self::for_least_space(capacity, fpr)?;
        let tolerance = 1e-3 / capacity.max(1) as f64;
        let inserted =
            math::expected_insertions(capacity, |keys| layout.fpr_within(keys, tolerance));
        Self::for_least_space(inserted.ceil() as u64, fpr)
    }

    /// Whether the smallest layout for `capacity` keys at `fpr` is also that for all keys that were
    /// inserted by the time `capacity` were counted; false if that takes more than two rates to decide.
    ///
    /// Less than one key is a false positive if (n + 1) · ε(n + 1) < 1: their number is the integral of ε
    /// up to at most n + 1 keys. Sizes that are rounded up are left out.
    fn keeps_one_more(&self, capacity: u64, fpr: f64) -> bool {
        let ((.., fpr), keys) = (best_for(fpr), capacity + 1);
        let rate = math::approximate_blocked_fpr(keys, self.blocks, self.lanes, self.probes);
        self.blocks < ROUNDED_FROM
            && keys as f64 * (rate.fpr + rate.error) < 0.9
            && compared_with(fpr, math::hash_floor(keys), Some(rate), || self.fpr(keys)) <= fpr
    }

    /// Returns the rate with an error of at most `tolerance`, in less time than [`Self::fpr`] if the
    /// keys are few.
    fn fpr_within(&self, keys: u64, tolerance: f64) -> f64 {
        let rate = math::approximate_blocked_fpr(keys, self.blocks, self.lanes, self.probes);
        if rate.error <= tolerance { rate.fpr.clamp(0.0, 1.0) } else { self.fpr(keys) }
    }

    /// Returns the layout with the lowest rate at `capacity` keys that fits in `memory`.
    ///
    /// # Errors
    /// If `memory` is less than a cache line of 64 bytes.
    pub fn for_memory(capacity: u64, memory: ByteSize) -> Result<Self> {
        let lines = check_memory(memory.as_u64())?;
        let best = |lanes: u32, blocks: u64| {
            let layout = |probes| Self { blocks, lanes, probes };
            let by_fpr = |a: &Self, b: &Self| a.fpr(capacity).total_cmp(&b.fpr(capacity));
            (1..=lanes).map(layout).filter(|layout| layout.is_accurate(capacity)).min_by(by_fpr)
        };
        let single = best(8, lines).ok_or_else(|| Error::no_memory(memory.as_u64()))?;
        if single.fpr(capacity) >= PAIRS_BELOW || lines < 2 {
            return Ok(single);
        }
        let pair = best(16, lines / 2).filter(|pair| pair.fpr(capacity) < single.fpr(capacity));
        Ok(pair.unwrap_or(single))
    }

    /// Returns the layout with at least `bits` bits, rounded up to whole blocks, and `probes`
    /// probes: blocks of 8 lanes for up to 8 probes, of 16 lanes above.
    ///
    /// # Errors
    /// If `bits` is 0, or `probes` is not 1 to 16.
    pub fn for_bits(bits: u64, probes: u32) -> Result<Self> {
        let lanes = if probes > 8 { 16 } else { 8 };
        Self::new(bits.div_ceil(u64::from(lanes) * 64), lanes, probes)
    }

    /// Returns the layout with exactly these numbers.
    ///
    /// # Errors
    /// If `blocks` is 0 or above 2⁵⁰, `lanes` is not 8 or 16, or `probes` is not 1 to `lanes`.
    pub fn new(blocks: u64, lanes: u32, probes: u32) -> Result<Self> {
        if !matches!(lanes, 8 | 16) {
            return Err(Error::invalid("lanes", "8 or 16", lanes));
        }
        if !(1..=lanes).contains(&probes) {
            let expected = if lanes == 8 { "1 to 8" } else { "1 to 16" };
            return Err(Error::invalid("probes", expected, probes));
        }
        if blocks == 0 || blocks > MAX_LINES {
            return Err(Error::invalid("blocks", "1 to 2^50", blocks));
        }
        Ok(Self { blocks, lanes, probes })
    }

    /// Returns the layout with the numbers of an existing layout, without checks.
    #[inline(always)]
    pub(crate) fn new_unchecked(blocks: u64, lanes: u8, probes: u8) -> Self {
        Self { blocks, lanes: lanes.into(), probes: probes.into() }
    }

    /// Returns the number of keys at which the rate reaches `fpr`: the inverse of
    /// [`BlockedLayout::for_fpr`].
    #[must_use]
    pub fn capacity_at_fpr(&self, fpr: f64) -> u64 {
        largest_fitting(|keys| self.fpr(keys) <= fpr)
    }

    /// Returns the false-positive rate at `keys` keys, including the hash floor.
    #[must_use]
    pub fn fpr(&self, keys: u64) -> f64 {
        let fpr = math::blocked_fpr(keys, self.blocks, self.lanes, self.probes);
        math::probability_of_either(fpr, math::hash_floor(keys))
    }

    /// Returns the smallest layout that keeps `fpr` at `capacity` keys and can be folded to this
    /// one: the same probes and lanes, and a multiple of the blocks.
    pub(crate) fn multiple_for_fpr(&self, capacity: u64, fpr: f64) -> Result<Self> {
        let capacity = check_target(capacity, fpr)?;
        if !probes_for(self.lanes, fpr).contains(&self.probes) {
            let expected = "the number of lanes at this low fpr";
            return Err(Error::invalid("probes", expected, self.probes));
        }
        let times = |times: u64| Self { blocks: self.blocks * times, ..*self };
        let smallest =
            smallest_fitting(MAX_LINES / self.blocks, |factor| times(factor).fpr(capacity) <= fpr);
        let floor = || math::hash_floor(capacity);
        smallest.map(times).ok_or_else(|| Error::unattainable(capacity, fpr, floor()))
    }

    /// Whether the calculated rate at `keys` keys is accurate.
    fn is_accurate(&self, keys: u64) -> bool {
        let fpr = math::blocked_fpr(keys, self.blocks, self.lanes, self.probes);
        self.probes == self.lanes || fpr > math::ALTERNATING_FLOOR
    }

    /// The number of blocks.
    #[inline]
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Lanes of 64 bits per block: 8 (one cache line) or 16 (two).
    #[inline]
    #[must_use]
    pub fn lanes(&self) -> u32 {
        self.lanes
    }

    /// Bits that a key sets, each in another lane.
    #[inline]
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.probes
    }

    /// The total number of bits.
    #[inline]
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.size_bytes() * 8
    }

    /// The total number of bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.lines() * LINE_BYTES
    }

    /// The total number of cache lines.
    pub(crate) fn lines(&self) -> u64 {
        self.blocks * u64::from(self.lanes / 8)
    }

    /// The probability that one key sets a given bit.
    pub(crate) fn bit_probability(&self) -> f64 {
        f64::from(self.probes) / self.bits() as f64
    }
}

/// Returns lanes, probes and the rate to keep for a rate.
fn best_for(fpr: f64) -> (u32, u32, f64) {
    let (lanes, table, kept) = if fpr < PAIRS_SMALLER_BELOW {
        (16, &PROBES_OF_PAIRS[..], fpr.min(PAIRS_BELOW))
    } else {
        (8, &PROBES_OF_LINES[..], fpr)
    };
    (lanes, probes_in(table, lanes, kept), kept)
}

/// Returns the probes for a rate from a table of the lowest rates of each number.
fn probes_in(table: &[(f64, u32)], lanes: u32, fpr: f64) -> u32 {
    table.iter().find(|(lowest, _)| fpr >= *lowest).map_or(lanes, |entry| entry.1)
}

/// Returns the numbers of probes that a rate allows: all lanes only, if the rate of fewer probes
/// cannot be calculated accurately.
pub(super) fn probes_for(lanes: u32, fpr: f64) -> RangeInclusive<u32> {
    if fpr > 2.0 * math::ALTERNATING_FLOOR { 1..=lanes } else { lanes..=lanes }
}
