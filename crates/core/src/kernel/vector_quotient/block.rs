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

/// Returns the two words of a header, the low one first.
#[inline(always)]
fn words(header: u128) -> (u64, u64) {
    (header as u64, (header >> 64) as u64)
}

/// A bit of a header. Each word is handled by itself, because shifts of 128 bits are slow.
#[derive(Clone, Copy)]
pub(super) struct HeaderBit {
    /// Its word, without other bits.
    bit: u64,
    /// All ones if that is the low word, or else 0.
    in_low: u64,
}

impl HeaderBit {
    /// Returns the bit at a position.
    #[inline(always)]
    fn at(position: u32) -> Self {
        let in_low = 0u64.wrapping_sub((position < 64).into());
        Self { bit: 1 << (position & 63), in_low }
    }

    #[inline(always)]
    pub(super) fn position(self) -> u32 {
        self.bit.trailing_zeros() + (64 & !self.in_low as u32)
    }

    /// Returns a header whose bits from this one on are moved up by one, with this bit set.
    #[inline(always)]
    pub(super) fn inserted(self, header: u128) -> u128 {
        let bit = u128::from(self.bit & !self.in_low) << 64 | u128::from(self.bit & self.in_low);
        // Shifting a word up from bit n on adds the part from there on to itself.
        let upper = header & bit.wrapping_neg();
        header.wrapping_add(upper) | bit
    }

    /// Returns a header whose bits after this one are moved down by one.
    #[inline(always)]
    pub(super) fn removed(self, select: impl Select, header: u128) -> u128 {
        let Self { bit, in_low } = self;
        let (low, high) = words(header);
        let low = select.without(low, bit & in_low) | (high & in_low) << 63;
        let high = select.without(high, bit & !in_low | 1 & in_low);
        u128::from(high) << 64 | u128::from(low)
    }
}

/// Slots of a bucket, out of some slots of its block.
#[derive(Clone, Copy)]
pub(super) struct Matches {
    /// The slots before the end of the bucket; the last one is the highest bit.
    slots: u64,
    /// The number of slots of the bucket.
    len: u32,
    /// The slot after the bucket.
    end: u32,
}

impl Matches {
    #[inline(always)]
    pub(super) fn any(self) -> bool {
        self.slots.leading_zeros() < self.len
    }

    /// Returns the number of slots.
    #[inline(always)]
    pub(super) fn count(self) -> u32 {
        self.slots.checked_shr(64 - self.len).unwrap_or(0).count_ones()
    }

    /// Returns the last slot. There is one.
    #[inline(always)]
    pub(super) fn last(self) -> u32 {
        self.end.wrapping_sub(self.slots.leading_zeros() + 1)
    }
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
    const HEADER_SHIFT: u32 = 8 * (Self::PLANES - HEADER_AT) as u32;

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

    /// Returns bit 0 number `n` of a header, counted from 0.
    #[inline(always)]
    fn nth_zero(select: impl Select, header: u128, n: u32) -> HeaderBit {
        let (low, high) = words(header);
        let zeros = low.count_zeros();
        let n_high = n.wrapping_sub(zeros);
        // Masks, because a branch on them cannot be predicted.
        let in_low = i64::from(n_high.cast_signed() >> 31).cast_unsigned();
        let n = n_high.wrapping_add(zeros & in_low as u32);
        let bit = select.isolate_nth_one(!(low & in_low | high & !in_low), n & 63);
        HeaderBit { bit, in_low }
    }

    /// Returns those of some slots that are of a bucket.
    #[inline(always)]
    pub(super) fn in_bucket(
        select: impl Select,
        block: &[u8; BLOCK],
        bucket: u32,
        slots: u64,
    ) -> Matches {
        let (low, high) = words(Self::header(block));
        let end = Self::nth_zero(select, Self::header(block), bucket);
        let at = end.bit.trailing_zeros();
        // The bits of the header before the end of the bucket.
        let (this, before) = (low & end.in_low | high & !end.in_low, low & !end.in_low);
        let rest = this << (!at & 63) << 1 | before >> (at & 63);
        let end = end.position().wrapping_sub(bucket);
        Matches { slots: slots << (end.wrapping_neg() & 63), len: (!rest).leading_zeros(), end }
    }

    /// Returns the slots with a fingerprint.
    #[inline(always)]
    pub(super) fn find(select: impl Planes, block: &[u8; BLOCK], of: Fingerprint) -> Matches {
        let equal = select.equal_tags::<TAG_BITS, BYTES>(block, of.tag);
        Self::in_bucket(select, block, of.bucket, equal)
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
        let end = Self::nth_zero(select, Self::header(block), of.bucket);
        let slot = end.position().wrapping_sub(of.bucket);
        select.put::<TAG_BITS, BYTES>(block, slot, of.tag, end);
    }

    /// Removes the tag in a slot that is in use, in a bucket.
    #[inline(always)]
    pub(super) fn take(select: impl Planes, block: &mut [u8; BLOCK], slot: u32, bucket: u32) {
        // Before the bit of the slot are one bit for each slot and one for each bucket.
        let bit = HeaderBit::at(slot.wrapping_add(bucket));
        select.take::<TAG_BITS, BYTES>(block, slot, bit);
    }

    /// Returns the fingerprint in a slot that is in use.
    #[inline(always)]
    pub(super) fn fingerprint(select: impl Select, block: &[u8; BLOCK], slot: u32) -> Fingerprint {
        let header = Self::header(block);
        let bucket = Self::nth_zero(select, !header, slot).position().wrapping_sub(slot);
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
