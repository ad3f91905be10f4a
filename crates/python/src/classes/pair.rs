//! Locks on two filters. They are always taken in the order of the filters' addresses, so that two
//! threads cannot deadlock. The caller must not hold the interpreter's lock.

use pyo3::PyResult;

use super::Filter;
use crate::state::FilterState;

/// Calls `read` with the states of two filters, which may be the same.
pub(super) fn with_both<R>(
    a: &Filter,
    b: &Filter,
    read: impl FnOnce(&FilterState, &FilterState) -> PyResult<R>,
) -> PyResult<R> {
    // One read lock: a second one could wait for a writer, which waits for the first.
    if std::ptr::eq(a, b) {
        let state = a.read_detached()?;
        return read(&state, &state);
    }
    let (left, right);
    if std::ptr::from_ref(a) < std::ptr::from_ref(b) {
        left = a.read_detached()?;
        right = b.read_detached()?;
    } else {
        right = b.read_detached()?;
        left = a.read_detached()?;
    }
    read(&left, &right)
}

/// Changes the first filter, using the second, which may be the same.
pub(super) fn change_first(
    ours: &Filter,
    theirs: &Filter,
    change: impl FnOnce(&mut FilterState, &FilterState) -> PyResult<()>,
) -> PyResult<()> {
    if std::ptr::eq(ours, theirs) {
        let mut state = ours.write_detached()?;
        let copy = state.copy()?;
        return change(&mut state, &copy);
    }
    let (mut left, right);
    if std::ptr::from_ref(ours) < std::ptr::from_ref(theirs) {
        left = ours.write_detached()?;
        right = theirs.read_detached()?;
    } else {
        right = theirs.read_detached()?;
        left = ours.write_detached()?;
    }
    change(&mut left, &right)
}
