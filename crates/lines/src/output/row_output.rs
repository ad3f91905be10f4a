//! Outputs of a job: its records, or their keys as lines.
//!
//! A job prints frames of rows as it prints lines. An output of rows takes their numbers and passes them
//! to the writer of the format; an output of keys takes the keys of frames or lines. Both may come in
//! pieces of any size.

use std::io::{self, Write};
use std::sync::Arc;

use super::Outputs;
use crate::error::{Advice, Error, ErrorKind, Result, Setting};
use crate::input::Input;
use crate::keys::rows::{self, FrameScan, Part, RowId};
use crate::keys::{Dialect, Fields, json_text};
use crate::scan::RecordEnds;
use crate::tables::{RowWriter, Table};

/// How rows are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowFormat {
    /// As the text of their keys, one per line, as lines are then.
    pub(crate) keys_only: bool,
    /// Whether the outputs take binary data.
    pub(crate) binary: bool,
    /// How the texts of several keys are written.
    pub(crate) dialect: Dialect,
    pub(crate) delimiter: u8,
    /// Memory for reading and writing rows.
    pub(crate) memory: u64,
}

/// The outputs of a job: as the caller gave them if records are lines.
pub(crate) struct RowOutputs<'a> {
    kept: Option<Sink<'a>>,
    rest: Option<Sink<'a>>,
}

impl<'a> RowOutputs<'a> {
    /// Returns outputs for the records of these inputs.
    ///
    /// # Errors
    /// If rows of different tables would follow one another, or the outputs do not take rows; if keys at
    /// different places would be printed.
    pub(crate) fn new(outputs: Outputs<'a>, inputs: &[Input], format: RowFormat) -> Result<Self> {
        let both = outputs.kept.is_some() && outputs.rest.is_some();
        let memory = if both { format.memory / 2 } else { format.memory };
        let format = RowFormat { memory, ..format };
        let sink = |sink: Option<_>, failed: fn(io::Error) -> Error| {
            let sink = sink.map(|sink| Sink::new(sink, inputs, format, failed));
            sink.transpose()
        };
        let kept = sink(outputs.kept, Error::write)?;
        Ok(Self { kept, rest: sink(outputs.rest, Error::write_rest)? })
    }

    /// Writes these bytes to the first output before the first key.
    pub(crate) fn begin_with(&mut self, bytes: Vec<u8>) {
        match self.kept.as_mut().map(|sink| &mut sink.to) {
            Some(To::Keys(keys)) => keys.before = bytes,
            Some(To::RecordKeys(keys)) => keys.before = bytes,
            _ => {}
        }
    }

    /// Returns the outputs for a printer of records.
    pub(crate) fn outputs(&mut self) -> Outputs<'_> {
        Outputs {
            kept: self.kept.as_mut().map(|sink| sink as &mut (dyn Write + Send)),
            rest: self.rest.as_mut().map(|sink| sink as &mut (dyn Write + Send)),
        }
    }

    /// Writes the ends of the files.
    pub(crate) fn finish(self) -> Result<()> {
        for sink in self.kept.into_iter().chain(self.rest) {
            let failed = sink.failed;
            sink.finish().map_err(failed)?;
        }
        Ok(())
    }
}

/// One output.
struct Sink<'a> {
    to: To<'a>,
    scan: FrameScan,
    /// Converts an error of writing.
    failed: fn(io::Error) -> Error,
}

enum To<'a> {
    /// Records are lines.
    Lines(&'a mut (dyn Write + Send)),
    Rows(Box<dyn RowWriter + 'a>),
    Keys(KeyLines<'a>),
    RecordKeys(RecordKeys<'a>),
}

impl<'a> Sink<'a> {
    fn new(
        sink: &'a mut (dyn Write + Send),
        inputs: &[Input],
        format: RowFormat,
        failed: fn(io::Error) -> Error,
    ) -> Result<Self> {
        let own = |to| Ok(Self { to, scan: FrameScan::default(), failed });
        let mut tables = inputs.iter().filter_map(Input::table);
        let Some(first) = tables.next() else {
            let keys = match format.keys_only {
                true => KeyLine::of(inputs, format.dialect, format.delimiter)?,
                false => None,
            };
            return own(match (keys, inputs.first()) {
                (Some(keys), Some(first)) => To::RecordKeys(RecordKeys {
                    sink,
                    keys,
                    ends: RecordEnds::of(first, format.delimiter),
                    record: Vec::new(),
                    before: Vec::new(),
                    lines: Vec::new(),
                }),
                _ => To::Lines(sink),
            });
        };
        if let Some(lines) = inputs.iter().find(|input| !input.is_table()) {
            let first = &first.source().name;
            return Err(Error::different_tables(lines.name(), first, "has lines, not rows"));
        }
        if format.keys_only {
            let RowFormat { dialect, delimiter, .. } = format;
            let several = first.key_columns() > 1;
            let all = inputs.iter().filter_map(Input::table);
            let names = all.map(|table| table.source().name.clone()).collect();
            return own(To::Keys(KeyLines {
                sink,
                names,
                dialect: several.then_some(dialect),
                delimiter,
                id: None,
                key: Vec::new(),
                before: Vec::new(),
                lines: Vec::new(),
            }));
        }
        if !format.binary {
            let format = first.source().kind.name();
            let problem = format!("its rows are binary data in {format}, not text");
            return Err(Error::new(ErrorKind::Output, problem)
                .of(&first.source().name)
                .advise(Advice::Specify(Setting::Output))
                .advise(Advice::Enable(Setting::KeysOnly)));
        }
        tables.try_for_each(|other| other.refuse_rows_after(first))?;
        let tables = inputs.iter().filter_map(Input::table).map(Arc::clone).collect();
        own(To::Rows(Table::writer(tables, sink, format.memory)?))
    }

    fn finish(self) -> io::Result<()> {
        match self.to {
            To::Rows(mut rows) => rows.finish(),
            To::Keys(mut keys) => keys.write(),
            To::RecordKeys(keys) => keys.finish(),
            To::Lines(_) => Ok(()),
        }
    }
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        match &mut self.to {
            To::Lines(sink) => return sink.write(bytes),
            To::RecordKeys(keys) => keys.add(bytes)?,
            To::Rows(rows) => {
                while let Some(part) = self.scan.next(&mut rest) {
                    if let Part::Row(id) = part {
                        rows.add(id)?;
                    }
                }
            }
            To::Keys(keys) => {
                while let Some(part) = self.scan.next(&mut rest) {
                    keys.add(part)?;
                }
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::Lines(sink) => sink.flush(),
            To::Keys(keys) => {
                keys.write()?;
                keys.sink.flush()
            }
            To::RecordKeys(keys) => {
                keys.write()?;
                keys.sink.flush()
            }
            // The file is complete only at its end.
            To::Rows(_) => Ok(()),
        }
    }
}

/// Writes keys as lines.
struct KeyLines<'a> {
    sink: &'a mut (dyn Write + Send),
    /// The names of the tables.
    names: Vec<String>,
    /// How fields are written, if a key has several columns.
    dialect: Option<Dialect>,
    delimiter: u8,
    id: Option<RowId>,
    key: Vec<u8>,
    /// Bytes that precede the first line.
    before: Vec<u8>,
    /// Lines that are not written yet.
    lines: Vec<u8>,
}

impl KeyLines<'_> {
    fn add(&mut self, part: Part<'_>) -> io::Result<()> {
        match part {
            Part::Row(id) => {
                self.id = Some(id);
                self.key.clear();
                Ok(())
            }
            Part::Key(bytes) => {
                self.key.extend_from_slice(bytes);
                Ok(())
            }
            Part::End => {
                self.lines.append(&mut self.before);
                let written =
                    write_key(&self.key, self.dialect, as_is, self.delimiter, &mut self.lines);
                if let Err(problem) = written {
                    let id = self.id.unwrap_or(RowId { table: 0, row: 0 });
                    let name = self.names.get(id.table as usize).map_or("", String::as_str);
                    let problem = format!("the key of row {}: {problem}", id.row + 1);
                    return Err(io::Error::other(Error::unusable_column(name, problem)));
                }
                self.lines.push(self.delimiter);
                if self.lines.len() >= BLOCK { self.write() } else { Ok(()) }
            }
        }
    }

    fn write(&mut self) -> io::Result<()> {
        self.sink.write_all(&self.lines)?;
        self.lines.clear();
        Ok(())
    }
}

/// Writes the keys of records that are lines.
struct RecordKeys<'a> {
    sink: &'a mut (dyn Write + Send),
    keys: KeyLine,
    ends: RecordEnds,
    /// The beginning of a record.
    record: Vec<u8>,
    /// Bytes that precede the first line.
    before: Vec<u8>,
    /// Lines that are not written yet.
    lines: Vec<u8>,
}

impl RecordKeys<'_> {
    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut begun = std::mem::take(&mut self.record);
        let mut rest = bytes;
        if !begun.is_empty() {
            begun.extend_from_slice(bytes);
            rest = &begun;
        }
        while let Some(length) = self.ends.first(rest) {
            self.lines.append(&mut self.before);
            self.keys.append(&rest[..length], &mut self.lines)?;
            self.lines.push(self.keys.delimiter);
            rest = &rest[length + 1..];
        }
        self.record = rest.to_vec();
        if self.lines.len() >= BLOCK { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> io::Result<()> {
        self.sink.write_all(&self.lines)?;
        self.lines.clear();
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        if !self.record.is_empty() {
            return Err(io::Error::other("the last record has no end"));
        }
        self.write()
    }
}

/// How the keys of records are printed as lines.
#[derive(Clone, Debug)]
pub(crate) struct KeyLine {
    fields: Fields,
    /// How fields are written, if a key has several.
    pub(crate) dialect: Option<Dialect>,
    delimiter: u8,
    /// The input, if there is only one.
    input: Option<String>,
    key: Vec<u8>,
}

impl KeyLine {
    /// Returns how the keys of these inputs are printed. `dialect`: how several fields are, unless they are
    /// of CSV.
    ///
    /// # Errors
    /// If the inputs have their keys at different places.
    pub(crate) fn of(inputs: &[Input], dialect: Dialect, delimiter: u8) -> Result<Option<Self>> {
        let Some(first) = inputs.first() else { return Ok(None) };
        let fields = &first.keys().fields;
        if let Some(other) = inputs.iter().find(|input| input.keys().fields != *fields) {
            let name = first.name();
            let problem = format!("its keys are at another place than those of {name}");
            return Err(Error::input(other.name(), problem).advise(Advice::Omit(Setting::KeysOnly)));
        }
        let dialect = first.csv_dialect().unwrap_or(dialect);
        Ok(Some(Self {
            fields: fields.clone(),
            dialect: (fields.count() > 1).then_some(dialect),
            delimiter,
            input: (inputs.len() == 1).then(|| first.name().to_owned()),
            key: Vec::new(),
        }))
    }

    /// Appends the key of a record to a line.
    ///
    /// # Errors
    /// If it is no line.
    pub(crate) fn append(&mut self, record: &[u8], line: &mut Vec<u8>) -> io::Result<()> {
        self.key.clear();
        let text: fn(&[u8]) -> &[u8] =
            if self.fields.json_values().is_some() { json_text } else { as_is };
        let written = self.fields.append(record, &mut self.key).and_then(|()| {
            let written = write_key(&self.key, self.dialect, text, self.delimiter, line);
            written.map_err(|problem| format!("a key {problem}: {}", shown(&self.key)))
        });
        written.map_err(|problem| {
            let error = match &self.input {
                Some(input) => Error::input(input, problem),
                None => Error::new(ErrorKind::Output, problem),
            };
            io::Error::other(error.advise(Advice::Omit(Setting::KeysOnly)))
        })
    }
}

/// Returns the beginning of a key, for an error.
fn shown(key: &[u8]) -> String {
    let dots = if key.len() > SHOWN { "..." } else { "" };
    format!("'{}{dots}'", key[..key.len().min(SHOWN)].escape_ascii())
}

/// Bytes of a key that an error shows.
const SHOWN: usize = 40;

/// Bytes of lines that are written at a time.
const BLOCK: usize = 64 << 10;

/// Returns a field as it is.
fn as_is(field: &[u8]) -> &[u8] {
    field
}

/// Appends a key as a line: that of one field as it is; with `dialect` those of several fields as a CSV
/// record. `text` returns the text of a field.
///
/// # Errors
/// If the key of one column contains the delimiter, or a field what its dialect cannot write.
fn write_key(
    key: &[u8],
    dialect: Option<Dialect>,
    text: fn(&[u8]) -> &[u8],
    delimiter: u8,
    line: &mut Vec<u8>,
) -> std::result::Result<(), &'static str> {
    let Some(dialect) = dialect else {
        let key = text(key);
        line.extend_from_slice(key);
        return match memchr::memchr(delimiter, key) {
            Some(_) => Err("has a line end, so it cannot be printed as a line"),
            None => Ok(()),
        };
    };
    let Dialect { separator, quote, escape } = dialect;
    let is_special = |byte: u8| {
        [separator, b'\n', b'\r', delimiter].contains(&byte)
            || quote.into_iter().chain(escape).any(|special| special == byte)
    };
    for (number, field) in rows::fields(key).map(text).enumerate() {
        if number > 0 {
            line.push(separator);
        }
        if !field.iter().any(|&byte| is_special(byte)) {
            line.extend_from_slice(field);
            continue;
        }
        if dialect.is_lines() {
            return Err("has a separator or a line end in a field, which needs a quote");
        }
        line.extend(quote);
        for &byte in field {
            let before = match quote {
                Some(quote) if byte == quote => Some(quote),
                Some(_) => escape.filter(|escape| *escape == byte),
                None => escape.filter(|_| is_special(byte)),
            };
            line.extend(before);
            line.push(byte);
        }
        line.extend(quote);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{Columns, Quoting, csv_records};

    /// What is written is read with the same settings.
    #[test]
    fn keys_of_several_columns_are_read_as_they_were() {
        let fields: [&[u8]; 8] =
            [b"", b"a", b"\"", b"a,\"b", b"x\ty", b"\\", b"two\nlines\\", b"c\r"];
        for (separator, quoting, escape) in [
            (b',', Quoting::BySeparator, None),
            (b'\t', Quoting::Byte(b'\''), None),
            (b',', Quoting::BySeparator, Some(b'\\')),
            (b'\t', Quoting::None, Some(b'\\')),
        ] {
            let columns = Columns::parse_list("2,1").unwrap();
            let separator = Some(separator);
            let columns = Columns { columns, separator, quoting, escape, header: false };
            let dialect = columns.dialect_of("").unwrap();
            for (first, second) in fields.iter().flat_map(|a| fields.map(|b| (*a, b))) {
                let key = |fields: [&[u8]; 2]| {
                    let length = |field: &[u8]| (field.len() as u32).to_le_bytes();
                    fields.map(|field| [&length(field)[..], field].concat()).concat()
                };
                let mut line = Vec::new();
                write_key(&key([first, second]), Some(dialect), as_is, b'\n', &mut line).unwrap();
                line.push(b'\n');
                let records = csv_records(&line, dialect, 9);
                assert_eq!(records.len(), 1, "{dialect:?} {line:?}");
                let fields = crate::keys::Fields::Columns(columns.clone());
                let spec = crate::keys::KeySpec { fields, ..Default::default() };
                let shown = String::from_utf8_lossy(&line);
                assert_eq!(spec.key(records[0]).unwrap(), key([second, first]), "{shown:?}");
            }
        }
        // TSV has neither quotes nor escapes.
        let tsv = Columns::default().dialect_of("a.tsv");
        for (key, is_written) in [(&b"\x01\0\0\0a"[..], true), (b"\x01\0\0\0\t", false)] {
            assert_eq!(write_key(key, tsv, as_is, b'\n', &mut Vec::new()).is_ok(), is_written);
        }
    }
}
