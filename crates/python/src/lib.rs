//! The extension module of the Python package `petal`: filters of every type, batches of keys
//! where they lie, and the file engine.
//!
//! Rooms: `error` (exceptions), `key` (what can be a key), `held` (a filter of any type,
//! in memory, in a mapped file, or another program's), `shared` (it behind a lock), `arrow`,
//! `pandas`, `mask` and `batch` (many keys at once, and the answers to them), `filter` (the classes), `open` (filter files), `engine` (files of
//! lines), `ranges` and `prints` (what the workers of a cluster do, with files and with
//! tables). `python/petal` has what is written in Python.
//!
//! **Threads.** Whatever takes long is done without the interpreter's lock, under a lock of the
//! filter's own. Nobody waits for that lock while holding the interpreter's, and no Python code
//! runs under it; so the two cannot wait for each other.

mod arrow;
mod batch;
mod engine;
mod error;
mod filter;
mod held;
mod key;
mod mask;
mod open;
mod pandas;
mod prints;
mod ranges;
mod shared;

use pyo3::prelude::*;

/// Filters of every type, and set operations on files. Imported by the package `petal`; alone it
/// is all that the executors of a cluster need.
#[pymodule]
fn _petal(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    engine::register(module)?;
    error::register(module)?;
    filter::register(module)?;
    module.add_class::<mask::Mask>()?;
    prints::register(module)?;
    ranges::register(module)
}
