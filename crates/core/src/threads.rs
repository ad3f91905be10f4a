//! Dividing work among threads.
//!
//! The caller is one of the threads, and pieces of work wait in a queue, so that all work is done however
//! few threads the system gives. Without the feature `std` all work runs on the calling thread.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use core::num::NonZeroUsize;

/// The number of threads that are allowed on any machine. More must have processors.
#[cfg(feature = "std")]
const ALLOWED: usize = 16;

/// Returns how many of these threads are useful for this number of pieces of work: not more than pieces or
/// processors.
#[cfg(feature = "std")]
pub(crate) fn useful_threads(threads: NonZeroUsize, pieces: usize) -> NonZeroUsize {
    let threads = threads.get().min(pieces.max(1));
    let processors = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = if threads <= ALLOWED { threads } else { threads.min(processors().max(ALLOWED)) };
    NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN)
}

#[cfg(not(feature = "std"))]
pub(crate) fn useful_threads(_: NonZeroUsize, _: usize) -> NonZeroUsize {
    NonZeroUsize::MIN
}

/// Runs pieces of work concurrently, each on a thread of its own if the system gives that many; a single
/// piece on the calling thread. Returns the results in the order of the pieces.
///
/// # Panics
/// If a piece of work panics.
#[cfg(feature = "std")]
pub(crate) fn run_each<W: Send, R: Send>(
    work: impl ExactSizeIterator<Item = W> + Send,
    act: impl Fn(W) -> R + Sync,
) -> Vec<R> {
    run_with(std::thread::Builder::new, work, act)
}

/// [`run_each`] with threads of this builder.
#[cfg(feature = "std")]
fn run_with<W: Send, R: Send>(
    builder: impl Fn() -> std::thread::Builder,
    work: impl ExactSizeIterator<Item = W> + Send,
    act: impl Fn(W) -> R + Sync,
) -> Vec<R> {
    use std::panic::resume_unwind;
    use std::sync::Mutex;
    use std::thread;

    let pieces = work.len();
    if pieces < 2 {
        return work.map(act).collect();
    }
    let work = Mutex::new(work.enumerate());
    // The lock is not held during the work.
    let next = || work.lock().ok()?.next();
    let run = || {
        let mut results = Vec::new();
        while let Some((at, work)) = next() {
            results.push((at, act(work)));
        }
        results
    };
    thread::scope(|scope| {
        // After an error the threads that exist do the rest.
        let start = |_| builder().spawn_scoped(scope, run).ok();
        let threads: Vec<_> = (1..pieces).map_while(start).collect();
        let mut results = run();
        for thread in threads {
            results.extend(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results.sort_unstable_by_key(|(at, _)| *at);
        results.into_iter().map(|(_, result)| result).collect()
    })
}

#[cfg(not(feature = "std"))]
pub(crate) fn run_each<W, R>(
    work: impl ExactSizeIterator<Item = W>,
    act: impl Fn(W) -> R,
) -> Vec<R> {
    work.map(act).collect()
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn results_are_in_order() {
        for pieces in [0, 1, 2, 3, 50] {
            let results = run_each(0..pieces, |piece| piece * 2);
            assert_eq!(results, (0..pieces).map(|piece| piece * 2).collect::<Vec<_>>());
        }
    }

    /// No system has memory for a stack of this size.
    #[test]
    #[cfg_attr(not(target_os = "linux"), ignore = "other systems may reserve the memory")]
    fn work_is_done_without_threads() {
        let caller = thread::current().id();
        let without = || thread::Builder::new().stack_size(1 << 60);
        let results = run_with(without, 0..5, |piece| (piece, thread::current().id()));
        assert_eq!(results, [0, 1, 2, 3, 4].map(|piece| (piece, caller)));
    }

    #[test]
    fn threads_are_limited_by_work_and_processors() {
        let threads =
            |wanted, pieces| useful_threads(NonZeroUsize::new(wanted).unwrap(), pieces).get();
        assert_eq!((threads(1, 9), threads(8, 3), threads(3, 8), threads(4, 0)), (1, 3, 3, 1));
        assert!(threads(1_000_000, usize::MAX) < 100_000);
    }
}
