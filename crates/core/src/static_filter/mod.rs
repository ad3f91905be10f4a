//! Filters that are built once from all their keys, near the minimum space.
//!
//! A [`StaticFilter`] stores the solution of a system of linear equations: the equation of each key
//! over a few neighbouring bits gives its fingerprint, and that of another key gives it by chance.
//! Queries are in `kernel/ribbon`; this module builds and stores the filter.
//!
//! Invariants: cuts and rows have exactly the lines of the layout. Every hash that the filter was
//! built from is contained.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
mod build;
mod builder;
mod file;
mod layout;
mod membership;
mod solve;

use core::num::NonZeroUsize;

use crate::batch::for_each_chunk;
use crate::error::Result;
use crate::format::header::FilterInfo;
use crate::hash::HashSpec;
use crate::kernel::ribbon::{BUCKET, Layer, Ribbon, WIDTH};
use crate::kernel::{Kernel, KernelHandle};
use crate::key::Key;
use crate::math;
use crate::results::BatchResults;
use crate::store::{Owned, Store, lines_as_half_words};

pub(crate) use builder::MIN_FPR;
pub use builder::StaticBuilder;
use layout::RibbonLayout;

/// A filter that is built once from all its keys and takes no others.
///
/// It is within 5 % of the minimum space of any filter, from 10⁵ keys on and for rates of 10 % and
/// less; a Bloom filter is 44 % above the minimum. The rate is any from nearly 1 down to
/// 2.5 · 10⁻¹⁰.
///
/// ```
/// use petal::StaticFilter;
///
/// let words = StaticFilter::build(&["one", "two", "three"], 0.01)?;
/// assert!(words.contains("two"));
/// assert!(!words.contains("four")); // certainly absent
/// assert_eq!(words.len(), 3);
/// # Ok::<_, petal::Error>(())
/// ```
///
/// Source: Dillinger, Hübschle-Schneider, Sanders & Walzer 2022, "Fast succinct retrieval and
/// approximate membership using ribbon".
#[derive(Clone, Debug)]
pub struct StaticFilter<S = Owned> {
    layout: RibbonLayout,
    hash: HashSpec,
    info: FilterInfo,
    cuts: S,
    rows: S,
    kernel: KernelHandle,
}

// ---- Constructors -------------------------------------------------------------------------------

impl StaticFilter {
    /// Builds the filter of these keys, which may contain duplicates.
    ///
    /// Cost: about 100 ns per key; 16 bytes of memory per key beside the filter, and the filter a
    /// second time at the end. [`builder`](Self::builder) can use several threads.
    ///
    /// # Errors
    /// If the rate is not between 2.5 · 10⁻¹⁰ and 1 or cannot be reached with 64-bit hashes, or
    /// memory allocation fails.
    pub fn build<K: Key + Sync>(keys: &[K], fpr: f64) -> Result<Self> {
        Self::builder().fpr(fpr).build(keys)
    }

    /// [`build`](Self::build) for hashes made with the default [`HashSpec`], or with another 64-bit
    /// hash function whose every output bit is random. Plain integers are not such hashes: build
    /// from them as keys.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn from_mixed_hashes(hashes: Vec<u64>, fpr: f64) -> Result<Self> {
        Self::builder().fpr(fpr).from_mixed_hashes(hashes)
    }

    /// Returns a builder, which chooses rate, hash, seed and threads separately.
    #[must_use]
    pub fn builder() -> StaticBuilder {
        StaticBuilder::new()
    }

    /// Builds a level of a cascade from hashes in any order. False positives of levels with
    /// different seeds are independent, though the hashes are the same.
    pub(crate) fn build_level(
        hashes: &[u64],
        fpr: f64,
        level_seed: u64,
        hash: HashSpec,
        threads: NonZeroUsize,
    ) -> Result<Self> {
        let builder = Self::builder().fpr(fpr).level(level_seed).hash(hash).threads(threads);
        builder.build_from_slice(hashes)
    }
}

// ---- Queries ------------------------------------------------------------------------------------

impl<S: Store> StaticFilter<S> {
    fn from_parts(
        layout: RibbonLayout,
        hash: HashSpec,
        info: FilterInfo,
        cuts: S,
        rows: S,
    ) -> Self {
        debug_assert_eq!(cuts.lines().len() as u64, layout.cut_lines());
        debug_assert_eq!(rows.lines().len() as u64, layout.row_lines());
        Self { layout, hash, info, cuts, rows, kernel: Kernel::selected() }
    }

    #[inline]
    fn ribbon(&self) -> Ribbon<'_> {
        Ribbon {
            layers: self.layout.layers(),
            cuts: lines_as_half_words(self.cuts.lines()),
            rows: lines_as_half_words(self.rows.lines()),
        }
    }

    /// Returns true if the filter may have been built from the key, false if it certainly was not.
    ///
    /// Cost: one hash; one or two cache lines for rates from 0.4 % on, and again for one key in 18.
    #[inline]
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_mixed_hash(key.hash_with(&self.hash))
    }

    /// [`contains`](Self::contains) for a hash made with
    /// [`hash_spec`](crate::Membership::hash_spec), or with the hash function of the hashes that
    /// the filter was built from.
    #[inline]
    #[must_use]
    pub fn contains_mixed_hash(&self, hash: u64) -> bool {
        self.kernel.ribbon_contains(self.ribbon(), hash)
    }

    /// [`contains`](Self::contains) for many keys; `found` has one result for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut BatchResults) {
        for_each_chunk(keys, &self.hash, found, |hashes, found| {
            self.kernel.ribbon_batch(self.ribbon(), hashes, found);
        });
    }

    /// Returns the number of distinct hashes that the filter was built from.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.info.inserted
    }

    /// Returns true if the filter was built from no keys; it then contains none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.layout.layers().is_empty()
    }

    /// Returns the exact false-positive rate: the share of absent keys that are found by chance. It
    /// is at most the [target rate](crate::Membership::target_fpr).
    ///
    /// Cost: reads the cuts, a hundredth of the filter.
    #[must_use]
    pub fn fpr(&self) -> f64 {
        let cuts = lines_as_half_words(self.cuts.lines());
        let (mut reach, mut fpr) = (1.0, 0.0);
        for layer in self.layout.layers() {
            let [narrow, wide] = kept_starts(layer, cuts);
            let starts = layer.shards as f64 * layer.starts() as f64;
            let (narrow, wide) = (narrow as f64 / starts, wide as f64 / starts);
            let columns = layer.columns as u32;
            fpr += reach
                * (narrow * math::static_fpr(columns, 0.0) + wide * math::static_fpr(columns, 1.0));
            reach *= (1.0 - narrow - wide).max(0.0);
        }
        math::probability_of_either(fpr, math::hash_floor(self.info.inserted))
    }

    /// Returns the share of rows that keys take.
    fn row_fill(&self) -> f64 {
        let rows = |layer: &Layer| layer.shards as f64 * layer.segments as f64 * WIDTH as f64;
        let rows: f64 = self.layout.layers().iter().map(rows).sum();
        if rows == 0.0 { 0.0 } else { (self.info.inserted as f64 / rows).min(1.0) }
    }

    /// Copies the filter into memory of its own: see
    /// [`Filter::try_clone`](crate::Filter::try_clone).
    ///
    /// # Errors
    /// If memory allocation fails.
    pub fn try_clone(&self) -> Result<StaticFilter> {
        let (cuts, rows) =
            (Owned::from_lines(self.cuts.lines())?, Owned::from_lines(self.rows.lines())?);
        Ok(StaticFilter::from_parts(self.layout.clone(), self.hash, self.info, cuts, rows))
    }
}

/// Returns the number of starts that are not bumped: those of keys that compare `columns` columns,
/// and those of keys that compare one more.
fn kept_starts(layer: &Layer, cuts: &[u32]) -> [u64; 2] {
    if layer.last {
        // The last layer bumps nothing and has no cuts. Computed, because the number of segments in
        // a file is not bounded by the length of cuts.
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
    /// Compares hash, layers and bits: equal filters were built from the same keys for the same
    /// rate. Target rates may differ.
    fn eq(&self, other: &StaticFilter<T>) -> bool {
        self.layout == other.layout
            && self.hash == other.hash
            && self.cuts.lines() == other.cuts.lines()
            && self.rows.lines() == other.rows.lines()
    }
}
