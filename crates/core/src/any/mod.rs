//! Whatever filter a file holds.

mod receiver;
mod sizing;

use std::borrow::Cow;
use std::io::{Read, Write};

use crate::cascade::FilterCascade;
use crate::counting::{ClassicCountingBloomFilter, CountingBloomFilter};
use crate::error::{Error, Result};
use crate::filter::{BloomFilter, ClassicBloomFilter};
use crate::format::data::Data;
use crate::format::form::{self, Checked, Form};
use crate::format::header::Header;
use crate::format::image::Image;
use crate::format::kind::FilterType;
use crate::membership::{Membership, MembershipMut};
use crate::quotient::QuotientFilter;
use crate::ribbon::StaticFilter;
use crate::scalable::ScalableBloomFilter;
use crate::store::{Lent, Line, Mapped, Mover, Owned, Store};
use crate::wide::WideBloomFilter;
use crate::windowed::WindowedBloomFilter;

pub use receiver::Receiver;
pub use sizing::Sizing;

/// A filter of any type: what a file turns out to hold. All that the types have in common is
/// asked through its [`face`](Self::face).
#[derive(Debug)]
#[non_exhaustive]
pub enum AnyFilter<S = Owned> {
    /// Blocked.
    Bloom(BloomFilter<S>),
    /// Classic.
    Classic(ClassicBloomFilter<S>),
    /// A counter for each bit, in blocks.
    Counting(CountingBloomFilter<S>),
    /// A counter for each bit, anywhere.
    CountingClassic(ClassicCountingBloomFilter<S>),
    /// Remainders in a table.
    Quotient(QuotientFilter<S>),
    /// Layers.
    Scalable(ScalableBloomFilter<S>),
    /// Generations.
    Windowed(WindowedBloomFilter<S>),
    /// Ribbons.
    Static(StaticFilter<S>),
    /// Static filters of each other's errors.
    Cascade(FilterCascade<S>),
    /// Two filters on a 128-bit hash.
    Wide(WideBloomFilter<S>),
}

/// The same on whichever filter it is.
macro_rules! each {
    ($any:expr, $filter:ident => $call:expr) => {
        match $any {
            AnyFilter::Bloom($filter) => $call,
            AnyFilter::Classic($filter) => $call,
            AnyFilter::Counting($filter) => $call,
            AnyFilter::CountingClassic($filter) => $call,
            AnyFilter::Quotient($filter) => $call,
            AnyFilter::Scalable($filter) => $call,
            AnyFilter::Windowed($filter) => $call,
            AnyFilter::Static($filter) => $call,
            AnyFilter::Cascade($filter) => $call,
            AnyFilter::Wide($filter) => $call,
        }
    };
}

/// A filter of any type is made of one of some type.
macro_rules! from {
    ($($name:ident($type:ident),)*) => {$(
        impl<S> From<$type<S>> for AnyFilter<S> {
            fn from(filter: $type<S>) -> Self {
                Self::$name(filter)
            }
        }
    )*};
}

from! {
    Bloom(BloomFilter),
    Classic(ClassicBloomFilter),
    Counting(CountingBloomFilter),
    CountingClassic(ClassicCountingBloomFilter),
    Quotient(QuotientFilter),
    Scalable(ScalableBloomFilter),
    Windowed(WindowedBloomFilter),
    Static(StaticFilter),
    Cascade(FilterCascade),
    Wide(WideBloomFilter),
}

impl<S: Store> Form<S> for AnyFilter<S> {
    fn load(header: &Header, data: &mut impl Data<Store = S>) -> Result<Self> {
        Ok(match header.kind {
            FilterType::Bloom => Self::Bloom(Form::load(header, data)?),
            FilterType::Classic => Self::Classic(Form::load(header, data)?),
            FilterType::Counting => Self::Counting(Form::load(header, data)?),
            FilterType::CountingClassic => Self::CountingClassic(Form::load(header, data)?),
            FilterType::Quotient => Self::Quotient(Form::load(header, data)?),
            FilterType::Scalable => Self::Scalable(Form::load(header, data)?),
            FilterType::Windowed => Self::Windowed(Form::load(header, data)?),
            FilterType::Static => Self::Static(Form::load(header, data)?),
            FilterType::Cascade => Self::Cascade(Form::load(header, data)?),
            FilterType::Wide => Self::Wide(Form::load(header, data)?),
        })
    }

    fn check(&self, data_at: u64, checked: Checked) -> Result<()> {
        each!(self, filter => filter.check(data_at, checked))
    }

    fn check_early(&self, data_at: u64, lines: usize, checked: &mut Checked) -> Result<()> {
        each!(self, filter => filter.check_early(data_at, lines, checked))
    }

    fn save(&self) -> (Header, Vec<Cow<'_, [Line]>>) {
        each!(self, filter => filter.save())
    }
}

impl<S: Store> AnyFilter<S> {
    /// What all types have in common.
    #[must_use]
    pub fn face(&self) -> &dyn Membership {
        each!(self, filter => filter)
    }

    /// Writes the filter as a `.petal` file, with free-form metadata (JSON, or nothing).
    ///
    /// # Errors
    /// If the metadata is longer than 1 MiB, or writing fails.
    pub fn write_to(&self, out: impl Write, metadata: &str) -> Result<()> {
        form::write_to(self, out, metadata)
    }

    /// Whether two filters can be united: of one type that can be, with equal shape and hash.
    ///
    /// # Errors
    /// If they cannot; the error says in what they differ.
    pub fn check_compatible<T: Store>(&self, other: &AnyFilter<T>) -> Result<()> {
        match (self, other) {
            (Self::Bloom(ours), AnyFilter::Bloom(theirs)) => ours.check_compatible(theirs),
            (Self::Classic(ours), AnyFilter::Classic(theirs)) => ours.check_compatible(theirs),
            (Self::Counting(ours), AnyFilter::Counting(theirs)) => ours.check_compatible(theirs),
            (Self::CountingClassic(ours), AnyFilter::CountingClassic(theirs)) => {
                ours.check_compatible(theirs)
            }
            (Self::Quotient(ours), AnyFilter::Quotient(theirs)) => ours.check_compatible(theirs),
            (Self::Wide(ours), AnyFilter::Wide(theirs)) => ours.check_compatible(theirs),
            (ours, theirs) => {
                let (ours, theirs) = (ours.face().filter_type(), theirs.face().filter_type());
                if ours == theirs {
                    return Err(Error::unsupported(ours.name(), "is united with no other"));
                }
                Err(Error::incompatible("type", ours, theirs))
            }
        }
    }

    /// Its header and data, as they would stand in a file without metadata: to be carried away in
    /// pieces of any size, and made a filter again by a [`Receiver`].
    ///
    /// Cost: nothing that depends on the length of the data.
    ///
    /// ```
    /// use petal::{AnyFilter, BloomFilter, Receiver};
    ///
    /// let mut bloom = BloomFilter::with_rate(1000, 0.01)?;
    /// bloom.insert("one");
    /// let filter = AnyFilter::from(bloom);
    ///
    /// let mut receiver = Receiver::image(1 << 20);
    /// receiver.push(&filter.image().header())?;
    /// let mut at = 0;
    /// while at < filter.image().data_len() {
    ///     let image = filter.image();
    ///     let piece = image.read(at, 100);
    ///     receiver.push(piece)?;
    ///     at += piece.len() as u64;
    /// }
    /// let (copy, _) = receiver.finish()?;
    /// assert_eq!(copy.face().inserted(), 1);
    /// # Ok::<_, petal::Error>(())
    /// ```
    #[must_use]
    pub fn image(&self) -> Image<'_> {
        Image::of(self)
    }

    /// A copy in memory of its own.
    ///
    /// Cost: one pass; a [`QuotientFilter`]'s bytes are examined too.
    ///
    /// # Errors
    /// If the memory is refused, or a quotient filter lies in a file that is damaged.
    pub fn to_owned_filter(&self) -> Result<AnyFilter> {
        each!(self, filter => filter.to_owned_filter().map(AnyFilter::from))
    }
}

impl AnyFilter {
    /// Offers the memory of its data to be moved, block by block, as far as it is the global
    /// allocator's: see [`Mover`].
    ///
    /// Cost: a call of the mover for each part, of which there is one for each layer of a scalable
    /// filter, up to two for each level of a cascade, and up to two in all others.
    pub fn relocate(&mut self, mover: &mut Mover<'_>) {
        each!(self, filter => filter.relocate(mover));
    }

    /// What all types that can be changed have in common.
    ///
    /// # Errors
    /// If this one cannot be changed at all.
    pub fn face_mut(&mut self) -> Result<&mut dyn MembershipMut> {
        match self {
            Self::Bloom(filter) => Ok(filter),
            Self::Classic(filter) => Ok(filter),
            Self::Counting(filter) => Ok(filter),
            Self::CountingClassic(filter) => Ok(filter),
            Self::Quotient(filter) => Ok(filter),
            Self::Scalable(filter) => Ok(filter),
            Self::Windowed(filter) => Ok(filter),
            Self::Wide(filter) => Ok(filter),
            Self::Static(_) | Self::Cascade(_) => {
                let name = self.face().filter_type().name();
                Err(Error::unsupported(name, "is made once of all its keys and never changes"))
            }
        }
    }

    /// Makes this the filter of all keys that are in it or in `other`.
    ///
    /// # Errors
    /// If they are not of one type and compatible; nothing has changed then.
    pub fn union<T: Store>(&mut self, other: &AnyFilter<T>) -> Result<()> {
        match (self, other) {
            (Self::Bloom(ours), AnyFilter::Bloom(theirs)) => ours.union(theirs),
            (Self::Classic(ours), AnyFilter::Classic(theirs)) => ours.union(theirs),
            (Self::Counting(ours), AnyFilter::Counting(theirs)) => ours.union(theirs),
            (Self::CountingClassic(ours), AnyFilter::CountingClassic(theirs)) => ours.union(theirs),
            (Self::Quotient(ours), AnyFilter::Quotient(theirs)) => ours.union(theirs),
            (Self::Wide(ours), AnyFilter::Wide(theirs)) => ours.union(theirs),
            (ours, theirs) => ours.check_compatible(theirs),
        }
    }
}

impl AnyFilter {
    /// Reads a filter and its metadata from a stream, every byte examined.
    ///
    /// # Errors
    /// If reading fails, the bytes are no petal file, of a type that is not known, or damaged in
    /// any way.
    pub fn read_from(stream: impl Read) -> Result<(Self, String)> {
        form::read_from(stream)
    }
}

impl AnyFilter<Mapped> {
    /// A filter in a mapped file, queried where it lies; only the header is read.
    ///
    /// # Errors
    /// If the file is no petal file, of a type that is not known, is cut short, or its header is
    /// damaged.
    pub fn open_mapped(file: Mapped) -> Result<Self> {
        form::open_mapped(&file)
    }

    /// Examines every byte of the file.
    ///
    /// # Errors
    /// If anything in it is damaged.
    pub fn verify(&self) -> Result<()> {
        each!(self, filter => filter.verify())
    }

    /// The file's metadata.
    #[must_use]
    pub fn metadata(&self) -> &str {
        each!(self, filter => filter.metadata())
    }
}

impl<'a> AnyFilter<Lent<'a>> {
    /// A filter over the bytes of a whole file, in place; they must begin at a multiple of 64 in
    /// memory. Only the header is examined.
    ///
    /// # Errors
    /// As [`open_mapped`](AnyFilter::open_mapped); also if the bytes begin elsewhere.
    pub fn from_bytes(file: &'a [u8]) -> Result<Self> {
        form::from_bytes(file)
    }
}

/// Examines every byte of a whole file, whatever its type.
///
/// Cost: one pass; bytes that do not begin at a multiple of 64 in memory are copied.
///
/// # Errors
/// If it is no petal file, or anything in it is damaged.
pub fn verify_bytes(file: &[u8]) -> Result<()> {
    if file.as_ptr().addr().is_multiple_of(align_of::<Line>()) {
        return form::verify(&AnyFilter::from_bytes(file)?, file);
    }
    AnyFilter::read_from(file).map(drop)
}
