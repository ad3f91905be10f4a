//! The default Bloom filter, shared by threads.
//!
//! Invariants: those of [`Filter`]; the bits are those of a [`BloomFilter`] of the same keys. A
//! conversion between the two moves the memory without a copy.
//!
//! The kernels are in [`kernel::shared`](crate::kernel::shared).

use core::fmt;

use super::layout::sealed::LayoutImpl as _;
use super::layout::{cardinality_of, fill_of, kernel};
use super::{BloomFilter, Filter, FilterInfo};
use crate::batch::{for_each_chunk, for_each_hashed_group};
use crate::error::Result;
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::kernel::shared::{SharedBlocks, Stripes};
use crate::kernel::{KernelHandle, UnhashedKeys};
use crate::key::Key;
use crate::layout::BlockedLayout;
use crate::math;
use crate::results::BatchResults;
use crate::stats::Stats;
use crate::store::Shared;

/// A [`BloomFilter`] that many threads use at once, through `&self`.
///
/// ```
/// use petal::{AtomicBloomFilter, BloomFilter};
///
/// let seen = AtomicBloomFilter::with_fpr(10_000, 0.01)?;
/// let new: u64 = std::thread::scope(|scope| {
///     let threads: Vec<_> = (0..4u64)
///         .map(|_| scope.spawn(|| (0..10_000u64).filter(|key| seen.insert(key)).count() as u64))
///         .collect();
///     threads.into_iter().map(|thread| thread.join().unwrap()).sum()
/// });
/// // Each key was new to one of the four threads, or is a false positive.
/// assert!(new == seen.inserted() && (9_900..=10_000).contains(&new));
///
/// // A filter of one thread, in the same memory, which can be written to a file.
/// let seen: BloomFilter = seen.into_filter();
/// assert!((0..10_000u64).all(|key| seen.contains(&key)));
/// # Ok::<_, petal::Error>(())
/// ```
///
/// # Guarantees
///
/// * **"Was new" is exact.** If several threads insert a key at once, [`insert`](Self::insert)
///   returns true in at most one of them, and in none only if the key is a false positive. The
///   results of all inserts are those of some sequential order, and [`inserted`](Self::inserted) is
///   the number of inserts that returned true.
/// * **No false negatives.** Once an insert has returned, the key is contained for every thread that
///   the inserting thread synchronizes with. During the insert it may be found or not.
/// * **The bits are those of a [`BloomFilter`]** of the same keys.
/// * **Nothing else is ordered**: finding a key does not make other writes of the thread that
///   inserted it visible.
///
/// # Locks
///
/// Queries take no locks, nor does an insert of a key that is contained already. An insert that sets
/// bits holds one of up to 512 locks for a few nanoseconds. So the filter is not lock-free: a thread
/// that is suspended there delays inserts under the same lock. Do not insert from a signal handler.
///
/// The locks take up to 32 KiB beside the bits; if their allocation fails, the program aborts. With
/// a single thread, a [`BloomFilter`] is faster.
pub struct AtomicBloomFilter {
    layout: BlockedLayout,
    hash: HashSpec,
    /// The values at the time when the filter was shared; the stripes count the inserts since then.
    info: FilterInfo,
    store: Shared,
    stripes: Stripes,
    kernel: KernelHandle,
}

/// Evaluates an expression with the blocks of a filter.
macro_rules! blocks {
    ($filter:expr, |$blocks:ident| $call:expr) => {
        kernel!($filter.layout, |params| {
            let (lines, stripes) = ($filter.store.lines(), &$filter.stripes);
            let $blocks = SharedBlocks { params, lines, stripes };
            $call
        })
    };
}

// ---- Constructors -------------------------------------------------------------------------------

impl AtomicBloomFilter {
    /// Creates the smallest filter with a false-positive rate of at most `fpr` at `capacity` keys. For
    /// another size or hash: `AtomicBloomFilter::from(BloomFilter::builder()….build()?)`.
    ///
    /// # Errors
    /// As [`BloomFilter::with_fpr`](Filter::with_fpr).
    pub fn with_fpr(capacity: u64, fpr: f64) -> Result<Self> {
        BloomFilter::with_fpr(capacity, fpr).map(Self::from)
    }

    /// Copies the filter into memory of its own. Keys that other threads insert meanwhile may be in the
    /// copy or not, and `inserted` does not count all of them.
    ///
    /// # Errors
    /// If memory allocation fails.
    pub fn try_clone(&self) -> Result<Self> {
        let info = FilterInfo { inserted: self.inserted(), ..self.info };
        Ok(Filter::from_parts(self.layout, self.hash, info, self.store.copy()?).into())
    }

    /// Converts to a filter of one thread, in the same memory.
    #[must_use]
    pub fn into_filter(self) -> BloomFilter {
        let inserted = self.inserted();
        let Self { layout, hash, info, store, stripes: _, kernel: _ } = self;
        Filter::from_parts(layout, hash, FilterInfo { inserted, ..info }, store.into())
    }
}

impl From<BloomFilter> for AtomicBloomFilter {
    /// Converts the filter with its keys, in the same memory.
    fn from(filter: BloomFilter) -> Self {
        let info = filter.current_info();
        let Filter { layout, hash, store, kernel, .. } = filter;
        let stripes = Stripes::new(layout.blocks());
        Self { layout, hash, info, store: store.into(), stripes, kernel }
    }
}

impl From<AtomicBloomFilter> for BloomFilter {
    /// As [`AtomicBloomFilter::into_filter`].
    fn from(filter: AtomicBloomFilter) -> Self {
        filter.into_filter()
    }
}

// ---- Changes ------------------------------------------------------------------------------------

impl AtomicBloomFilter {
    /// Inserts a key and returns true if it was new, in one thread only. False means that it was
    /// inserted before or is a false positive.
    ///
    /// Cost: one hash; one or two cache lines; one lock if the key is new.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.insert_mixed_hash(key.hash_with(&self.hash))
    }

    /// [`insert`](Self::insert) for a hash made with [`hash_spec`](crate::Membership::hash_spec), or with another
    /// 64-bit hash function whose every output bit is random. Plain integers are not such hashes:
    /// insert them as keys.
    #[inline]
    pub fn insert_mixed_hash(&self, hash: u64) -> bool {
        blocks!(self, |blocks| self.kernel.shared_insert(blocks, hash))
    }

    /// [`insert`](Self::insert) for many keys; `new` has one result for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn insert_batch<K: Key>(&self, keys: &[K], new: &mut BatchResults) {
        let kernel = self.kernel;
        blocks!(self, |blocks| {
            if let (Some(words), Some(hash)) = (K::words(keys), self.hash.word_hasher()) {
                let new = new.reset(keys.len());
                return kernel.shared_insert_batch(blocks, UnhashedKeys { words, hash }, new);
            }
            for_each_chunk(keys, &self.hash, new, |hashes, new| {
                kernel.shared_insert_batch(blocks, hashes, new)
            });
        });
    }

    /// [`insert_batch`](Self::insert_batch) for hashes.
    pub fn insert_mixed_hashes(&self, hashes: &[u64], new: &mut BatchResults) {
        let new = new.reset(hashes.len());
        blocks!(self, |blocks| self.kernel.shared_insert_batch(blocks, hashes, new));
    }
}

// ---- Queries ------------------------------------------------------------------------------------

impl AtomicBloomFilter {
    /// Returns true if the key may have been inserted, false if it certainly was not, except during
    /// its insert.
    ///
    /// Cost: one hash; one or two cache lines.
    #[inline]
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_mixed_hash(key.hash_with(&self.hash))
    }

    /// [`contains`](Self::contains) for a hash made with [`hash_spec`](crate::Membership::hash_spec), or with
    /// another 64-bit hash function whose every output bit is random. Plain integers are not such
    /// hashes: insert them as keys.
    #[inline]
    #[must_use]
    pub fn contains_mixed_hash(&self, hash: u64) -> bool {
        blocks!(self, |blocks| self.kernel.shared_contains(blocks, hash))
    }

    /// [`contains`](Self::contains) for many keys; `found` has one result for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut BatchResults) {
        let kernel = self.kernel;
        blocks!(self, |blocks| {
            if let (Some(words), Some(hash)) = (K::words(keys), self.hash.word_hasher()) {
                let found = found.reset(keys.len());
                return kernel.shared_contains_batch(blocks, UnhashedKeys { words, hash }, found);
            }
            for_each_chunk(keys, &self.hash, found, |hashes, found| {
                kernel.shared_contains_batch(blocks, hashes, found)
            });
        });
    }

    /// [`contains_batch`](Self::contains_batch) for hashes.
    pub fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut BatchResults) {
        let found = found.reset(hashes.len());
        blocks!(self, |blocks| self.kernel.shared_contains_batch(blocks, hashes, found));
    }

    /// Returns the layout.
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn layout(&self) -> BlockedLayout {
        self.layout
    }

    /// Returns how keys are hashed.
    #[must_use]
    pub fn hash_spec(&self) -> HashSpec {
        self.hash
    }

    /// Returns the number of inserts that were new, including those before the filter was shared.
    /// Concurrent inserts may be counted or not.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        self.info.inserted + self.stripes.inserted()
    }

    /// Returns the numbers of the filter as it is now. Concurrent inserts may be counted or not; the
    /// false-positive rate is that with the estimated number of keys.
    ///
    /// Cost: reads the whole filter.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let (layout, FilterInfo { capacity, target_fpr, .. }) = (self.layout, self.info);
        let ones = self.store.count_ones();
        let estimated_len = cardinality_of(&layout, ones);
        let estimated_fpr = layout.fpr(estimated_len as u64);
        let max = (target_fpr > 0.0).then(|| layout.capacity_at_fpr(target_fpr));
        Stats {
            filter_type: FilterType::Bloom,
            layout: layout.describe(),
            parameters: layout.parameters(),
            size_bytes: layout.size_bytes(),
            memory_usage: self.store.memory_usage()
                + self.stripes.memory_usage()
                + size_of::<Self>() as u64,
            capacity,
            target_fpr,
            inserted: self.inserted(),
            estimated_len,
            estimated_fpr,
            fill_ratio: fill_of(&layout, ones),
            capacity_left: max.map(|max| max.saturating_sub(estimated_len.ceil() as u64)),
            is_overfull: math::is_overfull(target_fpr, estimated_fpr, layout.bits()),
        }
    }
}

impl<K: Key> Extend<K> for AtomicBloomFilter {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        Extend::extend(&mut &*self, keys);
    }
}

/// For threads that share the filter.
impl<K: Key> Extend<K> for &AtomicBloomFilter {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        for_each_hashed_group(keys, self.hash, |hashes, new| {
            blocks!(self, |blocks| self.kernel.shared_insert_batch(blocks, hashes, new));
        });
    }
}

impl fmt::Debug for AtomicBloomFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtomicBloomFilter")
            .field("layout", &self.layout)
            .field("hash", &self.hash)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::Membership as _;
    use crate::store::Store as _;

    #[test]
    fn conversions_keep_the_memory() {
        for (keys, rate) in [(10, 0.01), (10_000, 0.0001), (1_000_000, 0.01)] {
            let mut filter = BloomFilter::with_fpr(keys, rate).unwrap();
            assert!(filter.insert("before"));
            let here = filter.store.lines().as_ptr();
            let shared = AtomicBloomFilter::from(filter);
            assert_eq!(shared.store.lines().as_ptr().cast(), here);
            assert!(shared.contains("before") && shared.insert("within"));
            let copy = shared.try_clone().unwrap().into_filter();
            let filter = shared.into_filter();
            assert!(copy == filter && copy.inserted() == 2);
            assert_eq!(filter.store.lines().as_ptr(), here);
            assert!(filter.contains("before") && filter.contains("within"));
            assert_eq!(filter.inserted(), 2);
            assert_eq!((filter.capacity(), filter.target_fpr()), (keys, rate));
        }
    }
}
