//! Inserting into a table and removing from it.
//!
//! Everything between the place of a remainder and the next free slot moves by one slot, a word
//! of remainders at a time. Free slots hold 0, so that equal sets are equal bytes.

use super::{FAR, Rule, SLOTS, Select, put_word, up_to, word};

/// What came of an insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// The fingerprint was not there before.
    New,
    /// It was, and there is one copy more of it.
    Again,
    /// It was, and nothing has changed.
    There,
    /// No slot is free from its own on; nothing has changed.
    Full,
}

impl Rule {
    /// Inserts a fingerprint; where it is there already, a copy if `again`.
    #[inline(always)]
    pub(crate) fn insert(
        self,
        select: impl Select,
        bytes: &mut [u8],
        fingerprint: u64,
        again: bool,
    ) -> Inserted {
        let (quotient, remainder) = (self.quotient(fingerprint), self.remainder(fingerprint));
        let run = self.run(select, bytes, quotient);
        let block = quotient / SLOTS;
        if !run.occupied && run.end <= quotient {
            // Its own slot is free: half of all inserts until a table is as full as planned.
            let bit = 1 << (quotient % SLOTS);
            self.put_slot(bytes, quotient, remainder);
            self.put_occupied(bytes, block, self.occupied(bytes, block) | bit);
            self.put_ends(bytes, block, self.ends(bytes, block) | bit);
            return Inserted::New;
        }
        let behind = run.end.max(quotient);
        let mut place = behind;
        if run.occupied {
            place = self.first_from(bytes, run.start, run.end, remainder);
        }
        let there = run.occupied && place < run.end && self.slot(bytes, place) == remainder;
        if there {
            if !again {
                return Inserted::There;
            }
            // Behind all other copies, as less is to be moved there.
            place = self.first_from(bytes, place, run.end, remainder + 1);
        }
        let Some(free) = self.free(select, bytes, behind) else {
            return Inserted::Full;
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
            let near = self.near(bytes, block);
            self.put_near(bytes, block, near.saturating_add(1));
        }
        if there { Inserted::Again } else { Inserted::New }
    }

    /// Removes one copy of a fingerprint; how many there were.
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
        // The last copy, as less is to be moved behind it.
        let place = place + copies - 1;
        let stays = self.stays(select, bytes, run.end);
        self.move_down(bytes, place, stays);
        let block = quotient / SLOTS;
        if run.end - run.start == 1 {
            let occupied = self.occupied(bytes, block);
            self.put_occupied(bytes, block, occupied & !(1 << (quotient % SLOTS)));
        } else if place + 1 == run.end {
            self.set_end(bytes, place - 1);
        }
        self.lower_offsets(select, bytes, block, stays);
        copies as u64
    }

    /// The first free slot from one on. One is free if no run of a quotient up to it reaches it;
    /// else the next that may be free is the one behind the runs that do.
    #[inline(always)]
    fn free(self, select: impl Select, bytes: &[u8], from: usize) -> Option<usize> {
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
                // 64 if the run ends behind the block.
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

    /// The first slot from the end of a run on that is free or where a run begins that is in its
    /// own place: nothing there or behind moves when something before is removed. It is one that
    /// no run of a quotient before it goes beyond.
    #[inline(always)]
    fn stays(self, select: impl Select, bytes: &[u8], end: usize) -> usize {
        // `at` is the slot before the one that is asked about.
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

    /// After a removal from a quotient of this block: offsets of the blocks whose first slot lay
    /// before the one that `stays` have become less by one.
    #[inline(always)]
    fn lower_offsets(self, select: impl Select, bytes: &mut [u8], block: usize, stays: usize) {
        // Where the runs of the blocks before end, once that had to be found out.
        let mut known = None;
        for block in block + 1..stays.div_ceil(SLOTS) {
            let near = self.near(bytes, block);
            if near < FAR {
                self.put_near(bytes, block, near.saturating_sub(1));
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
            self.put_near(bytes, block, offset.min(FAR.into()) as u8);
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

    /// Moves what is in the slots from `place` up to the one that is `free`, and the ends of runs
    /// with it, and puts a remainder into `place`, at which no run ends.
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

    /// Moves what is in the slots behind `place` and before the one that `stays` down by one, and
    /// the ends of runs with it.
    #[inline(always)]
    fn move_down(self, bytes: &mut [u8], place: usize, stays: usize) {
        let (first, last) = (place / SLOTS, (stays - 1) / SLOTS);
        for block in first..=last {
            let low = if block == first { place % SLOTS } else { 0 };
            let (high, value, end) = if block == last {
                ((stays - 1) % SLOTS, 0, 0)
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

    /// Moves the remainders of a block's slots `low` to `high - 1` up by one slot, and puts a
    /// value into the slot `low`.
    ///
    /// Written word by word, the value within them: a slot has no place of its own in memory, and
    /// to load at one place what was stored at another a moment ago is slow.
    #[inline(always)]
    fn block_up(self, bytes: &mut [u8], block: usize, low: usize, high: usize, value: u64) {
        let (width, at) = (self.width, self.at(block) + super::HEAD);
        let (from, to) = (low * width as usize, (high + 1) * width as usize);
        let (first, mut lane) = (from / 64, (to - 1) / 64);
        let mut here = word(bytes, at + 8 * lane);
        // Bits of the last word that stay.
        let mut stays = !(!0 >> (63 - (to - 1) % 64));
        while lane > first {
            let before = word(bytes, at + 8 * (lane - 1));
            let mut moved = here << width | before >> (64 - width);
            if lane == first + 1 && from % 64 + width as usize > 64 {
                // The value's upper bits lie in this word.
                let upper = from % 64 + width as usize - 64;
                moved = moved & !0 << upper | value >> (width as usize - upper);
            }
            put_word(bytes, at + 8 * lane, here & stays | moved & !stays);
            (here, lane, stays) = (before, lane - 1, 0);
        }
        stays |= !(!0 << (from % 64));
        let above = here & !stays;
        let moved = above << width | value << (from % 64);
        put_word(bytes, at + 8 * lane, here & stays | moved & !stays);
    }

    /// Moves the remainders of a block's slots `low + 1` to `high` down by one slot.
    #[inline(always)]
    fn block_down(self, bytes: &mut [u8], block: usize, low: usize, high: usize) {
        let (width, at) = (self.width, self.at(block) + super::HEAD);
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

/// Of the bits of a word of remainders, those from one bit of the block to before another.
#[inline(always)]
fn between(from: usize, to: usize, lane: usize) -> u64 {
    let first = from.saturating_sub(lane * 64);
    let behind = to.saturating_sub(lane * 64).min(64);
    if first >= behind { 0 } else { (!0 << first) & (!0 >> (64 - behind)) }
}
