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
use crate::setops::planning::{KEPT_HEAD, block_bytes};
use crate::setops::positions::PositionSet;

/// Blocks of whole entries, within a limit.
struct Blocks {
    blocks: Vec<Vec<u8>>,
    block: usize,
    max: u64,
    is_over: bool,
}

impl Blocks {
    fn new(max: u64) -> Self {
        Self { blocks: Vec::new(), block: block_bytes(max) as usize, max, is_over: false }
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
        let next = (self.blocks.len() as u64 + 1) * self.block as u64;
        self.is_over |= bytes > self.block || next > self.max;
        if self.is_over {
            self.blocks = Vec::new();
            return Ok(false);
        }
        let mut block = Vec::new();
        block.try_reserve_exact(self.block).map_err(|_| Error::alloc(self.block as u64))?;
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
                let bytes = blocks.iter().flatten().map(|block| block.len() as u64).sum::<u64>();
                assert_eq!(bytes, if is_kept { count * size } else { 0 });
            }
        }
    }

    #[test]
    fn kept_lines_have_their_positions() {
        let mut kept = KeptLines::new(b'\n', 1600);
        let line = |at: u64| vec![b'x'; at as usize % 9];
        (0..60).for_each(|at| kept.add(at * 10, &line(at)).unwrap());
        assert!(kept.is_complete());
        let mut number = 0;
        for block in &kept.blocks.blocks {
            for (position, range) in lines(block) {
                assert_eq!(position, number * 10);
                assert_eq!(block[range], [line(number), b"\n".to_vec()].concat());
                number += 1;
            }
        }
        assert_eq!(number, 60);
        kept.add(600, &[b'x'; 100]).unwrap();
        assert!(!kept.is_complete() && kept.blocks.blocks.is_empty(), "longer than a block");
        kept.add(601, b"x").unwrap();
        assert!(!kept.is_complete() && kept.blocks.blocks.is_empty());
    }
}
