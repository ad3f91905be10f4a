//! Filters whose queries, removals and most inserts touch one or two cache lines at any load.
//!
//! A hash has a fingerprint: bucket and tag, which are stored in one of two blocks, a cache line each.
//! The blocks and their operations are in `kernel/vector_quotient`.
//!
//! Invariants: the store has exactly the blocks of the layout, each of them is sound, and together
//! they have `info.inserted` fingerprints.
//!
//! Source: Pandey, Conway, Durie, Bender, Farach-Colton & Johnson 2021, "Vector quotient filters:
//! overcoming the time/space trade-off in filter design".

#[cfg(not(feature = "std"))]
use crate::no_std::*;
mod change;
mod file;
mod layout;
mod membership;
mod size;
mod union;

pub use layout::VectorQuotientLayout;
pub(crate) use size::dimensions;

use crate::batch::key_methods;
use crate::error::{Error, Result};
use crate::format::header::FilterInfo;
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::kernel::Kernel;
use crate::kernel::vector_quotient::{BlockFault, PairTable};
use crate::key::Key;
use crate::spec::Builder;
use crate::store::{CacheLine, Owned, Store};

/// A filter with fast deletion: each operation touches one or two cache lines, however full the filter
/// is.
///
/// There are two ways to insert a key:
///
/// * [`add`](Self::add), as into a multiset: each call takes a slot.
/// * [`insert`](Self::insert), as into a set: a key that seems to be present takes no slot.
///
/// **Remove only keys that were added.** Two keys may have the same fingerprint. If both were
/// *added*, each has a slot, and one can be removed without losing the other. If both were
/// *inserted*, they share a slot: removing one loses the other, with a probability of about the
/// false-positive rate. Removing a key that was neither added nor inserted may lose another one.
///
/// ```
/// use petal::VectorQuotientFilter;
///
/// let mut open = VectorQuotientFilter::with_fpr(1_000_000, 0.001)?;
/// open.add("session 1")?;
/// open.add("session 2")?;
/// assert!(open.remove("session 1"));    // was present
/// assert!(!open.contains("session 1")); // absent now
/// assert!(open.contains("session 2"));
/// # Ok::<_, petal::Error>(())
/// ```
///
/// The filter does not grow. Adding to a full one is an error; no key is lost. A key can have few
/// copies: all of them must fit into two blocks, 48 to 128 slots, which are shared with other keys. The
/// two blocks of a few keys are the same one of 24 to 64 slots. The capacity holds for keys with one copy
/// each; if most have several, plan for more.
/// For many copies of a key, and for growth, use a [`QuotientFilter`](crate::QuotientFilter).
#[derive(Clone, Debug)]
pub struct VectorQuotientFilter<S = Owned> {
    layout: VectorQuotientLayout,
    hash: HashSpec,
    info: FilterInfo,
    table: PairTable,
    store: S,
}

// ---- Constructors -------------------------------------------------------------------------------

impl VectorQuotientFilter {
    /// Creates the smallest filter with a false-positive rate of at most `fpr` at `capacity` keys.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1 or cannot be reached, or memory allocation fails.
    pub fn with_fpr(capacity: u64, fpr: f64) -> Result<Self> {
        Self::builder().capacity(capacity).fpr(fpr).build()
    }

    /// Returns a builder, which chooses size, hash and seed separately.
    #[must_use]
    pub fn builder() -> Builder<Self> {
        Builder::new(FilterType::VectorQuotient)
    }

    pub(crate) fn empty(
        layout: VectorQuotientLayout,
        hash: HashSpec,
        info: FilterInfo,
    ) -> Result<Self> {
        let store = Owned::zeroed(layout.blocks())?;
        Ok(Self::from_parts(layout, hash, info, store))
    }
}

// ---- Queries ------------------------------------------------------------------------------------

impl<S: Store> VectorQuotientFilter<S> {
    /// Creates a filter of existing lines, which must be those of the layout.
    fn from_parts(
        layout: VectorQuotientLayout,
        hash: HashSpec,
        info: FilterInfo,
        store: S,
    ) -> Self {
        debug_assert_eq!(store.lines().len() as u64, layout.blocks());
        let table = PairTable::new(layout.params(), Kernel::selected());
        Self { layout, hash, info, table, store }
    }

    key_methods! {
        self [&self] self.hash, -> bool;
        /// Returns true if the key may be in the filter, false if it certainly is not.
        ///
        /// Cost: one hash; one cache line for most present keys, two for absent ones, read at once.
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
    /// Cost: as [`contains`](Self::contains) for an absent key.
    #[must_use]
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.count_mixed_hash(key.hash_with(&self.hash))
    }

    /// [`count`](Self::count) for a hash.
    #[must_use]
    pub fn count_mixed_hash(&self, hash: u64) -> u64 {
        self.table.count(self.store.lines(), hash)
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

    /// Returns the layout.
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn layout(&self) -> VectorQuotientLayout {
        self.layout
    }

    /// Checks that a union with `other` is possible: that layouts and hashes are equal.
    ///
    /// # Errors
    /// If it is not; the error states the difference.
    pub(crate) fn check_compatible<T: Store>(&self, other: &VectorQuotientFilter<T>) -> Result<()> {
        if self.layout != other.layout {
            let dimensions = |layout: VectorQuotientLayout| (layout.blocks(), layout.tag_bits());
            let (ours, theirs) = (dimensions(self.layout), dimensions(other.layout));
            return Err(Error::incompatible("blocks and bits of a tag", ours, theirs));
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
    pub fn try_clone(&self) -> Result<VectorQuotientFilter> {
        let store = Owned::from_lines(self.store.lines())?;
        let copy = VectorQuotientFilter::from_parts(self.layout, self.hash, self.info, store);
        copy.check_blocks(0)?;
        Ok(copy)
    }

    /// Checks all blocks of data that begin at offset `data_at` of a file.
    fn check_blocks(&self, data_at: u64) -> Result<()> {
        let found = self.table.check(self.store.lines()).map_err(|at| unsound(at, 0, data_at))?;
        self.check_total(found, data_at)
    }

    fn check_total(&self, found: u64, data_at: u64) -> Result<()> {
        if found == self.len() {
            return Ok(());
        }
        Err(Error::corrupt("number of fingerprints", data_at as usize, self.len(), found))
    }
}

/// The error for an unsound block, after `before` sound ones, in data that begin at offset `data_at`
/// of a file.
fn unsound(fault: BlockFault, before: usize, data_at: u64) -> Error {
    let at = before.saturating_add(fault.block).saturating_mul(CacheLine::BYTES);
    let at = usize::try_from(data_at).unwrap_or(usize::MAX).saturating_add(at);
    Error::corrupt("block", at, "what its fingerprints imply", "something else")
}

impl<S: Store, T: Store> PartialEq<VectorQuotientFilter<T>> for VectorQuotientFilter<S> {
    /// Compares layout, hash and blocks; capacity and target rate may differ. Which block has a
    /// fingerprint depends on the order of the inserts, so filters with the same keys may differ.
    fn eq(&self, other: &VectorQuotientFilter<T>) -> bool {
        self.layout == other.layout
            && self.hash == other.hash
            && self.store.lines() == other.store.lines()
    }
}
