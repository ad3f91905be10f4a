//! Reading of all frames of an lz4 file.

use std::io::{self, BufRead, Read};

use lz4_flex::frame::FrameDecoder;

use super::requirements::lz4_memory;
use super::{Codec, check_memory};

/// Reads all frames of an lz4 file.
///
/// The decoder takes a missing end of a frame for the end of the file. It is an error here.
pub(super) struct Lz4Frames<R: Read> {
    decoder: FrameDecoder<EndNoticed<R>>,
    /// Memory for the blocks of a frame.
    available: u64,
    /// Whether a frame or the end of the file is next.
    between: bool,
}

/// A reader that remembers whether a read has met the end.
struct EndNoticed<R> {
    reader: R,
    ended: bool,
}

impl<R: Read> Read for EndNoticed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.reader.read(buffer)?;
        self.ended |= got == 0 && !buffer.is_empty();
        Ok(got)
    }
}

impl<R: BufRead> Lz4Frames<R> {
    pub(super) fn new(reader: R, available: u64) -> Self {
        let decoder = FrameDecoder::new(EndNoticed { reader, ended: false });
        Self { decoder, available, between: true }
    }
}

impl<R: BufRead> Read for Lz4Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.between {
                let begin = self.decoder.get_mut().reader.fill_buf()?;
                if begin.is_empty() {
                    return Ok(0);
                }
                check_memory(Codec::Lz4, lz4_memory(begin), self.available)?;
                self.between = false;
            }
            let got = self.decoder.read(buffer)?;
            if got > 0 || buffer.is_empty() {
                return Ok(got);
            }
            if self.decoder.get_ref().ended {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.between = true;
        }
    }
}
