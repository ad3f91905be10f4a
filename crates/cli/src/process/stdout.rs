//! Detects a standard output that was closed when the program started (`petal … >&-`).
//!
//! Rust's runtime opens `/dev/null` for closed standard streams before `main`, so that output would
//! be lost without an error. The descriptor is therefore tested before the runtime starts.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Returns true if standard output was closed at the start. Always false on systems other than
/// Linux.
pub(crate) fn is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

extern "C" fn test_descriptor() {
    let closed = rustix::io::fcntl_getfd(io::stdout().as_fd()).is_err();
    CLOSED.store(closed, Ordering::Relaxed);
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "a function that runs before main has no safe form")]
// SAFETY: the section holds functions of this type, which the C library calls before `main`. The
// function only tests a descriptor and sets a flag.
#[unsafe(link_section = ".init_array")]
#[used]
static TEST_DESCRIPTOR: extern "C" fn() = test_descriptor;
