//! A table that many threads change and query at once.
//!
//! The blocks are those of a [`PairTable`]. Only a thread that holds the *stripe* of a block, a lock for
//! many blocks, stores to its words.
//!
//! * A change locks the stripes of both blocks of the hash, in the order of their numbers, so that no
//!   two threads wait for each other. It copies the blocks, changes the copies, stores the words that
//!   differ, and unlocks the stripes with a larger number of changes.
//! * A query locks nothing. It reads the numbers of changes of both stripes, copies the blocks, and
//!   reads the numbers again. If a stripe was locked or changed meanwhile, it starts again.
//! * If both blocks are full, an insert moves a tag to another block, whose stripe it only tries to
//!   lock, because the order could be wrong. If all moves fail and one of them for a locked stripe, the
//!   insert unlocks everything and starts again.
//!
//! Operations are linearizable: changes in the order of their locks; a query at a time between its
//! reads of the numbers, when its copies were the contents of both blocks. So a tag that moves is in
//! one block or the other for every query. The exception is an insert that finds no slot: each block
//! that it could use was full when it looked, but not all at the same time if others remove keys.
//!
//! Memory orderings: locking acquires what unlocking released, so the holder sees the blocks as the
//! last holder left them. The words are loaded and stored relaxed. What a query relies on:
//!
//! * No word is older than the first number: unlocking releases the words before the number, and the
//!   first read acquires it.
//! * No word is newer than the second number: after the lock is a release fence and before the second
//!   read an acquire fence. If a load returns a word that was stored after the one fence, the two
//!   fences synchronize, and the second read returns the lock or a later value.
//! * The two numbers are of one time. A move holds both stripes while it stores, and releases that of the
//!   third block first. If a query has acquired the new number of one, it sees that the other one was
//!   locked, in its second read at the latest.
//! * An unlocked number never returns to an earlier value: it grows with every change.
//!
//! Source: Boehm 2012, "Can seqlocks get along with programming language memory models?".
//!
//! Cost of a query: two cache lines of blocks and two of stripes; of a change one locked instruction
//! for each stripe.

use super::shape::{Fingerprint, Place};
use super::table::PairTable;
use crate::kernel::primitives::prefetch;
use crate::kernel::shared::{Backoff, Stripes};
use crate::store::{AtomicCacheLine, CacheLine};
use crate::sync::{Ordering, fence};

/// Hashes between the prefetch of the blocks and their use in a batch.
const AHEAD: usize = 16;

/// A table that is shared by threads.
#[derive(Clone, Copy)]
pub(crate) struct SharedPairTable<'a> {
    pub(crate) table: &'a PairTable,
    pub(crate) blocks: &'a [AtomicCacheLine],
    pub(crate) stripes: &'a Stripes,
}

/// What an insert did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// The fingerprint takes a slot.
    New,
    /// It was there before and takes no other slot.
    Present,
    /// No slot is free for it.
    Full,
}

/// Whether a full block got a free slot.
enum Moved {
    Yes,
    /// No, but perhaps later: a stripe was locked.
    Busy,
    No,
}

/// The stripes of two blocks, locked; one if both have the same.
struct LockedPair {
    numbers: [usize; 2],
    changes: [u64; 2],
}

impl SharedPairTable<'_> {
    /// Returns the blocks of a hash, and its fingerprint.
    #[inline]
    fn pair(&self, hash: u64) -> ([usize; 2], Fingerprint) {
        let place = self.table.place(hash);
        let second = self.table.second_block_of(hash, place);
        ([place.block as usize, second as usize], place.fingerprint)
    }

    /// Prefetches the blocks of a hash.
    #[inline]
    fn prefetch(&self, hash: Option<&u64>) {
        if let Some(&hash) = hash {
            self.pair(hash).0.into_iter().for_each(|block| prefetch(self.blocks, block));
        }
    }

    /// Copies a block.
    #[inline]
    fn load(&self, block: usize) -> CacheLine {
        let words = &self.blocks[block].0;
        CacheLine(core::array::from_fn(|word| words[word].load(Ordering::Relaxed)))
    }

    /// Replaces `old`, the contents of a block. The caller holds its stripe.
    #[inline]
    fn store(&self, block: usize, old: &CacheLine, new: &CacheLine) {
        for ((word, old), new) in self.blocks[block].0.iter().zip(old.0).zip(new.0) {
            if old != new {
                word.store(new, Ordering::Relaxed);
            }
        }
    }

    /// Locks the stripes of two blocks.
    #[inline]
    fn lock(&self, pair: [usize; 2]) -> LockedPair {
        let mut numbers = pair.map(|block| self.stripes.number_of(block));
        numbers.sort_unstable();
        let first = self.stripes.get(numbers[0]).lock();
        let second =
            if numbers[0] == numbers[1] { first } else { self.stripes.get(numbers[1]).lock() };
        fence(Ordering::Release);
        LockedPair { numbers, changes: [first, second] }
    }

    /// Unlocks stripes after `changes` changes of their blocks, which added a number of keys modulo
    /// 2⁶⁴.
    #[inline]
    fn unlock(&self, locked: &LockedPair, changes: u64, keys: u64) {
        let [first, second] = locked.numbers;
        if keys != 0 {
            self.stripes.get(first).add_keys(keys);
        }
        if second != first {
            self.stripes.get(second).unlock(locked.changes[1] + changes);
        }
        self.stripes.get(first).unlock(locked.changes[0] + changes);
    }

    /// Returns whether the table contains the fingerprint of a hash.
    pub(crate) fn contains(&self, hash: u64) -> bool {
        let (pair, of) = self.pair(hash);
        let stripes = pair.map(|block| self.stripes.get(self.stripes.number_of(block)));
        let mut backoff = Backoff::new();
        loop {
            let changes = stripes.map(|stripe| stripe.wait_unlocked());
            let blocks = pair.map(|block| self.load(block));
            fence(Ordering::Acquire);
            if stripes.iter().zip(changes).all(|(stripe, changes)| stripe.is_unchanged(changes)) {
                return self.table.pair_contains(&blocks, of);
            }
            backoff.wait();
        }
    }

    /// Inserts the fingerprint of a hash. If `once`, it takes no slot if it is present.
    pub(crate) fn insert(&self, hash: u64, once: bool) -> Inserted {
        let (pair, of) = self.pair(hash);
        let mut backoff = Backoff::new();
        loop {
            let locked = self.lock(pair);
            let blocks = pair.map(|block| self.load(block));
            if once && self.table.pair_contains(&blocks, of) {
                self.unlock(&locked, 0, 0);
                return Inserted::Present;
            }
            for (block, old) in pair.into_iter().zip(&blocks) {
                let mut new = *old;
                if self.table.put(&mut new, of) {
                    self.store(block, old, &new);
                    self.unlock(&locked, 1, 1);
                    return Inserted::New;
                }
            }
            match self.insert_by_moving(&locked, pair, &blocks, of) {
                Moved::Yes => {
                    self.unlock(&locked, 1, 1);
                    return Inserted::New;
                }
                Moved::No => {
                    self.unlock(&locked, 0, 0);
                    return Inserted::Full;
                }
                Moved::Busy => self.unlock(&locked, 0, 0),
            }
            backoff.wait();
        }
    }

    /// Moves a tag of one of two full blocks to its other block, and inserts a fingerprint in its place.
    #[cold]
    fn insert_by_moving(
        &self,
        locked: &LockedPair,
        pair: [usize; 2],
        blocks: &[CacheLine; 2],
        of: Fingerprint,
    ) -> Moved {
        let mut busy = false;
        for (block, old) in pair.into_iter().zip(blocks) {
            // Not always the same slots, which are the first buckets.
            let start = of.tag as usize % self.table.fingerprints(old).count().max(1);
            let tags = self.table.fingerprints(old).skip(start);
            for moved in tags.chain(self.table.fingerprints(old).take(start)) {
                let place = Place { block: block as u64, fingerprint: moved };
                let other = self.table.second_block(place) as usize;
                if other == block {
                    continue;
                }
                let number = self.stripes.number_of(other);
                let stripe = self.stripes.get(number);
                let changes = if locked.numbers.contains(&number) {
                    None
                } else if let Some(changes) = stripe.try_lock() {
                    fence(Ordering::Release);
                    Some(changes)
                } else {
                    busy = true;
                    continue;
                };
                let old_other = self.load(other);
                let (mut new_other, mut new) = (old_other, *old);
                let fits = self.table.put(&mut new_other, moved);
                if fits {
                    self.table.take(&mut new, moved);
                    self.table.put(&mut new, of);
                    self.store(other, &old_other, &new_other);
                    self.store(block, old, &new);
                }
                if let Some(changes) = changes {
                    stripe.unlock(changes + u64::from(fits));
                }
                if fits {
                    return Moved::Yes;
                }
            }
        }
        if busy { Moved::Busy } else { Moved::No }
    }

    /// Removes a copy of the fingerprint of a hash; false if there is none.
    pub(crate) fn remove(&self, hash: u64) -> bool {
        let (pair, of) = self.pair(hash);
        let locked = self.lock(pair);
        for block in pair {
            let old = self.load(block);
            let mut new = old;
            if self.table.take(&mut new, of) {
                self.store(block, &old, &new);
                self.unlock(&locked, 1, u64::MAX);
                return true;
            }
        }
        self.unlock(&locked, 0, 0);
        false
    }

    /// Calls `one` for many hashes in turn, with their numbers, until it returns false. Their blocks are
    /// prefetched before.
    #[inline]
    pub(crate) fn batch(&self, hashes: &[u64], mut one: impl FnMut(&Self, usize, u64) -> bool) {
        hashes.iter().take(AHEAD).for_each(|hash| self.prefetch(Some(hash)));
        for (at, &hash) in hashes.iter().enumerate() {
            self.prefetch(hashes.get(at + AHEAD));
            if !one(self, at, hash) {
                return;
            }
        }
    }
}
