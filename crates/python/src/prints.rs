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
use petal_interop::Hasher;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::filter::Filter;
use crate::held::Keyer;
use crate::{arrow, batch};

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
    let columns = columns.iter().map(column).collect::<PyResult<Vec<_>>>()?;
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

/// The one array that an object shows.
fn column(shown: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let mut arrays = arrow::arrays(shown)?.into_iter().flatten();
    match (arrays.next(), arrays.next()) {
        (Some(array), None) => array?.all(),
        _ => Err(PyTypeError::new_err("fingerprints: expected each column as one Arrow array")),
    }
}

fn of_column(column: &ArrayRef, key: [u8; 16]) -> PyResult<Vec<u8>> {
    let mut prints = Vec::with_capacity(column.len() * BYTES);
    let out = &mut prints;
    // Text came as bytes. Nulls get fingerprints too, which are overwritten below.
    match column.data_type() {
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
    let own = filter.get();
    filter.py().detach(|| {
        let (mut held, mut new) = (own.write_detached()?, Answers::new());
        pieces(&prints).try_for_each(|hashes| held.insert_words(&hashes, &mut new))
    })
}

/// Puts fingerprints into a filter, and those that it may have had already into another.
#[pyfunction]
fn add_prints_twice(
    seen: &Bound<'_, Filter>,
    twice: &Bound<'_, Filter>,
    prints: PyBackedBytes,
) -> PyResult<()> {
    let (first, second) = (seen.get(), twice.get());
    seen.py().detach(|| {
        let (mut new, mut again) = (Answers::new(), Answers::new());
        pieces(&prints).try_for_each(|hashes| {
            // One after the other: nobody holds one lock while waiting for the other.
            first.write_detached()?.insert_words(&hashes, &mut new)?;
            let had = (0..hashes.len()).filter(|&at| !new.get(at));
            let had: Vec<_> = had.map(|at| hashes[at]).collect();
            second.write_detached()?.insert_words(&had, &mut again)
        })
    })
}

/// Which fingerprints may be in a filter: a bitmap as Arrow has it.
#[pyfunction]
fn prints_found<'py>(
    filter: &Bound<'py, Filter>,
    prints: PyBackedBytes,
) -> PyResult<Bound<'py, PyBytes>> {
    let own = filter.get();
    let bitmap = filter.py().detach(|| {
        let (held, mut found) = (own.read_detached()?, Answers::new());
        let mut bitmap = Vec::with_capacity(prints.len() / BYTES / 8 + 8);
        for hashes in pieces(&prints) {
            held.contains_words(&hashes, &mut found);
            bitmap.extend(found.as_words().iter().flat_map(|word| word.to_le_bytes()));
        }
        PyResult::Ok(bitmap)
    })?;
    Ok(PyBytes::new(filter.py(), &bitmap))
}

/// What `xxhash64` gives in Spark's SQL for keys, 8 bytes each, little-endian.
#[pyfunction]
fn spark_xxhash64<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let hashes = batch::words(keys, Keyer::Foreign(Hasher::of_spark_sql(), false))?;
    let bytes: Vec<u8> = hashes.into_iter().flat_map(u64::to_le_bytes).collect();
    Ok(PyBytes::new(keys.py(), &bytes))
}

/// What goes into filters of fingerprints: their first 64 bits, piece by piece.
fn pieces(prints: &[u8]) -> impl Iterator<Item = Vec<u64>> {
    prints.chunks(AT_ONCE * BYTES).map(|piece| {
        let (prints, _) = piece.as_chunks::<BYTES>();
        prints
            .iter()
            .filter_map(|print| print.first_chunk())
            .copied()
            .map(u64::from_le_bytes)
            .collect()
    })
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(add_prints, module)?)?;
    module.add_function(wrap_pyfunction!(add_prints_twice, module)?)?;
    module.add_function(wrap_pyfunction!(fingerprints, module)?)?;
    module.add_function(wrap_pyfunction!(prints_found, module)?)?;
    module.add_function(wrap_pyfunction!(spark_xxhash64, module)?)
}
