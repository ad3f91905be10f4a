//! Reading the parts of a `.petal` file. No bytes cause a panic.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
#[cfg(feature = "std")]
use std::io::{self, Read};

use xxhash_rust::xxh3::xxh3_64;

use super::header::{HEADER, Header, PAGE, check_sum};
use crate::error::{Error, Result};

/// Returns the header and metadata of a file whose length agrees with its header. The data,
/// `file[header.data_at()..]`, are not read.
pub(crate) fn open(file: &[u8]) -> Result<(Header, &str)> {
    let Some(fixed) = file.first_chunk::<HEADER>() else {
        return Err(too_short(file, HEADER as u64));
    };
    let header = Header::from_bytes(fixed)?;
    let found = file.len() as u64;
    // Lengths first: the sections that they delimit may be missing.
    if header.data_length > u64::MAX / 2 || found != header.file_length() {
        let expected = header.data_at().saturating_add(header.data_length);
        return Err(Error::truncated(expected, found));
    }
    let metadata = &file[HEADER..HEADER + header.metadata_length as usize];
    check_sum(fixed, metadata)?;
    Ok((header, text(metadata)?))
}

/// Returns the metadata of a file.
///
/// # Errors
/// If it is not a petal file, is truncated, or its header is damaged.
pub fn metadata_of_file(file: &[u8]) -> Result<&str> {
    open(file).map(|(_, metadata)| metadata)
}

/// Opens a file and checks its padding and the checksum of its data.
pub(crate) fn verify(file: &[u8]) -> Result<Header> {
    let (header, metadata) = open(file)?;
    let data_at = header.data_at() as usize;
    check_padding(&file[HEADER + metadata.len()..data_at], HEADER + metadata.len())?;
    check_data_sum(&header, xxh3_64(&file[data_at..]))?;
    Ok(header)
}

/// Returns the metadata, checked. `front` is everything between the header and the data.
pub(crate) fn metadata_of(header: &Header, fixed: &[u8; HEADER], front: &[u8]) -> Result<String> {
    let (metadata, padding) = front.split_at(header.metadata_length as usize);
    check_sum(fixed, metadata)?;
    check_padding(padding, HEADER + metadata.len())?;
    Ok(text(metadata)?.to_owned())
}

/// Fills the buffer; returns the number of bytes, which is less only at the end of the stream.
#[cfg(feature = "std")]
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

/// The error for bytes that are shorter than a header: not a petal file, unless they begin with
/// its magic number.
pub(crate) fn too_short(bytes: &[u8], expected: u64) -> Error {
    let magic = &super::header::MAGIC[..bytes.len().min(8)];
    if bytes.is_empty() || !bytes.starts_with(magic) {
        return Error::foreign(bytes);
    }
    Error::truncated(expected, bytes.len() as u64)
}

fn text(metadata: &[u8]) -> Result<&str> {
    core::str::from_utf8(metadata)
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
