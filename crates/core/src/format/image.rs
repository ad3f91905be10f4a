//! A filter as the bytes that it would have in a file, to be carried away in pieces.

use std::borrow::Cow;

use xxhash_rust::xxh3::Xxh3;

use super::header::{HEADER, Header};
use crate::store::{Line, bytes_of};

/// The header and the data of a filter, as they would stand in a `.petal` file without metadata;
/// data that lie in memory are lent, not copied. See
/// [`AnyFilter::image`](crate::AnyFilter::image); a [`Receiver`](crate::Receiver) makes a filter of
/// it again.
///
/// Cost: of making it, nothing that depends on the length of the data, so that it can be made
/// anew for each piece that is read.
#[derive(Debug)]
pub struct Image<'a> {
    /// Lengths and sums aside.
    header: Header,
    parts: Vec<Cow<'a, [Line]>>,
}

impl<'a> Image<'a> {
    /// What a filter's form says of it.
    pub(super) fn new((header, parts): (Header, Vec<Cow<'a, [Line]>>)) -> Self {
        Self { header, parts }
    }

    /// Of anything that has a form.
    pub(crate) fn of<S>(filter: &'a impl super::form::Form<S>) -> Self {
        Self::new(filter.save())
    }

    /// The header of a file without metadata.
    ///
    /// Cost: one pass over the data, for their checksum.
    #[must_use]
    pub fn header(&self) -> [u8; HEADER] {
        self.header_with_sum(self.sum())
    }

    /// The same with a checksum that the caller knows: the XXH3-64, of seed 0, of all data in their
    /// order. Whoever reads the pieces over a longer time can make it meanwhile, in the small.
    ///
    /// Cost: nothing that depends on the length of the data.
    #[must_use]
    pub fn header_with_sum(&self, sum: u64) -> [u8; HEADER] {
        self.sealed(0, sum).to_bytes(&[])
    }

    /// Bytes of the data.
    #[must_use]
    pub fn data_len(&self) -> u64 {
        self.parts.iter().map(|part| size_of_val(&**part) as u64).sum()
    }

    /// The data from a place on: as many bytes as lie in one piece there, at most `most`. Nothing
    /// at and behind their end.
    #[must_use]
    pub fn read(&self, offset: u64, most: usize) -> &[u8] {
        let mut before = offset;
        for part in &self.parts {
            let bytes = bytes_of(part);
            let at = usize::try_from(before).unwrap_or(usize::MAX);
            if let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
                return &rest[..rest.len().min(most)];
            }
            before = before.saturating_sub(bytes.len() as u64);
        }
        &[]
    }

    pub(super) fn parts(&self) -> &[Cow<'a, [Line]>] {
        &self.parts
    }

    /// The checksum of the data.
    pub(super) fn sum(&self) -> u64 {
        let mut sum = Xxh3::new();
        self.parts.iter().for_each(|part| sum.update(bytes_of(part)));
        sum.digest()
    }

    /// The header with lengths and the checksum of the data filled in.
    pub(super) fn sealed(&self, metadata_length: u64, data_sum: u64) -> Header {
        Header { metadata_length, data_length: self.data_len(), data_sum, ..self.header }
    }
}
