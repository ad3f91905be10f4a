//! Inputs of a job.
//!
//! | kind | examples | passes | reading |
//! |---|---|---|---|
//! | file | a regular file, redirected standard input, a spooled stream | any | by position, from many threads |
//! | compressed file | such a file in gzip, zstd, xz, bzip2 or lz4 | any | in order, decompressed for each pass |
//! | CSV file | such a file whose keys are columns | any | in order |
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

use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::byte_range::{ByteRange, Skipping};
use super::compression::{self, Codec};
use super::content_check::{Checked, ContentChecks};
use super::file_stat::FileStat;
use super::follow::FollowedFiles;
use super::header::Start;
use super::identity::{BlockSum, CheckTime, Checksum, FileIdentity, StreamSum};
use super::input_file::InputFile;
use super::open::{InputKind, InputOpener};
use super::poll_read::PollRead;
use super::source::Source;
use super::stream::Chained;
use super::tables::{Table, TableKind, TableSource};
use super::temp_dir::{FileUsage, Spool, TempDir};
use crate::error::{Error, Result};
use crate::keys::{Columns, Fields, FoundValues, HeaderProblem, KeySpec, RowKeys};
use crate::progress::{Note, Progress};

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
    /// How the keys of its records are made.
    keys: Arc<KeySpec>,
    /// Where its first record begins in the file.
    begin: u64,
    /// The header of a CSV input, without its LF.
    header: Option<Vec<u8>>,
    /// The table whose rows are the records.
    table: Option<Arc<Table>>,
    /// Whether a CSV input begins with a byte order mark.
    mark: bool,
    /// The values that its JSON records had.
    found: Arc<FoundValues>,
    /// The disk space of a spooled copy.
    _usage: Option<FileUsage>,
}

/// A file, the range of the input in it, and its identity.
type WholeFile<'a> = (InputFile, ByteRange, Option<&'a Arc<FileIdentity>>);

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
    /// Opens and checks inputs. A missing file, a directory, a second standard input and a file
    /// whose `contents` are not lines are errors. A compressed stream may use `memory` bytes.
    pub(crate) fn open_all(
        sources: &[Source],
        memory: u64,
        checks: &Arc<ContentChecks>,
    ) -> Result<Vec<Self>> {
        if sources.iter().filter(|s| **s == Source::Stdin).count() > 1 {
            return Err(Error::stdin_twice());
        }
        let input = |(number, source)| Self::new(source, memory, checks, number < MAX_OPEN);
        sources.iter().enumerate().map(input).collect()
    }

    /// Opens files that grow, whose records have these keys, as one input that never ends.
    pub(crate) fn followed(
        sources: &[Source],
        checks: &Arc<ContentChecks>,
        keys: &KeySpec,
    ) -> Result<Self> {
        let names: Vec<_> = sources.iter().map(ToString::to_string).collect();
        let name = names.join(", ");
        let paths = sources.iter().map(|source| match source {
            Source::Path(path) => Ok(path.clone()),
            Source::Stdin => {
                let problem = "standard input cannot be followed; name a file";
                Err(Error::read("-", io::Error::other(problem)))
            }
            Source::Object(url) => {
                let problem = "an object does not grow; only files can be followed";
                Err(Error::read(&url.to_string(), io::Error::other(problem)))
            }
        });
        let paths = paths.collect::<Result<Vec<_>>>()?;
        let files = FollowedFiles::open(&paths, keys, checks.delimiter())?;
        let stream = Box::new(Checked::new(files, &name, checks).followed());
        let kind = InputKind::Stream(Mutex::new(Some(stream)));
        Ok(Self::with_kind(name, kind, Arc::clone(checks)))
    }

    /// Opens inputs without checking their contents.
    #[cfg(test)]
    pub(crate) fn open_unchecked(sources: &[Source], memory: u64) -> Result<Vec<Self>> {
        Self::open_all(sources, memory, &Arc::new(ContentChecks::new(b'\n', true)))
    }

    /// Opens an input; `keep`: keep the file open.
    fn new(source: &Source, memory: u64, checks: &Arc<ContentChecks>, keep: bool) -> Result<Self> {
        let name = source.to_string();
        let opener = InputOpener { name: &name, memory, checks };
        let body = match source {
            Source::Path(path) => {
                // Opening a FIFO waits for a writer, so check the type first.
                let data = std::fs::metadata(path).map_err(|e| Error::read(&name, e))?;
                if data.is_dir() {
                    return Err(Error::directory(&name));
                }
                opener.path(path, &data, keep).map_err(|e| Error::read(&name, e))?
            }
            Source::Stdin => opener.stdin().map_err(|e| Error::read(&name, e))?,
            Source::Object(url) => opener.object(url).map_err(|e| Error::read(&name, e))?,
        };
        Ok(Self::with_kind(name, body, Arc::clone(checks)))
    }

    fn with_kind(name: String, kind: InputKind, checks: Arc<ContentChecks>) -> Self {
        let portion = ByteRange { start: 0, end: u64::MAX };
        let decompressed = AtomicU64::new(UNKNOWN);
        Self {
            name,
            kind,
            portion,
            decompressed,
            checks,
            keys: Arc::default(),
            begin: 0,
            header: None,
            table: None,
            mark: false,
            found: Arc::default(),
            _usage: None,
        }
    }

    /// A stream that returns these bytes in small pieces.
    #[cfg(test)]
    pub(crate) fn trickle(bytes: Vec<u8>) -> Self {
        struct Trickle(io::Cursor<Vec<u8>>);
        impl Read for Trickle {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let few = buffer.len().min(1 + self.0.position() as usize % 777);
                self.0.read(&mut buffer[..few])
            }
        }
        impl PollRead for Trickle {
            fn ready(&mut self) -> bool {
                true
            }
        }
        let checks = Arc::new(ContentChecks::new(b'\n', true));
        let opener = InputOpener { name: "trickle", memory: 1 << 20, checks: &checks };
        let body = opener.stream(Trickle(io::Cursor::new(bytes)));
        Self::with_kind("trickle".to_owned(), body, checks)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The content checks of the job's inputs.
    pub(crate) fn content_checks(&self) -> &Arc<ContentChecks> {
        &self.checks
    }

    /// Sets how the keys of its records are made.
    pub(crate) fn with_keys(self, keys: &Arc<KeySpec>) -> Self {
        Self { keys: Arc::clone(keys), ..self }
    }

    /// Sets how the keys of its records are made, and reads what precedes the records: a header
    /// of up to `longest` bytes, in which the columns are found. A decoder may use `memory` bytes.
    pub(crate) fn keyed(
        mut self,
        keys: &Arc<KeySpec>,
        longest: u64,
        memory: u64,
        progress: &dyn Progress,
    ) -> Result<Self> {
        // Rows are found without reading what precedes them.
        if self.is_table() {
            return Ok(self.with_keys(keys));
        }
        let columns = match &keys.fields {
            Fields::Line => return Ok(self.with_keys(keys)),
            Fields::Json(_) => {
                self.read_start(None, longest, memory, progress)?;
                return Ok(self.with_keys(keys));
            }
            Fields::Columns(columns) => columns,
            Fields::Rows(_) => return Ok(self),
        };
        let separator = columns.separator_of(&self.name);
        let wanted = columns.has_header().then_some(separator);
        let start = self.read_start(wanted, longest, memory, progress)?;
        let header = start.header.as_deref();
        let columns = match columns.resolved(&self.name, header) {
            Ok(columns) => columns,
            // An empty input has no header and no records.
            Err(_) if wanted.is_some() && header.is_none() => {
                Columns { separator: Some(separator), ..columns.clone() }
            }
            Err(HeaderProblem { text, repeated }) => {
                return Err(Error::bad_header(&self.name, text, repeated));
            }
        };
        let keys = KeySpec { fields: Fields::Columns(columns), ..KeySpec::clone(keys) };
        (self.header, self.mark) = (start.header, start.mark);
        Ok(self.with_keys(&Arc::new(keys)))
    }

    /// Opens the table, if the input is one: number `number` of a job with this memory limit. What
    /// describes its parts may take `memory` bytes.
    pub(crate) fn with_table(
        mut self,
        number: u64,
        longest: u64,
        limit: u64,
        memory: u64,
    ) -> Result<Self> {
        let Some(kind) = self.table_kind() else { return Ok(self) };
        let Fields::Columns(columns) = &self.keys.fields else { return Ok(self) };
        let (path, file) = match &self.kind {
            InputKind::Named { path, file, .. } => {
                (Some(path.clone()), file.clone().map(InputFile::File))
            }
            InputKind::OpenFile { file, .. } => (None, Some(file.clone())),
            InputKind::Stream(_) => (None, None),
        };
        let source = TableSource {
            name: self.name.clone(),
            kind,
            path,
            file,
            range: self.range().unwrap_or(ByteRange { start: 0, end: 0 }),
            identity: self.identity().cloned(),
            number,
            delimiter: self.checks.delimiter(),
            longest,
            limit,
        };
        let table = Arc::new(Table::open(source, columns, memory)?);
        let fields = Fields::Rows(RowKeys::new(table.key_columns()));
        let transforms = self.keys.transforms.clone();
        self.keys = Arc::new(KeySpec { fields, transforms });
        self.table = Some(table);
        Ok(self)
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

    /// Reads a byte order mark, and with `separator` a header. The input then begins after them.
    fn read_start(
        &mut self,
        separator: Option<u8>,
        longest: u64,
        memory: u64,
        progress: &dyn Progress,
    ) -> Result<Start> {
        let mut stream = match self.open(memory, progress)? {
            Open::Stream(stream) => stream,
            Open::File { file, whole, .. } => Box::new(RangeReader::new(file, whole, None)),
        };
        let start = Start::read(stream.as_mut(), &self.name, separator, longest, progress);
        if let InputKind::Stream(place) = &self.kind {
            let mut start = start?;
            let rest = std::mem::take(&mut start.rest);
            let place =
                place.lock().map(|mut place| *place = Some(Box::new(Chained::new(rest, stream))));
            place.map_err(|_| Error::read(&self.name, io::Error::other("it was read already")))?;
            return Ok(start);
        }
        let start = start?;
        (self.begin, self.portion.start) = (start.length as u64, start.length as u64);
        Ok(start)
    }

    /// Returns the header of a CSV input, without its LF.
    pub(crate) fn header(&self) -> Option<&[u8]> {
        self.header.as_deref()
    }

    /// Returns whether a CSV input begins with a byte order mark.
    pub(crate) fn has_mark(&self) -> bool {
        self.mark
    }

    /// Returns the values that its JSON records had in the passes so far.
    pub(crate) fn found(&self) -> &Arc<FoundValues> {
        &self.found
    }

    /// Continues with the values that other records of the same input had.
    pub(crate) fn with_found(self, found: &Arc<FoundValues>) -> Self {
        Self { found: Arc::clone(found), ..self }
    }

    /// Returns the separator of the fields if the records are CSV.
    pub(crate) fn csv_separator(&self) -> Option<u8> {
        match &self.keys.fields {
            Fields::Columns(columns) => columns.separator,
            Fields::Line | Fields::Json(_) | Fields::Rows(_) => None,
        }
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
        let same = identity.resume(&file.sequential(), old, then, checksum, progress)?;
        match &mut self.kind {
            InputKind::Named { length, .. } if same => *length = old.end,
            InputKind::OpenFile { range, .. } if same => *range = old,
            _ => {}
        }
        Ok(same)
    }

    /// Returns whether blocks of the input are requested from a store, which takes memory.
    pub(crate) fn is_object(&self) -> bool {
        matches!(&self.kind, InputKind::OpenFile { file, .. } if file.as_file().is_none())
    }

    /// Returns whether the input can be read by position.
    pub(crate) fn is_file(&self) -> bool {
        self.has_positions() && self.csv_separator().is_none()
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

    /// Calls `show` with the first `most` bytes of a compressed file, block by block, and returns an
    /// estimate of its decompressed length. `None` for other inputs. The decoder may use `memory`
    /// bytes.
    pub(crate) fn decompressed_sample(
        &self,
        most: u64,
        memory: u64,
        mut show: impl FnMut(&[u8]),
    ) -> Result<Option<u64>> {
        if let Some(table) = &self.table {
            return self.table_sample(table, most, memory, show).map(Some);
        }
        let Some(codec) = self.codec() else { return Ok(None) };
        let (file, range) = self.file(CheckTime::Before, &())?;
        let packed = RangeReader::new(file.sequential(), range, None);
        let mut checked = None;
        let show = |block: &[u8]| {
            checked.get_or_insert_with(|| self.checks.check(&self.name, block));
            show(block);
        };
        let (went, took) = compression::sample(codec, packed, most, memory, show)
            .map_err(|error| Error::read(&self.name, error))?;
        checked.unwrap_or(Ok(()))?;
        if went < most {
            return Ok(Some(went));
        }
        let share = took.max(1) as f64 / (range.end - range.start).max(1) as f64;
        Ok(Some((went as f64 / share) as u64))
    }

    /// Calls `show` with the first frames of a table, about `most` bytes, and returns an estimate of
    /// the length of all frames.
    fn table_sample(
        &self,
        table: &Arc<Table>,
        most: u64,
        memory: u64,
        mut show: impl FnMut(&[u8]),
    ) -> Result<u64> {
        let mut stream = table.keys(memory)?;
        let (mut buffer, mut bytes) = (vec![0; 64 << 10], 0);
        while bytes < most {
            match stream.read(&mut buffer).map_err(|error| Error::read(&self.name, error))? {
                0 => return Ok(bytes),
                got => {
                    show(&buffer[..got]);
                    bytes += got as u64;
                }
            }
        }
        let share = table.rows() as f64 / stream.row().max(1) as f64;
        Ok((bytes as f64 * share) as u64)
    }

    /// Returns the rest of the input from a position on.
    pub(crate) fn from(mut self, position: u64) -> Self {
        self.portion.start += position;
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
        if self.codec().is_none() {
            self.portion = range;
        } else if (range.start, range.end) != (0, length) {
            return bad("a packed file cannot be divided; take all of it as one range");
        }
        Ok(self)
    }

    /// Converts a position in the input to a position in the file.
    pub(crate) fn byte(&self, position: u64) -> u64 {
        self.portion.start + position
    }

    /// Returns the file, the range of the input in it, and its identity.
    fn whole_file(&self) -> Result<WholeFile<'_>> {
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
        let stream = Checked::new(stream, &self.name, &self.checks);
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

    /// Returns an input that can be read more than once: itself, or a copy of the stream in `temp`.
    pub(crate) fn spool(self, temp: &TempDir, progress: &dyn Progress) -> Result<Self> {
        if self.is_repeatable() {
            return Ok(self);
        }
        let Open::Stream(mut stream) = self.open(0, progress)? else { return Ok(self) };
        progress.note(Note::Spooling { input: &self.name, dir: temp.dir() });
        progress.phase("spooling", None);
        let mut spool = Spool::new(temp)?;
        let mut buffer = vec![0; 256 << 10];
        loop {
            while !stream.ready() {
                if progress.cancelled() {
                    return Err(Error::cancelled());
                }
            }
            let got = match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(got) => got,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(Error::read(&self.name, e)),
            };
            spool.append(&buffer[..got])?;
            progress.advance(got as u64);
        }
        self.checks.note(progress);
        Ok(Self::of_spool(spool, self.name, self.checks).with_keys(&self.keys))
    }

    /// Returns the input of a spooled copy.
    pub(crate) fn of_spool(spool: Spool, name: String, checks: Arc<ContentChecks>) -> Self {
        let (file, length, usage) = spool.finish();
        let range = ByteRange { start: 0, end: length };
        let (file, identity) = (file.into(), None);
        let body = InputKind::OpenFile { file, range, identity, codec: None, table: None };
        Self { _usage: Some(usage), ..Self::with_kind(name, body, checks) }
    }
}

/// Number of files that a job keeps open, so that they can be renamed. Others are opened by name
/// for each pass.
const MAX_OPEN: usize = 64;

/// Reads a range of a file in order, independent of the file's offset.
struct RangeReader {
    file: InputFile,
    at: u64,
    end: u64,
    /// The checksum of the bytes, if needed.
    sum: Option<StreamSum>,
}

impl RangeReader {
    fn new(file: InputFile, range: ByteRange, sum: Option<StreamSum>) -> Self {
        Self { file, at: range.start, end: range.end, sum }
    }
}

impl PollRead for RangeReader {
    fn ready(&mut self) -> bool {
        true
    }
}

impl Read for RangeReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = (self.end - self.at).min(buffer.len() as u64) as usize;
        let got = self.file.read_at(&mut buffer[..most], self.at)?;
        self.at += got as u64;
        if let Some(sum) = &mut self.sum {
            sum.add(&buffer[..got]);
        }
        if self.at == self.end {
            self.sum.take().into_iter().for_each(StreamSum::finish);
        }
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_file_is_an_error_in_the_next_pass() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        std::fs::write(&path, "a\nb\n").unwrap();
        let inputs = Input::open_unchecked(&[Source::from_arg(&path)], 0).unwrap();
        assert!(inputs[0].open(0, &()).is_ok() && inputs[0].check_unchanged(&()).is_ok());
        // The same bytes and more.
        std::fs::write(&path, "a\nb\nc\n").unwrap();
        assert!(inputs[0].open(0, &()).is_ok() && inputs[0].check_unchanged(&()).is_ok());
        for text in ["a\nc\n", "a\n", "a\nc\nd\n"] {
            std::fs::write(&path, text).unwrap();
            assert!(inputs[0].open(0, &()).err().unwrap().to_string().contains("changed"));
            assert!(inputs[0].check_unchanged(&()).unwrap_err().is_input());
        }
    }

    #[test]
    fn file_without_a_reported_size_is_a_stream() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("empty");
        std::fs::write(&path, "").unwrap();
        let sources = [Source::from_arg(&path), Source::from_arg("/proc/self/status")];
        let inputs = Input::open_unchecked(&sources, 0).unwrap();
        assert_eq!(inputs[0].length(), Some(0));
        assert!(!inputs[1].is_file());
        // Opening it has consumed nothing.
        let Open::Stream(mut stream) = inputs[1].open(0, &()).unwrap() else {
            panic!("not a stream")
        };
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("Name:"));
    }

    #[test]
    fn fifo_is_ready_after_its_writer_has_closed_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        for text in ["", "a\nb\n"] {
            let input =
                Input::open_unchecked(&[Source::from_arg(&path)], 1 << 20).unwrap().remove(0);
            let Open::Stream(mut stream) = input.open(0, &()).unwrap() else {
                panic!("not a stream")
            };
            assert!(!stream.ready() && !stream.ready(), "no data was written");
            let mut writer = File::options().write(true).open(&path).unwrap();
            assert!(!stream.ready(), "a writer without a byte");
            std::io::Write::write_all(&mut writer, text.as_bytes()).unwrap();
            drop(writer);
            assert!(stream.ready());
            let mut read = String::new();
            stream.read_to_string(&mut read).unwrap();
            assert_eq!(read, text);
        }
        // A read also waits for a writer.
        let input = Input::open_unchecked(&[Source::from_arg(&path)], 1 << 20).unwrap().remove(0);
        let Open::Stream(mut stream) = input.open(0, &()).unwrap() else { panic!("not a stream") };
        let writer = std::thread::spawn(move || {
            std::thread::sleep(3 * super::super::poll_read::POLL_TIMEOUT);
            std::fs::write(path, "late")
        });
        let mut read = String::new();
        stream.read_to_string(&mut read).unwrap();
        assert_eq!(read, "late");
        writer.join().unwrap().unwrap();
    }

    #[test]
    fn missing_directory_and_double_stdin_are_errors_at_once() {
        let path = Source::from_arg("/no/such/file");
        assert!(Input::open_unchecked(&[path], 0).err().unwrap().is_input());
        let directory = Input::open_unchecked(&[Source::from_arg("/")], 0).err().unwrap();
        assert!(directory.to_string().contains("is a directory"));
        assert!(Input::open_unchecked(&[Source::Stdin, Source::Stdin], 0).is_err());
    }
}
