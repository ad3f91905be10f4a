//! A fork while other threads use filters.
//!
//! A child process has a copy of every lock but only the thread that forked. A lock that another thread held
//! would never be released there, and the bits under it could be half written. So a thread that holds a
//! filter's lock without the interpreter's lock holds the [`Gate`], too, and a fork by Python waits until the gate
//! is free: the child finds every filter unlocked and complete. A thread that holds the interpreter's lock needs no
//! gate, because the thread that forks holds it.
//!
//! Cost: one atomic operation for a batch of keys. A fork waits for calls such as `save` and `union`.

use std::cell::RefCell;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use pyo3::prelude::*;
use pyo3::sync::RwLockExt as _;
use pyo3::types::PyDict;

static GATE: RwLock<()> = RwLock::new(());

/// While it lives, this process does not fork. A thread must not enter twice: a fork that waits in between
/// would block it.
pub(crate) struct Gate {
    _open: RwLockReadGuard<'static, ()>,
}

impl Gate {
    /// Enters the gate, in a thread that does not hold the interpreter's lock.
    pub(crate) fn enter() -> Self {
        Self { _open: GATE.read().unwrap_or_else(PoisonError::into_inner) }
    }

    /// Enters the gate, in a thread that holds the interpreter's lock and will release it to wait.
    pub(super) fn enter_attached(py: Python<'_>) -> Self {
        Self { _open: GATE.read_py_attached(py).unwrap_or_else(PoisonError::into_inner) }
    }
}

thread_local! {
    /// The closed gate, in a thread that forks.
    static CLOSED: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// Closes the gate before a fork.
#[pyfunction]
fn close_gate(py: Python<'_>) {
    // Once, also if the module was loaded under two names.
    if CLOSED.with_borrow(Option::is_none) {
        let closed = GATE.write_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        CLOSED.set(Some(closed));
    }
}

/// Opens the gate after a fork, in the parent and in the child.
#[pyfunction]
fn open_gate() {
    CLOSED.set(None);
}

/// Makes Python's forks wait for the gate.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let open = wrap_pyfunction!(open_gate, module)?;
    let hooks = PyDict::new(py);
    hooks.set_item("before", wrap_pyfunction!(close_gate, module)?)?;
    hooks.set_item("after_in_parent", &open)?;
    hooks.set_item("after_in_child", &open)?;
    py.import("os")?.call_method("register_at_fork", (), Some(&hooks))?;
    Ok(())
}
