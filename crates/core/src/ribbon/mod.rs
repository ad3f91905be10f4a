//! Filters made once of all their keys, near the least space there can be.
//!
//! A [`StaticFilter`] stores no bits of keys but a system of linear equations solved: each key's
//! equation over a few neighbouring bits gives its fingerprint, and that of anything else gives
//! it by chance. What is asked is in the room `kernel`; here is how it is made and kept.
//!
//! Invariants: cuts and rows have exactly the lines of the layout. Every hash it was built of is
//! contained.

mod build;
mod builder;
mod file;
mod layout;
mod solve;

use std::num::NonZeroUsize;

use crate::answers::Answers;
use crate::error::Result;
pub(crate) use crate::format::header::Facts;
use crate::hash::HashSpec;
use crate::kernel::ribbon::{BUCKET, Layer, Ribbon, WIDTH};
use crate::kernel::{Kernel, Ready};
use crate::key::Key;
use crate::rate;
use crate::store::{Line, Owned, Store, halves_of};

pub(crate) use builder::LEAST_RATE;
pub use builder::StaticBuilder;
use layout::Layout;

/// A filter made once of all its keys, which cannot be added to: within 5 % of the least space that
/// any filter needs, from 10⁵ keys on and for rates of 10 % and less; a Bloom filter is 44 % above it.
///
/// *No* is certain. *Yes* means maybe: a key that it was not made of is said to be present with
/// the rate, any from nearly 1 down to 2.5 · 10⁻¹⁰.
///
/// ```
/// use petal::StaticFilter;
///
/// let words = StaticFilter::build(&["one", "two", "three"], 0.01)?;
/// assert!(words.contains("two"));
/// assert!(!words.contains("four")); // certainly
/// assert_eq!(words.len(), 3);
/// # Ok::<_, petal::Error>(())
/// ```
///
/// Source: Dillinger, Hübschle-Schneider, Sanders & Walzer 2022, "Fast succinct retrieval and
/// approximate membership using ribbon".
#[derive(Debug)]
pub struct StaticFilter<S = Owned> {
    layout: Layout,
    hash: HashSpec,
    facts: Facts,
    cuts: S,
    rows: S,
    kernel: Ready,
}

// ---- Made ---------------------------------------------------------------------------------------

impl StaticFilter {
    /// The filter of these keys with this false-positive rate. Keys may be there twice.
    ///
    /// Cost: about 100 ns a key; 16 bytes of memory a key beside the filter, and the filter a
    /// second time at the end.
    /// [`builder`](Self::builder) does it on several threads.
    ///
    /// # Errors
    /// If the rate is not between 2.5 · 10⁻¹⁰ and 1, cannot be reached with 64-bit hashes, or the
    /// memory is refused.
    pub fn build<K: Key + Sync>(keys: &[K], rate: f64) -> Result<Self> {
        Self::builder().rate(rate).build(keys)
    }

    /// [`build`](Self::build) for hashes that the caller made with the default [`HashSpec`], or with
    /// another hash of 64 bits whose every bit is random. Plain integers are no such hashes: build of
    /// them as keys.
    ///
    /// # Errors
    /// As there.
    pub fn from_mixed_hashes(hashes: Vec<u64>, rate: f64) -> Result<Self> {
        Self::builder().rate(rate).from_mixed_hashes(hashes)
    }

    /// Chooses rate, hash, seed and threads one by one.
    #[must_use]
    pub fn builder() -> StaticBuilder {
        StaticBuilder::new()
    }

    /// A filter of hashes in any order, as one of many: those with different seeds err
    /// independently of each other, though the hashes are the same.
    pub(crate) fn build_level(
        hashes: &[u64],
        rate: f64,
        level_seed: u64,
        hash: HashSpec,
        threads: NonZeroUsize,
    ) -> Result<Self> {
        let builder = Self::builder().rate(rate).level(level_seed).hash(hash).threads(threads);
        builder.of_hashes(hashes)
    }
}

// ---- Asked --------------------------------------------------------------------------------------

/// Keys that are hashed together, and their hashes looked at while they are in the nearest cache.
const HASHED: usize = 2048;

impl<S: Store> StaticFilter<S> {
    fn over(layout: Layout, hash: HashSpec, facts: Facts, cuts: S, rows: S) -> Self {
        debug_assert_eq!(cuts.lines().len() as u64, layout.cut_lines());
        debug_assert_eq!(rows.lines().len() as u64, layout.row_lines());
        Self { layout, hash, facts, cuts, rows, kernel: Kernel::chosen() }
    }

    #[inline]
    fn ribbon(&self) -> Ribbon<'_> {
        Ribbon {
            layers: self.layout.layers(),
            cuts: halves_of(self.cuts.lines()),
            rows: halves_of(self.rows.lines()),
        }
    }

    /// Whether the key may be one that the filter was made of. `false` is certain.
    ///
    /// Cost: one hash; one or two cache lines for rates from 0.4 % on, and again for one key in 18.
    #[inline]
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_mixed_hash(key.hash_with(&self.hash))
    }

    /// [`contains`](Self::contains) for a hash that the caller made with
    /// [`hash_spec`](Self::hash_spec), or with the hash that the filter was made with.
    #[inline]
    #[must_use]
    pub fn contains_mixed_hash(&self, hash: u64) -> bool {
        self.kernel.ribbon_contains(self.ribbon(), hash)
    }

    /// [`contains`](Self::contains) for many keys; `found` gets an answer for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut Answers) {
        let mut hashes = Vec::with_capacity(HASHED.min(keys.len()));
        let words = found.reset(keys.len()).chunks_mut(HASHED / 64);
        for (keys, words) in keys.chunks(HASHED).zip(words) {
            hashes.clear();
            self.hash.hash_all(keys.iter().map(Key::bytes), &mut hashes);
            self.kernel.ribbon_batch(self.ribbon(), &hashes, words);
        }
    }

    /// [`contains_batch`](Self::contains_batch) for hashes.
    pub fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut Answers) {
        self.kernel.ribbon_batch(self.ribbon(), hashes, found.reset(hashes.len()));
    }

    /// How many distinct hashes the filter was made of.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.facts.inserted
    }

    /// Whether it was made of no key at all; it contains nothing then.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.layout.layers().is_empty()
    }

    /// How keys become hashes.
    #[must_use]
    pub fn hash_spec(&self) -> HashSpec {
        self.hash
    }

    /// Bytes that its data take, in memory or in a file.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        let layers = self.layout.layers().len() as u64;
        let lines = layers + self.layout.cut_lines() + self.layout.row_lines();
        lines * Line::BYTES as u64
    }

    /// Bytes of memory that the filter takes in all. A mapped file's pages are not counted.
    #[must_use]
    pub fn memory_usage(&self) -> u64 {
        let stores = self.cuts.memory_usage() + self.rows.memory_usage();
        stores + self.layout.memory_usage() + size_of::<Self>() as u64
    }

    /// The false-positive rate it was made for. [`rate`](Self::rate) is at most this.
    #[must_use]
    pub fn target_rate(&self) -> f64 {
        self.facts.target
    }

    /// The false-positive rate, exactly: the share of queries with a good hash that are answered
    /// *yes* by chance.
    ///
    /// Cost: reads the cuts, a hundredth of the filter.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let cuts = halves_of(self.cuts.lines());
        let (mut reach, mut rate) = (1.0, 0.0);
        for layer in self.layout.layers() {
            let [narrow, wide] = kept(layer, cuts);
            let starts = layer.shards as f64 * layer.starts() as f64;
            let (narrow, wide) = (narrow as f64 / starts, wide as f64 / starts);
            let columns = layer.columns as u32;
            rate += reach * (narrow * rate::mixed(columns, 0.0) + wide * rate::mixed(columns, 1.0));
            reach *= (1.0 - narrow - wide).max(0.0);
        }
        rate::either(rate, rate::hash_floor(self.facts.inserted))
    }

    /// The share of its rows that its keys take.
    fn taken(&self) -> f64 {
        let rows = |layer: &Layer| layer.shards as f64 * layer.segments as f64 * WIDTH as f64;
        let rows: f64 = self.layout.layers().iter().map(rows).sum();
        if rows == 0.0 { 0.0 } else { (self.facts.inserted as f64 / rows).min(1.0) }
    }

    /// A copy in memory of its own.
    ///
    /// # Errors
    /// If the memory is refused.
    pub fn to_owned_filter(&self) -> Result<StaticFilter> {
        let (cuts, rows) = (Owned::copy_of(self.cuts.lines())?, Owned::copy_of(self.rows.lines())?);
        Ok(StaticFilter::over(self.layout.clone(), self.hash, self.facts, cuts, rows))
    }
}

/// Starts that are not bumped, of keys that compare no column more, and one more.
fn kept(layer: &Layer, cuts: &[u32]) -> [u64; 2] {
    if layer.last {
        // Nothing is bumped. It has no cuts, so that nothing in a file bounds how long it is: the
        // segments are not looked at one by one.
        let pairs = layer.wide.saturating_sub(1);
        let wide = (pairs - pairs / layer.segments) * WIDTH;
        return [layer.shards * (layer.segments - 1) * WIDTH - wide, wide];
    }
    let mut kept = [0, 0];
    for shard in 0..layer.shards {
        for segment in 0..layer.segments - 1 {
            let bucket = segment * WIDTH / BUCKET;
            let cut = layer.bumped_in(cuts, shard, bucket);
            let bumped = cut.saturating_sub(segment * WIDTH % BUCKET);
            let columns = layer.columns_of(shard * layer.segments + segment);
            kept[usize::from(columns > layer.columns)] += WIDTH - bumped.min(WIDTH);
        }
    }
    kept
}

impl<S: Store, T: Store> PartialEq<StaticFilter<T>> for StaticFilter<S> {
    /// Equal hash, layers and bits: made of the same keys, for the same rate. What rate was asked
    /// for does not count.
    fn eq(&self, other: &StaticFilter<T>) -> bool {
        self.layout == other.layout
            && self.hash == other.hash
            && self.cuts.lines() == other.cuts.lines()
            && self.rows.lines() == other.rows.lines()
    }
}
