//! Checks whether a table is sound: exactly the bits that inserts of its fingerprints would set.

use core::ops::Range;

use super::fill::short_offset;
use super::params::{HEADER_BYTES, SLOTS, TableParams};

/// An error in a table, and its offset in bytes.
pub(crate) struct TableFault {
    pub(crate) what: &'static str,
    pub(crate) at: usize,
}

/// The numbers of fingerprints in a sound table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableCounts {
    pub(crate) total: u64,
    pub(crate) distinct: u64,
}

/// The progress of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CheckProgress {
    /// Number of blocks whose runs are checked.
    pub(crate) blocks: usize,
    /// The slot after the checked runs.
    pub(crate) slot: usize,
    pub(crate) counts: TableCounts,
}

impl TableParams {
    /// Checks the rest of a complete table with `quotients` quotients.
    pub(crate) fn check(
        self,
        bytes: &[u8],
        quotients: u64,
        mut progress: CheckProgress,
    ) -> Result<TableCounts, TableFault> {
        self.check_blocks(bytes, quotients, self.blocks, &mut progress)?;
        let CheckProgress { blocks, slot, counts } = progress;
        if blocks < self.blocks {
            return Err(TableFault { what: "run without an end", at: self.block_at(blocks) });
        }
        self.check_free(bytes, slot, self.slots())?;
        let used = self.block_at(self.blocks);
        match bytes.get(used..).and_then(|rest| rest.iter().position(|byte| *byte != 0)) {
            None => Ok(counts),
            Some(off) => Err(TableFault { what: "bytes after the last slot", at: used + off }),
        }
    }

    /// Continues the check of a table of which only `blocks` blocks are available. Stops before the
    /// first block with a run that does not end in them.
    pub(crate) fn check_blocks(
        self,
        bytes: &[u8],
        quotients: u64,
        blocks: usize,
        progress: &mut CheckProgress,
    ) -> Result<(), TableFault> {
        while progress.blocks < blocks {
            match self.check_block(bytes, quotients, blocks * SLOTS, *progress)? {
                Some(further) => *progress = further,
                None => break,
            }
        }
        Ok(())
    }

    /// Checks the runs of a block. `None` if one of them does not end before slot `end`.
    fn check_block(
        self,
        bytes: &[u8],
        quotients: u64,
        end: usize,
        progress: CheckProgress,
    ) -> Result<Option<CheckProgress>, TableFault> {
        let CheckProgress { blocks: block, mut slot, mut counts } = progress;
        let fault = |what| Err(TableFault { what, at: self.block_at(block) });
        if self.short_offset(bytes, block) != short_offset(slot, block) {
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
            match self.check_run(bytes, slot..end, &mut counts)? {
                Some(behind) => slot = behind,
                None => return Ok(None),
            }
        }
        Ok(Some(CheckProgress { blocks: block + 1, slot, counts }))
    }

    /// Checks a run. Returns the slot after it, or `None` if it does not end in these slots.
    fn check_run(
        self,
        bytes: &[u8],
        slots: Range<usize>,
        counts: &mut TableCounts,
    ) -> Result<Option<usize>, TableFault> {
        let mut before = None;
        for slot in slots {
            let here = self.slot(bytes, slot);
            if before > Some(here) {
                return Err(TableFault { what: "order of remainders", at: self.locate(slot).0 });
            }
            counts.total += 1;
            counts.distinct += u64::from(before != Some(here));
            before = Some(here);
            if self.is_end(bytes, slot) {
                return Ok(Some(slot + 1));
            }
        }
        Ok(None)
    }

    /// Checks that the slots from `from` to before `to` are free.
    fn check_free(self, bytes: &[u8], from: usize, to: usize) -> Result<(), TableFault> {
        for slot in from..to {
            if self.is_end(bytes, slot) {
                let at = self.block_at(slot / SLOTS) + HEADER_BYTES - 8;
                return Err(TableFault { what: "end without a run", at });
            }
            if self.slot(bytes, slot) != 0 {
                return Err(TableFault {
                    what: "remainder in a free slot",
                    at: self.locate(slot).0,
                });
            }
        }
        Ok(())
    }
}
