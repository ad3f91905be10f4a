//! Filling an empty table with sorted fingerprints, in one pass.

use super::params::{MAX_OFFSET, SLOTS, TableParams};
use crate::kernel::select::Select;

/// An empty table that is being filled.
pub(crate) struct Filler<'a> {
    params: TableParams,
    bytes: &'a mut [u8],
    /// The slot after the last used one.
    next: usize,
    quotient: Option<usize>,
}

impl<'a> Filler<'a> {
    /// Creates the filler of a table whose bytes are all 0.
    pub(crate) fn new(params: TableParams, bytes: &'a mut [u8]) -> Self {
        Self { params, bytes, next: 0, quotient: None }
    }

    /// Appends a fingerprint, which must not be less than the previous one. Returns false if no slot
    /// is left.
    #[must_use]
    pub(crate) fn push(&mut self, fingerprint: u64) -> bool {
        let params = self.params;
        let quotient = params.quotient(fingerprint);
        let same = self.quotient == Some(quotient);
        let slot = if same { self.next } else { self.next.max(quotient) };
        if slot >= params.slots() {
            return false;
        }
        if same {
            params.clear_end(self.bytes, slot - 1);
        } else {
            let occupied = params.occupied(self.bytes, quotient / SLOTS);
            let bit = 1 << (quotient % SLOTS);
            params.put_occupied(self.bytes, quotient / SLOTS, occupied | bit);
        }
        params.set_end(self.bytes, slot);
        params.put_slot(self.bytes, slot, params.remainder(fingerprint));
        (self.next, self.quotient) = (slot + 1, Some(quotient));
        true
    }

    /// Writes the offsets of all blocks, which queries need.
    pub(crate) fn finish(self, select: impl Select) {
        let mut end = 0;
        for block in 0..self.params.blocks {
            let offset = short_offset(end, block);
            self.params.put_short_offset(self.bytes, block, offset);
            end = self.params.end_of_block(select, self.bytes, end, block);
        }
    }
}

impl TableParams {
    /// Returns the slot after the runs of a block's quotients; `end` is the slot after earlier runs.
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

/// Returns the offset byte of a block if the runs before it end at slot `end`.
pub(super) fn short_offset(end: usize, block: usize) -> u8 {
    end.saturating_sub(block * SLOTS).min(MAX_OFFSET.into()) as u8
}
