//! Fingerprints of keys in tables: 128 keyed bits that stand for a row's key where data is spread
//! over machines, and filters of them.
//!
//! A column's fingerprint is that of its key's bytes, or 16 zero bytes where it is null, which no
//! key has. Several columns have the fingerprint of their fingerprints in a row, which have one
//! length and so cannot run into each other. Fingerprints decide, as in the file engine; their
//! first 64 bits go into filters as they are, for they are a hash already.
//!
//! Cost: some 20 ns a key of 64 bytes, and a probe of a filter.

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use petal::Answers;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::arrow;
use crate::error::Raise as _;
use crate::filter::Filter;

/// Bytes of a fingerprint.
const BYTES: usize = 16;

/// Fingerprints that go through a filter at once; whole words of answers.
const AT_ONCE: usize = 8192;

/// The fingerprints of the rows of columns of one length, 16 bytes each, one after the other.
#[pyfunction]
fn fingerprints<'py>(
    py: Python<'py>,
    columns: Vec<Bound<'py, PyAny>>,
    key: [u8; 16],
) -> PyResult<Bound<'py, PyBytes>> {
    let columns = columns.iter().map(arrow::take).collect::<PyResult<Vec<_>>>()?;
    let rows = columns.first().map_or(0, |column| column.len());
    if columns.iter().any(|column| column.len() != rows) {
        return Err(PyValueError::new_err("fingerprints: expected columns of one length"));
    }
    let prints = py.detach(|| {
        let each = columns.iter().map(|column| of_column(column, key));
        let mut each = each.collect::<PyResult<Vec<_>>>()?;
        if each.len() < 2 {
            return Ok(each.pop().unwrap_or_default());
        }
        let row = |at| each.iter().flat_map(move |all| &all[at * BYTES..(at + 1) * BYTES]);
        let together: Vec<u8> = (0..rows).flat_map(row).copied().collect();
        let mut prints = Vec::with_capacity(rows * BYTES);
        petal_lines::fingerprints(key, together.chunks_exact(each.len() * BYTES), &mut prints);
        PyResult::Ok(prints)
    })?;
    Ok(PyBytes::new(py, &prints))
}

fn of_column(column: &ArrayRef, key: [u8; 16]) -> PyResult<Vec<u8>> {
    let mut prints = Vec::with_capacity(column.len() * BYTES);
    let out = &mut prints;
    // What stands where a column is null is looked at, and overwritten below.
    match column.data_type() {
        DataType::Utf8 => {
            let keys = column.as_string::<i32>();
            petal_lines::fingerprints(key, keys.iter().map(|k| k.unwrap_or("").as_bytes()), out);
        }
        DataType::LargeUtf8 => {
            let keys = column.as_string::<i64>();
            petal_lines::fingerprints(key, keys.iter().map(|k| k.unwrap_or("").as_bytes()), out);
        }
        DataType::Binary => {
            let keys = column.as_binary::<i32>();
            petal_lines::fingerprints(key, keys.iter().map(Option::unwrap_or_default), out);
        }
        DataType::LargeBinary => {
            let keys = column.as_binary::<i64>();
            petal_lines::fingerprints(key, keys.iter().map(Option::unwrap_or_default), out);
        }
        DataType::Int64 => {
            let numbers = column.as_primitive::<Int64Type>().values();
            let keys: Vec<_> = numbers.iter().map(|number| number.to_le_bytes()).collect();
            petal_lines::fingerprints(key, keys.iter().map(|key| &key[..]), out);
        }
        other => {
            return Err(PyTypeError::new_err(format!(
                "a key column of {other}: expected string, binary or int64; cast it"
            )));
        }
    }
    if let Some(nulls) = column.nulls() {
        for at in (0..column.len()).filter(|&at| nulls.is_null(at)) {
            prints[at * BYTES..(at + 1) * BYTES].fill(0);
        }
    }
    Ok(prints)
}

/// Puts fingerprints into a filter.
#[pyfunction]
fn add_prints(filter: &Bound<'_, Filter>, prints: PyBackedBytes) -> PyResult<()> {
    let mut held = filter.get().write(filter.py())?;
    let (face, mut new) = (held.face_mut()?, Answers::new());
    pieces(&prints).try_for_each(|hashes| {
        face.insert_hashes(&hashes, &mut new).map_err(|error| error.raise())
    })
}

/// Puts fingerprints into a filter, and those that it may have had already into another.
#[pyfunction]
fn add_prints_twice(
    seen: &Bound<'_, Filter>,
    twice: &Bound<'_, Filter>,
    prints: PyBackedBytes,
) -> PyResult<()> {
    let py = seen.py();
    if seen.is(twice) {
        return Err(PyValueError::new_err("add_prints_twice: expected two filters, found one"));
    }
    let (mut seen, mut twice) = (seen.get().write(py)?, twice.get().write(py)?);
    let (seen, twice) = (seen.face_mut()?, twice.face_mut()?);
    let (mut new, mut again) = (Answers::new(), Answers::new());
    pieces(&prints).try_for_each(|hashes| {
        seen.insert_hashes(&hashes, &mut new).map_err(|error| error.raise())?;
        let had = (0..hashes.len()).filter(|&at| !new.get(at));
        let had: Vec<_> = had.map(|at| hashes[at]).collect();
        twice.insert_hashes(&had, &mut again).map_err(|error| error.raise())
    })
}

/// Which fingerprints may be in a filter: a bitmap as Arrow has it.
#[pyfunction]
fn prints_found<'py>(
    filter: &Bound<'py, Filter>,
    prints: PyBackedBytes,
) -> PyResult<Bound<'py, PyBytes>> {
    let held = filter.get().read(filter.py())?;
    let mut found = Answers::new();
    let mut bitmap = Vec::with_capacity(prints.len() / BYTES / 8 + 8);
    for hashes in pieces(&prints) {
        held.face().contains_hashes(&hashes, &mut found);
        bitmap.extend(found.as_words().iter().flat_map(|word| word.to_le_bytes()));
    }
    Ok(PyBytes::new(filter.py(), &bitmap))
}

/// What goes into filters of fingerprints: their first 64 bits, piece by piece.
fn pieces(prints: &[u8]) -> impl Iterator<Item = Vec<u64>> {
    prints.chunks(AT_ONCE * BYTES).map(|piece| {
        let (prints, _) = piece.as_chunks::<BYTES>();
        prints.iter().filter_map(|print| print.first_chunk()).copied().map(u64::from_le_bytes).collect()
    })
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(add_prints, module)?)?;
    module.add_function(wrap_pyfunction!(add_prints_twice, module)?)?;
    module.add_function(wrap_pyfunction!(fingerprints, module)?)?;
    module.add_function(wrap_pyfunction!(prints_found, module)?)
}
