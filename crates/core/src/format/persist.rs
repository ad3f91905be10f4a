//! How filters of all types are written to files and read from them.
//!
//! A type implements [`Save`] and [`Load`]; [`Persist`] and `write_to` follow from these.

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
#[cfg(feature = "mmap")]
use crate::store::Mapped;
#[cfg(feature = "std")]
use crate::store::Owned;
use crate::store::{Borrowed, CacheLine, Store};

/// A filter that can be written to a `.petal` file.
pub trait Save {
    /// Returns capacity, target rate and number of inserts.
    fn info(&self) -> FilterInfo;

    /// Returns the header, without lengths and checksums, and the data in parts, in the order in
    /// which [`Load::load`] takes them.
    fn save(&self) -> (Header, Vec<Cow<'_, [CacheLine]>>);

    /// Returns a view of the filter as the bytes of a file without metadata.
    fn serialized(&self) -> SerializedView<'_> {
        SerializedView::new(self.save())
    }
}

/// A filter that can be read from a `.petal` file.
pub trait Load: Save + Sized {
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
pub struct CheckState {
    /// Lines, or groups of lines, that need not be checked again.
    pub(crate) done: usize,
    /// Values found in them; their meaning depends on the type.
    pub(crate) seen: [u64; 4],
}

/// Opening filters from `.petal` files. Sealed; implemented for all types and for
/// [`AnyFilter`](crate::AnyFilter).
///
/// Filters are written with [`Membership::write_to`](crate::Membership::write_to).
///
/// ```
/// use petal::{BloomFilter, Membership, Persist};
///
/// let mut seen = BloomFilter::with_fpr(1000, 0.01)?;
/// seen.insert("one");
/// let mut file = Vec::new();
/// seen.write_to(&mut file, "metadata")?;
/// let (copy, metadata) = BloomFilter::read_from(&file[..])?;
/// assert!(copy == seen && metadata == "metadata");
/// # Ok::<_, petal::Error>(())
/// ```
pub trait Persist: Load {
    /// Reads a filter and its metadata from a stream and checks every byte. Memory grows with the
    /// bytes that arrive, not with the sizes in the header.
    ///
    /// # Errors
    /// If reading fails, or the bytes are not a petal file of this type or are damaged.
    #[cfg(feature = "std")]
    fn read_from(stream: impl Read) -> Result<(Self, String)>
    where
        Self: Load<Store = Owned>,
    {
        let (mut data, metadata) = StreamData::open(stream)?;
        let filter = Self::load(&data.header(), &mut data)?;
        let data_at = data.header().data_at();
        data.finish()?;
        filter.check(data_at, CheckState::default())?;
        Ok((filter, metadata))
    }

    /// Opens a filter in a mapped file, which is queried in place. Reads only the header and the
    /// lengths of the parts; [`verify`](Self::verify) checks every byte.
    ///
    /// # Errors
    /// If the file is not a petal file of this type, is truncated, or its header is damaged.
    #[cfg(feature = "mmap")]
    fn open_mapped(file: Mapped) -> Result<Self>
    where
        Self: Load<Store = Mapped>,
    {
        let (header, _) = read::open(file.file())?;
        let mut data = InPlaceData::new(file.lines_from(header.data_at() as usize)?);
        let filter = Self::load(&header, &mut data)?;
        data.finish(&header)?;
        Ok(filter)
    }

    /// Checks every byte of the mapped file.
    ///
    /// # Errors
    /// If anything in it is damaged.
    #[cfg(feature = "mmap")]
    fn verify(&self) -> Result<()>
    where
        Self: Load<Store = Mapped>,
    {
        verify(self, self.any_store().map_or(&[], Mapped::file))
    }

    /// Returns the metadata of the mapped file.
    #[cfg(feature = "mmap")]
    fn metadata(&self) -> &str
    where
        Self: Load<Store = Mapped>,
    {
        let file = self.any_store().map_or(&[][..], Mapped::file);
        read::open(file).map_or("", |(_, metadata)| metadata)
    }

    /// Opens a filter over the bytes of a whole file, which is queried in place. The bytes must
    /// begin at a multiple of 64 in memory. Reads as little as
    /// [`open_mapped`](Self::open_mapped).
    ///
    /// # Errors
    /// As `open_mapped`; also if the bytes are not aligned.
    fn from_bytes<'a>(file: &'a [u8]) -> Result<Self>
    where
        Self: Load<Store = Borrowed<'a>>,
    {
        let (header, _) = read::open(file)?;
        let mut data = InPlaceData::new(Borrowed::new(&file[header.data_at() as usize..])?);
        let filter = Self::load(&header, &mut data)?;
        data.finish(&header)?;
        Ok(filter)
    }
}

impl<F: Load> Persist for F {}

/// Checks every byte of the file of a filter.
#[cfg(feature = "std")]
pub(crate) fn verify(filter: &impl Load, file: &[u8]) -> Result<()> {
    let header = read::verify(file)?;
    filter.check(header.data_at(), CheckState::default())
}
