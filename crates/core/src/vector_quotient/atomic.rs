//! The vector quotient filter, shared by threads.
//!
//! Invariants: those of [`VectorQuotientFilter`]. A conversion between the two moves the memory without
//! a copy.
//!
//! The operations are in [`kernel::vector_quotient::shared`](crate::kernel::vector_quotient::shared).

use core::fmt;

use super::change::full;
use super::{FilterInfo, VectorQuotientBuilder, VectorQuotientFilter, VectorQuotientLayout};
use crate::batch::{for_each_chunk, try_for_each_chunk};
use crate::error::Result;
use crate::hash::HashSpec;
use crate::kernel::shared::Stripes;
use crate::kernel::vector_quotient::PairTable;
use crate::kernel::vector_quotient::shared::{Inserted, SharedPairTable};
use crate::key::Key;
use crate::results::BatchResults;
use crate::store::Shared;

/// A [`VectorQuotientFilter`] that many threads use at once, through `&self`: they insert, query and
/// remove keys.
///
/// ```
/// use petal::{AtomicVectorQuotientFilter, VectorQuotientFilter};
///
/// let open = AtomicVectorQuotientFilter::with_fpr(10_000, 0.001)?;
/// std::thread::scope(|scope| {
///     for thread in 0..4u64 {
///         let open = &open;
///         scope.spawn(move || {
///             for session in thread * 1000..(thread + 1) * 1000 {
///                 open.add(&session).expect("there is room for 10,000 sessions");
///                 assert!(open.contains(&session));
///                 assert!(session % 2 == 0 || open.remove(&session));
///             }
///         });
///     }
/// });
/// assert_eq!(open.len(), 2000);
///
/// // A filter of one thread, in the same memory, which can be written to a file.
/// let open: VectorQuotientFilter = open.into_filter();
/// assert!(open.contains(&3998u64));
/// # Ok::<_, petal::Error>(())
/// ```
///
/// # Guarantees
///
/// * **The results are exact**: those of all inserts, queries and removals are the results that a
///   [`VectorQuotientFilter`] returns for some sequential order of them. If several threads
///   [insert](Self::insert) a key at once, it is new to one of them, and if several remove a key that
///   was added once, one of them removes it. An error that no slot is free is not among them: it means
///   that each block for the key was full when the insert looked at it, while others may have changed.
/// * **No false negatives**, as long as only keys are removed that were [added](Self::add). Other
///   threads may add, remove and move fingerprints meanwhile.
/// * **Nothing else is ordered**: finding a key does not make other writes of the thread that
///   added it visible.
///
/// # Locks
///
/// A change holds one or two of up to 512 locks, and a third one if a fingerprint moves. A query takes
/// no lock; it starts again if one of its blocks was changed meanwhile. So the filter is not
/// lock-free: a thread that is suspended in a change delays others with the same locks. Do not use it in
/// a signal handler.
///
/// The locks take up to 32 KiB beside the blocks; if their allocation fails, the program aborts. With a
/// single thread, a [`VectorQuotientFilter`] is faster.
pub struct AtomicVectorQuotientFilter {
    layout: VectorQuotientLayout,
    hash: HashSpec,
    /// The values at the time when the filter was shared; the stripes count the keys since then.
    info: FilterInfo,
    table: PairTable,
    store: Shared,
    stripes: Stripes,
}

// ---- Constructors -------------------------------------------------------------------------------

impl AtomicVectorQuotientFilter {
    /// Creates the smallest filter with a false-positive rate of at most `fpr` at `capacity` keys.
    ///
    /// # Errors
    /// As [`VectorQuotientFilter::with_fpr`].
    pub fn with_fpr(capacity: u64, fpr: f64) -> Result<Self> {
        VectorQuotientFilter::with_fpr(capacity, fpr).map(Self::from)
    }

    /// Returns a builder, which chooses size, hash and seed separately and ends with
    /// [`build_atomic`](VectorQuotientBuilder::build_atomic).
    #[must_use]
    pub fn builder() -> VectorQuotientBuilder {
        VectorQuotientBuilder::default()
    }

    /// Converts to a filter of one thread, in the same memory.
    #[must_use]
    pub fn into_filter(self) -> VectorQuotientFilter {
        let inserted = self.len();
        let Self { layout, hash, info, table, store, stripes: _ } = self;
        let info = FilterInfo { inserted, ..info };
        VectorQuotientFilter { layout, hash, info, table, store: store.into() }
    }
}

impl VectorQuotientBuilder {
    /// Creates an empty filter that can be shared by threads.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_atomic(self) -> Result<AtomicVectorQuotientFilter> {
        self.build().map(AtomicVectorQuotientFilter::from)
    }
}

impl From<VectorQuotientFilter> for AtomicVectorQuotientFilter {
    /// Converts the filter with its keys, in the same memory.
    fn from(filter: VectorQuotientFilter) -> Self {
        let VectorQuotientFilter { layout, hash, info, table, store } = filter;
        let stripes = Stripes::new(layout.blocks());
        Self { layout, hash, info, table, store: store.into(), stripes }
    }
}

impl From<AtomicVectorQuotientFilter> for VectorQuotientFilter {
    /// As [`AtomicVectorQuotientFilter::into_filter`].
    fn from(filter: AtomicVectorQuotientFilter) -> Self {
        filter.into_filter()
    }
}

// ---- Changes ------------------------------------------------------------------------------------

impl AtomicVectorQuotientFilter {
    /// Adds a key as to a multiset, in a slot of its own: see [`VectorQuotientFilter::add`].
    ///
    /// Cost: one hash; one or two locks and cache lines.
    ///
    /// # Errors
    /// If no slot is free for the key. No key is lost.
    pub fn add<K: Key + ?Sized>(&self, key: &K) -> Result<()> {
        self.add_mixed_hash(key.hash_with(&self.hash))
    }

    /// [`add`](Self::add) for a hash made with [`hash_spec`](Self::hash_spec), or with another 64-bit
    /// hash function whose every output bit is random. Plain integers are not such hashes: insert them
    /// as keys.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_mixed_hash(&self, hash: u64) -> Result<()> {
        is_new(self.shared().insert(hash, false)).map(drop)
    }

    /// Inserts a key as into a set and returns true if it was new, in one thread only. False means that
    /// it was present or is a false positive; it then takes no slot.
    ///
    /// Cost: as [`add`](Self::add).
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn insert<K: Key + ?Sized>(&self, key: &K) -> Result<bool> {
        self.insert_mixed_hash(key.hash_with(&self.hash))
    }

    /// [`insert`](Self::insert) for a hash.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn insert_mixed_hash(&self, hash: u64) -> Result<bool> {
        is_new(self.shared().insert(hash, true))
    }

    /// [`add`](Self::add) for many keys in order.
    ///
    /// Cost: as one by one, but cache misses overlap.
    ///
    /// # Errors
    /// As [`add`](Self::add). The keys before the one that failed are in the filter, the others are
    /// not.
    pub fn add_batch<K: Key>(&self, keys: &[K]) -> Result<()> {
        // The results are not used.
        self.change_batch(keys, &mut BatchResults::new(), |table, hash| {
            is_new(table.insert(hash, false))
        })
    }

    /// [`insert`](Self::insert) for many keys in order; `new` has one result for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    ///
    /// # Errors
    /// As [`add_batch`](Self::add_batch).
    pub fn insert_batch<K: Key>(&self, keys: &[K], new: &mut BatchResults) -> Result<()> {
        self.change_batch(keys, new, |table, hash| is_new(table.insert(hash, true)))
    }

    /// Removes one copy of a key; false if it was certainly absent. See [`VectorQuotientFilter`] for
    /// the keys that may be removed.
    ///
    /// Cost: as [`add`](Self::add).
    pub fn remove<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.remove_mixed_hash(key.hash_with(&self.hash))
    }

    /// [`remove`](Self::remove) for a hash.
    pub fn remove_mixed_hash(&self, hash: u64) -> bool {
        self.shared().remove(hash)
    }

    /// [`remove`](Self::remove) for many keys in order; `removed` has one result for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn remove_batch<K: Key>(&self, keys: &[K], removed: &mut BatchResults) {
        for_each_chunk(keys, &self.hash, removed, |hashes, removed| {
            self.shared().batch(hashes, |table, at, hash| {
                removed[at / 64] |= u64::from(table.remove(hash)) << (at % 64);
                true
            });
        });
    }

    /// Calls `one` for the hashes of keys until it returns an error.
    fn change_batch<K: Key>(
        &self,
        keys: &[K],
        results: &mut BatchResults,
        one: impl Fn(&SharedPairTable<'_>, u64) -> Result<bool>,
    ) -> Result<()> {
        try_for_each_chunk(keys, &self.hash, results, |hashes, results| {
            let mut done = Ok(());
            self.shared().batch(hashes, |table, at, hash| match one(table, hash) {
                Ok(result) => {
                    results[at / 64] |= u64::from(result) << (at % 64);
                    true
                }
                Err(problem) => {
                    done = Err(problem);
                    false
                }
            });
            done
        })
    }
}

/// Returns whether a fingerprint took a slot.
fn is_new(inserted: Inserted) -> Result<bool> {
    match inserted {
        Inserted::New => Ok(true),
        Inserted::Present => Ok(false),
        Inserted::Full => Err(full()),
    }
}

// ---- Queries ------------------------------------------------------------------------------------

impl AtomicVectorQuotientFilter {
    fn shared(&self) -> SharedPairTable<'_> {
        let (blocks, stripes) = (self.store.lines(), &self.stripes);
        SharedPairTable { table: &self.table, blocks, stripes }
    }

    /// Returns true if the key may be in the filter, false if it certainly is not.
    ///
    /// Cost: one hash; two cache lines of the filter, and two of the locks, which are only read.
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_mixed_hash(key.hash_with(&self.hash))
    }

    /// [`contains`](Self::contains) for a hash made with [`hash_spec`](Self::hash_spec), or with
    /// another 64-bit hash function whose every output bit is random. Plain integers are not such
    /// hashes: insert them as keys.
    #[must_use]
    pub fn contains_mixed_hash(&self, hash: u64) -> bool {
        self.shared().contains(hash)
    }

    /// [`contains`](Self::contains) for many keys; `found` has one result for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut BatchResults) {
        for_each_chunk(keys, &self.hash, found, |hashes, found| {
            self.shared().batch(hashes, |table, at, hash| {
                found[at / 64] |= u64::from(table.contains(hash)) << (at % 64);
                true
            });
        });
    }

    /// Returns the number of fingerprints, copies included. Concurrent changes may be counted or not.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.info.inserted.wrapping_add(self.stripes.keys())
    }

    /// Returns true if the filter has no keys. Concurrent changes may be counted or not.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the layout.
    #[must_use]
    pub fn layout(&self) -> VectorQuotientLayout {
        self.layout
    }

    /// Returns how keys are hashed.
    #[must_use]
    pub fn hash_spec(&self) -> HashSpec {
        self.hash
    }
}

impl fmt::Debug for AtomicVectorQuotientFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtomicVectorQuotientFilter")
            .field("layout", &self.layout)
            .field("hash", &self.hash)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}
