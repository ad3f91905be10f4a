//! What the first reading of an input keeps in memory, so that it is not read again.
//!
//! Each is kept within a limit that the plan has reserved. If the plan was wrong and the limit is
//! reached, nothing is kept and the memory is freed: the input is then read again.

use std::ops::Range;

use super::records::{Side, encode_first_record};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::output::Printer;
use crate::progress::Progress;
use crate::setops::planning::{KEPT_BLOCK, KEPT_HEAD};
use crate::setops::positions::PositionSet;

/// Blocks of whole entries, within a limit.
struct Blocks {
    blocks: Vec<Vec<u8>>,
    max: u64,
    is_over: bool,
}

impl Blocks {
    fn new(max: u64) -> Self {
        Self { blocks: Vec::new(), max, is_over: false }
    }

    /// Returns a block with space for an entry of `bytes` bytes; `None` if the limit is reached.
    #[inline]
    fn space(&mut self, bytes: usize) -> Result<Option<&mut Vec<u8>>> {
        let has_space = self.blocks.last().is_some_and(|last| last.capacity() - last.len() >= bytes);
        if !has_space && !self.add_block(bytes)? {
            return Ok(None);
        }
        Ok(self.blocks.last_mut())
    }

    #[cold]
    fn add_block(&mut self, bytes: usize) -> Result<bool> {
        self.is_over |= bytes > KEPT_BLOCK || (self.blocks.len() as u64 + 1) * KEPT_BLOCK as u64 > self.max;
        if self.is_over {
            self.blocks = Vec::new();
            return Ok(false);
        }
        let mut block = Vec::new();
        block.try_reserve_exact(KEPT_BLOCK).map_err(|_| Error::alloc(KEPT_BLOCK as u64))?;
        self.blocks.push(block);
        Ok(true)
    }
}

/// Records of all lines of an input, in order.
pub(crate) struct KeptRecords {
    blocks: Blocks,
    side: Side,
}

impl KeptRecords {
    /// Keeps at most `max` bytes.
    pub(super) fn new(side: Side, max: u64) -> Self {
        Self { blocks: Blocks::new(max), side }
    }

    /// Adds a record. `position`: of the line, if it is of the first input.
    #[inline]
    pub(super) fn add(&mut self, fingerprint: Fingerprint, position: u64) -> Result<()> {
        let side = self.side;
        let Some(block) = self.blocks.space(side.record_bytes())? else { return Ok(()) };
        match side {
            Side::First => block.extend_from_slice(&encode_first_record(fingerprint, position)),
            Side::Other => block.extend_from_slice(&fingerprint.to_bytes()),
        }
        Ok(())
    }

    /// Returns the blocks of records; `None` if they exceed the limit.
    pub(super) fn finish(self) -> Option<Vec<Vec<u8>>> {
        (!self.blocks.is_over).then_some(self.blocks.blocks)
    }
}

/// The text of lines, in order.
pub(crate) struct KeptLines {
    blocks: Blocks,
    delimiter: u8,
}

impl KeptLines {
    /// Keeps at most `max` bytes.
    pub(super) fn new(delimiter: u8, max: u64) -> Self {
        Self { blocks: Blocks::new(max), delimiter }
    }

    /// Adds a line at a position after the last one.
    #[inline]
    pub(super) fn add(&mut self, position: u64, line: &[u8]) -> Result<()> {
        let delimiter = self.delimiter;
        let Some(block) = self.blocks.space(KEPT_HEAD + line.len() + 1)? else { return Ok(()) };
        block.extend_from_slice(&position.to_le_bytes());
        // A block has less than 4 GiB.
        block.extend_from_slice(&(line.len() as u32 + 1).to_le_bytes());
        block.extend_from_slice(line);
        block.push(delimiter);
        Ok(())
    }

    /// Returns whether all lines are here: they do not exceed the limit.
    pub(super) fn is_complete(&self) -> bool {
        !self.blocks.is_over
    }

    /// Prints the lines at the positions, of which each is a kept line. The caller adds their number.
    pub(super) fn print(
        &self,
        positions: &PositionSet<'_>,
        printer: &mut Printer<'_>,
        progress: &dyn Progress,
    ) -> Result<()> {
        let blocks = &self.blocks.blocks;
        progress.phase("printing", Some(blocks.iter().map(|block| block.len() as u64).sum()));
        let mut pieces = Vec::new();
        for block in blocks {
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
            pieces.clear();
            let mut ends = lines(block).map(|(position, _)| position);
            if let Some(first) = ends.next() {
                positions.forget(first);
                let mut marked = positions.within(first, ends.last().unwrap_or(first) + 1)?;
                let mut next = marked.next();
                for (position, line) in lines(block) {
                    if next == Some(position) {
                        pieces.push(line);
                        next = marked.next();
                    }
                }
            }
            printer.pieces(block, &pieces, &[])?;
            progress.advance(block.len() as u64);
        }
        Ok(())
    }
}

/// Returns the position of each line of a block, and its bytes in the block with the delimiter.
fn lines(block: &[u8]) -> impl Iterator<Item = (u64, Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (position, rest) = block.get(at..)?.split_first_chunk()?;
        let length = u32::from_le_bytes(*rest.first_chunk()?) as usize;
        let start = at + KEPT_HEAD;
        at = start + length;
        Some((u64::from_le_bytes(*position), start..at))
    })
}
