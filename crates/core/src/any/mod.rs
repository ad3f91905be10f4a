//! Filters whose type is known only at run time.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use alloc::borrow::Cow;

#[cfg(feature = "mmap")]
mod inspection;
mod plan;
mod stream_decoder;

use crate::cascade::FilterCascade;
use crate::counting::{ClassicCountingBloomFilter, CountingBloomFilter};
use crate::embed::{Relocator, SerializedView};
use crate::error::{Error, Result};
use crate::explanation::Explanation;
use crate::filter::{BloomFilter, ClassicBloomFilter};
use crate::format::data::DataSource;
use crate::format::header::{FilterInfo, Header};
use crate::format::kind::FilterType;
#[cfg(feature = "std")]
use crate::format::persist::{self, Purpose, verify};
use crate::format::persist::{CheckState, Load, Save};
#[cfg(feature = "mmap")]
use crate::format::read;
use crate::hash::HashSpec;
use crate::key::Key;
use crate::membership::{Membership, MembershipMut, common_methods};
use crate::quotient::QuotientFilter;
use crate::results::BatchResults;
use crate::scalable::ScalableBloomFilter;
use crate::static_filter::StaticFilter;
use crate::stats::Stats;
#[cfg(feature = "std")]
use crate::store::Borrowed;
#[cfg(feature = "mmap")]
use crate::store::Mapped;
use crate::store::{CacheLine, Owned, Store};
use crate::vector_quotient::VectorQuotientFilter;
use crate::windowed::WindowedBloomFilter;

#[cfg(feature = "mmap")]
pub use inspection::Inspection;
pub use plan::Plan;
pub use stream_decoder::StreamDecoder;

common_methods!(AnyFilter);

/// A filter of any type, for files whose type is not known in advance.
///
/// [`as_dyn`](Self::as_dyn) gives access to everything that the types have in common.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[allow(
    clippy::large_enum_variant,
    reason = "there are few filters, and a box would be one more access"
)]
pub enum AnyFilter<S = Owned> {
    /// A blocked Bloom filter.
    Bloom(BloomFilter<S>),
    /// A classic Bloom filter.
    Classic(ClassicBloomFilter<S>),
    /// A blocked counting filter.
    Counting(CountingBloomFilter<S>),
    /// A classic counting filter.
    CountingClassic(ClassicCountingBloomFilter<S>),
    /// A quotient filter.
    Quotient(QuotientFilter<S>),
    /// A scalable filter.
    Scalable(ScalableBloomFilter<S>),
    /// A windowed filter.
    Windowed(WindowedBloomFilter<S>),
    /// A static filter.
    Static(StaticFilter<S>),
    /// A cascade.
    Cascade(FilterCascade<S>),
    /// A vector quotient filter.
    VectorQuotient(VectorQuotientFilter<S>),
}

/// Evaluates an expression with the filter of any type.
macro_rules! dispatch {
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
            AnyFilter::VectorQuotient($filter) => $call,
        }
    };
}

/// [`dispatch`] for a result; an error if the filter cannot be changed.
macro_rules! dispatch_mut {
    ($any:expr, $filter:ident => $call:expr) => {
        match $any {
            AnyFilter::Bloom($filter) => $call,
            AnyFilter::Classic($filter) => $call,
            AnyFilter::Counting($filter) => $call,
            AnyFilter::CountingClassic($filter) => $call,
            AnyFilter::Quotient($filter) => $call,
            AnyFilter::Scalable($filter) => $call,
            AnyFilter::Windowed($filter) => $call,
            AnyFilter::VectorQuotient($filter) => $call,
            fixed @ (AnyFilter::Static(_) | AnyFilter::Cascade(_)) => {
                Err(never_changes(fixed.filter_type()))
            }
        }
    };
}

/// Implements the conversion from each type of filter.
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
    VectorQuotient(VectorQuotientFilter),
}

impl<S: Store> Save for AnyFilter<S> {
    fn info(&self) -> FilterInfo {
        dispatch!(self, filter => filter.info())
    }

    fn parts(&self) -> (Header, Vec<Cow<'_, [CacheLine]>>) {
        dispatch!(self, filter => Save::parts(filter))
    }
}

impl<S: Store> Load for AnyFilter<S> {
    type Store = S;

    fn load(header: &Header, data: &mut impl DataSource<Store = S>) -> Result<Self> {
        Ok(match header.kind {
            FilterType::Bloom => Self::Bloom(Load::load(header, data)?),
            FilterType::Classic => Self::Classic(Load::load(header, data)?),
            FilterType::Counting => Self::Counting(Load::load(header, data)?),
            FilterType::CountingClassic => Self::CountingClassic(Load::load(header, data)?),
            FilterType::Quotient => Self::Quotient(Load::load(header, data)?),
            FilterType::Scalable => Self::Scalable(Load::load(header, data)?),
            FilterType::Windowed => Self::Windowed(Load::load(header, data)?),
            FilterType::Static | FilterType::StaticFuse => Self::Static(Load::load(header, data)?),
            FilterType::Cascade => Self::Cascade(Load::load(header, data)?),
            FilterType::VectorQuotient => Self::VectorQuotient(Load::load(header, data)?),
        })
    }

    fn check(&self, data_at: u64, state: CheckState) -> Result<()> {
        dispatch!(self, filter => filter.check(data_at, state))
    }

    fn check_early(&self, data_at: u64, lines: usize, state: &mut CheckState) -> Result<()> {
        dispatch!(self, filter => filter.check_early(data_at, lines, state))
    }

    fn any_store(&self) -> Option<&S> {
        dispatch!(self, filter => filter.any_store())
    }
}

impl<S: Store> Membership for AnyFilter<S> {
    fn filter_type(&self) -> FilterType {
        self.as_dyn().filter_type()
    }

    #[inline]
    fn hash_spec(&self) -> HashSpec {
        self.as_dyn().hash_spec()
    }

    fn describe(&self) -> String {
        self.as_dyn().describe()
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        self.as_dyn().parameters()
    }

    #[inline]
    fn contains_mixed_hash(&self, hash: u64) -> bool {
        self.contains_mixed_hash(hash)
    }

    fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut BatchResults) {
        self.as_dyn().contains_mixed_hashes(hashes, found);
    }

    fn explain_mixed_hash(&self, hash: u64) -> Explanation {
        self.as_dyn().explain_mixed_hash(hash)
    }

    fn size_bytes(&self) -> u64 {
        self.as_dyn().size_bytes()
    }

    fn memory_usage(&self) -> u64 {
        self.as_dyn().memory_usage()
    }

    fn capacity(&self) -> u64 {
        self.as_dyn().capacity()
    }

    fn target_fpr(&self) -> f64 {
        self.as_dyn().target_fpr()
    }

    fn inserted(&self) -> u64 {
        self.as_dyn().inserted()
    }

    fn expected_fpr(&self, keys: u64) -> f64 {
        self.as_dyn().expected_fpr(keys)
    }

    fn stats(&self) -> Stats {
        self.as_dyn().stats()
    }

    fn block_fills(&self, steps: usize) -> Vec<u64> {
        self.as_dyn().block_fills(steps)
    }
}

impl<S: Store> AnyFilter<S> {
    /// Returns the filter as a trait object with everything that the types have in common.
    #[must_use]
    pub fn as_dyn(&self) -> &dyn Membership {
        dispatch!(self, filter => filter)
    }

    /// Returns the type of the filter.
    #[must_use]
    pub fn filter_type(&self) -> FilterType {
        Membership::filter_type(self)
    }

    /// Returns true if the key may have been inserted, false if it certainly was not.
    ///
    /// Cost: that of the filter's own `contains` and one branch on the type.
    #[inline]
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        dispatch!(self, filter => filter.contains(key))
    }

    /// [`contains`](Self::contains) for a hash: see [`Membership::contains_mixed_hash`].
    #[inline]
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn contains_mixed_hash(&self, hash: u64) -> bool {
        dispatch!(self, filter => filter.contains_mixed_hash(hash))
    }

    /// [`contains`](Self::contains) for many keys; `found` has one result for each.
    pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut BatchResults) {
        dispatch!(self, filter => filter.contains_batch(keys, found));
    }

    /// Checks that a union with `other` is possible: that both are of one type that supports it,
    /// with equal layout and hash.
    ///
    /// # Errors
    /// If it is not; the error states the difference.
    pub fn check_compatible<T: Store>(&self, other: &AnyFilter<T>) -> Result<()> {
        match (self, other) {
            (Self::Bloom(ours), AnyFilter::Bloom(theirs)) => ours.check_compatible(theirs),
            (Self::Classic(ours), AnyFilter::Classic(theirs)) => ours.check_compatible(theirs),
            (Self::Counting(ours), AnyFilter::Counting(theirs)) => ours.check_compatible(theirs),
            (Self::CountingClassic(ours), AnyFilter::CountingClassic(theirs)) => {
                ours.check_compatible(theirs)
            }
            (Self::Quotient(ours), AnyFilter::Quotient(theirs)) => ours.check_compatible(theirs),
            (Self::VectorQuotient(ours), AnyFilter::VectorQuotient(theirs)) => {
                ours.check_compatible(theirs)
            }
            (ours, theirs) => {
                let (ours, theirs) = (ours.as_dyn().filter_type(), theirs.as_dyn().filter_type());
                if ours == theirs {
                    return Err(Error::unsupported(
                        ours.name(),
                        "does not support unions",
                        "use bloom, classic, counting, counting-classic, quotient or \
                         vector-quotient",
                    ));
                }
                Err(Error::incompatible("type", ours, theirs))
            }
        }
    }

    /// Returns whether no bit is set and no slot is in use.
    ///
    /// Cost: one pass, up to the first bit.
    #[doc(hidden)] // For the crates of this repository.
    pub fn is_zero(&self) -> bool {
        let (_, parts) = self.parts();
        let data = match self {
            // A directory comes before the layers.
            Self::Scalable(_) => &parts[1..],
            // A counter is zero if its bit is.
            Self::Counting(_) | Self::CountingClassic(_) => &parts[..1],
            _ => &parts[..],
        };
        data.iter().all(|part| part.iter().all(|line| *line == CacheLine::ZERO))
    }

    /// Returns a view of the filter as the bytes of a file without metadata, for sending it in
    /// pieces of any size. A [`StreamDecoder`] turns them into a filter again.
    ///
    /// Cost: does not depend on the length of the data.
    ///
    /// ```
    /// use petal::embed::StreamDecoder;
    /// use petal::{AnyFilter, BloomFilter};
    ///
    /// let mut bloom = BloomFilter::with_fpr(1000, 0.01)?;
    /// bloom.insert("one");
    /// let filter = AnyFilter::from(bloom);
    ///
    /// let mut decoder = StreamDecoder::serialized(1 << 20);
    /// decoder.push(&filter.serialized().header())?;
    /// let mut at = 0;
    /// while at < filter.serialized().data_len() {
    ///     let view = filter.serialized();
    ///     let piece = view.read(at, 100);
    ///     decoder.push(piece)?;
    ///     at += piece.len() as u64;
    /// }
    /// let (copy, _) = decoder.finish()?;
    /// assert_eq!(copy.as_dyn().inserted(), 1);
    /// # Ok::<_, petal::Error>(())
    /// ```
    #[must_use]
    pub fn serialized(&self) -> SerializedView<'_> {
        Save::serialized(self)
    }

    /// Copies the filter into memory of its own. Unlike `clone`, it returns an error if memory
    /// allocation fails, and the copy of a mapped or borrowed filter is owned.
    ///
    /// Cost: one pass; the bytes of a [`QuotientFilter`] or a [`VectorQuotientFilter`] are checked,
    /// too.
    ///
    /// # Errors
    /// If memory allocation fails, or a filter of these types is in a file that is damaged.
    pub fn try_clone(&self) -> Result<AnyFilter> {
        dispatch!(self, filter => filter.try_clone().map(AnyFilter::from))
    }
}

#[cfg(feature = "mmap")]
impl AnyFilter<Mapped> {
    /// Checks every byte of the mapped file: see [`Mapped::verify`].
    ///
    /// # Errors
    /// If anything in it is damaged.
    pub fn verify(&self) -> Result<()> {
        verify(self, self.any_store().map_or(&[], Mapped::file))
    }

    /// Returns the metadata of the mapped file.
    #[must_use]
    pub fn metadata(&self) -> &str {
        self.any_store().map_or("", Mapped::metadata)
    }
}

#[cfg(feature = "mmap")]
impl Mapped {
    /// Checks every byte of the `.petal` file, of a filter of any type. Needs no secret.
    ///
    /// # Errors
    /// If anything in it is damaged.
    pub fn verify(&self) -> Result<()> {
        verify_bytes(self.file())
    }

    /// Returns the metadata of the `.petal` file; empty if it is not one.
    #[must_use]
    pub fn metadata(&self) -> &str {
        read::open(self.file()).map_or("", |(_, metadata)| metadata)
    }
}

impl AnyFilter {
    /// Lets an allocator move the memory of the data, block by block, unless it is an anonymous
    /// map: see [`Relocator`].
    ///
    /// Cost: one call of the relocator for each part. A scalable filter has one part for each layer,
    /// a cascade up to two for each level, other types one or two.
    pub fn relocate(&mut self, relocator: &mut Relocator<'_>) {
        dispatch!(self, filter => filter.relocate(relocator));
    }

    /// Returns the filter as a trait object that can be changed.
    ///
    /// # Errors
    /// If a filter of this type cannot be changed ([`FilterType::is_fixed`]).
    pub fn as_dyn_mut(&mut self) -> Result<&mut dyn MembershipMut> {
        dispatch_mut!(self, filter => Ok(filter))
    }

    /// Inserts a key. Types that support deletion store it once for each insert. Returns true if it
    /// certainly was not in the filter.
    ///
    /// # Errors
    /// If the filter is full, or a filter of this type cannot be changed.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool> {
        dispatch_mut!(self, filter => MembershipMut::insert(filter, key))
    }

    /// Removes all keys.
    ///
    /// # Errors
    /// If a filter of this type cannot be changed ([`FilterType::is_fixed`]).
    pub fn clear(&mut self) -> Result<()> {
        dispatch_mut!(self, filter => {
            filter.clear();
            Ok(())
        })
    }

    /// Adds all keys of `other`.
    ///
    /// # Errors
    /// If the filters are not compatible; this filter is then unchanged.
    pub fn union<T: Store>(&mut self, other: &AnyFilter<T>) -> Result<()> {
        match (self, other) {
            (Self::Bloom(ours), AnyFilter::Bloom(theirs)) => ours.union(theirs),
            (Self::Classic(ours), AnyFilter::Classic(theirs)) => ours.union(theirs),
            (Self::Counting(ours), AnyFilter::Counting(theirs)) => ours.union(theirs),
            (Self::CountingClassic(ours), AnyFilter::CountingClassic(theirs)) => ours.union(theirs),
            (Self::Quotient(ours), AnyFilter::Quotient(theirs)) => ours.union(theirs),
            (Self::VectorQuotient(ours), AnyFilter::VectorQuotient(theirs)) => ours.union(theirs),
            (ours, theirs) => ours.check_compatible(theirs),
        }
    }

    /// Adds all keys of `other`, and all copies of them: quotient filters and vector quotient filters
    /// sum the numbers of copies, as if the keys were added once more, where
    /// [`union`](Self::union) takes the larger number. For other types it is the same.
    ///
    /// # Errors
    /// As [`union`](Self::union).
    pub fn merge<T: Store>(&mut self, other: &AnyFilter<T>) -> Result<()> {
        match (self, other) {
            (Self::Quotient(ours), AnyFilter::Quotient(theirs)) => ours.merge(theirs),
            (Self::VectorQuotient(ours), AnyFilter::VectorQuotient(theirs)) => ours.merge(theirs),
            (ours, theirs) => ours.union(theirs),
        }
    }
}

/// The error for a change of a filter that is built once.
fn never_changes(filter_type: FilterType) -> Error {
    Error::unsupported(
        filter_type.name(),
        "is built once from all its keys and never changes",
        "build it again with all keys, or use another type, e.g. bloom, scalable or quotient",
    )
}

/// Two filters are equal if they have the same type, layout, hash and bits.
impl<S: Store, T: Store> PartialEq<AnyFilter<T>> for AnyFilter<S> {
    fn eq(&self, other: &AnyFilter<T>) -> bool {
        match (self, other) {
            (Self::Bloom(ours), AnyFilter::Bloom(theirs)) => ours == theirs,
            (Self::Classic(ours), AnyFilter::Classic(theirs)) => ours == theirs,
            (Self::Counting(ours), AnyFilter::Counting(theirs)) => ours == theirs,
            (Self::CountingClassic(ours), AnyFilter::CountingClassic(theirs)) => ours == theirs,
            (Self::Quotient(ours), AnyFilter::Quotient(theirs)) => ours == theirs,
            (Self::Scalable(ours), AnyFilter::Scalable(theirs)) => ours == theirs,
            (Self::Windowed(ours), AnyFilter::Windowed(theirs)) => ours == theirs,
            (Self::Static(ours), AnyFilter::Static(theirs)) => ours == theirs,
            (Self::Cascade(ours), AnyFilter::Cascade(theirs)) => ours == theirs,
            (Self::VectorQuotient(ours), AnyFilter::VectorQuotient(theirs)) => ours == theirs,
            _ => false,
        }
    }
}

/// Checks every byte of a whole `.petal` file of any type. Needs no secret.
///
/// Cost: one pass; bytes that do not begin at a multiple of 64 in memory are copied.
///
/// # Errors
/// If it is not a petal file, or anything in it is damaged.
#[cfg(feature = "std")]
pub fn verify_bytes(file: &[u8]) -> Result<()> {
    if file.as_ptr().addr().is_multiple_of(align_of::<CacheLine>()) {
        let filter: AnyFilter<Borrowed<'_>> = persist::from_bytes(file, Purpose::Numbers)?;
        return verify(&filter, file);
    }
    persist::read_from::<AnyFilter>(file, Purpose::Numbers).map(drop)
}
