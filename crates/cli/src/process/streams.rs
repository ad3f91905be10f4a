//! Standard streams that were closed when the program started (`petal … <&-`, `>&-`).
//!
//! Rust's runtime opens `/dev/null` for them before `main`: a closed input would be an empty one, and
//! output would be lost without an error. Before the runtime starts, `/dev/null` is therefore opened so
//! that every read or write fails: an input for writing only, an output for reading only.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, IntoRawFd as _};

use rustix::fs::{Mode, OFlags, fcntl_getfl};

/// Returns true if standard output was closed at the start, or is open for reading only. Of closed ones
/// only Linux detects it.
pub(crate) fn is_stdout_closed() -> bool {
    let flags = fcntl_getfl(io::stdout());
    flags.is_ok_and(|flags| flags & OFlags::RWMODE == OFlags::RDONLY)
}

extern "C" fn occupy_closed_streams() {
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    let streams = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
    let is_open = |stream: BorrowedFd<'_>| rustix::io::fcntl_getfd(stream).is_ok();
    for (number, stream) in streams.into_iter().enumerate() {
        if !is_open(stream) {
            let flags = if number == 0 { OFlags::WRONLY } else { OFlags::RDONLY };
            // It gets the lowest free number, which is that of the stream.
            if let Ok(null) = rustix::fs::open("/dev/null", flags, Mode::empty()) {
                let _ = null.into_raw_fd();
            }
        }
    }
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "a function that runs before main has no safe form")]
// SAFETY: the section holds functions of this type, which the C library calls before `main`. The
// function only tests and opens descriptors.
#[unsafe(link_section = ".init_array")]
#[used]
static OCCUPY_CLOSED_STREAMS: extern "C" fn() = occupy_closed_streams;
