//! What threads share: atomic words and waiting, from std.
//!
//! Under `cargo x loom` the same names are loom's, which runs a test through every order in which
//! its threads may come, and through every value that a word may show them. Loom's words are
//! larger than std's, so only the protocol is built then, and not the filter over it.
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

/// Who has waited so long only keeps others going: from here on this order of theirs is run to its
/// end and not varied. Else three threads have orders without end, in which two wait in turn.
#[cfg(all(loom, test))]
pub(crate) fn yield_now() {
    loom::skip_branch();
    loom::thread::yield_now();
}
