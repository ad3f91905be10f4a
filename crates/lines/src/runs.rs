//! Positions of lines, in ascending order, from many partitions at once.
//!
//! Each partition gives its positions in ascending order, because its records came in input
//! order: a *run*. Merged, the runs say in one sequential pass which lines to print.
//!
//! Cost: 8 bytes a position, written and read once; a buffer for each run while merging, and one
//! more pass over the positions for each time there are too many runs to merge at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::error::Result;
use crate::spill::{Reader, Scratchpad, Spill, Stream, write_out};

/// Memory of a run while it is collected; half of it is the size of its blocks.
const ALLOWANCE: u64 = 48 << 10;

/// Collects one run.
pub(crate) struct Run<'a> {
    pad: &'a Scratchpad,
    spill: Spill<'a>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(pad: &'a Scratchpad) -> Self {
        Self { pad, spill: Spill::new(pad, 1, ALLOWANCE) }
    }

    #[inline]
    pub(crate) fn push(&mut self, position: u64) -> Result<()> {
        self.spill.push(0, &position.to_le_bytes())
    }

    /// The run; on disk if `away`, so that any number of runs may be waiting.
    pub(crate) fn finish(self, away: bool) -> Result<Stream> {
        let mut run = self.spill.finish()?;
        if away {
            write_out(&mut run, self.pad)?;
        }
        Ok(run.swap_remove(0))
    }
}

/// Merges runs until so few are left that all can be read at once in `memory` bytes.
pub(crate) fn narrow(mut runs: Vec<Stream>, memory: u64, pad: &Scratchpad) -> Result<Vec<Stream>> {
    // A block as read, and its positions.
    let most = (memory / ALLOWANCE).max(2) as usize;
    while runs.len() > most {
        let rest = runs.split_off(most);
        let mut merged = Run::new(pad);
        let mut merge = Merge::new(&runs, pad)?;
        while let Some(position) = merge.next_position()? {
            merged.push(position)?;
        }
        runs = rest;
        runs.push(merged.finish(true)?);
    }
    Ok(runs)
}

/// The positions of all runs in ascending order.
pub(crate) struct Merge<'a> {
    pad: &'a Scratchpad,
    cursors: Vec<Cursor<'a>>,
    heap: BinaryHeap<Reverse<(u64, usize)>>,
}

struct Cursor<'a> {
    reader: Reader<'a>,
    block: Vec<u64>,
    next: usize,
}

impl Cursor<'_> {
    fn next(&mut self, pad: &Scratchpad) -> Result<Option<u64>> {
        if self.next == self.block.len() {
            self.block.clear();
            self.next = 0;
            if let Some(bytes) = self.reader.next_block(pad)? {
                let (positions, _) = bytes.as_chunks();
                self.block.extend(positions.iter().map(|p| u64::from_le_bytes(*p)));
            }
        }
        let position = self.block.get(self.next).copied();
        self.next += 1;
        Ok(position)
    }
}

impl<'a> Merge<'a> {
    pub(crate) fn new(runs: &'a [Stream], pad: &'a Scratchpad) -> Result<Self> {
        let cursor = |run| Cursor { reader: Reader::new(run), block: Vec::new(), next: 0 };
        let mut merge =
            Self { pad, cursors: runs.iter().map(cursor).collect(), heap: BinaryHeap::new() };
        for (run, cursor) in merge.cursors.iter_mut().enumerate() {
            if let Some(first) = cursor.next(pad)? {
                merge.heap.push(Reverse((first, run)));
            }
        }
        Ok(merge)
    }

    /// The next position, in ascending order over all runs.
    pub(crate) fn next_position(&mut self) -> Result<Option<u64>> {
        let Some(mut least) = self.heap.peek_mut() else { return Ok(None) };
        let Reverse((position, run)) = *least;
        match self.cursors[run].next(self.pad)? {
            Some(next) => *least = Reverse((next, run)),
            None => drop(PeekMut::pop(least)),
        }
        Ok(Some(position))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Temp;

    #[test]
    fn merging_sorts() {
        let dir = tempfile::tempdir().unwrap();
        let pad = Scratchpad::new(&Temp::new(dir.path())).unwrap();
        for (count, most) in [(0, 4), (1, 4), (4, 4), (5, 4), (23, 2), (100, 7)] {
            let mut expect = Vec::new();
            let mut runs = Vec::new();
            for run in 0..count as u64 {
                let mut positions: Vec<_> =
                    (0..run * 37).map(|i| (i * 7919 + run).wrapping_mul(run) % 100_000).collect();
                positions.sort_unstable();
                let mut out = Run::new(&pad);
                positions.iter().for_each(|&p| out.push(p).unwrap());
                runs.push(out.finish(run % 2 == 0).unwrap());
                expect.extend(positions);
            }
            expect.sort_unstable();
            let runs = narrow(runs, most * ALLOWANCE, &pad).unwrap();
            assert!(runs.len() as u64 <= most);
            let mut merge = Merge::new(&runs, &pad).unwrap();
            let merged: Vec<_> = std::iter::from_fn(|| merge.next_position().unwrap()).collect();
            assert_eq!(merged, expect);
        }
    }
}
