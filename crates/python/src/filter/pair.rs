//! Two filters at once, without waiting for each other in a circle: both locks are always taken
//! in the order in which the filters lie in memory. None of this is called with the interpreter's
//! lock in hand.

use pyo3::PyResult;

use super::Filter;
use crate::held::Held;

/// Looks at two filters.
pub(super) fn with_both<R>(
    a: &Filter,
    b: &Filter,
    look: impl FnOnce(&Held, &Held) -> PyResult<R>,
) -> PyResult<R> {
    // Not twice for reading: a writer that waits in between would be waited for.
    if std::ptr::eq(a, b) {
        let held = a.read_detached()?;
        return look(&held, &held);
    }
    let (left, right);
    if std::ptr::from_ref(a) < std::ptr::from_ref(b) {
        left = a.read_detached()?;
        right = b.read_detached()?;
    } else {
        right = b.read_detached()?;
        left = a.read_detached()?;
    }
    look(&left, &right)
}

/// Changes the first by what is in the second, which may be the first.
pub(super) fn change_by(
    ours: &Filter,
    theirs: &Filter,
    change: impl FnOnce(&mut Held, &Held) -> PyResult<()>,
) -> PyResult<()> {
    if std::ptr::eq(ours, theirs) {
        let mut held = ours.write_detached()?;
        let copy = held.copy()?;
        return change(&mut held, &copy);
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
