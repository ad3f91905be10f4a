//! The filters people hold: a shape, a hash, and lines of bits somewhere.
//!
//! One type, [`Filter`], over a layout and a store; [`BloomFilter`] and [`ClassicBloomFilter`]
//! are its two layouts. All work is done by the kernels behind
//! [`Geometry`](geometry::Geometry); what is here is bookkeeping.
//!
//! Invariants: the store has exactly the lines of the shape. A hash that was inserted is
//! contained from then on, until [`clear`](Filter::clear).

#[cfg(not(all(loom, test)))]
pub(crate) mod atomic;
#[cfg(test)]
mod borders;
pub(crate) mod builder;
pub(crate) mod file;
mod fold;
pub(crate) mod geometry;
pub(crate) mod parallel;
pub(crate) mod typed;

use crate::answers::Answers;
use crate::error::{Error, Result};
pub(crate) use crate::format::header::Facts;
use crate::hash::HashSpec;
use crate::kernel::{Kernel, Keys, Ready};
use crate::key::Key;
use crate::membership::Membership;
use crate::rate;
use crate::shape::{ClassicShape, Shape};
use crate::store::{Line, Owned, Store, StoreMut};

use builder::Builder;
use geometry::{Geometry, cardinality, cardinality_of, fill, whole_cardinality};

/// The default Bloom filter: all bits of a key in one cache line, or in a pair of them for rates
/// below 0.02 %.
///
/// Against the textbook filter it takes 5 % more space at a rate of 1 % and touches one cache
/// line a key instead of up to seven.
///
/// ```
/// use petal::BloomFilter;
///
/// let mut seen = BloomFilter::with_rate(1_000_000, 0.01)?;
/// assert!(seen.insert("https://example.org/"));   // new
/// assert!(!seen.insert("https://example.org/"));  // seen before
/// assert!(seen.contains("https://example.org/")); // maybe: 1 % of others would say so too
/// # Ok::<_, petal::Error>(())
/// ```
///
/// Source: Putze, Sanders & Singler 2007, "Cache-, hash- and space-efficient Bloom filters".
pub type BloomFilter<S = Owned> = Filter<Shape, S>;

/// The textbook Bloom filter: k positions anywhere in m bits. The least space of a filter that
/// can be added to, at the price of several cache lines a key.
///
/// Source: Bloom 1970, "Space/time trade-offs in hash coding with allowable errors".
pub type ClassicBloomFilter<S = Owned> = Filter<ClassicShape, S>;

/// A Bloom filter: [`BloomFilter`] or [`ClassicBloomFilter`].
///
/// Keys are added with [`insert`](Filter::insert) and asked for with
/// [`contains`](Filter::contains). *No* is certain. *Yes* means maybe: a key that was never
/// inserted is said to be present with the false-positive rate, which the filter was sized for
/// and which grows when more keys are added than planned.
#[derive(Debug)]
pub struct Filter<G: Geometry, S = Owned> {
    shape: G,
    hash: HashSpec,
    facts: Facts,
    store: S,
    kernel: Ready,
}

// ---- Made new -----------------------------------------------------------------------------------

impl<G: Geometry> Filter<G> {
    /// The smallest filter that keeps the false-positive rate `rate` with `keys` keys.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1, cannot be reached with 64-bit hashes, or the memory
    /// is refused.
    pub fn with_rate(keys: u64, rate: f64) -> Result<Self> {
        Self::builder().keys(keys).rate(rate).build()
    }

    /// The filter with the best rate for `keys` keys in at most `bytes` of memory.
    ///
    /// # Errors
    /// If that is less than 64 bytes, or the memory is refused.
    pub fn with_memory(bytes: u64, keys: u64) -> Result<Self> {
        Self::builder().keys(keys).memory(bytes).build()
    }

    /// A filter of at least `bits` bits, rounded up to whole blocks, in which a key sets
    /// `probes`.
    ///
    /// # Errors
    /// If there are no bits, too many or no probes (at most 16, classic 64), or the memory is
    /// refused.
    pub fn with_bits(bits: u64, probes: u32) -> Result<Self> {
        Self::builder().bits(bits).probes(probes).build()
    }

    /// Chooses size, hash and seed one by one.
    #[must_use]
    pub fn builder() -> Builder<G> {
        Builder::new()
    }

    pub(crate) fn empty(shape: G, hash: HashSpec, facts: Facts) -> Result<Self> {
        let store = Owned::zeroed(shape.lines())?;
        Ok(Self::over(shape, hash, facts, store))
    }
}

// ---- Asked --------------------------------------------------------------------------------------

impl<G: Geometry, S: Store> Filter<G, S> {
    /// A filter over lines that are there; they must be those of the shape.
    pub(crate) fn over(shape: G, hash: HashSpec, facts: Facts, store: S) -> Self {
        debug_assert_eq!(store.lines().len() as u64, shape.lines());
        Self { shape, hash, facts, store, kernel: Kernel::chosen() }
    }

    /// Whether the key may have been inserted. `false` is certain.
    ///
    /// Cost: one hash; one or two cache lines (classic: two on average if absent, else k).
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
        self.shape.contains(self.kernel, self.store.lines(), hash)
    }

    /// Asks for the memory that [`contains_mixed_hash`](Self::contains_mixed_hash) or
    /// [`insert_mixed_hash`](Filter::insert_mixed_hash) will look at: for a caller who has
    /// something else to do meanwhile. It changes nothing; a classic filter, whose lines are many,
    /// does not ask.
    #[inline]
    pub fn prefetch_mixed_hash(&self, hash: u64) {
        self.shape.prefetch(self.store.lines(), hash);
    }

    /// [`contains`](Self::contains) for many keys; `found` gets an answer for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut Answers) {
        let lines = self.store.lines();
        if let (Some(words), Some(hash)) = (K::words(keys), self.hash.of_words()) {
            let hashes = Keys { words, hash };
            return self.shape.contains_batch(self.kernel, lines, hashes, found.reset(keys.len()));
        }
        hashed(keys, &self.hash, found, |hashes, found| {
            self.shape.contains_batch(self.kernel, lines, hashes, found);
        });
    }

    /// [`contains_batch`](Self::contains_batch) for hashes.
    pub fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut Answers) {
        self.shape.contains_batch(
            self.kernel,
            self.store.lines(),
            hashes,
            found.reset(hashes.len()),
        );
    }

    /// The geometry.
    #[must_use]
    pub fn shape(&self) -> G {
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
        self.shape.lines() * Line::BYTES as u64
    }

    /// Bytes of memory that the filter takes in all. A mapped file's pages are not counted.
    #[must_use]
    pub fn memory_usage(&self) -> u64 {
        self.store.memory_usage() + size_of::<Self>() as u64
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

    /// How many inserts were new.
    ///
    /// After [`union`](Filter::union) and [`intersect`](Filter::intersect) it is an estimate of the
    /// distinct keys in the result, with the standard errors of `union` and `intersection` in
    /// [`compare`](Filter::compare). If all bits of the union are set, it is the least number of
    /// keys that fill a filter of this size, after `intersect` an upper bound from the common bits.
    /// Operands of `union` that were intersected before count with their chance bits, as in
    /// [`estimated_len`](Filter::estimated_len).
    #[must_use]
    pub fn inserted(&self) -> u64 {
        self.facts.inserted
    }

    /// The false-positive rate with `keys` distinct keys, by calculation.
    #[must_use]
    pub fn expected_rate(&self, keys: u64) -> f64 {
        self.shape.rate(keys)
    }

    /// The false-positive rate that the bits give as they are now, whatever the plan was: exact
    /// for a query with a good hash, as the share of such queries that would be answered *yes*.
    ///
    /// Cost: reads the whole filter.
    #[must_use]
    pub fn estimated_rate(&self) -> f64 {
        let rate = self.shape.rate_now(self.store.lines());
        rate::either(rate, rate::hash_floor(self.estimated_len() as u64))
    }

    /// An estimate of the distinct keys inserted, from the bits that are set; infinite if all
    /// are. See [`rate::cardinality`](crate::rate::cardinality); the standard error is that of
    /// `left` in [`compare`](Self::compare).
    ///
    /// After [`intersect`](Filter::intersect) it is an upper bound: bits that different keys of the
    /// two filters set by chance stay set, and count here. [`inserted`](Self::inserted) is then the
    /// estimate without them.
    ///
    /// Cost: reads the whole filter.
    #[must_use]
    pub fn estimated_len(&self) -> f64 {
        cardinality(&self.shape, self.store.lines())
    }

    /// How many keys more it holds at the rate it was planned for, by the bits as they are now;
    /// `None` if no rate was planned. Bits that an [`intersect`](Filter::intersect) left set by
    /// chance take room like those of keys, so that this is right after set operations, too.
    ///
    /// Cost: reads the whole filter.
    #[must_use]
    pub fn capacity_left(&self) -> Option<u64> {
        if self.facts.target == 0.0 {
            return None;
        }
        let holds = self.shape.keys_at_rate(self.facts.target);
        Some(holds.saturating_sub(self.estimated_len().ceil() as u64))
    }

    /// Whether it errs more often than planned; what may come of chance passes.
    ///
    /// Cost: reads the whole filter.
    #[must_use]
    pub fn is_overfull(&self) -> bool {
        Membership::is_overfull(self)
    }

    /// The share of bits that are set.
    ///
    /// Cost: reads the whole filter.
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        fill(&self.shape, self.store.lines())
    }

    /// Whether two filters can be united or intersected: equal shape, equal hash.
    ///
    /// # Errors
    /// If they cannot; the error says in what they differ.
    pub fn check_compatible<T: Store>(&self, other: &Filter<G, T>) -> Result<()> {
        if self.shape != other.shape {
            let (ours, theirs) = (self.shape.describe(), other.shape.describe());
            return Err(Error::incompatible("shape", Plain(ours), Plain(theirs)));
        }
        if self.hash != other.hash {
            return Err(Error::incompatible("hash", self.hash, other.hash));
        }
        Ok(())
    }

    /// A copy in memory of its own.
    ///
    /// # Errors
    /// If the memory is refused.
    pub fn to_owned_filter(&self) -> Result<Filter<G>> {
        let store = Owned::copy_of(self.store.lines())?;
        Ok(Filter::over(self.shape, self.hash, self.facts, store))
    }
}

// ---- For the types that are made of it ---------------------------------------------------------

impl<G: Geometry, S> Filter<G, S> {
    /// What is known of it besides its bits.
    pub(crate) fn facts(&self) -> Facts {
        self.facts
    }

    /// As above, to be kept true by whoever changes the bits.
    pub(crate) fn facts_mut(&mut self) -> &mut Facts {
        &mut self.facts
    }

    /// The lines of bits.
    pub(crate) fn store(&self) -> &S {
        &self.store
    }

    /// As above.
    pub(crate) fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }

    /// The code that it works with.
    pub(crate) fn kernel(&self) -> Ready {
        self.kernel
    }
}

/// Text that is its own debug form.
struct Plain(String);

impl std::fmt::Debug for Plain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Keys that are hashed together, and their hashes looked at while they are in the nearest cache.
pub(crate) const HASHED: usize = 2048;

/// Hashes keys and hands the hashes on, with the words for their answers.
#[inline]
pub(crate) fn hashed<K: Key>(
    keys: &[K],
    spec: &HashSpec,
    answers: &mut Answers,
    mut take: impl FnMut(&[u64], &mut [u64]),
) {
    let mut hashes = Vec::with_capacity(HASHED.min(keys.len()));
    let words = answers.reset(keys.len()).chunks_mut(HASHED / 64);
    for (keys, words) in keys.chunks(HASHED).zip(words) {
        hashes.clear();
        spec.hash_all(keys.iter().map(Key::bytes), &mut hashes);
        take(&hashes, words);
    }
}

// ---- Changed ------------------------------------------------------------------------------------

impl<G: Geometry, S: StoreMut> Filter<G, S> {
    /// Inserts a key; whether it was new. `true` is certain; `false` means that it was inserted
    /// before, or is a false positive.
    ///
    /// Cost: one hash; one or two cache lines (classic: k).
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        self.insert_mixed_hash(key.hash_with(&self.hash))
    }

    /// [`insert`](Self::insert) for a hash made with [`hash_spec`](Self::hash_spec), or with
    /// another hash of 64 bits whose every bit is random. A plain integer is no such hash: insert
    /// it as a key.
    #[inline]
    pub fn insert_mixed_hash(&mut self, hash: u64) -> bool {
        let new = self.shape.insert(self.kernel, self.store.lines_mut(), hash);
        self.facts.inserted += u64::from(new);
        new
    }

    /// [`insert`](Self::insert) for many keys, as if one by one; `new` gets an answer for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn insert_batch<K: Key>(&mut self, keys: &[K], new: &mut Answers) {
        let lines = self.store.lines_mut();
        if let (Some(words), Some(hash)) = (K::words(keys), self.hash.of_words()) {
            let hashes = Keys { words, hash };
            self.shape.insert_batch(self.kernel, lines, hashes, new.reset(keys.len()));
        } else {
            hashed(keys, &self.hash, new, |hashes, new| {
                self.shape.insert_batch(self.kernel, lines, hashes, new)
            });
        }
        self.facts.inserted += new.count_ones();
    }

    /// [`insert_batch`](Self::insert_batch) for hashes.
    pub fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut Answers) {
        self.shape.insert_batch(
            self.kernel,
            self.store.lines_mut(),
            hashes,
            new.reset(hashes.len()),
        );
        self.facts.inserted += new.count_ones();
    }

    /// Makes this the filter of all keys that are in it or in `other`: exactly the filter that
    /// would have come of inserting both.
    ///
    /// # Errors
    /// If they are not compatible; nothing has changed then.
    pub fn union<T: Store>(&mut self, other: &Filter<G, T>) -> Result<()> {
        self.check_compatible(other)?;
        let mut ones = 0;
        for (ours, theirs) in self.store.lines_mut().iter_mut().zip(other.store.lines()) {
            *ours = ours.or(*theirs);
            ones += ours.count_ones();
        }
        let keys = cardinality_of(&self.shape, ones);
        self.facts.inserted = whole_cardinality(&self.shape, keys);
        Ok(())
    }

    /// Makes this a filter that contains all keys that are in both.
    ///
    /// It also contains keys that are in one and by chance in the other, and its false-positive
    /// rate is higher than that of a filter of just the common keys: bits that different keys set
    /// in both filters stay set. [`inserted`](Self::inserted) is the estimated number of common
    /// keys.
    ///
    /// # Errors
    /// If they are not compatible; nothing has changed then.
    pub fn intersect<T: Store>(&mut self, other: &Filter<G, T>) -> Result<()> {
        self.check_compatible(other)?;
        // The common bits do not tell the common keys: the bits of both and of their union do.
        let mut ones = [0u64; 3];
        for (ours, theirs) in self.store.lines_mut().iter_mut().zip(other.store.lines()) {
            for (ones, line) in ones.iter_mut().zip([*ours, *theirs, ours.or(*theirs)]) {
                *ones += line.count_ones();
            }
            ours.0.iter_mut().zip(theirs.0).for_each(|(ours, theirs)| *ours &= theirs);
        }
        let common = ones[0] + ones[1] - ones[2];
        let keys = ones.map(|ones| cardinality_of(&self.shape, ones));
        let keys = if keys[2].is_finite() {
            rate::overlap(keys, |keys| self.shape.cardinality_error(keys)).intersection.value
        } else {
            cardinality_of(&self.shape, common)
        };
        self.facts.inserted = whole_cardinality(&self.shape, keys);
        Ok(())
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        self.store.lines_mut().fill(Line::ZERO);
        self.facts.inserted = 0;
    }

    /// Removes the planned number of keys from the filter; its size and the planned rate stay.
    ///
    /// A filter never refuses a key. Programs that do, once the planned number is reached, accept
    /// any number then, at a false-positive rate that rises with it.
    pub fn drop_planned_keys(&mut self) {
        self.facts.planned = 0;
    }
}

impl<G: Geometry, S: Store, T: Store> PartialEq<Filter<G, T>> for Filter<G, S> {
    /// Equal shape, hash and bits. What was planned and how it came about does not count.
    fn eq(&self, other: &Filter<G, T>) -> bool {
        self.check_compatible(other).is_ok() && self.store.lines() == other.store.lines()
    }
}
