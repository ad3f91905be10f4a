//! A terminal that shows nothing that is typed.

use std::os::fd::AsFd as _;
use std::sync::{Mutex, PoisonError};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// The modes of the terminal at standard input before it was hidden.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// A terminal that shows nothing that is typed, and sends every key at once, also Ctrl-C; as before when it
/// is dropped, or at a signal.
pub(crate) struct HiddenTerminal(());

impl HiddenTerminal {
    pub(crate) fn new() -> rustix::io::Result<Self> {
        let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = tcgetattr(std::io::stdin().as_fd())?;
        let mut hidden = shown.clone();
        hidden.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        tcsetattr(std::io::stdin().as_fd(), OptionalActions::Now, &hidden)?;
        *before = Some(shown);
        Ok(Self(()))
    }
}

impl Drop for HiddenTerminal {
    fn drop(&mut self) {
        show_again();
    }
}

/// Makes a hidden terminal as it was before. Call it before a signal ends the process.
pub(super) fn show_again() {
    if let Some(shown) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        let _ = tcsetattr(std::io::stdin().as_fd(), OptionalActions::Now, &shown);
    }
}
