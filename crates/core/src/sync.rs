//! Atomic words and waiting, from std.
//!
//! Under `cargo x loom` the same names are loom's, which runs a test with every order of its
//! threads and every value that an atomic load may return. Loom's atomics are larger than std's, so
//! only the protocol is compiled then, not the filter that uses it.
//!
//! Source: loom, after Norris & Demsky 2013, "CDSChecker: Checking concurrent data structures
//! written with C/C++ atomics".

#[cfg(not(all(loom, test)))]
pub(crate) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicU64, Ordering},
    thread::yield_now,
};

#[cfg(all(loom, test))]
pub(crate) use loom::{
    hint::spin_loop,
    sync::atomic::{AtomicU64, Ordering},
};

/// Lets other threads run. From here on loom does not vary their order: otherwise three threads
/// have infinitely many orders, in which two of them wait in turn.
#[cfg(all(loom, test))]
pub(crate) fn yield_now() {
    loom::skip_branch();
    loom::thread::yield_now();
}
