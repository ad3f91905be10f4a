//! A fork while other threads use filters.
//!
//! A child process has a copy of every lock but only the thread that forked: a lock that another thread held is
//! never released there, and the bits under it may be half written. The fork cannot wait for that thread, which may
//! itself wait for a lock that another of Python's handlers of forks has taken. So the child refuses the filter.
//!
//! No call on a filter waits in a child for a thread that does not exist there:
//!
//! - A thread that holds or waits for a filter's lock without the interpreter's lock is among the filter's [`Users`].
//!   One that was lost in a fork stays among them forever, so every call that would wait is an error.
//! - A thread that holds a filter's lock and the interpreter's is not counted: it runs no Python code, and the thread
//!   that forks holds the interpreter's lock.
//! - No static value is waited for. PyO3 releases the interpreter's lock before it makes one (`PyOnceLock`, and so
//!   its macro `intern`), and a fork in between leaves the value unfinished in the child: all that calls on filters
//!   need are made when the module is imported. The core library calculates its tables without waiting.
//! - No Python object is dropped without the interpreter's lock, because that takes a lock of PyO3.
//!
//! Cost: two atomic operations and the number of the process for a batch of keys.

use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use crate::error::Exception;

/// The number of threads that hold or wait for a filter's lock without the interpreter's lock, and the process
/// that they are in: its number, then the number of threads, 32 bits each.
pub(super) struct Users(AtomicU64);

impl Users {
    /// No users, in this process.
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(this_process()))
    }

    /// Adds this thread, before it waits for the lock.
    ///
    /// # Errors
    /// `PetalError` if another thread was a user when this process was forked.
    pub(super) fn enter(&self) -> PyResult<User<'_>> {
        let process = this_process();
        let added = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |users| {
            let (of_process, number) = (users & !COUNT, users & COUNT);
            (of_process == process || number == 0).then_some(process | (number + 1))
        });
        added.map(|_| User(self)).map_err(|_| {
            Exception::Petal.new_err(
                "another thread used the filter when this process was forked; make or load the \
                 filter in this process",
            )
        })
    }
}

/// The bits of the number of threads.
const COUNT: u64 = u32::MAX as u64;

fn this_process() -> u64 {
    u64::from(process::id()) << 32
}

/// A thread among the [`Users`]. Drop it after the lock is released, or after the thread has the interpreter's
/// lock.
pub(super) struct User<'a>(&'a Users);

impl Drop for User<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Release);
    }
}

/// Makes the static values of PyO3 that this package uses.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    // Its name of `__module__`.
    py.get_type::<PyException>().module()?;
    // Its class of paths.
    std::path::Path::new("").into_pyobject(py)?;
    // Its note that Python runs, which threads read when they take the interpreter's lock.
    py.detach(|| Python::attach(|_| ()));
    Ok(())
}
