//! How the keys of an input are made: what precedes its records, and tables.

use std::io;
use std::sync::{Arc, PoisonError};

use super::header::{MARK, Start};
use super::open::InputKind;
use super::range_reader::RangeReader;
use super::selected_records::{Ends, SelectedRecords, Selection, is_selective};
use super::stream::Chained;
use super::{Input, Open};
use crate::error::{Advice, Error, Result, Setting};
use crate::files::{ByteRange, InputFile};
use crate::keys::{Dialect, Fields, HeaderProblem, JsonValues, KeySpec, Keys, RowKeys};
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
    // Lines without rules may be read from many places before their first bytes have arrived.
    let has_preamble = keys.records.skip_lines > 0 || keys.records.comment.is_some();
    if matches!(keys.fields, Fields::Line | Fields::Checksum(_)) && !has_preamble {
        return select(input.with_keys(keys), false, longest);
    }
    let start = read_start(&mut input, keys, memory, longest, progress)?;
    let columns = match &keys.fields {
        Fields::Columns(columns) => columns,
        _ => {
            return select(input.with_keys(keys), start.json_text, longest);
        }
    };
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
    let records = start.header.iter().map(|header| (0, &header[..]));
    input.found.look_at(&keys, records, &Keys::default());
    (input.header, input.mark) = (start.header, start.mark);
    select(input.with_keys(&Arc::new(keys)), false, longest)
}

/// Makes an input, whose keys are known, return only the records that its rules leave. `json_text`: they
/// are values of a JSON text. A record may be `longest` bytes long.
pub(crate) fn select(mut input: Input, json_text: bool, longest: u64) -> Result<Input> {
    if !is_selective(&input.keys, json_text) {
        return Ok(input);
    }
    let ends = match (&input.keys.fields, input.csv_dialect()) {
        (fields, _) if json_text => {
            Ends::Json { elements: fields.json_values().is_some_and(JsonValues::are_named) }
        }
        (Fields::Rows(_), _) => Ends::Frame,
        (_, Some(dialect)) => Ends::Csv(dialect),
        _ => Ends::Line,
    };
    let id = match &input.kind {
        InputKind::Named { path, .. } => format!("{path:?} {}", input.keys.fields),
        _ => format!("{} {}", input.name, input.number),
    };
    let selection = Arc::new(Selection {
        name: input.name.clone(),
        id,
        keys: Arc::clone(&input.keys),
        has_fragment: input.has_fragment,
        ends,
        delimiter: input.checks.delimiter(),
        start: (input.byte(0), input.first_line.unwrap_or(1)),
        longest,
        left_out: input.checks.left_out().clone(),
    });
    if let InputKind::Stream(place) = &input.kind {
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        *place = place.take().map(|stream| Box::new(SelectedRecords::new(stream, selection)) as _);
    } else {
        input.portion.start = 0;
        input.selection = Some(selection);
    }
    Ok(input)
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
    input.keys = Arc::new(KeySpec { fields, ..KeySpec::clone(&input.keys) });
    input.table = Some(table);
    select(input, false, longest)
}

/// Reads what precedes the records. The input then begins after it.
fn read_start(
    input: &mut Input,
    keys: &KeySpec,
    memory: u64,
    longest: u64,
    progress: &dyn Progress,
) -> Result<Start> {
    let mut stream = match input.open(memory, progress)? {
        Open::Stream(stream) => stream,
        Open::File { file, whole, .. } => Box::new(RangeReader::new(file, whole, None)),
    };
    let delimiter = input.checks.delimiter();
    let start = Start::read(stream.as_mut(), &input.name, keys, delimiter, longest, progress);
    let mut start = start?;
    // The mark of a first line belongs to it.
    let mark = if start.mark { MARK } else { &[] };
    if start.length == mark.len() as u64 && keys.fields == Fields::Line {
        start.rest.splice(..0, mark.iter().copied());
        start.length = 0;
    }
    input.first_line = Some(1 + start.lines);
    if let InputKind::Stream(place) = &input.kind {
        input.skipped = start.length;
        let rest = std::mem::take(&mut start.rest);
        let place =
            place.lock().map(|mut place| *place = Some(Box::new(Chained::new(rest, stream))));
        place.map_err(|_| Error::read(&input.name, io::Error::other("it was read already")))?;
        return Ok(start);
    }
    (input.begin, input.portion.start) = (start.length, start.length);
    Ok(start)
}
