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
//! with that one, or with whatever made it seem to be there.
//!
//! Source: Chang, Feng & Li 2004, "Approximate caches for packet classification", had two such
//! generations; interleaving them is in docs/design.md, "Windowed filters".

mod builder;
mod file;
mod plan;

pub use builder::WindowedBuilder;

use crate::answers::Answers;
use crate::error::Result;
use crate::filter::{HASHED, hashed};
use crate::hash::HashSpec;
use crate::kernel::{Kernel, Keys, Ready};
use crate::key::Key;
use crate::membership::Membership;
use crate::rate;
use crate::shape::Shape;
use crate::store::{Line, Owned, Store, StoreMut};

use plan::{MOST, Plan};

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
    plan: Plan,
    /// Of one generation.
    shape: Shape,
    hash: HashSpec,
    /// Rotations, or ticks.
    clock: u64,
    /// How many inserts were new to each generation, by its place.
    counts: [u64; MOST],
    store: S,
    kernel: Ready,
}

/// Runs with all generations of a filter as a [`Ring`](crate::kernel::ring::Ring).
macro_rules! ring {
    ($filter:expr, $lines:expr, |$ring:ident| $call:expr) => {{
        let (shape, newest) = ($filter.shape, $filter.newest());
        let generations = $filter.plan.generations as usize;
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
        let kernel = Kernel::chosen();
        Self { plan, shape, hash, clock: 0, counts: [0; MOST], store, kernel }
    }

    /// The place of the newest generation.
    #[inline]
    fn newest(&self) -> usize {
        self.plan.slot(self.plan.epoch(self.clock))
    }

    /// Whether the key may have been inserted within the window. `false` is certain.
    ///
    /// Cost: one hash; one or two neighbouring cache lines for each generation.
    #[inline]
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_hash(key.hash_with(&self.hash))
    }

    /// [`contains`](Self::contains) for a hash that the caller made with
    /// [`hash_spec`](Self::hash_spec), or with another good 64-bit hash used throughout.
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        ring!(self, self.store.lines(), |ring| ring.contains(self.kernel, hash))
    }

    /// [`contains`](Self::contains) for many keys; `found` gets an answer for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut Answers) {
        let lines = self.store.lines();
        if let (Some(words), Some(hash)) = (K::words(keys), self.hash.of_words()) {
            let (hashes, found) = (Keys { words, hash }, found.reset(keys.len()));
            ring!(self, lines, |ring| self.kernel.contains_batch_in_ring(ring, hashes, found));
            return;
        }
        hashed(keys, &self.hash, found, |hashes, found| {
            ring!(self, lines, |ring| self.kernel.contains_batch_in_ring(ring, hashes, found));
        });
    }

    /// [`contains_batch`](Self::contains_batch) for hashes.
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut Answers) {
        let (lines, found) = (self.store.lines(), found.reset(hashes.len()));
        ring!(self, lines, |ring| self.kernel.contains_batch_in_ring(ring, hashes, found));
    }

    /// The geometry of one generation.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// How many generations there are.
    #[must_use]
    pub fn generations(&self) -> u32 {
        self.plan.generations
    }

    /// The window in ticks; `None` if it is a number of keys.
    #[must_use]
    pub fn window_ticks(&self) -> Option<u64> {
        self.plan.ticks
    }

    /// The latest time it was told of; 0 before, and if the window is a number of keys.
    #[must_use]
    pub fn now(&self) -> u64 {
        if self.plan.ticks.is_some() { self.clock } else { 0 }
    }

    /// How keys become hashes.
    #[must_use]
    pub fn hash_spec(&self) -> HashSpec {
        self.hash
    }

    /// Bytes that the bits of all generations take.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.shape.size_bytes() * u64::from(self.plan.generations)
    }

    /// Bytes of memory that the filter takes in all. A mapped file's pages are not counted.
    #[must_use]
    pub fn memory_usage(&self) -> u64 {
        self.store.memory_usage() + size_of::<Self>() as u64
    }

    /// Keys in the window that it was planned for.
    #[must_use]
    pub fn planned_keys(&self) -> u64 {
        self.plan.keys
    }

    /// The false-positive rate it was planned for.
    #[must_use]
    pub fn target_rate(&self) -> f64 {
        self.plan.rate
    }

    /// How many inserts were new to the generation they went to, of the generations that are
    /// there. A key that came again in a later generation counts again.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        self.counts.into_iter().fold(0, u64::saturating_add)
    }

    /// The false-positive rate with `keys` distinct keys in each window, by calculation: at its
    /// highest, when the oldest generation is about to be cleared.
    #[must_use]
    pub fn expected_rate(&self, keys: u64) -> f64 {
        let one = self.shape.rate(self.plan.share(keys));
        rate::any_of((0..self.plan.generations).map(|_| one))
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
        let lines = self.shape.lanes() as usize / 8;
        let mut clear = 0u64;
        for run in self.store.lines().chunks_exact(lines * self.plan.generations as usize) {
            for part in 0..lines {
                let mut any = [0; 8];
                for line in run[part..].iter().step_by(lines) {
                    any.iter_mut().zip(line.0).for_each(|(any, word)| *any |= word);
                }
                clear += any.iter().map(|word| u64::from(word.count_zeros())).sum::<u64>();
            }
        }
        rate::cardinality(clear as f64 / self.shape.bits() as f64, self.shape.touch())
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

    /// How many keys more the newest generation counts before the oldest is forgotten.
    #[inline]
    fn room(&self) -> u64 {
        if self.plan.ticks.is_some() {
            return u64::MAX;
        }
        self.plan.share(self.plan.keys).saturating_sub(self.counts[self.newest()])
    }

    /// A copy in memory of its own.
    ///
    /// # Errors
    /// If the memory is refused.
    pub fn to_owned_filter(&self) -> Result<WindowedBloomFilter> {
        let store = Owned::copy_of(self.store.lines())?;
        let copy = WindowedBloomFilter::over(self.plan, self.shape, self.hash, store);
        Ok(WindowedBloomFilter { clock: self.clock, counts: self.counts, ..copy })
    }
}

// ---- Changed ------------------------------------------------------------------------------------

impl<S: StoreMut> WindowedBloomFilter<S> {
    /// Inserts a key, or makes it one of the newest; whether it was new to the window. `true` is
    /// certain; `false` means that it was there before, or is a false positive.
    ///
    /// Cost: as [`contains`](Self::contains). By count, once in N / (G - 1) insertions also the
    /// clearing of a generation, as in [`advance_to`](Self::advance_to).
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        self.insert_hash(key.hash_with(&self.hash))
    }

    /// [`insert`](Self::insert) for a hash that the caller made with
    /// [`hash_spec`](Self::hash_spec), or with another good 64-bit hash used throughout.
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> bool {
        if self.room() == 0 {
            return self.insert_in_next(hash);
        }
        self.insert_in_newest(hash)
    }

    #[inline]
    fn insert_in_newest(&mut self, hash: u64) -> bool {
        let (kernel, newest) = (self.kernel, self.newest());
        let (new, fresh) = ring!(self, self.store.lines_mut(), |ring| ring.insert(kernel, hash));
        self.counts[newest] = self.counts[newest].saturating_add(fresh);
        new
    }

    /// The newest generation has its part: a key that it has not goes to the next.
    fn insert_in_next(&mut self, hash: u64) -> bool {
        let lines = self.store.lines();
        if ring!(self, lines, |ring| ring.newest_contains(self.kernel, hash)) {
            return false;
        }
        // What was only in the generation that is now forgotten was not new.
        let new = !self.contains_hash(hash);
        self.clock += 1;
        self.forget(self.newest());
        self.insert_in_newest(hash);
        new
    }

    /// [`insert`](Self::insert) for many keys, as if one by one; `new` gets an answer for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn insert_batch<K: Key>(&mut self, keys: &[K], new: &mut Answers) {
        let hash = self.hash;
        hashed(keys, &hash, new, |hashes, new| self.insert_run(hashes, new));
    }

    /// [`insert_batch`](Self::insert_batch) for hashes.
    pub fn insert_hashes(&mut self, hashes: &[u64], new: &mut Answers) {
        let words = new.reset(hashes.len());
        for (hashes, new) in hashes.chunks(HASHED).zip(words.chunks_mut(HASHED / 64)) {
            self.insert_run(hashes, new);
        }
    }

    /// Inserts a run of hashes; `new` is zero before.
    fn insert_run(&mut self, hashes: &[u64], new: &mut [u64]) {
        if self.room() >= hashes.len() as u64 {
            let (kernel, newest) = (self.kernel, self.newest());
            let fresh = ring!(self, self.store.lines_mut(), |ring| {
                kernel.insert_batch_in_ring(ring, hashes, new)
            });
            self.counts[newest] = self.counts[newest].saturating_add(fresh);
            return;
        }
        // Somewhere in this run a generation may become full.
        for (at, &hash) in hashes.iter().enumerate() {
            new[at / 64] |= u64::from(self.insert_hash(hash)) << (at % 64);
        }
    }

    /// Tells the time, if the window is a time: what has grown too old is forgotten. A time before
    /// the latest one is ignored, so that one far in the future stops the clock:
    /// [`restart_at`](Self::restart_at) is the way back.
    ///
    /// The first call may be of any time: say it before the first insert, which otherwise is of
    /// time 0.
    ///
    /// Cost: nothing within T / (G - 1) ticks; then the clearing of a generation, which writes
    /// every G-th line of the filter (30 ms for 100 MB, measured on a busy
    /// machine). After a longer gap all that is too old is
    /// cleared.
    pub fn advance_to(&mut self, now: u64) {
        if self.plan.ticks.is_none() || now <= self.clock {
            return;
        }
        let (before, after) = (self.plan.epoch(self.clock), self.plan.epoch(now));
        self.clock = now;
        let steps = (after - before).min(self.plan.generations.into());
        for epoch in after - steps..after {
            self.forget(self.plan.slot(epoch + 1));
        }
    }

    /// Clears a generation.
    fn forget(&mut self, slot: usize) {
        // A generation that counts nothing has no bits.
        if std::mem::take(&mut self.counts[slot]) == 0 {
            return;
        }
        let lines = self.shape.lanes() as usize / 8;
        let runs = self.store.lines_mut().chunks_exact_mut(lines * self.plan.generations as usize);
        for run in runs {
            run[slot * lines..(slot + 1) * lines].fill(Line::ZERO);
        }
    }

    /// Forgets all keys; a clock goes on.
    pub fn clear(&mut self) {
        self.store.lines_mut().fill(Line::ZERO);
        self.counts = [0; MOST];
        if self.plan.ticks.is_none() {
            self.clock = 0;
        }
    }

    /// Forgets all keys, and sets the clock, forward or back: the way out after a time that was
    /// wrong. A window that is no time has no clock, and only forgets.
    pub fn restart_at(&mut self, now: u64) {
        self.clear();
        if self.plan.ticks.is_some() {
            self.clock = now;
        }
    }
}

impl<S: Store, T: Store> PartialEq<WindowedBloomFilter<T>> for WindowedBloomFilter<S> {
    /// Equal plan, shape, hash, clock and bits.
    fn eq(&self, other: &WindowedBloomFilter<T>) -> bool {
        self.plan == other.plan
            && self.shape == other.shape
            && self.hash == other.hash
            && self.clock == other.clock
            && self.counts == other.counts
            && self.store.lines() == other.store.lines()
    }
}
