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
pub(crate) const POLL_TIMEOUT: std::time::Duration = std::time::Duration::from_millis(50);

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

/// Size to which the buffer of a pipe is enlarged. 1 MiB is hardly faster, and the pipes of a user
/// have 64 MiB before Linux makes further ones smaller.
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 256 << 10;

/// Enlarges the buffer of a pipe, so that its writer and its reader wait for each other less often.
///
/// A larger pipe, a file of another type and a pipe that may not grow stay as they are. Inputs are
/// enlarged when they are opened; programs may do it with their outputs.
pub fn enlarge_pipe(file: &File) {
    #[cfg(target_os = "linux")]
    if rustix::pipe::fcntl_getpipe_size(file).is_ok_and(|bytes| bytes < PIPE_BYTES) {
        let _ = rustix::pipe::fcntl_setpipe_size(file, PIPE_BYTES);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = file;
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size, pipe};

    #[test]
    fn pipes_are_enlarged_but_never_shrunk() {
        let (reader, _writer) = pipe().unwrap();
        let reader = File::from(reader);
        fcntl_setpipe_size(&reader, 64 << 10).unwrap();
        enlarge_pipe(&reader);
        assert_eq!(fcntl_getpipe_size(&reader).unwrap(), PIPE_BYTES);
        fcntl_setpipe_size(&reader, 2 * PIPE_BYTES).unwrap();
        enlarge_pipe(&reader);
        assert_eq!(fcntl_getpipe_size(&reader).unwrap(), 2 * PIPE_BYTES);
    }
}
