//! One trait over all filter types of the library that take keys one by one, for `super::family`.
//!
//! Calls are static, so that they are inlined as in a program that uses one type. An insert that fails counts as not
//! inserted; the lookups that follow find that.

use petal::embed::Layout;
use petal::{
    BatchResults, CountingFilter, Filter, Membership as _, QuotientFilter, ScalableBloomFilter,
    VectorQuotientFilter, WindowedBloomFilter,
};

use super::Operation;

/// Growing filters start with a capacity of `keys / START_DIVISOR`.
const START_DIVISOR: u64 = 1_000;

/// A type of filter.
pub(super) trait FamilyFilter: Sized + 'static {
    /// The operations that are timed.
    const OPERATIONS: &[Operation] = Operation::INSERT_ONLY;

    /// Makes a filter for this capacity.
    fn make(capacity: u64, fpr: f64) -> petal::Result<Self>;

    /// Removes all keys and keeps the memory; a filter that has grown shrinks to its first size.
    fn clear(&mut self);

    fn insert(&mut self, key: &u64) -> bool;

    fn contains(&self, key: &u64) -> bool;

    fn insert_batch(&mut self, keys: &[u64], new: &mut BatchResults);

    fn contains_batch(&self, keys: &[u64], found: &mut BatchResults);

    fn memory_bytes(&self) -> u64;

    fn remove(&mut self, _key: &u64) -> bool {
        false
    }

    fn remove_batch(&mut self, _keys: &[u64], _removed: &mut BatchResults) {}
}

/// Implements the trait by the methods of the field or value `$filter` (`self` or `self.0`), and expressions that insert.
macro_rules! methods {
    ($self:ident => $filter:expr, |$key:ident| $insert:expr, |$keys:ident, $new:ident| $insert_batch:expr
     $(, $remove:ident)?) => {
        fn clear(&mut $self) {
            $filter.clear();
        }

        fn insert(&mut $self, $key: &u64) -> bool {
            $insert
        }

        fn contains(&$self, key: &u64) -> bool {
            $filter.contains(key)
        }

        fn insert_batch(&mut $self, $keys: &[u64], $new: &mut BatchResults) {
            let _ = $insert_batch;
        }

        fn contains_batch(&$self, keys: &[u64], found: &mut BatchResults) {
            $filter.contains_batch(keys, found);
        }

        fn memory_bytes(&$self) -> u64 {
            $filter.memory_usage()
        }

        $(
            fn remove(&mut $self, key: &u64) -> bool {
                $filter.$remove(key)
            }

            fn remove_batch(&mut $self, keys: &[u64], removed: &mut BatchResults) {
                $filter.remove_batch(keys, removed);
            }
        )?
    };
}

impl<G: Layout + 'static> FamilyFilter for Filter<G> {
    fn make(capacity: u64, fpr: f64) -> petal::Result<Self> {
        Self::with_fpr(capacity, fpr)
    }

    methods!(self => self, |key| self.insert(key), |keys, new| self.insert_batch(keys, new));
}

impl<G: Layout + 'static> FamilyFilter for CountingFilter<G> {
    const OPERATIONS: &[Operation] = Operation::WITH_REMOVE;

    fn make(capacity: u64, fpr: f64) -> petal::Result<Self> {
        Self::with_fpr(capacity, fpr)
    }

    methods!(self => self, |key| self.insert(key), |keys, new| self.insert_batch(keys, new), remove);
}

/// As a set: keys with equal fingerprints share one, so nothing can be removed.
impl FamilyFilter for QuotientFilter {
    fn make(capacity: u64, fpr: f64) -> petal::Result<Self> {
        Self::with_fpr(capacity, fpr)
    }

    methods!(self => self, |key| self.insert(key).unwrap_or(false), |keys, new| self.insert_batch(keys, new));
}

/// A quotient filter as a multiset: each key has its own copy of a fingerprint, so keys can be removed.
pub(super) struct QuotientMultiset(QuotientFilter);

impl FamilyFilter for QuotientMultiset {
    const OPERATIONS: &[Operation] = Operation::WITH_REMOVE;

    fn make(capacity: u64, fpr: f64) -> petal::Result<Self> {
        QuotientFilter::with_fpr(capacity, fpr).map(Self)
    }

    methods!(self => self.0, |key| self.0.add(key).is_ok(), |keys, _new| self.0.add_batch(keys), remove);
}

/// As a multiset: each key has its own slot, so keys can be removed.
impl FamilyFilter for VectorQuotientFilter {
    const OPERATIONS: &[Operation] = Operation::WITH_REMOVE;

    fn make(capacity: u64, fpr: f64) -> petal::Result<Self> {
        Self::with_fpr(capacity, fpr)
    }

    methods!(self => self, |key| self.add(key).is_ok(), |keys, _new| self.add_batch(keys), remove);
}

impl FamilyFilter for ScalableBloomFilter {
    fn make(capacity: u64, fpr: f64) -> petal::Result<Self> {
        Self::with_fpr(capacity, fpr)
    }

    methods!(self => self, |key| self.insert(key).unwrap_or(false), |keys, new| self.insert_batch(keys, new));
}

/// The window holds all keys: none is removed, and one generation stays empty.
impl FamilyFilter for WindowedBloomFilter {
    fn make(capacity: u64, fpr: f64) -> petal::Result<Self> {
        Self::with_fpr(capacity, fpr)
    }

    methods!(self => self, |key| self.insert(key), |keys, new| self.insert_batch(keys, new));
}

/// A type that grows.
pub(super) trait Growing: FamilyFilter {
    /// Makes a filter for `start` keys that keeps the rate up to `capacity` keys.
    fn start(start: u64, capacity: u64, fpr: f64) -> petal::Result<Self>;
}

impl Growing for QuotientFilter {
    fn start(start: u64, capacity: u64, fpr: f64) -> petal::Result<Self> {
        Self::with_growth(start, fpr, capacity)
    }
}

impl Growing for ScalableBloomFilter {
    fn start(start: u64, _capacity: u64, fpr: f64) -> petal::Result<Self> {
        Self::with_fpr(start, fpr)
    }
}

/// A filter that starts small and allocates as it grows, which is part of the timed inserts.
pub(super) struct Grown<F> {
    filter: F,
    capacity: u64,
    fpr: f64,
}

impl<F: Growing> FamilyFilter for Grown<F> {
    fn make(capacity: u64, fpr: f64) -> petal::Result<Self> {
        let start = (capacity / START_DIVISOR).max(1);
        Ok(Self { filter: F::start(start, capacity, fpr)?, capacity, fpr })
    }

    fn clear(&mut self) {
        // If memory is refused the filter stays full, and the measured rate is wrong.
        if let Ok(new) = Self::make(self.capacity, self.fpr) {
            *self = new;
        }
    }

    fn insert(&mut self, key: &u64) -> bool {
        self.filter.insert(key)
    }

    fn contains(&self, key: &u64) -> bool {
        self.filter.contains(key)
    }

    fn insert_batch(&mut self, keys: &[u64], new: &mut BatchResults) {
        self.filter.insert_batch(keys, new);
    }

    fn contains_batch(&self, keys: &[u64], found: &mut BatchResults) {
        self.filter.contains_batch(keys, found);
    }

    fn memory_bytes(&self) -> u64 {
        self.filter.memory_bytes()
    }
}
