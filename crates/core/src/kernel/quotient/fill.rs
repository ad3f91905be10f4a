//! Filling an empty table with fingerprints that come in order: one pass, nothing moves.

use super::{FAR, Rule, SLOTS, Select};

/// A table that is being filled.
pub(crate) struct Fill<'a> {
    rule: Rule,
    bytes: &'a mut [u8],
    /// Behind the last slot that is taken.
    next: usize,
    quotient: Option<usize>,
}

impl<'a> Fill<'a> {
    /// Over bytes that are all 0.
    pub(crate) fn new(rule: Rule, bytes: &'a mut [u8]) -> Self {
        Self { rule, bytes, next: 0, quotient: None }
    }

    /// Puts the next fingerprint in, not less than the one before. If no slot is left it is not
    /// put in.
    #[must_use]
    pub(crate) fn push(&mut self, fingerprint: u64) -> bool {
        let rule = self.rule;
        let quotient = rule.quotient(fingerprint);
        let same = self.quotient == Some(quotient);
        let slot = if same { self.next } else { self.next.max(quotient) };
        if slot >= rule.slots() {
            return false;
        }
        if same {
            rule.clear_end(self.bytes, slot - 1);
        } else {
            let occupied = rule.occupied(self.bytes, quotient / SLOTS);
            let bit = 1 << (quotient % SLOTS);
            rule.put_occupied(self.bytes, quotient / SLOTS, occupied | bit);
        }
        rule.set_end(self.bytes, slot);
        rule.put_slot(self.bytes, slot, rule.remainder(fingerprint));
        (self.next, self.quotient) = (slot + 1, Some(quotient));
        true
    }

    /// Fills in the offsets, without which nothing is found.
    pub(crate) fn finish(self, select: impl Select) {
        let mut end = 0;
        for block in 0..self.rule.blocks {
            let near = near(end, block);
            self.rule.put_near(self.bytes, block, near);
            end = self.rule.end_of_block(select, self.bytes, end, block);
        }
    }
}

impl Rule {
    /// Behind the runs of a block's quotients, from where those before them end.
    pub(super) fn end_of_block(
        self,
        select: impl Select,
        bytes: &[u8],
        end: usize,
        block: usize,
    ) -> usize {
        let runs = self.occupied(bytes, block).count_ones() as usize;
        if runs == 0 { end } else { self.nth_end(select, bytes, end.max(block * SLOTS), runs) }
    }
}

/// The offset of a block as a byte, from where the runs before it end.
pub(super) fn near(end: usize, block: usize) -> u8 {
    end.saturating_sub(block * SLOTS).min(FAR.into()) as u8
}
