//! The start of an input of records: a byte order mark, lines before the header and a header, which
//! are no records, and how the records are written.

use std::io;

use crate::error::{Error, Result};
use crate::keys::{Columns, Dialect, EndScan, Fields, KeySpec, guess_separator, is_text};
use crate::poll_read::PollRead;
use crate::progress::Progress;

/// The UTF-8 byte order mark.
pub(crate) const MARK: &[u8] = b"\xef\xbb\xbf";

/// Bytes read at a time.
const STEP: usize = 16 << 10;

/// What precedes the records of an input.
pub(super) struct Start {
    /// The dialect of CSV.
    pub(super) dialect: Option<Dialect>,
    /// Whether the dialect follows from the first records.
    pub(super) guessed: bool,
    /// The header without its LF; `None` if there is none, or the input has no bytes.
    pub(super) header: Option<Vec<u8>>,
    /// Whether there is a byte order mark.
    pub(super) mark: bool,
    /// Length of everything before the first record, and its line ends.
    pub(super) length: u64,
    pub(super) lines: u64,
    /// Bytes that were read from the first record on.
    pub(super) rest: Vec<u8>,
    /// Whether the records are values of a JSON text, which are not one on each line.
    pub(super) json_text: bool,
}

impl Start {
    /// Reads the byte order mark, the lines before the records, of CSV as many records as their dialect
    /// depends on and their header, if any, and the first line of JSON. Lines and the header may be
    /// `longest` bytes long. Reads as little as the stream allows.
    pub(super) fn read(
        stream: &mut dyn PollRead,
        name: &str,
        keys: &KeySpec,
        delimiter: u8,
        longest: u64,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let columns = match &keys.fields {
            Fields::Columns(columns) => Some(columns),
            _ => None,
        };
        let (mut bytes, mut ended) = (Vec::new(), false);
        while !ended && bytes.len() < MARK.len() && MARK.starts_with(&bytes) {
            ended = !read_more(stream, name, &mut bytes, progress)?;
        }
        let mark = bytes.starts_with(MARK);
        bytes.drain(..if mark { MARK.len() } else { 0 });
        let mut start = Self {
            dialect: None,
            guessed: false,
            header: None,
            mark,
            length: if mark { MARK.len() as u64 } else { 0 },
            lines: 0,
            rest: Vec::new(),
            json_text: false,
        };
        // Columns are CSV, whose records end with LF.
        let delimiter = if columns.is_some() { b'\n' } else { delimiter };
        let mut input = Beginning { stream, name, bytes, ended, longest, progress };
        input.skip_lines(keys, delimiter, &mut start)?;
        let Beginning { stream, mut bytes, mut ended, .. } = input;
        if let (Some(values), b'\n') = (keys.fields.json_values(), delimiter) {
            start.json_text = loop {
                if let Some(is_text) = is_text(values, &bytes, ended) {
                    break is_text;
                }
                ended = !read_more(stream, name, &mut bytes, progress)?;
            };
        }
        let named = columns.and_then(|columns| columns.dialect_of(name));
        (start.dialect, start.guessed) = (named, columns.is_some() && named.is_none());
        while let (None, Some(columns)) = (start.dialect, columns) {
            let guess = guess_separator(&bytes, ended, |byte| columns.dialect(byte))
                .map_err(|separators| Error::ambiguous_separator(name, separators))?;
            start.dialect = guess.map(|separator| columns.dialect(separator));
            if start.dialect.is_none() {
                ended = !read_more(stream, name, &mut bytes, progress)?;
            }
        }
        let has_header = columns.is_some_and(Columns::has_header);
        let Some(scanned) = start.dialect.filter(|_| has_header) else {
            return Ok(Self { rest: bytes, ..start });
        };
        let (mut scan, mut at) = (EndScan::new(scanned), 0);
        loop {
            // The search ends with the first record; until then it can be continued.
            if let Some(end) = scan.first(&bytes[at..]).map(|end| at + end) {
                let rest = bytes.split_off(end + 1);
                bytes.truncate(end);
                start.add(end + 1, line_ends(&bytes) + 1);
                return Ok(Self { header: Some(bytes), rest, ..start });
            }
            at = bytes.len();
            if at as u64 > longest {
                return Err(match scan.is_quoted() {
                    true => Error::long_quotes(name, start.length, longest),
                    false => Error::line_too_long(name, start.length, longest, &keys.fields),
                });
            }
            if ended || !read_more(stream, name, &mut bytes, progress)? {
                break;
            }
        }
        if scan.is_quoted() {
            return Err(Error::open_quotes(name, start.length));
        }
        start.add(bytes.len(), line_ends(&bytes) + 1);
        Ok(Self { header: (!bytes.is_empty()).then_some(bytes), ..start })
    }

    /// Adds bytes and lines before the first record.
    fn add(&mut self, bytes: usize, lines: usize) {
        (self.length, self.lines) = (self.length + bytes as u64, self.lines + lines as u64);
    }
}

fn line_ends(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

/// A stream, and the bytes that were read of it and come before those to be read.
struct Beginning<'a> {
    stream: &'a mut dyn PollRead,
    name: &'a str,
    bytes: Vec<u8>,
    ended: bool,
    longest: u64,
    progress: &'a dyn Progress,
}

impl Beginning<'_> {
    fn read_more(&mut self) -> Result<()> {
        self.ended = !read_more(self.stream, self.name, &mut self.bytes, self.progress)?;
        Ok(())
    }

    /// Removes the lines that are skipped, and comments after them.
    fn skip_lines(&mut self, keys: &KeySpec, delimiter: u8, start: &mut Start) -> Result<()> {
        let mut left = keys.records.skip_lines;
        let comment = keys.records.comment.as_deref();
        loop {
            let is_undecided = |bytes: &[u8]| {
                comment.is_some_and(|start| bytes.len() < start.len() && start.starts_with(bytes))
            };
            while left == 0 && !self.ended && is_undecided(&self.bytes) {
                self.read_more()?;
            }
            if left == 0 && !comment.is_some_and(|start| self.bytes.starts_with(start)) {
                return Ok(());
            }
            let mut searched = 0;
            let end = loop {
                if let Some(end) = memchr::memchr(delimiter, &self.bytes[searched..]) {
                    break searched + end + 1;
                }
                searched = self.bytes.len();
                if searched as u64 > self.longest {
                    return Err(Error::line_too_long(
                        self.name,
                        start.length,
                        self.longest,
                        &keys.fields,
                    ));
                }
                if self.ended {
                    break searched;
                }
                self.read_more()?;
            };
            if end == 0 {
                return Ok(());
            }
            start.add(end, line_ends(&self.bytes[..end]));
            self.bytes.drain(..end);
            left = left.saturating_sub(1);
        }
    }
}

/// Appends the bytes that are available, at least one. False at the end, or if the caller stops.
fn read_more(
    stream: &mut dyn PollRead,
    name: &str,
    bytes: &mut Vec<u8>,
    progress: &dyn Progress,
) -> Result<bool> {
    while !stream.ready() {
        if progress.cancelled() {
            return Err(Error::cancelled());
        }
        if progress.stopped() {
            return Ok(false);
        }
    }
    let length = bytes.len();
    bytes.resize(length + STEP, 0);
    let got = loop {
        match stream.read(&mut bytes[length..]) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => break other.map_err(|e| Error::read(name, e))?,
        }
    };
    bytes.truncate(length + got);
    Ok(got > 0)
}
