//! `Filter`, the class below which all others are, as far as it is a filter behind a lock.
//!
//! Invariant: nobody waits for the lock while holding the interpreter's, and no Python code runs
//! under it; so the two cannot wait for each other.

use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use pyo3::prelude::*;
use pyo3::sync::RwLockExt;

use crate::error::Kind;
use crate::held::Held;

/// A filter of any type. What it answers *no* to was never added; what it answers *yes* to was,
/// almost certainly.
///
/// Made by the classes below this one, by open(), load() and from_bytes().
#[pyclass(frozen, subclass, weakref, module = "petal")]
pub(crate) struct Filter {
    held: RwLock<Held>,
}

impl Filter {
    pub(crate) fn new(held: Held) -> Self {
        Self { held: RwLock::new(held) }
    }

    /// What it holds, out of its lock.
    pub(crate) fn into_held(self) -> PyResult<Held> {
        self.held.into_inner().map_err(|_| broken())
    }

    /// To look: without waiting if nobody changes it, else without the interpreter's lock.
    #[inline]
    pub(crate) fn read(&self, py: Python<'_>) -> PyResult<RwLockReadGuard<'_, Held>> {
        match self.held.try_read() {
            Ok(held) => Ok(held),
            Err(TryLockError::WouldBlock) => self.held.read_py_attached(py).map_err(|_| broken()),
            Err(TryLockError::Poisoned(_)) => Err(broken()),
        }
    }

    /// To change, likewise.
    #[inline]
    pub(crate) fn write(&self, py: Python<'_>) -> PyResult<RwLockWriteGuard<'_, Held>> {
        match self.held.try_write() {
            Ok(held) => Ok(held),
            Err(TryLockError::WouldBlock) => self.held.write_py_attached(py).map_err(|_| broken()),
            Err(TryLockError::Poisoned(_)) => Err(broken()),
        }
    }

    /// To look, by whoever does not hold the interpreter's lock.
    pub(crate) fn read_detached(&self) -> PyResult<RwLockReadGuard<'_, Held>> {
        self.held.read().map_err(|_| broken())
    }

    /// To change, likewise.
    pub(crate) fn write_detached(&self) -> PyResult<RwLockWriteGuard<'_, Held>> {
        self.held.write().map_err(|_| broken())
    }
}

/// A thread ended while it changed the filter.
fn broken() -> PyErr {
    Kind::Petal.with("the filter was left half changed by a thread that panicked")
}
