//! The geometry of a quotient filter, and how large it must be.
//!
//! A shape is a proof, as those in the room `shape` are: its numbers fit together, and every slot
//! that a hash leads to is there. Any number of slots will do; none is rounded to a power of two.

use std::cmp::Reverse;

use crate::error::{Error, Result};
use crate::kernel::quotient::{MOST_WIDTH, Rule, SLOTS};
use crate::rate;
use crate::shape::{LINE_BYTES, check_promise, least_near, most_keys};

/// Shapes beyond so many slots are refused.
const MOST_SLOTS: u64 = 1 << 50;
/// Fingerprints have at most so many bits: a hash leads to each of them then by two ways at least.
const MOST_BITS: u32 = 63;
/// Slots are planned to be taken up to 19 in 20: above, what an insert moves grows with the
/// square of one over the share that is free.
const LOAD: (u64, u64) = (19, 20);
/// Slots behind the last quotient's, for what is pushed out there. At the load that is planned for
/// x slots are too few with a chance of about e^(-0.103 x), so here 10⁻¹⁴.
const BEHIND: u64 = 320;

/// The geometry of a [`QuotientFilter`](crate::QuotientFilter): slots, and bits of the remainder
/// that is kept in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotientShape {
    slots: u64,
    remainder_bits: u32,
}

impl QuotientShape {
    /// The smallest shape that keeps `rate` with `keys` keys, and has 5 % of its slots free then.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1, or 64-bit hashes cannot reach it for so many keys.
    pub fn for_rate(keys: u64, rate: f64) -> Result<Self> {
        let keys = check_promise(keys, rate)?;
        let too_many = || {
            let expected = "as many as 2^50 slots and 2^63 fingerprints hold at the rate";
            Error::invalid("keys", expected, keys)
        };
        // The rate depends on the number of fingerprints alone, the capacity on that of slots.
        let rate_of = |fingerprints| rate::fingerprints(keys, fingerprints);
        let guess = (keys as f64 / rate) as u64;
        let fingerprints = least_near(1 << MOST_BITS, guess, 1.0, rate, rate_of);
        let room = least_near(MOST_SLOTS, keys, 1.0, 1.0, |slots| {
            let capacity = Self { slots, remainder_bits: 1 }.capacity();
            keys as f64 / capacity as f64
        });
        let (Some(fingerprints), Some(room)) = (fingerprints, room) else {
            return Err(too_many());
        };
        let sized = |remainder_bits: u32| {
            let slots = room.max(fingerprints.div_ceil(1u64 << remainder_bits));
            let most = MOST_SLOTS.min(1u64 << (MOST_BITS - remainder_bits));
            (slots <= most).then_some(Self { slots, remainder_bits })
        };
        // Of equal sizes the one with the better rate.
        let by_size = |shape: &Self| (shape.lines(), Reverse(shape.remainder_bits));
        (1..=MOST_WIDTH).filter_map(sized).min_by_key(by_size).ok_or_else(too_many)
    }

    /// A shape for `keys` keys, or less than twice as many, that keeps `rate` with `max_keys` once
    /// it has been doubled as often as that needs: each doubling takes a bit of every remainder,
    /// and that many more are there.
    ///
    /// # Errors
    /// As [`for_rate`](Self::for_rate) for the greater number.
    pub fn for_growth(keys: u64, rate: f64, max_keys: u64) -> Result<Self> {
        let keys = keys.max(1);
        let end = Self::for_rate(max_keys.max(keys), rate)?;
        let doublings = (max_keys / keys).max(1).ilog2();
        let doublings = doublings.min(MOST_WIDTH - end.remainder_bits);
        let slots = end.slots.div_ceil(1 << doublings);
        Self::new(slots, end.remainder_bits + doublings).map_err(|_| {
            Error::invalid("keys to grow to", "2^56 times the first at most", max_keys)
        })
    }

    /// The shape with exactly these numbers.
    ///
    /// # Errors
    /// If there is no slot, a remainder has not 1 to 56 bits, or there are more than 2⁶³
    /// fingerprints.
    pub fn new(slots: u64, remainder_bits: u32) -> Result<Self> {
        if slots == 0 || slots > MOST_SLOTS {
            return Err(Error::invalid("slots", "1 to 2^50", slots));
        }
        if !(1..=MOST_WIDTH).contains(&remainder_bits) {
            return Err(Error::invalid("bits of a remainder", "1 to 56", remainder_bits));
        }
        if u128::from(slots) << remainder_bits > 1 << MOST_BITS {
            let found = format!("{slots} times 2^{remainder_bits}");
            return Err(Error::invalid("fingerprints", "at most 2^63", found));
        }
        Ok(Self { slots, remainder_bits })
    }

    /// The shape with twice the slots and a bit less in each: the same fingerprints.
    pub(super) fn doubled(&self) -> Option<Self> {
        Self::new(self.slots * 2, self.remainder_bits - 1).ok()
    }

    /// The shape with half the slots and a bit more in each: the same fingerprints.
    pub(super) fn halved(&self) -> Option<Self> {
        let even = self.slots.is_multiple_of(2);
        even.then(|| Self::new(self.slots / 2, self.remainder_bits + 1).ok())?
    }

    /// Slots of its own that a key may want.
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.slots
    }

    /// Bits that are kept of a key beside the place where they are.
    #[must_use]
    pub fn remainder_bits(&self) -> u32 {
        self.remainder_bits
    }

    /// How many fingerprints there are: 2^remainder bits for each slot.
    #[must_use]
    pub fn fingerprints(&self) -> u64 {
        self.slots << self.remainder_bits
    }

    /// Fingerprints that it is planned to hold at once: 95 % of its slots, rounded down.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        let (share, of) = LOAD;
        // Slots are at most 2^50.
        (self.slots * share / of).max(1)
    }

    /// The false-positive rate with `keys` distinct keys, the hash floor included.
    #[must_use]
    pub fn rate(&self, keys: u64) -> f64 {
        rate::fingerprints(keys, self.fingerprints())
    }

    /// How many distinct keys there may be at `rate`, if slots are made for them.
    #[must_use]
    pub fn keys_at_rate(&self, rate: f64) -> u64 {
        most_keys(|keys| self.rate(keys) <= rate)
    }

    /// Bytes in all.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.lines() * LINE_BYTES
    }

    /// Blocks of 64 slots: those of the quotients and those behind, of which there are no more
    /// than could ever be of use.
    pub(super) fn blocks(&self) -> u64 {
        (self.slots + self.slots.min(BEHIND)).div_ceil(SLOTS as u64)
    }

    pub(crate) fn lines(&self) -> u64 {
        Rule::bytes(self.blocks(), self.remainder_bits).div_ceil(LINE_BYTES)
    }

    /// The table's rule. What does not fit into memory is refused when memory is asked for.
    pub(super) fn rule(&self) -> Rule {
        let blocks = usize::try_from(self.blocks()).unwrap_or(usize::MAX / SLOTS);
        Rule { blocks, width: self.remainder_bits }
    }

    pub(crate) fn describe(&self) -> String {
        format!("{} slots, remainders of {} bits", self.slots, self.remainder_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_kept_and_less_would_not_keep_it() {
        for keys in [1, 2, 10, 63, 100, 1000, 1_000_000, 10_000_000_000] {
            for rate in [0.9, 0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-6, 1e-7] {
                let shape = QuotientShape::for_rate(keys, rate).unwrap();
                assert!(shape.rate(keys) <= rate && shape.capacity() >= keys, "{shape:?}");
                let less = QuotientShape { slots: shape.slots - 1, ..shape };
                let kept = less.slots > 0 && less.rate(keys) <= rate && less.capacity() >= keys;
                assert!(!kept, "{keys} {rate} {shape:?}");
            }
        }
    }

    #[test]
    fn space() {
        for (rate, most) in [(0.01, 9.62), (1e-3, 12.78), (1e-4, 17.0), (0.95 / 1024.0, 12.78)] {
            let shape = QuotientShape::for_rate(1_000_000, rate).unwrap();
            let bits = shape.size_bytes() as f64 * 8.0 / 1e6;
            assert!(bits <= most, "{rate}: {bits}");
        }
    }

    #[test]
    fn growth_ends_where_it_was_planned() {
        for (keys, most) in [(1, 1_000_000), (1000, 3000), (1000, 4000), (7, 6), (1 << 20, 1 << 30)]
        {
            for rate in [0.1, 0.01, 1e-5] {
                let mut shape = QuotientShape::for_growth(keys, rate, most).unwrap();
                assert!(shape.capacity() >= keys && shape.capacity() <= 3 * keys + 3, "{shape:?}");
                let fingerprints = shape.fingerprints();
                while shape.capacity() < most {
                    shape = shape.doubled().unwrap();
                }
                assert!(shape.fingerprints() == fingerprints && shape.rate(most) <= rate);
            }
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for rate in [0.0, 1.0, -1.0, f64::NAN] {
            assert!(QuotientShape::for_rate(10, rate).unwrap_err().is_invalid());
        }
        assert!(QuotientShape::for_rate(500_000_000, 1e-12).unwrap_err().is_unattainable());
        assert!(QuotientShape::for_growth(10, 1e-12, 500_000_000).unwrap_err().is_unattainable());
        for (slots, bits) in [(0, 5), (1 << 51, 5), (5, 0), (5, 57), (1 << 50, 14), (u64::MAX, 1)] {
            assert!(QuotientShape::new(slots, bits).unwrap_err().is_invalid());
        }
        assert_eq!(QuotientShape::new(1 << 50, 13).unwrap().fingerprints(), 1 << 63);
        assert!(QuotientShape::new(5, 1).unwrap().doubled().is_none());
        assert!(QuotientShape::new(5, 2).unwrap().halved().is_none());
    }
}
