//! Filters that grow: for keys that nobody has counted.
//!
//! [`ScalableBloomFilter`] is a row of blocked Bloom filters, its *layers*. Keys go into the
//! newest; when that has the keys it was made for, it is closed, and a larger one begins. A key is
//! present if any layer has it. The rates of the layers tighten so that they sum to less than the
//! promised rate, however many there are.
//!
//! Invariants: each closed layer has been told exactly as many new keys as were planned for it,
//! the newest at most as many. A key that a layer has is put into no other. All layers see the
//! same hash of a key.
//!
//! Cost: a present key is found in the newest two layers three times out of four (growth 2); an
//! absent one is looked for in all of them, of which few are large. [`answer`] has the batches,
//! [`plan`] the series of layers.
//!
//! Source: Almeida, Baquero, Preguiça & Hutchison 2007, "Scalable Bloom filters".

mod answer;
mod builder;
mod file;
mod plan;

pub use builder::ScalableBuilder;

use crate::answers::Answers;
use crate::error::{Error, Result};
use crate::filter::{BloomFilter, hashed};
use crate::hash::HashSpec;
use crate::key::Key;
use crate::membership::Membership;
use crate::rate;
use crate::store::{Line, Owned, Store};

use answer::Asked;
use plan::Plan;

/// A Bloom filter that grows with its keys and keeps its false-positive rate.
///
/// For streams of unknown length. A guess at the number of keys helps: as long as it holds, the
/// filter takes a third more space than a [`BloomFilter`] of that size, and one cache line a key.
/// When the guess was a thousand times too low, it takes twice the space, and ten lines for an
/// absent key.
///
/// Two of them cannot be united: the layers of both would err more often than either promised.
/// Insert the keys of one into the other, or unite plain filters.
///
/// ```
/// use petal::ScalableBloomFilter;
///
/// let mut seen = ScalableBloomFilter::with_rate(1000, 0.01)?;
/// for key in 0..100_000u64 {
///     seen.insert(&key)?;
/// }
/// assert!(seen.contains(&99_999u64));
/// assert!(seen.estimated_rate() < 0.01);
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Debug)]
pub struct ScalableBloomFilter<S = Owned> {
    plan: Plan,
    hash: HashSpec,
    /// The layers that are full, oldest first.
    closed: Vec<BloomFilter<S>>,
    newest: BloomFilter<S>,
}

// ---- Made new -----------------------------------------------------------------------------------

impl ScalableBloomFilter {
    /// A filter that keeps the false-positive rate `rate` with any number of keys; `first_keys` is
    /// a guess at it, by which the first layer is made.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1, cannot be reached with 64-bit hashes, or the memory is
    /// refused.
    pub fn with_rate(first_keys: u64, rate: f64) -> Result<Self> {
        Self::builder().keys(first_keys).rate(rate).build()
    }

    /// Chooses first size, rate, growth, hash and seed one by one.
    #[must_use]
    pub fn builder() -> ScalableBuilder {
        ScalableBuilder::new()
    }

    fn empty(plan: Plan, hash: HashSpec) -> Result<Self> {
        Ok(Self { plan, hash, closed: Vec::new(), newest: plan.layer(0, hash)? })
    }
}

// ---- Asked --------------------------------------------------------------------------------------

impl<S: Store> ScalableBloomFilter<S> {
    fn newest_first(&self) -> impl Iterator<Item = &BloomFilter<S>> {
        std::iter::once(&self.newest).chain(self.closed.iter().rev())
    }

    fn oldest_first(&self) -> impl Iterator<Item = &BloomFilter<S>> {
        self.closed.iter().chain([&self.newest])
    }

    /// Whether the key may have been inserted. `false` is certain.
    ///
    /// Cost: one hash; one or two cache lines for each layer, newest first, until it is found.
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
        self.newest_first().any(|layer| layer.contains_mixed_hash(hash))
    }

    /// Asks for the memory of the newest two layers that
    /// [`contains_mixed_hash`](Self::contains_mixed_hash) will look at, where most keys are found:
    /// for a caller who has something else to do meanwhile.
    #[inline]
    pub fn prefetch_mixed_hash(&self, hash: u64) {
        self.newest.prefetch_mixed_hash(hash);
        if let Some(layer) = self.closed.last() {
            layer.prefetch_mixed_hash(hash);
        }
    }

    /// [`contains`](Self::contains) for many keys; `found` gets an answer for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut Answers) {
        let mut asked = Asked::default();
        hashed(keys, &self.hash, found, |hashes, found| self.look_for(hashes, found, &mut asked));
    }

    /// [`contains_batch`](Self::contains_batch) for hashes.
    pub fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut Answers) {
        let mut asked = Asked::default();
        let words = found.reset(hashes.len());
        for (hashes, found) in answer::runs(hashes, words) {
            self.look_for(hashes, found, &mut asked);
        }
    }

    /// The layers, oldest first.
    pub fn layer_filters(&self) -> impl Iterator<Item = &BloomFilter<S>> {
        self.oldest_first()
    }

    /// How many layers there are.
    #[must_use]
    pub fn layers(&self) -> u32 {
        self.closed.len() as u32 + 1
    }

    /// How many new keys the newest layer still takes, after which there will be another.
    #[must_use]
    pub fn layer_capacity_left(&self) -> u64 {
        self.newest.planned_keys().saturating_sub(self.newest.inserted())
    }

    /// How keys become hashes.
    #[must_use]
    pub fn hash_spec(&self) -> HashSpec {
        self.hash
    }

    /// Bytes that its data take in a file: the bits of all layers, and a line for each of them.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.oldest_first().map(|layer| layer.size_bytes() + Line::BYTES as u64).sum()
    }

    /// Bytes of memory that the filter takes in all. A mapped file's pages are not counted.
    #[must_use]
    pub fn memory_usage(&self) -> u64 {
        let lines: u64 = self.oldest_first().map(|layer| layer.store().memory_usage()).sum();
        let row = self.closed.capacity() * size_of::<BloomFilter<S>>();
        lines + row as u64 + size_of::<Self>() as u64
    }

    /// Keys that the first layer was made for.
    #[must_use]
    pub fn planned_keys(&self) -> u64 {
        self.plan.first()
    }

    /// Keys that all layers there are were made for: beyond that it grows.
    #[must_use]
    pub fn planned_total(&self) -> u64 {
        self.oldest_first().map(BloomFilter::planned_keys).fold(0, u64::saturating_add)
    }

    /// How many times the keys of the layer before it a layer holds, a head start aside.
    #[must_use]
    pub fn growth(&self) -> u64 {
        self.plan.growth()
    }

    /// The number of parts of the rate of which one is kept for the layers after the first; `None`
    /// if all layers share it by the usual series ([`ScalableBuilder::growth_share`]).
    #[must_use]
    pub fn growth_share(&self) -> Option<u64> {
        Some(self.plan.growth_share()).filter(|parts| *parts > 0)
    }

    /// The part of the promised rate that layer `layer` may use, from 0, the oldest.
    #[must_use]
    pub fn layer_share(&self, layer: u32) -> f64 {
        self.plan.share(layer)
    }

    /// Keys that all layers hold, those that are there and those to come, as long as they take no
    /// more than so many bytes of memory together.
    ///
    /// Cost: up to a millisecond for each layer to come.
    #[must_use]
    pub fn capacity_within(&self, bytes: u64) -> u64 {
        let (mut keys, mut memory) = (self.planned_total(), self.memory_usage());
        for layer in self.layers()..plan::MOST_LAYERS as u32 {
            let (Ok(shape), Ok(facts)) = (self.plan.shape(layer), self.plan.facts(layer)) else {
                break;
            };
            let more = shape.size_bytes() + size_of::<BloomFilter>() as u64;
            memory = memory.saturating_add(more);
            if memory > bytes {
                break;
            }
            keys = keys.saturating_add(facts.planned);
        }
        keys
    }

    /// Bytes of memory that the next layer will take, up to a page more if it is a large one: for
    /// those who have a limit to keep.
    ///
    /// Cost: that of choosing the layer's shape, up to a millisecond.
    ///
    /// # Errors
    /// If no layer more can be, as [`insert`](Self::insert) will say when one is needed.
    pub fn next_layer_bytes(&self) -> Result<u64> {
        let bits = self.plan.shape(self.layers())?.size_bytes();
        Ok(bits.saturating_add(size_of::<BloomFilter>() as u64))
    }

    /// The false-positive rate it keeps.
    #[must_use]
    pub fn target_rate(&self) -> f64 {
        self.plan.rate()
    }

    /// How many inserts were new.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        self.oldest_first().map(BloomFilter::inserted).fold(0, u64::saturating_add)
    }

    /// The false-positive rate with `keys` distinct keys, by calculation: as many layers as they
    /// need, those that are not there yet included. 1 if no layers hold so many at the rate.
    ///
    /// Cost: about a millisecond for each layer that is not there yet.
    #[must_use]
    pub fn expected_rate(&self, keys: u64) -> f64 {
        let there = |layer: u32| self.oldest_first().nth(layer as usize).map(BloomFilter::shape);
        self.plan.expected_rate(keys, there)
    }

    /// The false-positive rate that the bits give as they are now: that of any layer.
    ///
    /// Cost: reads the whole filter.
    #[must_use]
    pub fn estimated_rate(&self) -> f64 {
        rate::any_of(self.oldest_first().map(BloomFilter::estimated_rate))
    }

    /// An estimate of the distinct keys inserted, from the bits that are set: the sum over all
    /// layers, and the keys that a layer missed because an older one seemed to have them.
    ///
    /// Cost: reads the whole filter.
    #[must_use]
    pub fn estimated_len(&self) -> f64 {
        let (mut len, mut none) = (0.0, 1.0);
        for layer in self.oldest_first() {
            len += layer.estimated_len() / none;
            // Damaged data that nobody has verified may have all bits set.
            none *= (1.0 - layer.estimated_rate()).max(f64::MIN_POSITIVE);
        }
        len
    }

    /// The share of bits that are set.
    ///
    /// Cost: reads the whole filter.
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        let set = |layer: &BloomFilter<S>| layer.fill_ratio() * layer.size_bytes() as f64;
        let bytes: u64 = self.oldest_first().map(BloomFilter::size_bytes).sum();
        self.oldest_first().map(set).sum::<f64>() / bytes as f64
    }

    /// Whether it errs more often than planned, which it does not unless hashes are bad; what may
    /// come of chance passes.
    ///
    /// Cost: reads the whole filter.
    #[must_use]
    pub fn is_overfull(&self) -> bool {
        Membership::is_overfull(self)
    }

    /// A copy in memory of its own.
    ///
    /// # Errors
    /// If the memory is refused.
    pub fn to_owned_filter(&self) -> Result<ScalableBloomFilter> {
        let closed = self.closed.iter().map(BloomFilter::to_owned_filter).collect::<Result<_>>()?;
        let newest = self.newest.to_owned_filter()?;
        Ok(ScalableBloomFilter { plan: self.plan, hash: self.hash, closed, newest })
    }
}

// ---- Changed ------------------------------------------------------------------------------------

impl ScalableBloomFilter {
    /// Inserts a key; whether it was new. `true` is certain; `false` means that it was inserted
    /// before, or is a false positive.
    ///
    /// Cost: as [`contains`](Self::contains); when the newest layer is full, the making of
    /// another, which reads nothing.
    ///
    /// # Errors
    /// If another layer is needed and its memory is refused, its rate cannot be reached with
    /// 64-bit hashes, or there are 64 layers already. The filter is as it was, and still answers.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool> {
        self.insert_mixed_hash(key.hash_with(&self.hash))
    }

    /// [`insert`](Self::insert) for a hash made with [`hash_spec`](Self::hash_spec), or with
    /// another hash of 64 bits whose every bit is random. A plain integer is no such hash: insert
    /// it as a key.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn insert_mixed_hash(&mut self, hash: u64) -> Result<bool> {
        if self.contains_mixed_hash(hash) {
            return Ok(false);
        }
        if self.layer_capacity_left() == 0 {
            self.grow()?;
        }
        Ok(self.newest.insert_mixed_hash(hash))
    }

    /// [`insert`](Self::insert) for many keys, as if one by one; `new` gets an answer for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    ///
    /// # Errors
    /// As [`insert`](Self::insert); the keys before the one that was refused are in the filter.
    pub fn insert_batch<K: Key>(&mut self, keys: &[K], new: &mut Answers) -> Result<()> {
        let mut asked = Asked::default();
        let mut outcome = Ok(());
        let hash = self.hash;
        hashed(keys, &hash, new, |hashes, new| {
            if outcome.is_ok() {
                outcome = self.insert_run(hashes, new, &mut asked);
            }
        });
        outcome
    }

    /// [`insert_batch`](Self::insert_batch) for hashes.
    ///
    /// # Errors
    /// As [`insert_batch`](Self::insert_batch).
    pub fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut Answers) -> Result<()> {
        let mut asked = Asked::default();
        let words = new.reset(hashes.len());
        answer::runs(hashes, words)
            .try_for_each(|(hashes, new)| self.insert_run(hashes, new, &mut asked))
    }

    /// Closes the newest layer and begins another.
    #[cold]
    fn grow(&mut self) -> Result<()> {
        let next = self.plan.layer(self.layers(), self.hash)?;
        let refused = |_| Error::alloc(size_of::<BloomFilter>() as u64);
        self.closed.try_reserve(1).map_err(refused)?;
        self.closed.push(std::mem::replace(&mut self.newest, next));
        Ok(())
    }

    /// Forgets all keys, and all layers but the first.
    pub fn clear(&mut self) {
        let mut layers = std::mem::take(&mut self.closed).into_iter();
        if let Some(first) = layers.next() {
            self.newest = first;
        }
        self.newest.clear();
    }
}

impl<S: Store, T: Store> PartialEq<ScalableBloomFilter<T>> for ScalableBloomFilter<S> {
    /// Equal plan, hash, layers and bits.
    fn eq(&self, other: &ScalableBloomFilter<T>) -> bool {
        self.plan == other.plan
            && self.hash == other.hash
            && self.layers() == other.layers()
            && self.oldest_first().zip(other.oldest_first()).all(|(ours, theirs)| ours == theirs)
    }
}
