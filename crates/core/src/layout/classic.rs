//! The layout of classic Bloom filters.

use super::search::{
    LINE_BITS, LINE_BYTES, MAX_BITS, check_memory, check_target, compared_with, largest_fitting,
    max_capacity, round_up, smallest_fitting, smallest_for_fpr,
};
use crate::byte_size::ByteSize;
use crate::error::{Error, Result};
use crate::math;
#[cfg(not(feature = "std"))]
use crate::no_std::*;

/// The layout of a [`ClassicBloomFilter`](crate::ClassicBloomFilter): m bits, of which a key sets
/// `probes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassicLayout {
    pub(super) bits: u64,
    pub(super) probes: u32,
}

/// Maximum number of probes: more than is optimal for any rate above the hash floor.
pub(super) const MAX_PROBES: u32 = 64;

impl ClassicLayout {
    /// Returns the smallest layout with a rate of at most `fpr` at `capacity` keys whose probes are
    /// the best for that rate at large capacities. They follow from the rate alone, so that filters of
    /// one rate can be compared and folded. From 12,000 bits on the layout is up to 0.1 % larger, so
    /// that the number of bits has many divisors for folding.
    ///
    /// # Errors
    /// If `fpr` is not between 0 and 1, or is not attainable with 64-bit hashes at this capacity.
    pub fn for_fpr(capacity: u64, fpr: f64) -> Result<Self> {
        let capacity = check_target(capacity, fpr)?;
        let best = Self::smallest_with_probes(capacity, fpr, best_probes(fpr), MAX_BITS);
        Self::rounded(best, capacity, fpr)
    }

    /// Returns the layout of the least space with a rate of at most `fpr` at `capacity` keys. Its
    /// probes differ from those of [`for_fpr`](Self::for_fpr) only for less than some hundred keys.
    ///
    /// # Errors
    /// As of [`for_fpr`](Self::for_fpr).
    pub(crate) fn for_least_space(capacity: u64, fpr: f64) -> Result<Self> {
        let capacity = check_target(capacity, fpr)?;
        let ideal = best_probes(fpr);
        let near = ideal.saturating_sub(2).max(1)..=(ideal + 2).min(MAX_PROBES);
        let sized = |probes: u32, best: Option<Self>| {
            // At equal size fewer probes are better.
            let max = best.map_or(MAX_BITS, |best| best.bits - u64::from(probes > best.probes));
            Self::smallest_with_probes(capacity, fpr, probes, max)
        };
        let mut best = sized(ideal, None);
        // At a given size the rate has one minimum over the probes: a number that is no better than
        // its neighbour is followed by worse ones.
        let mut follow = |neighbours: &mut dyn Iterator<Item = u32>| {
            while let Some(smaller) = neighbours.next().and_then(|probes| sized(probes, best)) {
                best = Some(smaller);
            }
        };
        follow(&mut (*near.start()..ideal).rev());
        follow(&mut (ideal + 1..=*near.end()));
        Self::rounded(best, capacity, fpr)
    }

    /// Returns the smallest layout with these probes and at most `max` bits that keeps `fpr`.
    fn smallest_with_probes(capacity: u64, fpr: f64, probes: u32, max: u64) -> Option<Self> {
        // A limit is the size with other probes: it is tried first.
        let guess = if max < MAX_BITS { max } else { math::classic_bits(capacity, fpr) as u64 };
        let slope = f64::from(probes) * core::f64::consts::LN_2;
        let floor = math::hash_floor(capacity);
        let fpr_of = |bits| {
            let rate = math::approximate_classic_fpr(capacity, bits, probes);
            compared_with(fpr, floor, rate, || Self { bits, probes }.fpr(capacity))
        };
        smallest_for_fpr(max, guess, slope, fpr, fpr_of).map(|bits| Self { bits, probes })
    }

    /// Rounds the number of bits up; an error if there is no layout.
    fn rounded(best: Option<Self>, capacity: u64, fpr: f64) -> Result<Self> {
        let floor = || math::hash_floor(capacity);
        let best = best.ok_or_else(|| Error::unattainable(capacity, fpr, floor()))?;
        Ok(Self { bits: round_up(best.bits, MAX_BITS), ..best })
    }

    /// Returns the smallest layout with `probes` probes that keeps `fpr` at `capacity` keys.
    ///
    /// # Errors
    /// If `fpr` is not between 0 and 1 or is not attainable at this capacity, or `probes` is not 1
    /// to 64.
    pub(crate) fn for_fpr_with_probes(capacity: u64, fpr: f64, probes: u32) -> Result<Self> {
        let capacity = check_target(capacity, fpr)?;
        Self::for_bits(1, probes)?;
        let best = Self::smallest_with_probes(capacity, fpr, probes, MAX_BITS);
        Self::rounded(best, capacity, fpr)
    }

    /// Returns the largest layout with `probes` probes that fits in `memory`.
    ///
    /// # Errors
    /// If `memory` is less than a cache line of 64 bytes, or `probes` is not 1 to 64.
    pub(crate) fn for_memory_with_probes(memory: ByteSize, probes: u32) -> Result<Self> {
        Self::for_bits(check_memory(memory.as_u64())? * LINE_BITS, probes)
    }

    /// Returns a capacity for which [`for_fpr`](Self::for_fpr) fits in `memory`, within 2 % or one
    /// key of the maximum; 0 if there is none. A larger capacity may fit, because the size falls
    /// slightly where the rounding changes.
    ///
    /// # Errors
    /// If `fpr` is not between 0 and 1.
    pub(crate) fn max_capacity(memory: ByteSize, fpr: f64) -> Result<u64> {
        max_capacity(memory, fpr, |keys| Ok(Self::for_fpr(keys, fpr)?.size_bytes()))
    }

    /// Returns the layout with the lowest rate at `capacity` keys that fits in `memory`.
    ///
    /// # Errors
    /// If `memory` is less than a cache line of 64 bytes.
    pub fn for_memory(capacity: u64, memory: ByteSize) -> Result<Self> {
        let bits = check_memory(memory.as_u64())? * LINE_BITS;
        let ideal = math::optimal_probes(bits as f64 / capacity.max(1) as f64).min(MAX_PROBES);
        let near = ideal.saturating_sub(2).max(1)..=(ideal + 2).min(MAX_PROBES);
        let by_fpr = |a: &Self, b: &Self| a.fpr(capacity).total_cmp(&b.fpr(capacity));
        let best = near.map(|probes| Self { bits, probes }).min_by(by_fpr);
        best.ok_or_else(|| Error::no_memory(memory.as_u64()))
    }

    /// Returns the layout with exactly these numbers.
    ///
    /// # Errors
    /// If `bits` is 0 or above 2⁵⁹, or `probes` is not 1 to 64.
    pub fn for_bits(bits: u64, probes: u32) -> Result<Self> {
        if bits == 0 || bits > MAX_BITS {
            return Err(Error::invalid("bits", "1 to 2^59", bits));
        }
        if !(1..=MAX_PROBES).contains(&probes) {
            return Err(Error::invalid("probes", "1 to 64", probes));
        }
        Ok(Self { bits, probes })
    }

    /// Returns the number of keys at which the rate reaches `fpr`: the inverse of
    /// [`ClassicLayout::for_fpr`].
    #[must_use]
    pub fn capacity_at_fpr(&self, fpr: f64) -> u64 {
        largest_fitting(|keys| self.fpr(keys) <= fpr)
    }

    /// Returns the false-positive rate at `keys` keys, including the hash floor.
    #[must_use]
    pub fn fpr(&self, keys: u64) -> f64 {
        let fpr = math::classic_fpr(keys, self.bits, self.probes);
        math::probability_of_either(fpr, math::hash_floor(keys))
    }

    /// Returns the smallest layout that keeps `fpr` at `capacity` keys and can be folded to this
    /// one: the same probes, and a multiple of the bits.
    pub(crate) fn multiple_for_fpr(&self, capacity: u64, fpr: f64) -> Result<Self> {
        let capacity = check_target(capacity, fpr)?;
        let times = |times: u64| Self { bits: self.bits * times, ..*self };
        let smallest =
            smallest_fitting(MAX_BITS / self.bits, |factor| times(factor).fpr(capacity) <= fpr);
        let floor = || math::hash_floor(capacity);
        smallest.map(times).ok_or_else(|| Error::unattainable(capacity, fpr, floor()))
    }

    /// The total number of bits.
    #[inline]
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.bits
    }

    /// Bits that a key sets; two of them may coincide.
    #[inline]
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.probes
    }

    /// The total number of bytes: the bits, rounded up to whole cache lines.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.lines() * LINE_BYTES
    }

    /// The total number of cache lines.
    pub(crate) fn lines(&self) -> u64 {
        self.bits.div_ceil(LINE_BITS)
    }

    /// The probability that one key sets a given bit.
    pub(crate) fn bit_probability(&self) -> f64 {
        -(f64::from(self.probes) * (-1.0 / self.bits as f64).ln_1p()).exp_m1()
    }
}

/// Returns the number of probes with which a large filter is smallest at a rate: by the textbook
/// formula it takes -k/ln(1 - ε^(1/k)) bits per key.
fn best_probes(fpr: f64) -> u32 {
    let ideal = ((-fpr.log2()).round().max(1.0) as u32).min(MAX_PROBES);
    let bits_per_key = |probes: &u32| {
        let k = f64::from(*probes);
        -k / (-(fpr.ln() / k).exp()).ln_1p()
    };
    let near = ideal.saturating_sub(1).max(1)..=(ideal + 1).min(MAX_PROBES);
    let smaller = |a: &u32, b: &u32| bits_per_key(a).total_cmp(&bits_per_key(b));
    near.min_by(smaller).unwrap_or(ideal)
}
