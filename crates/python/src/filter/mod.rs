//! The classes: `Filter`, what every type can be asked, and one class below it for each type,
//! with what that type alone can do.

mod bloom;

use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use petal::{Answers, FilterType};
use pyo3::prelude::*;
use pyo3::sync::RwLockExt;

use crate::error::{Kind, Raise};
use crate::held::Held;
use crate::key::with_key;

/// A filter of any type. What it answers *no* to was never added; what it answers *yes* to was,
/// almost certainly.
#[pyclass(frozen, subclass, module = "petal")]
pub(crate) struct Filter {
    held: RwLock<Held>,
}

impl Filter {
    pub(crate) fn new(held: Held) -> Self {
        Self { held: RwLock::new(held) }
    }

    /// To look: without waiting if nobody changes it, else without the interpreter's lock.
    pub(crate) fn read(&self, py: Python<'_>) -> PyResult<RwLockReadGuard<'_, Held>> {
        match self.held.try_read() {
            Ok(held) => Ok(held),
            Err(TryLockError::WouldBlock) => self.held.read_py_attached(py).map_err(|_| broken()),
            Err(TryLockError::Poisoned(_)) => Err(broken()),
        }
    }

    /// To look, for a thread that does not hold the interpreter's lock.
    pub(crate) fn read_detached(&self) -> PyResult<RwLockReadGuard<'_, Held>> {
        self.held.read().map_err(|_| broken())
    }

    /// To change, likewise.
    pub(crate) fn write(&self, py: Python<'_>) -> PyResult<RwLockWriteGuard<'_, Held>> {
        match self.held.try_write() {
            Ok(held) => Ok(held),
            Err(TryLockError::WouldBlock) => self.held.write_py_attached(py).map_err(|_| broken()),
            Err(TryLockError::Poisoned(_)) => Err(broken()),
        }
    }
}

/// A thread ended while it changed the filter.
fn broken() -> PyErr {
    Kind::Petal.with("the filter was left half changed by a thread that panicked")
}

#[pymethods]
impl Filter {
    /// Whether a key may have been added.
    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        // The key first: looking at it may run Python code.
        with_key(key, |key| Ok(self.read(py)?.contains(key)))?
    }

    /// Adds a key; whether it certainly was not in the filter before.
    fn add(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        with_key(key, |key| {
            let mut held = self.write(py)?;
            let (mut hashes, mut new) = (Vec::new(), Answers::new());
            held.hash_spec().hash_all(std::iter::once(key), &mut hashes);
            held.face_mut()?.insert_hashes(&hashes, &mut new).map_err(Raise::raise)?;
            Ok(new.get(0))
        })?
    }

    /// The number of distinct keys in it, estimated from its bits.
    #[getter]
    fn estimated_len(&self, py: Python<'_>) -> PyResult<f64> {
        Ok(self.read(py)?.face().estimated_len())
    }
}

/// A filter as an object of its own class.
pub(crate) fn object(py: Python<'_>, held: Held) -> PyResult<Py<PyAny>> {
    match held.face().filter_type() {
        FilterType::Bloom => bloom::BloomFilter::object(py, held),
        _ => Ok(Py::new(py, Filter::new(held))?.into_any()),
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Filter>()?;
    module.add_class::<bloom::BloomFilter>()
}
