//! Filters that can delete: a small counter for each bit of a Bloom filter.
//!
//! One type, [`CountingFilter`], over a layout and a store. It *is* a [`Filter`], bit for bit the
//! one that would have come of the same keys, with counters beside it: whoever asks looks at the
//! filter alone, at its speed. Only who inserts or removes looks at the counters.
//!
//! Invariants: the planes have as many lines for each line of the filter as the width says, less
//! one. A hash that was inserted more often than removed is contained, as long as nobody removes
//! what was never inserted.

mod builder;
mod file;
mod planes;

pub use builder::CountingBuilder;

use crate::answers::Answers;
use crate::error::{Error, Result};
use crate::filter::geometry::sealed::Fields;
use crate::filter::geometry::{Geometry, whole_cardinality};
use crate::filter::{Filter, hashed};
use crate::hash::HashSpec;
use crate::kernel::blocked::Rule;
use crate::kernel::classic;
use crate::kernel::counting::{Counters, Marking, Removed};
use crate::key::Key;
use crate::membership::Membership;
use crate::rate;
use crate::shape::{ClassicShape, Shape};
use crate::store::{Line, Owned, Store, StoreMut};

/// The default counting filter: a [`BloomFilter`](crate::BloomFilter) with a counter for each
/// bit. Of four bits a counter it takes four times the memory, and is asked as fast.
///
/// ```
/// use petal::CountingBloomFilter;
///
/// let mut open = CountingBloomFilter::with_rate(1_000_000, 0.01)?;
/// assert!(open.insert("session-1"));    // new
/// assert!(open.remove("session-1"));    // was there
/// assert!(!open.contains("session-1")); // certainly not there
/// assert!(!open.remove("session-1"));   // nothing to remove
/// # Ok::<_, petal::Error>(())
/// ```
pub type CountingBloomFilter<S = Owned> = CountingFilter<Shape, S>;

/// The textbook counting filter: a [`ClassicBloomFilter`](crate::ClassicBloomFilter) with a
/// counter for each bit. Several cache lines for each of a key's positions.
///
/// Source: Fan, Cao, Almeida & Broder 2000, "Summary cache: a scalable wide-area web cache sharing
/// protocol".
pub type ClassicCountingBloomFilter<S = Owned> = CountingFilter<ClassicShape, S>;

/// A Bloom filter that can delete: [`CountingBloomFilter`] or [`ClassicCountingBloomFilter`].
///
/// Each bit of the filter has a counter of `width` bits, which counts to 2^(width-1) and then is
/// *stuck*: it is never lowered again, so that no key is lost, at the price of a bit that stays
/// set. With four bits, the default, and the planned number of keys inserted once each, less than
/// one in a million is.
///
/// **Long use leaves more of them stuck.** Each time that all keys have been removed and as many
/// others inserted, one or two more in a million are: 1 to 2 % after 10,000 such turnovers, and the
/// false-positive rate is a tenth higher then. See
/// [`expected_saturated_after`](CountingFilter::expected_saturated_after); wider counters, or a
/// filter built anew, are the remedy.
///
/// **Remove only what was inserted.** To remove a key that was never inserted is refused if one of
/// its counters is zero, which is nearly always so. If it is a false positive, it is removed from
/// the keys that it is mistaken for, and *these may be lost*. The same goes for removing a key more
/// often than it was inserted.
#[derive(Debug)]
pub struct CountingFilter<G: Geometry, S = Owned> {
    bloom: Filter<G, S>,
    marking: Marking,
    width: u32,
    planes: S,
}

// ---- Made new -----------------------------------------------------------------------------------

impl<G: Geometry> CountingFilter<G> {
    /// The smallest filter that keeps the false-positive rate `rate` with `keys` keys, with
    /// counters of four bits.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1, cannot be reached with 64-bit hashes, or the memory
    /// is refused.
    pub fn with_rate(keys: u64, rate: f64) -> Result<Self> {
        Self::builder().keys(keys).rate(rate).build()
    }

    /// Chooses size, width of counters, hash and seed one by one.
    #[must_use]
    pub fn builder() -> CountingBuilder<G> {
        CountingBuilder::new()
    }
}

// ---- Asked --------------------------------------------------------------------------------------

impl<G: Geometry, S: Store> CountingFilter<G, S> {
    /// A filter and the planes of its counters, which must be those of the width.
    fn over(bloom: Filter<G, S>, width: u32, planes: S) -> Self {
        debug_assert_eq!(planes.lines().len() as u64, planes_of(&bloom.shape(), width));
        let Fields { probes, lanes, extent } = bloom.shape().fields();
        let probes = probes.into();
        let marking = match lanes {
            0 => Marking::Classic(classic::Rule { bits: extent, probes }),
            8 => Marking::Line(Rule { blocks: extent, probes }),
            _ => Marking::Pair(Rule { blocks: extent, probes }),
        };
        Self { bloom, marking, width, planes }
    }

    /// Whether the key may be in the filter. `false` is certain.
    ///
    /// Cost: as [`Filter::contains`]; no counter is looked at.
    #[inline]
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.bloom.contains(key)
    }

    /// [`contains`](Self::contains) for a hash made with [`hash_spec`](Self::hash_spec), or with
    /// another hash of 64 bits whose every bit is random. A plain integer is no such hash: insert
    /// it as a key.
    #[inline]
    #[must_use]
    pub fn contains_mixed_hash(&self, hash: u64) -> bool {
        self.bloom.contains_mixed_hash(hash)
    }

    /// [`contains`](Self::contains) for many keys; `found` gets an answer for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut Answers) {
        self.bloom.contains_batch(keys, found);
    }

    /// [`contains_batch`](Self::contains_batch) for hashes.
    pub fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut Answers) {
        self.bloom.contains_mixed_hashes(hashes, found);
    }

    /// How often the key was inserted and not removed, at most: the least of its counters. 0 is
    /// certain. Other keys can make it more: with the false-positive rate for a key that is not
    /// there, and about that rate for one that is. [`most`](Self::most) means that or more.
    ///
    /// Cost: one hash; the lines that [`insert`](Self::insert) takes.
    #[must_use]
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.count_mixed_hash(key.hash_with(&self.hash_spec()))
    }

    /// [`count`](Self::count) for a hash.
    #[must_use]
    pub fn count_mixed_hash(&self, hash: u64) -> u64 {
        self.marking.count(self.bits(), self.planes.lines(), self.depth(), hash)
    }

    /// The largest count, 2^(width-1): counters that have come to it are stuck there.
    #[must_use]
    pub fn most(&self) -> u64 {
        1 << (self.width - 1)
    }

    /// How many counters are stuck at [`most`](Self::most): their bits stay set whatever is
    /// removed, until [`clear`](Self::clear). If they become many, the counters are too narrow, or
    /// some keys were inserted very often.
    ///
    /// Cost: reads the whole filter.
    #[must_use]
    pub fn saturated(&self) -> u64 {
        planes::stuck(self.bits(), self.planes.lines(), self.depth())
    }

    /// How many counters will be stuck with `keys` distinct keys, by calculation.
    #[must_use]
    pub fn expected_saturated(&self, keys: u64) -> f64 {
        let bits = self.shape().bits() as f64;
        rate::stuck(keys as f64 * self.shape().touch(), self.most()) * bits
    }

    /// How many counters will be stuck with `keys` distinct keys in the filter, after `turnovers`
    /// in each of which all of them were removed and as many others inserted, by calculation.
    #[must_use]
    pub fn expected_saturated_after(&self, keys: u64, turnovers: f64) -> f64 {
        let bits = self.shape().bits() as f64;
        rate::stuck_after(keys as f64 * self.shape().touch(), self.most(), turnovers) * bits
    }

    /// Bits of a counter.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// The filter without its counters: for those who only ask.
    ///
    /// It is equal, bit for bit, to one into which the same keys were inserted, as long as no
    /// counter was stuck when a key was removed.
    #[must_use]
    pub fn as_filter(&self) -> &Filter<G, S> {
        &self.bloom
    }

    /// A copy of [`as_filter`](Self::as_filter), to keep, to write into a file of its own, or to
    /// insert more into. A fourth of the memory, if counters have four bits.
    ///
    /// # Errors
    /// If the memory is refused.
    pub fn freeze(&self) -> Result<Filter<G>> {
        self.bloom.to_owned_filter()
    }

    /// The geometry of the filter whose bits have counters.
    #[must_use]
    pub fn shape(&self) -> G {
        self.bloom.shape()
    }

    /// How keys become hashes.
    #[must_use]
    pub fn hash_spec(&self) -> HashSpec {
        self.bloom.hash_spec()
    }

    /// Bytes that the counters take.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.bloom.size_bytes() * u64::from(self.width)
    }

    /// Bytes of memory that the filter takes in all. A mapped file's pages are not counted.
    #[must_use]
    pub fn memory_usage(&self) -> u64 {
        let stores = self.bloom.store().memory_usage() + self.planes.memory_usage();
        stores + size_of::<Self>() as u64
    }

    /// Keys it was planned for; 0 if it was made from bits and probes.
    #[must_use]
    pub fn planned_keys(&self) -> u64 {
        self.bloom.planned_keys()
    }

    /// The false-positive rate it was planned for; 0 if it was made from bits and probes.
    #[must_use]
    pub fn target_rate(&self) -> f64 {
        self.bloom.target_rate()
    }

    /// How many distinct keys are in it, as far as it knows: one more for each insert of a key
    /// that was not contained before, one less for each removal after which the key is not
    /// contained any more, but never less than 0. After [`union`](Self::union) an estimate from the
    /// bits.
    ///
    /// A key that was a false positive when it was inserted or is one after its removal is not
    /// counted there, so that the number drifts, to both sides alike: with the false-positive rate
    /// ε, its standard error is √(2 ε r) after r removals and as many inserts. A filter of 10,000
    /// keys at 1 % may be off by 14 % after 10,000 turnovers.
    /// [`estimated_len`](Self::estimated_len) does not drift so; it is too high by about 1.5 % for
    /// each per cent of counters that are stuck.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        self.bloom.inserted()
    }

    /// The false-positive rate with `keys` distinct keys, by calculation.
    #[must_use]
    pub fn expected_rate(&self, keys: u64) -> f64 {
        self.bloom.expected_rate(keys)
    }

    /// The false-positive rate as it is now: see [`Filter::estimated_rate`].
    ///
    /// Cost: reads all bits, and no counters.
    #[must_use]
    pub fn estimated_rate(&self) -> f64 {
        self.bloom.estimated_rate()
    }

    /// An estimate of the distinct keys in it, from the bits that are set; infinite if all are.
    ///
    /// Cost: reads all bits, and no counters.
    #[must_use]
    pub fn estimated_len(&self) -> f64 {
        self.bloom.estimated_len()
    }

    /// How many keys more it holds at the rate it was planned for; `None` if no rate was planned.
    ///
    /// Cost: reads all bits, and no counters.
    #[must_use]
    pub fn capacity_left(&self) -> Option<u64> {
        self.bloom.capacity_left()
    }

    /// Whether it errs more often than planned; what may come of chance passes. Stuck counters are
    /// no chance: a filter that they made worse than planned is overfull.
    ///
    /// Cost: reads all bits, and no counters.
    #[must_use]
    pub fn is_overfull(&self) -> bool {
        Membership::is_overfull(self)
    }

    /// The share of counters above zero.
    ///
    /// Cost: reads all bits, and no counters.
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        self.bloom.fill_ratio()
    }

    /// Whether two filters can be united: equal shape, equal hash, equal width.
    ///
    /// # Errors
    /// If they cannot; the error says in what they differ.
    pub fn check_compatible<T: Store>(&self, other: &CountingFilter<G, T>) -> Result<()> {
        self.bloom.check_compatible(&other.bloom)?;
        if self.width != other.width {
            return Err(Error::incompatible("width of counters", self.width, other.width));
        }
        Ok(())
    }

    /// A copy in memory of its own.
    ///
    /// # Errors
    /// If the memory is refused.
    pub fn to_owned_filter(&self) -> Result<CountingFilter<G>> {
        let planes = Owned::copy_of(self.planes.lines())?;
        Ok(CountingFilter::over(self.bloom.to_owned_filter()?, self.width, planes))
    }

    /// Lines of bits.
    fn bits(&self) -> &[Line] {
        self.bloom.store().lines()
    }

    /// Planes of a line of bits.
    fn depth(&self) -> usize {
        self.width as usize - 1
    }
}

/// Lines of planes that a shape needs.
fn planes_of(shape: &impl Geometry, width: u32) -> u64 {
    shape.lines().saturating_mul(u64::from(width - 1))
}

// ---- Changed ------------------------------------------------------------------------------------

impl<G: Geometry, S: StoreMut> CountingFilter<G, S> {
    /// Inserts a key; whether it was new. `true` is certain; `false` means that it was there
    /// already, or is a false positive. Either way it is counted.
    ///
    /// Cost: one hash; `width` lines for each that a [`Filter`] takes.
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        self.insert_mixed_hash(key.hash_with(&self.hash_spec()))
    }

    /// [`insert`](Self::insert) for a hash made with [`hash_spec`](Self::hash_spec), or with
    /// another hash of 64 bits whose every bit is random. A plain integer is no such hash: insert
    /// it as a key.
    pub fn insert_mixed_hash(&mut self, hash: u64) -> bool {
        let new = self.marking.insert(self.bloom.kernel(), self.counters(), hash);
        self.bloom.facts_mut().inserted += u64::from(new);
        new
    }

    /// [`insert`](Self::insert) for many keys, as if one by one; `new` gets an answer for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn insert_batch<K: Key>(&mut self, keys: &[K], new: &mut Answers) {
        let (spec, marking, kernel) = (self.hash_spec(), self.marking, self.bloom.kernel());
        hashed(keys, &spec, new, |hashes, new| {
            marking.insert_batch(kernel, self.counters(), hashes, new);
        });
        self.bloom.facts_mut().inserted += new.count_ones();
    }

    /// [`insert_batch`](Self::insert_batch) for hashes.
    pub fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut Answers) {
        let (marking, kernel) = (self.marking, self.bloom.kernel());
        marking.insert_batch(kernel, self.counters(), hashes, new.reset(hashes.len()));
        self.bloom.facts_mut().inserted += new.count_ones();
    }

    /// Removes a key that was inserted before; if it was inserted more than once, once. `false`
    /// means that it was certainly not there, and nothing has changed.
    ///
    /// A key that was never inserted must not be removed: if it is a false positive, which is seen
    /// by nobody, keys that *were* inserted may be lost. See [`CountingFilter`].
    ///
    /// Cost: as [`insert`](Self::insert).
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        self.remove_mixed_hash(key.hash_with(&self.hash_spec()))
    }

    /// [`remove`](Self::remove) for a hash.
    pub fn remove_mixed_hash(&mut self, hash: u64) -> bool {
        let removed = self.marking.remove(self.bloom.kernel(), self.counters(), hash);
        self.note_gone(u64::from(removed == Removed::Gone));
        removed != Removed::Absent
    }

    /// [`remove`](Self::remove) for many keys, as if one by one; `removed` gets an answer for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn remove_batch<K: Key>(&mut self, keys: &[K], removed: &mut Answers) {
        let (spec, marking, kernel) = (self.hash_spec(), self.marking, self.bloom.kernel());
        let mut gone = 0;
        hashed(keys, &spec, removed, |hashes, removed| {
            gone += marking.remove_batch(kernel, self.counters(), hashes, removed);
        });
        self.note_gone(gone);
    }

    /// [`remove_batch`](Self::remove_batch) for hashes.
    pub fn remove_mixed_hashes(&mut self, hashes: &[u64], removed: &mut Answers) {
        let (marking, kernel) = (self.marking, self.bloom.kernel());
        let answers = removed.reset(hashes.len());
        let gone = marking.remove_batch(kernel, self.counters(), hashes, answers);
        self.note_gone(gone);
    }

    /// Adds the counts of `other`: exactly the filter that would have come of inserting both.
    ///
    /// # Errors
    /// If they are not compatible; nothing has changed then.
    pub fn union<T: Store>(&mut self, other: &CountingFilter<G, T>) -> Result<()> {
        self.check_compatible(other)?;
        let depth = self.depth();
        let (ours, theirs) = (self.planes.lines_mut(), other.planes.lines());
        planes::add(self.bloom.store_mut().lines_mut(), ours, other.bits(), theirs, depth);
        let keys = whole_cardinality(&self.shape(), self.estimated_len());
        self.bloom.facts_mut().inserted = keys;
        Ok(())
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        self.bloom.clear();
        self.planes.lines_mut().fill(Line::ZERO);
    }

    fn counters(&mut self) -> Counters<'_> {
        let depth = self.depth();
        let (bits, planes) = (self.bloom.store_mut().lines_mut(), self.planes.lines_mut());
        Counters { bits, planes, depth }
    }

    /// So many keys are not contained any more. False positives among them were not counted.
    fn note_gone(&mut self, keys: u64) {
        let inserted = &mut self.bloom.facts_mut().inserted;
        *inserted = inserted.saturating_sub(keys);
    }
}

impl<G: Geometry, S: Store, T: Store> PartialEq<CountingFilter<G, T>> for CountingFilter<G, S> {
    /// Equal shape, hash, width and counts. What was planned and how it came about does not count.
    fn eq(&self, other: &CountingFilter<G, T>) -> bool {
        self.check_compatible(other).is_ok()
            && self.bits() == other.bits()
            && self.planes.lines() == other.planes.lines()
    }
}
