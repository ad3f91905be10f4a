//! The quotient layout: a hash table of remainders without keys, in blocks of 64 slots.
//!
//! A fingerprint is a quotient, the number of the slot where it wants to be, and a remainder of
//! `width` bits. All remainders of one quotient lie side by side and ascending, a *run*; runs lie
//! in the order of their quotients, each at its own slot or, where that is taken, behind the run
//! before it. Block b is 17 + 8 · width bytes:
//!
//! * its *offset*, one byte: how many slots from its first on hold runs of quotients before the
//!   block; 255 stands for 255 or more;
//! * a word *occupied*: bit i is set if quotient 64 b + i has a run;
//! * a word *ends*: bit i is set if slot 64 b + i is the last one of a run;
//! * 64 remainders, bit by bit; those of free slots are 0.
//!
//! The runs of the block's own quotients end at the first run ends behind the slots that the
//! offset tells of, in their order: to rank in *occupied* and select in *ends* finds any run.
//!
//! Runs never go round: slots behind that of the last quotient take what is pushed out. Every
//! walk goes one way and ends with the table, whatever the bits are; what is read behind it is 0.
//!
//! Cost: two cache lines a query in the mean. An insert or a removal moves all slots up to the
//! next free one, r words for each block of them.
//! Source: Bender et al. 2012, "Don't thrash"; Pandey, Bender, Johnson & Patro 2017, "A
//! general-purpose counting filter" (the rank-and-select form).

mod change;
mod fill;
mod select;
mod table;
#[cfg(test)]
mod tests;
mod walk;

pub(crate) use change::Inserted;
use fill::Fill;
use select::Select;
pub(crate) use table::Table;
use walk::Walk;
pub(crate) use walk::{Fault, Tally, Walked};

/// Slots of a block.
pub(crate) const SLOTS: usize = 64;
/// Bytes of a block before its remainders.
const HEAD: usize = 17;
/// The offset that stands for itself and all above.
const FAR: u8 = u8::MAX;
/// The widest remainder that one load of a word finds, wherever in a byte it begins.
pub(crate) const MOST_WIDTH: u32 = 56;
/// A load at the last remainder looks so far behind the last block.
const BEHIND: u64 = 8;

/// The geometry of a table; its bytes come with each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) blocks: usize,
    /// Bits of a remainder, 1 to [`MOST_WIDTH`].
    pub(crate) width: u32,
}

/// Where the remainders of a quotient are, or would be.
struct Run {
    occupied: bool,
    /// Its first slot; only if it is occupied.
    start: usize,
    /// Behind its last slot, and behind all of quotients before it.
    end: usize,
}

impl Rule {
    /// Bytes of a table, before they are rounded up to lines.
    pub(crate) fn bytes(blocks: u64, width: u32) -> u64 {
        blocks.saturating_mul(HEAD as u64 + 8 * u64::from(width)).saturating_add(BEHIND)
    }

    /// Slots in all.
    #[inline(always)]
    pub(crate) fn slots(self) -> usize {
        self.blocks * SLOTS
    }

    #[inline(always)]
    fn quotient(self, fingerprint: u64) -> usize {
        (fingerprint >> self.width) as usize
    }

    #[inline(always)]
    fn remainder(self, fingerprint: u64) -> u64 {
        fingerprint & !(!0 << self.width)
    }

    /// Where a block begins.
    #[inline(always)]
    fn at(self, block: usize) -> usize {
        block * (HEAD + 8 * self.width as usize)
    }

    #[inline(always)]
    fn near(self, bytes: &[u8], block: usize) -> u8 {
        bytes.get(self.at(block)).map_or(0, |byte| *byte)
    }

    #[inline(always)]
    fn put_near(self, bytes: &mut [u8], block: usize, offset: u8) {
        if let Some(byte) = bytes.get_mut(self.at(block)) {
            *byte = offset;
        }
    }

    #[inline(always)]
    fn occupied(self, bytes: &[u8], block: usize) -> u64 {
        word(bytes, self.at(block) + 1)
    }

    #[inline(always)]
    fn put_occupied(self, bytes: &mut [u8], block: usize, occupied: u64) {
        put_word(bytes, self.at(block) + 1, occupied);
    }

    #[inline(always)]
    fn ends(self, bytes: &[u8], block: usize) -> u64 {
        word(bytes, self.at(block) + 9)
    }

    #[inline(always)]
    fn put_ends(self, bytes: &mut [u8], block: usize, ends: u64) {
        put_word(bytes, self.at(block) + 9, ends);
    }

    #[inline(always)]
    fn is_end(self, bytes: &[u8], slot: usize) -> bool {
        self.ends(bytes, slot / SLOTS) >> (slot % SLOTS) & 1 == 1
    }

    /// Where the remainder of a slot begins: a byte, and a bit of it.
    #[inline(always)]
    fn place(self, slot: usize) -> (usize, u32) {
        let bit = slot % SLOTS * self.width as usize;
        (self.at(slot / SLOTS) + HEAD + bit / 8, bit as u32 % 8)
    }

    /// The remainder in a slot.
    #[inline(always)]
    fn slot(self, bytes: &[u8], slot: usize) -> u64 {
        let (at, bit) = self.place(slot);
        self.remainder(word(bytes, at) >> bit)
    }

    #[inline(always)]
    fn put_slot(self, bytes: &mut [u8], slot: usize, remainder: u64) {
        let (at, bit) = self.place(slot);
        let others = word(bytes, at) & !(!(!0 << self.width) << bit);
        put_word(bytes, at, others | remainder << bit);
    }

    /// How many slots from the block's first on hold runs of quotients before it.
    #[inline(always)]
    fn offset(self, select: impl Select, bytes: &[u8], block: usize) -> usize {
        let near = self.near(bytes, block);
        if near < FAR { near.into() } else { self.far(select, bytes, block) }
    }

    /// [`offset`](Self::offset) where a byte does not hold it: from the last block before for
    /// which it does.
    #[cold]
    fn far(self, select: impl Select, bytes: &[u8], block: usize) -> usize {
        let far = |back: &usize| *back == 0 || self.near(bytes, *back) < FAR;
        let back = (0..=block).rev().find(far).unwrap_or(0);
        let from = back * SLOTS + usize::from(self.near(bytes, back));
        let runs = (back..block).map(|block| self.occupied(bytes, block).count_ones() as usize);
        self.nth_end(select, bytes, from, runs.sum()).saturating_sub(block * SLOTS)
    }

    /// Behind the last run of a quotient up to this one.
    #[inline(always)]
    fn end(self, select: impl Select, bytes: &[u8], quotient: usize) -> usize {
        let block = quotient / SLOTS;
        let from = block * SLOTS + self.offset(select, bytes, block);
        let runs = self.occupied(bytes, block) & up_to(quotient % SLOTS);
        self.nth_end(select, bytes, from, runs.count_ones() as usize)
    }

    /// Behind the nth end of a run from a slot on; that slot itself if n is 0, and the end of the
    /// table if there are not so many.
    #[inline(always)]
    fn nth_end(self, select: impl Select, bytes: &[u8], from: usize, n: usize) -> usize {
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

    /// The run of a quotient.
    #[inline(always)]
    fn run(self, select: impl Select, bytes: &[u8], quotient: usize) -> Run {
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

    /// Whether a fingerprint is in the table.
    #[inline(always)]
    pub(crate) fn contains(self, select: impl Select, bytes: &[u8], fingerprint: u64) -> bool {
        let quotient = self.quotient(fingerprint);
        if self.occupied(bytes, quotient / SLOTS) >> (quotient % SLOTS) & 1 == 0 {
            return false;
        }
        // From the last of the run down, for that is found by one selection. That remainders are
        // in order is of no use here: runs are short, and a branch on it could not be foreseen.
        let remainder = self.remainder(fingerprint);
        let mut slot = self.end(select, bytes, quotient) - 1;
        for _ in 0..SHORT {
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

    /// How many copies of a fingerprint are in the table.
    #[inline(always)]
    pub(crate) fn count(self, select: impl Select, bytes: &[u8], fingerprint: u64) -> u64 {
        let run = self.run(select, bytes, self.quotient(fingerprint));
        let remainder = self.remainder(fingerprint);
        let first = self.first_from(bytes, run.start, run.end, remainder);
        (self.first_from(bytes, first, run.end, remainder + 1) - first) as u64
    }

    /// The first slot of a run, from one of its slots on, with this remainder or a larger one; or
    /// its end.
    #[inline(always)]
    fn first_from(self, bytes: &[u8], from: usize, end: usize, remainder: u64) -> usize {
        let near = end.min(from.saturating_add(SHORT));
        let mut slot = from;
        while slot < near && self.slot(bytes, slot) < remainder {
            slot += 1;
        }
        if slot < near || near == end { slot } else { self.far_from(bytes, near, end, remainder) }
    }

    /// The same in a long run, which is one with many copies of a key.
    #[inline(never)]
    fn far_from(self, bytes: &[u8], mut from: usize, mut end: usize, remainder: u64) -> usize {
        while from < end {
            let middle = from + (end - from) / 2;
            if self.slot(bytes, middle) < remainder { from = middle + 1 } else { end = middle }
        }
        from
    }
}

/// Slots of a run that are looked at one after the other: more than runs of different keys have.
const SHORT: usize = 16;

/// The bits up to this one, which is below 64.
#[inline(always)]
fn up_to(bit: usize) -> u64 {
    !0 >> (SLOTS - 1 - bit)
}

/// The word at a byte; 0 behind the end.
#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u64::from_le_bytes(*word))
}

#[inline(always)]
fn put_word(bytes: &mut [u8], at: usize, word: u64) {
    if let Some(place) = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *place = word.to_le_bytes();
    }
}
