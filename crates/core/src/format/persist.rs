//! How filters of all types are written to files and read from them.
//!
//! A type implements [`Save`] and [`Load`]; all ways to read and write follow from these.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use alloc::borrow::Cow;
#[cfg(feature = "std")]
use std::io::Read;

#[cfg(feature = "std")]
use super::data::StreamData;
use super::data::{DataSource, InPlaceData};
use super::header::{FilterInfo, Header};
use super::read;
use super::serialized::SerializedView;
use crate::error::Result;
use crate::hash::Secret;
#[cfg(feature = "mmap")]
use crate::store::Mapped;
#[cfg(feature = "std")]
use crate::store::Owned;
use crate::store::{Borrowed, CacheLine, SliceStore, Store};

/// A filter that can be written to a `.petal` file.
pub trait Save {
    /// Returns capacity, target rate and number of inserts.
    fn info(&self) -> FilterInfo;

    /// Returns the header, without lengths and checksums, and the data in parts, in the order in
    /// which [`Load::load`] takes them.
    fn parts(&self) -> (Header, Vec<Cow<'_, [CacheLine]>>);

    /// Returns a view of the filter as the bytes of a file without metadata.
    fn serialized(&self) -> SerializedView<'_> {
        SerializedView::new(self.parts())
    }
}

/// A filter that can be read from a `.petal` file.
pub(crate) trait Load: Save + Sized {
    /// The memory of the data.
    type Store: Store;

    /// Creates the filter of a header and the data behind it.
    ///
    /// Takes all of the data and reads no more of it than the lengths of its parts. Whatever the
    /// data are, methods of the filter must not panic.
    fn load(header: &Header, data: &mut impl DataSource<Store = Self::Store>) -> Result<Self>;

    /// Checks data whose checksum is right for values that are never written.
    ///
    /// The data begin at offset `data_at` of the file. Parts that
    /// [`check_early`](Self::check_early) has checked are skipped.
    fn check(&self, data_at: u64, state: CheckState) -> Result<()> {
        let _ = (data_at, state);
        Ok(())
    }

    /// Checks the first `lines` lines of the data before the rest has arrived.
    ///
    /// For types whose check reads all data: it spreads the work over the time of the transfer.
    fn check_early(&self, data_at: u64, lines: usize, state: &mut CheckState) -> Result<()> {
        let _ = (data_at, lines, state);
        Ok(())
    }

    /// Returns a part of the data; `None` if there is none.
    fn any_store(&self) -> Option<&Self::Store>;
}

/// The progress of a check of data.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CheckState {
    /// Lines, or groups of lines, that need not be checked again.
    pub(crate) done: usize,
    /// Values found in them; their meaning depends on the type.
    pub(crate) seen: [u64; 4],
}

/// What a filter is opened for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose<'a> {
    /// Queries and changes: with the secret, if the file does not have it.
    Queries(Option<&'a Secret>),
    /// Checks and numbers only.
    #[cfg(feature = "std")]
    Numbers,
}

impl Purpose<'_> {
    /// Returns the header with the secret that the filter needs.
    fn unlock(self, header: Header) -> Result<Header> {
        match self {
            Self::Queries(secret) => header.unlocked(secret),
            #[cfg(feature = "std")]
            Self::Numbers => Ok(header),
        }
    }
}

/// Reads a filter and its metadata from a stream and checks every byte.
#[cfg(feature = "std")]
pub(crate) fn read_from<F: Load<Store = Owned>>(
    stream: impl Read,
    purpose: Purpose<'_>,
) -> Result<(F, String)> {
    let (mut data, metadata) = StreamData::open(stream)?;
    let filter = F::load(&purpose.unlock(data.header())?, &mut data)?;
    let data_at = data.header().data_at();
    data.finish()?;
    filter.check(data_at, CheckState::default())?;
    Ok((filter, metadata))
}

/// Opens a filter in a mapped file.
#[cfg(feature = "mmap")]
pub(crate) fn open_mapped<F: Load<Store = Mapped>>(
    file: Mapped,
    purpose: Purpose<'_>,
) -> Result<F> {
    let (header, _) = read::open(file.file())?;
    in_place(&purpose.unlock(header)?, file.lines_from(header.data_at() as usize)?)
}

/// Opens a filter over the bytes of a whole file.
pub(crate) fn from_bytes<'a, F: Load<Store = Borrowed<'a>>>(
    file: &'a [u8],
    purpose: Purpose<'_>,
) -> Result<F> {
    let (header, _) = read::open(file)?;
    in_place(&purpose.unlock(header)?, Borrowed::new(&file[header.data_at() as usize..])?)
}

fn in_place<F: Load<Store: SliceStore>>(header: &Header, lines: F::Store) -> Result<F> {
    let mut data = InPlaceData::new(lines);
    let filter = F::load(header, &mut data)?;
    data.finish(header)?;
    Ok(filter)
}

/// Checks every byte of the file of a filter.
#[cfg(feature = "std")]
pub(crate) fn verify(filter: &impl Load, file: &[u8]) -> Result<()> {
    let header = read::verify(file)?;
    filter.check(header.data_at(), CheckState::default())
}
