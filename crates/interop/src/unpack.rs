//! Reading files that may be packed with gzip: unpacked only as far as their header needs, for a small
//! file can unpack to any length.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::GzDecoder;

use crate::error::{Error, Result};
use crate::format::Format;
use crate::formats;

/// The first bytes of what gzip packs.
pub const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Bytes that are unpacked before the header is examined: every header is shorter.
const HEAD: u64 = 1 << 16;
/// Bytes of the user's data that may follow a packed filter of DCSO, whose header does not tell them.
const BEHIND: u64 = 16 << 20;

/// The bytes of a file, at most `limit`. A file that is packed with gzip is unpacked as far as a
/// filter of this format (or of any, if it is `None`) that begins so can reach, and one byte further
/// if there is more: enough for [`Foreign::from_bytes`](crate::Foreign::from_bytes) to say what is
/// wrong.
///
/// # Errors
/// If reading fails, or there are more bytes.
pub fn read_unpacked(mut stream: impl Read, format: Option<Format>, limit: u64) -> Result<Vec<u8>> {
    let mut start = Vec::new();
    stream.by_ref().take(GZIP.len() as u64).read_to_end(&mut start)?;
    let packed = start == GZIP;
    let stream = start.chain(stream);
    if packed {
        let members = Members { decoder: Some(GzDecoder::new(BufReader::new(stream))) };
        unpacked(members, format, limit, HEAD)
    } else {
        let mut file = Vec::new();
        read_up_to(stream, u64::MAX, limit, &mut file)?;
        Ok(file)
    }
}

/// The members of a gzip file, one after the other. Zeros behind the last are ignored, as `gzip`
/// itself does: tapes and block devices are filled up with them.
struct Members<R> {
    /// `None` behind the last member.
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

/// The rest of a gzip file if a member begins there; `None` if only zeros follow, or nothing.
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

/// As [`read_unpacked`]; the header is examined after `head` bytes.
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

/// The length that a filter can have that begins so, as far as that is known yet; 0 if none begins
/// so.
fn longest(format: Option<Format>, begin: &[u8]) -> Result<u64> {
    let told = Format::ALL.into_iter().filter(|format| format.is_told_by_its_bytes());
    let formats: Vec<_> = format.map_or_else(|| told.collect(), |format| vec![format]);
    let there = begin.len() as u64;
    let mut lengths = formats.into_iter().map(|format| {
        let opened = formats::open(format, begin);
        let length = match &opened {
            Ok(_) => there,
            Err(error) => error.expected_length().unwrap_or(0),
        };
        Ok(match (format, opened.is_ok()) {
            // Nothing says how long it is.
            (Format::Rbloom, true) => u64::MAX,
            // Another layer may follow.
            (Format::FilterCascade, true) => there + 1,
            (Format::Dcso, true) => {
                let end = formats::dcso_end(begin)?.saturating_add(BEHIND);
                if there > end {
                    let expected = format!("at most {BEHIND} bytes in a packed file");
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

/// Appends bytes of a stream until there are `target` of them; whether the stream has ended.
fn read_up_to(mut stream: impl Read, target: u64, limit: u64, file: &mut Vec<u8>) -> Result<bool> {
    let target = target.min(limit.saturating_add(1));
    while (file.len() as u64) < target {
        if file.len() == file.capacity() {
            // Doubled; a refusal is an error.
            let left = target - file.len() as u64;
            let more = (file.len() as u64).max(1 << 16).min(left);
            let length = file.len() as u64 + more;
            file.try_reserve_exact(more as usize).map_err(|_| Error::alloc(length))?;
        }
        let room = ((file.capacity() - file.len()) as u64).min(target - file.len() as u64);
        let got = stream.by_ref().take(room).read_to_end(file)?;
        if file.len() as u64 > limit {
            return Err(Error::too_large(file.len() as u64, limit));
        }
        if (got as u64) < room {
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
    use crate::Foreign;

    /// Every golden file is unpacked whole, with and without its format, however early its header is
    /// examined; and no more than a byte of what follows it.
    #[test]
    fn sound_files_are_unpacked_whole_and_no_further() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/foreign/");
        let manifest = std::fs::read_to_string(format!("{folder}manifest.tsv")).unwrap();
        for line in manifest.lines().skip(1) {
            let fields: Vec<_> = line.split('\t').collect();
            let Some(format) = Format::from_name(fields[1]) else { continue };
            let file = std::fs::read(format!("{folder}{}", fields[0])).unwrap();
            let file = read_unpacked(&file[..], Some(format), 1 << 30).unwrap();
            let told = format.is_told_by_its_bytes().then_some(None);
            for format in told.into_iter().chain([Some(format)]) {
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
                Format::Dcso => assert!(read.unwrap().len() == 1 << 24),
                _ => {
                    let read = read.unwrap();
                    assert!(read.len() <= (file.len() + 20).max(600), "{}", fields[0]);
                    assert!(Foreign::from_bytes(read, Some(format)).is_err(), "{}", fields[0]);
                }
            }
        }
    }

    #[test]
    fn zeros_behind_the_last_gzip_member_are_ignored_and_other_bytes_are_not() {
        let filter = Foreign::with_rate(Format::Guava, 1_000, 0.01).unwrap();
        let packed = |bytes: &[u8]| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        let (front, back) = filter.as_bytes().split_at(300);
        let members = [packed(front), packed(back)].concat();
        for zeros in [0, 1, 7, 512, 1 << 16] {
            let padded = [&members[..], &vec![0; zeros]].concat();
            let read = read_unpacked(&padded[..], None, 1 << 30).unwrap();
            assert!(read == filter.as_bytes(), "{zeros}");
            for more in [&b"x"[..], &packed(b"x")[..7]] {
                let file = [&padded, more].concat();
                assert!(read_unpacked(&file[..], None, 1 << 30).is_err(), "{zeros}");
            }
        }
    }

    #[test]
    fn zeros_are_not_unpacked() {
        let zeros = || std::io::repeat(0).take(1 << 30);
        for format in Format::ALL {
            let read = unpacked(zeros(), Some(format), u64::MAX, HEAD).unwrap();
            assert!(read.len() as u64 <= HEAD + 1, "{format}");
        }
        assert_eq!(unpacked(zeros(), None, u64::MAX, HEAD).unwrap().len() as u64, HEAD);
        let dcso = Foreign::with_rate(Format::Dcso, 10, 0.01).unwrap();
        let file = dcso.as_bytes().chain(zeros());
        assert!(unpacked(file, None, u64::MAX, HEAD).unwrap_err().is_malformed());
    }

    #[test]
    fn limits_are_kept() {
        let filter = Foreign::with_rate(Format::Guava, 100_000, 0.01).unwrap();
        let length = filter.as_bytes().len() as u64;
        for head in [6, 600, HEAD] {
            let read = unpacked(filter.as_bytes(), None, length, head).unwrap();
            assert!(read == filter.as_bytes());
            let error = unpacked(filter.as_bytes(), None, length - 1, head).unwrap_err();
            assert!(error.is_too_large());
        }
    }
}
