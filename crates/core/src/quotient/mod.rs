//! Filters that delete, count and grow: remainders in a hash table without keys.
//!
//! What is kept of a key is its fingerprint, ⌊h · R / 2⁶⁴⌋ for a hash h and R = slots · 2^bits of
//! a remainder. Its upper part is the slot where it wants to be and takes no space; its remainder
//! is what is stored. The table is in `kernel/quotient`; here is bookkeeping.
//!
//! Fingerprints depend on R alone, and R stays when slots double and remainders lose a bit. So a
//! filter grows without its keys, and unites with one of another number of slots.
//!
//! Invariants: the store has exactly the lines of the shape, and what it holds is what inserting
//! its fingerprints in any order makes; `facts.inserted` of them are there, `distinct` different
//! ones.
//!
//! Source: Bender et al. 2012, "Don't thrash: how to cache your hash on flash"; Pandey, Bender,
//! Johnson & Patro 2017, "A general-purpose counting filter: making every bit count".

mod builder;
mod change;
mod file;
mod grow;
mod shape;

pub use builder::QuotientBuilder;
pub use shape::QuotientShape;

use crate::answers::Answers;
use crate::error::{Error, Result};
use crate::format::header::Facts;
use crate::hash::HashSpec;
use crate::kernel::Kernel;
use crate::kernel::quotient::{Fault, Table, Walked};
use crate::key::Key;
use crate::membership::Membership;
use crate::rate;
use crate::store::{Owned, Store};

/// A filter that can delete keys, count them, grow, and unite with another of a different size.
/// Smaller than a Bloom filter for rates below 2 %, and slower.
///
/// *No* is certain, *yes* means maybe, as in a [`BloomFilter`](crate::BloomFilter). There are two
/// ways to put keys in:
///
/// * [`insert`](Self::insert): as a set. A key that seems to be there takes no slot.
/// * [`add`](Self::add): as a multiset. Each call takes a slot.
///
/// **Remove only what was added.** Two keys may have one fingerprint. Where both were *added*, each
/// has a slot, and one may be removed without harm to the other. Where both were *inserted*, they
/// share one: to remove one loses the other, with a chance of about the false-positive rate. To
/// remove a key that was never put in may lose another in either case.
///
/// ```
/// use petal::QuotientFilter;
///
/// let mut open = QuotientFilter::with_rate(1_000_000, 0.001)?;
/// open.add("session 1")?;
/// open.add("session 2")?;
/// open.add("session 2")?;
/// assert_eq!(open.count("session 2"), 2);
/// assert!(open.remove("session 1"));    // was there
/// assert!(!open.contains("session 1")); // and is gone
/// # Ok::<_, petal::Error>(())
/// ```
///
/// Full is an error and never silent: nothing that was put in is lost. A filter built with
/// [`with_growth`](Self::with_growth) doubles by itself.
#[derive(Debug)]
pub struct QuotientFilter<S = Owned> {
    shape: QuotientShape,
    hash: HashSpec,
    facts: Facts,
    /// Different fingerprints.
    distinct: u64,
    /// Whether it doubles by itself.
    growing: bool,
    table: Table,
    store: S,
}

// ---- Made new -----------------------------------------------------------------------------------

impl QuotientFilter {
    /// The smallest filter that keeps the false-positive rate `rate` with `keys` keys.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1, cannot be reached with 64-bit hashes, or the memory
    /// is refused.
    pub fn with_rate(keys: u64, rate: f64) -> Result<Self> {
        Self::builder().keys(keys).rate(rate).build()
    }

    /// A filter for `keys` keys at first that doubles by itself, without its keys, and keeps
    /// `rate` up to `max_keys`. It takes one bit a key more for each doubling to come.
    ///
    /// # Errors
    /// As [`with_rate`](Self::with_rate), for the greater number.
    pub fn with_growth(keys: u64, rate: f64, max_keys: u64) -> Result<Self> {
        Self::builder().keys(keys).rate(rate).max_keys(max_keys).build()
    }

    /// A filter of so many slots, in each of which so many bits of a key are kept.
    ///
    /// # Errors
    /// If there are no slots, not 1 to 56 bits, more than 2⁶³ fingerprints, or the memory is
    /// refused.
    pub fn with_slots(slots: u64, remainder_bits: u32) -> Result<Self> {
        Self::builder().slots(slots).remainder_bits(remainder_bits).build()
    }

    /// Chooses size, growth, hash and seed one by one.
    #[must_use]
    pub fn builder() -> QuotientBuilder {
        QuotientBuilder::default()
    }

    pub(super) fn empty(
        shape: QuotientShape,
        hash: HashSpec,
        facts: Facts,
        growing: bool,
    ) -> Result<Self> {
        let store = Owned::zeroed(shape.lines())?;
        Ok(Self::over(shape, hash, facts, 0, growing, store))
    }
}

// ---- Asked --------------------------------------------------------------------------------------

impl<S: Store> QuotientFilter<S> {
    /// A filter over lines that are there; they must be those of the shape.
    fn over(
        shape: QuotientShape,
        hash: HashSpec,
        facts: Facts,
        distinct: u64,
        growing: bool,
        store: S,
    ) -> Self {
        debug_assert_eq!(store.lines().len() as u64, shape.lines());
        let table = Table::new(shape.rule(), shape.fingerprints(), Kernel::chosen());
        Self { shape, hash, facts, distinct, growing, table, store }
    }

    /// Whether the key may have been put in. `false` is certain.
    ///
    /// Cost: one hash; two cache lines in the mean.
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
        self.table.contains(self.store.lines(), hash)
    }

    /// Asks for the memory that [`contains_mixed_hash`](Self::contains_mixed_hash) will look at:
    /// for a caller who has something else to do meanwhile.
    #[inline]
    pub fn prefetch_mixed_hash(&self, hash: u64) {
        self.table.prefetch(self.store.lines(), hash);
    }

    /// [`contains`](Self::contains) for many keys; `found` gets an answer for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut Answers) {
        let words = found.reset(keys.len()).chunks_mut(HASHED / 64);
        let mut hashes = Vec::with_capacity(HASHED.min(keys.len()));
        for (keys, words) in keys.chunks(HASHED).zip(words) {
            hashes.clear();
            self.hash.hash_all(keys.iter().map(Key::bytes), &mut hashes);
            self.table.contains_batch(self.store.lines(), &hashes, words);
        }
    }

    /// [`contains_batch`](Self::contains_batch) for hashes.
    pub fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut Answers) {
        self.table.contains_batch(self.store.lines(), hashes, found.reset(hashes.len()));
    }

    /// How many copies of the key are there: never less than were added and not removed; more if
    /// another key has its fingerprint.
    ///
    /// Cost: as [`contains`](Self::contains), and that of looking at each copy.
    #[must_use]
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.count_mixed_hash(key.hash_with(&self.hash))
    }

    /// [`count`](Self::count) for a hash.
    #[must_use]
    pub fn count_mixed_hash(&self, hash: u64) -> u64 {
        self.table.count(self.store.lines(), hash)
    }

    /// All fingerprints, ascending, each as often as it is there.
    ///
    /// Cost: reads the whole filter, some 2 ns a fingerprint.
    pub fn fingerprints(&self) -> impl Iterator<Item = u64> + '_ {
        self.table.walk(self.store.lines())
    }

    /// The fingerprint of a hash: ⌊h · R / 2⁶⁴⌋, of the [R](QuotientShape::fingerprints) that
    /// there are.
    #[must_use]
    pub fn fingerprint_of(&self, hash: u64) -> u64 {
        self.table.fingerprint(hash)
    }

    /// How many fingerprints are there, copies included: slots that are taken.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.facts.inserted
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many different fingerprints are there.
    #[must_use]
    pub fn distinct(&self) -> u64 {
        self.distinct
    }

    /// The geometry.
    #[must_use]
    pub fn shape(&self) -> QuotientShape {
        self.shape
    }

    /// Whether it doubles by itself.
    #[must_use]
    pub fn is_growing(&self) -> bool {
        self.growing
    }

    /// How keys become hashes.
    #[must_use]
    pub fn hash_spec(&self) -> HashSpec {
        self.hash
    }

    /// Bytes that the table takes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.shape.size_bytes()
    }

    /// Bytes of memory that the filter takes in all. A mapped file's pages are not counted.
    #[must_use]
    pub fn memory_usage(&self) -> u64 {
        self.store.memory_usage() + size_of::<Self>() as u64
    }

    /// Keys it was planned for, all growth included; 0 if it was made from slots.
    #[must_use]
    pub fn planned_keys(&self) -> u64 {
        self.facts.planned
    }

    /// The false-positive rate it was planned for; 0 if it was made from slots.
    #[must_use]
    pub fn target_rate(&self) -> f64 {
        self.facts.target
    }

    /// The false-positive rate with `keys` distinct keys, by calculation. Growing does not change
    /// it; what it holds then may.
    #[must_use]
    pub fn expected_rate(&self, keys: u64) -> f64 {
        self.shape.rate(keys)
    }

    /// The false-positive rate as it is now: the share of fingerprints that are there.
    #[must_use]
    pub fn estimated_rate(&self) -> f64 {
        (self.distinct as f64 * rate::alike(self.shape.fingerprints())).min(1.0)
    }

    /// An estimate of the distinct keys put in: the different fingerprints, and what is likely to
    /// have shared one.
    #[must_use]
    pub fn estimated_len(&self) -> f64 {
        rate::keys_behind(self.distinct, self.shape.fingerprints())
    }

    /// How many keys more it holds at the rate it was planned for, growth that it does by itself
    /// included; `None` if no rate was planned.
    #[must_use]
    pub fn capacity_left(&self) -> Option<u64> {
        if self.facts.target == 0.0 {
            return None;
        }
        let by_rate = self.shape.keys_at_rate(self.facts.target);
        let by_rate = by_rate.saturating_sub(self.estimated_len().ceil() as u64);
        let mut shape = self.shape;
        while let Some(larger) = shape.doubled().filter(|_| self.growing)
            && self.is_promised(shape)
        {
            shape = larger;
        }
        Some(by_rate.min(shape.capacity().saturating_sub(self.len())))
    }

    /// Whether it errs more often than planned.
    #[must_use]
    pub fn is_overfull(&self) -> bool {
        Membership::is_overfull(self)
    }

    /// The share of slots that are taken.
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        (self.len() as f64 / self.shape.slots() as f64).min(1.0)
    }

    /// Whether the promise holds for a filter of twice the slots of this shape, filled: to what
    /// was planned, if that is more than the shape holds, else to its capacity.
    fn is_promised(&self, shape: QuotientShape) -> bool {
        let Facts { planned, target, .. } = self.facts;
        let Some(larger) = shape.doubled() else { return false };
        let most = larger.capacity();
        let keys = if planned > shape.capacity() { planned.min(most) } else { most };
        target == 0.0 || larger.rate(keys) <= target
    }

    /// Whether `other` can be put into this: equal hash, and its fingerprints are as many, or
    /// 2, 4, 8, … times as many.
    ///
    /// # Errors
    /// If it cannot; the error says in what they differ.
    pub fn check_compatible<T: Store>(&self, other: &QuotientFilter<T>) -> Result<()> {
        let (ours, theirs) = (self.shape.fingerprints(), other.shape.fingerprints());
        if !theirs.is_multiple_of(ours) || !(theirs / ours).is_power_of_two() {
            return Err(Error::incompatible("number of fingerprints", ours, theirs));
        }
        if self.hash != other.hash {
            return Err(Error::incompatible("hash", self.hash, other.hash));
        }
        Ok(())
    }

    /// A copy in memory of its own, every byte examined.
    ///
    /// # Errors
    /// If the memory is refused, or the filter lies in a file that is damaged.
    pub fn to_owned_filter(&self) -> Result<QuotientFilter> {
        let store = Owned::copy_of(self.store.lines())?;
        let Self { shape, hash, facts, distinct, growing, .. } = *self;
        let copy = QuotientFilter::over(shape, hash, facts, distinct, growing, store);
        copy.check_table(0, Walked::default())?;
        Ok(copy)
    }

    fn check_table(&self, data_at: u64, walked: Walked) -> Result<()> {
        match self.table.check(self.store.lines(), self.shape.slots(), walked) {
            Err(fault) => Err(unsound(&fault, data_at)),
            Ok(tally) if (tally.total, tally.distinct) != (self.len(), self.distinct) => {
                let claimed = format!("{} fingerprints, {} different", self.len(), self.distinct);
                let found = format!("{} and {}", tally.total, tally.distinct);
                Err(Error::corrupt("number of fingerprints", data_at as usize, claimed, found))
            }
            Ok(_) => Ok(()),
        }
    }
}

/// What is wrong with a table in a file's data that begin there.
fn unsound(fault: &Fault, data_at: u64) -> Error {
    let at = usize::try_from(data_at).unwrap_or(usize::MAX).saturating_add(fault.at);
    Error::corrupt(fault.what, at, "what the fingerprints make it", "something else")
}

/// Keys that are hashed together, and their hashes looked at while they are in the nearest cache.
const HASHED: usize = 2048;

impl<S: Store, T: Store> PartialEq<QuotientFilter<T>> for QuotientFilter<S> {
    /// Equal shape, hash and fingerprints. What was planned and how it came about does not count.
    fn eq(&self, other: &QuotientFilter<T>) -> bool {
        self.shape == other.shape
            && self.hash == other.hash
            && self.store.lines() == other.store.lines()
    }
}
