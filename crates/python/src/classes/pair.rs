//! Locks on two filters. They are always taken in the order of the filters' addresses, so that two
//! threads cannot deadlock. The caller must not hold the interpreter's lock.

use pyo3::PyResult;

use super::Filter;
use crate::state::FilterState;
use crate::state::fork::Gate;

/// Calls `read` with the states of two filters, which may be the same.
pub(super) fn with_both<R>(
    a: &Filter,
    b: &Filter,
    read: impl FnOnce(&FilterState, &FilterState) -> PyResult<R>,
) -> PyResult<R> {
    let gate = Gate::enter();
    // One read lock: a second one could wait for a writer, which waits for the first.
    if std::ptr::eq(a, b) {
        let state = a.read_within(&gate)?;
        return read(&state, &state);
    }
    let (left, right);
    if std::ptr::from_ref(a) < std::ptr::from_ref(b) {
        left = a.read_within(&gate)?;
        right = b.read_within(&gate)?;
    } else {
        right = b.read_within(&gate)?;
        left = a.read_within(&gate)?;
    }
    read(&left, &right)
}

/// Changes the first filter, using the second, which may be the same.
pub(super) fn change_first(
    ours: &Filter,
    theirs: &Filter,
    change: impl FnOnce(&mut FilterState, &FilterState) -> PyResult<()>,
) -> PyResult<()> {
    let gate = Gate::enter();
    if std::ptr::eq(ours, theirs) {
        let mut state = ours.write_within(&gate)?;
        let copy = state.copy()?;
        return change(&mut state, &copy);
    }
    let (mut left, right);
    if std::ptr::from_ref(ours) < std::ptr::from_ref(theirs) {
        left = ours.write_within(&gate)?;
        right = theirs.read_within(&gate)?;
    } else {
        right = theirs.read_within(&gate)?;
        left = ours.write_within(&gate)?;
    }
    change(&mut left, &right)
}
