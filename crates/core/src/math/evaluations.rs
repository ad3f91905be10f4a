//! Counts rate calculations, so that tests can check how many a search for a size needs.

use core::cell::Cell;

thread_local! {
    /// Rates calculated on this thread.
    pub(crate) static EVALUATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Counts one calculation.
pub(super) fn count() {
    EVALUATIONS.with(|count| count.set(count.get() + 1));
}
