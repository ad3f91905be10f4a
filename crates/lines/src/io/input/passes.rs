//! Passes over an input: each checks that its bytes are unchanged.

use std::fs::File;
use std::io;
use std::sync::Arc;

use super::range_reader::RangeReader;
use super::{Input, Open};
use crate::error::{Error, Result};
use crate::io::byte_range::{ByteRange, Skipping};
use crate::io::compression;
use crate::io::content_check::Checked;
use crate::io::identity::{BlockSum, CheckTime, FileIdentity, StreamSum};
use crate::io::input_file::InputFile;
use crate::io::open::InputKind;
use crate::progress::{Note, Progress};

/// A file, the range of the input in it, and its identity.
pub(super) type WholeFile<'a> = (InputFile, ByteRange, Option<&'a Arc<FileIdentity>>);

impl Input {
    /// Returns the file, the range of the input in it, and its identity.
    pub(super) fn whole_file(&self) -> Result<WholeFile<'_>> {
        let reading = |e| Error::read(&self.name, e);
        match &self.kind {
            InputKind::Named { path, file, length, identity, .. } => {
                let file = match file {
                    Some(file) => InputFile::File(Arc::clone(file)),
                    None => File::open(path).map_err(reading)?.into(),
                };
                Ok((file, ByteRange { start: 0, end: *length }, Some(identity)))
            }
            InputKind::OpenFile { file, range, identity, .. } => {
                Ok((file.clone(), *range, identity.as_ref()))
            }
            InputKind::Stream(_) => Err(reading(io::Error::other("it is no file"))),
        }
    }

    /// Returns the file and the range after checking that the bytes are unchanged.
    pub(super) fn file(
        &self,
        moment: CheckTime,
        progress: &dyn Progress,
    ) -> Result<(InputFile, ByteRange)> {
        let (file, range, identity) = self.whole_file()?;
        if let Some(identity) = identity {
            if self.portion.end == u64::MAX && !self.is_table() {
                let read = self.read_range(range);
                identity.check(&self.name, &file, range.start, read, moment, progress)?;
            } else {
                identity.check_strictly(&self.name, &file)?;
            }
        }
        Ok((file, range))
    }

    /// Returns the range of the file that a pass reads.
    pub(super) fn read_range(&self, range: ByteRange) -> ByteRange {
        if !self.is_file() {
            return range;
        }
        let at = |byte: u64| range.start.saturating_add(byte).min(range.end);
        ByteRange { start: at(self.portion.start), end: at(self.portion.end) }
    }

    /// Returns a checksum to be computed by a pass; `None` if it is known or not needed.
    pub(crate) fn block_sum(&self, size: usize) -> Option<BlockSum> {
        let unknown = self.is_file() && self.portion.end == u64::MAX;
        let identity = self.identity().filter(|_| unknown)?;
        identity.checksum().is_none().then(|| BlockSum::new(size as u64))
    }

    /// Stores the checksum after a complete pass.
    pub(crate) fn keep_block_sum(&self, blocks: &BlockSum) {
        let checksum = self.length().and_then(|length| blocks.finish(length));
        if let (Some(identity), Some(_)) = (self.identity(), checksum) {
            identity.set_checksum(checksum);
        }
    }

    /// Opens the input for a pass. A stream can be opened once. A decoder may use `memory` bytes.
    pub(crate) fn open(&self, memory: u64, progress: &dyn Progress) -> Result<Open> {
        let reading = |e| Error::read(&self.name, e);
        if let InputKind::Stream(stream) = &self.kind {
            let stream = stream.lock().unwrap_or_else(|e| e.into_inner()).take();
            let gone = || reading(io::Error::other("it was read already"));
            return Ok(Open::Stream(stream.ok_or_else(gone)?));
        }
        if let Some(table) = &self.table {
            let stream = table.keys(memory)?;
            return Ok(Open::Stream(Box::new(Skipping { stream, left: self.portion.start })));
        }
        let (file, range) = self.file(CheckTime::Before, progress)?;
        if self.is_file() {
            return Ok(self.by_position(file, range));
        }
        let sum = StreamSum::of(self.identity().filter(|_| self.portion.end == u64::MAX));
        let Some(codec) = self.codec() else {
            // Without a checksum the bytes before need not be read.
            let left = if sum.is_some() { self.portion.start } else { 0 };
            let start = (range.start + self.portion.start - left).min(range.end);
            let stream = RangeReader::new(file.sequential(), ByteRange { start, ..range }, sum);
            return Ok(Open::Stream(Box::new(Skipping { stream, left })));
        };
        let packed = RangeReader::new(file.sequential(), range, sum);
        let stream = compression::decode(codec, packed, memory).map_err(reading)?;
        let stream = Checked::new(stream, &self.name, &self.checks).within(Some(codec));
        Ok(Open::Stream(Box::new(Skipping { stream, left: self.portion.start })))
    }

    /// Opens a file whose positions can be read, to look at some of its lines.
    pub(crate) fn open_sample(&self, progress: &dyn Progress) -> Result<Open> {
        let (file, range) = self.file(CheckTime::Before, progress)?;
        Ok(self.by_position(file, range))
    }

    fn by_position(&self, file: InputFile, whole: ByteRange) -> Open {
        let at = |byte: u64| whole.start.saturating_add(byte).min(whole.end);
        let range = ByteRange { start: at(self.portion.start), end: at(self.portion.end) };
        Open::File { file, range, whole: ByteRange { start: at(self.begin), ..whole } }
    }

    /// Checks that the bytes of a file are unchanged.
    pub(crate) fn check_unchanged(&self, progress: &dyn Progress) -> Result<()> {
        if self.is_repeatable() {
            let (file, range) = self.file(CheckTime::After, progress)?;
            self.note_growth(&file, range, progress);
        }
        Ok(())
    }

    /// Reports that a file has grown since it was opened.
    fn note_growth(&self, file: &InputFile, range: ByteRange, progress: &dyn Progress) {
        let Some(length) = self.identity().and_then(|identity| identity.take_growth()) else {
            return;
        };
        let mut last = [self.checks.delimiter()];
        if range.start < range.end {
            // The bytes were checked just before.
            let _ = file.read_exact_at(&mut last, range.end - 1);
        }
        let cut = self.codec().is_none() && last != [self.checks.delimiter()];
        let (read, added) = (range.end, length.saturating_sub(range.end));
        progress.note(Note::Grown { input: &self.name, read, added, cut });
    }
}
