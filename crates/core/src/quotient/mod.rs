//! Filters that support deletion, counting and growth: remainders in a hash table without keys.
//!
//! A key is stored as its fingerprint, ⌊h · R / 2⁶⁴⌋ for its hash h and R = slots · 2^(bits of a
//! remainder). The upper part of the fingerprint is the home slot and takes no space; the remainder
//! is stored. The table itself is in `kernel/quotient`.
//!
//! Fingerprints depend on R alone, and R stays the same when the number of slots doubles and
//! remainders lose a bit. So a filter grows without its keys, and filters with different
//! numbers of slots have a union.
//!
//! Invariants: the store has exactly the lines of the layout, and the table is the one that
//! inserting its fingerprints in any order gives; it has `info.inserted` of them, `distinct`
//! different ones.
//!
//! Source: Bender et al. 2012, "Don't thrash: how to cache your hash on flash"; Pandey, Bender,
//! Johnson & Patro 2017, "A general-purpose counting filter: making every bit count".

#[cfg(not(feature = "std"))]
use crate::no_std::*;
mod change;
mod file;
mod grow;
mod layout;
mod membership;
mod size;

pub use layout::QuotientLayout;
pub(crate) use size::dimensions;

use crate::batch::key_methods;
use crate::error::{Error, Result};
use crate::format::header::FilterInfo;
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::kernel::Kernel;
use crate::kernel::quotient::{CheckProgress, Table, TableFault};
use crate::key::Key;
use crate::spec::Builder;
use crate::store::{Owned, Store};

/// A filter that supports deletion, counting, growth, and union with filters of other sizes.
/// Smaller than a Bloom filter for rates below 2 %, and slower.
///
/// There are two ways to insert a key:
///
/// * [`insert`](Self::insert), as into a set: a key that seems to be present takes no slot.
/// * [`add`](Self::add), as into a multiset: each call takes a slot.
///
/// **Remove only keys that were added.** Two keys may have the same fingerprint. If both were
/// *added*, each has a slot, and one can be removed without losing the other. If both were
/// *inserted*, they share a slot: removing one loses the other, with a probability of about the
/// false-positive rate. Removing a key that was neither added nor inserted may lose another one.
///
/// ```
/// use petal::QuotientFilter;
///
/// let mut open = QuotientFilter::with_fpr(1_000_000, 0.001)?;
/// open.add("session 1")?;
/// open.add("session 2")?;
/// open.add("session 2")?;
/// assert_eq!(open.count("session 2"), 2);
/// assert!(open.remove("session 1"));    // was present
/// assert!(!open.contains("session 1")); // absent now
/// # Ok::<_, petal::Error>(())
/// ```
///
/// Inserting into a full filter is an error; no key is lost. A filter built with
/// [`with_growth`](Self::with_growth) doubles automatically.
#[derive(Clone, Debug)]
pub struct QuotientFilter<S = Owned> {
    layout: QuotientLayout,
    hash: HashSpec,
    info: FilterInfo,
    /// The number of different fingerprints.
    distinct: u64,
    /// True if the filter doubles automatically.
    growing: bool,
    table: Table,
    store: S,
}

// ---- Constructors -------------------------------------------------------------------------------

impl QuotientFilter {
    /// Creates the smallest filter with a false-positive rate of at most `fpr` at `capacity` keys.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1 or cannot be reached with 64-bit hashes, or memory
    /// allocation fails.
    pub fn with_fpr(capacity: u64, fpr: f64) -> Result<Self> {
        Self::builder().capacity(capacity).fpr(fpr).build()
    }

    /// Creates a filter for `capacity` keys that doubles automatically, without its keys, and keeps
    /// the rate `fpr` up to `max_capacity` keys. Each doubling to come takes one bit per key.
    ///
    /// # Errors
    /// As [`with_fpr`](Self::with_fpr), at the larger number of keys.
    pub fn with_growth(capacity: u64, fpr: f64, max_capacity: u64) -> Result<Self> {
        Self::builder().capacity(capacity).fpr(fpr).max_capacity(max_capacity).build()
    }

    /// Returns a builder, which chooses size, growth, hash and seed separately.
    #[must_use]
    pub fn builder() -> Builder<Self> {
        Builder::new(FilterType::Quotient)
    }

    pub(crate) fn empty(
        layout: QuotientLayout,
        hash: HashSpec,
        info: FilterInfo,
        growing: bool,
    ) -> Result<Self> {
        let store = Owned::zeroed(layout.lines())?;
        Ok(Self::from_parts(layout, hash, info, 0, growing, store))
    }
}

// ---- Queries ------------------------------------------------------------------------------------

impl<S: Store> QuotientFilter<S> {
    /// Creates a filter of existing lines, which must be those of the layout.
    fn from_parts(
        layout: QuotientLayout,
        hash: HashSpec,
        info: FilterInfo,
        distinct: u64,
        growing: bool,
        store: S,
    ) -> Self {
        debug_assert_eq!(store.lines().len() as u64, layout.lines());
        let table = Table::new(layout.params(), layout.fingerprints(), Kernel::selected());
        Self { layout, hash, info, distinct, growing, table, store }
    }

    key_methods! {
        self [&self] self.hash, -> bool;
        /// Returns true if the key may be in the filter, false if it certainly is not.
        ///
        /// Cost: one hash; two cache lines on average.
        #[must_use]
        contains, contains_mixed_hash, contains_batch;
        |hashes, found| self.table.contains_batch(self.store.lines(), hashes, found)
    }

    /// [`contains`](Self::contains) for a hash made with
    /// [`hash_spec`](crate::Membership::hash_spec), or with another 64-bit hash function whose every
    /// output bit is random. Plain integers are not such hashes: insert them as keys.
    #[inline]
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn contains_mixed_hash(&self, hash: u64) -> bool {
        self.table.contains(self.store.lines(), hash)
    }

    /// Prefetches the memory that [`contains_mixed_hash`](Self::contains_mixed_hash) will access.
    #[inline]
    #[doc(hidden)] // For the crates of this repository.
    pub fn prefetch_mixed_hash(&self, hash: u64) {
        self.table.prefetch(self.store.lines(), hash);
    }

    /// Returns the number of copies of the key: at least as many as were added and not removed,
    /// more if another key has the same fingerprint.
    ///
    /// Cost: as [`contains`](Self::contains), and one step for each copy.
    #[must_use]
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.count_mixed_hash(key.hash_with(&self.hash))
    }

    /// [`count`](Self::count) for a hash.
    #[must_use]
    pub fn count_mixed_hash(&self, hash: u64) -> u64 {
        self.table.count(self.store.lines(), hash)
    }

    /// Returns all fingerprints, ascending, with all their copies.
    ///
    /// Cost: reads the whole filter, about 2 ns per fingerprint.
    pub fn fingerprints(&self) -> impl Iterator<Item = u64> + '_ {
        self.table.walk(self.store.lines())
    }

    /// Returns the fingerprint of a hash: ⌊h · R / 2⁶⁴⌋, where R is the number of possible
    /// [fingerprints](QuotientLayout::fingerprints).
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn fingerprint_of(&self, hash: u64) -> u64 {
        self.table.fingerprint(hash)
    }

    /// Returns the number of fingerprints, copies included. Each takes a slot.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.info.inserted
    }

    /// Returns true if the filter has no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of different fingerprints.
    #[must_use]
    pub fn distinct(&self) -> u64 {
        self.distinct
    }

    /// Returns the layout.
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn layout(&self) -> QuotientLayout {
        self.layout
    }

    /// Returns true if the filter doubles automatically.
    #[must_use]
    pub fn is_growing(&self) -> bool {
        self.growing
    }

    /// Returns true if a full filter with twice the slots of `layout` keeps the target rate. It is
    /// full at its capacity, or at the planned capacity if that is less and more than `layout`
    /// holds.
    fn keeps_target_doubled(&self, layout: QuotientLayout) -> bool {
        let FilterInfo { capacity: planned, target_fpr, .. } = self.info;
        let Some(larger) = layout.doubled() else { return false };
        let max = larger.capacity();
        let keys = if planned > layout.capacity() { planned.min(max) } else { max };
        target_fpr == 0.0 || larger.fpr(keys) <= target_fpr
    }

    /// Checks that a union with `other` is possible: that hashes are equal, and that `other` has
    /// as many possible fingerprints as this filter, or 2, 4, 8, … times as many.
    ///
    /// # Errors
    /// If it is not; the error states the difference.
    pub(crate) fn check_compatible<T: Store>(&self, other: &QuotientFilter<T>) -> Result<()> {
        let (ours, theirs) = (self.layout.fingerprints(), other.layout.fingerprints());
        if !theirs.is_multiple_of(ours) || !(theirs / ours).is_power_of_two() {
            return Err(Error::incompatible("number of fingerprints", ours, theirs));
        }
        if self.hash != other.hash {
            return Err(Error::incompatible("hash", self.hash, other.hash));
        }
        Ok(())
    }

    /// Copies the filter into memory of its own and checks every byte: see
    /// [`Filter::try_clone`](crate::Filter::try_clone).
    ///
    /// # Errors
    /// If memory allocation fails, or the filter is in a file that is damaged.
    pub fn try_clone(&self) -> Result<QuotientFilter> {
        let store = Owned::from_lines(self.store.lines())?;
        let Self { layout, hash, info, distinct, growing, .. } = *self;
        let copy = QuotientFilter::from_parts(layout, hash, info, distinct, growing, store);
        copy.check_table(0, CheckProgress::default())?;
        Ok(copy)
    }

    fn check_table(&self, data_at: u64, progress: CheckProgress) -> Result<()> {
        match self.table.check(self.store.lines(), self.layout.slots(), progress) {
            Err(fault) => Err(unsound(&fault, data_at)),
            Ok(tally) if (tally.total, tally.distinct) != (self.len(), self.distinct) => {
                let expected = format!("{} fingerprints, {} different", self.len(), self.distinct);
                let found = format!("{} and {}", tally.total, tally.distinct);
                Err(Error::corrupt("number of fingerprints", data_at as usize, expected, found))
            }
            Ok(_) => Ok(()),
        }
    }
}

/// The error for a damaged table in data that begin at offset `data_at` of a file.
fn unsound(fault: &TableFault, data_at: u64) -> Error {
    let at = usize::try_from(data_at).unwrap_or(usize::MAX).saturating_add(fault.at);
    Error::corrupt(fault.what, at, "what the fingerprints imply", "something else")
}

impl<S: Store, T: Store> PartialEq<QuotientFilter<T>> for QuotientFilter<S> {
    /// Compares layout, hash and fingerprints; capacity and target rate may differ.
    fn eq(&self, other: &QuotientFilter<T>) -> bool {
        self.layout == other.layout
            && self.hash == other.hash
            && self.store.lines() == other.store.lines()
    }
}
