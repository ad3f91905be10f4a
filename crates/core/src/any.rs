//! Whatever filter a file holds.

use std::fs::File;
use std::io::{Read, Write};

use crate::answers::Answers;
use crate::error::{Error, Result};
use crate::filter::file::{assemble, check_any, read_any};
use crate::filter::{BloomFilter, ClassicBloomFilter};
use crate::format::header::Header;
use crate::format::read;
use crate::hash::HashSpec;
use crate::shape::{ClassicShape, Shape};
use crate::store::{Mapped, Owned, Store, StoreMut};

/// A filter of any layout: what a file turns out to hold.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnyFilter<S = Owned> {
    /// Blocked.
    Bloom(BloomFilter<S>),
    /// Classic.
    Classic(ClassicBloomFilter<S>),
}

impl From<BloomFilter> for AnyFilter {
    fn from(filter: BloomFilter) -> Self {
        Self::Bloom(filter)
    }
}

impl From<ClassicBloomFilter> for AnyFilter {
    fn from(filter: ClassicBloomFilter) -> Self {
        Self::Classic(filter)
    }
}

/// The shape of a filter of any layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnyShape {
    /// Blocked.
    Bloom(Shape),
    /// Classic.
    Classic(ClassicShape),
}

/// The same call on whichever filter it is.
macro_rules! either {
    ($any:expr, $filter:ident => $call:expr) => {
        match $any {
            AnyFilter::Bloom($filter) => $call,
            AnyFilter::Classic($filter) => $call,
        }
    };
}

impl AnyFilter {
    /// Reads a filter and its metadata from a stream, every byte examined.
    ///
    /// # Errors
    /// As [`Filter::read_from`](crate::Filter::read_from); also if the layout is not known.
    pub fn read_from(stream: impl Read) -> Result<(Self, String)> {
        let (header, metadata, store) = read_any(stream)?;
        Ok((Self::assemble(&header, store)?, metadata))
    }
}

impl AnyFilter<Mapped> {
    /// Opens a filter file to be queried where it lies; only the header is read.
    ///
    /// # Errors
    /// As [`Filter::open_mapped`](crate::Filter::open_mapped); also if the layout is not known.
    ///
    /// # Safety
    /// No process may change the file while the filter lives.
    #[allow(unsafe_code)]
    pub unsafe fn open_mapped(file: &File) -> Result<Self> {
        // SAFETY: the caller promises that the file does not change.
        let map = unsafe { Mapped::new(file) }?;
        let (header, _) = read::open(&map)?;
        check_any(&header)?;
        let (start, end) = (header.data_at() as usize, header.file_length() as usize);
        Self::assemble(&header, Mapped::part(map, start, end)?)
    }

    /// Examines every byte of the file.
    ///
    /// # Errors
    /// If anything in it is damaged.
    pub fn verify(&self) -> Result<()> {
        either!(self, filter => filter.verify())
    }

    /// The file's metadata.
    #[must_use]
    pub fn metadata(&self) -> &str {
        either!(self, filter => filter.metadata())
    }
}

impl<S: Store> AnyFilter<S> {
    fn assemble(header: &Header, store: S) -> Result<Self> {
        match header.kind {
            1 => assemble(header, store).map(Self::Bloom),
            _ => assemble(header, store).map(Self::Classic),
        }
    }

    /// See [`Filter::contains_hashes`](crate::Filter::contains_hashes).
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut Answers) {
        either!(self, filter => filter.contains_hashes(hashes, found));
    }

    /// See [`Filter::write_to`](crate::Filter::write_to).
    ///
    /// # Errors
    /// If the metadata is longer than 1 MiB, or writing fails.
    pub fn write_to(&self, out: impl Write, metadata: &str) -> Result<()> {
        either!(self, filter => filter.write_to(out, metadata))
    }

    /// The geometry.
    #[must_use]
    pub fn shape(&self) -> AnyShape {
        match self {
            Self::Bloom(filter) => AnyShape::Bloom(filter.shape()),
            Self::Classic(filter) => AnyShape::Classic(filter.shape()),
        }
    }

    /// How keys become hashes.
    #[must_use]
    pub fn hash_spec(&self) -> HashSpec {
        either!(self, filter => filter.hash_spec())
    }

    /// Bytes that the bits take.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        either!(self, filter => filter.size_bytes())
    }

    /// Keys it was planned for; 0 if it was made from bits and probes.
    #[must_use]
    pub fn planned_keys(&self) -> u64 {
        either!(self, filter => filter.planned_keys())
    }

    /// The false-positive rate it was planned for; 0 if it was made from bits and probes.
    #[must_use]
    pub fn target_rate(&self) -> f64 {
        either!(self, filter => filter.target_rate())
    }

    /// How many inserts were new.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        either!(self, filter => filter.inserted())
    }

    /// The false-positive rate with `keys` distinct keys, by calculation.
    #[must_use]
    pub fn expected_rate(&self, keys: u64) -> f64 {
        either!(self, filter => filter.expected_rate(keys))
    }

    /// The false-positive rate that the bits give as they are now.
    #[must_use]
    pub fn estimated_rate(&self) -> f64 {
        either!(self, filter => filter.estimated_rate())
    }

    /// An estimate of the distinct keys inserted.
    #[must_use]
    pub fn estimated_len(&self) -> f64 {
        either!(self, filter => filter.estimated_len())
    }

    /// The share of bits that are set.
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        either!(self, filter => filter.fill_ratio())
    }
}

impl<S: StoreMut> AnyFilter<S> {
    /// See [`Filter::insert_hashes`](crate::Filter::insert_hashes).
    pub fn insert_hashes(&mut self, hashes: &[u64], new: &mut Answers) {
        either!(self, filter => filter.insert_hashes(hashes, new));
    }

    /// See [`Filter::union`](crate::Filter::union).
    ///
    /// # Errors
    /// If they are not compatible; nothing has changed then.
    pub fn union<T: Store>(&mut self, other: &AnyFilter<T>) -> Result<()> {
        match (self, other) {
            (Self::Bloom(ours), AnyFilter::Bloom(theirs)) => ours.union(theirs),
            (Self::Classic(ours), AnyFilter::Classic(theirs)) => ours.union(theirs),
            (ours, theirs) => Err(Error::incompatible("layout", ours.shape(), theirs.shape())),
        }
    }
}
