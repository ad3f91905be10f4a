//! Filter files: mapped and asked where they lie, or read into memory.

use std::fs::File;
use std::path::PathBuf;

use petal::{AnyFilter, Mapped};
use pyo3::prelude::*;

use crate::error::{Kind, Raise};
use crate::filter;
use crate::held::{Held, Place};

/// Opens a filter file without reading it: it is mapped into memory and asked where it lies.
/// What comes back is of the class of the filter in it, and read only.
#[pyfunction]
fn open(py: Python<'_>, path: PathBuf) -> PyResult<Py<PyAny>> {
    let filter = AnyFilter::open_mapped(map(&path)?).map_err(Raise::raise)?;
    let metadata = filter.metadata().to_owned();
    filter::object(py, Held { filter: Place::File(filter), metadata })
}

/// Reads a filter file into memory, every byte examined; what comes back can be changed.
#[pyfunction]
fn load(py: Python<'_>, path: PathBuf) -> PyResult<Py<PyAny>> {
    let (filter, metadata) = py.detach(|| {
        let file = File::open(&path).map_err(|e| input(&path, &e))?;
        AnyFilter::read_from(std::io::BufReader::with_capacity(1 << 20, file)).map_err(Raise::raise)
    })?;
    filter::object(py, Held { filter: Place::Memory(filter), metadata })
}

/// Maps a file.
#[expect(unsafe_code, reason = "the one place where the package maps a file")]
pub(crate) fn map(path: &PathBuf) -> PyResult<Mapped> {
    let file = File::open(path).map_err(|e| input(path, &e))?;
    // SAFETY: the map is private to this process and read only. If another process cuts the file
    // short meanwhile, the kernel ends this one with SIGBUS: no wrong answer, no memory harmed.
    // petal itself never changes a filter file in place: it moves a new one over it.
    unsafe { Mapped::open(&file) }.map_err(Raise::raise)
}

fn input(path: &std::path::Path, error: &std::io::Error) -> PyErr {
    Kind::Input.with(format_args!("{}: {error}", path.display()))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(open, module)?)?;
    module.add_function(wrap_pyfunction!(load, module)?)
}
