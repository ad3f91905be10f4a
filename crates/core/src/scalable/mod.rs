//! Bloom filters that grow, for an unknown number of keys.
//!
//! A [`ScalableBloomFilter`] is a list of blocked Bloom filters, its *layers*. Keys are inserted into
//! the newest layer; when that is full, it is closed and a larger layer is added. A key is present
//! if any layer contains it. The rates of the layers decrease so that their sum stays below the
//! target rate, however many layers there are.
//!
//! Invariants: each closed layer had exactly as many new keys as its capacity, the newest at most as
//! many. A key that a layer contains is not inserted into another. All layers use the same hash of
//! a key.
//!
//! Cost: a present key is found in the newest two layers three times out of four (growth 2); an
//! absent key is looked up in all layers, of which few are large. [`batch`] has the batches,
//! [`plan`] the sizes and rates of layers.
//!
//! Source: Almeida, Baquero, Preguiça & Hutchison 2007, "Scalable Bloom filters".

#[cfg(not(feature = "std"))]
use crate::no_std::*;
mod batch;
mod file;
mod layer;
mod membership;
pub(crate) mod plan;
mod size;

pub(crate) use size::dimensions;

use crate::batch::{for_each_chunk, try_for_each_chunk};
use crate::byte_size::ByteSize;
use crate::error::{Error, Result};
use crate::filter::{BloomFilter, FilterInfo};
use crate::format::kind::FilterType;
use crate::key::Key;
use crate::membership::Membership as _;
use crate::results::BatchResults;
use crate::spec::Builder;
use crate::store::{Borrowed, Owned, Store};

use batch::PendingKeys;
use layer::Layer;
use plan::LayerPlan;

/// A Bloom filter that grows with its keys and keeps its false-positive rate.
///
/// For streams of unknown length. An estimate of the number of keys helps: up to that number the
/// filter takes a third more space than a [`BloomFilter`], and one cache line per key. With a
/// thousand times as many keys it takes twice the space, and ten lines for an absent key.
///
/// Scalable filters have no union, because the layers of both together exceed the target rate.
/// Insert the keys of one into the other, or use plain filters.
///
/// ```
/// use petal::ScalableBloomFilter;
///
/// let mut seen = ScalableBloomFilter::with_fpr(1000, 0.01)?;
/// for key in 0..100_000u64 {
///     seen.insert(&key)?;
/// }
/// assert!(seen.contains(&99_999u64));
/// assert!(seen.stats().estimated_fpr < 0.01);
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ScalableBloomFilter<S = Owned> {
    plan: LayerPlan,
    /// How many new keys the newest layer takes before it is full.
    left: u64,
    /// The full layers, oldest first.
    closed: Box<[Layer<S>]>,
    newest: Layer<S>,
}

// ---- Constructors -------------------------------------------------------------------------------

impl ScalableBloomFilter {
    /// Creates a filter with a false-positive rate of at most `fpr` for any number of keys, as far as
    /// 64-bit hashes reach it: see [`keeps_fpr`](Self::keeps_fpr). The first layer is made for
    /// `capacity` keys.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1 or cannot be reached with 64-bit hashes, or memory
    /// allocation fails.
    pub fn with_fpr(capacity: u64, fpr: f64) -> Result<Self> {
        Self::builder().capacity(capacity).fpr(fpr).build()
    }

    /// Returns a builder, which chooses the first size, rate, growth, hash and seed separately.
    #[must_use]
    pub fn builder() -> Builder<Self> {
        Builder::new(FilterType::Scalable)
    }

    pub(crate) fn empty(plan: LayerPlan) -> Result<Self> {
        let newest = Layer::empty(plan.layout(0)?)?;
        Ok(Self { plan, left: plan.first(), closed: Box::default(), newest })
    }
}

// ---- Queries ------------------------------------------------------------------------------------

impl<S: Store> ScalableBloomFilter<S> {
    fn newest_first(&self) -> impl Iterator<Item = &Layer<S>> {
        core::iter::once(&self.newest).chain(self.closed.iter().rev())
    }

    fn oldest_first(&self) -> impl Iterator<Item = &Layer<S>> {
        self.closed.iter().chain([&self.newest])
    }

    /// Returns how many new keys each layer has, oldest first.
    fn layer_lens(&self) -> impl Iterator<Item = u64> {
        let newest = self.layers() - 1;
        (0..=newest).map(move |layer| {
            let left = if layer == newest { self.left } else { 0 };
            self.plan.keys(layer).unwrap_or(u64::MAX) - left
        })
    }

    /// Returns true if the key may have been inserted, false if it certainly was not.
    ///
    /// Cost: one hash; one or two cache lines for each layer, newest first, until it is found.
    #[inline]
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_mixed_hash(key.hash_with(&self.plan.hash()))
    }

    /// [`contains`](Self::contains) for a hash made with [`hash_spec`](crate::Membership::hash_spec), or
    /// with another 64-bit hash function whose every output bit is random. Plain integers are not
    /// such hashes: insert them as keys.
    #[inline]
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn contains_mixed_hash(&self, hash: u64) -> bool {
        self.newest_first().any(|layer| layer.contains_mixed_hash(hash))
    }

    /// Prefetches the memory of the newest two layers, where most keys are found, that
    /// [`contains_mixed_hash`](Self::contains_mixed_hash) will access.
    #[inline]
    #[doc(hidden)] // For the crates of this repository.
    pub fn prefetch_mixed_hash(&self, hash: u64) {
        self.newest.prefetch_mixed_hash(hash);
        if let Some(layer) = self.closed.last() {
            layer.prefetch_mixed_hash(hash);
        }
    }

    /// [`contains`](Self::contains) for many keys; `found` has one result for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut BatchResults) {
        let mut pending = PendingKeys::default();
        for_each_chunk(keys, &self.plan.hash(), found, |hashes, found| {
            self.contains_run(hashes, found, &mut pending);
        });
    }

    /// Returns the layers as filters of their own, oldest first.
    #[doc(hidden)] // For the crates of this repository.
    pub fn layer_filters(&self) -> impl DoubleEndedIterator<Item = BloomFilter<Borrowed<'_>>> {
        let filters: Vec<_> = (0..)
            .zip(self.oldest_first().zip(self.layer_lens()))
            .map(|(at, (layer, inserted))| {
                let planned = self.plan.info(at).unwrap_or(FilterInfo::planned(0, 0.0));
                layer.view(self.plan.hash(), FilterInfo { inserted, ..planned })
            })
            .collect();
        filters.into_iter()
    }

    /// Returns the number of layers.
    #[must_use]
    pub fn layers(&self) -> u32 {
        self.closed.len() as u32 + 1
    }

    /// Returns how many new keys the newest layer takes before the next layer is added.
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn layer_capacity_left(&self) -> u64 {
        self.left
    }

    /// Returns the sum of the capacities of all layers. The filter grows beyond that number of keys.
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn total_capacity(&self) -> u64 {
        (0..self.layers())
            .map(|layer| self.plan.keys(layer).unwrap_or(u64::MAX))
            .fold(0, u64::saturating_add)
    }

    /// Returns the ratio of the capacities of a layer and the layer before it, except during a
    /// [head start](Builder::head_start).
    #[must_use]
    pub fn growth(&self) -> u64 {
        self.plan.growth().factor
    }

    /// Returns the number of parts of the rate of which one is reserved for the layers after the
    /// first; `None` without a [`growth_share`](Builder::growth_share).
    #[must_use]
    pub fn growth_share(&self) -> Option<u64> {
        self.plan.growth().share
    }

    /// Returns the share of the target rate that layer `layer` may use. The oldest layer is 0.
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn layer_share(&self, layer: u32) -> f64 {
        self.plan.share(layer)
    }

    /// Returns whether the layers keep the target rate when they are full. False only if that rate is
    /// very low and the keys are very many: 64-bit hashes do not reach the shares of the newest layers, which have
    /// the rate that is possible. From the default first layer it is true up to 2 million keys at 10⁻¹², 260
    /// million at 10⁻⁹.
    #[must_use]
    pub fn keeps_fpr(&self) -> bool {
        self.plan.keeps_fpr(self.layers())
    }

    /// Returns the number of keys that fit into `memory`, in the present layers and those to come.
    ///
    /// Cost: up to a millisecond for each layer to come.
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn capacity_within(&self, memory: ByteSize) -> u64 {
        let (mut keys, mut bytes) = (self.total_capacity(), self.memory_usage());
        for layer in self.layers()..plan::MAX_LAYERS as u32 {
            let (Ok(layout), Ok(info)) = (self.plan.layout(layer), self.plan.info(layer)) else {
                break;
            };
            let layer_bytes = layout.size_bytes() + size_of::<Layer<Owned>>() as u64;
            bytes = bytes.saturating_add(layer_bytes);
            if bytes > memory.as_u64() {
                break;
            }
            keys = keys.saturating_add(info.capacity);
        }
        keys
    }

    /// Returns the memory in bytes that the next layer will take; a large layer may take up to a
    /// page more. For programs with a memory limit.
    ///
    /// Cost: up to a millisecond, to choose the layout of the layer.
    ///
    /// # Errors
    /// If the filter cannot have another layer.
    #[doc(hidden)] // For the crates of this repository.
    pub fn next_layer_bytes(&self) -> Result<u64> {
        let bits = self.plan.layout(self.layers())?.size_bytes();
        Ok(bits.saturating_add(size_of::<Layer<Owned>>() as u64))
    }

    /// Copies the filter into memory of its own: see
    /// [`Filter::try_clone`](crate::Filter::try_clone).
    ///
    /// # Errors
    /// If memory allocation fails.
    pub fn try_clone(&self) -> Result<ScalableBloomFilter> {
        let mut closed = reserved(self.closed.len())?;
        for layer in &self.closed {
            closed.push(layer.try_clone()?);
        }
        let (closed, newest) = (closed.into(), self.newest.try_clone()?);
        Ok(ScalableBloomFilter { plan: self.plan, left: self.left, closed, newest })
    }
}

// ---- Changes ------------------------------------------------------------------------------------

impl ScalableBloomFilter {
    /// Inserts a key and returns true if it was new. False means that it was inserted before or is
    /// a false positive.
    ///
    /// Cost: as [`contains`](Self::contains). When the newest layer is full, memory for another
    /// layer is allocated.
    ///
    /// # Errors
    /// If another layer is needed and its memory cannot be allocated, or there are 64 layers. The filter
    /// is then unchanged.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool> {
        self.insert_mixed_hash(key.hash_with(&self.plan.hash()))
    }

    /// [`insert`](Self::insert) for a hash made with [`hash_spec`](crate::Membership::hash_spec), or with
    /// another 64-bit hash function whose every output bit is random. Plain integers are not such
    /// hashes: insert them as keys.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    #[inline]
    #[doc(hidden)] // For the crates of this repository.
    pub fn insert_mixed_hash(&mut self, hash: u64) -> Result<bool> {
        if self.contains_mixed_hash(hash) {
            return Ok(false);
        }
        if self.left == 0 {
            self.grow()?;
        }
        let new = self.newest.insert_mixed_hash(hash);
        self.left -= u64::from(new);
        Ok(new)
    }

    /// [`insert`](Self::insert) for many keys in order; `new` has one result for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    ///
    /// # Errors
    /// As [`insert`](Self::insert). The keys before the one that failed are in the filter.
    pub fn insert_batch<K: Key>(&mut self, keys: &[K], new: &mut BatchResults) -> Result<()> {
        let mut pending = PendingKeys::default();
        let spec = self.plan.hash();
        try_for_each_chunk(keys, &spec, new, |hashes, new| {
            self.insert_run(hashes, new, &mut pending)
        })
    }

    /// [`insert_batch`](Self::insert_batch) for hashes.
    ///
    /// # Errors
    /// As [`insert_batch`](Self::insert_batch).
    #[doc(hidden)] // For the crates of this repository.
    pub fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut BatchResults) -> Result<()> {
        let mut pending = PendingKeys::default();
        let words = new.reset(hashes.len());
        batch::runs(hashes, words)
            .try_for_each(|(hashes, new)| self.insert_run(hashes, new, &mut pending))
    }

    /// Closes the newest layer and adds another.
    #[cold]
    fn grow(&mut self) -> Result<()> {
        let (info, layout) = (self.plan.info(self.layers())?, self.plan.layout(self.layers())?);
        let next = Layer::empty(layout)?;
        let mut closed = reserved(self.closed.len() + 1)?;
        closed.extend(core::mem::take(&mut self.closed));
        closed.push(core::mem::replace(&mut self.newest, next));
        (self.closed, self.left) = (closed.into(), info.capacity);
        Ok(())
    }

    /// Removes all keys, and all layers but the first.
    pub fn clear(&mut self) {
        if let Some(first) = core::mem::take(&mut self.closed).into_iter().next() {
            self.newest = first;
        }
        self.newest.clear();
        self.left = self.plan.first();
    }
}

/// Returns an empty vector for just these layers: spare entries would not fit into a box.
fn reserved<S>(layers: usize) -> Result<Vec<Layer<S>>> {
    let mut reserved = Vec::new();
    let refused = |_| Error::alloc((layers * size_of::<Layer<S>>()) as u64);
    reserved.try_reserve_exact(layers).map_err(refused)?;
    Ok(reserved)
}

impl<S: Store, T: Store> PartialEq<ScalableBloomFilter<T>> for ScalableBloomFilter<S> {
    /// Compares plan, layers and bits.
    fn eq(&self, other: &ScalableBloomFilter<T>) -> bool {
        self.plan == other.plan
            && self.layers() == other.layers()
            && self
                .oldest_first()
                .zip(other.oldest_first())
                .all(|(ours, theirs)| ours.equals(theirs))
    }
}
