//! Records of all lines of an input, kept in memory so that the input is not read again.
//!
//! They are kept within a limit that the plan has reserved. If the plan was wrong and the limit is
//! reached, nothing is kept and the memory is freed: the input is then read again.

use memmap2::MmapMut;

use super::records::{Side, encode_first_record};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::setops::planning::block_bytes;

/// Records in order.
pub(crate) struct KeptRecords {
    blocks: Vec<Block>,
    side: Side,
    block_bytes: usize,
    max: u64,
    is_over: bool,
}

/// Memory of its own, in huge pages if the system has them: new memory in small pages would cost as much
/// as reading a third of the input again.
pub(super) struct Block {
    memory: MmapMut,
    used: usize,
}

impl Block {
    fn new(bytes: usize) -> Result<Self> {
        let memory = MmapMut::map_anon(bytes).map_err(|_| Error::alloc(bytes as u64))?;
        #[cfg(target_os = "linux")]
        // Small pages work too.
        let _ = memory.advise(memmap2::Advice::HugePage);
        Ok(Self { memory, used: 0 })
    }

    /// Returns the records.
    pub(super) fn records(&self) -> &[u8] {
        &self.memory[..self.used]
    }

    /// Adds a record if it fits.
    #[inline]
    fn add<const SIZE: usize>(&mut self, record: [u8; SIZE]) -> bool {
        let space = self.memory[self.used..].first_chunk_mut();
        let Some(space) = space else { return false };
        *space = record;
        self.used += SIZE;
        true
    }
}

impl KeptRecords {
    /// Keeps at most `max` bytes.
    pub(super) fn new(side: Side, max: u64) -> Self {
        let block_bytes = block_bytes(max) as usize;
        Self { blocks: Vec::new(), side, block_bytes, max, is_over: false }
    }

    /// Adds a record. `position`: of the line, if it is of the first input.
    #[inline]
    pub(super) fn add(&mut self, fingerprint: Fingerprint, position: u64) -> Result<()> {
        match self.side {
            Side::First => self.add_record(encode_first_record(fingerprint, position)),
            Side::Other => self.add_record(fingerprint.to_bytes()),
        }
    }

    #[inline]
    fn add_record<const SIZE: usize>(&mut self, record: [u8; SIZE]) -> Result<()> {
        if self.is_over || self.blocks.last_mut().is_some_and(|block| block.add(record)) {
            return Ok(());
        }
        let next = (self.blocks.len() as u64 + 1) * self.block_bytes as u64;
        if next > self.max || self.block_bytes < SIZE {
            (self.blocks, self.is_over) = (Vec::new(), true);
            return Ok(());
        }
        let mut block = Block::new(self.block_bytes)?;
        block.add(record);
        self.blocks.push(block);
        Ok(())
    }

    /// Returns the blocks; `None` if they exceed the limit.
    pub(super) fn finish(self) -> Option<Vec<Block>> {
        (!self.is_over).then_some(self.blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_beyond_the_limit_are_not_kept() {
        for (count, is_kept) in [(0, true), (3, true), (160, true), (161, false), (5000, false)] {
            for (side, size) in [(Side::Other, 16), (Side::First, 24)] {
                let mut kept = KeptRecords::new(side, 160 * size);
                for at in 0..count {
                    let fingerprint = Fingerprint { high: at, low: at + 1 };
                    kept.add(fingerprint, at * 7).unwrap();
                }
                let blocks = kept.finish();
                assert_eq!(blocks.is_some(), is_kept, "{count}");
                let records = blocks.iter().flatten().map(|block| block.records().len() as u64);
                assert_eq!(records.sum::<u64>(), if is_kept { count * size } else { 0 });
            }
        }
    }
}
