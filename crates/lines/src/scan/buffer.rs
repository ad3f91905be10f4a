//! The read buffer of a worker.

use crate::error::{Error, Result};
use crate::files::{InputFile, read_at};

/// Page sizes are multiples of this.
const PAGE: usize = 4096;

/// A buffer whose memory is reused without being cleared.
///
/// Until it grows, its first byte is at the position in a page that it has in the file or stream. On
/// some AMD processors the kernel copies at a third of the speed to memory that is, within a page,
/// 1 to 31 bytes ahead of the source (`crates/bench/read_position.py`). Large blocks of the allocator
/// begin 16 bytes after a page does.
#[derive(Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    /// Position of the first valid byte in `bytes`.
    start: usize,
    /// Number of valid bytes.
    pub(super) len: usize,
    /// Position of the first valid byte in the file or stream.
    offset: u64,
}

impl Buffer {
    pub(super) fn get(&self) -> &[u8] {
        &self.bytes[self.start..][..self.len]
    }

    /// Removes all bytes. The next ones are those at `offset` of the file or stream.
    pub(super) fn clear(&mut self, offset: u64) {
        (self.len, self.offset) = (0, offset);
    }

    /// Returns `more` bytes of space after the valid ones.
    pub(super) fn spare(&mut self, more: usize) -> Result<&mut [u8]> {
        let length = PAGE + self.len + more;
        if length > self.bytes.len() {
            let grow = length - self.bytes.len();
            // Reserve exactly this: an over-long line must not take twice its length.
            let reserved = self.bytes.try_reserve_exact(grow);
            reserved.map_err(|_| Error::alloc(length as u64))?;
            self.bytes.resize(length, 0);
        }
        if self.len == 0 {
            let memory = self.bytes.as_ptr().addr() as u64;
            self.start = (self.offset.wrapping_sub(memory) % PAGE as u64) as usize;
        }
        Ok(&mut self.bytes[self.start + self.len..][..more])
    }

    /// Appends a byte range of a file.
    pub(super) fn read(&mut self, file: &InputFile, name: &str, from: u64, to: u64) -> Result<()> {
        let spare = self.spare((to - from) as usize)?;
        read_at(file, name, spare, from)?;
        self.len += (to - from) as usize;
        Ok(())
    }

    /// Frees the memory if it is more than `max` bytes.
    pub(super) fn shrink(&mut self, max: usize) {
        if self.bytes.capacity() > max {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Buffer, PAGE};

    #[test]
    fn bytes_are_at_the_position_in_a_page_that_they_have_in_the_file() {
        let mut buffer = Buffer::default();
        for (offset, lengths) in [(0, [1, 5]), (4095, [100_000, 1]), (1 << 40 | 17, [0, 300_000])] {
            buffer.clear(offset);
            assert_eq!(buffer.get(), b"");
            let mut expected = vec![];
            for (byte, length) in (1..).zip(lengths) {
                let spare = buffer.spare(length).unwrap();
                assert_eq!(spare.len(), length);
                spare.fill(byte);
                buffer.len += length;
                expected.resize(expected.len() + length, byte);
            }
            assert_eq!(buffer.get(), expected);
            // It may have moved when it grew.
            buffer.clear(offset);
            let spare = buffer.spare(1).unwrap();
            assert_eq!(spare.as_ptr().addr() % PAGE, offset as usize % PAGE);
        }
    }
}
