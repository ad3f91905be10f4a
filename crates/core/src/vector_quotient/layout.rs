//! The layout of a vector quotient filter, and its size for a capacity and rate.
//!
//! A layout is validated: both blocks of every hash are in the table. Numbers of blocks are not
//! rounded to a power of two.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use core::cmp::Ordering;

use crate::error::{Error, Grouped, Result};
use crate::kernel::vector_quotient::{BlockShape, PairParams};
use crate::layout::{LINE_BYTES, check_target, largest_fitting};
use crate::math;
use crate::membership::counted;

/// The largest number of blocks.
const MAX_BLOCKS: u64 = 1 << 40;
/// The lowest rate that is planned for: that of the longest tags at full load.
const MIN_RATE: f64 = 1e-6;

/// The layout of a [`VectorQuotientFilter`](crate::VectorQuotientFilter): the number of blocks, and
/// of bits of a tag, which determines the numbers of slots and buckets of a block.
///
/// | bits of a tag | slots of a block | buckets | bits per key at capacity | rate at capacity |
/// |--:|--:|--:|--:|--:|
/// | 6 | 64 | 64 | 8.33 | 3.0 % |
/// | 7 | 56 | 64 | 9.52 | 1.3 % |
/// | 8 | 48 | 80 | 11.1 | 0.45 % |
/// | 10 | 40 | 72 | 13.3 | 0.10 % |
/// | 13 | 32 | 64 | 16.7 | 0.012 % |
/// | 18 | 24 | 56 | 22.9 | 0.00030 % |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorQuotientLayout {
    params: PairParams,
}

impl VectorQuotientLayout {
    /// Returns the smallest layout with a rate of at most `rate` and enough slots at `keys` keys.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1, or is below 10⁻⁶ or too low for 64-bit hashes at that
    /// number of keys.
    pub fn for_fpr(keys: u64, rate: f64) -> Result<Self> {
        let keys = check_target(keys, rate)?;
        if rate < MIN_RATE {
            let expected = "at least 1e-6; use a quotient filter for lower rates";
            return Err(Error::invalid(
                "false-positive rate of a vector quotient filter",
                expected,
                format!("{rate:?}"),
            ));
        }
        let sized = BlockShape::ALL.into_iter().filter_map(|shape| Self::sized(shape, keys, rate));
        let by_size = |one: &Self, other: &Self| {
            let sizes = one.blocks().cmp(&other.blocks());
            // Among equal sizes, the lowest rate wins.
            sizes.then_with(|| {
                one.fpr(keys).partial_cmp(&other.fpr(keys)).unwrap_or(Ordering::Equal)
            })
        };
        sized.min_by(by_size).ok_or_else(|| {
            let expected = "at most the number that 2^40 blocks hold at this rate";
            Error::invalid("keys", expected, Grouped(keys))
        })
    }

    /// Returns the smallest layout with blocks of a shape.
    fn sized(shape: BlockShape, keys: u64, rate: f64) -> Option<Self> {
        // The number of fingerprints that reaches the rate with pairs of different blocks.
        let in_block = f64::from(shape.buckets) * 2f64.powi(shape.tag_bits as i32);
        let by_rate = (2.0 * keys as f64 / (in_block * -(-rate).ln_1p())).ceil() as u64;
        let by_slots = keys.div_ceil(shape.slots.into());
        let mut blocks = by_rate.max(by_slots).max(1);
        // Small tables have a lower rate, because more pairs are one block, and a lower capacity.
        let fits = |layout: &Self| layout.capacity() >= keys && layout.fpr(keys) <= rate;
        if blocks < 64 {
            blocks = by_slots.max(by_rate / 2).max(1);
        }
        loop {
            let layout = Self::in_regions(shape, blocks)?;
            if fits(&layout) {
                return Some(layout);
            }
            let missing = keys.saturating_sub(layout.capacity()) / u64::from(shape.slots);
            blocks = layout.blocks() + (missing / 2).max(1);
        }
    }

    /// Returns a layout with at least `blocks` blocks, in equal regions.
    fn in_regions(shape: BlockShape, blocks: u64) -> Option<Self> {
        if blocks > MAX_BLOCKS {
            return None;
        }
        let blocks = blocks.next_multiple_of(PairParams::regions_of(blocks));
        PairParams::new(shape, blocks).map(|params| Self { params })
    }

    /// Returns the layout with exactly these numbers.
    ///
    /// # Errors
    /// If a tag does not have 6, 7, 8, 10, 13 or 18 bits, there are no blocks or more than 2⁴⁰, or they
    /// are more than 32,768 and cannot be divided into the fewest equal regions of at most 32,768.
    pub fn new(blocks: u64, tag_bits: u32) -> Result<Self> {
        let Some(shape) = BlockShape::with_tag_bits(tag_bits) else {
            return Err(Error::invalid("bits of a tag", "6, 7, 8, 10, 13 or 18", tag_bits));
        };
        let params = PairParams::new(shape, blocks).filter(|_| blocks <= MAX_BLOCKS);
        params.map(|params| Self { params }).ok_or_else(|| {
            let expected = "1 to 2^40, above 32768 in equal regions of at most 32768";
            Error::invalid("blocks", expected, blocks)
        })
    }

    /// Returns the number of blocks; each is a cache line.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.params.blocks()
    }

    /// Returns the number of slots of all blocks.
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.blocks() * u64::from(self.params.shape.slots)
    }

    /// Returns the number of bits of a tag.
    #[must_use]
    pub fn tag_bits(&self) -> u32 {
        self.params.shape.tag_bits
    }

    /// Returns the number of blocks of a region, which contains both blocks of a key.
    pub(super) fn region(&self) -> u64 {
        self.params.region()
    }

    /// Returns the number of possible fingerprints of all blocks: 2^(bits of a tag) in each bucket.
    pub(super) fn fingerprints(&self) -> u64 {
        self.blocks() * (u64::from(self.params.shape.buckets) << self.tag_bits())
    }

    /// Returns the capacity in fingerprints.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        capacity(self.blocks(), self.params.shape.slots)
    }

    /// Returns the false-positive rate with `keys` distinct keys, including hash collisions.
    #[must_use]
    pub fn fpr(&self, keys: u64) -> f64 {
        math::fingerprint_pair_fpr(keys, self.fingerprints(), self.region())
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
        self.blocks() * LINE_BYTES
    }

    pub(super) fn params(&self) -> PairParams {
        self.params
    }

    pub(crate) fn describe(&self) -> String {
        let BlockShape { slots, buckets, tag_bits } = self.params.shape;
        let bits = counted(tag_bits.into(), "bit");
        let blocks = counted(self.blocks(), "block");
        format!("{blocks} of {slots} slots in {buckets} buckets, tags of {bits}")
    }
}

/// Returns the number of random keys that a filter takes: 96 % of the slots, in blocks of 24 slots 93 %;
/// less in a few blocks, whose loads vary more.
///
/// Measured with `measure_loads` of the kernel's tests: filters of 64 blocks and more failed to take a
/// key at 98.3 % at the earliest (blocks of 24 slots: 96 %), of 20,000 filters of four blocks one at 93 %.
fn capacity(blocks: u64, slots: u32) -> u64 {
    let full = if slots < 32 { 93 } else { 96 };
    let percent = match blocks {
        2..16 => full - 12,
        16..64 => full - 4,
        _ => full,
    };
    // Blocks are at most 2^40.
    (blocks * u64::from(slots) * percent / 100).max(1)
}
