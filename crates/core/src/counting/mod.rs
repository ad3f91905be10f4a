//! Bloom filters that support deletion: a small counter for each bit.
//!
//! [`CountingFilter`] contains a [`Filter`], bit for bit the one of the same keys, and the counters
//! beside it. Queries read the filter only; inserts and removals use the counters, too.
//!
//! Invariants: the planes have `width - 1` lines for each line of the filter. A hash that was
//! inserted more often than removed is contained, unless a key was removed that was not inserted.

mod file;
mod membership;
mod planes;
mod size;

pub(crate) use size::dimensions;

use crate::batch::{for_each_hashed_group, key_methods};
use crate::error::{Error, Result};
use crate::filter::layout::sealed::Fields;
use crate::filter::layout::{Layout, whole_cardinality};
use crate::filter::{Filter, FilterInfo};
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::kernel::blocked::BlockParams;
use crate::kernel::classic;
use crate::kernel::counting::{CounterLayout, Counters, RemoveOutcome};
use crate::key::Key;
use crate::layout::{BlockedLayout, ClassicLayout};
use crate::math;
use crate::membership::Membership as _;
use crate::results::BatchResults;
use crate::spec::Builder;
use crate::store::{CacheLine, Owned, Store, StoreMut};

/// The default counting filter: a [`BloomFilter`](crate::BloomFilter) with a counter for each bit.
///
/// With four bits per counter it takes four times the memory. Queries are as fast.
///
/// ```
/// use petal::CountingBloomFilter;
///
/// let mut open = CountingBloomFilter::with_fpr(1_000_000, 0.01)?;
/// assert!(open.insert("session-1"));    // new
/// assert!(open.remove("session-1"));    // was there
/// assert!(!open.contains("session-1")); // certainly absent
/// assert!(!open.remove("session-1"));   // nothing to remove
/// # Ok::<_, petal::Error>(())
/// ```
pub type CountingBloomFilter<S = Owned> = CountingFilter<BlockedLayout, S>;

/// The textbook counting filter: a [`ClassicBloomFilter`](crate::ClassicBloomFilter) with a
/// counter for each bit. Each position of a key takes several cache lines.
///
/// Source: Fan, Cao, Almeida & Broder 2000, "Summary cache: a scalable wide-area web cache sharing
/// protocol".
pub type ClassicCountingBloomFilter<S = Owned> = CountingFilter<ClassicLayout, S>;

/// A Bloom filter that supports deletion: [`CountingBloomFilter`] or
/// [`ClassicCountingBloomFilter`].
///
/// Each bit has a counter of `width` bits. A counter that reaches 2^(width-1) is *saturated*: it is
/// never decremented again, so that no key is lost, and its bit stays set. With four bits, the
/// default, less than one counter in a million is saturated when as many keys as the capacity have
/// been inserted once.
///
/// **Long use saturates more counters.** Each turnover, in which all keys are removed and as many
/// others inserted, saturates one or two more in a million: 1 to 2 % after 10,000 turnovers, when
/// the false-positive rate is a tenth higher. See
/// [`expected_saturated`](CountingFilter::expected_saturated). Use wider counters, or
/// rebuild the filter.
///
/// **Remove only keys that were inserted.** Removing another key fails if one of its counters is
/// zero, which is nearly always the case. If the key is a false positive, it succeeds, and *keys
/// that were inserted may be lost*. The same is true of removing a key more often than it was
/// inserted.
#[derive(Clone, Debug)]
pub struct CountingFilter<L: Layout, S = Owned> {
    bloom: Filter<L, S>,
    counter_layout: CounterLayout,
    width: u32,
    planes: S,
}

// ---- Constructors -------------------------------------------------------------------------------

impl<L: Layout> CountingFilter<L> {
    /// Creates the smallest filter with a false-positive rate of at most `fpr` at `capacity` keys,
    /// with counters of four bits.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1 or cannot be reached with 64-bit hashes, or memory
    /// allocation fails.
    pub fn with_fpr(capacity: u64, fpr: f64) -> Result<Self> {
        Self::builder().capacity(capacity).fpr(fpr).build()
    }

    /// Returns a builder, which chooses size, width of counters, hash and seed separately.
    #[must_use]
    pub fn builder() -> Builder<Self> {
        Builder::new(kind::<L>())
    }

    pub(crate) fn empty(layout: L, hash: HashSpec, info: FilterInfo, width: u32) -> Result<Self> {
        let planes = Owned::zeroed(planes_of(&layout, width))?;
        Ok(Self::from_parts(Filter::empty(layout, hash, info)?, width, planes))
    }
}

// ---- Queries ------------------------------------------------------------------------------------

impl<L: Layout, S: Store> CountingFilter<L, S> {
    /// Creates a filter of existing planes, which must be those of the width.
    fn from_parts(bloom: Filter<L, S>, width: u32, planes: S) -> Self {
        debug_assert_eq!(planes.lines().len() as u64, planes_of(&bloom.layout(), width));
        let Fields { probes, lanes, extent } = bloom.layout().fields();
        let probes = probes.into();
        let counter_layout = match lanes {
            0 => CounterLayout::Classic(classic::ClassicParams { bits: extent, probes }),
            8 => CounterLayout::OneLine(BlockParams { blocks: extent, probes }),
            _ => CounterLayout::LinePair(BlockParams { blocks: extent, probes }),
        };
        Self { bloom, counter_layout, width, planes }
    }

    /// Returns true if the key may be in the filter, false if it certainly is not.
    ///
    /// Cost: as [`Filter::contains`]; reads no counters.
    #[inline]
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.bloom.contains(key)
    }

    /// [`contains`](Self::contains) for a hash made with [`hash_spec`](crate::Membership::hash_spec), or
    /// with another 64-bit hash function whose every output bit is random. Plain integers are not
    /// such hashes: insert them as keys.
    #[inline]
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn contains_mixed_hash(&self, hash: u64) -> bool {
        self.bloom.contains_mixed_hash(hash)
    }

    /// [`contains`](Self::contains) for many keys; `found` has one result for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut BatchResults) {
        self.bloom.contains_batch(keys, found);
    }

    /// Returns an upper bound of the number of times that the key was inserted and not removed: its
    /// smallest counter. 0 is exact. Other keys raise the result of an absent key with the
    /// false-positive rate, and that of a present key about as often.
    /// [`max_count`](Self::max_count) means that number or more.
    ///
    /// Cost: one hash; the lines that [`insert`](Self::insert) accesses.
    #[must_use]
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.count_mixed_hash(key.hash_with(&self.hash_spec()))
    }

    /// [`count`](Self::count) for a hash.
    #[must_use]
    pub fn count_mixed_hash(&self, hash: u64) -> u64 {
        self.counter_layout.count(self.bits(), self.planes.lines(), self.depth(), hash)
    }

    /// Returns the largest count, 2^(width-1), at which counters are saturated.
    #[must_use]
    pub fn max_count(&self) -> u64 {
        1 << (self.width - 1)
    }

    /// Returns the number of saturated counters, which are at [`max_count`](Self::max_count). Their
    /// bits stay set until [`clear`](Self::clear). Many of them mean that the counters are too
    /// narrow, or that some keys were inserted very often.
    ///
    /// Cost: reads the whole filter.
    #[must_use]
    pub fn saturated(&self) -> u64 {
        planes::saturated(self.bits(), self.planes.lines(), self.depth())
    }

    /// Returns the expected number of saturated counters with `keys` distinct keys after
    /// `turnovers`, in each of which all keys are removed and as many others inserted.
    #[must_use]
    pub fn expected_saturated(&self, keys: u64, turnovers: f64) -> f64 {
        let layout = self.layout();
        let load = keys as f64 * layout.bit_probability();
        math::saturated_share_after(load, self.max_count(), turnovers) * layout.bits() as f64
    }

    /// Returns the width of a counter in bits.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Returns the Bloom filter without the counters.
    ///
    /// It is bit for bit the filter of the same keys, if no counter was saturated when a key was
    /// removed.
    #[must_use]
    pub fn as_filter(&self) -> &Filter<L, S> {
        &self.bloom
    }

    /// Copies the Bloom filter without the counters. The copy takes 1/`width` of the memory.
    ///
    /// # Errors
    /// If memory allocation fails.
    pub fn freeze(&self) -> Result<Filter<L>> {
        self.bloom.try_clone()
    }

    /// Returns the layout of the Bloom filter.
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn layout(&self) -> L {
        self.bloom.layout()
    }

    /// Checks that a union with `other` is possible: that layout, hash and width are equal.
    ///
    /// # Errors
    /// If they differ; the error states the difference.
    pub(crate) fn check_compatible<T: Store>(&self, other: &CountingFilter<L, T>) -> Result<()> {
        self.bloom.check_compatible(&other.bloom)?;
        if self.width != other.width {
            return Err(Error::incompatible("width of counters", self.width, other.width));
        }
        Ok(())
    }

    /// Copies the filter into memory of its own: see [`Filter::try_clone`].
    ///
    /// # Errors
    /// If memory allocation fails.
    pub fn try_clone(&self) -> Result<CountingFilter<L>> {
        let planes = Owned::from_lines(self.planes.lines())?;
        Ok(CountingFilter::from_parts(self.bloom.try_clone()?, self.width, planes))
    }

    fn bits(&self) -> &[CacheLine] {
        self.bloom.store().lines()
    }

    /// Returns the number of planes of each line of bits.
    fn depth(&self) -> usize {
        self.width as usize - 1
    }
}

/// Returns the number of lines of planes for a layout.
fn planes_of(layout: &impl Layout, width: u32) -> u64 {
    layout.lines().saturating_mul(u64::from(width - 1))
}

/// Returns the type of the counting filter with this layout.
fn kind<L: Layout>() -> FilterType {
    if L::KIND == FilterType::Classic { FilterType::CountingClassic } else { FilterType::Counting }
}

// ---- Changes ------------------------------------------------------------------------------------

impl<L: Layout, S: StoreMut> CountingFilter<L, S> {
    key_methods! {
        self [&mut self] self.hash_spec(), -> bool;
        /// Inserts a key and returns true if it was new. False means that it was present or is a false
        /// positive; it is counted in either case.
        ///
        /// Cost: one hash; `width` times the lines of a [`Filter`].
        insert, insert_mixed_hash, insert_batch, insert_mixed_hashes;
        |hashes, new| self.insert_run(hashes, new)
    }

    /// [`insert`](Self::insert) for a hash made with [`hash_spec`](crate::Membership::hash_spec), or with
    /// another 64-bit hash function whose every output bit is random. Plain integers are not such
    /// hashes: insert them as keys.
    #[doc(hidden)] // For the crates of this repository.
    pub fn insert_mixed_hash(&mut self, hash: u64) -> bool {
        let new = self.counter_layout.insert(self.bloom.kernel(), self.counters(), hash);
        self.bloom.info_mut().inserted += u64::from(new);
        new
    }

    key_methods! {
        self [&mut self] self.hash_spec(), -> bool;
        /// Removes one insertion of a key. False means that the key was certainly absent; the filter is
        /// then unchanged.
        ///
        /// Remove only keys that were inserted: removing a false positive may lose other keys. See
        /// [`CountingFilter`].
        ///
        /// Cost: as [`insert`](Self::insert).
        remove, remove_mixed_hash, remove_batch, remove_mixed_hashes;
        |hashes, removed| self.remove_run(hashes, removed)
    }

    /// [`remove`](Self::remove) for a hash.
    #[doc(hidden)] // For the crates of this repository.
    pub fn remove_mixed_hash(&mut self, hash: u64) -> bool {
        let removed = self.counter_layout.remove(self.bloom.kernel(), self.counters(), hash);
        self.subtract_inserted(u64::from(removed == RemoveOutcome::Removed));
        removed != RemoveOutcome::Absent
    }

    /// Inserts hashes; `new` must be zero.
    fn insert_run(&mut self, hashes: &[u64], new: &mut [u64]) {
        let (counter_layout, kernel) = (self.counter_layout, self.bloom.kernel());
        counter_layout.insert_batch(kernel, self.counters(), hashes, new);
        let inserted: u64 = new.iter().map(|word| u64::from(word.count_ones())).sum();
        self.bloom.info_mut().inserted += inserted;
    }

    /// Removes hashes; `removed` must be zero.
    fn remove_run(&mut self, hashes: &[u64], removed: &mut [u64]) {
        let (counter_layout, kernel) = (self.counter_layout, self.bloom.kernel());
        let absent_now = counter_layout.remove_batch(kernel, self.counters(), hashes, removed);
        self.subtract_inserted(absent_now);
    }

    /// Adds the counts of `other`. The result is exactly the filter of the keys of both.
    ///
    /// # Errors
    /// If the filters are not compatible; this filter is then unchanged.
    pub fn union<T: Store>(&mut self, other: &CountingFilter<L, T>) -> Result<()> {
        self.check_compatible(other)?;
        let depth = self.depth();
        let (ours, theirs) = (self.planes.lines_mut(), other.planes.lines());
        planes::add(self.bloom.store_mut().lines_mut(), ours, other.bits(), theirs, depth);
        let keys = whole_cardinality(&self.layout(), self.bloom.estimated_len());
        self.bloom.info_mut().inserted = keys;
        Ok(())
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.bloom.clear();
        self.planes.lines_mut().fill(CacheLine::ZERO);
    }

    fn counters(&mut self) -> Counters<'_> {
        let depth = self.depth();
        let (bits, planes) = (self.bloom.store_mut().lines_mut(), self.planes.lines_mut());
        Counters { bits, planes, depth }
    }

    /// Subtracts keys that are not contained any more from the number of inserts. It does not go
    /// below 0: false positives among the keys were not counted.
    fn subtract_inserted(&mut self, keys: u64) {
        let inserted = &mut self.bloom.info_mut().inserted;
        *inserted = inserted.saturating_sub(keys);
    }
}

impl<K: Key, L: Layout, S: StoreMut> Extend<K> for CountingFilter<L, S> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        for_each_hashed_group(keys, self.hash_spec(), |hashes, new| self.insert_run(hashes, new));
    }
}

impl<L: Layout, S: Store, T: Store> PartialEq<CountingFilter<L, T>> for CountingFilter<L, S> {
    /// Compares layout, hash, width and counts; capacity, target rate and number of inserts may
    /// differ.
    fn eq(&self, other: &CountingFilter<L, T>) -> bool {
        self.check_compatible(other).is_ok()
            && self.bits() == other.bits()
            && self.planes.lines() == other.planes.lines()
    }
}
