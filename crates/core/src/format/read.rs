//! Reading a `.petal` file: total functions of any bytes.

use std::io::{self, Read};

use xxhash_rust::xxh3::xxh3_64;

use super::header::{HEADER, Header, PAGE, check_sum};
use crate::error::{Error, Result};

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
pub(crate) fn verify(file: &[u8]) -> Result<Header> {
    let (header, metadata) = open(file)?;
    let data_at = header.data_at() as usize;
    check_padding(&file[HEADER + metadata.len()..data_at], HEADER + metadata.len())?;
    check_data_sum(&header, xxh3_64(&file[data_at..]))?;
    Ok(header)
}

/// The metadata that stand behind a header with what follows them before the data, checked; there
/// are as many as the header says.
pub(crate) fn metadata_of(header: &Header, fixed: &[u8; HEADER], front: &[u8]) -> Result<String> {
    let (metadata, padding) = front.split_at(header.metadata_length as usize);
    check_sum(fixed, metadata)?;
    check_padding(padding, HEADER + metadata.len())?;
    Ok(text(metadata)?.to_owned())
}

/// Fills the buffer; less only at the end of the stream.
pub(super) fn read_full(stream: &mut impl Read, buffer: &mut [u8]) -> Result<usize> {
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
pub(crate) fn too_short(bytes: &[u8], expected: u64) -> Error {
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

/// Compares the checksum of the data.
pub(crate) fn check_data_sum(header: &Header, found: u64) -> Result<()> {
    let expected = header.data_sum;
    if expected != found {
        let (expected, found) = (format!("{expected:016x}"), format!("{found:016x}"));
        return Err(Error::corrupt("data checksum", header.data_at() as usize, expected, found));
    }
    Ok(())
}
