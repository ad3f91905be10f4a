//! Reading of files that may be compressed with gzip. They are decompressed only as far as their
//! header needs, because a small file can decompress to any length.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::GzDecoder;

use crate::error::{Error, Result};
use crate::format::Format;
use crate::formats;

/// The first bytes of a gzip file.
pub const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Bytes to decompress before the header is parsed: every header is shorter.
const HEAD: u64 = 1 << 16;
/// Maximum number of bytes of user data after a compressed filter of DCSO or poppy, whose header
/// does not state their length.
const MAX_USER_DATA: u64 = 16 << 20;

/// Reads a file of at most `limit` bytes. A gzip file is decompressed as far as a filter of this
/// format (of any format, if `None`) with this header can extend, plus one byte: enough for
/// [`ForeignFilter::from_bytes`](crate::ForeignFilter::from_bytes) to report what is wrong.
///
/// # Errors
/// If reading fails, or the file is longer.
pub fn read_decompressed(
    mut stream: impl Read,
    format: Option<Format>,
    limit: u64,
) -> Result<Vec<u8>> {
    let mut start = Vec::new();
    stream.by_ref().take(GZIP.len() as u64).read_to_end(&mut start)?;
    let compressed = start == GZIP;
    let stream = start.chain(stream);
    if compressed {
        let members = Members { decoder: Some(GzDecoder::new(BufReader::new(stream))) };
        unpacked(members, format, limit, HEAD)
    } else {
        let mut file = Vec::new();
        read_up_to(stream, u64::MAX, limit, &mut file)?;
        Ok(file)
    }
}

/// The concatenated members of a gzip file. Zeros after the last one are ignored, as `gzip` does,
/// because tapes and block devices pad with them.
///
/// The file engine has the same reader (`crates/lines/src/input/compression/gzip.rs`): neither crate uses
/// the other, and the library below both has no compression.
struct Members<R> {
    /// `None` after the last member.
    decoder: Option<GzDecoder<R>>,
}

impl<R: BufRead> Read for Members<R> {
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

/// Returns the rest of a gzip file if another member begins there; `None` if only zeros follow.
fn next_member<R: BufRead>(mut rest: R) -> io::Result<Option<R>> {
    let mut zeros = false;
    loop {
        let bytes = match rest.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        let length = bytes.len();
        match bytes.iter().position(|byte| *byte != 0) {
            _ if length == 0 => return Ok(None),
            Some(0) if !zeros && bytes[0] == GZIP[0] => return Ok(Some(rest)),
            Some(_) => {
                let found = "bytes that are not gzip follow its gzip data";
                return Err(io::Error::new(io::ErrorKind::InvalidData, found));
            }
            None => {
                zeros = true;
                rest.consume(length);
            }
        }
    }
}

/// Implements [`read_decompressed`]; the header is parsed after `head` bytes.
fn unpacked(
    mut stream: impl Read,
    format: Option<Format>,
    limit: u64,
    head: u64,
) -> Result<Vec<u8>> {
    let (mut file, mut target) = (Vec::new(), head);
    loop {
        if read_up_to(&mut stream, target, limit, &mut file)? {
            return Ok(file);
        }
        let longest = longest(format, &file)?;
        if longest < file.len() as u64 {
            return Ok(file);
        }
        target = longest.saturating_add(1);
    }
}

/// Returns the maximum length of a filter with this header, as far as it is known; 0 if the header
/// is invalid.
fn longest(format: Option<Format>, begin: &[u8]) -> Result<u64> {
    let candidates = Format::ALL.into_iter().filter(|format| format.is_recognizable());
    let formats: Vec<_> = format.map_or_else(|| candidates.collect(), |format| vec![format]);
    let there = begin.len() as u64;
    let mut lengths = formats.into_iter().map(|format| {
        let opened = formats::open(format, begin);
        let length = match &opened {
            Ok(_) => there,
            Err(error) => error.expected_length().unwrap_or(0),
        };
        Ok(match (format, opened.is_ok()) {
            // The header does not state the length.
            (Format::Rbloom, true) => u64::MAX,
            // Another layer may follow.
            (Format::FilterCascade, true) => there + 1,
            (_, true) => {
                let Some(end) = formats::end(format, begin)? else { return Ok(length) };
                let end = end.saturating_add(MAX_USER_DATA);
                if there > end {
                    let expected = format!("at most {MAX_USER_DATA} bytes in a compressed file");
                    let name = format.name();
                    return Err(Error::malformed(name, "data behind the filter", expected, "more"));
                }
                end
            }
            _ => length,
        })
    });
    lengths.try_fold(0, |longest, length| Ok(longest.max(length?)))
}

/// Appends bytes of a stream until the file has `target` bytes. Returns true at the end of the
/// stream.
fn read_up_to(mut stream: impl Read, target: u64, limit: u64, file: &mut Vec<u8>) -> Result<bool> {
    let target = target.min(limit.saturating_add(1));
    while (file.len() as u64) < target {
        if file.len() == file.capacity() {
            // Grows by doubling; a failed allocation is an error.
            let left = target - file.len() as u64;
            let more = (file.len() as u64).max(1 << 16).min(left);
            let length = file.len() as u64 + more;
            file.try_reserve_exact(more as usize).map_err(|_| Error::alloc(length))?;
        }
        let result = ((file.capacity() - file.len()) as u64).min(target - file.len() as u64);
        let got = stream.by_ref().take(result).read_to_end(file)?;
        if file.len() as u64 > limit {
            return Err(Error::too_large(file.len() as u64, limit));
        }
        if (got as u64) < result {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::ForeignFilter;

    /// Every golden file is decompressed completely, with and without its format, and at most one
    /// byte of what follows it.
    #[test]
    fn valid_files_are_decompressed_completely_and_no_further() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/foreign/");
        let manifest = std::fs::read_to_string(format!("{folder}manifest.tsv")).unwrap();
        for line in manifest.lines().skip(1) {
            let fields: Vec<_> = line.split('\t').collect();
            let Some(format) = Format::from_name(fields[1]) else { continue };
            let file = std::fs::read(format!("{folder}{}", fields[0])).unwrap();
            let file = read_decompressed(&file[..], Some(format), 1 << 30).unwrap();
            let candidates = format.is_recognizable().then_some(None);
            for format in candidates.into_iter().chain([Some(format)]) {
                for head in [600, HEAD] {
                    let read = unpacked(&file[..], format, 1 << 30, head).unwrap();
                    assert!(read == file, "{}: {} of {} bytes", fields[0], read.len(), file.len());
                }
            }
            if format == Format::Rbloom {
                continue;
            }
            let endless = (&file[..]).chain(std::io::repeat(0)).take(1 << 24);
            let read = unpacked(endless, Some(format), 1 << 30, 600);
            match format {
                Format::Dcso | Format::Poppy => assert!(read.unwrap().len() == 1 << 24),
                _ => {
                    let read = read.unwrap();
                    assert!(read.len() <= (file.len() + 20).max(600), "{}", fields[0]);
                    assert!(
                        ForeignFilter::from_bytes(read, Some(format)).is_err(),
                        "{}",
                        fields[0]
                    );
                }
            }
        }
    }

    #[test]
    fn zeros_after_the_last_gzip_member_are_ignored_and_other_bytes_are_errors() {
        let filter = ForeignFilter::with_fpr(Format::Guava, 1_000, 0.01).unwrap();
        let compressed = |bytes: &[u8]| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        let (front, back) = filter.as_bytes().split_at(300);
        let members = [compressed(front), compressed(back)].concat();
        for zeros in [0, 1, 7, 512, 1 << 16] {
            let padded = [&members[..], &vec![0; zeros]].concat();
            let read = read_decompressed(&padded[..], None, 1 << 30).unwrap();
            assert!(read == filter.as_bytes(), "{zeros}");
            for more in [&b"x"[..], &compressed(b"x")[..7]] {
                let file = [&padded, more].concat();
                assert!(read_decompressed(&file[..], None, 1 << 30).is_err(), "{zeros}");
            }
        }
    }

    #[test]
    fn trailing_zeros_are_not_decompressed() {
        let zeros = || std::io::repeat(0).take(1 << 30);
        for format in Format::ALL {
            let read = unpacked(zeros(), Some(format), u64::MAX, HEAD).unwrap();
            assert!(read.len() as u64 <= HEAD + 1, "{format}");
        }
        assert_eq!(unpacked(zeros(), None, u64::MAX, HEAD).unwrap().len() as u64, HEAD);
        let dcso = ForeignFilter::with_fpr(Format::Dcso, 10, 0.01).unwrap();
        let file = dcso.as_bytes().chain(zeros());
        assert!(unpacked(file, None, u64::MAX, HEAD).unwrap_err().is_malformed());
    }

    #[test]
    fn sizes_beyond_the_limits_are_errors() {
        let filter = ForeignFilter::with_fpr(Format::Guava, 100_000, 0.01).unwrap();
        let length = filter.as_bytes().len() as u64;
        for head in [6, 600, HEAD] {
            let read = unpacked(filter.as_bytes(), None, length, head).unwrap();
            assert!(read == filter.as_bytes());
            let error = unpacked(filter.as_bytes(), None, length - 1, head).unwrap_err();
            assert!(error.is_too_large());
        }
    }
}
