//! Many keys in one call: from Arrow arrays, NumPy arrays, pandas objects or any iterable.
//!
//! Keys are hashed in pieces whose hashes fit the first-level cache. Each piece is added or looked
//! up under one lock of the filter, without the interpreter's lock, so that other Python threads
//! run meanwhile and see the first keys of a long update before the last.
//!
//! Cost, in addition to hashing and lookup: nothing for Arrow; a copy of each slice for NumPy, whose
//! arrays other threads may change; about 20 ns for each object of an iterable, under the
//! interpreter's lock.

pub(crate) mod arrow;
mod mask;
mod numpy;
mod pandas;
mod polars;

use arrow_array::Array as _;
use petal::BatchResults;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString};

use self::arrow::Arrays;
use self::mask::{Bits, ResultType};
use self::numpy::NumpyKeys;
use self::pandas::Values;
use crate::keys::{KeyHasher, with_key};
use crate::memory::reserve;
use crate::state::Filter;

/// Keys in a piece: as many as the core library hashes at once.
const PIECE: usize = 1024;

/// Keys between two checks for Ctrl-C.
const SIGNAL_INTERVAL: usize = 1 << 20;

/// The hashes of some keys.
struct Piece<'a> {
    hashes: &'a [u64],
    /// The number of keys and nulls.
    len: usize,
    /// The positions of the keys, if there are nulls among them.
    rows: Option<&'a [usize]>,
}

/// Called for each piece, without the interpreter's lock.
type OnPiece<'a> = dyn FnMut(Piece<'_>) -> PyResult<()> + Send + 'a;

/// Adds keys. Returns the number of new ones.
pub(crate) fn update(filter: &Filter, keys: &Bound<'_, PyAny>) -> PyResult<u64> {
    filter.write(keys.py())?.check_mutable()?;
    let hasher = filter.read(keys.py())?.insert_key_hasher();
    let (mut new, mut results) = (0, BatchResults::new());
    Batch::new(keys)?.0.for_each_piece(keys.py(), hasher, &mut |piece| {
        filter.write_detached()?.insert_hashes(piece.hashes, &mut results)?;
        new += results.count_ones();
        Ok(())
    })?;
    Ok(new)
}

/// Adds keys. Returns which of them were new as a type of the keys' library.
pub(crate) fn add<'py>(filter: &Filter, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    filter.write(py)?.check_mutable()?;
    let hasher = filter.read(py)?.insert_key_hasher();
    let (mut bits, mut results) = (Bits::default(), BatchResults::new());
    let (batch, result_type) = Batch::new(keys)?;
    batch.for_each_piece(py, hasher, &mut |piece| {
        filter.write_detached()?.insert_hashes(piece.hashes, &mut results)?;
        bits.append(&results, piece.len, piece.rows)
    })?;
    result_type.convert(py, bits)
}

/// Looks up keys. Returns the results as a type of the keys' library.
pub(crate) fn contains<'py>(
    filter: &Filter,
    keys: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    let hasher = filter.read(py)?.key_hasher();
    let (mut bits, mut results) = (Bits::default(), BatchResults::new());
    let (batch, result_type) = Batch::new(keys)?;
    batch.for_each_piece(py, hasher, &mut |piece| {
        filter.read_detached()?.contains_hashes(piece.hashes, &mut results);
        bits.append(&results, piece.len, piece.rows)
    })?;
    result_type.convert(py, bits)
}

/// Returns the hashes of keys.
pub(crate) fn hashes(keys: &Bound<'_, PyAny>, hasher: KeyHasher) -> PyResult<Vec<u64>> {
    let mut all = Vec::new();
    Batch::new(keys)?.0.for_each_piece(keys.py(), hasher, &mut |piece| {
        reserve(&mut all, piece.hashes.len())?;
        all.extend_from_slice(piece.hashes);
        Ok(())
    })?;
    Ok(all)
}

/// Keys, by what they are stored in.
enum Batch<'py> {
    Arrow(Arrays),
    Numpy(NumpyKeys<'py>),
    /// An iterable. If it may have nulls: for each object a byte that is 1 if it is null.
    Objects(Bound<'py, PyAny>, Option<Bound<'py, PyBytes>>),
}

impl<'py> Batch<'py> {
    /// Returns the keys, and the type of the results of their lookup.
    fn new(keys: &Bound<'py, PyAny>) -> PyResult<(Self, ResultType<'py>)> {
        refuse_one_key(keys)?;
        if let Some(column) = pandas::column(keys)? {
            let result_type = column.series.map_or(ResultType::Numpy, ResultType::Pandas);
            let batch = match column.values {
                Values::Pyarrow(array) => Self::from_arrow(array)?,
                Values::Numpy(array) => Self::from_numpy(&array)?,
                Values::Objects(objects, nulls) => Self::Objects(objects, Some(nulls)),
            };
            return Ok((batch, result_type));
        }
        if let Some(column) = polars::column(keys)? {
            let batch = match column.values {
                polars::Values::Arrow(array) => Self::from_arrow(array)?,
                polars::Values::Objects(objects, nulls) => Self::Objects(objects, Some(nulls)),
            };
            return Ok((batch, ResultType::Polars(column.name)));
        }
        if let Some(arrays) = arrow::arrays(keys)? {
            let is_pyarrow = arrow::is_pyarrow(keys)?;
            let result_type = if is_pyarrow { ResultType::Pyarrow } else { ResultType::Mask };
            return Ok((Self::Arrow(arrays), result_type));
        }
        if pandas::is_instance(keys, "numpy", "ndarray")? {
            return Ok((Self::from_numpy(keys)?, ResultType::Numpy));
        }
        Ok((Self::Objects(keys.clone(), None), ResultType::List))
    }

    fn from_arrow(array: Bound<'py, PyAny>) -> PyResult<Self> {
        Ok(match arrow::arrays(&array)? {
            Some(arrays) => Self::Arrow(arrays),
            None => Self::Objects(array, None),
        })
    }

    fn from_numpy(array: &Bound<'py, PyAny>) -> PyResult<Self> {
        Ok(match NumpyKeys::new(array)? {
            Some(keys) => Self::Numpy(keys),
            None => Self::Objects(array.clone(), None),
        })
    }

    /// Hashes all keys in pieces and calls `on_piece` for each.
    fn for_each_piece(
        self,
        py: Python<'py>,
        hasher: KeyHasher,
        on_piece: &mut OnPiece<'_>,
    ) -> PyResult<()> {
        match self {
            Self::Arrow(mut arrays) => {
                py.detach(|| for_each_arrow_piece(&mut arrays, hasher, on_piece))
            }
            Self::Numpy(keys) => keys.for_each_piece(hasher, on_piece),
            Self::Objects(keys, nulls) => for_each_object_piece(&keys, nulls, hasher, on_piece),
        }
    }
}

fn for_each_arrow_piece(
    arrays: &mut Arrays,
    mut hasher: KeyHasher,
    on_piece: &mut OnPiece<'_>,
) -> PyResult<()> {
    let (mut rows, mut hashes, mut unchecked) = (Vec::new(), Vec::new(), 0);
    for array in arrays {
        let array = array?;
        for start in (0..array.len()).step_by(PIECE) {
            let piece = array.piece(start, PIECE.min(array.len() - start))?;
            hashes.clear();
            let nulls = arrow::hash_array(&piece, &mut hasher, &mut rows, &mut hashes)?;
            let rows = nulls.then_some(&rows[..]);
            on_piece(Piece { hashes: &hashes, len: piece.len(), rows })?;
            unchecked += piece.len();
            if unchecked >= SIGNAL_INTERVAL {
                unchecked = 0;
                Python::attach(|py| py.check_signals())?;
            }
        }
    }
    Ok(())
}

fn for_each_object_piece(
    keys: &Bound<'_, PyAny>,
    nulls: Option<Bound<'_, PyBytes>>,
    mut hasher: KeyHasher,
    on_piece: &mut OnPiece<'_>,
) -> PyResult<()> {
    let py = keys.py();
    let (mut hashes, mut rows) = (Vec::new(), Vec::new());
    let mut nulls = nulls.as_ref().map(|nulls| nulls.as_bytes().iter());
    let mut iterator = keys.try_iter()?;
    loop {
        hashes.clear();
        rows.clear();
        let (mut failed, mut len) = (None, 0);
        for key in iterator.by_ref().take(PIECE) {
            if let Some(nulls) = &mut nulls {
                if nulls.next() == Some(&1) {
                    len += 1;
                    continue;
                }
                rows.push(len);
            }
            let hashed =
                key.and_then(|key| with_key(&key, |key| hasher.hash_key(key, &mut hashes)));
            if let Err(error) = hashed {
                failed = Some(error);
                break;
            }
            len += 1;
        }
        // The keys before the one that failed are used, too.
        let present = nulls.is_some().then_some(&rows[..]);
        py.detach(|| on_piece(Piece { hashes: &hashes, len, rows: present }))?;
        match failed {
            Some(error) => return Err(error),
            None if len < PIECE => return Ok(()),
            None => py.check_signals()?,
        }
    }
}

/// Returns an error for a single key, whose letters are hardly meant as keys.
fn refuse_one_key(keys: &Bound<'_, PyAny>) -> PyResult<()> {
    let is_key = keys.is_instance_of::<PyString>()
        || keys.is_instance_of::<PyBytes>()
        || keys.is_instance_of::<PyByteArray>()
        || keys.is_instance_of::<PyMemoryView>();
    if is_key {
        let name = keys.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "keys: expected an array or an iterable of keys, found one {name}; use [key]"
        )));
    }
    Ok(())
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<mask::Mask>()
}
