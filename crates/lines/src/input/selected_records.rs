//! A stream of records without those that the rules of its keys leave out.
//!
//! Comments, bad records and records whose key is dropped are no part of an input: positions count
//! from the first record through those that are left, in every pass, so that no other module knows of
//! them. The values of a JSON text become lines.
//!
//! Invariant: the same bytes come out of every pass.
//!
//! Cost: one thread makes the key of each record, which the pass makes again. A record is copied once
//! and scanned once, whatever its pieces; in memory is one record and a block.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use super::left_out::{LeftOutRecords, Reason, no_key};
use crate::error::{Error, Result};
use crate::keys::{
    Alike, Dialect, EndScan, Fields, KeyKind, KeySpec, Spare, ValuePart, ValueScan, append_compact,
    rows,
};
use crate::poll_read::PollRead;

/// Bytes read at a time.
const STEP: usize = 64 << 10;

/// How the records of an input are found and selected.
pub(super) struct Selection {
    pub(super) name: String,
    /// Differs from that of other inputs, whose name may be the same.
    pub(super) id: String,
    pub(super) keys: Arc<KeySpec>,
    /// Whether the name of the input says what its keys are.
    pub(super) has_fragment: bool,
    pub(super) ends: Ends,
    pub(super) delimiter: u8,
    /// The byte and the line of the file on which the first record begins.
    pub(super) start: (u64, u64),
    /// Maximum length of a record.
    pub(super) longest: u64,
    pub(super) left_out: LeftOutRecords,
}

/// How records end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// With the delimiter.
    Line,
    /// With an LF that is not inside quotes.
    Csv(Dialect),
    /// As the frames of rows say.
    Frame,
    /// With the value of a JSON text; `elements`: of arrays at the outermost level.
    Json { elements: bool },
}

/// Finds the end of a record in bytes that come in pieces.
enum Scan {
    Line,
    Csv(EndScan),
    Frame,
    Json(ValueScan),
}

impl Scan {
    fn of(ends: Ends) -> Self {
        match ends {
            Ends::Line => Self::Line,
            Ends::Csv(dialect) => Self::Csv(EndScan::new(dialect)),
            Ends::Frame => Self::Frame,
            Ends::Json { elements } => Self::Json(ValueScan::new(elements)),
        }
    }
}

/// What the next bytes are.
enum Found {
    /// A record of `length` bytes; `whole`: with its delimiter.
    Record { length: usize, whole: usize },
    /// Bytes that are no record.
    Nothing(usize),
    /// Bytes that cannot be a record, and why.
    Bad(usize, &'static str),
    /// The file ends where it cannot.
    BadEnd(&'static str),
}

/// What can be returned.
enum Step {
    Bytes,
    NeedsMore,
    End,
}

/// The records of a stream that are compared.
pub(super) struct SelectedRecords {
    stream: Box<dyn PollRead + Send>,
    selection: Arc<Selection>,
    raw: Vec<u8>,
    /// Records in `raw` to return.
    kept: Range<usize>,
    /// Whether a delimiter follows them.
    owed: bool,
    /// Where in `raw` the next record begins, and how many of its bytes have no end.
    next: usize,
    searched: usize,
    scan: Scan,
    /// The byte at which `raw` begins, and the line on which the next record does.
    at: u64,
    line: u64,
    ended: bool,
    failed: Option<io::Error>,
    key: Vec<u8>,
    spare: Spare,
}

impl SelectedRecords {
    /// `stream` begins with the first record.
    pub(super) fn new(stream: Box<dyn PollRead + Send>, selection: Arc<Selection>) -> Self {
        let (at, line) = selection.start;
        let scan = Scan::of(selection.ends);
        Self {
            stream,
            selection,
            raw: Vec::new(),
            kept: 0..0,
            owed: false,
            next: 0,
            searched: 0,
            scan,
            at,
            line,
            ended: false,
            failed: None,
            key: Vec::new(),
            spare: Spare::default(),
        }
    }

    /// Returns the number of bytes from the first record to the next one in the file.
    pub(super) fn taken(&self) -> u64 {
        self.at + self.next as u64 - self.selection.start.0
    }

    /// Finds records to return in the bytes that were read.
    fn step(&mut self) -> Result<Step> {
        loop {
            if self.owed || self.kept.len() >= STEP {
                return Ok(Step::Bytes);
            }
            let Some(found) = self.find() else {
                let length = (self.raw.len() - self.next) as u64;
                if length > self.selection.longest {
                    return Err(self.too_long());
                }
                return Ok(match (self.kept.is_empty(), self.ended) {
                    (false, _) => Step::Bytes,
                    (true, true) => Step::End,
                    (true, false) => Step::NeedsMore,
                });
            };
            let (from, place) = (self.next, (self.at + self.next as u64, self.line));
            let whole = match found {
                Found::Nothing(length) | Found::Bad(length, _) => length,
                Found::Record { whole, .. } => whole,
                Found::BadEnd(_) => 0,
            };
            let is_kept = match found {
                Found::Record { length, .. } => self.is_kept(from..from + length, place)?,
                Found::Nothing(_) => false,
                Found::Bad(length, problem) => self.bad(from..from + length, place, problem)?,
                Found::BadEnd(problem) => self.bad(from..from, place, problem)?,
            };
            self.next += whole;
            self.searched = 0;
            if self.selection.ends != Ends::Frame {
                let lines = memchr::memchr_iter(b'\n', &self.raw[from..self.next]).count();
                self.line += lines as u64;
            }
            match found {
                Found::Record { length, .. } if is_kept => self.keep(from, length, whole),
                _ if !self.kept.is_empty() => return Ok(Step::Bytes),
                _ => {}
            }
        }
    }

    /// Adds a record to those to return, which it follows.
    fn keep(&mut self, from: usize, length: usize, whole: usize) {
        if self.kept.is_empty() {
            self.kept = from..from;
        }
        self.kept.end = from + whole;
        if let Ends::Json { .. } = self.selection.ends {
            self.owed = true;
            let record = from..from + length;
            if memchr::memchr(b'\n', &self.raw[record.clone()]).is_some() {
                self.key.clear();
                append_compact(&self.raw[record], &mut self.key);
                self.kept.end = from + self.key.len();
                self.raw[from..self.kept.end].copy_from_slice(&self.key);
            }
        }
    }

    /// Returns what the next bytes are; `None` if more are needed, or there are none.
    fn find(&mut self) -> Option<Found> {
        let Self { raw, next, searched, ended, selection, scan, .. } = self;
        let bytes = &raw[*next..];
        if bytes.is_empty() {
            let Scan::Json(scan) = scan else { return None };
            let is_cut = *ended && std::mem::replace(scan, ValueScan::new(false)).is_open();
            return is_cut.then_some(Found::BadEnd("is no JSON: the file ends within an array"));
        }
        let comment = selection.keys.records.comment.as_deref();
        if let Some(comment) = comment.filter(|_| selection.ends != Ends::Frame) {
            let is_begun = matches!(scan, Scan::Json(scan) if scan.is_inside());
            if !is_begun && bytes.len() < comment.len() && comment.starts_with(bytes) && !*ended {
                return None;
            }
            if !is_begun && bytes.starts_with(comment) {
                let delimiter = match selection.ends {
                    Ends::Line => selection.delimiter,
                    _ => b'\n',
                };
                return match memchr::memchr(delimiter, &bytes[*searched..]) {
                    Some(end) => Some(Found::Nothing(*searched + end + 1)),
                    None => {
                        *searched = bytes.len();
                        ended.then_some(Found::Nothing(bytes.len()))
                    }
                };
            }
        }
        let fresh = &bytes[*searched..];
        let end = match scan {
            Scan::Line => memchr::memchr(selection.delimiter, fresh),
            Scan::Csv(scan) => scan.first(fresh),
            Scan::Frame => return rows::first_end(bytes).map(Found::record),
            Scan::Json(scan) => {
                return Some(match scan.next(bytes, *ended)? {
                    ValuePart::Between(length) => Found::Nothing(length),
                    ValuePart::Value { length, misplaced: false } => {
                        Found::Record { length, whole: length }
                    }
                    ValuePart::Value { length, misplaced: true } => {
                        Found::Bad(length, "is no JSON: expected a value, or a comma before it")
                    }
                });
            }
        };
        let end = end.map(|end| *searched + end);
        *searched = bytes.len();
        match (end, &mut *scan) {
            (Some(end), scan) => {
                *scan = Scan::of(selection.ends);
                Some(Found::record(end))
            }
            (None, Scan::Csv(scan)) if *ended && scan.is_quoted() => {
                Some(Found::Bad(bytes.len(), OPEN_QUOTE))
            }
            (None, _) => ended.then_some(Found::Record { length: bytes.len(), whole: bytes.len() }),
        }
    }

    /// Decides about a record.
    fn is_kept(&mut self, record: Range<usize>, place: (u64, u64)) -> Result<bool> {
        let Self { raw, selection, key, spare, .. } = self;
        let (keys, record) = (&selection.keys, &raw[record]);
        if keys.is_line() && keys.records.empty == Alike::One {
            return Ok(true);
        }
        key.clear();
        let reason = match keys.append_kind(record, spare, key) {
            Ok(kind) if keys.records.alike(kind) != Alike::Drop => return Ok(true),
            Ok(KeyKind::Null) => Reason::Null,
            Ok(_) => Reason::Empty,
            Err(problem) if keys.records.skip_bad => Reason::Bad(problem.text),
            Err(problem) => {
                return Err(no_key(&selection.name, &keys.fields, problem, place.0, Some(place.1)));
            }
        };
        selection.left_out.add([&selection.name, &selection.id], place, record, reason)?;
        Ok(false)
    }

    /// Leaves out bytes that are no record, or returns their error.
    fn bad(&self, bytes: Range<usize>, place: (u64, u64), problem: &'static str) -> Result<bool> {
        let Selection { name, id, keys, left_out, .. } = &*self.selection;
        if keys.records.skip_bad {
            let reason = Reason::Bad(problem.to_owned());
            left_out.add([name, id], place, &self.raw[bytes], reason)?;
            return Ok(false);
        }
        Err(match problem {
            OPEN_QUOTE if self.selection.has_fragment => {
                Error::open_quotes(name, place.0).of_fragment()
            }
            OPEN_QUOTE => Error::open_quotes(name, place.0),
            _ => no_key(name, &keys.fields, problem.to_owned().into(), place.0, Some(place.1)),
        })
    }

    fn too_long(&self) -> Error {
        let Selection { name, longest, keys, .. } = &*self.selection;
        let at = self.at + self.next as u64;
        match &self.scan {
            Scan::Csv(scan) if scan.is_quoted() => Error::long_quotes(name, at, *longest),
            _ => Error::line_too_long(name, at, *longest, &keys.fields),
        }
    }

    /// Reads more bytes. All records so far were returned.
    fn read_more(&mut self) -> io::Result<()> {
        if self.next > 0 {
            self.raw.drain(..self.next);
            self.at += self.next as u64;
            (self.next, self.kept) = (0, 0..0);
            self.raw.shrink_to(4 * STEP);
        }
        let length = self.raw.len();
        self.raw.resize(length + STEP, 0);
        let got = self.stream.read(&mut self.raw[length..]);
        self.raw.truncate(length + got.as_ref().map_or(0, |got| *got));
        self.ended |= got? == 0;
        Ok(())
    }

    /// Copies records to return.
    fn copy_kept(&mut self, buffer: &mut [u8]) -> usize {
        let mut length = self.kept.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.raw[self.kept.start..self.kept.start + length]);
        self.kept.start += length;
        if self.kept.is_empty() && self.owed && length < buffer.len() {
            buffer[length] = self.selection.delimiter;
            (self.owed, length) = (false, length + 1);
        }
        length
    }
}

const OPEN_QUOTE: &str = "has a quote that is not closed before the end of the input";

impl Found {
    fn record(length: usize) -> Self {
        Self::Record { length, whole: length + 1 }
    }
}

impl Read for SelectedRecords {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut got = 0;
        while got < buffer.len() {
            if let Some(error) = self.failed.take() {
                if got > 0 {
                    self.failed = Some(error);
                    break;
                }
                return Err(error);
            }
            let copied = self.copy_kept(&mut buffer[got..]);
            got += copied;
            if copied > 0 {
                continue;
            }
            match self.step() {
                Ok(Step::Bytes) => {}
                Ok(Step::End) => break,
                Ok(Step::NeedsMore) if got > 0 => break,
                Ok(Step::NeedsMore) => self.read_more()?,
                Err(error) => self.failed = Some(io::Error::other(error)),
            }
        }
        Ok(got)
    }
}

impl PollRead for SelectedRecords {
    fn ready(&mut self) -> bool {
        if !self.kept.is_empty() || self.owed || self.failed.is_some() {
            return true;
        }
        for _ in 0..2 {
            match self.step() {
                Ok(Step::Bytes | Step::End) => return true,
                Ok(Step::NeedsMore) => {}
                Err(error) => {
                    self.failed = Some(io::Error::other(error));
                    return true;
                }
            }
            if !self.stream.ready() {
                return false;
            }
            if let Err(error) = self.read_more() {
                self.failed = (error.kind() != io::ErrorKind::Interrupted).then_some(error);
                return self.failed.is_some();
            }
        }
        false
    }
}

/// Returns whether some records with these keys may be left out. `json_text`: they are values of a JSON
/// text, which are not one on each line.
pub(super) fn is_selective(keys: &KeySpec, json_text: bool) -> bool {
    let rules = &keys.records;
    let has_nulls = matches!(keys.fields, Fields::Json(_) | Fields::Text(_) | Fields::Rows(_));
    let has_bad = !matches!(keys.fields, Fields::Line | Fields::Rows(_)) || keys.refuses_keys();
    let is_table = matches!(keys.fields, Fields::Rows(_));
    json_text
        || rules.comment.is_some() && !is_table
        || rules.skip_bad && has_bad
        || rules.nulls == Alike::Drop && has_nulls
        || rules.empty == Alike::Drop
}
