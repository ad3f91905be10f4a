//! Signals: temporary files are removed, and a command that can stop early saves its state.
//!
//! A signal that is ignored at the start stays ignored, as `nohup`, `trap '' INT` and background jobs of
//! scripts expect. The others are blocked in every thread, and one thread waits for them: what they do may
//! take locks and write files, which no signal handler may.

use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use libc::{SIGHUP, SIGINT, SIGTERM, c_int, sigset_t};
use petal_lines::{abort_uploads, atomic_file};

use super::hidden_terminal;

/// Whether the first signal only requests a stop.
static STOP_FIRST: AtomicBool = AtomicBool::new(false);
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Makes Ctrl-C, SIGTERM and SIGHUP remove unfinished files, abort uploads, restore a hidden terminal, and end
/// the process with 130. Call it before other threads start, which inherit the blocked signals.
pub(crate) fn handle() {
    let ending: Vec<_> =
        [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|s| !is_ignored(*s)).collect();
    if ending.is_empty() {
        return;
    }
    atomic_file::expect_signals();
    let signals = block(&ending);
    let waiter = move || {
        loop {
            wait_for(&signals);
            end();
        }
    };
    if thread::Builder::new().name("signals".to_owned()).spawn(waiter).is_err() {
        // Without the thread a signal still ends the process, but a temporary file may remain.
        unblock(&signals);
    }
}

#[expect(clippy::exit, reason = "a signal ends the process, from a thread of its own")]
fn end() {
    if STOP_FIRST.load(Ordering::Relaxed) && !STOPPED.swap(true, Ordering::Relaxed) {
        return;
    }
    hidden_terminal::show_again();
    atomic_file::remove_half_written();
    abort_uploads();
    std::process::exit(130);
}

#[expect(unsafe_code, reason = "the standard library has no signals")]
fn is_ignored(signal: c_int) -> bool {
    // SAFETY: all bytes 0 are a value of the structure; without a new action the call only reads.
    unsafe {
        let mut action = std::mem::zeroed::<libc::sigaction>();
        let read = libc::sigaction(signal, ptr::null(), &raw mut action);
        read == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

/// Blocks signals in this thread and those that it starts, and returns their set.
#[expect(unsafe_code, reason = "the standard library has no signals")]
fn block(ending: &[c_int]) -> sigset_t {
    // SAFETY: the set is initialized before its use, and outlives the calls.
    unsafe {
        let mut signals = std::mem::zeroed::<sigset_t>();
        libc::sigemptyset(&raw mut signals);
        for signal in ending {
            libc::sigaddset(&raw mut signals, *signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, ptr::null_mut());
        signals
    }
}

#[expect(unsafe_code, reason = "the standard library has no signals")]
fn unblock(signals: &sigset_t) {
    // SAFETY: the set outlives the call.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, signals, ptr::null_mut()) };
}

/// Waits until one of these signals arrives.
#[expect(unsafe_code, reason = "the standard library has no signals")]
fn wait_for(signals: &sigset_t) {
    let mut signal = 0;
    // SAFETY: both outlive the call.
    while unsafe { libc::sigwait(signals, &raw mut signal) } != 0 {}
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
