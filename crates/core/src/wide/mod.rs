//! Filters on 128-bit hashes, for rates that 64 bits cannot promise.
//!
//! A filter on 64-bit hashes says *yes* to n/2⁶⁴ of all absent keys whatever its size, since their
//! hash is that of some key: with 10¹⁰ keys that is 5·10⁻¹⁰. A [`WideBloomFilter`] is two
//! [`BloomFilter`]s of equal shape, one on the low and one on the high word of a 128-bit hash,
//! each with the square root of the rate. A key is present if it is in both.
//!
//! Invariants: both have the same shape and the same, wide, hash; whatever goes into one goes into
//! the other.
//!
//! Cost: an insert is two inserts. A query of an absent key asks one filter, but for one in a
//! great many.
//!
//! Source: the arithmetic is in `rate::wide`; docs/design.md, "Wide filters", has the roads not
//! taken.

mod builder;
mod file;

pub use builder::WideBuilder;

use crate::answers::Answers;
use crate::error::{Error, Result};
use crate::filter::{BloomFilter, Facts, Filter, hashed};
use crate::hash::HashSpec;
use crate::key::Key;
use crate::rate;
use crate::shape::Shape;
use crate::store::{Owned, Store, StoreMut};

/// A Bloom filter on 128-bit hashes: for rates below what 64 bits can promise, which is twice
/// n/2⁶⁴ for n keys (1e-9 for 10 billion).
///
/// ```
/// use petal::WideBloomFilter;
///
/// let mut seen = WideBloomFilter::with_rate(1_000, 1e-18)?;
/// assert!(seen.insert("one") && !seen.insert("one"));
/// assert!(seen.contains("one") && !seen.contains("two"));
/// # Ok::<_, petal::Error>(())
/// ```
///
/// Where 64 bits do, a [`BloomFilter`] takes less time; in space this one is the smaller from rates
/// of about 1e-6 down.
#[derive(Debug)]
pub struct WideBloomFilter<S = Owned> {
    /// On the low words of the hashes.
    low: BloomFilter<S>,
    /// On the high ones.
    high: BloomFilter<S>,
    facts: Facts,
}

/// Keys that are looked for together: a multiple of 64.
const CHUNK: usize = 2048;

// ---- Made new -----------------------------------------------------------------------------------

impl WideBloomFilter {
    /// The smallest such filter that keeps the false-positive rate `rate` with `keys` keys.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1, cannot be reached with 128-bit hashes either (it is
    /// below 4 (n/2⁶⁴)²), or the memory is refused.
    pub fn with_rate(keys: u64, rate: f64) -> Result<Self> {
        Self::builder().keys(keys).rate(rate).build()
    }

    /// The filter with the best rate for `keys` keys in at most `bytes` of memory.
    ///
    /// # Errors
    /// If that is less than 128 bytes, or the memory is refused.
    pub fn with_memory(bytes: u64, keys: u64) -> Result<Self> {
        Self::builder().keys(keys).memory(bytes).build()
    }

    /// Chooses size, hash and seed one by one.
    #[must_use]
    pub fn builder() -> WideBuilder {
        WideBuilder::new()
    }

    fn empty(shape: Shape, hash: HashSpec, facts: Facts) -> Result<Self> {
        hash.check_words(2)?;
        let half = || Filter::empty(shape, hash, Facts::default());
        Ok(Self { low: half()?, high: half()?, facts })
    }
}

// ---- Asked --------------------------------------------------------------------------------------

impl<S: Store> WideBloomFilter<S> {
    /// Whether the key may have been inserted. `false` is certain.
    ///
    /// Cost: one hash; one or two cache lines, for a key that is present twice as many.
    #[inline]
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_mixed_hash(self.hash_spec().hash_wide(key.bytes().as_ref()))
    }

    /// [`contains`](Self::contains) for a hash made with [`hash_spec`](Self::hash_spec), or with
    /// another hash of 128 bits whose every bit is random. A plain integer is no such hash: insert
    /// it as a key. The low word comes first.
    #[inline]
    #[must_use]
    pub fn contains_mixed_hash(&self, [low, high]: [u64; 2]) -> bool {
        self.low.contains_mixed_hash(low) && self.high.contains_mixed_hash(high)
    }

    /// [`contains`](Self::contains) for many keys; `found` gets an answer for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut Answers) {
        let mut room = Room::default();
        hashed(keys, &self.hash_spec(), found, |hashes, found| self.look(hashes, found, &mut room));
    }

    /// [`contains_batch`](Self::contains_batch) for hashes: two words for each key, the low one
    /// first.
    pub fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut Answers) {
        let mut room = Room::default();
        let answers = found.reset(hashes.len() / 2).chunks_mut(CHUNK / 64);
        for (hashes, found) in hashes.chunks(2 * CHUNK).zip(answers) {
            self.look(hashes, found, &mut room);
        }
    }

    /// The keys that the first filter lets pass are asked of the second.
    fn look(&self, hashes: &[u64], found: &mut [u64], room: &mut Room) {
        let (hashes, _) = hashes.as_chunks::<2>();
        room.take(hashes.iter().map(|[low, _]| *low));
        self.low.contains_mixed_hashes(&room.words, &mut room.answers);
        room.passed.clear();
        room.passed.extend(room.answers.iter());
        room.words.clear();
        room.words.extend(room.passed.iter().map(|&at| hashes[at][1]));
        self.high.contains_mixed_hashes(&room.words, &mut room.answers);
        for at in room.answers.iter().map(|at| room.passed[at]) {
            found[at / 64] |= 1 << (at % 64);
        }
    }

    /// The geometry of each of the two filters.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.low.shape()
    }

    /// How keys become hashes, of two words.
    #[must_use]
    pub fn hash_spec(&self) -> HashSpec {
        self.low.hash_spec()
    }

    /// Bytes that the bits of both filters take.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.low.size_bytes() + self.high.size_bytes()
    }

    /// Bytes of memory that the filter takes in all. A mapped file's pages are not counted.
    #[must_use]
    pub fn memory_usage(&self) -> u64 {
        let halves = self.low.memory_usage() + self.high.memory_usage();
        let around = size_of::<Self>() - 2 * size_of::<BloomFilter<S>>();
        halves + around as u64
    }

    /// Keys it was planned for; 0 if there was no plan.
    #[must_use]
    pub fn planned_keys(&self) -> u64 {
        self.facts.planned
    }

    /// The false-positive rate it was planned for; 0 if there was no plan.
    #[must_use]
    pub fn target_rate(&self) -> f64 {
        self.facts.target
    }

    /// How many inserts were new. After [`union`](Self::union) and
    /// [`intersect`](Self::intersect) it is an estimate of the distinct keys in the result, the
    /// mean of those of both halves: see [`Filter::inserted`].
    #[must_use]
    pub fn inserted(&self) -> u64 {
        self.facts.inserted
    }

    /// The false-positive rate with `keys` distinct keys, by calculation: see
    /// [`rate::wide`](crate::rate::wide).
    #[must_use]
    pub fn expected_rate(&self, keys: u64) -> f64 {
        let shape = self.shape();
        rate::wide(keys, shape.blocks(), shape.lanes(), shape.probes())
    }

    /// The false-positive rate that the bits give as they are now.
    ///
    /// Cost: reads the whole filter.
    #[must_use]
    pub fn estimated_rate(&self) -> f64 {
        self.low.estimated_rate() * self.high.estimated_rate()
    }

    /// An estimate of the distinct keys inserted: the mean of what both filters tell; infinite if
    /// all bits of one are set. After [`intersect`](Self::intersect) an upper bound, as in
    /// [`Filter::estimated_len`].
    ///
    /// Cost: reads the whole filter.
    #[must_use]
    pub fn estimated_len(&self) -> f64 {
        (self.low.estimated_len() + self.high.estimated_len()) / 2.0
    }

    /// How many keys more it holds at the rate it was planned for, by the bits as they are now;
    /// `None` if no rate was planned.
    ///
    /// Cost: reads the whole filter.
    #[must_use]
    pub fn capacity_left(&self) -> Option<u64> {
        if self.facts.target == 0.0 {
            return None;
        }
        let holds = self.shape().keys_at_rate(rate::wide_half(self.facts.target));
        Some(holds.saturating_sub(self.estimated_len().ceil() as u64))
    }

    /// Whether it errs more often than planned; what may come of chance passes.
    ///
    /// Cost: reads the whole filter.
    #[must_use]
    pub fn is_overfull(&self) -> bool {
        // That of each half is the root of the rate.
        let (target, now) = (self.facts.target.sqrt(), self.estimated_rate().sqrt());
        rate::overfull(target, now, self.size_bytes() * 4)
    }

    /// The share of bits that are set.
    ///
    /// Cost: reads the whole filter.
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        (self.low.fill_ratio() + self.high.fill_ratio()) / 2.0
    }

    /// Whether two filters can be united or intersected: equal shape, equal hash.
    ///
    /// # Errors
    /// If they cannot; the error says in what they differ.
    pub fn check_compatible<T: Store>(&self, other: &WideBloomFilter<T>) -> Result<()> {
        self.low.check_compatible(&other.low)
    }

    /// A copy in memory of its own.
    ///
    /// # Errors
    /// If the memory is refused.
    pub fn to_owned_filter(&self) -> Result<WideBloomFilter> {
        let (low, high) = (self.low.to_owned_filter()?, self.high.to_owned_filter()?);
        Ok(WideBloomFilter { low, high, facts: self.facts })
    }
}

/// What a batch needs beside its answers, kept from chunk to chunk.
#[derive(Default)]
struct Room {
    /// Words of hashes, of one of the two filters.
    words: Vec<u64>,
    /// Keys that the first filter let pass, by their place in the chunk.
    passed: Vec<usize>,
    answers: Answers,
}

impl Room {
    fn take(&mut self, words: impl Iterator<Item = u64>) {
        self.words.clear();
        self.words.extend(words);
    }
}

// ---- Changed ------------------------------------------------------------------------------------

impl<S: StoreMut> WideBloomFilter<S> {
    /// Inserts a key; whether it was new. `true` is certain; `false` means that it was inserted
    /// before, or is a false positive.
    ///
    /// Cost: one hash; two or four cache lines.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        self.insert_mixed_hash(self.hash_spec().hash_wide(key.bytes().as_ref()))
    }

    /// [`insert`](Self::insert) for a hash made with [`hash_spec`](Self::hash_spec), or with
    /// another hash of 128 bits whose every bit is random. A plain integer is no such hash: insert
    /// it as a key. The low word comes first.
    #[inline]
    pub fn insert_mixed_hash(&mut self, [low, high]: [u64; 2]) -> bool {
        // Both, whatever the first says.
        let new = self.low.insert_mixed_hash(low) | self.high.insert_mixed_hash(high);
        self.facts.inserted += u64::from(new);
        new
    }

    /// [`insert`](Self::insert) for many keys, as if one by one; `new` gets an answer for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn insert_batch<K: Key>(&mut self, keys: &[K], new: &mut Answers) {
        let mut room = Room::default();
        let spec = self.hash_spec();
        hashed(keys, &spec, new, |hashes, new| self.put(hashes, new, &mut room));
        self.facts.inserted += new.count_ones();
    }

    /// [`insert_batch`](Self::insert_batch) for hashes: two words for each key, the low one first.
    pub fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut Answers) {
        let mut room = Room::default();
        let answers = new.reset(hashes.len() / 2).chunks_mut(CHUNK / 64);
        for (hashes, new) in hashes.chunks(2 * CHUNK).zip(answers) {
            self.put(hashes, new, &mut room);
        }
        self.facts.inserted += new.count_ones();
    }

    /// Into one filter and into the other. What one says of a key does not depend on the other, so
    /// that this is as good as key by key.
    fn put(&mut self, hashes: &[u64], new: &mut [u64], room: &mut Room) {
        let (hashes, _) = hashes.as_chunks::<2>();
        for (half, filter) in [&mut self.low, &mut self.high].into_iter().enumerate() {
            room.take(hashes.iter().map(|words| words[half]));
            filter.insert_mixed_hashes(&room.words, &mut room.answers);
            for (new, more) in new.iter_mut().zip(room.answers.as_words()) {
                *new |= more;
            }
        }
    }

    /// Makes this the filter of all keys that are in it or in `other`: exactly the filter that
    /// would have come of inserting both.
    ///
    /// # Errors
    /// If they are not compatible; nothing has changed then.
    pub fn union<T: Store>(&mut self, other: &WideBloomFilter<T>) -> Result<()> {
        self.check_compatible(other)?;
        self.low.union(&other.low)?;
        self.high.union(&other.high)?;
        self.facts.inserted = self.mean_inserted();
        Ok(())
    }

    /// Makes this a filter that contains all keys that are in both, and by chance others: see
    /// [`Filter::intersect`].
    ///
    /// # Errors
    /// If they are not compatible; nothing has changed then.
    pub fn intersect<T: Store>(&mut self, other: &WideBloomFilter<T>) -> Result<()> {
        self.check_compatible(other)?;
        self.low.intersect(&other.low)?;
        self.high.intersect(&other.high)?;
        self.facts.inserted = self.mean_inserted();
        Ok(())
    }

    /// What both halves estimated after a set operation.
    fn mean_inserted(&self) -> u64 {
        self.low.inserted().midpoint(self.high.inserted())
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        self.low.clear();
        self.high.clear();
        self.facts.inserted = 0;
    }
}

impl<S: Store, T: Store> PartialEq<WideBloomFilter<T>> for WideBloomFilter<S> {
    /// Equal shape, hash and bits. What was planned and how it came about does not count.
    fn eq(&self, other: &WideBloomFilter<T>) -> bool {
        self.low == other.low && self.high == other.high
    }
}

/// The geometry of both halves in words.
pub(crate) fn describe(half: Shape) -> String {
    let (blocks, bits, probes) = (half.blocks(), half.lanes() * 64, half.probes());
    format!("two filters of {blocks} blocks of {bits} bits, {probes} probes in each")
}

/// A promise that two filters can keep together; what each is to keep.
fn half_rate(keys: u64, rate: f64) -> Result<f64> {
    if !(rate > 0.0 && rate < 1.0) {
        return Err(Error::rate(rate));
    }
    let (keys, half) = (keys.max(1), rate::wide_half(rate));
    // Each filter wants its own floor to be at most half of its rate.
    if rate::hash_floor(keys) > half / 2.0 {
        return Err(Error::unattainable_wide(keys, rate, rate::wide_floor(keys)));
    }
    Ok(half)
}
