//! A filter as the bytes of a file, read in pieces.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use alloc::borrow::Cow;

use xxhash_rust::xxh3::Xxh3;

use super::header::{HEADER, Header};
use crate::store::{CacheLine, lines_as_bytes};

/// The header and data of a filter as in a `.petal` file without metadata, borrowed from the
/// filter.
///
/// [`AnyFilter::serialized`](crate::AnyFilter::serialized) returns one, and a
/// [`StreamDecoder`](crate::embed::StreamDecoder) turns the bytes into a filter again.
///
/// Cost: creating a view does not depend on the length of the data, so that a new one can be
/// created for each piece.
#[derive(Debug)]
pub struct SerializedView<'a> {
    /// Without lengths and checksums.
    header: Header,
    parts: Vec<Cow<'a, [CacheLine]>>,
}

impl<'a> SerializedView<'a> {
    pub(super) fn new((header, parts): (Header, Vec<Cow<'a, [CacheLine]>>)) -> Self {
        Self { header, parts }
    }

    /// Returns the header.
    ///
    /// Cost: one pass over the data, for their checksum.
    #[must_use]
    pub fn header(&self) -> [u8; HEADER] {
        self.header_with_sum(self.checksum())
    }

    /// Returns the header with a checksum that the caller has computed: the XXH3-64, with seed 0,
    /// of all data in order.
    ///
    /// Cost: does not depend on the length of the data.
    #[must_use]
    pub fn header_with_sum(&self, sum: u64) -> [u8; HEADER] {
        self.complete_header(0, sum).to_bytes(&[])
    }

    /// Returns the length of the data in bytes.
    #[must_use]
    pub fn data_len(&self) -> u64 {
        self.parts.iter().map(|part| size_of_val(&**part) as u64).sum()
    }

    /// Returns the data from `offset` on: as many bytes as are contiguous there, at most
    /// `max_len`. Empty at the end of the data and beyond.
    #[must_use]
    pub fn read(&self, offset: u64, max_len: usize) -> &[u8] {
        let mut offset = offset;
        for part in &self.parts {
            let bytes = lines_as_bytes(part);
            let at = usize::try_from(offset).unwrap_or(usize::MAX);
            if let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
                return &rest[..rest.len().min(max_len)];
            }
            offset = offset.saturating_sub(bytes.len() as u64);
        }
        &[]
    }

    pub(super) fn parts(&self) -> &[Cow<'a, [CacheLine]>] {
        &self.parts
    }

    /// Returns the checksum of the data.
    pub(super) fn checksum(&self) -> u64 {
        let mut sum = Xxh3::new();
        self.parts.iter().for_each(|part| sum.update(lines_as_bytes(part)));
        sum.digest()
    }

    /// Returns the header with lengths and the checksum of the data.
    pub(super) fn complete_header(&self, metadata_length: u64, data_sum: u64) -> Header {
        Header { metadata_length, data_length: self.data_len(), data_sum, ..self.header }
    }
}
