//! Inserting and removing keys.

use super::QuotientFilter;
use crate::batch::{CHUNK, key_methods, try_for_each_chunk};
use crate::error::{Error, Result};
use crate::kernel::quotient::InsertOutcome;
use crate::key::Key;
use crate::results::BatchResults;
use crate::store::{CacheLine, StoreMut};

impl<S: StoreMut> QuotientFilter<S> {
    key_methods! {
        self [&mut self] self.hash, -> Result<bool>;
        /// Inserts a key as into a set and returns true if it was new. False means that it was present
        /// or is a false positive; it then takes no slot.
        ///
        /// Cost: one hash; two cache lines and the slots from the home slot of the key to the next free
        /// one: 10 on average while a filter is filled to its capacity, 200 for the last keys.
        ///
        /// # Errors
        /// If no slot is free, or memory for growth cannot be allocated. No key is lost.
        insert, insert_mixed_hash, insert_batch, insert_mixed_hashes;
        |hashes, new| self.insert_run(hashes, false, new)
    }

    /// [`insert`](Self::insert) for a hash made with
    /// [`hash_spec`](crate::Membership::hash_spec), or with another 64-bit hash function whose every
    /// output bit is random. Plain integers are not such hashes: insert them as keys.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    #[inline]
    #[doc(hidden)] // For the crates of this repository.
    pub fn insert_mixed_hash(&mut self, hash: u64) -> Result<bool> {
        Ok(self.insert_one(hash, false)? == InsertOutcome::New)
    }

    /// Adds a key as to a multiset, in a slot of its own.
    ///
    /// Cost: as [`insert`](Self::insert). All copies of a key are adjacent: many thousands of one
    /// key slow down the keys around it.
    ///
    /// # Errors
    /// As [`insert`](Self::insert). Copies take the slots after the home slot. For a key near the
    /// end of the table, copies beyond 320 may fail though slots before it are free.
    #[inline]
    pub fn add<K: Key + ?Sized>(&mut self, key: &K) -> Result<()> {
        self.add_mixed_hash(key.hash_with(&self.hash))
    }

    /// [`add`](Self::add) for a hash.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    #[inline]
    pub fn add_mixed_hash(&mut self, hash: u64) -> Result<()> {
        self.insert_one(hash, true).map(drop)
    }

    /// Inserts a hash; a copy of one that is present only if `as_copy`.
    #[inline]
    pub(super) fn insert_one(&mut self, hash: u64, as_copy: bool) -> Result<InsertOutcome> {
        if self.room_before_growth() == 0 {
            if !as_copy && self.contains_mixed_hash(hash) {
                return Ok(InsertOutcome::AlreadyPresent);
            }
            self.grow()?;
        }
        let inserted = self.table.insert(self.store.lines_mut(), hash, as_copy);
        if inserted == InsertOutcome::Full {
            return Err(full());
        }
        self.info.inserted += u64::from(inserted != InsertOutcome::AlreadyPresent);
        self.distinct += u64::from(inserted == InsertOutcome::New);
        Ok(inserted)
    }

    /// Returns the number of fingerprints that fit before the filter grows.
    #[inline]
    fn room_before_growth(&self) -> u64 {
        if !self.growing {
            return u64::MAX;
        }
        let left = self.layout.capacity().saturating_sub(self.len());
        if left > 0 || self.keeps_target_doubled(self.layout) { left } else { u64::MAX }
    }

    /// [`add`](Self::add) for many keys in order.
    ///
    /// Cost: as one by one, but cache misses overlap.
    ///
    /// # Errors
    /// As [`insert_batch`](Self::insert_batch).
    pub fn add_batch<K: Key>(&mut self, keys: &[K]) -> Result<()> {
        let spec = self.hash;
        // The results are not used; there is room for those of one chunk.
        let mut new = BatchResults::new();
        keys.chunks(CHUNK).try_for_each(|keys| {
            try_for_each_chunk(keys, &spec, &mut new, |hashes, new| {
                self.insert_run(hashes, true, new)
            })
        })
    }

    /// [`add_batch`](Self::add_batch) for hashes.
    ///
    /// # Errors
    /// As [`insert_batch`](Self::insert_batch).
    pub fn add_mixed_hashes(&mut self, hashes: &[u64]) -> Result<()> {
        hashes.chunks(CHUNK).try_for_each(|hashes| {
            let new = &mut [0; CHUNK / 64][..hashes.len().div_ceil(64)];
            self.insert_run(hashes, true, new)
        })
    }

    /// [`add_mixed_hashes`](Self::add_mixed_hashes) that reports which keys were new.
    pub(super) fn add_and_report(&mut self, hashes: &[u64], new: &mut BatchResults) -> Result<()> {
        self.insert_run(hashes, true, new.reset(hashes.len()))
    }

    /// Inserts hashes; copies of those that are present only if `as_copies`. `new` must be zero.
    fn insert_run(&mut self, hashes: &[u64], as_copies: bool, new: &mut [u64]) -> Result<()> {
        let mut at = 0;
        while at < hashes.len() {
            let room = self.room_before_growth();
            if room == 0 {
                let inserted = self.insert_one(hashes[at], as_copies)?;
                new[at / 64] |= u64::from(inserted == InsertOutcome::New) << (at % 64);
                at += 1;
                continue;
            }
            let lines = self.store.lines_mut();
            let taken = self.table.insert_batch(lines, hashes, at, (room, as_copies), new);
            self.info.inserted += taken.slots;
            self.distinct += taken.new;
            at += taken.hashes;
            if taken.full {
                return Err(full());
            }
        }
        Ok(())
    }

    key_methods! {
        self [&mut self] self.hash, -> bool;
        /// Removes one copy of a key; false if it was certainly absent. See [`QuotientFilter`] for the
        /// keys that may be removed.
        ///
        /// Cost: as [`insert`](Self::insert).
        remove, remove_mixed_hash, remove_batch, remove_mixed_hashes;
        |hashes, removed| self.remove_hashes(hashes, removed)
    }

    /// [`remove`](Self::remove) for a hash.
    #[inline]
    #[doc(hidden)] // For the crates of this repository.
    pub fn remove_mixed_hash(&mut self, hash: u64) -> bool {
        let copies = self.table.remove(self.store.lines_mut(), hash);
        self.info.inserted -= u64::from(copies > 0);
        self.distinct -= u64::from(copies == 1);
        copies > 0
    }

    fn remove_hashes(&mut self, hashes: &[u64], removed: &mut [u64]) {
        for (at, hash) in hashes.iter().enumerate() {
            self.table.prefetch_ahead(self.store.lines(), hashes, at);
            removed[at / 64] |= u64::from(self.remove_mixed_hash(*hash)) << (at % 64);
        }
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.store.lines_mut().fill(CacheLine::ZERO);
        (self.info.inserted, self.distinct) = (0, 0);
    }
}

/// The error for a key for which no slot is free.
pub(super) fn full() -> Error {
    Error::full("no slot is left for this key", "grow it, or plan for a larger maximum capacity")
}
