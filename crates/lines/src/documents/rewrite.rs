//! Documents without their repeated parts, on their way to the outputs.

use std::io;
use std::iter::Peekable;
use std::ops::Range;

use petal::BloomFilter;

use crate::error::{Error, Result};
use crate::fingerprint::Table;
use crate::scan::{Batch, Scratch};
use crate::setops::{PartCounts, PositionIter, PositionSet};

/// The outputs of a [`DocumentJob`](crate::DocumentJob), one for each input.
pub trait DocumentOutputs: Send {
    /// Completes the output before, and begins that of the input with this number. Called for each input
    /// in order, from 0.
    ///
    /// # Errors
    /// If an output cannot be written.
    fn begin(&mut self, input: usize) -> io::Result<()>;

    /// Writes to the output that was begun last.
    ///
    /// # Errors
    /// If it cannot be written.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;
}

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

impl Earlier<'_> {
    /// Prepares to look up the parts of a batch of an input that begins at `start` of all inputs.
    fn lookup<'b>(
        &'b mut self,
        batch: &Batch<'_>,
        scratch: &mut Scratch,
        start: u64,
    ) -> Result<Lookup<'b>> {
        Ok(match self {
            Self::Table(table) => Lookup::Table { capacity: table.final_capacity(), table },
            Self::Filter(filter) => {
                filter.insert_mixed_hashes(&scratch.hashes, &mut scratch.results);
                Lookup::Filter
            }
            Self::Positions(positions) => {
                let begin = start + batch.offset(0);
                positions.forget(begin);
                let within = positions.within(begin, begin + batch.tail(0).len() as u64)?;
                Lookup::Positions(within.peekable())
            }
        })
    }
}

/// Looks up the parts of a batch.
enum Lookup<'b> {
    /// The table, and how many parts it can have.
    Table { table: &'b mut Table, capacity: u64 },
    /// The results of the batch say which parts the filter had.
    Filter,
    /// The positions of repeated parts in the batch.
    Positions(Peekable<PositionIter>),
}

impl Lookup<'_> {
    /// Appends whether each part of a document, which is at this position, is repeated. Returns false if
    /// the parts do not fit in the table: a document is decided as a whole.
    fn parts_of(
        &mut self,
        scratch: &Scratch,
        document: usize,
        position: u64,
        repeated: &mut Vec<bool>,
    ) -> Result<bool> {
        let parts = scratch.parts.range(document);
        match self {
            Self::Table { table, capacity } => {
                if table.len() + parts.len() as u64 > *capacity {
                    return Ok(false);
                }
                for part in parts {
                    table.prefetch_ahead(&scratch.fingerprints, part);
                    let new = table.entry(scratch.fingerprints[part], 0)?.map(|(new, _)| new);
                    repeated.push(!new.map_err(|_| Error::alloc(table.memory_usage()))?);
                }
            }
            Self::Filter => repeated.extend(parts.map(|part| !scratch.results.get(part))),
            Self::Positions(positions) => {
                repeated.resize(parts.len(), false);
                let end = position + parts.len() as u64;
                while let Some(at) = positions.next_if(|at| *at < end) {
                    // None is between documents.
                    if let Some(part) = at.checked_sub(position) {
                        repeated[part as usize] = true;
                    }
                }
            }
        }
        Ok(true)
    }
}

/// What happens to a document.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Unchanged,
    Changed,
    Dropped,
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

    /// Writes the documents of a batch of an input that begins at `start` of all inputs. Returns the
    /// number of documents that were written before the table was full.
    pub(super) fn write(
        &mut self,
        batch: &Batch<'_>,
        scratch: &mut Scratch,
        start: u64,
        earlier: &mut Earlier<'_>,
    ) -> Result<usize> {
        let mut lookup = earlier.lookup(batch, scratch, start)?;
        // Documents from here on are written as they are.
        let mut unchanged = 0;
        for document in 0..batch.len() {
            let position = start + batch.offset(document);
            self.repeated.clear();
            if !lookup.parts_of(scratch, document, position, &mut self.repeated)? {
                self.copy(batch, unchanged..document)?;
                return Ok(document);
            }
            // An empty text has an empty key, a missing one that of `null`: one byte.
            let has_text = self.rules.lines || batch.key(document).len() != 1;
            let fate = self.decide(has_text);
            if fate == Fate::Unchanged {
                continue;
            }
            self.copy(batch, unchanged..document)?;
            unchanged = document + 1;
            if fate == Fate::Changed {
                self.write_changed(batch, scratch, document)?;
            }
        }
        self.copy(batch, unchanged..batch.len())?;
        Ok(batch.len())
    }

    /// Decides about a document, and counts it. One without a text stays.
    fn decide(&mut self, has_text: bool) -> Fate {
        let parts = self.repeated.len() as u64;
        let repeated = self.repeated.iter().filter(|repeated| **repeated).count() as u64;
        self.documents += 1;
        self.parts.read += parts;
        self.parts.repeated += repeated;
        if has_text && self.rules.drops(parts, repeated) {
            return Fate::Dropped;
        }
        self.kept += 1;
        self.parts.kept += parts - repeated;
        if repeated == 0 { Fate::Unchanged } else { Fate::Changed }
    }

    /// Writes a document without its repeated parts.
    fn write_changed(
        &mut self,
        batch: &Batch<'_>,
        scratch: &Scratch,
        document: usize,
    ) -> Result<()> {
        let line = batch.line(document);
        let text = text_range(batch.key(document)).unwrap_or(0..line.len());
        let parts = scratch.parts.range(document);
        self.pieces.clear();
        scratch.parts.remaining(parts, &self.repeated, text, line.len(), &mut self.pieces);
        for piece in &self.pieces {
            self.buffer.extend_from_slice(&line[piece.clone()]);
        }
        self.end_line()
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
