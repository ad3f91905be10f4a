//! The planes of a block: comparing a tag with all slots, and moving the tags after a slot.

use super::header::{BLOCK, Header, with_bit_inserted, with_bit_removed};
use crate::kernel::select::{Portable, Select};

/// Operations on a block with `TAG_BITS` planes of `BYTES` bytes, and a header in the bytes after them.
/// Slots are less than the number of slots, and positions in the header less than its number of bits.
pub(super) trait Planes: Select {
    /// Returns the slots whose tag is `tag`, one bit each, in any bucket and in free slots.
    fn equal_tags<const TAG_BITS: usize, const BYTES: usize>(
        self,
        block: &[u8; BLOCK],
        tag: u32,
    ) -> u64;

    /// Same as [`equal_tags`](Self::equal_tags) for two blocks.
    #[inline(always)]
    fn equal_in_both<const TAG_BITS: usize, const BYTES: usize>(
        self,
        [first, second]: [&[u8; BLOCK]; 2],
        tag: u32,
    ) -> [u64; 2] {
        // Not `map`: a closure is not compiled with the instructions of this type.
        let first = self.equal_tags::<TAG_BITS, BYTES>(first, tag);
        [first, self.equal_tags::<TAG_BITS, BYTES>(second, tag)]
    }

    /// Moves the tags from `slot` on to the next slot, and puts `tag` there. Moves the bits of the
    /// header from `position` on to the next one, and sets that one. The last slot is free.
    fn put<const TAG_BITS: usize, const BYTES: usize>(
        self,
        block: &mut [u8; BLOCK],
        slot: u32,
        tag: u32,
        position: u32,
    );

    /// Moves the tags after `slot` to the slot before, and the bits of the header after `position` to
    /// the one before.
    fn take<const TAG_BITS: usize, const BYTES: usize>(
        self,
        block: &mut [u8; BLOCK],
        slot: u32,
        position: u32,
    );
}

/// Returns a plane; 0 after the last one.
#[inline(always)]
pub(super) fn plane<const BYTES: usize>(block: &[u8; BLOCK], at: usize) -> u64 {
    let bytes = block[at * BYTES..].first_chunk::<8>().copied().unwrap_or_default();
    u64::from_le_bytes(bytes) & slot_mask(BYTES)
}

/// The bits of the slots in a plane.
pub(super) const fn slot_mask(bytes: usize) -> u64 {
    u64::MAX >> (64 - 8 * bytes)
}

/// Replaces all planes by `change(number, plane)`.
#[inline(always)]
fn change_planes<const TAG_BITS: usize, const BYTES: usize>(
    block: &mut [u8; BLOCK],
    change: impl Fn(usize, u64) -> u64,
) {
    // All are read before the first is written: a plane is written with the zeros after it, which the
    // next planes replace.
    let planes: [u64; TAG_BITS] = core::array::from_fn(|at| change(at, plane::<BYTES>(block, at)));
    for (at, plane) in planes.iter().enumerate() {
        let start = at * BYTES;
        let len = (TAG_BITS * BYTES - start).min(8);
        block[start..start + len].copy_from_slice(&plane.to_le_bytes()[..len]);
    }
}

impl Planes for Portable {
    #[inline(always)]
    fn equal_tags<const TAG_BITS: usize, const BYTES: usize>(
        self,
        block: &[u8; BLOCK],
        tag: u32,
    ) -> u64 {
        let mut different = 0;
        for at in 0..TAG_BITS {
            let expected = 0u64.wrapping_sub(u64::from(tag >> at & 1));
            different |= plane::<BYTES>(block, at) ^ expected;
        }
        !different & slot_mask(BYTES)
    }

    #[inline(always)]
    fn put<const TAG_BITS: usize, const BYTES: usize>(
        self,
        block: &mut [u8; BLOCK],
        slot: u32,
        tag: u32,
        position: u32,
    ) {
        let header = with_bit_inserted(Header::<TAG_BITS, BYTES>::of(block), position);
        let slot = slot & 63;
        change_planes::<TAG_BITS, BYTES>(block, |at, plane| {
            let bit = u64::from(tag >> at & 1) << slot;
            // Adding the part from a bit on to a word shifts that part.
            plane.wrapping_add(plane & u64::MAX << slot) | bit
        });
        Header::<TAG_BITS, BYTES>::set(block, header);
    }

    #[inline(always)]
    fn take<const TAG_BITS: usize, const BYTES: usize>(
        self,
        block: &mut [u8; BLOCK],
        slot: u32,
        position: u32,
    ) {
        let header = with_bit_removed(self, Header::<TAG_BITS, BYTES>::of(block), position);
        let below = (1 << (slot & 63)) - 1;
        change_planes::<TAG_BITS, BYTES>(block, |_, plane| plane & below | plane >> 1 & !below);
        Header::<TAG_BITS, BYTES>::set(block, header);
    }
}
