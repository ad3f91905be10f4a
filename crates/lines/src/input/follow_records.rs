//! The records of followed files: where they end, and the headers before them.
//!
//! A CSV record ends with a line end outside of quotes, so a record whose quotes are still open is not
//! whole. The header of the first file is returned once. The other files, and those that replace a
//! file, begin with the same header, which is skipped; a file that replaces another may also begin
//! with a record.

use std::io;
use std::path::{Path, PathBuf};

use super::header::MARK;
use crate::error::{Error, Result};
use crate::keys::{
    Column, Columns, Dialect, EndScan, Fields, KeySpec, field_values, guess_separator,
};

/// Maximum length of a record whose end is not written yet.
pub(super) const LONGEST_RECORD: usize = 16 << 20;

/// How the records of all followed files end and begin.
pub(super) struct RecordRules {
    delimiter: u8,
    csv: Option<CsvRules>,
}

struct CsvRules {
    /// How the records are written; `None` until the first records of a file show it.
    dialect: Option<Dialect>,
    /// The columns of the key, with their names.
    columns: Columns,
    /// The file whose first record was returned first, and the fields of that record.
    first: Option<(PathBuf, Vec<Vec<u8>>)>,
}

impl RecordRules {
    /// Returns the rules of files whose records have these keys.
    ///
    /// # Errors
    /// If the fields of CSV files are separated by different bytes.
    pub(super) fn new(paths: &[PathBuf], keys: &KeySpec, delimiter: u8) -> Result<Self> {
        let Fields::Columns(columns) = &keys.fields else {
            return Ok(Self { delimiter, csv: None });
        };
        let dialect_of = |path: &PathBuf| columns.dialect_of(&path.to_string_lossy());
        let dialect = paths.iter().find_map(dialect_of);
        let differs = |path: &&PathBuf| dialect_of(path).is_some_and(|own| Some(own) != dialect);
        if let Some(other) = paths.iter().find(differs) {
            let problem = "its fields are separated by another byte than those of the first file; \
                           follow it on its own";
            return Err(Error::read(&other.to_string_lossy(), unfit(problem.to_owned())));
        }
        let csv = CsvRules { dialect, columns: columns.clone(), first: None };
        Ok(Self { delimiter, csv: Some(csv) })
    }
}

impl CsvRules {
    /// Returns the dialect, which follows from the first bytes of a file if that is not known yet.
    /// `None` if more bytes are needed. A reader of the records that are returned comes to the same
    /// result, because they begin with these bytes.
    fn dialect(&mut self, path: &Path, bytes: &[u8], ended: bool) -> io::Result<Option<Dialect>> {
        if self.dialect.is_none() {
            let first = bytes.strip_prefix(MARK).unwrap_or(bytes);
            let separator = guess_separator(first, ended, |byte| self.columns.dialect(byte))
                .map_err(|two| Error::ambiguous_separator(&path.to_string_lossy(), two))
                .map_err(io::Error::other)?;
            self.dialect = separator.map(|separator| self.columns.dialect(separator));
        }
        Ok(self.dialect)
    }

    /// Returns the number of bytes to skip at the start of a file that begins with `records`.
    /// `replaced`: the file has taken the place of another.
    fn skipped(&mut self, path: &Path, records: &[u8], replaced: bool) -> io::Result<usize> {
        let mark = if records.starts_with(MARK) { MARK.len() } else { 0 };
        let first = &records[mark..];
        let dialect = self.dialect.unwrap_or(Dialect::RFC);
        let end = EndScan::new(dialect).first(first).unwrap_or(first.len());
        let fields = field_values(&first[..end], dialect);
        let Some((file, header)) = &self.first else {
            self.first = Some((path.to_owned(), fields));
            return Ok(0);
        };
        if !self.columns.has_header() {
            return Ok(mark);
        }
        if fields == *header {
            return Ok((mark + end + 1).min(records.len()));
        }
        if replaced && !self.is_header(dialect, &first[..end]) {
            return Ok(mark);
        }
        Err(unfit(match replaced {
            true => "it was replaced by a file with another header; start again".to_owned(),
            false => {
                format!("its header differs from that of {}; follow it on its own", file.display())
            }
        }))
    }

    /// Returns whether a record has the names of all columns of the key.
    fn is_header(&self, dialect: Dialect, record: &[u8]) -> bool {
        let is_name = |column: &Column| matches!(column, Column::Name(_));
        self.columns.columns.iter().any(is_name)
            && self.columns.resolved(dialect, Some(record)).is_ok()
    }
}

/// The start of a record of one file whose end is not written yet.
pub(super) struct Partial {
    pub(super) bytes: Vec<u8>,
    /// Bytes at the start that have no end of a record.
    searched: usize,
    /// Finds the ends of CSV records; after the bytes that were searched.
    scan: Option<EndScan>,
    /// Whether no record of the file was whole yet.
    first: bool,
    /// Whether the file has taken the place of another.
    replaced: bool,
}

impl Partial {
    /// At the start of a file.
    pub(super) fn new() -> Self {
        Self { bytes: Vec::new(), searched: 0, scan: None, first: true, replaced: false }
    }

    /// Moves the whole records to `records`. `ended`: no bytes will be added.
    pub(super) fn take_whole(
        &mut self,
        path: &Path,
        ended: bool,
        rules: &mut RecordRules,
        records: &mut Vec<u8>,
    ) -> io::Result<()> {
        if let (None, Some(csv)) = (self.scan, &mut rules.csv) {
            let Some(dialect) = csv.dialect(path, &self.bytes, ended)? else { return Ok(()) };
            self.scan = Some(EndScan::new(dialect));
        }
        let from = std::mem::replace(&mut self.searched, self.bytes.len());
        let end = match &mut self.scan {
            Some(scan) => scan.last(&self.bytes[from..]),
            None => memchr::memrchr(rules.delimiter, &self.bytes[from..]),
        };
        let Some(end) = end.map(|end| from + end + 1) else {
            let (what, longest) = (self.what(), LONGEST_RECORD >> 20);
            return match self.bytes.len() > LONGEST_RECORD {
                true => {
                    Err(unfit(format!("its last {what} has more than {longest} MiB and no end")))
                }
                false => Ok(()),
            };
        };
        let skipped = match &mut rules.csv {
            Some(csv) if self.first => csv.skipped(path, &self.bytes[..end], self.replaced)?,
            _ => 0,
        };
        self.first = false;
        records.extend_from_slice(&self.bytes[skipped..end]);
        self.bytes.drain(..end);
        self.searched = self.bytes.len();
        Ok(())
    }

    /// Ends an incomplete record, because its file is replaced by another.
    ///
    /// # Errors
    /// If a quote is open.
    pub(super) fn end(
        &mut self,
        path: &Path,
        rules: &mut RecordRules,
        records: &mut Vec<u8>,
    ) -> io::Result<()> {
        if !self.bytes.is_empty() {
            self.bytes.push(rules.delimiter);
            self.take_whole(path, true, rules, records)?;
        }
        if !self.bytes.is_empty() {
            let problem = "a quote in its last record was not closed when it was replaced; start \
                           again to read the new file";
            return Err(unfit(problem.to_owned()));
        }
        *self = Self { replaced: true, ..Self::new() };
        Ok(())
    }

    fn what(&self) -> &'static str {
        if self.scan.is_some() { "record" } else { "line" }
    }
}

pub(super) fn unfit(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, problem)
}
