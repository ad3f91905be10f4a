//! Filters that are built once from all their keys.
//!
//! A [`StaticFilter`] has one of two layouts: a ribbon, near the minimum space, or a binary fuse
//! filter, which is faster. Queries are in `kernel/ribbon` and `kernel/fuse`; this module builds and
//! stores the filter.
//!
//! Invariant: every hash that the filter was built from is contained.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
mod builder;
mod collector;
mod file;
mod fuse;
mod keys;
mod membership;
mod ranges;
mod ribbon;
mod sort;
mod stages;

use core::num::NonZeroUsize;

use crate::batch::for_each_chunk;
use crate::error::Result;
use crate::format::header::FilterInfo;
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::kernel::{Kernel, KernelHandle, UnhashedKeys};
use crate::key::Key;
use crate::math;
use crate::results::BatchResults;
use crate::spec::Builder;
use crate::store::{Owned, Store};

pub(crate) use builder::{check_fpr, dimensions};
use fuse::FuseTable;
use ribbon::RibbonTable;
pub(crate) use ribbon::{RibbonLayout, layout_of as ribbon_layout};
pub(crate) use stages::{FirstStage, SECOND_COLUMNS, SECOND_RATE, SecondStage};

#[doc(hidden)] // For the crates of this repository.
pub use builder::StaticCollector;
#[doc(hidden)] // For the crates of this repository.
pub use ranges::{HashRanges, HashStore};

/// A filter that is built once from all its keys and takes no others.
///
/// It is within 6 % of the minimum space of any filter, from 10⁵ keys on and for rates of 10 % and
/// less; a Bloom filter is 44 % above the minimum. With [`Builder::fuse`] it is within 15 %
/// and takes less time. The rate is any from nearly 1 down to 2.5 · 10⁻¹⁰.
///
/// ```
/// use petal::StaticFilter;
///
/// let words = StaticFilter::build(&["one", "two", "three"], 0.01)?;
/// assert!(words.contains("two"));
/// assert!(!words.contains("four")); // certainly absent
/// assert_eq!(words.len(), 3);
/// # Ok::<_, petal::Error>(())
/// ```
///
/// Source: Dillinger, Hübschle-Schneider, Sanders & Walzer 2022, "Fast succinct retrieval and
/// approximate membership using ribbon".
#[derive(Clone, Debug)]
pub struct StaticFilter<S = Owned> {
    hash: HashSpec,
    info: FilterInfo,
    table: Table<S>,
    kernel: KernelHandle,
}

/// The data of a filter, in one of the layouts.
#[derive(Clone, Debug)]
enum Table<S> {
    Ribbon(RibbonTable<S>),
    Fuse(FuseTable<S>),
}

/// The parameters of a filter that is built.
#[derive(Clone, Copy)]
struct Wanted {
    rate: f64,
    /// The number of columns of a ribbon; `None`: as the rate needs.
    columns: Option<u64>,
    /// False positives of ribbons with different seeds are independent.
    seed: u64,
    threads: NonZeroUsize,
}

/// Evaluates an expression with the table of any layout.
macro_rules! with_table {
    ($filter:expr, $table:ident => $call:expr) => {
        match &$filter.table {
            Table::Ribbon($table) => $call,
            Table::Fuse($table) => $call,
        }
    };
}
use with_table;

// ---- Constructors -------------------------------------------------------------------------------

impl StaticFilter {
    /// Builds the filter of these keys, which may contain duplicates.
    ///
    /// Cost: about 100 ns per key; 16 bytes of memory per key beside the filter, and the filter a
    /// second time at the end. [`builder`](Self::builder) can use several threads.
    ///
    /// # Errors
    /// If the rate is not between 2.5 · 10⁻¹⁰ and 1 or cannot be reached with 64-bit hashes, or
    /// memory allocation fails.
    pub fn build<K: Key + Sync>(keys: &[K], fpr: f64) -> Result<Self> {
        Self::builder().fpr(fpr).build(keys)
    }

    /// Returns a builder, which chooses rate, hash, seed and threads separately.
    #[must_use]
    pub fn builder() -> Builder<Self> {
        Builder::new(FilterType::Static)
    }
}

// ---- Queries ------------------------------------------------------------------------------------

impl<S: Store> StaticFilter<S> {
    fn from_parts(hash: HashSpec, info: FilterInfo, table: Table<S>) -> Self {
        Self { hash, info, table, kernel: Kernel::selected() }
    }

    /// Returns true if the filter may have been built from the key, false if it certainly was not.
    ///
    /// Cost: one hash; one or two cache lines for rates from 0.4 % on, and again for one key in 18.
    /// With [`Builder::fuse`] four cache lines near each other.
    #[inline(always)]
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_mixed_hash(key.hash_with(&self.hash))
    }

    /// [`contains`](Self::contains) for a hash made with
    /// [`hash_spec`](crate::Membership::hash_spec), or with the hash function of the hashes that
    /// the filter was built from.
    #[inline(always)]
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn contains_mixed_hash(&self, hash: u64) -> bool {
        match &self.table {
            Table::Ribbon(table) => table.contains(self.kernel, hash),
            Table::Fuse(table) => self.kernel.fuse_contains(table.fuse(), hash),
        }
    }

    /// [`contains`](Self::contains) for many keys; `found` has one result for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut BatchResults) {
        if let (Table::Fuse(table), Some(words), Some(hash)) =
            (&self.table, K::words(keys), self.hash.word_hasher())
        {
            let hashes = UnhashedKeys { words, hash };
            self.kernel.fuse_batch(table.fuse(), hashes, found.reset(keys.len()));
            return;
        }
        for_each_chunk(keys, &self.hash, found, |hashes, found| {
            self.contains_words(hashes, found);
        });
    }

    /// Looks up many hashes. `found` has one word for 64 hashes.
    fn contains_words(&self, hashes: &[u64], found: &mut [u64]) {
        match &self.table {
            Table::Ribbon(table) => self.kernel.ribbon_batch(table.ribbon(), hashes, found),
            Table::Fuse(table) => self.kernel.fuse_batch(table.fuse(), hashes, found),
        }
    }

    /// Returns the number of distinct hashes that the filter was built from.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.info.inserted
    }

    /// Returns true if the filter was built from no keys; it then contains none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        with_table!(self, table => table.is_empty())
    }

    /// Returns the exact false-positive rate: the share of absent keys that are found by chance. It
    /// is at most the [target rate](crate::Membership::target_fpr), or with
    /// [`Builder::fuse`] a millionth of it above.
    ///
    /// Cost: reads the cuts, a hundredth of the filter; with [`Builder::fuse`] constant.
    #[must_use]
    pub(crate) fn fpr(&self) -> f64 {
        let fpr = with_table!(self, table => table.fpr());
        math::probability_of_either(fpr, self.hash_floor(self.info.inserted))
    }

    /// Returns the probability that an absent key has the same hash as one of `keys` keys.
    fn hash_floor(&self, keys: u64) -> f64 {
        match &self.table {
            Table::Ribbon(_) => math::hash_floor(keys),
            Table::Fuse(_) => fuse::hash_floor(keys),
        }
    }

    /// Copies the filter into memory of its own: see
    /// [`Filter::try_clone`](crate::Filter::try_clone).
    ///
    /// # Errors
    /// If memory allocation fails.
    pub fn try_clone(&self) -> Result<StaticFilter> {
        let table = match &self.table {
            Table::Ribbon(table) => Table::Ribbon(table.try_clone()?),
            Table::Fuse(table) => Table::Fuse(table.try_clone()?),
        };
        Ok(StaticFilter::from_parts(self.hash, self.info, table))
    }
}

impl<S: Store, T: Store> PartialEq<StaticFilter<T>> for StaticFilter<S> {
    /// Compares hash, layout and bits: equal filters were built from the same keys for the same rate.
    /// Target rates may differ.
    fn eq(&self, other: &StaticFilter<T>) -> bool {
        self.hash == other.hash
            && match (&self.table, &other.table) {
                (Table::Ribbon(ours), Table::Ribbon(theirs)) => ours.equals(theirs),
                (Table::Fuse(ours), Table::Fuse(theirs)) => ours.equals(theirs),
                _ => false,
            }
    }
}
