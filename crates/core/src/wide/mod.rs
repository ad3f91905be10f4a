//! Filters on 128-bit hashes, for rates that 64 bits cannot reach.
//!
//! Two keys of the same hash cannot be distinguished. With 64-bit hashes and n keys, n/2⁶⁴ of all
//! absent keys collide with some key: 5·10⁻¹⁰ of them at 10¹⁰ keys, whatever the size of the
//! filter. A [`WideBloomFilter`] is two [`BloomFilter`]s of equal layout, one on the low and one on
//! the high word of a 128-bit hash, each with the square root of the rate. A key is present if
//! both contain it.
//!
//! Invariants: both have the same layout and the same 128-bit hash, and the same keys are inserted
//! into both.
//!
//! Cost: an insert is two inserts. A query of an absent key reads the second filter rarely.
//!
//! Source: the formulas are in `math::wide`; docs/design/filters/wide.md has the alternatives.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
mod builder;
mod file;
mod membership;

pub use builder::WideBuilder;

use crate::batch::{CHUNK, for_each_chunk};
use crate::byte_size::ByteSize;
use crate::error::{Error, Result};
use crate::filter::{BloomFilter, Filter, FilterInfo};
use crate::hash::HashSpec;
use crate::key::Key;
use crate::layout::BlockedLayout;
use crate::math;
use crate::membership::{Membership, counted};
use crate::results::BatchResults;
use crate::store::{Owned, Store, StoreMut};

/// A Bloom filter on 128-bit hashes, for rates below n/2⁶³ with n keys (1e-9 with 10 billion),
/// which 64-bit hashes cannot reach.
///
/// ```
/// use petal::WideBloomFilter;
///
/// let mut seen = WideBloomFilter::with_fpr(1_000, 1e-18)?;
/// assert!(seen.insert("one") && !seen.insert("one"));
/// assert!(seen.contains("one") && !seen.contains("two"));
/// # Ok::<_, petal::Error>(())
/// ```
///
/// At higher rates a [`BloomFilter`] is faster; it is larger at rates below about 1e-6.
#[derive(Clone, Debug)]
pub struct WideBloomFilter<S = Owned> {
    /// The filter on the low words of the hashes.
    low: BloomFilter<S>,
    /// The filter on the high words.
    high: BloomFilter<S>,
    info: FilterInfo,
}

// ---- Constructors -------------------------------------------------------------------------------

impl WideBloomFilter {
    /// Creates the smallest wide filter with a false-positive rate of at most `fpr` at `capacity`
    /// keys.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1, is below 4 (n/2⁶⁴)², which 128-bit hashes cannot reach,
    /// or memory allocation fails.
    pub fn with_fpr(capacity: u64, fpr: f64) -> Result<Self> {
        Self::builder().capacity(capacity).fpr(fpr).build()
    }

    /// Creates the filter with the lowest false-positive rate at `capacity` keys that takes at most
    /// `memory`.
    ///
    /// # Errors
    /// If the memory is less than 128 bytes, or its allocation fails.
    pub fn with_memory(capacity: u64, memory: ByteSize) -> Result<Self> {
        Self::builder().capacity(capacity).memory(memory).build()
    }

    /// Returns a builder, which chooses size, hash and seed separately.
    #[must_use]
    pub fn builder() -> WideBuilder {
        WideBuilder::new()
    }

    fn empty(layout: BlockedLayout, hash: HashSpec, info: FilterInfo) -> Result<Self> {
        hash.check_words(2)?;
        let half = || Filter::empty(layout, hash, FilterInfo::default());
        Ok(Self { low: half()?, high: half()?, info })
    }
}

// ---- Queries ------------------------------------------------------------------------------------

impl<S: Store> WideBloomFilter<S> {
    /// Returns true if the key may have been inserted, false if it certainly was not.
    ///
    /// Cost: one hash; one or two cache lines, twice as many for a present key.
    #[inline]
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_mixed_hash(self.hash_spec().hash_wide(key.bytes().as_ref()))
    }

    /// [`contains`](Self::contains) for a hash made with [`hash_spec`](Membership::hash_spec), or
    /// with another 128-bit hash function whose every output bit is random. Plain integers are not
    /// such hashes: insert them as keys. The low word comes first.
    #[inline]
    #[must_use]
    pub fn contains_mixed_hash(&self, [low, high]: [u64; 2]) -> bool {
        self.low.contains_mixed_hash(low) && self.high.contains_mixed_hash(high)
    }

    /// [`contains`](Self::contains) for many keys; `found` has one result for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut BatchResults) {
        let mut scratch = Scratch::default();
        for_each_chunk(keys, &self.hash_spec(), found, |hashes, found| {
            self.contains_chunk(hashes, found, &mut scratch);
        });
    }

    /// Looks up the keys that the low filter contains in the high filter.
    fn contains_chunk(&self, hashes: &[u64], found: &mut [u64], scratch: &mut Scratch) {
        let (hashes, _) = hashes.as_chunks::<2>();
        scratch.set_words(hashes.iter().map(|[low, _]| *low));
        self.low.contains_mixed_hashes(&scratch.words, &mut scratch.results);
        scratch.found.clear();
        scratch.found.extend(scratch.results.iter());
        scratch.words.clear();
        scratch.words.extend(scratch.found.iter().map(|&at| hashes[at][1]));
        self.high.contains_mixed_hashes(&scratch.words, &mut scratch.results);
        for at in scratch.results.iter().map(|at| scratch.found[at]) {
            found[at / 64] |= 1 << (at % 64);
        }
    }

    /// Returns the layout of each of the two filters.
    #[must_use]
    pub fn layout(&self) -> BlockedLayout {
        self.low.layout()
    }

    /// Checks that a union or intersection with `other` is possible: that layout and hash are
    /// equal.
    ///
    /// # Errors
    /// If they differ; the error states the difference.
    pub fn check_compatible<T: Store>(&self, other: &WideBloomFilter<T>) -> Result<()> {
        self.low.check_compatible(&other.low)
    }

    /// Copies the filter into memory of its own: see [`Filter::try_clone`].
    ///
    /// # Errors
    /// If memory allocation fails.
    pub fn try_clone(&self) -> Result<WideBloomFilter> {
        let (low, high) = (self.low.try_clone()?, self.high.try_clone()?);
        Ok(WideBloomFilter { low, high, info: self.info })
    }
}

/// Buffers of a batch, reused for each chunk.
#[derive(Default)]
struct Scratch {
    /// The low or high words of hashes.
    words: Vec<u64>,
    /// The positions in the chunk of the keys that the low filter contains.
    found: Vec<usize>,
    results: BatchResults,
}

impl Scratch {
    fn set_words(&mut self, words: impl Iterator<Item = u64>) {
        self.words.clear();
        self.words.extend(words);
    }
}

// ---- Changes ------------------------------------------------------------------------------------

impl<S: StoreMut> WideBloomFilter<S> {
    /// Inserts a key and returns true if it was new. False means that it was inserted before or is
    /// a false positive.
    ///
    /// Cost: one hash; two or four cache lines.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        self.insert_mixed_hash(self.hash_spec().hash_wide(key.bytes().as_ref()))
    }

    /// [`insert`](Self::insert) for a hash made with [`hash_spec`](Membership::hash_spec), or with
    /// another 128-bit hash function whose every output bit is random. Plain integers are not such
    /// hashes: insert them as keys. The low word comes first.
    #[inline]
    pub fn insert_mixed_hash(&mut self, [low, high]: [u64; 2]) -> bool {
        // Without short circuit: the key must be inserted into both.
        let new = self.low.insert_mixed_hash(low) | self.high.insert_mixed_hash(high);
        self.info.inserted += u64::from(new);
        new
    }

    /// [`insert`](Self::insert) for many keys in order; `new` has one result for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn insert_batch<K: Key>(&mut self, keys: &[K], new: &mut BatchResults) {
        let mut scratch = Scratch::default();
        let spec = self.hash_spec();
        for_each_chunk(keys, &spec, new, |hashes, new| {
            self.insert_chunk(hashes, new, &mut scratch);
        });
        self.info.inserted += new.count_ones();
    }

    /// [`insert_batch`](Self::insert_batch) for hashes: two words for each key, the low word first.
    pub fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut BatchResults) {
        let mut scratch = Scratch::default();
        let results = new.reset(hashes.len() / 2).chunks_mut(CHUNK / 64);
        for (hashes, new) in hashes.chunks(2 * CHUNK).zip(results) {
            self.insert_chunk(hashes, new, &mut scratch);
        }
        self.info.inserted += new.count_ones();
    }

    /// Inserts a chunk into one filter, then into the other. Their results do not depend on each
    /// other, so that this equals inserting key by key.
    fn insert_chunk(&mut self, hashes: &[u64], new: &mut [u64], scratch: &mut Scratch) {
        let (hashes, _) = hashes.as_chunks::<2>();
        for (half, filter) in [&mut self.low, &mut self.high].into_iter().enumerate() {
            scratch.set_words(hashes.iter().map(|words| words[half]));
            filter.insert_mixed_hashes(&scratch.words, &mut scratch.results);
            for (new, half_new) in new.iter_mut().zip(scratch.results.as_words()) {
                *new |= half_new;
            }
        }
    }

    /// Adds all keys of `other`. The result is exactly the filter of the keys of both.
    ///
    /// # Errors
    /// If the filters are not compatible; this filter is then unchanged.
    pub fn union<T: Store>(&mut self, other: &WideBloomFilter<T>) -> Result<()> {
        self.check_compatible(other)?;
        self.low.union(&other.low)?;
        self.high.union(&other.high)?;
        self.info.inserted = self.mean_inserted();
        Ok(())
    }

    /// Keeps the keys that `other` contains, too: see [`Filter::intersect`].
    ///
    /// # Errors
    /// If the filters are not compatible; this filter is then unchanged.
    pub fn intersect<T: Store>(&mut self, other: &WideBloomFilter<T>) -> Result<()> {
        self.check_compatible(other)?;
        self.low.intersect(&other.low)?;
        self.high.intersect(&other.high)?;
        self.info.inserted = self.mean_inserted();
        Ok(())
    }

    /// Returns the mean of the estimates of both halves after a set operation.
    fn mean_inserted(&self) -> u64 {
        self.low.inserted().midpoint(self.high.inserted())
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.low.clear();
        self.high.clear();
        self.info.inserted = 0;
    }
}

impl<K: Key, S: StoreMut> Extend<K> for WideBloomFilter<S> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        keys.into_iter().for_each(|key| _ = self.insert(&key));
    }
}

impl<S: Store, T: Store> PartialEq<WideBloomFilter<T>> for WideBloomFilter<S> {
    /// Compares layout, hash and bits; capacity, target rate and number of inserts may differ.
    fn eq(&self, other: &WideBloomFilter<T>) -> bool {
        self.low == other.low && self.high == other.high
    }
}

/// Describes the layout of both halves in words.
pub(crate) fn describe(half: BlockedLayout) -> String {
    let (blocks, bits) = (counted(half.blocks(), "block"), half.lanes() * 64);
    format!(
        "two filters of {blocks} of {bits} bits, {} in each",
        counted(half.probes().into(), "probe")
    )
}

/// Returns the target rate of each half, after checking that both together can reach `fpr`.
fn half_fpr(capacity: u64, fpr: f64) -> Result<f64> {
    if !(fpr > 0.0 && fpr < 1.0) {
        return Err(Error::fpr(fpr));
    }
    let (capacity, half) = (capacity.max(1), math::wide_part_fpr(fpr));
    // The layout of each half needs a hash floor of at most half of its rate.
    if math::hash_floor(capacity) > half / 2.0 {
        return Err(Error::unattainable_wide(capacity, fpr, math::wide_floor(capacity)));
    }
    Ok(half)
}
