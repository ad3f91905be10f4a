//! Memory that the system may refuse: its refusal is a `MemoryError`, not the end of the process.

use std::io;

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::error::Exception;

/// Makes space for `more` elements.
pub(crate) fn reserve<T>(vec: &mut Vec<T>, more: usize) -> PyResult<()> {
    vec.try_reserve(more).map_err(|_| refused(vec.len().saturating_add(more), size_of::<T>()))
}

/// Makes space for exactly `more` elements.
pub(crate) fn reserve_exact<T>(vec: &mut Vec<T>, more: usize) -> PyResult<()> {
    vec.try_reserve_exact(more).map_err(|_| refused(vec.len().saturating_add(more), size_of::<T>()))
}

fn refused(len: usize, size: usize) -> PyErr {
    Exception::MemoryLimit.new_err(format_args!(
        "the system refused {} bytes of memory; free some",
        len.saturating_mul(size)
    ))
}

/// Copies bytes.
pub(crate) fn copy(bytes: &[u8]) -> PyResult<Vec<u8>> {
    let mut copy = Vec::new();
    reserve_exact(&mut copy, bytes.len())?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

/// Copies the bytes of a buffer, which other threads may change.
pub(crate) fn copy_of_buffer(py: Python<'_>, buffer: &PyBuffer<u8>) -> PyResult<Vec<u8>> {
    let mut copy = Vec::new();
    reserve_exact(&mut copy, buffer.item_count())?;
    copy.resize(buffer.item_count(), 0);
    buffer.copy_to_slice(py, &mut copy)?;
    Ok(copy)
}

/// Returns Python's `bytes`. [`PyBytes::new`] panics if memory is refused.
pub(crate) fn py_bytes<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, bytes.len(), |new| {
        new.copy_from_slice(bytes);
        Ok(())
    })
}

/// Returns a list of bool. [`PyList::new`] panics if memory is refused.
pub(crate) fn py_list(
    py: Python<'_>,
    values: impl Iterator<Item = bool>,
) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for value in values {
        list.append(value)?;
    }
    Ok(list)
}

/// A writer to memory that fails if memory is refused.
#[derive(Default)]
pub(crate) struct MemoryWriter {
    pub(crate) bytes: Vec<u8>,
}

impl io::Write for MemoryWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.try_reserve(bytes.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
