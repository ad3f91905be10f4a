//! What the harness does with each type of filter that keys can be added to, under one trait: a new type is an `impl` here
//! and a line in `super::family`.
//!
//! An insert that is refused counts as none: whoever asks for the key finds that out.

use petal::{
    Answers, CountingFilter, Filter, Geometry, QuotientFilter, ScalableBloomFilter,
    WideBloomFilter, WindowedBloomFilter,
};

use super::Operation;

/// A filter that grows is begun with one of so many parts of its keys.
const BEGUN_AT: u64 = 1_000;

/// A type of filter.
pub(super) trait Member: Sized + 'static {
    /// What it is timed at.
    const OPERATIONS: &[Operation] = Operation::ADDED;

    /// One that is told how many keys will come.
    fn make(keys: u64, rate: f64) -> petal::Result<Self>;

    /// Forgets all keys, and keeps the memory; one that has grown is as small as it was begun.
    fn clear(&mut self);

    fn insert(&mut self, key: &u64) -> bool;

    fn contains(&self, key: &u64) -> bool;

    fn insert_batch(&mut self, keys: &[u64], new: &mut Answers);

    fn contains_batch(&self, keys: &[u64], found: &mut Answers);

    fn memory_usage(&self) -> u64;

    fn remove(&mut self, _key: &u64) -> bool {
        false
    }

    fn remove_batch(&mut self, _keys: &[u64], _removed: &mut Answers) {}
}

impl<G: Geometry + 'static> Member for Filter<G> {
    fn make(keys: u64, rate: f64) -> petal::Result<Self> {
        Self::with_rate(keys, rate)
    }

    fn clear(&mut self) {
        self.clear();
    }

    fn insert(&mut self, key: &u64) -> bool {
        self.insert(key)
    }

    fn contains(&self, key: &u64) -> bool {
        self.contains(key)
    }

    fn insert_batch(&mut self, keys: &[u64], new: &mut Answers) {
        self.insert_batch(keys, new);
    }

    fn contains_batch(&self, keys: &[u64], found: &mut Answers) {
        self.contains_batch(keys, found);
    }

    fn memory_usage(&self) -> u64 {
        self.memory_usage()
    }
}

impl<G: Geometry + 'static> Member for CountingFilter<G> {
    const OPERATIONS: &[Operation] = Operation::REMOVED;

    fn make(keys: u64, rate: f64) -> petal::Result<Self> {
        Self::with_rate(keys, rate)
    }

    fn clear(&mut self) {
        self.clear();
    }

    fn insert(&mut self, key: &u64) -> bool {
        self.insert(key)
    }

    fn contains(&self, key: &u64) -> bool {
        self.contains(key)
    }

    fn insert_batch(&mut self, keys: &[u64], new: &mut Answers) {
        self.insert_batch(keys, new);
    }

    fn contains_batch(&self, keys: &[u64], found: &mut Answers) {
        self.contains_batch(keys, found);
    }

    fn memory_usage(&self) -> u64 {
        self.memory_usage()
    }

    fn remove(&mut self, key: &u64) -> bool {
        self.remove(key)
    }

    fn remove_batch(&mut self, keys: &[u64], removed: &mut Answers) {
        self.remove_batch(keys, removed);
    }
}

/// As a set: two keys of one fingerprint share it, and nothing can be taken out.
impl Member for QuotientFilter {
    fn make(keys: u64, rate: f64) -> petal::Result<Self> {
        Self::with_rate(keys, rate)
    }

    fn clear(&mut self) {
        self.clear();
    }

    fn insert(&mut self, key: &u64) -> bool {
        self.insert(key).unwrap_or(false)
    }

    fn contains(&self, key: &u64) -> bool {
        self.contains(key)
    }

    fn insert_batch(&mut self, keys: &[u64], new: &mut Answers) {
        let _ = self.insert_batch(keys, new);
    }

    fn contains_batch(&self, keys: &[u64], found: &mut Answers) {
        self.contains_batch(keys, found);
    }

    fn memory_usage(&self) -> u64 {
        self.memory_usage()
    }
}

/// A quotient filter with a copy for every key, which is how keys can be taken out again.
pub(super) struct Copies(QuotientFilter);

impl Member for Copies {
    const OPERATIONS: &[Operation] = Operation::REMOVED;

    fn make(keys: u64, rate: f64) -> petal::Result<Self> {
        QuotientFilter::with_rate(keys, rate).map(Self)
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn insert(&mut self, key: &u64) -> bool {
        self.0.add(key).unwrap_or(false)
    }

    fn contains(&self, key: &u64) -> bool {
        self.0.contains(key)
    }

    fn insert_batch(&mut self, keys: &[u64], new: &mut Answers) {
        let _ = self.0.add_batch(keys, new);
    }

    fn contains_batch(&self, keys: &[u64], found: &mut Answers) {
        self.0.contains_batch(keys, found);
    }

    fn memory_usage(&self) -> u64 {
        self.0.memory_usage()
    }

    fn remove(&mut self, key: &u64) -> bool {
        self.0.remove(key)
    }

    fn remove_batch(&mut self, keys: &[u64], removed: &mut Answers) {
        self.0.remove_batch(keys, removed);
    }
}

impl Member for ScalableBloomFilter {
    fn make(keys: u64, rate: f64) -> petal::Result<Self> {
        Self::with_rate(keys, rate)
    }

    fn clear(&mut self) {
        self.clear();
    }

    fn insert(&mut self, key: &u64) -> bool {
        self.insert(key).unwrap_or(false)
    }

    fn contains(&self, key: &u64) -> bool {
        self.contains(key)
    }

    fn insert_batch(&mut self, keys: &[u64], new: &mut Answers) {
        let _ = self.insert_batch(keys, new);
    }

    fn contains_batch(&self, keys: &[u64], found: &mut Answers) {
        self.contains_batch(keys, found);
    }

    fn memory_usage(&self) -> u64 {
        self.memory_usage()
    }
}

/// The window is as long as all keys together: none is forgotten, and one generation stays empty.
impl Member for WindowedBloomFilter {
    fn make(keys: u64, rate: f64) -> petal::Result<Self> {
        Self::with_rate(keys, rate)
    }

    fn clear(&mut self) {
        self.clear();
    }

    fn insert(&mut self, key: &u64) -> bool {
        self.insert(key)
    }

    fn contains(&self, key: &u64) -> bool {
        self.contains(key)
    }

    fn insert_batch(&mut self, keys: &[u64], new: &mut Answers) {
        self.insert_batch(keys, new);
    }

    fn contains_batch(&self, keys: &[u64], found: &mut Answers) {
        self.contains_batch(keys, found);
    }

    fn memory_usage(&self) -> u64 {
        self.memory_usage()
    }
}

impl Member for WideBloomFilter {
    fn make(keys: u64, rate: f64) -> petal::Result<Self> {
        Self::with_rate(keys, rate)
    }

    fn clear(&mut self) {
        self.clear();
    }

    fn insert(&mut self, key: &u64) -> bool {
        self.insert(key)
    }

    fn contains(&self, key: &u64) -> bool {
        self.contains(key)
    }

    fn insert_batch(&mut self, keys: &[u64], new: &mut Answers) {
        self.insert_batch(keys, new);
    }

    fn contains_batch(&self, keys: &[u64], found: &mut Answers) {
        self.contains_batch(keys, found);
    }

    fn memory_usage(&self) -> u64 {
        self.memory_usage()
    }
}

/// A type that grows.
pub(super) trait Grows: Member {
    /// One that is begun with so many keys, and keeps the rate up to so many.
    fn begin(begun: u64, keys: u64, rate: f64) -> petal::Result<Self>;
}

impl Grows for QuotientFilter {
    fn begin(begun: u64, keys: u64, rate: f64) -> petal::Result<Self> {
        Self::with_growth(begun, rate, keys)
    }
}

impl Grows for ScalableBloomFilter {
    fn begin(begun: u64, _keys: u64, rate: f64) -> petal::Result<Self> {
        Self::with_rate(begun, rate)
    }
}

/// A filter that is begun small, and made anew to be emptied: it gets its memory as it grows, on its own time.
pub(super) struct Grown<M> {
    filter: M,
    keys: u64,
    rate: f64,
}

impl<M: Grows> Member for Grown<M> {
    fn make(keys: u64, rate: f64) -> petal::Result<Self> {
        Ok(Self { filter: M::begin((keys / BEGUN_AT).max(1), keys, rate)?, keys, rate })
    }

    fn clear(&mut self) {
        // Refused, it stays full, and the judging says so.
        if let Ok(new) = Self::make(self.keys, self.rate) {
            *self = new;
        }
    }

    fn insert(&mut self, key: &u64) -> bool {
        self.filter.insert(key)
    }

    fn contains(&self, key: &u64) -> bool {
        self.filter.contains(key)
    }

    fn insert_batch(&mut self, keys: &[u64], new: &mut Answers) {
        self.filter.insert_batch(keys, new);
    }

    fn contains_batch(&self, keys: &[u64], found: &mut Answers) {
        self.filter.contains_batch(keys, found);
    }

    fn memory_usage(&self) -> u64 {
        self.filter.memory_usage()
    }
}
