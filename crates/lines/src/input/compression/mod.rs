//! Decompression of gzip, zstd, xz, bzip2 and lz4 inputs on a thread of its own.
//!
//! Several members, streams or frames in one file are one stream, as in `zcat`, `zstdcat`, `xzcat`,
//! `bzcat` and `lz4cat`. Truncated or damaged data is an error, never a short result.
//!
//! Memory: the blocks between the threads, and the window or the blocks of the format. A file that
//! needs more than the memory of the decoder is an error.

mod ahead;
mod gzip;
mod lz4;
mod magic;
mod requirements;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::GzDecoder;
use lzma_rust2::XzReader;
use zstd::zstd_safe::{get_error_name, zstd_sys::ZSTD_ErrorCode};

use self::ahead::Ahead;
use self::gzip::{GzipMembers, TRAILING};
use self::lz4::Lz4Frames;
pub(super) use self::magic::Magic;
use self::requirements::{bzip2_memory, xz_memory, zstd_window};
#[cfg(test)]
pub(crate) use self::tests::decompressed;
use crate::error::{Advice, Error, ErrorKind, Setting};
use crate::numbers::format_size;
use crate::poll_read::{POLL_TIMEOUT, PollRead};

/// A compression format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Gzip,
    Zstd,
    Xz,
    Bzip2,
    Lz4,
    /// A skippable frame, with which files of zstd and lz4 may begin.
    Skippable,
}

impl Codec {
    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
            Self::Bzip2 => "bzip2",
            Self::Lz4 => "lz4",
            Self::Skippable => "zstd or lz4",
        }
    }

    /// Returns the program that decompresses, which writes to standard output with `-dc`. Of the two that
    /// skip frames, the one whose files begin with one.
    pub(super) fn program(self) -> &'static str {
        if self == Self::Skippable { "zstd" } else { self.name() }
    }
}

/// The most bytes of the header of a zstd frame, which has the window; that of an lz4 frame is shorter.
const FRAME_HEADER: usize = 18;

/// Returns the extension of a file name that says that the file is compressed, as written.
#[must_use]
pub fn compressed_extension(path: &Path) -> Option<&str> {
    const EXTENSIONS: [&str; 16] = [
        "7z", "br", "bz2", "gz", "lz", "lz4", "lzma", "rar", "sz", "tbz2", "tgz", "txz", "xz", "z",
        "zip", "zst",
    ];
    let extension = path.extension()?.to_str()?;
    EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known)).then_some(extension)
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
            let max = 1 << max_window_log(memory);
            if let Some(window) = compressed.fill_buf().ok().and_then(zstd_window)
                && window > max
            {
                return Err(io::Error::other(window_too_large(window, max)));
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
        Codec::Skippable => {
            let mut ahead = Ahead::new(compressed);
            while ahead.skip_frame()? {}
            let rest: Box<dyn BufRead + Send + 'a>;
            match Magic::of_whole(ahead.look(FRAME_HEADER)?) {
                Magic::Is(codec @ (Codec::Zstd | Codec::Lz4)) => {
                    rest = Box::new(ahead);
                    reader(codec, rest, memory)?
                }
                _ if ahead.look(1)?.is_empty() => Box::new(io::empty()),
                _ => {
                    let found = "no frame with data follows those that are skipped";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, found));
                }
            }
        }
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
    let needed = match needed {
        Some(needed) => format!("{}, more than", format_size(needed)),
        None => "more than".to_owned(),
    };
    let problem = format!(
        "cannot read: decompressing its {} data needs {needed} the {} that fit an eighth of the \
         memory limit",
        codec.name(),
        format_size(available)
    );
    Error::new(ErrorKind::Input, problem)
        .advise(limit.map_or(Advice::Raise(Setting::MemoryLimit), Advice::raise_limit_to))
        .advise("decompress it first")
}

/// The error of a zstd window that does not fit, with the memory limit that it needs.
fn window_too_large(window: u64, max: u64) -> Error {
    // A decoder accepts no larger window.
    let needed = window.checked_next_power_of_two().filter(|needed| *needed <= 1 << 31);
    Error::zstd_window(Some(window), max, needed.map(|needed| needed * 8))
}

/// The error of a zstd window above the maximum. The crate's error has only the name of the code.
const WINDOW_TOO_LARGE: usize =
    (ZSTD_ErrorCode::ZSTD_error_frameParameter_windowTooLarge as usize).wrapping_neg();

/// Adds the cause and advice to an error of a codec.
fn explained(codec: Codec, memory: u64, error: io::Error) -> io::Error {
    let name = codec.name();
    let text = error.to_string();
    let said = if error.get_ref().is_some_and(|inner| inner.is::<Error>()) {
        return error;
    } else if error.kind() == io::ErrorKind::UnexpectedEof {
        format!("its {name} data ends in the middle: the file was cut short; copy it again")
    } else if text == TRAILING {
        format!("{text}; remove them, or read the output of `gzip -dc`, which leaves them out")
    } else if codec == Codec::Zstd && text == get_error_name(WINDOW_TOO_LARGE) {
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

/// Calls `show` with the first `max` decompressed bytes, block by block. Returns their number and
/// the number of compressed bytes read.
pub(super) fn sample(
    codec: Codec,
    compressed: impl Read + Send,
    max: u64,
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
        while went < max {
            block.clear();
            let take = (max - went).min(BLOCK as u64);
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
