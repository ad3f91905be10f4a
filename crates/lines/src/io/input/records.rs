//! How the keys of an input are made: what precedes its records, and tables.

use std::io;
use std::sync::Arc;

use super::range_reader::RangeReader;
use super::{Input, Open};
use crate::error::{Advice, Error, Result, Setting};
use crate::io::byte_range::ByteRange;
use crate::io::header::Start;
use crate::io::input_file::InputFile;
use crate::io::open::InputKind;
use crate::io::stream::Chained;
use crate::io::tables::{Shares, Table, TableSource};
use crate::keys::{Columns, Dialect, Fields, HeaderProblem, KeySpec, Keys, RowKeys};
use crate::progress::Progress;

impl Input {
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
        let start = self.read_start(Some(columns), longest, memory, progress)?;
        let (dialect, header) = (start.dialect.unwrap_or(Dialect::RFC), start.header.as_deref());
        self.guessed = start.guessed;
        let columns = match columns.resolved(dialect, header) {
            Ok(columns) => columns,
            // An empty input has no header and no records.
            Err(_) if columns.has_header() && header.is_none() => columns.in_dialect(dialect),
            Err(HeaderProblem { text, repeated }) => {
                let error = Error::input(&self.name, text);
                return Err(match repeated {
                    true => error.advise("name the column by its number"),
                    false => error
                        .advise(Advice::Change(Setting::Columns))
                        .advise(Advice::Change(Setting::Separator)),
                });
            }
        };
        let keys = KeySpec { fields: Fields::Columns(columns), ..KeySpec::clone(keys) };
        let lines_of = |header: &Vec<u8>| 1 + memchr::memchr_iter(b'\n', header).count() as u64;
        self.first_line = Some(1 + start.header.as_ref().map_or(0, lines_of));
        let records = start.header.iter().map(|header| (0, &header[..]));
        self.found.look_at(&keys, records, &Keys::default());
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
        shares: &Shares,
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
            shares: Arc::clone(shares),
            limit,
        };
        let table = Arc::new(Table::open(source, columns, memory)?);
        let fields = Fields::Rows(RowKeys::new(table.key_columns()));
        let transforms = self.keys.transforms.clone();
        self.keys = Arc::new(KeySpec { fields, transforms });
        self.table = Some(table);
        Ok(self)
    }

    /// Reads a byte order mark, and with `columns` the dialect and a header of CSV. The input then
    /// begins after them.
    fn read_start(
        &mut self,
        columns: Option<&Columns>,
        longest: u64,
        memory: u64,
        progress: &dyn Progress,
    ) -> Result<Start> {
        let mut stream = match self.open(memory, progress)? {
            Open::Stream(stream) => stream,
            Open::File { file, whole, .. } => Box::new(RangeReader::new(file, whole, None)),
        };
        let start = Start::read(stream.as_mut(), &self.name, columns, longest, progress);
        if let InputKind::Stream(place) = &self.kind {
            let mut start = start?;
            self.skipped = start.length as u64;
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
}
