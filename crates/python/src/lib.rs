//! The extension module of the Python package `petal`: filters of every type, batches of keys, set
//! operations on files, and the tasks of distributed jobs.
//!
//! Layers, each of which uses only those above it:
//!
//! - `error`: exceptions; `memory`: allocations that may fail.
//! - `keys`: the bytes of a key, and its hash.
//! - `state`: a filter of any type in memory or in a mapped file, and the lock around it.
//! - `batch`: many keys in one call, from Arrow, NumPy, pandas or any iterable, and its results.
//! - `classes`: the methods of `Filter` and its subclasses.
//! - `files`: set operations on files of lines, and filters of lines.
//! - `distributed`: tasks for the workers of a cluster.
//!
//! Everything that is written in Python is in `python/petal`.
//!
//! **Threads.** Work that takes long runs without the interpreter's lock and under the lock of the
//! filter. No thread waits for a filter's lock while it holds the interpreter's, and no Python code
//! runs under a filter's lock. So the two locks cannot deadlock.

mod batch;
mod classes;
mod distributed;
mod error;
mod files;
mod keys;
mod memory;
mod secret;
mod state;

use pyo3::prelude::*;

/// Filters of every type, and set operations on files. The package `petal` imports this module;
/// the executors of a cluster need this module alone.
#[pymodule]
fn _petal(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    error::register(module)?;
    keys::calls::register(module)?;
    state::fork::register(module)?;
    batch::register(module)?;
    classes::register(module)?;
    files::register(module)?;
    distributed::register(module)
}
