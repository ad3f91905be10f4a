//! Whether standard output was closed when the program was started (`petal … >&-`).
//!
//! Before `main`, Rust's runtime opens `/dev/null` in the place of a closed standard stream: what
//! is printed would be lost without an error. So the descriptor is tested before that.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether standard output was closed at the start; `false` where that is not known, which is
/// everywhere but on Linux.
pub(crate) fn stdout() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

extern "C" fn look() {
    let closed = rustix::io::fcntl_getfd(io::stdout().as_fd()).is_err();
    CLOSED.store(closed, Ordering::Relaxed);
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "a function that runs before main has no safe form")]
// SAFETY: the section holds functions of this type, which the C library calls before `main`. The
// function only tests a descriptor and sets a flag.
#[unsafe(link_section = ".init_array")]
#[used]
static LOOK: extern "C" fn() = look;
