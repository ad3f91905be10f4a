//! Compression of outputs.
//!
//! gzip and lz4 compress on the thread that writes. zstd compresses on threads of its own if the memory
//! limit has room for them.
//!
//! An output that is not finished has no end, so that a reader sees that it is incomplete.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use flate2::write::GzEncoder;
use lz4_flex::frame::{BlockSize, FrameEncoder, FrameInfo};
use zstd::zstd_safe::CParameter;

use crate::input::compressed_extension;

/// A format in which outputs are compressed, and its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// gzip, with a level from 1 to 9.
    Gzip(u32),
    /// zstd, with a level from 1 to 19.
    Zstd(i32),
    /// lz4, which has one level.
    Lz4,
}

/// The base-2 logarithms of window, chain table and hash table of the levels of zstd, from 1 on.
const ZSTD_LEVELS: [(u32, u32, u32); 19] = [
    (19, 13, 14),
    (20, 15, 16),
    (21, 16, 17),
    (21, 18, 18),
    (21, 18, 19),
    (21, 18, 19),
    (21, 19, 20),
    (21, 19, 20),
    (22, 20, 21),
    (22, 21, 22),
    (22, 21, 22),
    (22, 22, 23),
    (22, 22, 22),
    (22, 22, 23),
    (22, 23, 23),
    (22, 22, 22),
    (23, 23, 22),
    (23, 23, 22),
    (23, 24, 22),
];

/// The largest number of threads of a compressor: more would only wait for lines.
const MAX_THREADS: u64 = 16;

impl Compression {
    /// Returns the format that the extension of a path names; `None` if it names none.
    ///
    /// # Errors
    /// The extension, if it names a format in which outputs are not compressed.
    pub fn of_path(path: &Path) -> Result<Option<Self>, &str> {
        let Some(extension) = compressed_extension(path) else { return Ok(None) };
        match extension.to_ascii_lowercase().as_str() {
            "gz" => Ok(Some(Self::GZIP)),
            "zst" => Ok(Some(Self::ZSTD)),
            "lz4" => Ok(Some(Self::Lz4)),
            _ => Err(extension),
        }
    }

    /// gzip with its default level.
    const GZIP: Self = Self::Gzip(6);

    /// zstd with its default level.
    const ZSTD: Self = Self::Zstd(3);

    /// Parses a format and its level, such as `zstd` or `zstd:19`; `None` for `none`.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        let (name, level) = match text.split_once(':') {
            Some((name, level)) => (name, Some(level)),
            None => (text, None),
        };
        let (default, max) = match name {
            "gzip" => (Self::GZIP, 9),
            "zstd" => (Self::ZSTD, ZSTD_LEVELS.len() as u32),
            "lz4" | "none" if level.is_some() => return Err(format!("{name} has no levels")),
            "lz4" => return Ok(Some(Self::Lz4)),
            "none" => return Ok(None),
            _ => {
                return Err(format!(
                    "'{text}' is not a format; write gzip, zstd, lz4 or none, with a level as in zstd:19"
                ));
            }
        };
        let Some(level) = level else { return Ok(Some(default)) };
        match level.parse() {
            Ok(level @ 1..) if level <= max => Ok(Some(match default {
                Self::Zstd(_) => Self::Zstd(level as i32),
                _ => Self::Gzip(level),
            })),
            _ => Err(format!("'{level}' is not a level of {name}; write a number from 1 to {max}")),
        }
    }

    /// Returns the name of the format.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip(_) => "gzip",
            Self::Zstd(_) => "zstd",
            Self::Lz4 => "lz4",
        }
    }

    /// Returns whether both have the same format, whatever their levels.
    #[must_use]
    pub fn is_like(self, other: Self) -> bool {
        self.name() == other.name()
    }

    /// Returns the number of bytes that a compressor takes in a job with this memory limit and number of
    /// threads.
    #[must_use]
    pub fn memory(self, memory_limit: u64, jobs: usize) -> u64 {
        match self {
            Self::Gzip(_) => 512 << 10,
            Self::Zstd(level) => zstd_memory(level, zstd_threads(level, memory_limit, jobs)),
            Self::Lz4 => 1 << 20,
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gzip(level) => write!(f, "gzip:{level}"),
            Self::Zstd(level) => write!(f, "zstd:{level}"),
            Self::Lz4 => f.write_str("lz4"),
        }
    }
}

/// Returns the window of a level, and the bytes of its tables.
fn zstd_sizes(level: i32) -> (u64, u64) {
    let at = usize::try_from(level - 1).unwrap_or_default().min(ZSTD_LEVELS.len() - 1);
    let (window, chain, hash) = ZSTD_LEVELS[at];
    // Some levels have a byte more for an entry of the hash table, the highest a table of prices.
    let prices = if level > 12 { 2 << 20 } else { 0 };
    (1 << window, (4 << chain) + (5 << hash) + prices)
}

/// Returns the bytes that a thread of zstd compresses at a time.
fn zstd_block(level: i32) -> u64 {
    zstd_sizes(level).0.max(2 << 20)
}

/// Returns the bytes that zstd takes; 0 threads: on the thread that writes.
fn zstd_memory(level: i32, threads: u64) -> u64 {
    let (window, tables) = zstd_sizes(level);
    match threads {
        0 => tables + window + (1 << 20),
        // Input that waits, with room for that of the next thread, and output.
        _ => threads * tables + zstd_block(level) * (3 * threads + 6),
    }
}

/// Returns the number of threads that take at most an eighth of the memory limit; 0 if none do.
fn zstd_threads(level: i32, memory_limit: u64, jobs: usize) -> u64 {
    let max = (jobs as u64).min(MAX_THREADS);
    let fits = |threads: &u64| zstd_memory(level, *threads) <= memory_limit / 8;
    (2..=max).rev().find(fits).unwrap_or(0)
}

/// A writer of compressed bytes.
#[derive(Debug)]
pub struct CompressedWriter<W: Write>(Encoder<W>);

enum Encoder<W: Write> {
    Gzip(GzipEncoder<W>),
    Zstd(zstd::Encoder<'static, W>),
    Lz4(Box<FrameEncoder<W>>),
}

impl<W: Write> CompressedWriter<W> {
    /// Begins to compress, in a job with this memory limit and number of threads, of which it takes
    /// [`Compression::memory`].
    ///
    /// # Errors
    /// If the memory of the compressor is refused.
    pub fn new(
        writer: W,
        compression: Compression,
        memory_limit: u64,
        jobs: usize,
    ) -> io::Result<Self> {
        Ok(Self(match compression {
            Compression::Gzip(level) => {
                let gate = Gate(Some(writer));
                Encoder::Gzip(GzipEncoder(GzEncoder::new(gate, flate2::Compression::new(level))))
            }
            Compression::Zstd(level) => {
                let mut encoder = zstd::Encoder::new(writer, level)?;
                encoder.include_checksum(true)?;
                let threads = zstd_threads(level, memory_limit, jobs);
                if threads > 0 {
                    // Below 2^32, as windows are.
                    let block = zstd_block(level) as u32;
                    encoder.multithread(threads as u32)?;
                    encoder.set_parameter(CParameter::JobSize(block))?;
                }
                Encoder::Zstd(encoder)
            }
            Compression::Lz4 => {
                let info = FrameInfo::new().block_size(BlockSize::Max256KB).content_checksum(true);
                Encoder::Lz4(Box::new(FrameEncoder::with_frame_info(info, writer)))
            }
        }))
    }

    /// Writes the end of the compressed data. Returns the writer.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self) -> io::Result<W> {
        match self.0 {
            Encoder::Gzip(encoder) => encoder.finish(),
            Encoder::Zstd(encoder) => encoder.finish(),
            Encoder::Lz4(encoder) => encoder.finish().map_err(io::Error::from),
        }
    }

    fn encoder(&mut self) -> &mut dyn Write {
        match &mut self.0 {
            Encoder::Gzip(encoder) => &mut encoder.0,
            Encoder::Zstd(encoder) => encoder,
            Encoder::Lz4(encoder) => encoder,
        }
    }
}

impl<W: Write> Write for CompressedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.encoder().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.encoder().flush()
    }
}

impl<W: Write> fmt::Debug for Encoder<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip(_) => "Gzip",
            Self::Zstd(_) => "Zstd",
            Self::Lz4(_) => "Lz4",
        })
    }
}

/// The encoder of gzip, which writes no end when it is dropped.
struct GzipEncoder<W: Write>(GzEncoder<Gate<W>>);

impl<W: Write> GzipEncoder<W> {
    fn finish(mut self) -> io::Result<W> {
        self.0.try_finish()?;
        self.0.get_mut().0.take().ok_or_else(closed)
    }
}

impl<W: Write> Drop for GzipEncoder<W> {
    fn drop(&mut self) {
        self.0.get_mut().0 = None;
    }
}

/// A writer that may be taken away.
struct Gate<W>(Option<W>);

fn closed() -> io::Error {
    io::Error::other("the output is closed")
}

impl<W: Write> Write for Gate<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.as_mut().ok_or_else(closed)?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_mut().ok_or_else(closed)?.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use petal_testkit::rng::Rng;

    use super::*;
    use crate::input::decompressed;

    const ALL: [&str; 7] = ["gzip", "gzip:1", "gzip:9", "zstd", "zstd:1", "zstd:12", "lz4"];

    /// Bytes that remain readable when their writer is gone.
    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_is_written_is_decompressed() {
        let mut rng = Rng::new(1);
        for text in ALL {
            let compression = Compression::parse(text).unwrap().unwrap();
            for (length, limit, jobs) in
                [(0, 8 << 20, 1), (1, 8 << 20, 1), (5 << 20, 8 << 20, 2), (9 << 20, 1 << 30, 3)]
            {
                let text: Vec<_> = (0..length).map(|_| b'a' + rng.below(7) as u8).collect();
                let mut writer =
                    CompressedWriter::new(Vec::new(), compression, limit, jobs).unwrap();
                for chunk in text.chunks(1 + rng.below(1 << 20)) {
                    writer.write_all(chunk).unwrap();
                    if rng.one_in(5) {
                        writer.flush().unwrap();
                    }
                }
                let bytes = writer.finish().unwrap();
                assert!(length < 1000 || bytes.len() < text.len());
                assert!(decompressed(&bytes).unwrap() == text, "{compression} {length}");
            }
        }
    }

    #[test]
    fn output_that_is_not_finished_has_no_end() {
        for text in ALL {
            let compression = Compression::parse(text).unwrap().unwrap();
            for text in [&b""[..], b"a line\n"] {
                let shared = Shared::default();
                let mut writer =
                    CompressedWriter::new(shared.clone(), compression, 1 << 30, 2).unwrap();
                writer.write_all(text).unwrap();
                writer.flush().unwrap();
                drop(writer);
                let bytes = shared.0.lock().unwrap().clone();
                assert!(decompressed(&bytes).is_err(), "{compression}: {bytes:?}");
            }
        }
    }

    #[test]
    fn formats_are_named_by_extensions_and_words() {
        for (path, expected) in [
            ("a", Ok(None)),
            ("a.txt", Ok(None)),
            ("a.gz", Ok(Some(Compression::Gzip(6)))),
            ("a.GZ", Ok(Some(Compression::Gzip(6)))),
            ("a.txt.zst", Ok(Some(Compression::Zstd(3)))),
            ("a.lz4", Ok(Some(Compression::Lz4))),
            ("a.xz", Err("xz")),
            ("a.tgz", Err("tgz")),
        ] {
            assert_eq!(Compression::of_path(Path::new(path)), expected, "{path}");
        }
        assert_eq!(Compression::parse("none"), Ok(None));
        assert_eq!(Compression::parse("zstd:19"), Ok(Some(Compression::Zstd(19))));
        for (text, message) in [
            ("xz", "'xz' is not a format; write gzip, zstd, lz4 or none"),
            ("", "'' is not a format"),
            ("zstd:20", "'20' is not a level of zstd; write a number from 1 to 19"),
            ("gzip:0", "'0' is not a level of gzip; write a number from 1 to 9"),
            ("gzip:", "'' is not a level of gzip"),
            ("lz4:1", "lz4 has no levels"),
            ("none:1", "none has no levels"),
        ] {
            let error = Compression::parse(text).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn threads_of_zstd_fit_an_eighth_of_the_memory_limit() {
        for level in 1..=19 {
            for limit in (20..40).map(|bits| 1 << bits) {
                let threads = zstd_threads(level, limit, 8);
                assert!(threads == 0 || zstd_memory(level, threads) <= limit / 8);
                let memory = Compression::Zstd(level).memory(limit, 8);
                assert_eq!(memory, zstd_memory(level, threads));
            }
            assert_eq!(zstd_threads(level, 1 << 40, 8), 8);
            assert_eq!(zstd_threads(level, 1 << 40, 1), 0);
        }
    }
}
