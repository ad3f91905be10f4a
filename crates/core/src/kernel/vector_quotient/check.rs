//! The check of blocks whose bytes come from outside.

use super::table::PairTable;
use crate::store::CacheLine;

/// A block that no sequence of inserts and removals makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockFault {
    /// Number of the block.
    pub(crate) block: usize,
}

impl PairTable {
    /// Checks blocks and returns the number of fingerprints in them. Cost: one pass.
    pub(crate) fn check(&self, blocks: &[CacheLine]) -> Result<u64, BlockFault> {
        let mut total = 0;
        for (block, line) in blocks.iter().enumerate() {
            let len = self.checked_len(line).ok_or(BlockFault { block })?;
            total += u64::from(len);
        }
        Ok(total)
    }
}
