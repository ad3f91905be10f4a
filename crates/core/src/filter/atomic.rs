//! The default filter for many threads at once.
//!
//! Invariants: those of [`Filter`]; the bits are those of a [`BloomFilter`] into which the same
//! keys went, in any order. Between the two the memory moves and is not copied.
//!
//! All work is done by [`kernel::shared`](crate::kernel::shared); what is here is bookkeeping.

use std::fmt;

use super::builder::Builder;
use super::geometry::kernel;
use super::{BloomFilter, Facts, Filter, hashed};
use crate::answers::Answers;
use crate::error::Result;
use crate::hash::HashSpec;
use crate::kernel::shared::{SharedBlocks, Stripes};
use crate::kernel::{Keys, Ready};
use crate::key::Key;
use crate::rate;
use crate::shape::Shape;
use crate::store::Shared;

/// A [`BloomFilter`] that many threads fill and ask at once, through `&self`.
///
/// ```
/// use petal::{AtomicBloomFilter, BloomFilter};
///
/// let seen = AtomicBloomFilter::with_rate(10_000, 0.01)?;
/// let new: u64 = std::thread::scope(|scope| {
///     let threads: Vec<_> = (0..4u64)
///         .map(|_| scope.spawn(|| (0..10_000u64).filter(|key| seen.insert(key)).count() as u64))
///         .collect();
///     threads.into_iter().map(|thread| thread.join().unwrap()).sum()
/// });
/// // Each key was new to one of the four threads, or is a false positive.
/// assert!(new == seen.inserted() && (9_900..=10_000).contains(&new));
///
/// // For one thread again, to be written to a file: the same memory.
/// let seen: BloomFilter = seen.into_filter();
/// assert!((0..10_000u64).all(|key| seen.contains(&key)));
/// # Ok::<_, petal::Error>(())
/// ```
///
/// # What threads may rely on
///
/// * **"Was new" is exact.** However many threads insert a key at once, [`insert`](Self::insert)
///   tells at most one of them that it was new; it tells none only if the bits of other keys have
///   said *yes* to it before. The answers to all inserts are those of some order one by one, and
///   [`inserted`](Self::inserted) is how many said *new*.
/// * **No false negatives.** Once an insert has returned, whatever it said, the key is contained
///   for every thread that has heard of it. A key whose insert is under way may be found or not.
/// * **The bits are those of a [`BloomFilter`]** into which the same keys went.
/// * **Nothing else is ordered**: to be told *yes* does not make visible what another thread wrote
///   before it inserted the key.
///
/// # What waits
///
/// Queries never wait, nor does an insert of a key that is contained already. An insert that sets
/// bits takes one of up to 512 locks for the few nanoseconds that this takes. So this is not
/// lock-free: a thread that is stopped just there holds up those that insert under the same lock.
/// Do not insert from a signal handler.
///
/// Beside the bits it takes 32 KiB for the locks, and less if it has few blocks; a system that
/// refuses *those* ends the program. A single thread
/// is faster with a [`BloomFilter`].
pub struct AtomicBloomFilter {
    shape: Shape,
    hash: HashSpec,
    /// As they were when threads began; what they inserted is counted by the stripes.
    facts: Facts,
    store: Shared,
    stripes: Stripes,
    /// Chosen when it was made.
    kernel: Ready,
}

/// Runs with the blocks of a filter.
macro_rules! blocks {
    ($filter:expr, |$blocks:ident| $call:expr) => {
        kernel!($filter.shape, |rule| {
            let (lines, stripes) = ($filter.store.lines(), &$filter.stripes);
            let $blocks = SharedBlocks { rule, lines, stripes, kernel: $filter.kernel };
            $call
        })
    };
}

// ---- Made ---------------------------------------------------------------------------------------

impl AtomicBloomFilter {
    /// The smallest filter that keeps the false-positive rate `rate` with `keys` keys.
    ///
    /// # Errors
    /// As [`BloomFilter::with_rate`](Filter::with_rate).
    pub fn with_rate(keys: u64, rate: f64) -> Result<Self> {
        BloomFilter::with_rate(keys, rate).map(Self::from)
    }

    /// The filter with the best rate for `keys` keys in at most `bytes` of memory, not counting
    /// the locks.
    ///
    /// # Errors
    /// As [`BloomFilter::with_memory`](Filter::with_memory).
    pub fn with_memory(bytes: u64, keys: u64) -> Result<Self> {
        BloomFilter::with_memory(bytes, keys).map(Self::from)
    }

    /// A filter of at least `bits` bits, rounded up to whole blocks, in which a key sets
    /// `probes`.
    ///
    /// # Errors
    /// As [`BloomFilter::with_bits`](Filter::with_bits).
    pub fn with_bits(bits: u64, probes: u32) -> Result<Self> {
        BloomFilter::with_bits(bits, probes).map(Self::from)
    }

    /// Chooses size, hash and seed one by one; ends with
    /// [`build_atomic`](Builder::build_atomic).
    #[must_use]
    pub fn builder() -> Builder<Shape> {
        Builder::new()
    }

    /// The filter for one owner again, in the same memory.
    #[must_use]
    pub fn into_filter(self) -> BloomFilter {
        let inserted = self.inserted();
        let Self { shape, hash, facts, store, stripes: _, kernel: _ } = self;
        Filter::over(shape, hash, Facts { inserted, ..facts }, store.into())
    }
}

impl Builder<Shape> {
    /// Makes the filter, empty, for many threads at once.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_atomic(self) -> Result<AtomicBloomFilter> {
        self.build().map(AtomicBloomFilter::from)
    }
}

impl From<BloomFilter> for AtomicBloomFilter {
    /// The filter with all that is in it, in the same memory.
    fn from(filter: BloomFilter) -> Self {
        let Filter { shape, hash, facts, store, kernel } = filter;
        let stripes = Stripes::new(shape.blocks());
        Self { shape, hash, facts, store: store.into(), stripes, kernel }
    }
}

impl From<AtomicBloomFilter> for BloomFilter {
    /// As [`AtomicBloomFilter::into_filter`].
    fn from(filter: AtomicBloomFilter) -> Self {
        filter.into_filter()
    }
}

// ---- Changed ------------------------------------------------------------------------------------

impl AtomicBloomFilter {
    /// Inserts a key; whether it was new. `true` is certain, and for one thread only; `false`
    /// means that it was inserted before, or is a false positive.
    ///
    /// Cost: one hash; one or two cache lines, and if it is new one lock.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.insert_mixed_hash(key.hash_with(&self.hash))
    }

    /// [`insert`](Self::insert) for a hash made with [`hash_spec`](Self::hash_spec), or with
    /// another hash of 64 bits whose every bit is random. A plain integer is no such hash: insert
    /// it as a key.
    #[inline]
    pub fn insert_mixed_hash(&self, hash: u64) -> bool {
        blocks!(self, |blocks| blocks.insert(hash))
    }

    /// [`insert`](Self::insert) for many keys, as if one by one; `new` gets an answer for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn insert_batch<K: Key>(&self, keys: &[K], new: &mut Answers) {
        blocks!(self, |blocks| {
            if let (Some(words), Some(hash)) = (K::words(keys), self.hash.of_words()) {
                return blocks.insert_batch(Keys { words, hash }, new.reset(keys.len()));
            }
            hashed(keys, &self.hash, new, |hashes, new| blocks.insert_batch(hashes, new));
        });
    }

    /// [`insert_batch`](Self::insert_batch) for hashes.
    pub fn insert_mixed_hashes(&self, hashes: &[u64], new: &mut Answers) {
        blocks!(self, |blocks| blocks.insert_batch(hashes, new.reset(hashes.len())));
    }
}

// ---- Asked --------------------------------------------------------------------------------------

impl AtomicBloomFilter {
    /// Whether the key may have been inserted. `false` is certain, but for an insert that is
    /// under way.
    ///
    /// Cost: one hash; one or two cache lines.
    #[inline]
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_mixed_hash(key.hash_with(&self.hash))
    }

    /// [`contains`](Self::contains) for a hash made with [`hash_spec`](Self::hash_spec), or with
    /// another hash of 64 bits whose every bit is random. A plain integer is no such hash: insert
    /// it as a key.
    #[inline]
    #[must_use]
    pub fn contains_mixed_hash(&self, hash: u64) -> bool {
        blocks!(self, |blocks| blocks.contains(hash))
    }

    /// [`contains`](Self::contains) for many keys; `found` gets an answer for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut Answers) {
        blocks!(self, |blocks| {
            if let (Some(words), Some(hash)) = (K::words(keys), self.hash.of_words()) {
                return blocks.contains_batch(Keys { words, hash }, found.reset(keys.len()));
            }
            hashed(keys, &self.hash, found, |hashes, found| blocks.contains_batch(hashes, found));
        });
    }

    /// [`contains_batch`](Self::contains_batch) for hashes.
    pub fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut Answers) {
        blocks!(self, |blocks| blocks.contains_batch(hashes, found.reset(hashes.len())));
    }

    /// The geometry.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// How keys become hashes.
    #[must_use]
    pub fn hash_spec(&self) -> HashSpec {
        self.hash
    }

    /// Bytes that the bits take.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.shape.size_bytes()
    }

    /// Keys it was planned for; 0 if it was made from bits and probes.
    #[must_use]
    pub fn planned_keys(&self) -> u64 {
        self.facts.planned
    }

    /// The false-positive rate it was planned for; 0 if it was made from bits and probes.
    #[must_use]
    pub fn target_rate(&self) -> f64 {
        self.facts.target
    }

    /// How many inserts were new, those included that were so before the filter was shared. While
    /// others insert, what they insert may be counted or not.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        self.facts.inserted + self.stripes.inserted()
    }

    /// The false-positive rate with `keys` distinct keys, by calculation.
    #[must_use]
    pub fn expected_rate(&self, keys: u64) -> f64 {
        self.shape.rate(keys)
    }

    /// An estimate of the distinct keys inserted, from the bits that are set; infinite if all
    /// are. While others insert, of some moment in between, roughly.
    ///
    /// Cost: reads the whole filter.
    #[must_use]
    pub fn estimated_len(&self) -> f64 {
        rate::cardinality(1.0 - self.fill_ratio(), self.shape.touch())
    }

    /// The share of bits that are set. While others insert, of some moment in between, roughly.
    ///
    /// Cost: reads the whole filter.
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        self.store.count_ones() as f64 / self.shape.bits() as f64
    }
}

impl fmt::Debug for AtomicBloomFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtomicBloomFilter")
            .field("shape", &self.shape)
            .field("hash", &self.hash)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store as _;

    #[test]
    fn there_and_back_is_the_same_memory() {
        for (keys, rate) in [(10, 0.01), (10_000, 0.0001), (1_000_000, 0.01)] {
            let mut filter = BloomFilter::with_rate(keys, rate).unwrap();
            assert!(filter.insert("before"));
            let here = filter.store.lines().as_ptr();
            let shared = AtomicBloomFilter::from(filter);
            assert_eq!(shared.store.lines().as_ptr().cast(), here);
            assert!(shared.contains("before") && shared.insert("within"));
            let filter = shared.into_filter();
            assert_eq!(filter.store.lines().as_ptr(), here);
            assert!(filter.contains("before") && filter.contains("within"));
            assert_eq!(filter.inserted(), 2);
            assert_eq!((filter.planned_keys(), filter.target_rate()), (keys, rate));
        }
    }
}
