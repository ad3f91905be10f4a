//! `ForeignFilter`: another program's filter, asked, filled and written as that program does.

use petal_interop::Foreign;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::bloom::{change, combined, combined_by_operator};
use super::{Filter, parts};
use crate::error::Raise;
use crate::held::{Held, Place};
use crate::open::{form_of_keys, named_format};

/// A filter in the format of another program ("guava", "parquet", "spark-v2", "redisbloom", ...),
/// sized as that program would; save() writes the file that it reads. open(), load() and
/// from_bytes() make one of a file.
///
/// `keys` says what the other program's keys are: "text" (the bytes of a str or of bytes, an int
/// as 8 bytes, little-endian), "utf16", "int64", "int32", "uint64", "uint32", "text-crlf",
/// "python-bytes", "rust-str" or "rust-slice": see docs/interop.md.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct ForeignFilter;

#[pymethods]
impl ForeignFilter {
    #[new]
    #[pyo3(signature = (format, capacity, rate = 0.01, *, keys = "text"))]
    fn new(
        py: Python<'_>,
        format: &str,
        capacity: u64,
        rate: f64,
        keys: &str,
    ) -> PyResult<PyClassInitializer<Self>> {
        let (format, keys) = (named_format(format)?, form_of_keys(keys)?);
        let made = py.detach(|| Foreign::with_rate(format, capacity, rate));
        let made = made.map_err(Raise::raise)?;
        made.check_key_form(keys).map_err(Raise::raise)?;
        let made = made.with_keys(keys);
        Ok(parts(Held::at(Place::Foreign(made), String::new()), Self))
    }

    /// Its format, by name.
    #[getter]
    fn format(slf: &Bound<'_, Self>) -> PyResult<Option<&'static str>> {
        Ok(slf.as_super().get().read(slf.py())?.told_by().map(|(format, _)| format))
    }

    /// The form of its keys, as the caller said.
    #[getter]
    fn keys(slf: &Bound<'_, Self>) -> PyResult<Option<&'static str>> {
        Ok(slf.as_super().get().read(slf.py())?.told_by().map(|(_, keys)| keys))
    }

    /// A copy with the keys of others of its format, shape and choices.
    #[pyo3(signature = (*others))]
    fn union(slf: &Bound<'_, Self>, others: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        combined(slf.as_super(), others, Held::union)
    }

    fn __or__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        combined_by_operator(slf.as_super(), other, Held::union)
    }

    fn __ior__(slf: &Bound<'_, Self>, other: &Bound<'_, Filter>) -> PyResult<()> {
        change(slf.as_super(), other, Held::union)
    }
}
