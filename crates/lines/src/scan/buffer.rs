//! The read buffer of a worker.

use crate::error::{Error, Result};
use crate::io::{InputFile, read_at};

/// A buffer whose memory is reused without being cleared.
#[derive(Default)]
pub(super) struct Buffer {
    pub(super) bytes: Vec<u8>,
    /// Number of valid bytes.
    pub(super) len: usize,
}

impl Buffer {
    pub(super) fn get(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Returns `more` bytes of space after the valid ones.
    pub(super) fn room(&mut self, more: usize) -> Result<&mut [u8]> {
        let length = self.len + more;
        if length > self.bytes.len() {
            let grow = length - self.bytes.len();
            // Reserve exactly this: an over-long line must not take twice its length.
            let reserved = self.bytes.try_reserve_exact(grow);
            reserved.map_err(|_| Error::alloc(length as u64))?;
            self.bytes.resize(length, 0);
        }
        Ok(&mut self.bytes[self.len..length])
    }

    /// Appends a byte range of a file.
    pub(super) fn read(&mut self, file: &InputFile, name: &str, from: u64, to: u64) -> Result<()> {
        let room = self.room((to - from) as usize)?;
        read_at(file, name, room, from)?;
        self.len += (to - from) as usize;
        Ok(())
    }

    /// Frees the memory if it is more than `most` bytes.
    pub(super) fn shrink(&mut self, most: usize) {
        if self.bytes.capacity() > most {
            *self = Self::default();
        }
    }
}
