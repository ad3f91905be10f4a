//! The methods of `Filter`, which all types have, and one subclass for each type with the methods
//! that only this type has.
//!
//! A method that a type does not support raises `UnsupportedError`: a filter in a mapped file cannot
//! be changed, nor can a static filter.

mod bloom;
mod cascade;
mod counting;
mod explain;
mod filter_files;
mod foreign;
mod info;
pub(crate) mod options;
mod pair;
mod scalable;
mod static_filter;
mod windowed;

use petal::FilterType;
use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::batch;
use crate::error::{Exception, warn_if_lost};
use crate::keys::with_key;
use crate::memory::{MemoryWriter, py_bytes, reserve_exact};
pub(crate) use crate::state::Filter;
use crate::state::open::PathArg;
use crate::state::transforms::{names, recorded};
use crate::state::{FilterState, Storage};

#[pymethods]
impl Filter {
    // ---- Keys -----------------------------------------------------------------------------------

    /// Returns whether a key may be in the filter. False is certain.
    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        // The lock is taken after the key is read, which may run Python code.
        with_key(key, |key| self.read(py)?.contains(key))
    }

    /// Looks up many keys: an iterable, a NumPy array, a pandas Series or DataFrame of one column,
    /// or an Arrow array or table. Returns true or false for each key, in order, in the type of the
    /// library that the keys come from; false for a null.
    ///
    /// The results have the type that the library of the keys uses: a NumPy array of bool for a
    /// NumPy array; a Series of bool with the same index for a pandas Series or a DataFrame of one
    /// column; a polars Series for a polars Series; a pyarrow BooleanArray for pyarrow's arrays; a
    /// `Mask` for other objects with Arrow's PyCapsule interface; a list of bool for any other
    /// iterable.
    ///
    /// Raises `TypeError` if an object is not a key, `OverflowError` if an integer is out of range.
    /// Other threads run during the call, and may change the filter.
    fn contains_batch<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        batch::contains(self, keys)
    }

    /// Adds a key. Returns `True` if it certainly was not in the filter.
    fn add(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        with_key(key, |key| self.write(py)?.insert(key))
    }

    /// Adds many keys, as `contains_batch` takes them. Returns true for each key that certainly was not in the
    /// filter before it, in order, in the type that `contains_batch` returns; false for a null.
    ///
    /// `news = urls[seen.add_batch(urls)]` keeps the first of each URL of a column. Keys that were added
    /// before an exception stay.
    fn add_batch<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        batch::add(self, keys)
    }

    /// Adds all keys of iterables or arrays, as `contains_batch` takes them; nulls are skipped.
    /// Returns the number of keys that certainly were not in the filter. Keys that were added
    /// before an exception stay.
    ///
    /// Other threads may use the filter during the call and see the first keys before the last
    /// ones.
    #[pyo3(signature = (*keys))]
    fn update(&self, keys: &Bound<'_, PyTuple>) -> PyResult<u64> {
        let mut new = 0;
        for keys in keys {
            new += batch::update(self, &keys)?;
        }
        Ok(new)
    }

    /// Removes all keys. A scalable filter keeps its first layer only.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.write_detached()?.clear())
    }

    // ---- Properties -----------------------------------------------------------------------------

    /// The number of distinct keys, estimated from the bits; infinite if the filter is full, `nan`
    /// if another program's format has no such estimate. Cost: reads the whole filter.
    ///
    /// After an intersection this is an upper bound, because some bits were set by different keys;
    /// `inserted` is then the better estimate.
    #[getter]
    fn estimated_len(&self, py: Python<'_>) -> PyResult<f64> {
        py.detach(|| {
            let state = self.read_detached()?;
            Ok(match state.as_dyn() {
                Some(filter) => filter.stats().estimated_len,
                None => state.foreign_stats()?.estimated_keys.unwrap_or(f64::NAN),
            })
        })
    }

    /// The false-positive rate of the filter as it is now, from its bits. Cost: reads the whole filter.
    #[getter]
    fn estimated_fpr(&self, py: Python<'_>) -> PyResult<f64> {
        py.detach(|| {
            let state = self.read_detached()?;
            Ok(match state.as_dyn() {
                Some(filter) => filter.stats().estimated_fpr,
                None => state.foreign_stats()?.estimated_fpr,
            })
        })
    }

    /// The share of the bits, counters or slots in use, 0 to 1. Cost: reads the whole filter.
    #[getter]
    fn fill_ratio(&self, py: Python<'_>) -> PyResult<f64> {
        py.detach(|| {
            let state = self.read_detached()?;
            if let Some(face) = state.as_dyn() {
                return Ok(face.stats().fill_ratio);
            }
            let stats = state.foreign_stats()?;
            Ok(stats.set as f64 / stats.bits.max(1) as f64)
        })
    }

    /// The number of added keys that were new; in quotient filters the number of keys with all
    /// copies. After a union or an intersection, an estimate of the number of distinct keys, with
    /// the standard error that `compare` returns. 0 if another program's format does not record it.
    #[getter]
    fn inserted(&self, py: Python<'_>) -> PyResult<u64> {
        let state = self.read(py)?;
        Ok(match state.as_dyn() {
            Some(filter) => filter.inserted(),
            None => state.foreign_header()?.counted.unwrap_or(0),
        })
    }

    /// The number of distinct keys that the filter is planned for; that of the first layer if the
    /// filter has layers; 0 if it is not known.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> PyResult<u64> {
        let state = self.read(py)?;
        Ok(match state.as_dyn() {
            Some(filter) => filter.capacity(),
            None => state.foreign_header()?.capacity.unwrap_or(0),
        })
    }

    /// The false-positive rate that the filter is planned for; 0.0 if it is not known.
    #[getter]
    fn target_fpr(&self, py: Python<'_>) -> PyResult<f64> {
        let state = self.read(py)?;
        Ok(match state.as_dyn() {
            Some(filter) => filter.target_fpr(),
            None => state.foreign_header()?.target_fpr.unwrap_or(0.0),
        })
    }

    /// The size of the bits, counters or slots in bytes, in memory or in a file.
    #[getter]
    fn size_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        let state = self.read(py)?;
        Ok(state.as_dyn().map_or_else(|| state.size_bytes(), |filter| filter.size_bytes()))
    }

    /// All memory that the filter takes, in bytes, without the pages of a mapped file.
    #[getter]
    fn memory_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        let state = self.read(py)?;
        Ok(match state.as_dyn() {
            Some(filter) => filter.memory_usage(),
            None if state.is_mapped() => 0,
            None => state.size_bytes(),
        })
    }

    /// Returns the false-positive rate with `capacity` distinct keys in the filter, by calculation.
    /// `UnsupportedError` for filters of other programs.
    fn expected_fpr(&self, py: Python<'_>, capacity: u64) -> PyResult<f64> {
        match self.read(py)?.as_dyn() {
            Some(face) => Ok(face.expected_fpr(capacity)),
            None => Err(Exception::Unsupported.new_err(
                "the rate of another program's filter cannot be calculated; see estimated_fpr",
            )),
        }
    }

    /// The number of keys that can be added at the target rate. `None` if the capacity is not
    /// known, or if the filter grows, drops old keys or takes no keys. Cost: reads the whole
    /// filter.
    #[getter]
    fn capacity_left(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        py.detach(|| {
            Ok(self.read_detached()?.as_dyn().and_then(|filter| filter.stats().capacity_left))
        })
    }

    /// Whether the estimated false-positive rate is above the target by more than chance. If so,
    /// make a larger filter. Cost: reads the whole filter.
    #[getter]
    fn is_overfull(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| {
            let state = self.read_detached()?;
            Ok(match state.as_dyn() {
                Some(filter) => filter.stats().is_overfull,
                None => {
                    let stats = state.foreign_stats()?;
                    let target = stats.target_fpr.unwrap_or(0.0);
                    petal::math::is_overfull(target, stats.estimated_fpr, stats.bits)
                }
            })
        })
    }

    /// The name of the type, as on the command line: `"bloom"`, `"scalable"`, ...; `"foreign"` for
    /// filters of other programs.
    #[getter]
    fn r#type(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.read(py)?.as_dyn().map_or("foreign", |filter| filter.filter_type().name()))
    }

    /// Whether the filter is in a mapped file, which is read-only.
    #[getter]
    fn is_mapped(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.read(py)?.is_mapped())
    }

    /// A text in the filter's file, by convention JSON, at most 1 MiB. It can be set.
    #[getter]
    fn metadata(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.read(py)?.metadata().to_owned())
    }

    #[setter]
    fn set_metadata(&self, py: Python<'_>, metadata: String) -> PyResult<()> {
        self.write(py)?.set_metadata(metadata)
    }

    /// The names of the changes to lines that the filter's file records, as in `petal.build`;
    /// `None` if it records nothing about keys. The methods of filters take keys as they are.
    #[getter]
    fn key_transform(&self, py: Python<'_>) -> PyResult<Option<Vec<String>>> {
        Ok(recorded(self.read(py)?.metadata())?.of_keys().map(names))
    }

    /// The names of the changes that `petal.check` makes to lines: those that the file records for
    /// queries, or `key_transform`, and the case of hexadecimal keys; `None` as there. For one key:
    /// `petal.transform_key(key, filter.query_transform) in filter`.
    #[getter]
    fn query_transform(&self, py: Python<'_>) -> PyResult<Option<Vec<String>>> {
        let state = self.read(py)?;
        let list = recorded(state.metadata())?.of_queries(state.recorded_spelling(), &[]);
        Ok(list.as_deref().map(names))
    }

    /// Returns all properties as a `dict`. Cost: reads the whole filter.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        info::info(self, py)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        info::repr(slf.get(), slf.py(), &slf.get_type().name()?.to_string())
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<Self>() else { return Ok(py.NotImplemented()) };
        let other = other.get();
        let equal = py.detach(|| pair::with_both(self, other, |a, b| Ok(a.equals(b))))?;
        Ok(equal.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    /// `a <= b` is a.issubset(b), for Bloom filters.
    fn __le__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ordered(slf, other, |a, b| a.is_subset(b))
    }

    fn __lt__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ordered(slf, other, |a, b| Ok(a.is_subset(b)? && !a.equals(b)))
    }

    fn __ge__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ordered(slf, other, |a, b| b.is_subset(a))
    }

    fn __gt__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        ordered(slf, other, |a, b| Ok(b.is_subset(a)? && !a.equals(b)))
    }

    // ---- Files and copies -----------------------------------------------------------------------

    /// Writes the filter to a file atomically: a temporary file is synchronised to disk and
    /// renamed. If this fails the old file is unchanged. Raises `InputError`.
    ///
    /// Changes by other threads wait until it is done.
    fn save(&self, py: Python<'_>, path: PathArg) -> PyResult<()> {
        let finished = py.detach(|| {
            let state = self.read_detached()?;
            filter_files::save(&path.0, state.file_has_secret(), |out| state.write_to(out))
        })?;
        warn_if_lost(finished, &path.0)
    }

    /// Returns the bytes of the filter's file, which `petal.from_bytes` reads.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| {
            let (state, mut out) = (self.read_detached()?, MemoryWriter::default());
            let data = usize::try_from(state.size_bytes()).unwrap_or(usize::MAX);
            reserve_exact(&mut out.bytes, data.saturating_add(state.metadata().len()))?;
            state.write_to(&mut out)?;
            Ok::<_, PyErr>(out.bytes)
        })?;
        py_bytes(py, &bytes)
    }

    /// Returns a copy in memory, which can be changed, also of a mapped file.
    fn copy(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let copy = py.detach(|| self.read_detached()?.copy())?;
        object(py, copy)
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.copy(py)
    }

    /// A pickle has the bytes of the filter's file. A filter whose secret is not in its file has none: a pickle
    /// with the secret would be a copy that its owner does not expect, and one without it cannot be read.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        if self.read(py)?.is_secret_apart() {
            return Err(Exception::Unsupported.new_err(
                "a filter whose secret is apart cannot be pickled; save it, and open the file with \
                 secret= where it is needed",
            ));
        }
        let (format, key_type) = self.read(py)?.format_and_key_type().unzip();
        let args = (self.to_bytes(py)?, format, key_type.unwrap_or("text"));
        let unpickle = UNPICKLE
            .get(py)
            .ok_or_else(|| Exception::Petal.new_err("the module is not initialised"))?;
        (unpickle, args).into_pyobject(py)
    }

    /// Checks every byte of a mapped file. Raises `FormatError` if it is damaged. A filter in
    /// memory was checked when it was read.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.read_detached()?.verify())
    }
}

/// Compares two Bloom filters by their bits; `NotImplemented` for other objects.
fn ordered(
    slf: &Bound<'_, Filter>,
    other: &Bound<'_, PyAny>,
    compare: impl FnOnce(&FilterState, &FilterState) -> PyResult<bool> + Send,
) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let Ok(other) = other.cast::<Filter>() else { return Ok(py.NotImplemented()) };
    let (a, b) = (slf.get(), other.get());
    let compared = py.detach(|| {
        pair::with_both(a, b, |a, b| {
            (a.is_bloom() && b.is_bloom()).then(|| compare(a, b)).transpose()
        })
    })?;
    match compared {
        Some(result) => Ok(result.into_pyobject(py)?.to_owned().into_any().unbind()),
        None => Ok(py.NotImplemented()),
    }
}

/// The function that a pickle calls.
static UNPICKLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Reads a filter from the contents of a pickle.
#[pyfunction(name = "_unpickle")]
fn unpickle(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    format: Option<&str>,
    key_type: &str,
) -> PyResult<Py<PyAny>> {
    filter_files::from_bytes(py, data, format, key_type, None)
}

/// Returns the initializer of a subclass of `Filter`.
fn with_state<T: PyClass<BaseType = Filter>>(
    state: FilterState,
    class: T,
) -> PyClassInitializer<T> {
    PyClassInitializer::from(Filter::new(state)).add_subclass(class)
}

/// Returns a filter as an object of the class of its type.
pub(crate) fn object(py: Python<'_>, state: FilterState) -> PyResult<Py<PyAny>> {
    let filter_type = match &state.storage {
        Storage::Memory(filter) => filter.as_dyn().filter_type(),
        Storage::Mapped(filter) => filter.as_dyn().filter_type(),
        Storage::Foreign(_) | Storage::ForeignMapped(_) => {
            return Ok(Py::new(py, with_state(state, foreign::ForeignFilter))?.into_any());
        }
    };
    Ok(match filter_type {
        FilterType::Bloom => Py::new(py, with_state(state, bloom::BloomFilter))?.into_any(),
        FilterType::Classic => {
            Py::new(py, with_state(state, bloom::ClassicBloomFilter))?.into_any()
        }
        FilterType::Counting => {
            Py::new(py, with_state(state, counting::CountingBloomFilter))?.into_any()
        }
        FilterType::CountingClassic => {
            Py::new(py, with_state(state, counting::ClassicCountingBloomFilter))?.into_any()
        }
        FilterType::Quotient => {
            Py::new(py, with_state(state, counting::QuotientFilter))?.into_any()
        }
        FilterType::VectorQuotient => {
            Py::new(py, with_state(state, counting::VectorQuotientFilter))?.into_any()
        }
        FilterType::Scalable => {
            Py::new(py, with_state(state, scalable::ScalableBloomFilter))?.into_any()
        }
        FilterType::Windowed => {
            Py::new(py, with_state(state, windowed::WindowedBloomFilter))?.into_any()
        }
        FilterType::Static | FilterType::StaticFuse => {
            Py::new(py, with_state(state, static_filter::StaticFilter))?.into_any()
        }
        FilterType::Cascade => Py::new(py, with_state(state, cascade::FilterCascade))?.into_any(),
        // A type that is unknown here.
        _ => Py::new(py, Filter::new(state))?.into_any(),
    })
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let unpickle = wrap_pyfunction!(unpickle, module)?;
    UNPICKLE.get_or_init(module.py(), || unpickle.clone().into_any().unbind());
    module.add_function(unpickle)?;
    module.add_function(wrap_pyfunction!(explain::explain, module)?)?;
    filter_files::register(module)?;
    module.add_class::<Filter>()?;
    module.add_class::<bloom::BloomFilter>()?;
    module.add_class::<bloom::ClassicBloomFilter>()?;
    module.add_class::<counting::ClassicCountingBloomFilter>()?;
    module.add_class::<counting::CountingBloomFilter>()?;
    module.add_class::<counting::QuotientFilter>()?;
    module.add_class::<counting::VectorQuotientFilter>()?;
    module.add_class::<cascade::FilterCascade>()?;
    module.add_class::<static_filter::StaticFilter>()?;
    module.add_class::<foreign::ForeignFilter>()?;
    module.add_class::<scalable::ScalableBloomFilter>()?;
    module.add_class::<windowed::WindowedBloomFilter>()
}
