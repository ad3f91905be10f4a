//! Ranges of bytes in files.

use std::io::{self, Read};

use serde::{Deserialize, Serialize};

use super::poll_read::PollRead;

/// A range of bytes in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ByteRange {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// A stream without its first `left` bytes.
pub(super) struct Skipping<S> {
    pub(super) stream: S,
    pub(super) left: u64,
}

impl<S: Read> Read for Skipping<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.left > 0 {
            let most = self.left.min(buffer.len() as u64) as usize;
            match self.stream.read(&mut buffer[..most])? {
                0 => return Ok(0),
                got => self.left -= got as u64,
            }
        }
        self.stream.read(buffer)
    }
}

impl<S: PollRead> PollRead for Skipping<S> {
    fn ready(&mut self) -> bool {
        self.stream.ready()
    }
}
