//! Filters that forget: "among the last N", "within the last T".
//!
//! [`WindowedBloomFilter`] has G *generations*, blocked Bloom filters of one shape. Keys go into
//! the newest. From time to time the oldest is cleared and becomes the newest. All generations of
//! a block lie side by side, so that a query looks at G neighbouring lines: one cache miss, or
//! little more.
//!
//! Invariants: a key is in the generation that was the newest when it was last inserted; a
//! generation is cleared only when G - 1 later ones are there. By count each of these has counted
//! its part of the window, N / (G - 1); by clock each is T / (G - 1) wide. So nothing within the
//! window is forgotten.
//!
//! A key goes into the newest generation even if an older one has it: else it would be forgotten
//! with that one, or with whatever made it seem to be there. Except in `insert_if_absent`, whose
//! callers want just that: a key comes due again one window after it was inserted.
//!
//! Source: Chang, Feng & Li 2004, "Approximate caches for packet classification", had two such
//! generations; interleaving them is in docs/design.md, "Windowed filters".

mod builder;
mod change;
mod counts;
mod file;
mod frame;
mod plan;

pub use builder::WindowedBuilder;

use crate::answers::Answers;
use crate::error::Result;
use crate::filter::hashed;
use crate::hash::HashSpec;
use crate::kernel::Keys;
use crate::key::Key;
use crate::membership::Membership;
use crate::rate;
use crate::shape::Shape;
use crate::store::{Owned, Store};

use counts::Counts;
use frame::Frame;
use plan::Plan;

/// A Bloom filter of what came last: of the last so many keys, or of the last so many ticks of a
/// clock.
///
/// By count ([`with_rate`](Self::with_rate)): a key is contained for at least the next N - 1
/// insertions after its own, and forgotten after N · G/(G-1) of them, where an insertion counts
/// if the newest of G generations did not have its key yet. Keys that keep coming keep being
/// known.
///
/// By clock ([`with_time`](Self::with_time)): a key is contained for at least T ticks, and
/// forgotten after T · G/(G-1), rounded up to whole ticks of a generation. Time is a number that
/// the caller hands in with [`advance_to`](Self::advance_to), in seconds, milliseconds or whatever
/// else. The rate is kept while no more keys come in any T than planned, about evenly;
/// [`is_overfull`](Self::is_overfull) tells of more.
///
/// ```
/// use petal::WindowedBloomFilter;
///
/// // Seen within the last minute? A hundred thousand keys in it.
/// let mut seen = WindowedBloomFilter::with_time(60, 100_000, 0.01)?;
/// seen.advance_to(1_800_000_000);
/// assert!(seen.insert("https://example.org/"));
/// seen.advance_to(1_800_000_060);
/// assert!(seen.contains("https://example.org/"));
/// seen.advance_to(1_800_000_080);
/// assert!(!seen.contains("https://example.org/"));
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Debug)]
pub struct WindowedBloomFilter<S = Owned> {
    frame: Frame,
    /// Rotations, or ticks.
    clock: u64,
    /// How many inserts were new to each generation, by its place.
    counts: Counts,
    store: S,
}

/// Runs with all generations of a filter as a [`Ring`](crate::kernel::ring::Ring).
macro_rules! ring {
    ($filter:expr, $lines:expr, |$ring:ident| $call:expr) => {{
        let (shape, newest) = ($filter.frame.shape(), $filter.newest());
        let generations = $filter.generations() as usize;
        let (blocks, probes) = (shape.blocks(), shape.probes());
        if shape.lanes() == 8 {
            let rule = crate::kernel::blocked::Rule::<8> { blocks, probes };
            let $ring = crate::kernel::ring::Ring::new(rule, generations, newest, $lines);
            $call
        } else {
            let rule = crate::kernel::blocked::Rule::<16> { blocks, probes };
            let $ring = crate::kernel::ring::Ring::new(rule, generations, newest, $lines);
            $call
        }
    }};
}

// For what is beside this file.
use ring;

// ---- Made new -----------------------------------------------------------------------------------

impl WindowedBloomFilter {
    /// A filter of the last `keys` insertions that keeps the false-positive rate `rate`.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1, cannot be reached with 64-bit hashes, or the memory is
    /// refused.
    pub fn with_rate(keys: u64, rate: f64) -> Result<Self> {
        Self::builder().keys(keys).rate(rate).build()
    }

    /// A filter of the last `ticks` of the caller's clock that keeps the false-positive rate
    /// `rate` with `keys` distinct keys in any such time, if they come about evenly.
    ///
    /// # Errors
    /// As [`with_rate`](Self::with_rate); also if the time is 0.
    pub fn with_time(ticks: u64, keys: u64, rate: f64) -> Result<Self> {
        Self::builder().time(ticks).keys(keys).rate(rate).build()
    }

    /// Chooses keys, rate, window, generations, hash and seed one by one.
    #[must_use]
    pub fn builder() -> WindowedBuilder {
        WindowedBuilder::new()
    }

    fn empty(plan: Plan, hash: HashSpec) -> Result<Self> {
        let shape = plan.shape()?;
        let store = Owned::zeroed(shape.lines() * u64::from(plan.generations))?;
        Ok(Self::over(plan, shape, hash, store))
    }
}

// ---- Asked --------------------------------------------------------------------------------------

impl<S: Store> WindowedBloomFilter<S> {
    /// A filter over lines that are there, its clock at 0; they must be those of the shape.
    fn over(plan: Plan, shape: Shape, hash: HashSpec, store: S) -> Self {
        let counts = Counts::zero(plan.generations);
        Self { frame: Frame::new(plan, shape, hash), clock: 0, counts, store }
    }

    #[inline(always)]
    fn plan(&self) -> Plan {
        self.frame.plan()
    }

    /// The place of the newest generation.
    #[inline]
    fn newest(&self) -> usize {
        self.plan().slot(self.plan().epoch(self.clock))
    }

    /// Whether the key may have been inserted within the window. `false` is certain.
    ///
    /// Cost: one hash; one or two neighbouring cache lines for each generation.
    #[inline]
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_mixed_hash(key.hash_with(&self.frame.hash))
    }

    /// [`contains`](Self::contains) for a hash made with [`hash_spec`](Self::hash_spec), or with
    /// another hash of 64 bits whose every bit is random. A plain integer is no such hash: insert
    /// it as a key.
    #[inline]
    #[must_use]
    pub fn contains_mixed_hash(&self, hash: u64) -> bool {
        ring!(self, self.store.lines(), |ring| ring.contains(self.frame.kernel, hash))
    }

    /// [`contains`](Self::contains) for many keys; `found` gets an answer for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut Answers) {
        let lines = self.store.lines();
        if let (Some(words), Some(hash)) = (K::words(keys), self.frame.hash.of_words()) {
            let (hashes, found) = (Keys { words, hash }, found.reset(keys.len()));
            ring!(self, lines, |ring| self
                .frame
                .kernel
                .contains_batch_in_ring(ring, hashes, found));
            return;
        }
        hashed(keys, &self.frame.hash, found, |hashes, found| {
            ring!(self, lines, |ring| self
                .frame
                .kernel
                .contains_batch_in_ring(ring, hashes, found));
        });
    }

    /// [`contains_batch`](Self::contains_batch) for hashes.
    pub fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut Answers) {
        let (lines, found) = (self.store.lines(), found.reset(hashes.len()));
        ring!(self, lines, |ring| self.frame.kernel.contains_batch_in_ring(ring, hashes, found));
    }

    /// The answer that [`contains`](Self::contains) would give after
    /// [`advance_to`](Self::advance_to): for those who may ask at a time, but not change anything.
    /// A window that is a number of keys has no time, and any will do.
    ///
    /// Cost: as [`contains`](Self::contains).
    #[inline]
    #[must_use]
    pub fn contains_at<K: Key + ?Sized>(&self, now: u64, key: &K) -> bool {
        self.contains_mixed_hash_at(now, key.hash_with(&self.frame.hash))
    }

    /// [`contains_at`](Self::contains_at) for a hash.
    #[must_use]
    pub fn contains_mixed_hash_at(&self, now: u64, hash: u64) -> bool {
        let (live, kernel) = (self.live(now), self.frame.kernel);
        ring!(self, self.store.lines(), |ring| ring.live_contain(kernel, live, hash))
    }

    /// [`contains_at`](Self::contains_at) for many hashes.
    ///
    /// Cost: as one by one, but cache misses overlap. Until the first generation is too old, as
    /// [`contains_mixed_hashes`](Self::contains_mixed_hashes).
    pub fn contains_mixed_hashes_at(&self, now: u64, hashes: &[u64], found: &mut Answers) {
        let live = self.live(now);
        if live.count_ones() == self.generations() {
            return self.contains_mixed_hashes(hashes, found);
        }
        let (lines, found) = (self.store.lines(), found.reset(hashes.len()));
        let kernel = self.frame.kernel;
        ring!(self, lines, |ring| kernel.live_contain_batch(ring, live, hashes, found));
    }

    /// Places of the generations that are not too old at this time, a bit for each.
    fn live(&self, now: u64) -> u16 {
        let all = !(u16::MAX << self.generations());
        self.too_old(now).fold(all, |live, slot| live & !(1 << slot))
    }

    /// Places of the generations that a clock of this time makes too old, which is to say new.
    fn too_old(&self, now: u64) -> impl Iterator<Item = usize> + use<S> {
        let plan = self.plan();
        let clock = if plan.ticks.is_some() { self.clock.max(now) } else { self.clock };
        let (before, after) = (plan.epoch(self.clock), plan.epoch(clock));
        let steps = (after - before).min(plan.generations.into());
        (after - steps..after).map(move |epoch| plan.slot(epoch + 1))
    }

    /// The geometry of one generation.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.frame.shape()
    }

    /// How many generations there are.
    #[must_use]
    pub fn generations(&self) -> u32 {
        self.plan().generations
    }

    /// The window in ticks; `None` if it is a number of keys.
    #[must_use]
    pub fn window_ticks(&self) -> Option<u64> {
        self.plan().ticks
    }

    /// The latest time it was told of; 0 before, and if the window is a number of keys.
    #[must_use]
    pub fn now(&self) -> u64 {
        if self.plan().ticks.is_some() { self.clock } else { 0 }
    }

    /// How keys become hashes.
    #[must_use]
    pub fn hash_spec(&self) -> HashSpec {
        self.frame.hash
    }

    /// Bytes that the bits of all generations take.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.shape().size_bytes() * u64::from(self.plan().generations)
    }

    /// Bytes of memory that the filter takes in all. A mapped file's pages are not counted.
    #[must_use]
    pub fn memory_usage(&self) -> u64 {
        self.store.memory_usage() + self.counts.memory_usage() + size_of::<Self>() as u64
    }

    /// Keys in the window that it was planned for.
    #[must_use]
    pub fn planned_keys(&self) -> u64 {
        self.plan().keys
    }

    /// The false-positive rate it was planned for.
    #[must_use]
    pub fn target_rate(&self) -> f64 {
        self.plan().rate
    }

    /// How many inserts were new to the generation they went to, of the generations that are
    /// there. A key that came again in a later generation counts again.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        self.counts.all().into_iter().fold(0, u64::saturating_add)
    }

    /// The false-positive rate with `keys` distinct keys in each window, by calculation: at its
    /// highest, when the oldest generation is about to be cleared.
    #[must_use]
    pub fn expected_rate(&self, keys: u64) -> f64 {
        self.plan().expected_rate(self.shape(), keys)
    }

    /// The false-positive rate that the bits give as they are now: that of any generation.
    ///
    /// Cost: reads the whole filter.
    #[must_use]
    pub fn estimated_rate(&self) -> f64 {
        let rate = ring!(self, self.store.lines(), |ring| ring.rate_now());
        rate::either(rate, rate::hash_floor(self.inserted()))
    }

    /// An estimate of the distinct keys that are contained, from the bits that are set in any
    /// generation; infinite if all are. See [`rate::cardinality`](crate::rate::cardinality).
    ///
    /// Cost: reads the whole filter.
    #[must_use]
    pub fn estimated_len(&self) -> f64 {
        let lines = self.shape().lanes() as usize / 8;
        let mut clear = 0u64;
        for run in self.store.lines().chunks_exact(lines * self.plan().generations as usize) {
            for part in 0..lines {
                let mut any = [0; 8];
                for line in run[part..].iter().step_by(lines) {
                    any.iter_mut().zip(line.0).for_each(|(any, word)| *any |= word);
                }
                clear += any.iter().map(|word| u64::from(word.count_zeros())).sum::<u64>();
            }
        }
        rate::cardinality(clear as f64 / self.shape().bits() as f64, self.shape().touch())
    }

    /// The share of bits that are set.
    ///
    /// Cost: reads the whole filter.
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        let words = self.store.lines().iter().flat_map(|line| line.0);
        let ones: u64 = words.map(|word| u64::from(word.count_ones())).sum();
        ones as f64 / (self.size_bytes() * 8) as f64
    }

    /// Whether it errs more often than planned, as it does when more keys come in a time than
    /// planned; what may come of chance passes.
    ///
    /// Cost: reads the whole filter.
    #[must_use]
    pub fn is_overfull(&self) -> bool {
        Membership::is_overfull(self)
    }

    /// Returns how many keys a generation is planned for: its part of the keys of a window.
    #[must_use]
    pub fn generation_capacity(&self) -> u64 {
        self.plan().share(self.plan().keys)
    }

    /// Returns the largest number of keys that any generation holds. More than
    /// [`generation_capacity`](Self::generation_capacity) means that keys came faster than planned,
    /// and stays visible until that generation is forgotten.
    #[must_use]
    pub fn fullest_generation(&self) -> u64 {
        self.counts.all().into_iter().max().unwrap_or(0)
    }

    /// How many keys more the newest generation counts before the oldest is forgotten.
    #[inline]
    fn room(&self) -> u64 {
        if self.plan().ticks.is_some() {
            return u64::MAX;
        }
        let plan = self.plan();
        plan.share(plan.keys).saturating_sub(self.counts.get(self.newest()))
    }

    /// A copy in memory of its own.
    ///
    /// # Errors
    /// If the memory is refused.
    pub fn to_owned_filter(&self) -> Result<WindowedBloomFilter> {
        let store = Owned::copy_of(self.store.lines())?;
        let Self { frame, clock, counts, .. } = self;
        Ok(WindowedBloomFilter { frame: *frame, clock: *clock, counts: counts.clone(), store })
    }
}

impl<S: Store, T: Store> PartialEq<WindowedBloomFilter<T>> for WindowedBloomFilter<S> {
    /// Equal plan, shape, hash, clock and bits.
    fn eq(&self, other: &WindowedBloomFilter<T>) -> bool {
        self.frame == other.frame
            && self.clock == other.clock
            && self.counts == other.counts
            && self.store.lines() == other.store.lines()
    }
}
