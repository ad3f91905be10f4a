//! How the keys of an input are made: what precedes its records, and tables.

use std::io;
use std::sync::Arc;

use super::header::Start;
use super::open::InputKind;
use super::range_reader::RangeReader;
use super::stream::Chained;
use super::{Input, Open};
use crate::error::{Advice, Error, Result, Setting};
use crate::files::{ByteRange, InputFile};
use crate::keys::{Columns, Dialect, Fields, HeaderProblem, KeySpec, Keys, RowKeys};
use crate::progress::Progress;
use crate::tables::{Shares, Table, TableSource};

/// Sets how the keys of an input's records are made, and reads what precedes the records: a header
/// of up to `longest` bytes, in which the columns are found. A decoder may use `memory` bytes.
pub(crate) fn read_keys(
    mut input: Input,
    keys: &Arc<KeySpec>,
    longest: u64,
    memory: u64,
    progress: &dyn Progress,
) -> Result<Input> {
    // Rows are found without reading what precedes them.
    if input.is_table() {
        return Ok(input.with_keys(keys));
    }
    let columns = match &keys.fields {
        Fields::Line | Fields::Checksum(_) => return Ok(input.with_keys(keys)),
        Fields::Json(_) => {
            read_start(&mut input, None, longest, memory, progress)?;
            return Ok(input.with_keys(keys));
        }
        Fields::Columns(columns) => columns,
        Fields::Rows(_) => return Ok(input),
    };
    let start = read_start(&mut input, Some(columns), longest, memory, progress)?;
    let (dialect, header) = (start.dialect.unwrap_or(Dialect::RFC), start.header.as_deref());
    input.guessed = start.guessed;
    let columns = match columns.resolved(dialect, header) {
        Ok(columns) => columns,
        // An empty input has no header and no records.
        Err(_) if columns.has_header() && header.is_none() => columns.in_dialect(dialect),
        Err(HeaderProblem { text, repeated }) => {
            let error = Error::input(&input.name, text);
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
    input.first_line = Some(1 + start.header.as_ref().map_or(0, lines_of));
    let records = start.header.iter().map(|header| (0, &header[..]));
    input.found.look_at(&keys, records, &Keys::default());
    (input.header, input.mark) = (start.header, start.mark);
    Ok(input.with_keys(&Arc::new(keys)))
}

/// Opens the table, if the input is one: number `number` of a job with this memory limit. What
/// describes its parts may take `memory` bytes.
pub(crate) fn open_table(
    mut input: Input,
    number: u64,
    longest: u64,
    limit: u64,
    memory: u64,
    shares: &Shares,
) -> Result<Input> {
    let Some(kind) = input.table_kind() else { return Ok(input) };
    let Fields::Columns(columns) = &input.keys.fields else { return Ok(input) };
    let (path, file) = match &input.kind {
        InputKind::Named { path, file, .. } => {
            (Some(path.clone()), file.clone().map(InputFile::File))
        }
        InputKind::OpenFile { file, .. } => (None, Some(file.clone())),
        InputKind::Stream(_) => (None, None),
    };
    let source = TableSource {
        name: input.name.clone(),
        kind,
        path,
        file,
        range: input.range().unwrap_or(ByteRange { start: 0, end: 0 }),
        identity: input.identity().cloned(),
        number,
        delimiter: input.checks.delimiter(),
        longest,
        shares: Arc::clone(shares),
        limit,
    };
    let table = Arc::new(Table::open(source, columns, memory)?);
    let fields = Fields::Rows(RowKeys::new(table.key_columns()));
    let transforms = input.keys.transforms.clone();
    input.keys = Arc::new(KeySpec { fields, transforms });
    input.table = Some(table);
    Ok(input)
}

/// Reads a byte order mark, and with `columns` the dialect and a header of CSV. The input then
/// begins after them.
fn read_start(
    input: &mut Input,
    columns: Option<&Columns>,
    longest: u64,
    memory: u64,
    progress: &dyn Progress,
) -> Result<Start> {
    let mut stream = match input.open(memory, progress)? {
        Open::Stream(stream) => stream,
        Open::File { file, whole, .. } => Box::new(RangeReader::new(file, whole, None)),
    };
    let start = Start::read(stream.as_mut(), &input.name, columns, longest, progress);
    if let InputKind::Stream(place) = &input.kind {
        let mut start = start?;
        input.skipped = start.length as u64;
        let rest = std::mem::take(&mut start.rest);
        let place =
            place.lock().map(|mut place| *place = Some(Box::new(Chained::new(rest, stream))));
        place.map_err(|_| Error::read(&input.name, io::Error::other("it was read already")))?;
        return Ok(start);
    }
    let start = start?;
    (input.begin, input.portion.start) = (start.length as u64, start.length as u64);
    Ok(start)
}
