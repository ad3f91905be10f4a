//! The operations on one block, for a shape that is known at compile time.

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

impl<const TAG_BITS: usize, const BYTES: usize> BlockOps<TAG_BITS, BYTES> {
    /// Slots of a block.
    pub(super) const SLOTS: u32 = 8 * BYTES as u32;
    /// The dimensions.
    pub(super) const SHAPE: BlockShape = BlockShape {
        tag_bits: TAG_BITS as u32,
        slots: Self::SLOTS,
        buckets: 512 - Self::SLOTS * (TAG_BITS as u32 + 1),
    };
    const SLOT_MASK: u64 = u64::MAX >> (64 - Self::SLOTS);
    /// Bytes of the planes.
    const PLANES: usize = TAG_BITS * BYTES;
    const HEADER_SHIFT: u32 = 8 * (Self::PLANES - HEADER_AT) as u32;

    /// Returns the header.
    #[inline(always)]
    pub(super) fn header(block: &[u8; BLOCK]) -> u128 {
        let bytes = block.last_chunk::<16>().copied().unwrap_or_default();
        u128::from_le_bytes(bytes) >> Self::HEADER_SHIFT
    }

    #[inline(always)]
    fn set_header(block: &mut [u8; BLOCK], header: u128) {
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

    /// Returns the position of bit 0 number `n` of a header, counted from 0.
    #[inline(always)]
    fn nth_zero(select: impl Select, header: u128, n: u32) -> u32 {
        let (low, high) = (!(header as u64), !((header >> 64) as u64));
        let n_high = n.wrapping_sub(low.count_ones());
        // All ones if the bit is in the low word. Masks, because a branch on it cannot be predicted.
        let in_low = (n_high.cast_signed() >> 31).cast_unsigned();
        let in_low_word = i64::from(in_low.cast_signed()).cast_unsigned();
        let word = low & in_low_word | high & !in_low_word;
        select.nth_one(word, n & in_low | n_high & !in_low) + (64 & !in_low)
    }

    /// Returns the position of bit 1 number `n` of a header.
    #[inline(always)]
    fn nth_one(select: impl Select, header: u128, n: u32) -> u32 {
        Self::nth_zero(select, !header, n)
    }

    /// Returns the slots of a bucket, one bit each.
    #[inline(always)]
    fn bucket_slots(select: impl Select, header: u128, bucket: u32) -> u64 {
        // Shifted, a header has a zero before the first bucket, too.
        let begin = Self::nth_zero(select, header << 1, bucket) & 127;
        let len = (!(header >> begin) as u64).trailing_zeros();
        low(len) << (begin.wrapping_sub(bucket) & 63)
    }

    /// Returns the slots with a fingerprint, one bit each.
    #[inline(always)]
    pub(super) fn find(select: impl Planes, block: &[u8; BLOCK], of: Fingerprint) -> u64 {
        let equal = select.equal_tags::<TAG_BITS, BYTES>(block, of.tag);
        // So for five of six absent keys, with tags of 8 bits; with shorter ones a branch on it cannot
        // be predicted.
        if TAG_BITS >= 8 && equal == 0 {
            return 0;
        }
        equal & Self::bucket_slots(select, Self::header(block), of.bucket)
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
        let header = Self::header(block);
        let zero_at = Self::nth_zero(select, header, of.bucket) & 127;
        let bit = 1u128 << zero_at;
        // Shifting a word up from bit n on adds the part from there on to itself.
        let upper = header & bit.wrapping_neg();
        let bits = header.wrapping_add(upper) | bit;
        let slot = zero_at.wrapping_sub(of.bucket);
        select.put_tag::<TAG_BITS, BYTES>(block, slot, of.tag);
        Self::set_header(block, bits);
    }

    /// Removes the tag in a slot that is in use.
    #[inline(always)]
    pub(super) fn take(select: impl Planes, block: &mut [u8; BLOCK], slot: u32) {
        let header = Self::header(block);
        let one_at = Self::nth_one(select, header, slot) & 127;
        let below = (1u128 << one_at) - 1;
        select.take_tag::<TAG_BITS, BYTES>(block, slot);
        Self::set_header(block, header & below | header >> 1 & !below);
    }

    /// Returns the fingerprint in a slot that is in use.
    #[inline(always)]
    pub(super) fn fingerprint(select: impl Select, block: &[u8; BLOCK], slot: u32) -> Fingerprint {
        let header = Self::header(block);
        let bucket = Self::nth_one(select, header, slot).wrapping_sub(slot);
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
