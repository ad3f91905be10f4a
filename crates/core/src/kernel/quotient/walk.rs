//! All fingerprints in order, and whether a table is sound.

use std::ops::Range;

use super::fill::near;
use super::{HEAD, Rule, SLOTS};

/// The fingerprints of a table, ascending. Ends with the table, whatever its bits are.
pub(crate) struct Walk<'a> {
    rule: Rule,
    bytes: &'a [u8],
    /// The block of quotients, and which of them have runs still to come.
    block: usize,
    occupied: u64,
    quotient: usize,
    slot: usize,
    within: bool,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(rule: Rule, bytes: &'a [u8]) -> Self {
        let occupied = rule.occupied(bytes, 0);
        Self { rule, bytes, block: 0, occupied, quotient: 0, slot: 0, within: false }
    }
}

impl Iterator for Walk<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if !self.within {
            while self.occupied == 0 {
                self.block += 1;
                if self.block >= self.rule.blocks {
                    self.block = self.rule.blocks;
                    return None;
                }
                self.occupied = self.rule.occupied(self.bytes, self.block);
            }
            self.quotient = self.block * SLOTS + self.occupied.trailing_zeros() as usize;
            self.occupied &= self.occupied - 1;
            self.slot = self.slot.max(self.quotient);
        }
        if self.slot >= self.rule.slots() {
            return None;
        }
        let remainder = self.rule.slot(self.bytes, self.slot);
        self.within = !self.rule.is_end(self.bytes, self.slot);
        self.slot += 1;
        Some((self.quotient as u64) << self.rule.width | remainder)
    }
}

/// What is wrong with a table, and the byte where that is.
pub(crate) struct Fault {
    pub(crate) what: &'static str,
    pub(crate) at: usize,
}

/// How many fingerprints a sound table holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) total: u64,
    pub(crate) distinct: u64,
}

/// How far a check has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Walked {
    /// Blocks whose runs have been looked at.
    pub(crate) blocks: usize,
    /// Slots before this one are accounted for; those runs end before it.
    pub(crate) slot: usize,
    pub(crate) tally: Tally,
}

impl Rule {
    /// Walks through what is left of a whole table of so many quotients: whether it is what inserts
    /// would have made of its fingerprints, bit by bit.
    pub(crate) fn check(
        self,
        bytes: &[u8],
        quotients: u64,
        mut walked: Walked,
    ) -> Result<Tally, Fault> {
        self.check_blocks(bytes, quotients, self.blocks, &mut walked)?;
        let Walked { blocks, slot, tally } = walked;
        if blocks < self.blocks {
            return Err(Fault { what: "run without an end", at: self.at(blocks) });
        }
        self.check_free(bytes, slot, self.slots())?;
        let used = self.at(self.blocks);
        match bytes.get(used..).and_then(|rest| rest.iter().position(|byte| *byte != 0)) {
            None => Ok(tally),
            Some(off) => Err(Fault { what: "bytes behind the last slot", at: used + off }),
        }
    }

    /// Walks on through a table of which so many blocks are there, and stops before the first block
    /// with a run that does not end in them.
    pub(crate) fn check_blocks(
        self,
        bytes: &[u8],
        quotients: u64,
        blocks: usize,
        walked: &mut Walked,
    ) -> Result<(), Fault> {
        while walked.blocks < blocks {
            match self.check_block(bytes, quotients, blocks * SLOTS, *walked)? {
                Some(further) => *walked = further,
                None => break,
            }
        }
        Ok(())
    }

    /// Walks through the runs of a block; nothing if one does not end before a slot.
    fn check_block(
        self,
        bytes: &[u8],
        quotients: u64,
        end: usize,
        walked: Walked,
    ) -> Result<Option<Walked>, Fault> {
        let Walked { blocks: block, mut slot, mut tally } = walked;
        let fault = |what| Err(Fault { what, at: self.at(block) });
        if self.near(bytes, block) != near(slot, block) {
            return fault("offset of a block of slots");
        }
        let mut left = self.occupied(bytes, block);
        while left != 0 {
            let quotient = block * SLOTS + left.trailing_zeros() as usize;
            left &= left - 1;
            if quotient as u64 >= quotients {
                return fault("quotient");
            }
            if slot < quotient {
                self.check_free(bytes, slot, quotient)?;
                slot = quotient;
            }
            match self.check_run(bytes, slot..end, &mut tally)? {
                Some(behind) => slot = behind,
                None => return Ok(None),
            }
        }
        Ok(Some(Walked { blocks: block + 1, slot, tally }))
    }

    /// Walks through a run; returns the slot behind it, if it ends in these slots.
    fn check_run(
        self,
        bytes: &[u8],
        slots: Range<usize>,
        tally: &mut Tally,
    ) -> Result<Option<usize>, Fault> {
        let mut before = None;
        for slot in slots {
            let here = self.slot(bytes, slot);
            if before > Some(here) {
                return Err(Fault { what: "order of remainders", at: self.place(slot).0 });
            }
            tally.total += 1;
            tally.distinct += u64::from(before != Some(here));
            before = Some(here);
            if self.is_end(bytes, slot) {
                return Ok(Some(slot + 1));
            }
        }
        Ok(None)
    }

    /// Slots from one to before another are free.
    fn check_free(self, bytes: &[u8], from: usize, to: usize) -> Result<(), Fault> {
        for slot in from..to {
            if self.is_end(bytes, slot) {
                let at = self.at(slot / SLOTS) + HEAD - 8;
                return Err(Fault { what: "end of no run", at });
            }
            if self.slot(bytes, slot) != 0 {
                return Err(Fault { what: "remainder in a free slot", at: self.place(slot).0 });
            }
        }
        Ok(())
    }
}
