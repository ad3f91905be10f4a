//! open(), load(), from_bytes() and the writing of filter files.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use petal_lines::atomic_file::{AtomicFile, Finished};
use pyo3::prelude::*;

use super::object;
use crate::error::{Exception, cannot_write, refuse_compressed};
use crate::state::open::{OpenOptions, PathArg};

/// Opens a filter file without reading it: the file is mapped into memory. Returns a read-only
/// object of the class of the filter in the file.
///
/// - `path`: a `str`, `bytes` or `os.PathLike`.
/// - `format`: the format of another program's file, needed if it has no magic number (rbloom).
/// - `key_type`: how that program encodes its keys, as for `ForeignFilter`.
/// - `secret`: the 16 bytes of a filter with `secret_apart`, `bytes.fromhex(Path(FILE).read_text())` of
///   `petal build --secret-file FILE`. `IncompatibleError` if it is missing or another one.
///
/// Cost: the header is checked; pages are read when they are queried. `verify` checks every byte.
#[pyfunction]
#[pyo3(signature = (path, *, format = None, key_type = "text", secret = None))]
fn open(
    py: Python<'_>,
    path: PathArg,
    format: Option<&str>,
    key_type: &str,
    secret: Option<&[u8]>,
) -> PyResult<Py<PyAny>> {
    object(py, crate::state::open::open(py, path.0, OpenOptions::parse(format, key_type, secret)?)?)
}

/// Reads a filter file into memory and checks every byte. The filter can be changed. A file of
/// another program may be compressed with gzip. Arguments as for `open`.
#[pyfunction]
#[pyo3(signature = (path, *, format = None, key_type = "text", secret = None))]
fn load(
    py: Python<'_>,
    path: PathArg,
    format: Option<&str>,
    key_type: &str,
    secret: Option<&[u8]>,
) -> PyResult<Py<PyAny>> {
    object(py, crate::state::open::load(py, path.0, OpenOptions::parse(format, key_type, secret)?)?)
}

/// Reads a filter from `data`, the bytes of its file, and checks every byte. Other arguments as for
/// `open`.
#[pyfunction]
#[pyo3(signature = (data, *, format = None, key_type = "text", secret = None))]
pub(super) fn from_bytes(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    format: Option<&str>,
    key_type: &str,
    secret: Option<&[u8]>,
) -> PyResult<Py<PyAny>> {
    object(
        py,
        crate::state::open::from_bytes(py, data, OpenOptions::parse(format, key_type, secret)?)?,
    )
}

/// Writes a file atomically: `write` gets the writer of a temporary file, which then replaces the
/// file at `path`. If anything fails the old file is unchanged. Only the owner can read a new file that is
/// `private`.
///
/// # Errors
/// `InputError` with the path, or the error of `write`.
pub(super) fn save(
    path: &Path,
    private: bool,
    write: impl FnOnce(&mut dyn Write) -> PyResult<()>,
) -> PyResult<Finished> {
    let failed = |error: io::Error| cannot_write(path, &error);
    refuse_compressed(path)?;
    if let Ok(data) = fs::metadata(path) {
        if !data.is_file() {
            let found = if data.is_dir() { "a directory" } else { "not a regular file" };
            let path = path.display();
            let text = format!("{path}: is {found}, expected the name of a file");
            return Err(Exception::Input.new_err(text));
        }
        // A file without write permission is not replaced.
        fs::File::options().append(true).open(path).map_err(failed)?;
    }
    let file = AtomicFile::create(path).map_err(failed)?;
    if private {
        file.make_private().map_err(failed)?;
    }
    let mut out = BufWriter::with_capacity(1 << 20, file);
    write(&mut out)?;
    let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
    file.finish().map_err(failed)
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(from_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(load, module)?)?;
    module.add_function(wrap_pyfunction!(open, module)?)
}
