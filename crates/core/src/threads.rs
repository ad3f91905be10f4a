//! Dividing work among threads.
//!
//! Without the feature `std` all work runs on the calling thread.

/// Runs pieces of work concurrently, each on a thread of its own; a single piece on the calling
/// thread.
///
/// # Panics
/// If a thread cannot be started, or a piece of work panics.
#[cfg(feature = "std")]
pub(crate) fn run_each<W: Send, R: Send>(
    work: impl ExactSizeIterator<Item = W>,
    act: impl Fn(W) -> R + Sync,
) -> Vec<R> {
    use std::panic::resume_unwind;
    use std::thread;

    let act = &act;
    if work.len() < 2 {
        return work.map(act).collect();
    }
    thread::scope(|scope| {
        let threads: Vec<_> = work.map(|work| scope.spawn(move || act(work))).collect();
        let results = threads.into_iter().map(thread::ScopedJoinHandle::join);
        results.map(|result| result.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

#[cfg(not(feature = "std"))]
pub(crate) fn run_each<W, R>(
    work: impl ExactSizeIterator<Item = W>,
    act: impl Fn(W) -> R,
) -> alloc::vec::Vec<R> {
    work.map(act).collect()
}
