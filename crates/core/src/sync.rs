//! The atomics and waiting functions of this crate: std's, or loom's under `cargo x loom`.
//!
//! Loom runs a test with every order of its threads and every value that an atomic load may return.
//! Its atomics are larger than std's, so the filter that uses `kernel::shared` is not compiled then.
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

/// Lets other threads run. From here on loom does not vary their order: otherwise a test would not
/// end, because two waiting threads can yield to each other for ever.
#[cfg(all(loom, test))]
pub(crate) fn yield_now() {
    loom::skip_branch();
    loom::thread::yield_now();
}
