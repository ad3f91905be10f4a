//! The arguments that say which bytes of a record are its key.

use std::path::PathBuf;
use std::sync::Arc;

use petal_lines::{
    Alike, Column, Columns, Dialect, Fields, JsonPointer, JsonValues, KeySpec, Quoting,
    RecordRules, Source, csv_records,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::transforms::transforms;
use crate::memory::py_bytes;

/// The arguments for the keys of records.
#[derive(FromPyObject)]
#[pyo3(crate = "crate::files::plain", from_item_all)]
pub(super) struct KeyArgs {
    column: Vec<ColumnArg>,
    /// The byte between columns.
    separator: Option<u8>,
    /// The byte around fields; `-1` for none.
    quote: Option<i16>,
    /// The byte after this one has no special meaning.
    escape: Option<u8>,
    header: bool,
    json_key: Vec<String>,
    /// Names of transforms, separated by commas.
    key_transform: String,
    skip_bad: bool,
    pub(super) bad_file: Option<PathBuf>,
    /// How keys without a value compare: 0 to 2, in the order of [`ALIKE`].
    nulls: usize,
    empty: usize,
    comment: Option<Vec<u8>>,
    skip_lines: u64,
}

const ALIKE: [Alike; 3] = [Alike::One, Alike::Distinct, Alike::Drop];

/// A column by its number, counted from 1, or by its name.
#[derive(FromPyObject)]
enum ColumnArg {
    Number(usize),
    Name(String),
}

impl KeyArgs {
    /// Returns how the key of a record is made.
    pub(super) fn spec(&self) -> PyResult<KeySpec> {
        let transforms = transforms(&self.key_transform)?;
        let alike = |number: usize| ALIKE.get(number).copied().unwrap_or_default();
        let records = RecordRules {
            skip_lines: self.skip_lines,
            comment: self.comment.clone(),
            skip_bad: self.skip_bad,
            nulls: alike(self.nulls),
            empty: alike(self.empty),
        };
        let csv = self.csv()?;
        Ok(KeySpec { fields: self.fields(&csv)?, csv, transforms, records })
    }

    fn fields(&self, csv: &Columns) -> PyResult<Fields> {
        if !self.json_key.is_empty() {
            return json_fields(&self.json_key);
        }
        if self.column.is_empty() {
            return Ok(Fields::Line);
        }
        let column = |column: &ColumnArg| match column {
            ColumnArg::Number(number) => Column::Number(*number),
            ColumnArg::Name(name) => Column::Name(name.clone()),
        };
        let columns = self.column.iter().map(column).collect();
        Ok(Fields::Columns(Columns { columns, ..csv.clone() }))
    }

    /// Returns how columns are read, without their names.
    fn csv(&self) -> PyResult<Columns> {
        let quoting = match self.quote {
            None => Quoting::BySeparator,
            Some(quote) => u8::try_from(quote).map_or(Quoting::None, Quoting::Byte),
        };
        let Self { separator, escape, header, .. } = *self;
        let csv = Columns { columns: Vec::new(), separator, quoting, escape, header };
        let invalid =
            |problem| PyValueError::new_err(format!("separator=, quote=, escape=: {problem}"));
        csv.check().map_err(invalid)?;
        Ok(csv)
    }
}

/// Returns the values at JSON pointers as the fields of a key.
pub(crate) fn json_fields(pointers: &[String]) -> PyResult<Fields> {
    let pointer = |text: &String| {
        let problem = |problem| PyValueError::new_err(format!("json_key=: {problem}"));
        text.parse::<JsonPointer>().map_err(problem)
    };
    let pointers = pointers.iter().map(pointer).collect::<PyResult<_>>()?;
    Ok(Fields::Json(JsonValues(pointers)))
}

/// The separator, the quote and the escape of CSV records.
type DialectBytes = (u8, Option<u8>, Option<u8>);

/// How Python reads CSV from the unnamed file of a report: the dialect, and whether the first record is
/// a header. `None`: the file has lines.
pub(super) type CsvOutput = Option<(DialectBytes, bool)>;

/// Returns how Python reads the records of these inputs, which have one separator. `found`: the
/// separators that inputs were found to have.
pub(super) fn csv_output(
    keys: &Arc<KeySpec>,
    inputs: &[Source],
    found: &[(String, u8)],
    keys_only: bool,
) -> CsvOutput {
    let first = inputs.first()?.keys(keys);
    let Fields::Columns(columns) = &first.fields else { return None };
    if keys_only {
        let separator = columns.separator.or(Some(b','));
        let dialect = Columns { separator, ..columns.clone() }.dialect_of("")?;
        let bytes = (dialect.separator, dialect.quote, dialect.escape);
        return (columns.columns.len() > 1).then_some((bytes, false));
    }
    let name = inputs.first()?.place().to_string();
    let dialect = columns.dialect_of(&name).or_else(|| {
        let found = found.iter().find(|(input, _)| *input == name);
        let separator = Some(found.map_or(b',', |(_, separator)| *separator));
        Columns { separator, ..columns.clone() }.dialect_of(&name)
    })?;
    let has_header = |input: &Source| match &input.keys(keys).fields {
        Fields::Columns(columns) => columns.has_header(),
        _ => false,
    };
    let bytes = (dialect.separator, dialect.quote, dialect.escape);
    Some((bytes, inputs.iter().any(has_header)))
}

/// Returns the complete CSV records at the start of a text, without their LF, and the position of
/// the next record.
#[pyfunction]
#[pyo3(name = "_csv_records")]
pub(super) fn csv_records_of<'py>(
    py: Python<'py>,
    text: &[u8],
    dialect: DialectBytes,
) -> PyResult<(Bound<'py, PyList>, usize)> {
    let (separator, quote, escape) = dialect;
    let (list, mut end) = (PyList::empty(py), 0);
    for record in csv_records(text, Dialect { separator, quote, escape }, usize::MAX) {
        list.append(py_bytes(py, record)?)?;
        end += record.len() + 1;
    }
    Ok((list, end))
}
