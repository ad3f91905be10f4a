//! The layout of a quotient filter, and its size for a capacity and rate.
//!
//! A layout is validated: every hash has a slot in the table. Numbers of slots are not rounded to a
//! power of two.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use core::cmp::Reverse;

use crate::error::{Error, Grouped, Result};
use crate::kernel::quotient::{MAX_WIDTH, SLOTS, TableParams};
use crate::layout::{LINE_BYTES, check_target, largest_fitting, smallest_for_fpr};
use crate::math;
use crate::membership::counted;

/// The largest number of slots.
const MAX_SLOTS: u64 = 1 << 50;
/// The largest width of a fingerprint, so that at least two hashes have the same fingerprint.
const MAX_BITS: u32 = 63;
/// The load at capacity, 19 of 20 slots. Above it, the slots that an insert moves grow with the
/// square of 1 / (share of free slots).
const LOAD: (u64, u64) = (19, 20);
/// The number of slots after the last quotient, for remainders that are shifted past it. At
/// [`LOAD`], x such slots are too few with a probability of about e^(-0.103 x): 10⁻¹⁴ here.
const BEHIND: u64 = 320;

/// The layout of a [`QuotientFilter`](crate::QuotientFilter): the number of slots, and of bits of
/// the remainder in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotientLayout {
    slots: u64,
    remainder_bits: u32,
}

impl QuotientLayout {
    /// Returns the smallest layout with a rate of at most `rate` and 5 % free slots at `keys` keys.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1, or 64-bit hashes cannot reach it at that number of keys.
    pub fn for_fpr(keys: u64, rate: f64) -> Result<Self> {
        let keys = check_target(keys, rate)?;
        let too_many = || {
            let expected =
                "at most the number that 2^50 slots and fingerprints of 63 bits hold at this rate";
            Error::invalid("keys", expected, Grouped(keys))
        };
        // The rate depends on the number of fingerprints alone, the capacity on that of slots.
        let rate_of = |fingerprints| math::fingerprint_fpr(keys, fingerprints);
        let guess = (keys as f64 / rate) as u64;
        let fingerprints = smallest_for_fpr(1 << MAX_BITS, guess, 1.0, rate, rate_of);
        let room = smallest_for_fpr(MAX_SLOTS, keys, 1.0, 1.0, |slots| {
            let capacity = Self { slots, remainder_bits: 1 }.capacity();
            keys as f64 / capacity as f64
        });
        let (Some(fingerprints), Some(room)) = (fingerprints, room) else {
            return Err(too_many());
        };
        let sized = |remainder_bits: u32| {
            let slots = room.max(fingerprints.div_ceil(1u64 << remainder_bits));
            let max_slots = MAX_SLOTS.min(1u64 << (MAX_BITS - remainder_bits));
            (slots <= max_slots).then_some(Self { slots, remainder_bits })
        };
        // Among equal sizes, the lowest rate wins.
        let by_size = |layout: &Self| (layout.lines(), Reverse(layout.remainder_bits));
        (1..=MAX_WIDTH).filter_map(sized).min_by_key(by_size).ok_or_else(too_many)
    }

    /// Returns a layout for `keys` keys, or less than twice as many, that still keeps `rate` when it
    /// has been doubled for `max_capacity` keys. Each doubling takes one bit of every remainder, so
    /// remainders have one bit more for each doubling to come.
    ///
    /// # Errors
    /// As [`for_fpr`](Self::for_fpr) for the larger number of keys.
    pub(crate) fn for_growth(keys: u64, rate: f64, max_capacity: u64) -> Result<Self> {
        let keys = keys.max(1);
        let end = Self::for_fpr(max_capacity.max(keys), rate)?;
        let doublings = (max_capacity / keys).max(1).ilog2();
        let doublings = doublings.min(MAX_WIDTH - end.remainder_bits);
        let slots = end.slots.div_ceil(1 << doublings);
        Self::new(slots, end.remainder_bits + doublings).map_err(|_| {
            Error::invalid("keys to grow to", "2^56 times the first at most", max_capacity)
        })
    }

    /// Returns the layout with exactly these numbers.
    ///
    /// # Errors
    /// If there are no slots, a remainder does not have 1 to 56 bits, or there are more than 2⁶³
    /// fingerprints.
    pub fn new(slots: u64, remainder_bits: u32) -> Result<Self> {
        if slots == 0 || slots > MAX_SLOTS {
            return Err(Error::invalid("slots", "1 to 2^50", slots));
        }
        if !(1..=MAX_WIDTH).contains(&remainder_bits) {
            return Err(Error::invalid("bits of a remainder", "1 to 56", remainder_bits));
        }
        if u128::from(slots) << remainder_bits > 1 << MAX_BITS {
            let found = format!("{slots} times 2^{remainder_bits}");
            return Err(Error::invalid("fingerprints", "at most 2^63", found));
        }
        Ok(Self { slots, remainder_bits })
    }

    /// Returns the layout with twice the slots, one bit less in each, and the same fingerprints.
    pub(super) fn doubled(&self) -> Option<Self> {
        Self::new(self.slots * 2, self.remainder_bits - 1).ok()
    }

    /// Returns the layout with half the slots, one bit more in each, and the same fingerprints.
    pub(super) fn halved(&self) -> Option<Self> {
        let even = self.slots.is_multiple_of(2);
        even.then(|| Self::new(self.slots / 2, self.remainder_bits + 1).ok())?
    }

    /// Returns the number of home slots.
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.slots
    }

    /// Returns the number of bits stored in a slot.
    #[must_use]
    pub fn remainder_bits(&self) -> u32 {
        self.remainder_bits
    }

    /// Returns the number of possible fingerprints: 2^(bits of a remainder) for each slot.
    #[must_use]
    pub fn fingerprints(&self) -> u64 {
        self.slots << self.remainder_bits
    }

    /// Returns the capacity in fingerprints: 95 % of the slots, rounded down.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        let (share, of) = LOAD;
        // Slots are at most 2^50.
        (self.slots * share / of).max(1)
    }

    /// Returns the false-positive rate with `keys` distinct keys, including hash collisions.
    #[must_use]
    pub fn fpr(&self, keys: u64) -> f64 {
        math::fingerprint_fpr(keys, self.fingerprints())
    }

    /// Returns the largest number of distinct keys with a rate of at most `rate`, whatever the number
    /// of slots.
    #[must_use]
    pub fn capacity_at_fpr(&self, rate: f64) -> u64 {
        largest_fitting(|keys| self.fpr(keys) <= rate)
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.lines() * LINE_BYTES
    }

    /// Returns the number of blocks of 64 slots, including those of the extra slots, of which there
    /// are at most as many as home slots.
    pub(super) fn blocks(&self) -> u64 {
        (self.slots + self.slots.min(BEHIND)).div_ceil(SLOTS as u64)
    }

    pub(crate) fn lines(&self) -> u64 {
        TableParams::bytes(self.blocks(), self.remainder_bits).div_ceil(LINE_BYTES)
    }

    /// Returns the parameters of the table. A table that is too large for the address space fails
    /// when its memory is allocated.
    pub(super) fn params(&self) -> TableParams {
        let blocks = usize::try_from(self.blocks()).unwrap_or(usize::MAX / SLOTS);
        TableParams { blocks, width: self.remainder_bits }
    }

    pub(crate) fn describe(&self) -> String {
        let bits = counted(self.remainder_bits.into(), "bit");
        format!("{}, remainders of {bits}", counted(self.slots, "slot"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_for_fpr_keeps_the_rate_and_is_the_smallest() {
        for keys in [1, 2, 10, 63, 100, 1000, 1_000_000, 10_000_000_000] {
            for rate in [0.9, 0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-6, 1e-7] {
                let layout = QuotientLayout::for_fpr(keys, rate).unwrap();
                assert!(layout.fpr(keys) <= rate && layout.capacity() >= keys, "{layout:?}");
                let less = QuotientLayout { slots: layout.slots - 1, ..layout };
                let kept = less.slots > 0 && less.fpr(keys) <= rate && less.capacity() >= keys;
                assert!(!kept, "{keys} {rate} {layout:?}");
            }
        }
    }

    #[test]
    fn space() {
        for (rate, max_bits) in [(0.01, 9.62), (1e-3, 12.78), (1e-4, 17.0), (0.95 / 1024.0, 12.78)]
        {
            let layout = QuotientLayout::for_fpr(1_000_000, rate).unwrap();
            let bits = layout.size_bytes() as f64 * 8.0 / 1e6;
            assert!(bits <= max_bits, "{rate}: {bits}");
        }
    }

    #[test]
    fn growth_ends_at_the_maximum_capacity() {
        for (keys, max_keys) in
            [(1, 1_000_000), (1000, 3000), (1000, 4000), (7, 6), (1 << 20, 1 << 30)]
        {
            for rate in [0.1, 0.01, 1e-5] {
                let mut layout = QuotientLayout::for_growth(keys, rate, max_keys).unwrap();
                assert!(
                    layout.capacity() >= keys && layout.capacity() <= 3 * keys + 3,
                    "{layout:?}"
                );
                let fingerprints = layout.fingerprints();
                while layout.capacity() < max_keys {
                    layout = layout.doubled().unwrap();
                }
                assert!(layout.fingerprints() == fingerprints && layout.fpr(max_keys) <= rate);
            }
        }
    }

    #[test]
    fn impossible_layouts_are_errors() {
        for rate in [0.0, 1.0, -1.0, f64::NAN] {
            assert!(QuotientLayout::for_fpr(10, rate).unwrap_err().is_invalid());
        }
        assert!(QuotientLayout::for_fpr(500_000_000, 1e-12).unwrap_err().is_unattainable());
        assert!(QuotientLayout::for_growth(10, 1e-12, 500_000_000).unwrap_err().is_unattainable());
        for (slots, bits) in [(0, 5), (1 << 51, 5), (5, 0), (5, 57), (1 << 50, 14), (u64::MAX, 1)] {
            assert!(QuotientLayout::new(slots, bits).unwrap_err().is_invalid());
        }
        assert_eq!(QuotientLayout::new(1 << 50, 13).unwrap().fingerprints(), 1 << 63);
        assert!(QuotientLayout::new(5, 1).unwrap().doubled().is_none());
        assert!(QuotientLayout::new(5, 2).unwrap().halved().is_none());
    }
}
