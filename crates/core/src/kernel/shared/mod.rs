//! The blocked layout, filled and queried by many threads at once.
//!
//! The bits are those of [`BlockParams`]. A bit is never cleared. Only the thread that holds the
//! *stripe* of a block, a lock for many blocks, writes to the words of the block.
//!
//! * A query reads its words without locking.
//! * An insert reads first. If all bits are set, the key is not new, and nothing is written.
//!   Otherwise the insert locks the stripe, reads again, sets the missing bits and unlocks it.
//!
//! An insert that returns *new* has seen a clear bit that no other thread could set meanwhile, so
//! the result is exact: of concurrent inserts of a key at most one returns new, and every insert
//! that set a bit does. One `fetch_or` per word cannot guarantee this
//! (`docs/design/filters.md`). Inserts are linearizable: their results are those of some
//! sequential order.
//!
//! Memory orderings: locking a stripe acquires what unlocking released, so the holder sees every bit
//! of its blocks. All other accesses are relaxed. A thread that learns of an insert through its own
//! synchronisation sees its bits, because that happened before and no bit is cleared.
//!
//! With AVX-512 the same is done with whole cache lines, in assembly (`avx512::shared`): the holder
//! of a stripe stores all words of a line, most of them unchanged, which no other thread could
//! change meanwhile. The other kernels access single words, as in this module.
//!
//! Cost of an insert: a query and, if the key is new, one locked instruction on a cache line of the
//! stripes, which another core may hold. A thread that is suspended while it holds a stripe blocks
//! other inserts of that stripe.
//!
//! `cargo x loom` runs the protocol in all interleavings of a few threads (`tests.rs`).

#[cfg(all(loom, test))]
mod tests;

use super::batch::{GROUP, HashSource, PreparedGroup, batch, join, test_each};
use super::blocked::{BlockParams, KeyProbes};
use super::primitives::prefetch;
use crate::store::AtomicCacheLine;
use crate::sync::{AtomicU64, Ordering, spin_loop, yield_now};

/// Maximum number of stripes of a filter, a power of two: 32 KiB in total. If ten threads do
/// nothing but insert, about one insert in a hundred finds its stripe locked.
const MAX_STRIPES: u64 = 512;
/// The bit of a stripe that is set while it is locked.
const LOCKED: u64 = 1 << 63;
/// Attempts to lock a stripe before yielding: a stripe is held for about ten nanoseconds, unless
/// its thread is suspended. With loom, further attempts are not explored.
const SPINS: u32 = if cfg!(all(loom, test)) { 3 } else { 64 };

/// A lock for the words of many blocks.
#[repr(align(64))]
pub(super) struct Stripe {
    /// The number of inserts that were new, and whether it is locked.
    changes: AtomicU64,
}

/// Waits for another thread.
struct Backoff(u32);

impl Backoff {
    fn new() -> Self {
        Self(0)
    }

    #[inline]
    fn wait(&mut self) {
        if self.0 < SPINS {
            self.0 += 1;
            spin_loop();
        } else {
            yield_now();
        }
    }
}

impl Stripe {
    /// Waits for the lock and takes it. Returns the number of changes.
    #[inline]
    pub(super) fn lock(&self) -> u64 {
        let mut backoff = Backoff::new();
        loop {
            if let Some(changes) = self.try_lock() {
                return changes;
            }
            backoff.wait();
        }
    }

    /// Takes the lock, if it is free. Returns the number of changes.
    #[inline]
    fn try_lock(&self) -> Option<u64> {
        let changes = self.changes.load(Ordering::Relaxed);
        // While it is locked nothing is written, so the cache line stays with the holder.
        if changes & LOCKED != 0 {
            return None;
        }
        let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
        let locked =
            self.changes.compare_exchange_weak(changes, changes | LOCKED, success, failure);
        locked.ok()
    }

    /// Unlocks, and stores the number of changes.
    #[inline]
    pub(super) fn unlock(&self, changes: u64) {
        self.changes.store(changes, Ordering::Release);
    }
}

/// The stripes of a filter: a power of two, assigned to blocks in turn.
pub(crate) struct Stripes(Box<[Stripe]>);

impl Stripes {
    /// Creates the stripes of a filter with `blocks` blocks.
    pub(crate) fn new(blocks: u64) -> Self {
        let stripes = blocks.min(MAX_STRIPES).next_power_of_two();
        let stripe = || Stripe { changes: AtomicU64::new(0) };
        Self((0..stripes).map(|_| stripe()).collect())
    }

    /// Returns the size in memory in bytes.
    #[cfg(not(all(loom, test)))]
    pub(crate) fn memory_usage(&self) -> u64 {
        size_of_val(&*self.0) as u64
    }

    /// Returns the number of inserts that were new. Concurrent ones may or may not count.
    pub(crate) fn inserted(&self) -> u64 {
        self.0.iter().map(|stripe| stripe.changes.load(Ordering::Relaxed) & !LOCKED).sum()
    }

    #[inline(always)]
    fn of_block(&self, block: usize) -> &Stripe {
        &self.0[block & (self.0.len() - 1)]
    }
}

/// The blocks of a filter that many threads access.
#[derive(Clone, Copy)]
pub(crate) struct SharedBlocks<'a, const LANES: usize> {
    pub(crate) params: BlockParams<LANES>,
    pub(crate) lines: &'a [AtomicCacheLine],
    pub(crate) stripes: &'a Stripes,
}

impl<'a, const LANES: usize> SharedBlocks<'a, LANES> {
    /// Returns the block whose first cache line is `at`.
    #[inline(always)]
    pub(super) fn block(&self, at: usize) -> &'a [AtomicCacheLine] {
        &self.lines[at..at + BlockParams::<LANES>::LINES]
    }

    /// Returns the words of a key, each with the mask of its bit in the byte order of the word.
    #[inline(always)]
    fn words<'b>(
        &self,
        block: &'b [AtomicCacheLine],
        key: &'b KeyProbes<LANES>,
    ) -> impl Iterator<Item = (&'b AtomicU64, u64)> {
        (0..self.params.probes).map(move |probe| {
            let (lane, bit) = key.get(probe);
            (&block[lane / 8].0[lane % 8], bit.to_le())
        })
    }

    /// Returns whether all bits of a key are set. Stops at the first clear bit.
    #[inline(always)]
    fn has_all(&self, block: &[AtomicCacheLine], key: &KeyProbes<LANES>) -> bool {
        self.words(block, key).all(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
    }

    #[inline(always)]
    pub(super) fn contains_at(&self, at: usize, hash: u64) -> bool {
        self.has_all(self.block(at), &KeyProbes::new(hash))
    }

    #[inline(always)]
    pub(super) fn insert_at(&self, at: usize, hash: u64) -> bool {
        let (block, key) = (self.block(at), KeyProbes::new(hash));
        if self.has_all(block, &key) {
            return false;
        }
        self.with_lock(at, || {
            let mut new = false;
            for (word, bit) in self.words(block, &key) {
                let bits = word.load(Ordering::Relaxed);
                if bits & bit == 0 {
                    // No locked instruction: only the holder of the stripe writes to this word.
                    word.store(bits | bit, Ordering::Relaxed);
                    new = true;
                }
            }
            new
        })
    }

    /// Returns the stripe of the block at `at`.
    #[inline(always)]
    pub(super) fn stripe(&self, at: usize) -> &'a Stripe {
        self.stripes.of_block(at / BlockParams::<LANES>::LINES)
    }

    /// Holds the stripe of the block at `at` while `set` reads again, sets missing bits and returns
    /// whether there were any. `set` must not panic: the stripe would stay locked.
    #[inline(always)]
    pub(super) fn with_lock(&self, at: usize, set: impl FnOnce() -> bool) -> bool {
        let stripe = self.stripe(at);
        let inserted = stripe.lock();
        let new = set();
        stripe.unlock(inserted + u64::from(new));
        new
    }

    /// Computes the cache lines of hashes and prefetches them.
    #[inline(always)]
    fn prepare(&self, hashes: &[u64; GROUP], group: &mut PreparedGroup) {
        let first_lines = hashes.map(|hash| self.params.first_line(hash));
        *group = PreparedGroup { first_lines, hashes: *hashes };
        for at in group.first_lines {
            (at..at + BlockParams::<LANES>::LINES).for_each(|line| prefetch(self.lines, line));
        }
    }

    /// Calls `one` for many hashes in turn, each with the first cache line of its block.
    #[inline(always)]
    pub(super) fn batch(
        self,
        hashes: impl HashSource,
        results: &mut [u64],
        one: impl Fn(&Self, usize, u64) -> bool,
    ) {
        let process = |blocks: &mut Self, group: &PreparedGroup, results: &mut u8| {
            let keys = group.first_lines.into_iter().zip(group.hashes);
            *results = test_each(keys, |(at, hash)| one(blocks, at, hash));
        };
        batch(self, hashes, results, Self::prepare, process, join);
    }
}
