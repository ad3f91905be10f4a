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
//! (see `FileIdentity`). [`spool`] copies a stream to a temporary file.
//!
//! The first bytes of an input are checked: formats that are certainly not lines are an error.
//!
//! Before the records of an input whose keys are not lines there may be a byte order mark and a
//! header. They are no part of the input: its portion begins after them.

mod compression;
mod content_check;
mod counted;
mod follow;
mod follow_records;
mod header;
mod key_fragment;
mod left_out;
mod open;
mod range_reader;
mod records;
mod samples;
mod selected_records;
mod signatures;
mod source;
mod spellings;
mod spooling;
mod stream;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use self::compression::Codec;
use self::content_check::Checked;
use self::open::InputKind;
use self::range_reader::{RangeReader, Skipping};
use self::selected_records::{SelectedRecords, Selection};
use crate::error::{Error, Result};
use crate::files::{
    BlockSum, ByteRange, CheckTime, Checksum, FileIdentity, FileStat, InputFile, StreamSum,
};
use crate::keys::{Dialect, Fields, FoundValues, KeySpec, SeenSpelling};
use crate::poll_read::PollRead;
use crate::progress::{Note, Progress};
use crate::tables::{Table, TableKind};
use crate::temp::FileUsage;

pub use compression::compressed_extension;
#[cfg(test)]
pub(crate) use compression::decompressed;
pub(crate) use compression::memory as decoder_memory;
pub(crate) use content_check::ContentChecks;
pub(crate) use header::MARK;
pub use key_fragment::KeyFragment;
pub(crate) use left_out::no_key;
pub use left_out::{LeftOutCounts, LeftOutRecords};
#[cfg(test)]
pub(crate) use open::trickle;
pub(crate) use open::{open_all, open_followed};
pub(crate) use records::{open_table, read_keys, select};
pub(crate) use samples::{DecompressedLength, decompressed_sample};
pub use source::{CountedLists, Source, split_fragment};
pub use spellings::Spellings;
pub(crate) use spooling::{of_spool, spool};

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
    /// Which records are left, if not all and the input can be read again. The portion then counts their
    /// bytes.
    selection: Option<Arc<Selection>>,
    /// A number that no other input of the job has.
    number: u64,
    /// Whether its name says what its keys are.
    has_fragment: bool,
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
    fn new(name: String, kind: InputKind, checks: Arc<ContentChecks>) -> Self {
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
            has_fragment: false,
            table: None,
            mark: false,
            selection: None,
            number: 0,
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

    /// Sets the number, which no other input of the job has.
    pub(crate) fn with_number(self, number: u64) -> Self {
        Self { number, ..self }
    }

    /// Sets whether its name says what its keys are.
    pub(crate) fn with_fragment(self, has_fragment: bool) -> Self {
        Self { has_fragment, ..self }
    }

    /// Returns an error of its records with the advice for its name.
    pub(crate) fn advised(&self, error: Error) -> Error {
        if self.has_fragment { error.of_fragment() } else { error }
    }

    /// Returns the number, which no other input of the job has.
    pub(crate) fn number(&self) -> u64 {
        self.number
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
            _ => None,
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

    /// Returns what its records are, for an error.
    pub(crate) fn record_kind(&self) -> &'static str {
        match self.keys.fields {
            Fields::Line | Fields::Checksum(_) => "lines",
            Fields::Columns(_) => "records of CSV",
            Fields::Json(_) | Fields::Text(_) => "records of JSON",
            Fields::Rows(_) => "rows",
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
        self.is_repeatable() && self.codec().is_none() && !self.is_table() && !self.is_selected()
    }

    /// Returns whether some of its records are left out in each pass.
    pub(crate) fn is_selected(&self) -> bool {
        self.selection.is_some()
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
            _ if self.codec().is_some() || self.is_table() || self.is_selected() => {
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
            InputKind::Named { length, codec, .. } => {
                Some((*length, codec.is_some() || self.is_selected()))
            }
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

    /// Continues with the input of an earlier run, given its metadata, range and checksum. Returns
    /// false if its bytes have changed since.
    pub(crate) fn resume(
        &mut self,
        then: FileStat,
        old: ByteRange,
        checksum: Option<Checksum>,
        progress: &dyn Progress,
    ) -> Result<bool> {
        let (file, range, identity) = self.whole_file()?;
        let Some(identity) = identity else { return Ok(false) };
        if old.start != range.start || old.start > old.end || old.end > range.end {
            return Ok(false);
        }
        // The checksum is that of the bytes that a pass reads.
        let read = self.read_range(old);
        let same = identity.resume(&file.sequential(), read, then, checksum, progress)?;
        match &mut self.kind {
            InputKind::Named { length, .. } if same => *length = old.end,
            InputKind::OpenFile { range, .. } if same => *range = old,
            _ => {}
        }
        Ok(same)
    }

    /// Returns the rest of the input from a position on.
    pub(crate) fn from(mut self, position: u64) -> Self {
        self.portion.start += position;
        if position > 0 {
            self.first_line = None;
        }
        // The checksum of the whole input does not apply to the rest.
        if self.is_file() {
            self.identity().into_iter().for_each(|identity| identity.set_checksum(None));
        }
        self
    }

    /// Returns the portion of a file whose lines start in `range`. A compressed file cannot be
    /// divided.
    pub(crate) fn portion(mut self, range: ByteRange) -> Result<Self> {
        let bad = |problem| Err(Error::range(&self.name, range.start, range.end, problem));
        let length = match &self.kind {
            InputKind::Named { length, .. } => *length,
            _ => return bad("it is no file that can be read again; save it to one first"),
        };
        if range.start > range.end || range.end > length {
            return bad("the file is shorter; it has changed, or the range is of another one");
        }
        if matches!(self.keys.fields, Fields::Columns(_) | Fields::Rows(_)) {
            return bad(
                "columns of records cannot be found from within a file; compare them on one machine",
            );
        }
        if self.is_selected() {
            return bad(
                "records that are left out are found from its start; take all of it as one range",
            );
        }
        if self.codec().is_none() {
            self.portion = range;
            self.first_line = self.first_line.filter(|_| range.start == 0);
        } else if (range.start, range.end) != (0, length) {
            return bad("a packed file cannot be divided; take all of it as one range");
        }
        Ok(self)
    }

    /// Returns the file, the range of the input in it, and its identity.
    fn whole_file(&self) -> Result<(InputFile, ByteRange, Option<&Arc<FileIdentity>>)> {
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
    fn file(&self, moment: CheckTime, progress: &dyn Progress) -> Result<(InputFile, ByteRange)> {
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
    fn read_range(&self, range: ByteRange) -> ByteRange {
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
        if let InputKind::Stream(stream) = &self.kind {
            let stream = stream.lock().unwrap_or_else(|e| e.into_inner()).take();
            let gone = || Error::read(&self.name, io::Error::other("it was read already"));
            return Ok(Open::Stream(stream.ok_or_else(gone)?));
        }
        if let Some(selected) = self.open_selected(memory, progress)? {
            let left = self.portion.start;
            return Ok(Open::Stream(Box::new(Skipping { stream: selected, left })));
        }
        self.open_all_records(self.portion.start, memory, progress)
    }

    /// Opens the records that are left of a repeatable input from the first one on; `None` if all are.
    fn open_selected(
        &self,
        memory: u64,
        progress: &dyn Progress,
    ) -> Result<Option<SelectedRecords>> {
        let Some(selection) = &self.selection else { return Ok(None) };
        let stream = match self.open_all_records(self.begin, memory, progress)? {
            Open::Stream(stream) => stream,
            // A selected input is not read by position.
            Open::File { file, whole, .. } => Box::new(RangeReader::new(file, whole, None)),
        };
        Ok(Some(SelectedRecords::new(stream, Arc::clone(selection))))
    }

    /// Reads an input of which some records are left out, to count them.
    pub(crate) fn count_left_out(&self, memory: u64, progress: &dyn Progress) -> Result<()> {
        let Some(mut selected) = self.open_selected(memory, progress)? else { return Ok(()) };
        let mut buffer = vec![0; 64 << 10];
        while selected.read(&mut buffer).map_err(|error| Error::read(&self.name, error))? > 0 {
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
        }
        Ok(())
    }

    /// Opens a repeatable input from this byte on.
    fn open_all_records(&self, start: u64, memory: u64, progress: &dyn Progress) -> Result<Open> {
        let reading = |e| Error::read(&self.name, e);
        if let Some(table) = &self.table {
            let stream = table.keys(memory)?;
            return Ok(Open::Stream(Box::new(Skipping { stream, left: start })));
        }
        let (file, range) = self.file(CheckTime::Before, progress)?;
        if self.is_file() {
            return Ok(self.by_position(file, range));
        }
        let sum = StreamSum::of(self.identity().filter(|_| self.portion.end == u64::MAX));
        let Some(codec) = self.codec() else {
            // Without a checksum the bytes before need not be read.
            let left = if sum.is_some() { start } else { 0 };
            let start = (range.start + start - left).min(range.end);
            let stream = RangeReader::new(file.sequential(), ByteRange { start, ..range }, sum);
            return Ok(Open::Stream(Box::new(Skipping { stream, left })));
        };
        let packed = RangeReader::new(file.sequential(), range, sum);
        let stream = compression::decode(codec, packed, memory).map_err(reading)?;
        let stream = Checked::new(stream, &self.name, &self.checks).within(Some(codec));
        Ok(Open::Stream(Box::new(Skipping { stream, left: start })))
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

    /// Opens inputs without checking their contents.
    #[cfg(test)]
    pub(crate) fn open_unchecked(sources: &[Source], memory: u64) -> Result<Vec<Self>> {
        open_all(sources, memory, |_| Arc::new(ContentChecks::new(b'\n', true)))
    }
}
