//! The header of a block: its place in the line, and the changes of its bits.

use core::hint::select_unpredictable;

use crate::kernel::select::Select;

/// Bytes of a block.
pub(super) const BLOCK: usize = 64;
/// The header is in the last 16 bytes; if it has fewer than 128 bits, in the upper ones.
const HEADER_AT: usize = BLOCK - 16;

/// The header of a block of `TAG_BITS` planes of `BYTES` bytes.
pub(super) struct Header<const TAG_BITS: usize, const BYTES: usize>;

impl<const TAG_BITS: usize, const BYTES: usize> Header<TAG_BITS, BYTES> {
    /// Bytes of the planes.
    const PLANES: usize = TAG_BITS * BYTES;
    /// Bits before the header in the last 16 bytes.
    pub(super) const SHIFT: u32 = 8 * (Self::PLANES - HEADER_AT) as u32;

    /// Returns the header.
    #[inline(always)]
    pub(super) fn of(block: &[u8; BLOCK]) -> u128 {
        let bytes = block.last_chunk::<16>().copied().unwrap_or_default();
        u128::from_le_bytes(bytes) >> Self::SHIFT
    }

    #[inline(always)]
    pub(super) fn set(block: &mut [u8; BLOCK], header: u128) {
        let bytes = header.to_le_bytes();
        block[Self::PLANES..].copy_from_slice(&bytes[..BLOCK - Self::PLANES]);
    }
}

/// Returns the two words of a header, the low one first.
#[inline(always)]
pub(super) fn words(header: u128) -> (u64, u64) {
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
