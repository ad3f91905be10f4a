//! Reading a `.petal` file: total functions of any bytes.

use std::io::{self, Read};

use xxhash_rust::xxh3::xxh3_64;

use super::header::{HEADER, Header, PAGE, check_sum};
use crate::error::{Error, Result};
use crate::store::Store as _;
use crate::store::{Line, Owned, StoreMut as _, bytes_of, bytes_of_mut};

/// A file's header and metadata, the lengths compared with the bytes that are there. The data
/// lies in `file[header.data_at()..]` and has not been looked at.
pub(crate) fn open(file: &[u8]) -> Result<(Header, &str)> {
    let Some(fixed) = file.first_chunk::<HEADER>() else {
        return Err(too_short(file, HEADER as u64));
    };
    let header = Header::from_bytes(fixed)?;
    let found = file.len() as u64;
    // Lengths first: what they delimit is looked at only if it is there.
    if header.data_length > u64::MAX / 2 || found != header.file_length() {
        let expected = header.data_at().saturating_add(header.data_length);
        return Err(Error::truncated(expected, found));
    }
    let metadata = &file[HEADER..HEADER + header.metadata_length as usize];
    check_sum(fixed, metadata)?;
    Ok((header, text(metadata)?))
}

/// Looks at every byte of a file that [`open`] accepted.
pub(crate) fn verify(file: &[u8]) -> Result<()> {
    let (header, metadata) = open(file)?;
    let data_at = header.data_at() as usize;
    check_padding(&file[HEADER + metadata.len()..data_at], HEADER + metadata.len())?;
    check_data(&header, &file[data_at..])
}

/// Reads a whole file from a stream of unknown length, every byte examined. `lines` gives the
/// number of lines that the header's shape has. Memory grows with what has arrived.
pub(crate) fn read(
    mut stream: impl Read,
    lines: impl FnOnce(&Header) -> Result<u64>,
) -> Result<(Header, String, Owned)> {
    let mut fixed = [0; HEADER];
    let got = read_full(&mut stream, &mut fixed)?;
    if got < HEADER {
        return Err(too_short(&fixed[..got], HEADER as u64));
    }
    let header = Header::from_bytes(&fixed)?;
    // Less than a megabyte and a page: checked by `from_bytes`.
    let mut front = vec![0; header.data_at() as usize - HEADER];
    let got = read_full(&mut stream, &mut front)?;
    if got < front.len() {
        return Err(Error::truncated(header.data_at(), (HEADER + got) as u64));
    }
    let (metadata, padding) = front.split_at(header.metadata_length as usize);
    check_sum(&fixed, metadata)?;
    let lines = lines(&header)?;
    header.check_lines(lines)?;
    check_padding(padding, HEADER + metadata.len())?;
    let metadata = text(metadata)?.to_owned();
    let store = read_lines(&mut stream, lines, &header)?;
    check_data(&header, bytes_of(store.lines()))?;
    if read_full(&mut stream, &mut [0])? > 0 {
        return Err(Error::truncated(header.file_length(), header.file_length() + 1));
    }
    Ok((header, metadata, store))
}

/// Reads lines. The memory is made larger as they come, sixteenfold and at last to its full size,
/// so that moving them never takes much beside it.
fn read_lines(stream: &mut impl Read, lines: u64, header: &Header) -> Result<Owned> {
    const FIRST: u64 = 1 << 14;
    const TIMES: u64 = 16;
    let mut first = lines;
    while first > FIRST {
        first = first.div_ceil(TIMES);
    }
    let mut store = Owned::zeroed(first)?;
    let mut have = 0;
    loop {
        let got = read_full(stream, &mut bytes_of_mut(store.lines_mut())[have..])?;
        have += got;
        let room = store.lines().len();
        if have < room * Line::BYTES {
            return Err(Error::truncated(header.file_length(), header.data_at() + have as u64));
        }
        if room as u64 == lines {
            return Ok(store);
        }
        let mut larger = Owned::zeroed(lines.min(room as u64 * TIMES))?;
        larger.lines_mut()[..room].copy_from_slice(store.lines());
        store = larger;
    }
}

/// Fills the buffer; less only at the end of the stream.
fn read_full(stream: &mut impl Read, buffer: &mut [u8]) -> Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match stream.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(got)
}

/// Too few bytes for a header: a foreign file, unless it begins like one of ours.
fn too_short(bytes: &[u8], expected: u64) -> Error {
    let magic = &super::header::MAGIC[..bytes.len().min(8)];
    if bytes.is_empty() || !bytes.starts_with(magic) {
        return Error::foreign(bytes);
    }
    Error::truncated(expected, bytes.len() as u64)
}

fn text(metadata: &[u8]) -> Result<&str> {
    std::str::from_utf8(metadata)
        .map_err(|error| Error::corrupt("metadata", HEADER, "UTF-8", error))
}

fn check_padding(padding: &[u8], at: usize) -> Result<()> {
    debug_assert!(padding.len() < PAGE as usize);
    match padding.iter().position(|byte| *byte != 0) {
        None => Ok(()),
        Some(off) => Err(Error::corrupt("padding", at + off, 0, padding[off])),
    }
}

fn check_data(header: &Header, data: &[u8]) -> Result<()> {
    let (expected, found) = (header.data_sum, xxh3_64(data));
    if expected != found {
        let (expected, found) = (format!("{expected:016x}"), format!("{found:016x}"));
        return Err(Error::corrupt("data checksum", header.data_at() as usize, expected, found));
    }
    check_tail(header, data)
}

/// Bits behind the last one of the filter would count as set and never be asked for.
fn check_tail(header: &Header, data: &[u8]) -> Result<()> {
    let used = header.used_bits();
    let first = usize::try_from(used / 8).unwrap_or(usize::MAX);
    let Some((byte, rest)) = data.get(first..).and_then(<[u8]>::split_first) else {
        return Ok(());
    };
    if byte >> (used % 8) != 0 || rest.iter().any(|byte| *byte != 0) {
        let at = header.data_at() as usize + first;
        return Err(Error::corrupt("bits behind the last one", at, 0, "some that are set"));
    }
    Ok(())
}
