//! Reading of a range of a file in order.

use std::io::{self, Read};

use crate::files::{ByteRange, InputFile, StreamSum};
use crate::poll_read::PollRead;

/// Reads a range of a file in order, independent of the file's offset.
pub(super) struct RangeReader {
    file: InputFile,
    at: u64,
    end: u64,
    /// The checksum of the bytes, if needed.
    sum: Option<StreamSum>,
}

impl RangeReader {
    pub(super) fn new(file: InputFile, range: ByteRange, sum: Option<StreamSum>) -> Self {
        Self { file, at: range.start, end: range.end, sum }
    }
}

impl PollRead for RangeReader {
    fn ready(&mut self) -> bool {
        true
    }
}

impl Read for RangeReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let max = (self.end - self.at).min(buffer.len() as u64) as usize;
        let got = self.file.read_at(&mut buffer[..max], self.at)?;
        self.at += got as u64;
        if let Some(sum) = &mut self.sum {
            sum.add(&buffer[..got]);
        }
        if self.at == self.end {
            self.sum.take().into_iter().for_each(StreamSum::finish);
        }
        Ok(got)
    }
}

/// A stream without its first `left` bytes.
pub(super) struct Skipping<S> {
    pub(super) stream: S,
    pub(super) left: u64,
}

impl<S: Read> Read for Skipping<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.left > 0 {
            let max = self.left.min(buffer.len() as u64) as usize;
            match self.stream.read(&mut buffer[..max])? {
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
