//! The stream of a table's frames.

use std::io::{self, Read};

use super::arrow::ArrowKeys;
use super::column::KeyBatch;
use super::parquet_keys::ParquetKeys;
use super::source::TableSource;
use crate::error::{Error, Result};
use crate::keys::rows::{HEAD, RowId};
use crate::poll_read::PollRead;

/// Bytes of frames that are made at a time, if no frame is longer.
const BLOCK: usize = 64 << 10;

/// The frames of a table, each with a delimiter after it.
pub(crate) struct KeyStream {
    source: TableSource,
    keys: FormatKeys,
    /// The keys of some rows, and the first that has no frame yet.
    batch: Option<(KeyBatch, usize)>,
    /// Number of the next row.
    row: u64,
    /// Frames, and how much of them was read.
    frames: Vec<u8>,
    read: usize,
}

/// The keys of a table in its format.
pub(super) enum FormatKeys {
    Parquet(ParquetKeys),
    Arrow(ArrowKeys),
}

impl KeyStream {
    pub(super) fn new(source: TableSource, keys: FormatKeys) -> Self {
        Self { source, keys, batch: None, row: 0, frames: Vec::new(), read: 0 }
    }

    /// Returns the number of rows that have frames.
    pub(crate) fn row(&self) -> u64 {
        self.row
    }

    /// Makes the next frames. False at the end.
    fn fill(&mut self) -> Result<bool> {
        self.frames.clear();
        self.frames.shrink_to(2 * BLOCK);
        self.read = 0;
        let source = &self.source;
        while self.frames.len() < BLOCK {
            let (batch, next) = match &mut self.batch {
                Some((batch, next)) if *next < batch.rows => (batch, next),
                _ => {
                    self.batch = None;
                    let batch = match &mut self.keys {
                        FormatKeys::Parquet(keys) => keys.next()?,
                        FormatKeys::Arrow(keys) => keys.next()?,
                    };
                    let Some(batch) = batch else { break };
                    self.batch = Some((batch, 0));
                    continue;
                }
            };
            let start = self.frames.len();
            let id = RowId { table: source.number, row: self.row };
            let made = batch.append_frame(*next, id, &mut self.frames);
            made.map_err(|problem| {
                source.unreadable(format!("the key of row {} {problem}", self.row + 1))
            })?;
            let length = (self.frames.len() - start - HEAD) as u64;
            if length > source.longest {
                return Err(source.too_large("a key", length, source.longest));
            }
            self.frames.push(source.delimiter);
            (self.row, *next) = (self.row + 1, *next + 1);
        }
        Ok(!self.frames.is_empty())
    }
}

impl Read for KeyStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.frames.len() {
            let source = self.source.clone();
            let filled = source.guarded(|| self.fill());
            if !filled.map_err(|error: Error| io::Error::other(error))? {
                return Ok(0);
            }
        }
        let rest = &self.frames[self.read..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.read += length;
        Ok(length)
    }
}

impl PollRead for KeyStream {
    fn ready(&mut self) -> bool {
        true
    }
}
