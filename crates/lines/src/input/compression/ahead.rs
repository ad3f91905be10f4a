//! A reader whose next bytes can be looked at.

use std::io::{self, BufRead, Read};

/// The most bytes to look at: a magic number and a length, or the first bytes of any frame.
const MOST: usize = 18;

/// A reader whose next bytes can be looked at before they are read.
pub(super) struct Ahead<R> {
    reader: R,
    bytes: [u8; MOST],
    /// The bytes that were looked at and are not read yet.
    start: usize,
    end: usize,
    /// Whether a read has met the end.
    pub(super) ended: bool,
}

impl<R: Read> Ahead<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, bytes: [0; MOST], start: 0, end: 0, ended: false }
    }

    /// Returns the next `count` bytes without reading them; fewer at the end.
    pub(super) fn look(&mut self, count: usize) -> io::Result<&[u8]> {
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        while self.end < count.min(MOST) {
            match self.reader.read(&mut self.bytes[self.end..count.min(MOST)]) {
                Ok(0) => break,
                Ok(got) => self.end += got,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(&self.bytes[..self.end])
    }

    /// Skips this number of bytes.
    pub(super) fn skip(&mut self, count: u64) -> io::Result<()> {
        match io::copy(&mut self.take(count), &mut io::sink())? {
            skipped if skipped < count => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Skips a skippable frame if one is next. Returns whether it was.
    pub(super) fn skip_frame(&mut self) -> io::Result<bool> {
        let head = self.look(8)?;
        let Some(([magic, rest @ ..], length)) = head.split_first_chunk::<4>() else {
            return Ok(false);
        };
        if magic & 0xf0 != 0x50 || *rest != [0x2a, 0x4d, 0x18] {
            return Ok(false);
        }
        let length = length.first_chunk().ok_or(io::ErrorKind::UnexpectedEof)?;
        let length = u32::from_le_bytes(*length);
        self.skip(8 + u64::from(length)).map(|()| true)
    }
}

impl<R: Read> Read for Ahead<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.start < self.end {
            let got = (&self.bytes[self.start..self.end]).read(buffer)?;
            self.start += got;
            return Ok(got);
        }
        let got = self.reader.read(buffer)?;
        self.ended |= got == 0 && !buffer.is_empty();
        Ok(got)
    }
}

impl<R: BufRead> BufRead for Ahead<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start < self.end {
            return Ok(&self.bytes[self.start..self.end]);
        }
        self.reader.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        match self.start < self.end {
            true => self.start += count,
            false => self.reader.consume(count),
        }
    }
}
