//! `Filter`, the base class of all filter classes: a filter behind a lock.
//!
//! Invariant: no thread waits for the lock while it holds the interpreter's, and no Python code
//! runs under it. So the two locks cannot deadlock.

use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use pyo3::prelude::*;
use pyo3::sync::RwLockExt;

use super::FilterState;
use crate::error::Exception;

/// A filter of any type. A key for which `key in filter` is false was never added; a key for which
/// it is true was almost certainly added.
///
/// Made by a subclass, open(), load() or from_bytes().
#[pyclass(frozen, subclass, weakref, module = "petal")]
pub(crate) struct Filter {
    state: RwLock<FilterState>,
}

impl Filter {
    pub(crate) fn new(state: FilterState) -> Self {
        Self { state: RwLock::new(state) }
    }

    /// Takes the state out of the lock.
    pub(crate) fn into_state(self) -> PyResult<FilterState> {
        self.state.into_inner().map_err(|_| poisoned())
    }

    /// Locks the filter for reading. Releases the interpreter's lock if it must wait.
    #[inline]
    pub(crate) fn read(&self, py: Python<'_>) -> PyResult<RwLockReadGuard<'_, FilterState>> {
        match self.state.try_read() {
            Ok(state) => Ok(state),
            Err(TryLockError::WouldBlock) => {
                self.state.read_py_attached(py).map_err(|_| poisoned())
            }
            Err(TryLockError::Poisoned(_)) => Err(poisoned()),
        }
    }

    /// Locks the filter for writing. Releases the interpreter's lock if it must wait.
    #[inline]
    pub(crate) fn write(&self, py: Python<'_>) -> PyResult<RwLockWriteGuard<'_, FilterState>> {
        match self.state.try_write() {
            Ok(state) => Ok(state),
            Err(TryLockError::WouldBlock) => {
                self.state.write_py_attached(py).map_err(|_| poisoned())
            }
            Err(TryLockError::Poisoned(_)) => Err(poisoned()),
        }
    }

    /// Locks the filter for reading, in a thread that does not hold the interpreter's lock.
    pub(crate) fn read_detached(&self) -> PyResult<RwLockReadGuard<'_, FilterState>> {
        self.state.read().map_err(|_| poisoned())
    }

    /// Locks the filter for writing, in a thread that does not hold the interpreter's lock.
    pub(crate) fn write_detached(&self) -> PyResult<RwLockWriteGuard<'_, FilterState>> {
        self.state.write().map_err(|_| poisoned())
    }
}

/// The error after a thread panicked while it changed the filter.
fn poisoned() -> PyErr {
    Exception::Petal.new_err("a thread panicked while it changed the filter; make a new filter")
}
