//! Bloom filters that keys can be added to.
//!
//! [`Filter`] is generic over a layout and a store; [`BloomFilter`] and [`ClassicBloomFilter`] are
//! its two layouts. The kernels behind [`Layout`] set and test the bits.
//!
//! Invariants: the store has exactly the lines of the layout. A hash that was inserted is contained
//! until [`clear`](Filter::clear).

#[cfg(not(feature = "std"))]
use crate::no_std::*;
#[cfg(all(feature = "std", not(all(loom, test))))]
pub(crate) mod atomic;
#[cfg(test)]
mod boundary_tests;
mod file;
mod fold;
mod folded_line;
pub(crate) mod layout;
mod membership;
#[cfg(feature = "std")]
pub(crate) mod parallel;
mod put;
pub(crate) mod size;
pub(crate) mod typed;

use crate::batch::{for_each_chunk, for_each_hashed_group};
use crate::byte_size::ByteSize;
use crate::error::{Error, Result};
pub(crate) use crate::format::header::FilterInfo;
use crate::hash::HashSpec;
use crate::kernel::{InlineCode, Kernel, KernelHandle, UnhashedKeys};
use crate::key::Key;
use crate::layout::{BlockedLayout, ClassicLayout};
use crate::math;
use crate::results::BatchResults;
use crate::spec::Builder;
use crate::store::{CacheLine, Owned, Store, StoreMut};

pub(crate) use membership::explain;

use layout::{Layout, SingleKeys, cardinality, cardinality_of, whole_cardinality};

/// The default Bloom filter: all bits of a key in one cache line, or in a pair of lines for rates
/// below 0.02 %.
///
/// At a rate of 1 % it takes 5 % more space than a [`ClassicBloomFilter`] and touches one cache
/// line per key instead of up to seven.
///
/// ```
/// use petal::BloomFilter;
///
/// let mut seen = BloomFilter::with_fpr(1_000_000, 0.01)?;
/// assert!(seen.insert("https://example.org/"));   // new
/// assert!(!seen.insert("https://example.org/"));  // inserted before
/// assert!(seen.contains("https://example.org/")); // true for 1 % of absent keys, too
/// # Ok::<_, petal::Error>(())
/// ```
///
/// Source: Putze, Sanders & Singler 2007, "Cache-, hash- and space-efficient Bloom filters".
pub type BloomFilter<S = Owned> = Filter<BlockedLayout, S>;

/// The textbook Bloom filter: k positions anywhere in m bits.
///
/// It is the smallest filter that keys can be added to, and touches several cache lines per key.
///
/// Source: Bloom 1970, "Space/time trade-offs in hash coding with allowable errors".
pub type ClassicBloomFilter<S = Owned> = Filter<ClassicLayout, S>;

/// A Bloom filter: [`BloomFilter`] or [`ClassicBloomFilter`].
///
/// [`contains`](Filter::contains) returns true for every key that was inserted, and for other keys
/// with the false-positive rate. The rate grows with the number of keys; the filter is sized so
/// that it reaches the target rate at its capacity.
#[derive(Clone, Debug)]
pub struct Filter<L: Layout, S = Owned> {
    layout: L,
    hash: HashSpec,
    info: FilterInfo,
    store: S,
    kernel: KernelHandle,
    /// The code for single hashes that is inlined into callers.
    hash_code: InlineCode,
    /// The same for single keys; none if their hash is not the default.
    key_code: InlineCode,
    /// False after inserts that did not count new keys: `info.inserted` is then to be replaced by an
    /// estimate from the bits.
    counted: bool,
}

// ---- Constructors -------------------------------------------------------------------------------

impl<L: Layout> Filter<L> {
    /// Creates the smallest filter with a false-positive rate of at most `fpr` at `capacity` keys.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1 or cannot be reached with 64-bit hashes, or memory
    /// allocation fails.
    pub fn with_fpr(capacity: u64, fpr: f64) -> Result<Self> {
        Self::builder().capacity(capacity).fpr(fpr).build()
    }

    /// Creates the filter with the lowest false-positive rate at `capacity` keys that takes at most
    /// `memory`.
    ///
    /// # Errors
    /// If the memory is less than 64 bytes, or its allocation fails.
    pub fn with_memory(capacity: u64, memory: ByteSize) -> Result<Self> {
        Self::builder().capacity(capacity).memory(memory).build()
    }

    /// Creates a filter of at least `bits` bits, rounded up to whole blocks, with `probes` bits per
    /// key.
    ///
    /// # Errors
    /// If there are no bits or too many, the probes are not 1 to 16 (classic: 1 to 64), or memory
    /// allocation fails.
    pub fn with_bits(bits: u64, probes: u32) -> Result<Self> {
        Self::builder().bits(bits).probes(probes).build()
    }

    /// Returns a builder, which chooses size, hash and seed separately.
    #[must_use]
    pub fn builder() -> Builder<Self> {
        Builder::new(L::KIND)
    }

    pub(crate) fn empty(layout: L, hash: HashSpec, info: FilterInfo) -> Result<Self> {
        let store = Owned::zeroed(layout.lines())?;
        Ok(Self::from_parts(layout, hash, info, store))
    }
}

// ---- Queries ------------------------------------------------------------------------------------

impl<L: Layout, S: Store> Filter<L, S> {
    /// Creates a filter of existing lines, which must be those of the layout.
    pub(crate) fn from_parts(layout: L, hash: HashSpec, info: FilterInfo, store: S) -> Self {
        debug_assert_eq!(store.lines().len() as u64, layout.lines());
        let kernel = Kernel::selected();
        let hash_code = layout.inline_code(kernel);
        let key_code = if hash.is_default() { hash_code } else { InlineCode::NONE };
        Self { layout, hash, info, store, kernel, hash_code, key_code, counted: true }
    }

    /// Returns true if the key may have been inserted, false if it certainly was not.
    ///
    /// Cost: one hash; one or two cache lines (classic: four for most absent keys, else k).
    #[inline(always)]
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        let (code, hash) = (self.single_keys(), self.hash);
        self.layout.contains(code, self.store.lines(), |inline| hash_of::<L, K>(hash, key, inline))
    }

    /// [`contains`](Self::contains) for a hash made with
    /// [`hash_spec`](crate::Membership::hash_spec), or with another 64-bit hash function whose every
    /// output bit is random. Plain integers are not such hashes: insert them as keys.
    #[inline(always)]
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn contains_mixed_hash(&self, hash: u64) -> bool {
        self.layout.contains(self.single_hashes(), self.store.lines(), |_| hash)
    }

    /// Prefetches the memory that [`contains_mixed_hash`](Self::contains_mixed_hash) or
    /// [`insert_mixed_hash`](Filter::insert_mixed_hash) will access. A hint; does nothing for
    /// classic filters, which access many lines.
    #[inline]
    #[doc(hidden)] // For the crates of this repository.
    pub fn prefetch_mixed_hash(&self, hash: u64) {
        self.layout.prefetch(self.store.lines(), hash);
    }

    /// [`contains`](Self::contains) for many keys; `found` has one result for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut BatchResults) {
        let lines = self.store.lines();
        if let (Some(words), Some(hash)) = (K::words(keys), self.hash.word_hasher()) {
            let hashes = UnhashedKeys { words, hash };
            return self.layout.contains_batch(self.kernel, lines, hashes, found.reset(keys.len()));
        }
        for_each_chunk(keys, &self.hash, found, |hashes, found| {
            self.layout.contains_batch(self.kernel, lines, hashes, found);
        });
    }

    /// Returns the layout.
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn layout(&self) -> L {
        self.layout
    }

    /// Checks that a union or intersection with `other` is possible: that layout and hash are
    /// equal.
    ///
    /// # Errors
    /// If they differ; the error states the difference.
    pub(crate) fn check_compatible<T: Store>(&self, other: &Filter<L, T>) -> Result<()> {
        if self.layout != other.layout {
            let (ours, theirs) = (self.layout.describe(), other.layout.describe());
            return Err(Error::incompatible("layout", Plain(ours), Plain(theirs)));
        }
        if self.hash != other.hash {
            return Err(Error::incompatible("hash", self.hash, other.hash));
        }
        Ok(())
    }

    /// Copies the filter into memory of its own. Unlike `clone`, it returns an error if memory
    /// allocation fails, and the copy of a mapped or borrowed filter is owned.
    ///
    /// # Errors
    /// If memory allocation fails.
    pub fn try_clone(&self) -> Result<Filter<L>> {
        let store = Owned::from_lines(self.store.lines())?;
        Ok(Filter::from_parts(self.layout, self.hash, self.current_info(), store))
    }
}

// ---- For types that contain Bloom filters -------------------------------------------------------

impl<L: Layout, S> Filter<L, S> {
    pub(crate) fn info_mut(&mut self) -> &mut FilterInfo {
        &mut self.info
    }

    pub(crate) fn store(&self) -> &S {
        &self.store
    }

    pub(crate) fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }

    pub(crate) fn estimated_len(&self) -> f64
    where
        S: Store,
    {
        cardinality(&self.layout, self.store.lines())
    }

    pub(crate) fn kernel(&self) -> KernelHandle {
        self.kernel
    }

    /// Returns the code for single hashes.
    #[inline(always)]
    fn single_hashes(&self) -> SingleKeys {
        SingleKeys { inline: self.hash_code, kernel: self.kernel }
    }

    /// Returns the code for single keys.
    #[inline(always)]
    fn single_keys(&self) -> SingleKeys {
        SingleKeys { inline: self.key_code, kernel: self.kernel }
    }
}

/// Returns the hash of a key; for inlined code, whose hash is the default.
#[inline(always)]
fn hash_of<L: Layout, K: Key + ?Sized>(hash: HashSpec, key: &K, inline: bool) -> u64 {
    match (inline, L::HAS_INLINE_CODE) {
        (true, _) => HashSpec::default_hash(key.bytes().as_ref()),
        (false, true) => hash.hash_by_call(key.bytes().as_ref()),
        (false, false) => key.hash_with(&hash),
    }
}

/// Text whose debug format is the text itself.
struct Plain(String);

impl core::fmt::Debug for Plain {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

// ---- Changes ------------------------------------------------------------------------------------

impl<L: Layout, S: StoreMut> Filter<L, S> {
    /// Inserts a key and returns true if it was new. False means that it was inserted before or is
    /// a false positive.
    ///
    /// Cost: one hash; one or two cache lines (classic: k).
    #[inline(always)]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        let (code, hash) = (self.single_keys(), self.hash);
        self.insert_with(code, |inline| hash_of::<L, K>(hash, key, inline))
    }

    /// [`insert`](Self::insert) for a hash made with [`hash_spec`](crate::Membership::hash_spec), or
    /// with another 64-bit hash function whose every output bit is random. Plain integers are not
    /// such hashes: insert them as keys.
    #[inline(always)]
    #[doc(hidden)] // For the crates of this repository.
    pub fn insert_mixed_hash(&mut self, hash: u64) -> bool {
        self.insert_with(self.single_hashes(), |_| hash)
    }

    #[inline(always)]
    fn insert_with(&mut self, code: SingleKeys, hash: impl FnOnce(bool) -> u64) -> bool {
        let new = self.layout.insert(code, self.store.lines_mut(), hash);
        self.info.inserted += u64::from(new);
        new
    }

    /// [`insert`](Self::insert) for many keys in order; `new` has one result for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn insert_batch<K: Key>(&mut self, keys: &[K], new: &mut BatchResults) {
        let lines = self.store.lines_mut();
        if let (Some(words), Some(hash)) = (K::words(keys), self.hash.word_hasher()) {
            let hashes = UnhashedKeys { words, hash };
            self.layout.insert_batch(self.kernel, lines, hashes, new.reset(keys.len()));
        } else {
            for_each_chunk(keys, &self.hash, new, |hashes, new| {
                self.layout.insert_batch(self.kernel, lines, hashes, new)
            });
        }
        self.info.inserted += new.count_ones();
    }

    /// [`insert_batch`](Self::insert_batch) for hashes.
    #[doc(hidden)] // For the crates of this repository.
    pub fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut BatchResults) {
        self.layout.insert_batch(
            self.kernel,
            self.store.lines_mut(),
            hashes,
            new.reset(hashes.len()),
        );
        self.info.inserted += new.count_ones();
    }

    /// Adds all keys of `other`. The result is exactly the filter of the keys of both.
    ///
    /// # Errors
    /// If the filters are not compatible; this filter is then unchanged.
    pub fn union<T: Store>(&mut self, other: &Filter<L, T>) -> Result<()> {
        self.check_compatible(other)?;
        let mut ones = 0;
        for (ours, theirs) in self.store.lines_mut().iter_mut().zip(other.store.lines()) {
            *ours = ours.or(*theirs);
            ones += ours.count_ones();
        }
        let keys = cardinality_of(&self.layout, ones);
        self.set_inserted(whole_cardinality(&self.layout, keys));
        Ok(())
    }

    /// Keeps the keys that `other` contains, too.
    ///
    /// The result contains all common keys. Its false-positive rate is higher than that of a filter
    /// of the common keys alone, because bits that different keys set in both filters stay set.
    /// [`inserted`](crate::Membership::inserted) is the estimated number of common keys.
    ///
    /// # Errors
    /// If the filters are not compatible; this filter is then unchanged.
    pub fn intersect<T: Store>(&mut self, other: &Filter<L, T>) -> Result<()> {
        self.check_compatible(other)?;
        // The number of common keys follows from the bits of both filters and of their union, not
        // from the common bits.
        let mut ones = [0u64; 3];
        for (ours, theirs) in self.store.lines_mut().iter_mut().zip(other.store.lines()) {
            for (ones, line) in ones.iter_mut().zip([*ours, *theirs, ours.or(*theirs)]) {
                *ones += line.count_ones();
            }
            ours.0.iter_mut().zip(theirs.0).for_each(|(ours, theirs)| *ours &= theirs);
        }
        let common = ones[0] + ones[1] - ones[2];
        let keys = ones.map(|ones| cardinality_of(&self.layout, ones));
        let keys = if keys[2].is_finite() {
            math::overlap(keys, |keys| self.layout.cardinality_error(keys)).intersection.value
        } else {
            cardinality_of(&self.layout, common)
        };
        // There may be none: common bits may be set by different keys.
        self.set_inserted(whole_cardinality(&self.layout, keys.round()));
        Ok(())
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.store.lines_mut().fill(CacheLine::ZERO);
        self.set_inserted(0);
    }

    /// Sets the capacity to 0 (no plan); size and target rate are unchanged.
    ///
    /// For programs that refuse keys beyond the capacity of a filter: they then accept any number
    /// of keys, at a rising false-positive rate.
    #[doc(hidden)] // For the crates of this repository.
    pub fn clear_capacity(&mut self) {
        self.info.capacity = 0;
    }
}

impl<K: Key, L: Layout, S: StoreMut> Extend<K> for Filter<L, S> {
    /// Inserts the keys in batches, whose cache misses overlap.
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        for_each_hashed_group(keys, self.hash, |hashes, new| {
            self.layout.insert_batch(self.kernel, self.store.lines_mut(), hashes, new);
            self.info.inserted += new.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        });
    }
}

impl<L: Layout, S: Store, T: Store> PartialEq<Filter<L, T>> for Filter<L, S> {
    /// Compares layout, hash and bits; capacity, target rate and number of inserts may differ.
    fn eq(&self, other: &Filter<L, T>) -> bool {
        self.check_compatible(other).is_ok() && self.store.lines() == other.store.lines()
    }
}
