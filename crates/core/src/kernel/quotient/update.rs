//! Insertion and removal.
//!
//! All remainders between the slot of the insertion and the next free slot move by one slot, a word
//! at a time. Free slots contain 0, so that equal sets have equal bytes.

use super::params::{HEADER_BYTES, MAX_OFFSET, SLOTS, TableParams, put_word, up_to, word};
use crate::kernel::select::Select;

/// The outcome of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InsertOutcome {
    /// The fingerprint is new.
    New,
    /// The table contained the fingerprint, and has one more copy of it.
    Duplicate,
    /// The table contained the fingerprint; nothing has changed.
    AlreadyPresent,
    /// There is no free slot after that of the fingerprint; nothing has changed.
    Full,
}

impl TableParams {
    /// Inserts a fingerprint. If the table contains it, adds a copy if `duplicates`.
    #[inline(always)]
    pub(crate) fn insert(
        self,
        select: impl Select,
        bytes: &mut [u8],
        fingerprint: u64,
        duplicates: bool,
    ) -> InsertOutcome {
        let (quotient, remainder) = (self.quotient(fingerprint), self.remainder(fingerprint));
        let run = self.run(select, bytes, quotient);
        let block = quotient / SLOTS;
        if !run.occupied && run.end <= quotient {
            // The preferred slot is free, as for half of all inserts up to the planned fill.
            let bit = 1 << (quotient % SLOTS);
            self.put_slot(bytes, quotient, remainder);
            self.put_occupied(bytes, block, self.occupied(bytes, block) | bit);
            self.put_ends(bytes, block, self.ends(bytes, block) | bit);
            return InsertOutcome::New;
        }
        let after = run.end.max(quotient);
        let mut place = after;
        if run.occupied {
            place = self.first_from(bytes, run.start, run.end, remainder);
        }
        let present = run.occupied && place < run.end && self.slot(bytes, place) == remainder;
        if present {
            if !duplicates {
                return InsertOutcome::AlreadyPresent;
            }
            // After all other copies, where less must move.
            place = self.first_from(bytes, place, run.end, remainder + 1);
        }
        let Some(free) = self.first_free(select, bytes, after) else {
            return InsertOutcome::Full;
        };
        self.move_up(bytes, place, free, remainder);
        if !run.occupied {
            let occupied = self.occupied(bytes, block);
            self.put_occupied(bytes, block, occupied | 1 << (quotient % SLOTS));
            self.set_end(bytes, place);
        } else if place == run.end {
            self.clear_end(bytes, place - 1);
            self.set_end(bytes, place);
        }
        for block in block + 1..=free / SLOTS {
            let offset = self.short_offset(bytes, block);
            self.put_short_offset(bytes, block, offset.saturating_add(1));
        }
        if present { InsertOutcome::Duplicate } else { InsertOutcome::New }
    }

    /// Removes one copy of a fingerprint. Returns the number of copies before.
    #[inline(always)]
    pub(crate) fn remove(self, select: impl Select, bytes: &mut [u8], fingerprint: u64) -> u64 {
        let (quotient, remainder) = (self.quotient(fingerprint), self.remainder(fingerprint));
        let run = self.run(select, bytes, quotient);
        if !run.occupied {
            return 0;
        }
        let place = self.first_from(bytes, run.start, run.end, remainder);
        let copies = self.first_from(bytes, place, run.end, remainder + 1) - place;
        if copies == 0 {
            return 0;
        }
        // The last copy, after which less must move.
        let place = place + copies - 1;
        let unmoved = self.first_unmoved(select, bytes, run.end);
        self.move_down(bytes, place, unmoved);
        let block = quotient / SLOTS;
        if run.end - run.start == 1 {
            let occupied = self.occupied(bytes, block);
            self.put_occupied(bytes, block, occupied & !(1 << (quotient % SLOTS)));
        } else if place + 1 == run.end {
            self.set_end(bytes, place - 1);
        }
        self.decrement_offsets(select, bytes, block, unmoved);
        copies as u64
    }

    /// Returns the first free slot from `from` on. A slot is free if no run of a quotient up to it
    /// reaches it; otherwise the next candidate is the slot after these runs.
    #[inline(always)]
    fn first_free(self, select: impl Select, bytes: &[u8], from: usize) -> Option<usize> {
        let (mut block, mut slot) = (from / SLOTS, from % SLOTS);
        while block < self.blocks {
            let offset = self.offset(select, bytes, block);
            if offset >= SLOTS {
                (block, slot) = (block + offset / SLOTS, offset % SLOTS);
                continue;
            }
            slot = slot.max(offset);
            let occupied = self.occupied(bytes, block);
            let ends = self.ends(bytes, block) & !0 << offset;
            while slot < SLOTS {
                let runs = (occupied & up_to(slot)).count_ones();
                if runs == 0 {
                    return Some(block * SLOTS + slot);
                }
                // 64 if the run ends after the block.
                let last = select.nth_one(ends, runs - 1) as usize;
                if last < slot {
                    return Some(block * SLOTS + slot);
                }
                slot = last + 1;
            }
            (block, slot) = (block + 1, 0);
        }
        None
    }

    /// Returns the first slot from the end of a run on that is free or the preferred slot of the run
    /// that starts there: no run of an earlier quotient reaches it, so a removal before it moves
    /// nothing from there on.
    #[inline(always)]
    fn first_unmoved(self, select: impl Select, bytes: &[u8], end: usize) -> usize {
        // `at` is the slot before the candidate.
        let (mut block, mut at) = ((end - 1) / SLOTS, (end - 1) % SLOTS);
        while block < self.blocks {
            let offset = self.offset(select, bytes, block);
            if offset > SLOTS {
                (block, at) = (block + (offset - 1) / SLOTS, (offset - 1) % SLOTS);
                continue;
            }
            at = at.max(offset.saturating_sub(1));
            let occupied = self.occupied(bytes, block);
            let clear = if offset < SLOTS { !0 << offset } else { 0 };
            let ends = self.ends(bytes, block) & clear;
            while at < SLOTS {
                let runs = (occupied & up_to(at)).count_ones();
                if runs == 0 {
                    return block * SLOTS + at + 1;
                }
                let last = select.nth_one(ends, runs - 1) as usize;
                if last <= at {
                    return block * SLOTS + at + 1;
                }
                at = last;
            }
            (block, at) = (block + 1, 0);
        }
        self.slots()
    }

    /// After a removal from a quotient of this block, decrements the offsets of later blocks whose
    /// first slot is before `unmoved`.
    #[inline(always)]
    fn decrement_offsets(
        self,
        select: impl Select,
        bytes: &mut [u8],
        block: usize,
        unmoved: usize,
    ) {
        // The end of the runs of earlier blocks, if it was calculated for the previous block.
        let mut known = None;
        for block in block + 1..unmoved.div_ceil(SLOTS) {
            let offset = self.short_offset(bytes, block);
            if offset < MAX_OFFSET {
                self.put_short_offset(bytes, block, offset.saturating_sub(1));
                known = None;
                continue;
            }
            let end = match known {
                Some(end) => {
                    let runs = self.occupied(bytes, block - 1).count_ones() as usize;
                    self.nth_end(select, bytes, end, runs)
                }
                None => self.end(select, bytes, block * SLOTS - 1),
            };
            let offset = end.saturating_sub(block * SLOTS);
            self.put_short_offset(bytes, block, offset.min(MAX_OFFSET.into()) as u8);
            known = Some(end);
        }
    }

    #[inline(always)]
    pub(super) fn set_end(self, bytes: &mut [u8], slot: usize) {
        let ends = self.ends(bytes, slot / SLOTS);
        self.put_ends(bytes, slot / SLOTS, ends | 1 << (slot % SLOTS));
    }

    #[inline(always)]
    pub(super) fn clear_end(self, bytes: &mut [u8], slot: usize) {
        let ends = self.ends(bytes, slot / SLOTS);
        self.put_ends(bytes, slot / SLOTS, ends & !(1 << (slot % SLOTS)));
    }

    /// Moves the slots from `place` to before `free` up by one, with their run ends, and writes a
    /// remainder to `place`, at which no run ends.
    #[inline(always)]
    fn move_up(self, bytes: &mut [u8], place: usize, free: usize, remainder: u64) {
        let (first, last) = (place / SLOTS, free / SLOTS);
        let (mut value, mut end) = (remainder, 0);
        for block in first..=last {
            let low = if block == first { place % SLOTS } else { 0 };
            let high = if block == last { free % SLOTS } else { SLOTS - 1 };
            let out = self.slot(bytes, block * SLOTS + high);
            self.block_up(bytes, block, low, high, value);
            value = out;
            let region = up_to(high) & !0 << low;
            let ends = self.ends(bytes, block);
            let moved = ((ends & region) << 1 | end << low) & region;
            self.put_ends(bytes, block, ends & !region | moved);
            end = ends >> high & 1;
        }
    }

    /// Moves the slots after `place` and before `unmoved` down by one, with their run ends.
    #[inline(always)]
    fn move_down(self, bytes: &mut [u8], place: usize, unmoved: usize) {
        let (first, last) = (place / SLOTS, (unmoved - 1) / SLOTS);
        for block in first..=last {
            let low = if block == first { place % SLOTS } else { 0 };
            let (high, value, end) = if block == last {
                ((unmoved - 1) % SLOTS, 0, 0)
            } else {
                let next = self.slot(bytes, (block + 1) * SLOTS);
                (SLOTS - 1, next, self.ends(bytes, block + 1) & 1)
            };
            self.block_down(bytes, block, low, high);
            self.put_slot(bytes, block * SLOTS + high, value);
            let region = up_to(high) & !0 << low;
            let ends = self.ends(bytes, block);
            let moved = (ends & region & !(1 << low)) >> 1 | end << high;
            self.put_ends(bytes, block, ends & !region | moved);
        }
    }

    /// Moves the remainders of a block's slots `low` to `high - 1` up by one slot, and writes a value
    /// to slot `low`.
    ///
    /// The value is written as part of the words: a slot is not aligned to words, and a load that
    /// overlaps a recent store at another address is slow.
    #[inline(always)]
    fn block_up(self, bytes: &mut [u8], block: usize, low: usize, high: usize, value: u64) {
        let (width, at) = (self.width, self.block_at(block) + HEADER_BYTES);
        let (from, to) = (low * width as usize, (high + 1) * width as usize);
        let (first, mut lane) = (from / 64, (to - 1) / 64);
        let mut here = word(bytes, at + 8 * lane);
        // The bits of the last word that do not change.
        let mut unchanged = !(!0 >> (63 - (to - 1) % 64));
        while lane > first {
            let before = word(bytes, at + 8 * (lane - 1));
            let mut moved = here << width | before >> (64 - width);
            if lane == first + 1 && from % 64 + width as usize > 64 {
                // The upper bits of the value are in this word.
                let upper = from % 64 + width as usize - 64;
                moved = moved & !0 << upper | value >> (width as usize - upper);
            }
            put_word(bytes, at + 8 * lane, here & unchanged | moved & !unchanged);
            (here, lane, unchanged) = (before, lane - 1, 0);
        }
        unchanged |= !(!0 << (from % 64));
        let above = here & !unchanged;
        let moved = above << width | value << (from % 64);
        put_word(bytes, at + 8 * lane, here & unchanged | moved & !unchanged);
    }

    /// Moves the remainders of a block's slots `low + 1` to `high` down by one slot.
    #[inline(always)]
    fn block_down(self, bytes: &mut [u8], block: usize, low: usize, high: usize) {
        let (width, at) = (self.width, self.block_at(block) + HEADER_BYTES);
        let (from, to) = (low * width as usize, high * width as usize);
        let last = (to + width as usize - 1) / 64;
        let mut below = word(bytes, at + 8 * (from / 64));
        for lane in from / 64..=last {
            let here = below;
            below = if lane < last { word(bytes, at + 8 * (lane + 1)) } else { 0 };
            let mask = between(from, to, lane);
            let moved = here >> width | below << (64 - width);
            put_word(bytes, at + 8 * lane, here & !mask | moved & mask);
        }
    }
}

/// Returns the mask of the bits of word `lane` of the remainders that are in a range of bits of the
/// block.
#[inline(always)]
fn between(from: usize, to: usize, lane: usize) -> u64 {
    let first = from.saturating_sub(lane * 64);
    let after = to.saturating_sub(lane * 64).min(64);
    if first >= after { 0 } else { (!0 << first) & (!0 >> (64 - after)) }
}
