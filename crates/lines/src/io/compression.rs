//! Decompression of gzip, zstd, xz, bzip2 and lz4 inputs on a thread of its own.
//!
//! Several members, streams or frames in one file are one stream, as in `zcat`, `zstdcat`, `xzcat`,
//! `bzcat` and `lz4cat`. Truncated or damaged data is an error, never a short result.
//!
//! Memory: the blocks between the threads, and the window or the blocks of the format. A file that
//! needs more than the memory of the decoder is an error.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::GzDecoder;
use lz4_flex::frame::FrameDecoder;
use lzma_rust2::XzReader;

use super::poll_read::{POLL_TIMEOUT, PollRead};
use crate::error::Error;

/// A compression format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Gzip,
    Zstd,
    Xz,
    Bzip2,
    Lz4,
}

impl Codec {
    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
            Self::Bzip2 => "bzip2",
            Self::Lz4 => "lz4",
        }
    }
}

/// The compression format according to the first bytes of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Magic {
    Is(Codec),
    No,
    /// More bytes are needed.
    Maybe,
}

/// Returns whether later bytes confirm a format; `None` if more bytes are needed.
type Confirm = fn(&[u8]) -> Option<bool>;

/// A format, its first bytes with masks, and the confirmation.
type Signature = (Codec, &'static [(u8, u8)], Confirm);

/// First bytes with their masks: RFC 1952 with its only method, deflate; RFC 8878; skippable zstd
/// frames, with which files of `pzstd` begin; and the format descriptions of the other programs.
const MAGICS: [Signature; 7] = [
    (Codec::Gzip, &[(0x1f, 0xff), (0x8b, 0xff), (8, 0xff)], certain),
    (Codec::Zstd, &[(0x28, 0xff), (0xb5, 0xff), (0x2f, 0xff), (0xfd, 0xff)], certain),
    (Codec::Zstd, &[(0x50, 0xf0), (0x2a, 0xff), (0x4d, 0xff), (0x18, 0xff)], certain),
    (
        Codec::Xz,
        &[(0xfd, 0xff), (0x37, 0xff), (0x7a, 0xff), (0x58, 0xff), (0x5a, 0xff), (0x00, 0xff)],
        certain,
    ),
    // The header's version is 1.
    (Codec::Lz4, &[(4, 0xff), (0x22, 0xff), (0x4d, 0xff), (0x18, 0xff), (0x40, 0xc0)], certain),
    // A digit for the block size, then the number of a block, all of it printable text.
    (
        Codec::Bzip2,
        &[
            (b'B', 0xff),
            (b'Z', 0xff),
            (b'h', 0xff),
            (0x30, 0xf0),
            (0x31, 0xff),
            (0x41, 0xff),
            (0x59, 0xff),
            (0x26, 0xff),
            (0x53, 0xff),
            (0x59, 0xff),
        ],
        has_bzip2_block,
    ),
    // An empty file: the number of the end of the stream.
    (
        Codec::Bzip2,
        &[
            (b'B', 0xff),
            (b'Z', 0xff),
            (b'h', 0xff),
            (0x30, 0xf0),
            (0x17, 0xff),
            (0x72, 0xff),
            (0x45, 0xff),
        ],
        certain,
    ),
];

fn certain(_: &[u8]) -> Option<bool> {
    Some(true)
}

/// A bzip2 block has after its number a checksum of 4 bytes, a bit that is 0 (1 in obsolete versions)
/// and a 24-bit number below 900,000. The byte after the checksum is therefore a control byte below
/// 7, which text does not have.
fn has_bzip2_block(begin: &[u8]) -> Option<bool> {
    const AFTER_CHECKSUM: usize = 14;
    begin.get(AFTER_CHECKSUM).map(|byte| *byte < 7)
}

impl Magic {
    /// Detects the codec of an input that begins with these bytes.
    pub(super) fn of(begin: &[u8]) -> Self {
        let mut magic = Self::No;
        for (codec, pattern, confirm) in MAGICS {
            if !begin.iter().zip(pattern).all(|(byte, (value, mask))| byte & mask == *value) {
                continue;
            }
            match (begin.len() >= pattern.len()).then(|| confirm(begin)).flatten() {
                Some(true) => return Self::Is(codec),
                Some(false) => {}
                None => magic = Self::Maybe,
            }
        }
        magic
    }
}

/// Size and maximum number of the blocks that wait for the reader.
const BLOCK: usize = 128 << 10;
const WAITING: usize = 4;

/// Memory of a decoder besides its window: blocks that wait, are filled and are read, the compressed
/// bytes read ahead, and the state of the codec.
const OVERHEAD: u64 = ((WAITING + 3) * BLOCK) as u64 + (512 << 10);

/// Returns the memory reserved for a decoder of a job with this memory limit.
pub(crate) fn memory(limit: u64) -> u64 {
    OVERHEAD + limit / 8
}

/// Returns the memory limit of a job whose decoder gets these bytes.
pub(super) fn memory_limit(decoder: u64) -> u64 {
    decoder.saturating_sub(OVERHEAD) * 8
}

/// Returns the base-2 logarithm of the largest zstd window for a decoder of `memory` bytes: at least
/// the minimum that every decoder must accept, at most the maximum of the format.
fn max_window_log(memory: u64) -> u32 {
    memory.saturating_sub(OVERHEAD).max(1 << 17).ilog2().min(31)
}

/// Returns a reader of the decompressed bytes.
fn reader<'a>(
    codec: Codec,
    compressed: impl BufRead + Send + 'a,
    memory: u64,
) -> io::Result<Box<dyn Read + Send + 'a>> {
    Ok(match codec {
        Codec::Gzip => Box::new(GzipMembers { decoder: Some(GzDecoder::new(compressed)) }),
        Codec::Zstd => {
            let mut compressed = compressed;
            let most = 1 << max_window_log(memory);
            if let Some(window) = compressed.fill_buf().ok().and_then(zstd_window)
                && window > most
            {
                return Err(io::Error::other(window_too_large(window, most)));
            }
            let mut decoder = zstd::stream::read::Decoder::with_buffer(compressed)?;
            decoder.window_log_max(max_window_log(memory))?;
            Box::new(decoder)
        }
        Codec::Xz => {
            let mut compressed = compressed;
            let available = memory.saturating_sub(OVERHEAD);
            check_memory(codec, compressed.fill_buf().ok().and_then(xz_memory), available)?;
            let limit = u32::try_from(available / 1024).unwrap_or(u32::MAX);
            Box::new(XzReader::new_mem_limit(compressed, true, limit))
        }
        Codec::Bzip2 => {
            let mut compressed = compressed;
            let available = memory.saturating_sub(OVERHEAD);
            check_memory(codec, compressed.fill_buf().ok().and_then(bzip2_memory), available)?;
            Box::new(MultiBzDecoder::new(compressed))
        }
        Codec::Lz4 => Box::new(Lz4Frames::new(compressed, memory.saturating_sub(OVERHEAD))),
    })
}

/// Returns an error if a decoder needs more than the `available` bytes.
fn check_memory(codec: Codec, needed: Option<u64>, available: u64) -> io::Result<()> {
    match needed {
        Some(needed) if needed > available => {
            Err(io::Error::other(too_little_memory(codec, Some(needed), available)))
        }
        _ => Ok(()),
    }
}

fn too_little_memory(codec: Codec, needed: Option<u64>, available: u64) -> Error {
    // The decoder gets an eighth of the limit.
    let limit = needed.map(|needed| needed.next_multiple_of(1 << 17) * 8);
    Error::decoder_memory(codec.name(), needed, available, limit)
}

/// Returns the memory that the first block of an xz file needs, from the dictionary size of its
/// LZMA2 filter (xz file format 1.2.1, 3.1 and 5.3.1). `None` if it has no block.
fn xz_memory(begin: &[u8]) -> Option<u64> {
    const STREAM_HEADER: usize = 12;
    const LZMA2: u64 = 0x21;
    /// Reads a number of up to 9 bytes with 7 bits each, the lowest first.
    fn number(bytes: &mut &[u8]) -> Option<u64> {
        let mut number = 0;
        for at in 0..9 {
            let (byte, rest) = bytes.split_first()?;
            *bytes = rest;
            number |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
    let (size, rest) = begin.get(STREAM_HEADER..)?.split_first()?;
    let (flags, mut rest) = rest.split_first()?;
    if *size == 0 {
        return None;
    }
    for size_is_present in [0x40, 0x80] {
        if flags & size_is_present != 0 {
            number(&mut rest)?;
        }
    }
    for _ in 0..=flags & 3 {
        let filter = number(&mut rest)?;
        let length = usize::try_from(number(&mut rest)?).ok()?;
        let properties = rest.get(..length)?;
        rest = &rest[length..];
        if filter == LZMA2 {
            let bits = *properties.first()?;
            let dictionary = match bits {
                0..40 => (2 | u32::from(bits & 1)) << (bits / 2 + 11),
                _ => u32::MAX,
            };
            return Some(u64::from(lzma_rust2::lzma2_get_memory_usage(dictionary)) * 1024);
        }
    }
    None
}

/// Returns the memory that a bzip2 file needs, according to the manual of bzip2; `begin` starts with
/// its header.
fn bzip2_memory(begin: &[u8]) -> Option<u64> {
    let level = begin.get(3)?.checked_sub(b'0')?;
    Some(100_000 + 400_000 * u64::from(level))
}

/// Reads all frames of an lz4 file.
///
/// The decoder takes a missing end of a frame for the end of the file. It is an error here.
struct Lz4Frames<R: Read> {
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
    fn new(reader: R, available: u64) -> Self {
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

/// Returns the memory that the blocks of an lz4 frame need: one compressed block, and one
/// decompressed block, or two and a window if the blocks depend on each other.
fn lz4_memory(begin: &[u8]) -> Option<u64> {
    const INDEPENDENT: u8 = 0x20;
    let [4, 0x22, 0x4d, 0x18, flags, size] = *begin.first_chunk()? else { return None };
    let block = 1u64 << (8 + 2 * ((size >> 4) & 7));
    Some(if flags & INDEPENDENT != 0 { 2 * block } else { 3 * block + (64 << 10) })
}

/// Reads all members of a gzip file. Zeros after the last member are ignored, as in `gzip`: tapes and
/// block devices are padded with them.
struct GzipMembers<R> {
    /// `None` after the last member.
    decoder: Option<GzDecoder<R>>,
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(decoder) = &mut self.decoder {
            let got = decoder.read(buffer)?;
            if got > 0 || buffer.is_empty() {
                return Ok(got);
            }
            let Some(rest) = self.decoder.take().map(GzDecoder::into_inner) else { break };
            self.decoder = next_member(rest)?.map(GzDecoder::new);
        }
        Ok(0)
    }
}

/// Returns the rest of a gzip file if another member follows; `None` if only zeros or nothing do.
fn next_member<R: BufRead>(mut rest: R) -> io::Result<Option<R>> {
    let mut zeros = false;
    loop {
        let bytes = match rest.fill_buf() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        let length = bytes.len();
        match bytes.iter().position(|byte| *byte != 0) {
            _ if length == 0 => return Ok(None),
            Some(0) if !zeros => return Ok(Some(rest)),
            Some(_) => {
                let found = "other bytes follow the zeros behind its last member";
                return Err(io::Error::new(io::ErrorKind::InvalidData, found));
            }
            None => {
                zeros = true;
                rest.consume(length);
            }
        }
    }
}

/// Returns the window size of the first frame of a zstd file (RFC 8878, 3.1.1.1); `None` if the file
/// does not begin with such a frame.
fn zstd_window(begin: &[u8]) -> Option<u64> {
    let (magic, header) = begin.split_first_chunk()?;
    if *magic != [0x28, 0xb5, 0x2f, 0xfd] {
        return None;
    }
    let (descriptor, rest) = header.split_first()?;
    if descriptor & 0x20 == 0 {
        let window = rest.first()?;
        let base = 1u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    // Single segment: the window is the content size, which follows the dictionary ID.
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let length = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let mut bytes = [0; 8];
    bytes[..length].copy_from_slice(rest.get(dictionary..dictionary + length)?);
    Some(u64::from_le_bytes(bytes) + if length == 2 { 256 } else { 0 })
}

/// The error of a zstd window that does not fit, with the memory limit that it needs.
fn window_too_large(window: u64, most: u64) -> Error {
    // A decoder accepts no larger window.
    let needed = window.checked_next_power_of_two().filter(|needed| *needed <= 1 << 31);
    Error::zstd_window(Some(window), most, needed.map(|needed| needed * 8))
}

/// Adds the cause and advice to an error of a codec.
fn explained(codec: Codec, memory: u64, error: io::Error) -> io::Error {
    let name = codec.name();
    let text = error.to_string();
    let said = if error.get_ref().is_some_and(|inner| inner.is::<Error>()) {
        return error;
    } else if error.kind() == io::ErrorKind::UnexpectedEof || text.contains("incomplete frame") {
        format!("its {name} data ends in the middle: the file was cut short; copy it again")
    } else if text.contains("too much memory") {
        return io::Error::other(Error::zstd_window(None, 1 << max_window_log(memory), None));
    } else if error.kind() == io::ErrorKind::OutOfMemory && error.raw_os_error().is_none() {
        let available = memory.saturating_sub(OVERHEAD);
        return io::Error::other(too_little_memory(codec, None, available));
    } else if error.raw_os_error().is_some() {
        return error;
    } else {
        format!("its {name} data is damaged ({text}); copy it again")
    };
    io::Error::new(error.kind(), said)
}

/// Calls `show` with the first `most` decompressed bytes, block by block. Returns their number and
/// the number of compressed bytes read.
pub(super) fn sample(
    codec: Codec,
    compressed: impl Read + Send,
    most: u64,
    memory: u64,
    mut show: impl FnMut(&[u8]),
) -> io::Result<(u64, u64)> {
    struct Counted<R>(R, u64);
    impl<R: Read> Read for Counted<R> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let got = self.0.read(buffer)?;
            self.1 += got as u64;
            Ok(got)
        }
    }
    let mut counted = Counted(compressed, 0);
    let mut go = || {
        let compressed = BufReader::with_capacity(BLOCK, &mut counted);
        let mut reader = reader(codec, compressed, memory)?;
        let (mut went, mut block) = (0, Vec::with_capacity(BLOCK));
        while went < most {
            block.clear();
            let take = (most - went).min(BLOCK as u64);
            reader.by_ref().take(take).read_to_end(&mut block)?;
            show(&block);
            went += block.len() as u64;
            if (block.len() as u64) < take {
                break;
            }
        }
        Ok(went)
    };
    let went = go().map_err(|error| explained(codec, memory, error))?;
    Ok((went, counted.1))
}

/// Starts a decompression thread and returns the stream of decompressed bytes.
pub(super) fn decode(
    codec: Codec,
    compressed: impl Read + Send + 'static,
    memory: u64,
) -> io::Result<Decoder> {
    let (sender, receiver) = sync_channel(WAITING);
    let (used, reused) = sync_channel(WAITING + 2);
    let work = move || {
        let compressed = BufReader::with_capacity(BLOCK, compressed);
        let done =
            reader(codec, compressed, memory).and_then(|reader| send(reader, &sender, &reused));
        if let Err(error) = done {
            // Fails only if the reader is gone.
            let _ = sender.send(Err(explained(codec, memory, error)));
        }
    };
    std::thread::Builder::new().name("decompress".to_owned()).spawn(work)?;
    Ok(Decoder { receiver, used, block: Vec::new(), next: 0, pending: None, ended: false })
}

/// Sends blocks as they are decompressed, then an empty block for the end. Stops if the reader is
/// gone.
fn send(
    mut reader: impl Read,
    sender: &SyncSender<io::Result<Vec<u8>>>,
    reused: &Receiver<Vec<u8>>,
) -> io::Result<()> {
    loop {
        let mut block = reused.try_recv().unwrap_or_default();
        block.resize(BLOCK, 0);
        let got = loop {
            match reader.read(&mut block) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        block.truncate(got);
        if sender.send(Ok(block)).is_err() || got == 0 {
            return Ok(());
        }
    }
}

/// The receiving end of a decompression thread.
pub(super) struct Decoder {
    receiver: Receiver<io::Result<Vec<u8>>>,
    /// Returns blocks to the thread for reuse.
    used: SyncSender<Vec<u8>>,
    block: Vec<u8>,
    next: usize,
    /// A block received by `ready`.
    pending: Option<io::Result<Vec<u8>>>,
    ended: bool,
}

impl Read for Decoder {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.next == self.block.len() && !self.ended {
            let came = self.pending.take().map_or_else(|| self.receiver.recv(), Ok);
            // The thread ended without an end block.
            let lost = |_| io::Error::other("decompressing ended before the input did");
            let block = came.map_err(lost)??;
            self.ended = block.is_empty();
            let _ = self.used.try_send(std::mem::replace(&mut self.block, block));
            self.next = 0;
        }
        let got = (&self.block[self.next..]).read(buffer)?;
        self.next += got;
        Ok(got)
    }
}

impl PollRead for Decoder {
    fn ready(&mut self) -> bool {
        if self.next < self.block.len() || self.pending.is_some() || self.ended {
            return true;
        }
        match self.receiver.recv_timeout(POLL_TIMEOUT) {
            Ok(came) => self.pending = Some(came),
            Err(RecvTimeoutError::Timeout) => return false,
            Err(RecvTimeoutError::Disconnected) => {}
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use std::io::Write as _;

    #[test]
    fn format_is_detected_from_the_fewest_bytes() {
        let zstd = [0x28, 0xb5, 0x2f, 0xfd, 1];
        assert_eq!(Magic::of(&zstd), Magic::Is(Codec::Zstd));
        assert_eq!(Magic::of(&zstd[..3]), Magic::Maybe);
        assert_eq!(Magic::of(&[0x1f, 0x8b, 8, 0]), Magic::Is(Codec::Gzip));
        assert_eq!(Magic::of(&[0x53, 0x2a, 0x4d, 0x18]), Magic::Is(Codec::Zstd));
        assert_eq!(Magic::of(b""), Magic::Maybe);
        assert_eq!(Magic::of(b"\xfd7zXZ"), Magic::Maybe);
        assert_eq!(Magic::of(b"\xfd7zXZ\0"), Magic::Is(Codec::Xz));
        assert_eq!(Magic::of(b"\x04\x22\x4d\x18\x64"), Magic::Is(Codec::Lz4));
        assert_eq!(Magic::of(b"BZh91AY&SY\x5a\x55\xc4\x1e"), Magic::Maybe);
        assert_eq!(Magic::of(b"BZh91AY&SY\x5a\x55\xc4\x1e\0"), Magic::Is(Codec::Bzip2));
        assert_eq!(Magic::of(b"BZh91AY&SYNC and so on"), Magic::No);
        assert_eq!(Magic::of(b"BZh9\x17\x72\x45\x38\x50\x90\0\0\0\0"), Magic::Is(Codec::Bzip2));
        for text in [&b"(a"[..], b"Pa", b"http", b"\n", b"\x1f\x8b\x07"] {
            assert_eq!(Magic::of(text), Magic::No, "{text:?}");
        }
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    fn xz(bytes: &[u8], dictionary: u32) -> Vec<u8> {
        let mut options = lzma_rust2::XzOptions::with_preset(1);
        options.lzma_options.dict_size = dictionary;
        let mut packer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    fn bzip2(bytes: &[u8]) -> Vec<u8> {
        let mut packer = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    fn lz4(bytes: &[u8], linked: bool) -> Vec<u8> {
        let info = lz4_flex::frame::FrameInfo::new()
            .content_checksum(true)
            .block_size(lz4_flex::frame::BlockSize::Max64KB)
            .block_mode(match linked {
                true => lz4_flex::frame::BlockMode::Linked,
                false => lz4_flex::frame::BlockMode::Independent,
            });
        let mut packer = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    fn read(codec: Codec, packed: Vec<u8>, memory: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        decode(codec, io::Cursor::new(packed), memory)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    #[test]
    fn all_members_are_read_and_truncation_is_an_error() {
        let text: Vec<u8> =
            (0..60_000u32).flat_map(|i| format!("{}\n", i * i).into_bytes()).collect();
        let (one, two) = text.split_at(200_001);
        let memory = memory(64 << 20);
        let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
        for (codec, first, second) in [
            (Codec::Gzip, gzip(one), gzip(two)),
            (Codec::Zstd, zstd(one), zstd(two)),
            (Codec::Xz, xz(one, 1 << 16), xz(two, 1 << 18)),
            (Codec::Bzip2, bzip2(one), bzip2(two)),
            (Codec::Lz4, lz4(one, true), lz4(two, true)),
            (Codec::Lz4, lz4(one, false), lz4(two, false)),
        ] {
            assert_eq!(Magic::of(&first), Magic::Is(codec));
            let both = [&first[..], &second].concat();
            assert!(read(codec, both.clone(), memory).unwrap() == text);
            let mut some = Vec::new();
            let show = |bytes: &[u8]| some.extend_from_slice(bytes);
            let went = sample(codec, &both[..], 300_000, memory, show).unwrap();
            assert!(went.0 == 300_000 && went.1 <= both.len() as u64);
            assert!(some == text[..300_000]);
            let all = sample(codec, &both[..], u64::MAX, memory, |_| ()).unwrap();
            assert_eq!(all, (text.len() as u64, both.len() as u64));
            for cut in (1..both.len()).step_by(both.len() / 97) {
                if cut != first.len() {
                    let error = read(codec, both[..cut].to_vec(), memory).unwrap_err();
                    // The beginning of a second xz stream is no known beginning.
                    let known = if codec == Codec::Xz { "xz data" } else { "cut short" };
                    assert!(error.to_string().contains(known), "{codec:?} {cut}: {error}");
                }
            }
            let mut broken = both;
            let middle = broken.len() / 3;
            broken[middle..middle + 40].fill(0x55);
            assert!(read(codec, broken, memory).is_err());
        }
    }

    #[test]
    fn window_that_does_not_fit_is_an_error() {
        let mut packer = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
        packer.window_log(24).unwrap();
        packer.write_all(&vec![b'x'; 1 << 20]).unwrap();
        let packed = packer.finish().unwrap();
        assert!(read(Codec::Zstd, packed.clone(), memory(256 << 20)).is_ok());
        let error = read(Codec::Zstd, packed, memory(64 << 20)).unwrap_err();
        let error = Error::read("a.zst", error);
        let ErrorKind::ZstdWindow { input, window, limit, needed_limit } = error.kind() else {
            panic!("{error}");
        };
        assert_eq!((input.as_str(), *window, *limit), ("a.zst", Some(16 << 20), 8 << 20));
        assert_eq!(*needed_limit, Some(128 << 20));
    }

    #[test]
    fn decoder_memory_that_does_not_fit_is_an_error() {
        let text = b"line\n".repeat(1 << 18);
        let large_blocks = lz4_flex::frame::FrameInfo::new()
            .block_size(lz4_flex::frame::BlockSize::Max4MB)
            .block_mode(lz4_flex::frame::BlockMode::Linked);
        let mut lz4 = lz4_flex::frame::FrameEncoder::with_frame_info(large_blocks, Vec::new());
        lz4.write_all(&text).unwrap();
        let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
        bzip2.write_all(&text).unwrap();
        for (codec, packed, limit) in [
            (Codec::Xz, xz(&text, 1 << 23), 65 << 20),
            (Codec::Bzip2, bzip2.finish().unwrap(), 29 << 20),
            (Codec::Lz4, lz4.finish().unwrap(), 97 << 20),
        ] {
            assert!(read(codec, packed.clone(), memory(limit)).unwrap() == text);
            let error = read(codec, packed.clone(), memory(limit - (1 << 20))).unwrap_err();
            let error = Error::read("a", error);
            let ErrorKind::DecompressionMemory { input, needed_limit, .. } = error.kind() else {
                panic!("{error}");
            };
            assert_eq!((input.as_str(), *needed_limit), ("a", Some(limit)), "{error}");
            // In a later member, the limit is unknown, or a few MiB are used nevertheless.
            let small = match codec {
                Codec::Xz => xz(b"first\n", 1 << 16),
                _ => continue,
            };
            let error = read(codec, [small, packed].concat(), memory(8 << 20)).unwrap_err();
            let error = Error::read("a", error);
            let ErrorKind::DecompressionMemory { needed: None, .. } = error.kind() else {
                panic!("{error}");
            };
        }
    }

    #[test]
    fn zeros_after_the_last_gzip_member_are_ignored_and_other_bytes_are_not() {
        let memory = memory(64 << 20);
        let both = [gzip(b"one\n"), gzip(b"two\n")].concat();
        for zeros in [1, 7, 512, 3 * BLOCK] {
            let padded = [&both[..], &vec![0; zeros]].concat();
            assert_eq!(read(Codec::Gzip, padded.clone(), memory).unwrap(), b"one\ntwo\n");
            for more in [&b"x"[..], &gzip(b"three\n")] {
                assert!(read(Codec::Gzip, [&padded, more].concat(), memory).is_err(), "{zeros}");
            }
        }
        assert!(read(Codec::Gzip, [&both[..], b"x"].concat(), memory).is_err());
    }
}
