//! Fingerprints of the keys of tables, and filters of fingerprints, for distributed data frames.
//!
//! The fingerprint of a value is the 128-bit keyed hash of its bytes; that of a null is 16 zero
//! bytes. The fingerprint of several columns is the fingerprint of the concatenated fingerprints of
//! the columns, which have a fixed length. Two keys are equal if their fingerprints are, as in the
//! file engine. The first 64 bits of a fingerprint are its hash in a filter.
//!
//! Cost: about 20 ns for a key of 64 bytes, and one lookup in a filter.

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use petal::BatchResults;
use petal_interop::Hasher;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::batch::{self, arrow};
use crate::classes::Filter;
use crate::keys::KeyHasher;
use crate::memory::{py_bytes, reserve_exact};

/// Bytes of a fingerprint.
const BYTES: usize = 16;

/// Fingerprints in one batch; a multiple of 64, so that its results are whole words.
const BATCH: usize = 8192;

/// Returns the fingerprints of rows, 16 bytes each. `columns` are Arrow arrays of equal length.
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
    let fingerprints = py.detach(|| {
        let each = columns.iter().map(|column| column_fingerprints(column, key));
        let mut each = each.collect::<PyResult<Vec<_>>>()?;
        if each.len() < 2 {
            return Ok(each.pop().unwrap_or_default());
        }
        let row = |at| each.iter().flat_map(move |all| &all[at * BYTES..(at + 1) * BYTES]);
        let mut together = Vec::new();
        reserve_exact(&mut together, rows * each.len() * BYTES)?;
        together.extend((0..rows).flat_map(row));
        let mut fingerprints = Vec::new();
        reserve_exact(&mut fingerprints, rows * BYTES)?;
        petal_lines::fingerprints(
            key,
            together.chunks_exact(each.len() * BYTES),
            &mut fingerprints,
        );
        PyResult::Ok(fingerprints)
    })?;
    py_bytes(py, &fingerprints)
}

/// Returns the only Arrow array of an object.
fn column(column: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let mut arrays = arrow::arrays(column)?.into_iter().flatten();
    match (arrays.next(), arrays.next()) {
        (Some(array), None) => array?.all(),
        _ => Err(PyTypeError::new_err("fingerprints: expected each column as one Arrow array")),
    }
}

fn column_fingerprints(column: &ArrayRef, key: [u8; 16]) -> PyResult<Vec<u8>> {
    let mut fingerprints = Vec::new();
    reserve_exact(&mut fingerprints, column.len() * BYTES)?;
    let out = &mut fingerprints;
    // Text was converted to bytes. The fingerprints of nulls are overwritten below.
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
            fingerprints[at * BYTES..(at + 1) * BYTES].fill(0);
        }
    }
    Ok(fingerprints)
}

/// Adds fingerprints to a filter.
#[pyfunction]
fn add_fingerprints(filter: &Bound<'_, Filter>, fingerprints: PyBackedBytes) -> PyResult<()> {
    let own = filter.get();
    filter.py().detach(|| {
        let (mut state, mut new) = (own.write_detached()?, BatchResults::new());
        batches(&fingerprints).try_for_each(|hashes| state.insert_hashes(&hashes, &mut new))
    })
}

/// Adds fingerprints to the filter `seen`, and those that `seen` may already contain to the filter
/// `repeated`.
#[pyfunction]
fn add_fingerprints_with_repeats(
    seen: &Bound<'_, Filter>,
    repeated: &Bound<'_, Filter>,
    fingerprints: PyBackedBytes,
) -> PyResult<()> {
    let (first, second) = (seen.get(), repeated.get());
    seen.py().detach(|| {
        let (mut new, mut ignored) = (BatchResults::new(), BatchResults::new());
        batches(&fingerprints).try_for_each(|hashes| {
            // One lock at a time, so that no thread waits for one while it holds the other.
            first.write_detached()?.insert_hashes(&hashes, &mut new)?;
            let known = (0..hashes.len()).filter(|&at| !new.get(at));
            let known: Vec<_> = known.map(|at| hashes[at]).collect();
            second.write_detached()?.insert_hashes(&known, &mut ignored)
        })
    })
}

/// Looks up fingerprints. Returns the results as an Arrow bitmap.
#[pyfunction]
fn contains_fingerprints<'py>(
    filter: &Bound<'py, Filter>,
    fingerprints: PyBackedBytes,
) -> PyResult<Bound<'py, PyBytes>> {
    let own = filter.get();
    let bitmap = filter.py().detach(|| {
        let (state, mut found) = (own.read_detached()?, BatchResults::new());
        let mut bitmap = Vec::new();
        reserve_exact(&mut bitmap, fingerprints.len() / BYTES / 8 + 8)?;
        for hashes in batches(&fingerprints) {
            state.contains_hashes(&hashes, &mut found);
            bitmap.extend(found.as_words().iter().flat_map(|word| word.to_le_bytes()));
        }
        PyResult::Ok(bitmap)
    })?;
    py_bytes(filter.py(), &bitmap)
}

/// Returns the results of the SQL function `xxhash64` of Spark for keys, 8 bytes each,
/// little-endian.
#[pyfunction]
fn spark_xxhash64<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let hashes = batch::hashes(keys, KeyHasher::SparkSql(Hasher::of_spark_sql()))?;
    PyBytes::new_with(keys.py(), hashes.len() * size_of::<u64>(), |bytes| {
        let (bytes, _) = bytes.as_chunks_mut();
        bytes.iter_mut().zip(hashes).for_each(|(bytes, hash)| *bytes = hash.to_le_bytes());
        Ok(())
    })
}

/// Returns the first 64 bits of fingerprints in batches.
fn batches(fingerprints: &[u8]) -> impl Iterator<Item = Vec<u64>> {
    fingerprints.chunks(BATCH * BYTES).map(|batch| {
        let (fingerprints, _) = batch.as_chunks::<BYTES>();
        fingerprints
            .iter()
            .filter_map(|fingerprint| fingerprint.first_chunk())
            .copied()
            .map(u64::from_le_bytes)
            .collect()
    })
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(add_fingerprints, module)?)?;
    module.add_function(wrap_pyfunction!(add_fingerprints_with_repeats, module)?)?;
    module.add_function(wrap_pyfunction!(fingerprints, module)?)?;
    module.add_function(wrap_pyfunction!(contains_fingerprints, module)?)?;
    module.add_function(wrap_pyfunction!(spark_xxhash64, module)?)
}
