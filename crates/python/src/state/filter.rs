//! `Filter`, the base class of all filter classes: a filter behind a lock.
//!
//! Invariant: no thread waits for the lock while it holds the interpreter's, and no Python code
//! runs under it. So the two locks cannot deadlock.

use std::ops::{Deref, DerefMut};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use pyo3::prelude::*;
use pyo3::sync::RwLockExt;

use super::FilterState;
use super::fork::{User, Users};
use crate::error::Exception;

/// The base class of all filters; it cannot be constructed. `open`, `load` and `from_bytes` return
/// filters of any type. A method that a type does not support raises `UnsupportedError`; a filter in
/// a mapped file is read-only.
///
/// - A key is a `str`, a bytes-like object, an `int` from 0 to `2**64 - 1`, a `date`, a `datetime`,
///   a `UUID`, a `Decimal`, or a `tuple` of keys.
/// - `key in filter`: whether the key may be in the filter. `False` is certain.
/// - `a == b`: whether layout, hash and bits are equal; capacity, target rate, `inserted` and
///   `metadata` may differ. Filters have no hash and no `len()`.
/// - `a <= b`, `a < b`, `a >= b`, `a > b`: `issubset` and `issuperset` of two Bloom filters.
///   `TypeError` for other types.
#[pyclass(frozen, subclass, weakref, module = "petal")]
pub(crate) struct Filter {
    state: RwLock<FilterState>,
    users: Users,
}

impl Filter {
    pub(crate) fn new(state: FilterState) -> Self {
        Self { state: RwLock::new(state), users: Users::new() }
    }

    /// Takes the state out of the lock.
    pub(crate) fn into_state(self) -> PyResult<FilterState> {
        self.state.into_inner().map_err(|_| poisoned())
    }

    /// Locks the filter for reading. Releases the interpreter's lock if it must wait.
    #[inline]
    pub(crate) fn read(&self, py: Python<'_>) -> PyResult<RwLockReadGuard<'_, FilterState>> {
        match self.state.try_read() {
            Err(TryLockError::WouldBlock) => {
                // A user until this thread has the interpreter's lock again.
                let user = self.users.enter()?;
                let locked = self.state.read_py_attached(py);
                drop(user);
                locked.map_err(|_| poisoned())
            }
            locked => locked.map_err(|_| poisoned()),
        }
    }

    /// Locks the filter for writing. Releases the interpreter's lock if it must wait.
    #[inline]
    pub(crate) fn write(&self, py: Python<'_>) -> PyResult<RwLockWriteGuard<'_, FilterState>> {
        match self.state.try_write() {
            Err(TryLockError::WouldBlock) => {
                let user = self.users.enter()?;
                let locked = self.state.write_py_attached(py);
                drop(user);
                locked.map_err(|_| poisoned())
            }
            locked => locked.map_err(|_| poisoned()),
        }
    }

    /// Locks the filter for reading, in a thread that does not hold the interpreter's lock.
    pub(crate) fn read_detached(&self) -> PyResult<Locked<'_, RwLockReadGuard<'_, FilterState>>> {
        let user = self.users.enter()?;
        Ok(Locked { state: self.state.read().map_err(|_| poisoned())?, _user: user })
    }

    /// Locks the filter for writing, in a thread that does not hold the interpreter's lock.
    pub(crate) fn write_detached(&self) -> PyResult<Locked<'_, RwLockWriteGuard<'_, FilterState>>> {
        let user = self.users.enter()?;
        Ok(Locked { state: self.state.write().map_err(|_| poisoned())?, _user: user })
    }
}

/// A locked filter, in a thread that does not hold the interpreter's lock.
pub(crate) struct Locked<'a, G> {
    // Dropped first.
    state: G,
    _user: User<'a>,
}

impl<G: Deref> Deref for Locked<'_, G> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        &self.state
    }
}

impl<G: DerefMut> DerefMut for Locked<'_, G> {
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.state
    }
}

/// The error after a thread panicked while it changed the filter.
fn poisoned() -> PyErr {
    Exception::Petal.new_err("a thread panicked while it changed the filter; make a new filter")
}
