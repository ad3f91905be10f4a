//! `ForeignFilter`, a filter in the format of another program.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::bloom::{change, combined, combined_by_operator};
use super::{Filter, with_state};
use crate::error::IntoPyErr;
use crate::state::open::{parse_format, parse_key_type};
use crate::state::{FilterState, Storage};

/// A filter in the format of another program, of the size that the program would choose; `save`
/// writes a file that it reads. `open`, `load` and `from_bytes` return one for the files of other
/// programs.
///
/// - `format`: `"guava"`, `"parquet"`, `"spark-v2"`, `"redisbloom"`, ...
/// - `capacity`, `fpr`: as for `BloomFilter`.
/// - `key_type`: how the other program encodes its keys: `"text"` (the bytes of a `str` or of
///   bytes, an `int` as 8 bytes, little-endian), `"utf16"`, `"int64"`, `"int32"`, `"uint64"`,
///   `"uint32"`, `"text-crlf"`, `"python-bytes"`, `"rust-str"` or `"rust-slice"`.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct ForeignFilter;

#[pymethods]
impl ForeignFilter {
    #[new]
    #[pyo3(signature = (format, capacity, fpr = 0.01, *, key_type = "text"))]
    fn new(
        py: Python<'_>,
        format: &str,
        capacity: u64,
        fpr: f64,
        key_type: &str,
    ) -> PyResult<PyClassInitializer<Self>> {
        let (format, key_type) = (parse_format(format)?, parse_key_type(key_type)?);
        let built = py.detach(|| petal_interop::ForeignFilter::with_fpr(format, capacity, fpr));
        let built = built.map_err(IntoPyErr::into_py_err)?;
        built.check_key_type(key_type).map_err(IntoPyErr::into_py_err)?;
        let built = built.with_key_type(key_type);
        Ok(with_state(FilterState::from_storage(Storage::Foreign(built), String::new()), Self))
    }

    /// The name of the format.
    #[getter]
    fn format(slf: &Bound<'_, Self>) -> PyResult<Option<&'static str>> {
        Ok(slf.as_super().get().read(slf.py())?.format_and_key_type().map(|(format, _)| format))
    }

    /// The name of the key type.
    #[getter]
    fn key_type(slf: &Bound<'_, Self>) -> PyResult<Option<&'static str>> {
        Ok(slf.as_super().get().read(slf.py())?.format_and_key_type().map(|(_, key_type)| key_type))
    }

    /// Returns a filter of the keys of this one and all others. Raises `IncompatibleError` unless
    /// format, layout and options are equal.
    #[pyo3(signature = (*others))]
    fn union(slf: &Bound<'_, Self>, others: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        combined(slf.as_super(), others, FilterState::union)
    }

    fn __or__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        combined_by_operator(slf.as_super(), other, FilterState::union)
    }

    fn __ior__(slf: &Bound<'_, Self>, other: &Bound<'_, Filter>) -> PyResult<()> {
        change(slf.as_super(), other, FilterState::union)
    }
}
