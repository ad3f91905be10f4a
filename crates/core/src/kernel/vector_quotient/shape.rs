//! The dimensions of blocks, and the place of a hash.

use core::hint::select_unpredictable;

use crate::kernel::primitives::scale;

/// The number of blocks in a region, at most. Both blocks of a key are in one region, so that a
/// second block is in the same 2 MiB of memory as the first one.
pub(crate) const REGION: u64 = 1 << 15;
/// 2⁶⁴ divided by the golden ratio: multiples of it are spread evenly.
pub(super) const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The dimensions of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockShape {
    /// Bits of a tag.
    pub(crate) tag_bits: u32,
    /// Slots of a block, a multiple of 8.
    pub(crate) slots: u32,
    /// Buckets of a block.
    pub(crate) buckets: u32,
}

impl BlockShape {
    /// All shapes, from the shortest tags on. With them a line has as many slots as it can have with
    /// whole bytes for each plane and at most 128 bits of header, which has a bit for each slot and
    /// each bucket.
    pub(crate) const ALL: [Self; 6] = [
        Self::of(6, 64, 64),
        Self::of(7, 56, 64),
        Self::of(8, 48, 80),
        Self::of(10, 40, 72),
        Self::of(13, 32, 64),
        Self::of(18, 24, 56),
    ];

    const fn of(tag_bits: u32, slots: u32, buckets: u32) -> Self {
        assert!(slots * (tag_bits + 1) + buckets == 512 && slots + buckets <= 128);
        Self { tag_bits, slots, buckets }
    }

    /// Returns the shape with tags of this many bits.
    pub(crate) fn with_tag_bits(tag_bits: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|shape| shape.tag_bits == tag_bits)
    }
}

/// A bucket and a tag in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    pub(crate) bucket: u32,
    pub(crate) tag: u32,
}

/// The first block of a hash, and its fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) block: u64,
    pub(crate) fingerprint: Fingerprint,
}

/// The dimensions of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PairParams {
    pub(crate) shape: BlockShape,
    pub(super) blocks: u64,
    /// Blocks of a region.
    pub(super) region: u64,
    pub(super) regions: u64,
}

impl PairParams {
    /// Returns the parameters of a table with exactly this many blocks; `None` if they cannot be
    /// divided into equal regions, which is possible for all multiples of
    /// [`regions_of`](Self::regions_of).
    pub(crate) fn new(shape: BlockShape, blocks: u64) -> Option<Self> {
        let regions = Self::regions_of(blocks);
        let whole = blocks > 0 && blocks.is_multiple_of(regions);
        whole.then(|| Self { shape, blocks, region: blocks / regions, regions })
    }

    /// Returns the number of regions of a table with this many blocks.
    pub(crate) fn regions_of(blocks: u64) -> u64 {
        blocks.div_ceil(REGION).max(1)
    }

    /// Returns the number of blocks.
    #[inline(always)]
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Returns the number of blocks of a region.
    pub(crate) fn region(&self) -> u64 {
        self.region
    }

    /// Returns the first block of a hash.
    #[inline(always)]
    pub(crate) fn first_block(&self, hash: u64) -> u64 {
        scale(hash, self.blocks())
    }

    /// Returns the place of a hash: its digits in the mixed base of blocks, buckets and tags.
    #[inline(always)]
    pub(crate) fn place(&self, hash: u64) -> Place {
        let BlockShape { buckets, tag_bits, .. } = self.shape;
        let in_block = hash.wrapping_mul(self.blocks());
        let number = scale(in_block, u64::from(buckets) << tag_bits) as u32;
        let tag = number & ((1 << tag_bits) - 1);
        let fingerprint = Fingerprint { bucket: number >> tag_bits, tag };
        Place { block: self.first_block(hash), fingerprint }
    }

    /// Returns the other block of a fingerprint in `block`, which may be the same one. The other
    /// block of that is `block` again.
    ///
    /// In a region of L blocks, the numbers of both blocks add up to a number modulo L that the
    /// fingerprint determines.
    #[inline(always)]
    pub(crate) fn other_block(&self, block: u64, fingerprint: Fingerprint) -> u64 {
        let within = if self.regions == 1 { block } else { block % self.region };
        self.other_in_region(block - within, block, fingerprint)
    }

    /// Returns the second block of the place of a hash, without a division.
    #[inline(always)]
    pub(crate) fn second_block(&self, hash: u64, place: Place) -> u64 {
        // The same region as by division: ⌊⌊h · N / 2⁶⁴⌋ / L⌋ = ⌊h · (N / L) / 2⁶⁴⌋.
        let first_of_region = scale(hash, self.regions) * self.region;
        self.other_in_region(first_of_region, place.block, place.fingerprint)
    }

    /// Returns the other block in the region that begins with block `first`.
    #[inline(always)]
    fn other_in_region(&self, first: u64, block: u64, fingerprint: Fingerprint) -> u64 {
        let Fingerprint { bucket, tag } = fingerprint;
        let number = u64::from(bucket) << self.shape.tag_bits | u64::from(tag);
        let sum = scale(number.wrapping_mul(SPREAD), self.region);
        // Selected without a branch, because it could not be predicted.
        let (difference, is_negative) = sum.overflowing_sub(block - first);
        let wrapped = select_unpredictable(is_negative, self.region, 0);
        first.wrapping_add(difference).wrapping_add(wrapped)
    }
}
