//! Reading of all frames of an lz4 file: normal, legacy and skippable ones, in any order, as `lz4 -dc`
//! reads them.

use std::io::{self, Read};

use lz4_flex::frame::FrameDecoder;

use super::ahead::Ahead;
use super::requirements::lz4_memory;
use super::{Codec, check_memory};

/// The magic number of a legacy frame.
const LEGACY: [u8; 4] = [0x02, 0x21, 0x4c, 0x18];

/// The most bytes of a block of a legacy frame, and of its compressed form. A larger length is the
/// magic number of the next frame: a legacy frame has no end.
const MAX_BLOCK: usize = 8 << 20;
const MAX_PACKED: usize = MAX_BLOCK + MAX_BLOCK / 255 + 16;

/// The most bytes that one compressed byte stands for.
const MAX_RATIO: usize = 255;

/// Reads all frames of an lz4 file.
///
/// The decoder takes a missing end of a frame for the end of the file. It is an error here.
pub(super) struct Lz4Frames<R: Read> {
    decoder: FrameDecoder<Ahead<R>>,
    /// Memory for the blocks of a frame.
    available: u64,
    next: Next,
    /// A block of a legacy frame, and the position in it; its compressed form.
    block: io::Cursor<Vec<u8>>,
    packed: Vec<u8>,
}

/// What the next bytes are.
enum Next {
    /// A frame, or the end of the file.
    Frame,
    /// The rest of a normal frame.
    Rest,
    /// A block of a legacy frame, or what follows the frame.
    LegacyBlock,
}

impl<R: Read> Lz4Frames<R> {
    pub(super) fn new(reader: R, available: u64) -> Self {
        let decoder = FrameDecoder::new(Ahead::new(reader));
        let (block, packed) = Default::default();
        Self { decoder, available, next: Next::Frame, block, packed }
    }

    /// Begins the next frame. Returns whether there is one.
    fn begin(&mut self) -> io::Result<bool> {
        let input = self.decoder.get_mut();
        while input.skip_frame()? {}
        let head = input.look(6)?;
        if head.is_empty() {
            return Ok(false);
        }
        if head.starts_with(&LEGACY) {
            input.skip(LEGACY.len() as u64)?;
            self.next = Next::LegacyBlock;
            return Ok(true);
        }
        check_memory(Codec::Lz4, lz4_memory(head), self.available)?;
        self.next = Next::Rest;
        Ok(true)
    }

    /// Decompresses the next block of a legacy frame. Returns whether there is one.
    fn next_block(&mut self) -> io::Result<bool> {
        let input = self.decoder.get_mut();
        let head = input.look(4)?;
        let Some(length) = head.first_chunk().map(|length| u32::from_le_bytes(*length) as usize)
        else {
            return if head.is_empty() {
                Ok(false)
            } else {
                Err(io::ErrorKind::UnexpectedEof.into())
            };
        };
        if length > MAX_PACKED {
            return Ok(false);
        }
        let longest = MAX_BLOCK.min(MAX_RATIO * length);
        check_memory(Codec::Lz4, Some((length + longest) as u64), self.available)?;
        input.skip(4)?;
        self.packed.resize(length, 0);
        input.read_exact(&mut self.packed)?;
        let block = self.block.get_mut();
        block.resize(longest, 0);
        let length = lz4_flex::block::decompress_into(&self.packed, block)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        block.truncate(length);
        self.block.set_position(0);
        Ok(true)
    }
}

impl<R: Read> Read for Lz4Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.next {
                Next::Frame => {
                    if !self.begin()? {
                        return Ok(0);
                    }
                }
                Next::Rest => {
                    let got = self.decoder.read(buffer)?;
                    if got > 0 || buffer.is_empty() {
                        return Ok(got);
                    }
                    if self.decoder.get_ref().ended {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    self.next = Next::Frame;
                }
                Next::LegacyBlock => {
                    let got = self.block.read(buffer)?;
                    if got > 0 || buffer.is_empty() {
                        return Ok(got);
                    }
                    if !self.next_block()? {
                        self.next = Next::Frame;
                    }
                }
            }
        }
    }
}
