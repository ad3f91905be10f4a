//! Streams with a bounded wait.

use std::fs::File;
use std::io::Read;

/// A stream with a bounded wait, so that a reader can check for cancellation.
pub(crate) trait PollRead: Read {
    /// Waits for at most [`POLL_TIMEOUT`] and returns whether a read will not block. Returns true if
    /// the stream cannot be polled.
    fn ready(&mut self) -> bool;
}

/// Maximum wait of [`PollRead::ready`].
pub(super) const POLL_TIMEOUT: std::time::Duration = std::time::Duration::from_millis(50);

impl PollRead for File {
    fn ready(&mut self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        use rustix::io::Errno;
        let moment = Timespec { tv_sec: 0, tv_nsec: POLL_TIMEOUT.subsec_nanos().into() };
        let mut fds = [PollFd::new(self, PollFlags::IN)];
        // Interrupted by a signal: not ready, so that the caller checks for cancellation.
        !matches!(poll(&mut fds, Some(&moment)), Ok(0) | Err(Errno::INTR))
    }
}
