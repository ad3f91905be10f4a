//! Signals: temporary files are removed, and a command that can stop early saves its state.

use std::sync::atomic::{AtomicBool, Ordering};

use petal_lines::{abort_uploads, atomic_file};

/// Whether the first signal only requests a stop.
static STOP_FIRST: AtomicBool = AtomicBool::new(false);
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Installs the handler of Ctrl-C, SIGTERM and SIGHUP: it removes unfinished files, aborts uploads and exits with
/// 130.
pub(crate) fn handle() {
    #[expect(clippy::exit, reason = "a signal ends the process, from the handler's own thread")]
    let end = || {
        if STOP_FIRST.load(Ordering::Relaxed) && !STOPPED.swap(true, Ordering::Relaxed) {
            return;
        }
        atomic_file::remove_half_written();
        abort_uploads();
        std::process::exit(130);
    };
    atomic_file::expect_signals();
    // Without a handler a signal still ends the process, but a temporary file may remain.
    let _ = ctrlc::set_handler(end);
}

/// Makes the first signal only set [`stopped`]. The second one still ends the process, because the
/// command may wait for input that never arrives.
pub(crate) fn stop_on_first() {
    STOP_FIRST.store(true, Ordering::Relaxed);
}

/// Returns true after the first signal, if [`stop_on_first`] was called.
pub(crate) fn stopped() -> bool {
    STOPPED.load(Ordering::Relaxed)
}
