//! Documents without their repeated parts, on their way to the outputs.

use std::ops::Range;

use petal::BloomFilter;

use super::job::DocumentOutputs;
use crate::error::{Error, Result};
use crate::fingerprint::Table;
use crate::scan::{Batch, Scratch};
use crate::setops::{PartCounts, PositionSet};

/// Bytes written at a time.
const BLOCK: usize = 256 << 10;

/// What knows which parts occur earlier.
pub(super) enum Earlier<'a> {
    /// The parts so far.
    Table(Table),
    /// A filter of the parts so far.
    Filter(BloomFilter),
    /// The positions of all repeated parts.
    Positions(&'a PositionSet<'a>),
}

/// Which documents stay.
#[derive(Clone, Copy, Debug)]
pub(super) struct DocumentRules {
    /// Drop documents that keep fewer parts.
    pub(super) min_parts: u64,
    /// Drop documents of whose parts at least this share is repeated.
    pub(super) drop_if: Option<f64>,
    /// Whether the documents are lines, which are dropped with their part.
    pub(super) lines: bool,
}

impl DocumentRules {
    fn drops(&self, parts: u64, repeated: u64) -> bool {
        let is_share = |share| parts > 0 && repeated as f64 / parts as f64 >= share;
        parts - repeated < self.min_parts
            || self.drop_if.is_some_and(is_share)
            || self.lines && repeated > 0
    }
}

/// Writes documents to the outputs of their inputs.
pub(super) struct Rewriter<'o> {
    rules: DocumentRules,
    outputs: &'o mut dyn DocumentOutputs,
    delimiter: u8,
    buffer: Vec<u8>,
    /// Number of inputs whose output has begun.
    begun: usize,
    pub(super) documents: u64,
    pub(super) kept: u64,
    pub(super) parts: PartCounts,
    /// Of the parts of a document, whether each is repeated.
    repeated: Vec<bool>,
    pieces: Vec<Range<usize>>,
}

impl<'o> Rewriter<'o> {
    pub(super) fn new(
        rules: DocumentRules,
        outputs: &'o mut dyn DocumentOutputs,
        delimiter: u8,
    ) -> Self {
        Self {
            rules,
            outputs,
            delimiter,
            buffer: Vec::new(),
            begun: 0,
            documents: 0,
            kept: 0,
            parts: PartCounts::default(),
            repeated: Vec::new(),
            pieces: Vec::new(),
        }
    }

    /// Begins the outputs of the inputs up to this one.
    pub(super) fn begin(&mut self, input: usize) -> Result<()> {
        while self.begun <= input {
            self.flush()?;
            self.outputs.begin(self.begun).map_err(Error::write)?;
            self.begun += 1;
        }
        Ok(())
    }

    /// Writes what is left.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let written = self.outputs.write(&self.buffer).map_err(Error::write);
        self.buffer.clear();
        written
    }

    /// Writes the documents of a batch, which begins at `start` of all inputs. Returns the number of
    /// documents that were written before the table was full.
    pub(super) fn write(
        &mut self,
        batch: &Batch<'_>,
        scratch: &mut Scratch,
        start: u64,
        earlier: &mut Earlier<'_>,
    ) -> Result<usize> {
        if let Earlier::Filter(filter) = earlier {
            filter.insert_mixed_hashes(&scratch.hashes, &mut scratch.results);
        }
        let mut positions = match earlier {
            Earlier::Positions(positions) => {
                positions.forget(start + batch.offset(0));
                let end = batch.offset(0) + batch.tail(0).len() as u64;
                Some(positions.within(start + batch.offset(0), start + end)?.peekable())
            }
            _ => None,
        };
        // Documents from here on are written as they are.
        let mut unchanged = 0;
        for document in 0..batch.len() {
            let parts = scratch.parts.range(document);
            let fingerprints = scratch.fingerprints.get(parts.clone()).unwrap_or_default();
            self.repeated.clear();
            match earlier {
                Earlier::Table(table) => {
                    // A document is decided as a whole.
                    if table.len() + parts.len() as u64 > table.final_capacity() {
                        self.copy(batch, unchanged..document)?;
                        return Ok(document);
                    }
                    for (at, &fingerprint) in fingerprints.iter().enumerate() {
                        table.prefetch_ahead(fingerprints, at);
                        let new = table.entry(fingerprint, 0)?.map(|(new, _)| new);
                        let new = new.map_err(|_| Error::alloc(table.memory_usage()))?;
                        self.repeated.push(!new);
                    }
                }
                Earlier::Filter(_) => {
                    self.repeated.extend(parts.clone().map(|part| !scratch.results.get(part)));
                }
                Earlier::Positions(_) => {
                    let first = start + batch.offset(document);
                    self.repeated.resize(parts.len(), false);
                    let end = first + parts.len() as u64;
                    while let Some(at) =
                        positions.as_mut().and_then(|all| all.next_if(|at| *at < end))
                    {
                        if let Some(part) = at.checked_sub(first) {
                            self.repeated[part as usize] = true;
                        }
                    }
                }
            }
            let count = self.repeated.len() as u64;
            let repeated = self.repeated.iter().filter(|repeated| **repeated).count() as u64;
            let is_dropped = self.rules.drops(count, repeated);
            self.documents += 1;
            self.parts.read += count;
            self.parts.repeated += repeated;
            if !is_dropped {
                self.kept += 1;
                self.parts.kept += count - repeated;
            }
            if !is_dropped && repeated == 0 {
                continue;
            }
            self.copy(batch, unchanged..document)?;
            unchanged = document + 1;
            if !is_dropped {
                let line = batch.line(document);
                let text = text_range(batch.key(document)).unwrap_or(0..line.len());
                self.pieces.clear();
                let length = line.len();
                scratch.parts.remaining(parts, &self.repeated, text, length, &mut self.pieces);
                self.pieces.iter().for_each(|piece| {
                    self.buffer.extend_from_slice(&line[piece.clone()]);
                });
                self.end_line()?;
            }
        }
        self.copy(batch, unchanged..batch.len())?;
        Ok(batch.len())
    }

    /// Writes documents as they are.
    fn copy(&mut self, batch: &Batch<'_>, documents: Range<usize>) -> Result<()> {
        if documents.is_empty() {
            return Ok(());
        }
        let bytes = batch.range(documents);
        let is_ended = bytes.last() == Some(&self.delimiter);
        if bytes.len() >= BLOCK {
            self.flush()?;
            self.outputs.write(bytes).map_err(Error::write)?;
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        if is_ended { self.flush_full() } else { self.end_line() }
    }

    fn end_line(&mut self) -> Result<()> {
        self.buffer.push(self.delimiter);
        self.flush_full()
    }

    fn flush_full(&mut self) -> Result<()> {
        if self.buffer.len() >= BLOCK { self.flush() } else { Ok(()) }
    }
}

/// Returns where the text of a document is, by its key; `None` if it has none.
pub(super) fn text_range(key: &[u8]) -> Option<Range<usize>> {
    let (words, []) = key.as_chunks::<8>() else { return None };
    let [start, end] = words else { return None };
    Some(u64::from_le_bytes(*start) as usize..u64::from_le_bytes(*end) as usize)
}
