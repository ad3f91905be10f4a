//! Filters as the harness uses them: key by key, in batches, filled in parallel, or built at once.
//!
//! The adapters are generic over closures, so that the calls of every filter are inlined. The trait is called once for
//! many keys; the virtual call is not measurable.

use petal::BatchResults;

use super::keys::Keys;

/// Keys per batch: they fit in the L2 cache, and the cost of a call is negligible.
pub const BATCH: usize = 20_000;

/// A filter under test. Its memory has been written to before anything is timed, except what an insert allocates.
pub trait BenchFilter {
    /// Removes all keys and keeps the memory.
    fn clear(&mut self);

    /// Inserts keys. Timed.
    fn insert(&mut self, keys: &Keys);

    /// Removes keys, and returns how many the filter reported as removed. Timed.
    fn remove(&mut self, keys: &Keys) -> u64 {
        let _ = keys;
        0
    }

    /// Looks up keys, and uses every result. Timed.
    fn query(&mut self, keys: &Keys);

    /// Returns the number of keys that the last [`query`](Self::query) found.
    fn hits(&self) -> u64;

    /// Looks up keys in every way that the filter has and returns the number found. `None` if two ways differ.
    fn checked_query(&mut self, keys: &Keys) -> Option<u64> {
        self.query(keys);
        Some(self.hits())
    }

    /// Returns the exact false-positive rate for the current bits, if the filter can compute it.
    fn estimated_fpr(&self) -> Option<f64> {
        None
    }

    /// Returns the memory in use, if it is only known when the filter is full.
    fn memory_bytes(&self) -> Option<u64> {
        None
    }
}

/// A filter with the functions that do not depend on how keys are passed.
pub struct FilterOps<F, K> {
    filter: F,
    keys: fn(&Keys) -> &[K],
    clear: fn(&mut F),
    remove: Option<fn(&mut F, &[K]) -> u64>,
    estimated_fpr: fn(&F) -> Option<f64>,
    memory_bytes: fn(&F) -> Option<u64>,
}

impl<F, K> FilterOps<F, K> {
    /// A filter, the form of the keys that it takes, and [`BenchFilter::clear`].
    pub fn new(filter: F, keys: fn(&Keys) -> &[K], clear: fn(&mut F)) -> Self {
        Self { filter, keys, clear, remove: None, estimated_fpr: |_| None, memory_bytes: |_| None }
    }

    /// Adds [`BenchFilter::remove`].
    #[must_use]
    pub fn with_remove(self, remove: fn(&mut F, &[K]) -> u64) -> Self {
        Self { remove: Some(remove), ..self }
    }

    /// Adds [`BenchFilter::estimated_fpr`].
    #[must_use]
    pub fn with_estimated_fpr(self, estimated_fpr: fn(&F) -> Option<f64>) -> Self {
        Self { estimated_fpr, ..self }
    }

    /// Adds [`BenchFilter::memory_bytes`].
    #[must_use]
    pub fn with_memory_bytes(self, memory_bytes: fn(&F) -> Option<u64>) -> Self {
        Self { memory_bytes, ..self }
    }
}

/// The methods that all adapters of a [`FilterOps`] share.
macro_rules! common_methods {
    () => {
        fn clear(&mut self) {
            (self.ops.clear)(&mut self.ops.filter);
        }

        fn remove(&mut self, keys: &Keys) -> u64 {
            let keys = (self.ops.keys)(keys);
            self.ops.remove.map_or(0, |remove| remove(&mut self.ops.filter, keys))
        }

        fn hits(&self) -> u64 {
            self.hits
        }

        fn estimated_fpr(&self) -> Option<f64> {
            (self.ops.estimated_fpr)(&self.ops.filter)
        }

        fn memory_bytes(&self) -> Option<u64> {
            (self.ops.memory_bytes)(&self.ops.filter)
        }
    };
}

/// A filter that is used key by key. The results of inserts are used, too.
pub struct PerKey<F, K, I, Q> {
    ops: FilterOps<F, K>,
    insert: I,
    query: Q,
    hits: u64,
}

impl<F, K, I, Q> PerKey<F, K, I, Q>
where
    I: Fn(&mut F, &K) -> bool,
    Q: Fn(&F, &K) -> bool,
{
    /// A filter, and how one key is inserted and looked up.
    pub fn new(ops: FilterOps<F, K>, insert: I, query: Q) -> Self {
        Self { ops, insert, query, hits: 0 }
    }
}

impl<F, K, I, Q> BenchFilter for PerKey<F, K, I, Q>
where
    I: Fn(&mut F, &K) -> bool,
    Q: Fn(&F, &K) -> bool,
{
    fn insert(&mut self, keys: &Keys) {
        let filter = &mut self.ops.filter;
        let keys = (self.ops.keys)(keys);
        self.hits = keys.iter().map(|key| u64::from((self.insert)(filter, key))).sum();
    }

    fn query(&mut self, keys: &Keys) {
        let filter = &self.ops.filter;
        let keys = (self.ops.keys)(keys);
        self.hits = keys.iter().map(|key| u64::from((self.query)(filter, key))).sum();
    }

    common_methods!();
}

/// A filter that is used in batches of [`BATCH`] keys. Its batches are checked against single keys.
pub struct Batched<F, K, I, Q, O> {
    ops: FilterOps<F, K>,
    insert: I,
    query: Q,
    query_one: O,
    results: BatchResults,
    hits: u64,
}

impl<F, K, I, Q, O> Batched<F, K, I, Q, O>
where
    I: Fn(&mut F, &[K], &mut BatchResults),
    Q: Fn(&F, &[K], &mut BatchResults),
    O: Fn(&F, &K) -> bool,
{
    /// A filter, how a batch is inserted and looked up, and how one key is looked up.
    pub fn new(ops: FilterOps<F, K>, insert: I, query: Q, query_one: O) -> Self {
        Self { ops, insert, query, query_one, results: BatchResults::new(), hits: 0 }
    }
}

impl<F, K, I, Q, O> BenchFilter for Batched<F, K, I, Q, O>
where
    I: Fn(&mut F, &[K], &mut BatchResults),
    Q: Fn(&F, &[K], &mut BatchResults),
    O: Fn(&F, &K) -> bool,
{
    fn insert(&mut self, keys: &Keys) {
        for keys in (self.ops.keys)(keys).chunks(BATCH) {
            (self.insert)(&mut self.ops.filter, keys, &mut self.results);
        }
    }

    fn query(&mut self, keys: &Keys) {
        self.hits = 0;
        for keys in (self.ops.keys)(keys).chunks(BATCH) {
            (self.query)(&self.ops.filter, keys, &mut self.results);
            self.hits += self.results.count_ones();
        }
    }

    fn checked_query(&mut self, keys: &Keys) -> Option<u64> {
        self.hits = 0;
        for keys in (self.ops.keys)(keys).chunks(BATCH) {
            let filter = &self.ops.filter;
            (self.query)(filter, keys, &mut self.results);
            let same = |(at, key)| self.results.get(at) == (self.query_one)(filter, key);
            if self.results.len() != keys.len() || !keys.iter().enumerate().all(same) {
                return None;
            }
            self.hits += self.results.count_ones();
        }
        Some(self.hits)
    }

    common_methods!();
}

/// A filter that takes all keys in one call, on several threads, and is queried in batches of [`BATCH`] keys.
pub struct ParallelFill<F, K, I, Q> {
    ops: FilterOps<F, K>,
    insert: I,
    query: Q,
    results: BatchResults,
    hits: u64,
}

impl<F, K, I, Q> ParallelFill<F, K, I, Q>
where
    I: Fn(&mut F, &[K]) -> petal::Result<()>,
    Q: Fn(&F, &[K], &mut BatchResults),
{
    /// A filter, and how all keys are inserted and a batch is looked up.
    pub fn new(ops: FilterOps<F, K>, insert: I, query: Q) -> Self {
        Self { ops, insert, query, results: BatchResults::new(), hits: 0 }
    }
}

impl<F, K, I, Q> BenchFilter for ParallelFill<F, K, I, Q>
where
    I: Fn(&mut F, &[K]) -> petal::Result<()>,
    Q: Fn(&F, &[K], &mut BatchResults),
{
    fn insert(&mut self, keys: &Keys) {
        // If the insert fails, the lookups that follow miss keys and the run fails.
        let _ = (self.insert)(&mut self.ops.filter, (self.ops.keys)(keys));
    }

    fn query(&mut self, keys: &Keys) {
        self.hits = 0;
        for keys in (self.ops.keys)(keys).chunks(BATCH) {
            (self.query)(&self.ops.filter, keys, &mut self.results);
            self.hits += self.results.count_ones();
        }
    }

    common_methods!();
}

/// A filter that is built from all keys and is immutable after that. `clear` frees its memory, so that allocations are
/// part of the timed build, as in use.
pub struct StaticBuild<F, B, Q> {
    filter: Option<F>,
    build: B,
    query: Q,
    memory_bytes: fn(&F) -> u64,
    hits: u64,
}

impl<F, B, Q> StaticBuild<F, B, Q>
where
    B: Fn(&[u64]) -> Option<F>,
    Q: Fn(&F, &[u64]) -> u64,
{
    /// How a filter is built, how many of some keys it finds, and its memory.
    pub fn new(build: B, query: Q, memory_bytes: fn(&F) -> u64) -> Self {
        Self { filter: None, build, query, memory_bytes, hits: 0 }
    }
}

impl<F, B, Q> BenchFilter for StaticBuild<F, B, Q>
where
    B: Fn(&[u64]) -> Option<F>,
    Q: Fn(&F, &[u64]) -> u64,
{
    fn clear(&mut self) {
        self.filter = None;
    }

    fn insert(&mut self, keys: &Keys) {
        // If the build fails, the lookups that follow miss keys and the run fails.
        self.filter = (self.build)(keys.numbers());
    }

    fn query(&mut self, keys: &Keys) {
        self.hits = self.filter.as_ref().map_or(0, |filter| (self.query)(filter, keys.numbers()));
    }

    fn hits(&self) -> u64 {
        self.hits
    }

    fn memory_bytes(&self) -> Option<u64> {
        self.filter.as_ref().map(self.memory_bytes)
    }
}
