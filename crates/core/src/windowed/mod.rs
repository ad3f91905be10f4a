//! Filters that forget old keys: "among the last N", "within the last T".
//!
//! A [`WindowedBloomFilter`] has G *generations*, blocked Bloom filters of one layout. Keys are
//! inserted into the newest. From time to time the oldest is cleared and becomes the newest. The
//! generations of a block are adjacent in memory, so that a query reads G neighbouring lines: about
//! one cache miss.
//!
//! Invariants: a key is in the generation that was the newest when it was last inserted; a
//! generation is cleared only when G - 1 later ones exist. By count each of these has its share of
//! the window, N / (G - 1) keys; by clock each spans T / (G - 1). So no key within the window is
//! forgotten.
//!
//! A key is inserted into the newest generation even if an older one contains it, because it would
//! be forgotten with the older one otherwise. `insert_if_absent` is the exception: a key expires
//! one window after it was inserted first.
//!
//! Source: Chang, Feng & Li 2004, "Approximate caches for packet classification", has two such
//! generations; docs/design/filters.md describes interleaving them.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
mod change;
mod counts;
mod file;
mod membership;
mod params;
pub(crate) mod plan;
mod size;

pub(crate) use size::dimensions;

use crate::batch::for_each_chunk;
use crate::error::Result;
use crate::explanation::Explanation;
use crate::filter::explain;
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::kernel::UnhashedKeys;
use crate::kernel::classic::is_set;
use crate::key::Key;
use crate::layout::BlockedLayout;
use crate::results::BatchResults;
use crate::spec::Builder;
use crate::store::{Owned, Store};

use counts::GenerationCounts;
use params::WindowParams;
use plan::WindowPlan;

/// A Bloom filter of the most recent keys: of the last N keys, or of the last T ticks of a clock.
///
/// By count ([`with_fpr`](Self::with_fpr)): a key is contained for at least the next N - 1
/// insertions after its own, and forgotten after N · G/(G-1) of them. An insertion counts if the
/// newest of G generations did not contain its key. Keys that are inserted again and again are not
/// forgotten.
///
/// By clock ([`with_time`](Self::with_time)): a key is contained for at least T ticks, and
/// forgotten after T · G/(G-1), rounded up to whole ticks of a generation. The caller sets the time
/// with [`advance_to`](Self::advance_to), in any unit. The target rate holds while at most
/// N / (G-1) keys, of the capacity N, are new in each T / (G-1) ticks;
/// [`Stats::is_overfull`](crate::Stats::is_overfull) detects more. For bursts choose a capacity of
/// G - 1 times the largest number of keys in such a time.
///
/// ```
/// use petal::WindowedBloomFilter;
///
/// // Keys of the last minute, of which there are a hundred thousand.
/// let mut seen = WindowedBloomFilter::with_time(100_000, 0.01, 60)?;
/// seen.advance_to(1_800_000_000);
/// assert!(seen.insert("https://example.org/"));
/// seen.advance_to(1_800_000_060);
/// assert!(seen.contains("https://example.org/"));
/// seen.advance_to(1_800_000_080);
/// assert!(!seen.contains("https://example.org/"));
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct WindowedBloomFilter<S = Owned> {
    params: WindowParams,
    /// Rotations of a window by count, else ticks.
    clock: u64,
    /// The number of inserts that were new to each generation, by slot.
    counts: GenerationCounts,
    store: S,
}

/// Evaluates an expression with the generations of a filter as a
/// [`GenerationRing`](crate::kernel::generations::GenerationRing).
macro_rules! ring {
    ($filter:expr, $lines:expr, |$ring:ident| $call:expr) => {{
        use crate::kernel::{blocked::BlockParams, generations::GenerationRing};
        let (layout, newest) = ($filter.params.layout(), $filter.newest());
        let (kernel, generations) = ($filter.params.kernel, $filter.generations() as usize);
        let (blocks, probes) = (layout.blocks(), layout.probes());
        if layout.lanes() == 8 {
            let params = BlockParams::<8> { blocks, probes };
            let $ring = GenerationRing::new(kernel, params, generations, newest, $lines);
            $call
        } else {
            let params = BlockParams::<16> { blocks, probes };
            let $ring = GenerationRing::new(kernel, params, generations, newest, $lines);
            $call
        }
    }};
}

// For the modules below.
use ring;

// ---- Constructors -------------------------------------------------------------------------------

impl WindowedBloomFilter {
    /// Creates a filter of the last `capacity` insertions with a false-positive rate of at most
    /// `fpr`.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1 or cannot be reached with 64-bit hashes, or memory
    /// allocation fails.
    pub fn with_fpr(capacity: u64, fpr: f64) -> Result<Self> {
        Self::builder().capacity(capacity).fpr(fpr).build()
    }

    /// Creates a filter of the last `ticks` of a clock, with a false-positive rate of at most `fpr`
    /// if at most `capacity` distinct keys arrive in that time, about evenly.
    ///
    /// # Errors
    /// As [`with_fpr`](Self::with_fpr); also if the time is 0.
    pub fn with_time(capacity: u64, fpr: f64, ticks: u64) -> Result<Self> {
        Self::builder().window(ticks).capacity(capacity).fpr(fpr).build()
    }

    /// Returns a builder, which chooses capacity, rate, window, generations, hash and seed
    /// separately.
    #[must_use]
    pub fn builder() -> Builder<Self> {
        Builder::new(FilterType::Windowed)
    }

    pub(crate) fn empty(plan: WindowPlan, hash: HashSpec) -> Result<Self> {
        let layout = plan.layout()?;
        let store = Owned::zeroed(layout.lines() * u64::from(plan.generations))?;
        Ok(Self::from_parts(plan, layout, hash, store))
    }
}

// ---- Queries ------------------------------------------------------------------------------------

impl<S: Store> WindowedBloomFilter<S> {
    /// Creates a filter of existing lines, which must be those of the layout, with clock 0.
    fn from_parts(plan: WindowPlan, layout: BlockedLayout, hash: HashSpec, store: S) -> Self {
        let counts = GenerationCounts::zero(plan.generations);
        Self { params: WindowParams::new(plan, layout, hash), clock: 0, counts, store }
    }

    #[inline(always)]
    fn plan(&self) -> WindowPlan {
        self.params.plan()
    }

    /// Returns the slot of the newest generation.
    #[inline]
    fn newest(&self) -> usize {
        self.plan().slot(self.plan().epoch(self.clock))
    }

    /// Returns true if the key may have been inserted within the window, false if it certainly was
    /// not.
    ///
    /// Cost: one hash; one or two neighbouring cache lines for each generation.
    #[inline]
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_mixed_hash(key.hash_with(&self.params.hash))
    }

    /// [`contains`](Self::contains) for a hash made with [`hash_spec`](crate::Membership::hash_spec), or
    /// with another 64-bit hash function whose every output bit is random. Plain integers are not
    /// such hashes: insert them as keys.
    #[inline]
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn contains_mixed_hash(&self, hash: u64) -> bool {
        ring!(self, self.store.lines(), |ring| ring.contains(hash))
    }

    /// [`contains`](Self::contains) for many keys; `found` has one result for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut BatchResults) {
        let (lines, kernel) = (self.store.lines(), self.params.kernel);
        if let (Some(words), Some(hash)) = (K::words(keys), self.params.hash.word_hasher()) {
            let (hashes, found) = (UnhashedKeys { words, hash }, found.reset(keys.len()));
            ring!(self, lines, |ring| kernel.contains_batch_in_ring(ring, hashes, found));
            return;
        }
        for_each_chunk(keys, &self.params.hash, found, |hashes, found| {
            ring!(self, lines, |ring| kernel.contains_batch_in_ring(ring, hashes, found));
        });
    }

    /// Returns the result that [`contains`](Self::contains) would have after
    /// [`advance_to`](Self::advance_to), without changing the filter. The time is ignored for a
    /// window by count.
    ///
    /// Cost: as [`contains`](Self::contains).
    #[inline]
    #[must_use]
    pub fn contains_at<K: Key + ?Sized>(&self, now: u64, key: &K) -> bool {
        self.contains_mixed_hash_at(now, key.hash_with(&self.params.hash))
    }

    /// [`contains_at`](Self::contains_at) for a hash.
    #[must_use]
    pub fn contains_mixed_hash_at(&self, now: u64, hash: u64) -> bool {
        let live = self.live_slots(now);
        ring!(self, self.store.lines(), |ring| ring.live_contain(live, hash))
    }

    /// [`contains_at`](Self::contains_at) for many hashes.
    ///
    /// Cost: as one by one, but cache misses overlap. As
    /// [`contains_mixed_hashes`](Self::contains_mixed_hashes) until a generation has expired.
    pub fn contains_mixed_hashes_at(&self, now: u64, hashes: &[u64], found: &mut BatchResults) {
        let live = self.live_slots(now);
        if live.count_ones() == self.generations() {
            return self.contains_mixed_hashes(hashes, found);
        }
        let (lines, found) = (self.store.lines(), found.reset(hashes.len()));
        ring!(self, lines, |ring| ring.live_contain_batch(live, hashes, found));
    }

    /// Explains the answer of [`contains_mixed_hash_at`](Self::contains_mixed_hash_at). The parts are
    /// the generations, newest first; one that has expired at `now` does not count, and has the
    /// number `expired`.
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn explain_mixed_hash_at(&self, now: u64, hash: u64) -> Explanation {
        let (lines, layout, live) = (self.store.lines(), self.layout(), self.live_slots(now));
        let (generations, newest) = (self.generations() as usize, self.newest());
        let block_bits = u64::from(layout.lanes()) * 64;
        let mut parts = Vec::with_capacity(generations);
        for age in 0..generations {
            let slot = (newest + generations - age) % generations;
            // The blocks of all generations with the same number are neighbours.
            let moved = |position: u64| {
                let block = position / block_bits * generations as u64 + slot as u64;
                block * block_bits + position % block_bits
            };
            let value = |position| u64::from(is_set(lines, moved(position)));
            let mut part = explain(&layout, hash, value);
            part.probes.iter_mut().for_each(|probe| probe.position = moved(probe.position));
            if live >> slot & 1 == 0 {
                part.numbers.push(("expired", 1));
                part.contains = false;
            }
            let newest = if age == 0 { ", the newest" } else { "" };
            parts.push(part.named(format!("generation {} of {generations}{newest}", age + 1)));
        }
        Explanation { contains: parts.iter().any(|part| part.contains), parts }
    }

    /// Returns the slots of the generations that have not expired at `now`, one bit for each.
    fn live_slots(&self, now: u64) -> u16 {
        let all = !(u16::MAX << self.generations());
        self.expired_slots(now).fold(all, |live, slot| live & !(1 << slot))
    }

    /// Returns the slots of the generations that expire at `now` and are reused.
    fn expired_slots(&self, now: u64) -> impl Iterator<Item = usize> + use<S> {
        let plan = self.plan();
        let clock = if plan.ticks.is_some() { self.clock.max(now) } else { self.clock };
        let (before, after) = (plan.epoch(self.clock), plan.epoch(clock));
        let steps = (after - before).min(plan.generations.into());
        (after - steps..after).map(move |epoch| plan.slot(epoch + 1))
    }

    /// Returns the layout of one generation.
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn layout(&self) -> BlockedLayout {
        self.params.layout()
    }

    /// Returns the number of generations.
    #[must_use]
    pub fn generations(&self) -> u32 {
        self.plan().generations
    }

    /// Returns the window in ticks; `None` for a window by count.
    #[must_use]
    pub fn window_ticks(&self) -> Option<u64> {
        self.plan().ticks
    }

    /// Returns the time of the last [`advance_to`](Self::advance_to); 0 before, and for a window by
    /// count.
    #[must_use]
    pub fn now(&self) -> u64 {
        if self.plan().ticks.is_some() { self.clock } else { 0 }
    }

    /// Returns the number of keys that a generation is planned for: its share of the window.
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn generation_capacity(&self) -> u64 {
        self.plan().share(self.plan().keys)
    }

    /// Returns the largest number of keys of any generation. More than
    /// [`generation_capacity`](Self::generation_capacity) means that keys arrived faster than
    /// planned; the number stays until that generation expires.
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn fullest_generation(&self) -> u64 {
        self.counts.all().into_iter().max().unwrap_or(0)
    }

    /// Returns how many more keys fit into the newest generation before the oldest is cleared.
    #[inline]
    fn room(&self) -> u64 {
        if self.plan().ticks.is_some() {
            return u64::MAX;
        }
        let plan = self.plan();
        plan.share(plan.keys).saturating_sub(self.counts.get(self.newest()))
    }

    /// Copies the filter into memory of its own: see
    /// [`Filter::try_clone`](crate::Filter::try_clone).
    ///
    /// # Errors
    /// If memory allocation fails.
    pub fn try_clone(&self) -> Result<WindowedBloomFilter> {
        let store = Owned::from_lines(self.store.lines())?;
        let Self { params, clock, counts, .. } = self;
        Ok(WindowedBloomFilter { params: *params, clock: *clock, counts: counts.clone(), store })
    }
}

impl<S: Store, T: Store> PartialEq<WindowedBloomFilter<T>> for WindowedBloomFilter<S> {
    /// Compares plan, layout, hash, clock, counts and bits.
    fn eq(&self, other: &WindowedBloomFilter<T>) -> bool {
        self.params == other.params
            && self.clock == other.clock
            && self.counts == other.counts
            && self.store.lines() == other.store.lines()
    }
}
