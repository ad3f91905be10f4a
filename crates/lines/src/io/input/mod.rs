//! Inputs of a job.
//!
//! | kind | examples | passes | reading |
//! |---|---|---|---|
//! | file | a regular file, redirected standard input, a spooled stream | any | by position, from many threads |
//! | compressed file | such a file in gzip, zstd, xz, bzip2 or lz4 | any | in order, decompressed for each pass |
//! | CSV file | such a file whose keys are columns of records that may have line ends | any | in order |
//! | table | a file in Parquet or Arrow IPC whose keys are columns | any | frames of its rows, in order |
//! | object | `s3://bucket/key`, if it can be read by position; compressed or not | any | as a file |
//! | stream | a pipe, FIFO or terminal, a `/proc` file that reports no size; compressed or not | one | in order |
//! | followed files | logs that grow | one, without an end | in order |
//!
//! An input may be a *portion* of a file: the lines that start in a range of its bytes. The last
//! line may end after the range; a line that started before it is not included. Positions count
//! from the start of the portion.
//!
//! An input is the bytes that its file had when it was opened; changes during a job are an error
//! (see [`identity`](super::identity)). [`Input::spool`] copies a stream to a temporary file.
//!
//! The first bytes of an input are checked: formats that are certainly not lines are an error.
//!
//! Before the records of an input whose keys are not lines there may be a byte order mark and a
//! header. They are no part of the input: its portion begins after them.

mod opening;
mod passes;
mod portions;
mod range_reader;
mod records;
mod samples;
mod spooling;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::byte_range::ByteRange;
use super::compression::Codec;
use super::content_check::ContentChecks;
use super::identity::FileIdentity;
use super::input_file::InputFile;
use super::open::InputKind;
use super::poll_read::PollRead;
use super::tables::{Table, TableKind};
use super::temp_dir::FileUsage;
use crate::error::{Error, Result};
use crate::keys::{Dialect, Fields, FoundValues, KeySpec, SeenSpelling};
pub(crate) use samples::DecompressedLength;

/// An input that has been opened and checked, but not read.
pub(crate) struct Input {
    name: String,
    kind: InputKind,
    /// The bytes in which its lines start. Of compressed files and streams only the start counts.
    portion: ByteRange,
    /// Decompressed length of a compressed file, known after the first complete pass.
    decompressed: AtomicU64,
    /// The content checks of the job's inputs.
    checks: Arc<ContentChecks>,
    /// How its keys are spelled.
    spelling: Arc<SeenSpelling>,
    /// How the keys of its records are made.
    keys: Arc<KeySpec>,
    /// Where its first record begins in the file.
    begin: u64,
    /// Bytes before the first record of a stream, which are read already.
    skipped: u64,
    /// The line of the file on which its first record begins, from 1; `None` if unknown.
    first_line: Option<u64>,
    /// The header of a CSV input, without its LF.
    header: Option<Vec<u8>>,
    /// Whether the dialect of CSV follows from the first records.
    guessed: bool,
    /// The table whose rows are the records.
    table: Option<Arc<Table>>,
    /// Whether a CSV input begins with a byte order mark.
    mark: bool,
    /// What its records have shown.
    found: Arc<FoundValues>,
    /// The disk space of a spooled copy.
    _usage: Option<FileUsage>,
}

/// Length and modification time of a file: equal on every machine that has access to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    /// Length in bytes.
    pub length: u64,
    /// Modification time: seconds and nanoseconds since 1970.
    pub changed: (i64, i64),
}

/// An input opened for one pass.
pub(crate) enum Open {
    /// `range`: the bytes in which lines start; `whole`: the bytes that may be read to complete
    /// them.
    File {
        file: InputFile,
        range: ByteRange,
        whole: ByteRange,
    },
    Stream(Box<dyn PollRead + Send>),
}

/// [`Input::decompressed`] before it is known.
const UNKNOWN: u64 = u64::MAX;

impl Input {
    fn with_kind(name: String, kind: InputKind, checks: Arc<ContentChecks>) -> Self {
        let portion = ByteRange { start: 0, end: u64::MAX };
        let decompressed = AtomicU64::new(UNKNOWN);
        let spelling = checks.seen(&name);
        Self {
            name,
            kind,
            portion,
            decompressed,
            checks,
            spelling,
            keys: Arc::default(),
            begin: 0,
            skipped: 0,
            first_line: Some(1),
            header: None,
            guessed: false,
            table: None,
            mark: false,
            found: Arc::default(),
            _usage: None,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The content checks of the job's inputs.
    pub(crate) fn content_checks(&self) -> &Arc<ContentChecks> {
        &self.checks
    }

    /// Returns how the keys that were read are spelled.
    pub(crate) fn spelling(&self) -> &SeenSpelling {
        &self.spelling
    }

    /// Notes that all its keys were read. Those of a range are not all keys of a file.
    pub(crate) fn set_keys_complete(&self) {
        if self.portion.end == u64::MAX {
            self.checks.set_complete(&self.name);
        }
    }

    /// Sets how the keys of its records are made.
    pub(crate) fn with_keys(self, keys: &Arc<KeySpec>) -> Self {
        Self { keys: Arc::clone(keys), ..self }
    }

    /// Returns the table whose rows are the records.
    pub(crate) fn table(&self) -> Option<&Arc<Table>> {
        self.table.as_ref()
    }

    /// Returns whether the records are rows of a table.
    pub(crate) fn is_table(&self) -> bool {
        self.table_kind().is_some()
    }

    fn table_kind(&self) -> Option<TableKind> {
        match self.kind {
            InputKind::Named { table, .. } | InputKind::OpenFile { table, .. } => table,
            InputKind::Stream(_) => None,
        }
    }

    /// Returns the header of a CSV input, without its LF.
    pub(crate) fn header(&self) -> Option<&[u8]> {
        self.header.as_deref()
    }

    /// Returns whether a CSV input begins with a byte order mark.
    pub(crate) fn has_mark(&self) -> bool {
        self.mark
    }

    /// Returns what its records have shown in the passes so far.
    pub(crate) fn found(&self) -> &Arc<FoundValues> {
        &self.found
    }

    /// Continues with what other records of the same input have shown.
    pub(crate) fn with_found(self, found: &Arc<FoundValues>) -> Self {
        Self { found: Arc::clone(found), ..self }
    }

    /// Returns how the records are written if they are CSV.
    pub(crate) fn csv_dialect(&self) -> Option<Dialect> {
        match &self.keys.fields {
            Fields::Columns(columns) => Some(columns.dialect(columns.separator?)),
            Fields::Line | Fields::Json(_) | Fields::Rows(_) => None,
        }
    }

    /// Returns the separator of CSV if it follows from the first records.
    pub(crate) fn guessed_separator(&self) -> Option<u8> {
        self.csv_dialect().filter(|_| self.guessed).map(|dialect| dialect.separator)
    }

    /// Returns how the keys of its records are made.
    pub(crate) fn keys(&self) -> &Arc<KeySpec> {
        &self.keys
    }

    fn codec(&self) -> Option<Codec> {
        match self.kind {
            InputKind::Named { codec, .. } | InputKind::OpenFile { codec, .. } => codec,
            InputKind::Stream(_) => None,
        }
    }

    /// Returns the identity of the file; `None` for streams and spooled copies.
    pub(crate) fn identity(&self) -> Option<&Arc<FileIdentity>> {
        match &self.kind {
            InputKind::Named { identity, .. } => Some(identity),
            InputKind::OpenFile { identity, .. } => identity.as_ref(),
            InputKind::Stream(_) => None,
        }
    }

    /// Returns the range of the input in its file; `None` for a stream. Redirected standard input
    /// begins at the offset of its descriptor.
    pub(crate) fn range(&self) -> Option<ByteRange> {
        match &self.kind {
            InputKind::Named { length, .. } => Some(ByteRange { start: 0, end: *length }),
            InputKind::OpenFile { range, .. } => Some(*range),
            InputKind::Stream(_) => None,
        }
    }

    /// Returns whether blocks of the input are requested from a store, which takes memory.
    pub(crate) fn is_object(&self) -> bool {
        matches!(&self.kind, InputKind::OpenFile { file, .. } if file.as_file().is_none())
    }

    /// Returns whether the input can be read by position.
    pub(crate) fn is_file(&self) -> bool {
        self.has_positions() && self.csv_dialect().is_none_or(Dialect::is_lines)
    }

    /// Returns whether any range of its bytes can be read, although it may begin within a record.
    pub(crate) fn has_positions(&self) -> bool {
        self.is_repeatable() && self.codec().is_none() && !self.is_table()
    }

    /// Returns whether the input can be read more than once.
    pub(crate) fn is_repeatable(&self) -> bool {
        !matches!(self.kind, InputKind::Stream(_))
    }

    /// Returns whether reading may need the memory of a decoder.
    pub(crate) fn may_be_compressed(&self) -> bool {
        !self.has_positions()
    }

    /// Returns the length of the input in bytes, if known. The length of a compressed file is known
    /// after the first complete pass.
    pub(crate) fn length(&self) -> Option<u64> {
        let whole = match &self.kind {
            InputKind::Stream(_) => None,
            _ if self.codec().is_some() || self.is_table() => {
                Some(self.decompressed.load(Ordering::Relaxed)).filter(|length| *length != UNKNOWN)
            }
            InputKind::Named { length, .. } => Some(*length),
            InputKind::OpenFile { range, .. } => Some(range.end - range.start),
        };
        whole.map(|whole| whole.min(self.portion.end).saturating_sub(self.portion.start))
    }

    /// Returns the length of a file, and whether it is compressed and cannot be divided.
    pub(crate) fn file_length(&self) -> Option<(u64, bool)> {
        match &self.kind {
            InputKind::Named { length, codec, .. } => Some((*length, codec.is_some())),
            InputKind::OpenFile { .. } | InputKind::Stream(_) => None,
        }
    }

    /// Returns the stamp of a file; `None` for other inputs.
    pub(crate) fn stamp(&self) -> Option<FileStamp> {
        match &self.kind {
            InputKind::Named { length, identity, .. } => {
                Some(FileStamp { length: *length, changed: identity.opened().changed[0] })
            }
            InputKind::OpenFile { .. } | InputKind::Stream(_) => None,
        }
    }

    /// Returns the length, or an error if it is not known yet.
    pub(crate) fn known_length(&self) -> Result<u64> {
        let unknown = || Error::read(&self.name, io::Error::other("its length is not known"));
        self.length().ok_or_else(unknown)
    }

    /// Stores the length after a complete pass.
    pub(crate) fn set_length(&self, bytes: u64) {
        self.decompressed.store(self.portion.start + bytes, Ordering::Relaxed);
    }

    /// Returns the line of the file on which its first record begins, from 1; `None` if unknown.
    pub(crate) fn first_line(&self) -> Option<u64> {
        self.first_line
    }

    /// Converts a position in the input to a position in the file.
    pub(crate) fn byte(&self, position: u64) -> u64 {
        self.skipped + self.portion.start + position
    }
}
