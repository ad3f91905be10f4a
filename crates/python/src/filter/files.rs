//! Filter files as objects: what Python calls to open, read and unpickle them; and saving them.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use petal_lines::aside::Aside;
use pyo3::prelude::*;

use super::object;
use crate::error::{Kind, cannot_write};
use crate::open::Name;

/// Opens a filter file without reading it: it is mapped into memory and asked where it lies.
///
/// Returns an object of the class of the filter in it, read only. `format` names the format of
/// another program's file, for those that have no mark (rbloom); `keys` says what its keys were:
/// "text", "utf16", "int64", "int32", "uint64", "uint32", "text-crlf", "python-bytes", "rust-str"
/// or "rust-slice".
///
/// Cost: the header is examined; pages are read as they are asked for. verify() examines all.
#[pyfunction]
#[pyo3(signature = (path, *, format = None, keys = "text"))]
fn open(py: Python<'_>, path: Name, format: Option<&str>, keys: &str) -> PyResult<Py<PyAny>> {
    object(py, crate::open::open(py, path.0, format, keys)?)
}

/// Reads a filter file into memory, every byte examined; what comes back can be changed. A file
/// of another program may be packed with gzip. `format` and `keys` as for open().
#[pyfunction]
#[pyo3(signature = (path, *, format = None, keys = "text"))]
fn load(py: Python<'_>, path: Name, format: Option<&str>, keys: &str) -> PyResult<Py<PyAny>> {
    object(py, crate::open::load(py, path.0, format, keys)?)
}

/// Makes a filter of the bytes of a file, every byte examined. As load().
#[pyfunction]
#[pyo3(signature = (data, *, format = None, keys = "text"))]
pub(super) fn from_bytes(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    format: Option<&str>,
    keys: &str,
) -> PyResult<Py<PyAny>> {
    object(py, crate::open::from_bytes(py, data, format, keys)?)
}

/// Writes a file, which appears whole or not at all.
///
/// # Errors
/// `InputError` with the path if anything fails, or what `fill` says; the old file stays then.
pub(super) fn save(path: &Path, fill: impl FnOnce(&mut dyn Write) -> PyResult<()>) -> PyResult<()> {
    let failed = |error: io::Error| cannot_write(path, &error);
    if let Ok(data) = fs::metadata(path) {
        if !data.is_file() {
            let what = if data.is_dir() { "a directory" } else { "no regular file" };
            let path = path.display();
            let words = format!("{path}: is {what}, expected the name of a file");
            return Err(Kind::Input.with(words));
        }
        // As opening it would: a file one may not write is not replaced.
        fs::File::options().append(true).open(path).map_err(failed)?;
    }
    let mut out = BufWriter::with_capacity(1 << 20, Aside::beside(path).map_err(failed)?);
    fill(&mut out)?;
    let aside = out.into_inner().map_err(|error| failed(error.into_error()))?;
    aside.finish().map_err(failed)
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(from_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(load, module)?)?;
    module.add_function(wrap_pyfunction!(open, module)?)
}
