//! Signals: what is half written goes, and whoever asked for it ends in good order.

use std::sync::atomic::{AtomicBool, Ordering};

use petal_lines::aside;

/// Whether the first signal only asks the work to end.
static GENTLE: AtomicBool = AtomicBool::new(false);
static STOPPED: AtomicBool = AtomicBool::new(false);

/// On Ctrl-C, SIGTERM or SIGHUP: removes what is half written and ends, as shells expect.
pub(crate) fn handle() {
    #[expect(clippy::exit, reason = "a signal ends the process, from the handler's own thread")]
    let end = || {
        // Only then: other work must not take half of its input for all of it.
        if GENTLE.load(Ordering::Relaxed) && !STOPPED.swap(true, Ordering::Relaxed) {
            return;
        }
        aside::remove_half_written();
        std::process::exit(130);
    };
    aside::expect_signals();
    // Without a handler a signal still ends the process; only a named file could stay behind.
    let _ = ctrlc::set_handler(end);
}

/// From now on the first signal only makes [`stopped`] true. The second ends the process: the
/// work may be waiting for somebody who never comes.
pub(crate) fn end_gently() {
    GENTLE.store(true, Ordering::Relaxed);
}

/// Whether a signal has come.
pub(crate) fn stopped() -> bool {
    STOPPED.load(Ordering::Relaxed)
}
