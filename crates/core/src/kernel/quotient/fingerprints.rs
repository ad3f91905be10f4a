//! Iteration over the fingerprints of a table.

use super::params::{SLOTS, TableParams};

/// Iterator over the fingerprints of a table in ascending order. Stops at the end of the table,
/// whatever its bits are.
pub(crate) struct Fingerprints<'a> {
    params: TableParams,
    bytes: &'a [u8],
    /// The current block of quotients, and those of them whose runs follow.
    block: usize,
    occupied: u64,
    quotient: usize,
    slot: usize,
    within_run: bool,
}

impl<'a> Fingerprints<'a> {
    pub(crate) fn new(params: TableParams, bytes: &'a [u8]) -> Self {
        let occupied = params.occupied(bytes, 0);
        Self { params, bytes, block: 0, occupied, quotient: 0, slot: 0, within_run: false }
    }
}

impl Iterator for Fingerprints<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if !self.within_run {
            while self.occupied == 0 {
                self.block += 1;
                if self.block >= self.params.blocks {
                    self.block = self.params.blocks;
                    return None;
                }
                self.occupied = self.params.occupied(self.bytes, self.block);
            }
            self.quotient = self.block * SLOTS + self.occupied.trailing_zeros() as usize;
            self.occupied &= self.occupied - 1;
            self.slot = self.slot.max(self.quotient);
        }
        if self.slot >= self.params.slots() {
            return None;
        }
        let remainder = self.params.slot(self.bytes, self.slot);
        self.within_run = !self.params.is_end(self.bytes, self.slot);
        self.slot += 1;
        Some((self.quotient as u64) << self.params.width | remainder)
    }
}
