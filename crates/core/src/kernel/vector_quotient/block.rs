//! The operations on one block, for a shape that is known at compile time.

use core::hint::select_unpredictable;

use super::header::{BLOCK, Header, words};
use super::planes::{Planes, plane};
use super::shape::{BlockShape, Fingerprint};
use crate::kernel::select::Select;
use crate::store::{CacheLine, line_as_bytes};

/// A block of `TAG_BITS` planes of `BYTES` bytes.
///
/// Whatever the bytes are, no method panics. Methods that change a block assume that it is sound.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockOps<const TAG_BITS: usize, const BYTES: usize>;

/// The low `n` bits of a word; all for 64 and more.
#[inline(always)]
fn low(n: u32) -> u64 {
    if n < 64 { (1 << n) - 1 } else { u64::MAX }
}

impl<const TAG_BITS: usize, const BYTES: usize> BlockOps<TAG_BITS, BYTES> {
    /// Slots of a block.
    pub(super) const SLOTS: u32 = 8 * BYTES as u32;
    /// The dimensions.
    pub(super) const SHAPE: BlockShape = BlockShape {
        tag_bits: TAG_BITS as u32,
        slots: Self::SLOTS,
        buckets: 512 - Self::SLOTS * (TAG_BITS as u32 + 1),
    };
    /// True if most tags differ from all tags of two blocks.
    pub(super) const TAGS_DIFFER: bool = TAG_BITS >= 8;
    const SLOT_MASK: u64 = u64::MAX >> (64 - Self::SLOTS);

    /// Returns the number of tags.
    #[inline(always)]
    pub(super) fn len(block: &[u8; BLOCK]) -> u32 {
        Header::<TAG_BITS, BYTES>::of(block).count_ones()
    }

    #[inline(always)]
    pub(super) fn is_full(block: &[u8; BLOCK]) -> bool {
        Self::len(block) >= Self::SLOTS
    }

    /// Returns the bits of the header from position `bucket` on, and the number of set bits before.
    ///
    /// The tag in slot s of bucket b has bit s + b of the header, so bit s of these bits. Before the
    /// bucket are b bits 0 in the header. If n of the first b bits of the header are set, the others are
    /// b - n of those bits 0, so n bits 0 are before the bucket in these bits.
    #[inline(always)]
    fn from_bucket(block: &[u8; BLOCK], bucket: u32) -> (u64, u32) {
        let (low, high) = words(Header::<TAG_BITS, BYTES>::of(block));
        if Self::SHAPE.buckets <= 64 {
            let bucket = bucket & 63;
            let ones = low & ((1 << bucket) - 1);
            (low >> bucket | high << 1 << (!bucket & 63), ones.count_ones())
        } else {
            // Selected without a branch, because it could not be predicted.
            let in_low = bucket < 64;
            let (word, next) = select_unpredictable(in_low, (low, high), (high, 0));
            let before = select_unpredictable(in_low, 0, low.count_ones());
            let bucket = bucket & 63;
            let ones = word & ((1 << bucket) - 1);
            (word >> bucket | next << 1 << (!bucket & 63), before + ones.count_ones())
        }
    }

    /// Returns the slots of a bucket.
    #[inline(always)]
    pub(super) fn slots_of(select: impl Select, block: &[u8; BLOCK], bucket: u32) -> u64 {
        let (bits, zeros) = Self::from_bucket(block, bucket);
        select.run_after_zeros(bits, zeros & 63)
    }

    /// Returns the slots with a fingerprint.
    #[inline(always)]
    pub(super) fn find(select: impl Planes, block: &[u8; BLOCK], of: Fingerprint) -> u64 {
        let equal = select.equal_tags::<TAG_BITS, BYTES>(block, of.tag);
        equal & Self::slots_of(select, block, of.bucket)
    }

    /// Returns the slots of two blocks with the tag of a fingerprint, in any bucket.
    #[inline(always)]
    pub(super) fn equal_in_both(
        select: impl Planes,
        blocks: [&[u8; BLOCK]; 2],
        of: Fingerprint,
    ) -> [u64; 2] {
        select.equal_in_both::<TAG_BITS, BYTES>(blocks, of.tag)
    }

    /// Returns false if a block certainly does not have a fingerprint; faster than
    /// [`find`](Self::find).
    #[inline(always)]
    pub(super) fn may_have(select: impl Planes, block: &[u8; BLOCK], of: Fingerprint) -> bool {
        select.equal_tags::<TAG_BITS, BYTES>(block, of.tag) != 0
    }

    /// Adds a fingerprint to a block with a free slot.
    #[inline(always)]
    pub(super) fn put(select: impl Planes, block: &mut [u8; BLOCK], of: Fingerprint) {
        let (bits, zeros) = Self::from_bucket(block, of.bucket);
        let slot = select.nth_one(!bits, zeros & 63);
        select.put::<TAG_BITS, BYTES>(block, slot, of.tag, slot.wrapping_add(of.bucket));
    }

    /// Removes the tag in a slot that is in use, in a bucket.
    #[inline(always)]
    pub(super) fn take(select: impl Planes, block: &mut [u8; BLOCK], slot: u32, bucket: u32) {
        // Before the bit of the slot are one bit for each slot and one for each bucket.
        select.take::<TAG_BITS, BYTES>(block, slot, slot.wrapping_add(bucket));
    }

    /// Returns the fingerprint in a slot that is in use.
    #[inline(always)]
    pub(super) fn fingerprint(select: impl Select, block: &[u8; BLOCK], slot: u32) -> Fingerprint {
        let header = Header::<TAG_BITS, BYTES>::of(block);
        let (low, high) = words(header);
        let in_high = slot.checked_sub(low.count_ones());
        let position = match in_high {
            Some(n) => 64 + select.nth_one(high, n & 63),
            None => select.nth_one(low, slot & 63),
        };
        let bucket = position.wrapping_sub(slot);
        let tag = (0..TAG_BITS)
            .fold(0, |tag, at| tag | ((plane::<BYTES>(block, at) >> (slot & 63) & 1) as u32) << at);
        Fingerprint { bucket, tag }
    }

    /// Returns the number of tags, if the block is sound: if inserting its fingerprints into an empty
    /// block sets exactly its bits.
    pub(super) fn checked_len(block: &[u8; BLOCK], buckets: u32) -> Option<u32> {
        let header = Header::<TAG_BITS, BYTES>::of(block);
        let len = header.count_ones();
        // After the zero of the last bucket all bits are 0: the last 1 is before it.
        let end = u128::BITS - header.leading_zeros();
        let zeros_fit = len == 0 || end < len + buckets;
        let free = Self::SLOT_MASK & !low(len);
        let clean = (0..TAG_BITS).all(|at| plane::<BYTES>(block, at) & free == 0);
        (len <= Self::SLOTS && zeros_fit && clean).then_some(len)
    }
}

/// Returns the bytes of a block.
#[inline(always)]
pub(super) fn bytes(blocks: &[CacheLine], at: u64) -> Option<&[u8; BLOCK]> {
    blocks.get(at as usize).map(line_as_bytes)
}

/// Returns the bytes of two blocks.
#[inline(always)]
pub(super) fn pair(blocks: &[CacheLine], [first, second]: [u64; 2]) -> Option<[&[u8; BLOCK]; 2]> {
    Some([bytes(blocks, first)?, bytes(blocks, second)?])
}
