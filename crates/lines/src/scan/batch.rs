//! Batches of lines.

use std::ops::Range;

use petal::{BatchResults, HashSpec};

use crate::fingerprint::{Fingerprint, LineHasher};
use crate::keys::{Keys, Parts};

/// Consecutive lines of one input.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'a> {
    /// Index of the input.
    pub(crate) input: usize,
    pub(super) bytes: &'a [u8],
    /// The end of each line in `bytes`: the position of its delimiter, or the end of the input.
    pub(super) ends: &'a [usize],
    /// Position of `bytes` in the input.
    pub(super) offset: u64,
    /// The keys of the lines; `None`: the lines themselves.
    pub(super) keys: Option<&'a Keys>,
    /// Whether the chunk has more batches.
    pub(crate) more: bool,
}

impl<'a> Batch<'a> {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    fn start(&self, line: usize) -> usize {
        if line == 0 { 0 } else { self.ends[line - 1] + 1 }
    }

    /// Returns a line without its delimiter.
    #[inline]
    pub(crate) fn line(&self, line: usize) -> &'a [u8] {
        &self.bytes[self.start(line)..self.ends[line]]
    }

    /// Returns the position of a line in its input.
    #[inline]
    pub(crate) fn offset(&self, line: usize) -> u64 {
        self.offset + self.start(line) as u64
    }

    /// Returns the key of a line.
    #[inline]
    pub(crate) fn key(&self, line: usize) -> &'a [u8] {
        match self.keys {
            None => self.line(line),
            Some(keys) => keys.get(line),
        }
    }

    /// Returns the keys of all lines.
    #[inline]
    pub(crate) fn keys(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + '_ {
        let mut start = 0;
        self.ends.iter().enumerate().map(move |(line, &end)| {
            let begin = std::mem::replace(&mut start, end + 1);
            self.keys.map_or(&self.bytes[begin..end], |keys| keys.get(line))
        })
    }

    /// Returns where consecutive lines with their delimiters are in [`tail`](Self::tail)`(0)`; the last
    /// line may lack its delimiter.
    pub(crate) fn span(&self, lines: Range<usize>) -> Range<usize> {
        let length = self.bytes.len();
        self.start(lines.start).min(length)..self.start(lines.end).min(length)
    }

    /// Returns the bytes of consecutive lines with their delimiters; the last line may lack its own.
    pub(crate) fn range(&self, lines: Range<usize>) -> &'a [u8] {
        &self.bytes[self.span(lines)]
    }

    /// Returns all bytes from a line on, with delimiters.
    pub(crate) fn tail(&self, line: usize) -> &'a [u8] {
        self.bytes.get(self.start(line)..).unwrap_or_default()
    }
}

/// A line that is not a valid key of the filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Index of the line in the batch.
    pub line: usize,
    /// What is wrong with the line, and what is expected.
    pub why: String,
}

/// Buffers that a worker reuses for each batch.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Hashes of the lines, one or more words each.
    pub(crate) hashes: Vec<u64>,
    pub(crate) fingerprints: Vec<Fingerprint>,
    pub(crate) results: BatchResults,
    /// The first line that is not a valid key.
    pub(crate) bad_line: Option<BadLine>,
    /// Indices of the selected lines.
    pub(crate) selected: Vec<usize>,
    /// Hashes that may belong to a sample, each with whether a filter contains it.
    pub(crate) sampled: Vec<(u64, bool)>,
    /// The parts of the texts.
    pub(crate) parts: Parts,
}

impl Scratch {
    /// Hashes the key of every line of a batch.
    #[inline]
    pub(crate) fn hash_lines(&mut self, batch: &Batch<'_>, hash: &HashSpec) {
        self.hashes.clear();
        hash.hash_all(batch.keys(), &mut self.hashes);
    }

    /// Fingerprints the key of every line of a batch.
    pub(crate) fn fingerprint(&mut self, batch: &Batch<'_>, hasher: &LineHasher) {
        self.fingerprints.clear();
        hasher.fingerprints(batch.keys(), &mut self.fingerprints);
    }
}
