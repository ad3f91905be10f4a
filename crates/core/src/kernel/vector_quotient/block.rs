//! The operations on one block, for a shape that is known at compile time.

use core::hint::select_unpredictable;

use super::planes::{Planes, plane};
use super::shape::{BlockShape, Fingerprint};
use crate::kernel::select::Select;

/// Bytes of a block.
pub(super) const BLOCK: usize = 64;
/// The header is in the last 16 bytes; if it has fewer than 128 bits, in the upper ones.
const HEADER_AT: usize = BLOCK - 16;

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

/// Returns the two words of a header, the low one first.
#[inline(always)]
fn words(header: u128) -> (u64, u64) {
    (header as u64, (header >> 64) as u64)
}

/// Returns the words of a header with only this bit, and 1 if it is in the high word.
#[inline(always)]
fn words_with_bit(position: u32) -> (u64, u64, u64) {
    let bit = 1 << (position & 63);
    // Selected without a branch, because it could not be predicted.
    select_unpredictable(position < 64, (bit, 0, 0), (0, bit, 1))
}

/// Returns a header whose bits from a position on are moved up by one, with that bit set.
#[inline(always)]
pub(super) fn with_bit_inserted(header: u128, position: u32) -> u128 {
    // Each word by itself, because shifts of 128 bits are slow.
    let (low, high, _) = words_with_bit(position);
    let bit = u128::from(high) << 64 | u128::from(low);
    // Shifting a word up from bit n on adds the part from there on to itself.
    let upper = header & bit.wrapping_neg();
    header.wrapping_add(upper) | bit
}

/// Returns a header whose bits after a position are moved down by one.
#[inline(always)]
pub(super) fn with_bit_removed(select: impl Select, header: u128, position: u32) -> u128 {
    let (bit_low, bit_high, in_high) = words_with_bit(position);
    let (low, high) = words(header);
    // The first bit of the high word moves to the low one, unless the bit is in the high word.
    let low = select.without(low, bit_low) | select_unpredictable(in_high == 0, high << 63, 0);
    let high = select.without(high, bit_high | in_high ^ 1);
    u128::from(high) << 64 | u128::from(low)
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
    /// Bytes of the planes.
    const PLANES: usize = TAG_BITS * BYTES;
    /// Bits before the header in the last 16 bytes.
    pub(super) const HEADER_SHIFT: u32 = 8 * (Self::PLANES - HEADER_AT) as u32;

    /// Returns the header.
    #[inline(always)]
    pub(super) fn header(block: &[u8; BLOCK]) -> u128 {
        let bytes = block.last_chunk::<16>().copied().unwrap_or_default();
        u128::from_le_bytes(bytes) >> Self::HEADER_SHIFT
    }

    #[inline(always)]
    pub(super) fn set_header(block: &mut [u8; BLOCK], header: u128) {
        let bytes = header.to_le_bytes();
        block[Self::PLANES..].copy_from_slice(&bytes[..BLOCK - Self::PLANES]);
    }

    /// Returns the number of tags.
    #[inline(always)]
    pub(super) fn len(block: &[u8; BLOCK]) -> u32 {
        Self::header(block).count_ones()
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
        let (low, high) = words(Self::header(block));
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
        let header = Self::header(block);
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
        let header = Self::header(block);
        let len = header.count_ones();
        // After the zero of the last bucket all bits are 0: the last 1 is before it.
        let end = u128::BITS - header.leading_zeros();
        let zeros_fit = len == 0 || end < len + buckets;
        let free = Self::SLOT_MASK & !low(len);
        let clean = (0..TAG_BITS).all(|at| plane::<BYTES>(block, at) & free == 0);
        (len <= Self::SLOTS && zeros_fit && clean).then_some(len)
    }
}
