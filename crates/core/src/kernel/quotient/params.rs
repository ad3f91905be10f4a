//! The structure of a table, and queries.

use crate::kernel::select::Select;

/// Slots of a block.
pub(crate) const SLOTS: usize = 64;
/// Bytes of a block before its remainders.
pub(super) const HEADER_BYTES: usize = 17;
/// The offset that means this number or more.
pub(super) const MAX_OFFSET: u8 = u8::MAX;
/// The widest remainder that one load of a word can read, at any bit of a byte.
pub(crate) const MAX_WIDTH: u32 = 56;
/// Bytes after the last block that a load of the last remainder may read.
const PADDING_BYTES: u64 = 8;

/// The dimensions of a table; its bytes are an argument of each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableParams {
    pub(crate) blocks: usize,
    /// Bits of a remainder, 1 to [`MAX_WIDTH`].
    pub(crate) width: u32,
}

/// The slots of the remainders of a quotient, or where they would be.
pub(super) struct Run {
    pub(super) occupied: bool,
    /// The first slot; valid only if occupied.
    pub(super) start: usize,
    /// The slot after the last one, and after all slots of earlier quotients.
    pub(super) end: usize,
}

impl TableParams {
    /// Returns the bytes of a table, not rounded up to cache lines.
    pub(crate) fn bytes(blocks: u64, width: u32) -> u64 {
        blocks
            .saturating_mul(HEADER_BYTES as u64 + 8 * u64::from(width))
            .saturating_add(PADDING_BYTES)
    }

    /// The number of slots.
    #[inline(always)]
    pub(crate) fn slots(self) -> usize {
        self.blocks * SLOTS
    }

    #[inline(always)]
    pub(super) fn quotient(self, fingerprint: u64) -> usize {
        (fingerprint >> self.width) as usize
    }

    #[inline(always)]
    pub(super) fn remainder(self, fingerprint: u64) -> u64 {
        fingerprint & !(!0 << self.width)
    }

    /// Returns the offset of a block in bytes.
    #[inline(always)]
    pub(super) fn block_at(self, block: usize) -> usize {
        block * (HEADER_BYTES + 8 * self.width as usize)
    }

    #[inline(always)]
    pub(super) fn short_offset(self, bytes: &[u8], block: usize) -> u8 {
        bytes.get(self.block_at(block)).map_or(0, |byte| *byte)
    }

    #[inline(always)]
    pub(super) fn put_short_offset(self, bytes: &mut [u8], block: usize, offset: u8) {
        if let Some(byte) = bytes.get_mut(self.block_at(block)) {
            *byte = offset;
        }
    }

    #[inline(always)]
    pub(super) fn occupied(self, bytes: &[u8], block: usize) -> u64 {
        word(bytes, self.block_at(block) + 1)
    }

    #[inline(always)]
    pub(super) fn put_occupied(self, bytes: &mut [u8], block: usize, occupied: u64) {
        put_word(bytes, self.block_at(block) + 1, occupied);
    }

    #[inline(always)]
    pub(super) fn ends(self, bytes: &[u8], block: usize) -> u64 {
        word(bytes, self.block_at(block) + 9)
    }

    #[inline(always)]
    pub(super) fn put_ends(self, bytes: &mut [u8], block: usize, ends: u64) {
        put_word(bytes, self.block_at(block) + 9, ends);
    }

    #[inline(always)]
    pub(super) fn is_end(self, bytes: &[u8], slot: usize) -> bool {
        self.ends(bytes, slot / SLOTS) >> (slot % SLOTS) & 1 == 1
    }

    /// Returns the byte and the bit where the remainder of a slot begins.
    #[inline(always)]
    pub(super) fn locate(self, slot: usize) -> (usize, u32) {
        let bit = slot % SLOTS * self.width as usize;
        (self.block_at(slot / SLOTS) + HEADER_BYTES + bit / 8, bit as u32 % 8)
    }

    /// Returns the remainder in a slot.
    #[inline(always)]
    pub(super) fn slot(self, bytes: &[u8], slot: usize) -> u64 {
        let (at, bit) = self.locate(slot);
        self.remainder(word(bytes, at) >> bit)
    }

    #[inline(always)]
    pub(super) fn put_slot(self, bytes: &mut [u8], slot: usize, remainder: u64) {
        let (at, bit) = self.locate(slot);
        let others = word(bytes, at) & !(!(!0 << self.width) << bit);
        put_word(bytes, at, others | remainder << bit);
    }

    /// Returns the number of slots from the block's first on that contain runs of earlier blocks.
    #[inline(always)]
    pub(super) fn offset(self, select: impl Select, bytes: &[u8], block: usize) -> usize {
        let short = self.short_offset(bytes, block);
        if short < MAX_OFFSET { short.into() } else { self.long_offset(select, bytes, block) }
    }

    /// Returns [`offset`](Self::offset) if the byte is at its maximum, by counting from the last
    /// earlier block whose byte is not.
    #[cold]
    pub(super) fn long_offset(self, select: impl Select, bytes: &[u8], block: usize) -> usize {
        let known = |back: &usize| *back == 0 || self.short_offset(bytes, *back) < MAX_OFFSET;
        let back = (0..=block).rev().find(known).unwrap_or(0);
        let from = back * SLOTS + usize::from(self.short_offset(bytes, back));
        let runs = (back..block).map(|block| self.occupied(bytes, block).count_ones() as usize);
        self.nth_end(select, bytes, from, runs.sum()).saturating_sub(block * SLOTS)
    }

    /// Returns the slot after the last run of a quotient up to this one.
    #[inline(always)]
    pub(super) fn end(self, select: impl Select, bytes: &[u8], quotient: usize) -> usize {
        let block = quotient / SLOTS;
        let from = block * SLOTS + self.offset(select, bytes, block);
        let runs = self.occupied(bytes, block) & up_to(quotient % SLOTS);
        self.nth_end(select, bytes, from, runs.count_ones() as usize)
    }

    /// Returns the slot after the nth end of a run from slot `from` on; `from` if n is 0, and the end
    /// of the table if there are fewer.
    #[inline(always)]
    pub(super) fn nth_end(self, select: impl Select, bytes: &[u8], from: usize, n: usize) -> usize {
        if n == 0 {
            return from.min(self.slots());
        }
        let mut left = n;
        let mut block = from / SLOTS;
        let mut clear = !(!0 << (from % SLOTS));
        while block < self.blocks {
            let ends = self.ends(bytes, block) & !clear;
            let here = ends.count_ones() as usize;
            if left <= here {
                return block * SLOTS + select.nth_one(ends, left as u32 - 1) as usize + 1;
            }
            left -= here;
            clear = 0;
            block += 1;
        }
        self.slots()
    }

    /// Returns the run of a quotient.
    #[inline(always)]
    pub(super) fn run(self, select: impl Select, bytes: &[u8], quotient: usize) -> Run {
        let block = quotient / SLOTS;
        let from = block * SLOTS + self.offset(select, bytes, block);
        let occupied = self.occupied(bytes, block);
        let runs = (occupied & up_to(quotient % SLOTS)).count_ones() as usize;
        if occupied >> (quotient % SLOTS) & 1 == 0 {
            let end = self.nth_end(select, bytes, from, runs);
            return Run { occupied: false, start: end, end };
        }
        let before = self.nth_end(select, bytes, from, runs - 1);
        let start = quotient.max(before);
        Run { occupied: true, start, end: self.nth_end(select, bytes, before, 1) }
    }

    /// Returns whether the table contains a fingerprint.
    #[inline(always)]
    pub(crate) fn contains(self, select: impl Select, bytes: &[u8], fingerprint: u64) -> bool {
        let quotient = self.quotient(fingerprint);
        if self.occupied(bytes, quotient / SLOTS) >> (quotient % SLOTS) & 1 == 0 {
            return false;
        }
        // Backwards from the last slot of the run, which one selection finds. The order of remainders
        // does not help: runs are short, and a branch on it would be unpredictable.
        let remainder = self.remainder(fingerprint);
        let mut slot = self.end(select, bytes, quotient) - 1;
        for _ in 0..SHORT_RUN {
            if self.slot(bytes, slot) == remainder {
                return true;
            }
            if slot <= quotient || self.is_end(bytes, slot - 1) {
                return false;
            }
            slot -= 1;
        }
        self.count(select, bytes, fingerprint) > 0
    }

    /// Returns the number of copies of a fingerprint.
    #[inline(always)]
    pub(crate) fn count(self, select: impl Select, bytes: &[u8], fingerprint: u64) -> u64 {
        let run = self.run(select, bytes, self.quotient(fingerprint));
        let remainder = self.remainder(fingerprint);
        let first = self.first_from(bytes, run.start, run.end, remainder);
        (self.first_from(bytes, first, run.end, remainder + 1) - first) as u64
    }

    /// Returns the first slot of a run, from slot `from` on, with this remainder or a larger one; or
    /// `end`.
    #[inline(always)]
    pub(super) fn first_from(self, bytes: &[u8], from: usize, end: usize, remainder: u64) -> usize {
        let short_end = end.min(from.saturating_add(SHORT_RUN));
        let mut slot = from;
        while slot < short_end && self.slot(bytes, slot) < remainder {
            slot += 1;
        }
        if slot < short_end || short_end == end {
            slot
        } else {
            self.binary_search_from(bytes, short_end, end, remainder)
        }
    }

    /// Same as `first_from` by binary search, for long runs, which have many copies of a key.
    #[inline(never)]
    fn binary_search_from(
        self,
        bytes: &[u8],
        mut from: usize,
        mut end: usize,
        remainder: u64,
    ) -> usize {
        while from < end {
            let middle = from + (end - from) / 2;
            if self.slot(bytes, middle) < remainder { from = middle + 1 } else { end = middle }
        }
        from
    }
}

/// Slots of a run that are searched linearly: more than runs of different keys have.
const SHORT_RUN: usize = 16;

/// Returns the mask of bits 0 to `bit`, which is below 64.
#[inline(always)]
pub(super) fn up_to(bit: usize) -> u64 {
    !0 >> (SLOTS - 1 - bit)
}

/// Returns the word at byte `at`; 0 after the end.
#[inline(always)]
pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u64::from_le_bytes(*word))
}

#[inline(always)]
pub(super) fn put_word(bytes: &mut [u8], at: usize, word: u64) {
    if let Some(place) = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *place = word.to_le_bytes();
    }
}
