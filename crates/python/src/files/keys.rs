//! The arguments that say which bytes of a record are its key.

use petal_lines::{Column, Columns, Fields, JsonPointer, JsonValues, KeySpec, Source, csv_records};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::transforms::transforms;
use crate::memory::py_bytes;

/// The arguments for the keys of records.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct KeyArgs {
    column: Vec<ColumnArg>,
    /// The byte between columns.
    separator: Option<u8>,
    header: bool,
    json_key: Vec<String>,
    /// Names of transforms, separated by commas.
    key_transform: String,
}

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
        Ok(KeySpec { fields: self.fields()?, transforms })
    }

    fn fields(&self) -> PyResult<Fields> {
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
        Ok(Fields::Columns(Columns { columns, separator: self.separator, header: self.header }))
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

/// How Python reads CSV from the unnamed file of a report: the byte between fields, and whether the
/// first record is a header. `None`: the file has lines.
pub(super) type CsvOutput = Option<(u8, bool)>;

/// Returns how Python reads the records of these inputs.
///
/// # Errors
/// If inputs have different separators, so that the ends of the records in the file are unknown.
pub(super) fn csv_output(keys: &KeySpec, inputs: &[Source]) -> PyResult<CsvOutput> {
    let Fields::Columns(columns) = &keys.fields else { return Ok(None) };
    let mut separators =
        inputs.iter().map(|input| (input, columns.separator_of(&input.to_string())));
    let Some((first, separator)) = separators.next() else { return Ok(None) };
    match separators.find(|(_, other)| *other != separator) {
        None => Ok(Some((separator, columns.has_header()))),
        Some((other, _)) => Err(PyValueError::new_err(format!(
            "{other}: has another separator than {first}, so a report cannot have the records of \
             both; write them to a file with out=, or specify separator="
        ))),
    }
}

/// Returns the complete CSV records at the start of a text, without their LF, and the position of
/// the next record.
#[pyfunction]
#[pyo3(name = "_csv_records")]
pub(super) fn csv_records_of<'py>(
    py: Python<'py>,
    text: &[u8],
    separator: u8,
) -> PyResult<(Bound<'py, PyList>, usize)> {
    let (list, mut end) = (PyList::empty(py), 0);
    for record in csv_records(text, separator, usize::MAX) {
        list.append(py_bytes(py, record)?)?;
        end += record.len() + 1;
    }
    Ok((list, end))
}
