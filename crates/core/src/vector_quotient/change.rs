//! Inserting and removing keys.

use super::VectorQuotientFilter;
use crate::batch::{CHUNK, key_methods, try_for_each_chunk};
use crate::error::{Error, Result};
use crate::key::Key;
use crate::results::BatchResults;
use crate::store::{CacheLine, StoreMut};

/// Hashes between prefetch and use in loops that look up each key before they add it.
const AHEAD: usize = 16;

/// What an insertion does with a key that seems to be present.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Present {
    /// It takes another slot.
    Copy,
    /// Nothing.
    Skip,
}

impl<S: StoreMut> VectorQuotientFilter<S> {
    /// Adds a key as to a multiset, in a slot of its own.
    ///
    /// Cost: one hash; one cache line for most keys, two for 4 % of those that fill a filter to its
    /// capacity. One key in a hundred moves another one, with up to six lines.
    ///
    /// # Errors
    /// If no slot is free for the key. No key is lost.
    #[inline]
    pub fn add<K: Key + ?Sized>(&mut self, key: &K) -> Result<()> {
        self.add_mixed_hash(key.hash_with(&self.hash))
    }

    /// [`add`](Self::add) for a hash made with [`hash_spec`](crate::Membership::hash_spec), or with
    /// another 64-bit hash function whose every output bit is random. Plain integers are not such
    /// hashes: insert them as keys.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    #[inline]
    pub fn add_mixed_hash(&mut self, hash: u64) -> Result<()> {
        if !self.table.insert(self.store.lines_mut(), hash) {
            return Err(full());
        }
        self.info.inserted += 1;
        Ok(())
    }

    key_methods! {
        self [&mut self] self.hash, -> Result<bool>;
        /// Inserts a key as into a set and returns true if it was new. False means that it was present
        /// or is a false positive; it then takes no slot.
        ///
        /// Cost: as [`contains`](Self::contains) and [`add`](Self::add).
        ///
        /// # Errors
        /// As [`add`](Self::add).
        insert, insert_mixed_hash, insert_batch, insert_mixed_hashes;
        |hashes, new| self.insert_run(hashes, Present::Skip, new)
    }

    /// [`insert`](Self::insert) for a hash.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    #[inline]
    #[doc(hidden)] // For the crates of this repository.
    pub fn insert_mixed_hash(&mut self, hash: u64) -> Result<bool> {
        if self.contains_mixed_hash(hash) {
            return Ok(false);
        }
        self.add_mixed_hash(hash)?;
        Ok(true)
    }

    /// [`add`](Self::add) for many keys in order.
    ///
    /// Cost: as one by one, but cache misses overlap.
    ///
    /// # Errors
    /// As [`add`](Self::add). The keys before the one that failed are in the filter, the others are
    /// not.
    pub fn add_batch<K: Key>(&mut self, keys: &[K]) -> Result<()> {
        let spec = self.hash;
        // The results are not used; there is room for those of one chunk.
        let mut results = BatchResults::new();
        keys.chunks(CHUNK).try_for_each(|keys| {
            try_for_each_chunk(keys, &spec, &mut results, |hashes, _| self.add_mixed_hashes(hashes))
        })
    }

    /// [`add_batch`](Self::add_batch) for hashes.
    ///
    /// # Errors
    /// As [`add_batch`](Self::add_batch).
    pub fn add_mixed_hashes(&mut self, hashes: &[u64]) -> Result<()> {
        let added = self.table.insert_batch(self.store.lines_mut(), hashes);
        self.info.inserted += added as u64;
        if added < hashes.len() { Err(full()) } else { Ok(()) }
    }

    /// [`add_mixed_hashes`](Self::add_mixed_hashes) that reports which keys were new.
    pub(super) fn add_and_report(&mut self, hashes: &[u64], new: &mut BatchResults) -> Result<()> {
        self.insert_run(hashes, Present::Copy, new.reset(hashes.len()))
    }

    /// Inserts hashes; `new` must be zero.
    fn insert_run(&mut self, hashes: &[u64], present: Present, new: &mut [u64]) -> Result<()> {
        for (at, hash) in hashes.iter().enumerate() {
            if let Some(later) = hashes.get(at + AHEAD) {
                self.prefetch_mixed_hash(*later);
            }
            let is_new = !self.contains_mixed_hash(*hash);
            if is_new || present == Present::Copy {
                self.add_mixed_hash(*hash)?;
            }
            new[at / 64] |= u64::from(is_new) << (at % 64);
        }
        Ok(())
    }

    key_methods! {
        self [&mut self] self.hash, -> bool;
        /// Removes one copy of a key; false if it was certainly absent. See [`VectorQuotientFilter`] for
        /// the keys that may be removed.
        ///
        /// Cost: as [`contains`](Self::contains).
        remove, remove_mixed_hash, remove_batch, remove_mixed_hashes;
        |hashes, removed| self.info.inserted -= self.table.remove_batch(self.store.lines_mut(), hashes, removed)
    }

    /// [`remove`](Self::remove) for a hash.
    #[inline]
    #[doc(hidden)] // For the crates of this repository.
    pub fn remove_mixed_hash(&mut self, hash: u64) -> bool {
        let removed = self.table.remove(self.store.lines_mut(), hash);
        self.info.inserted -= u64::from(removed);
        removed
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.store.lines_mut().fill(CacheLine::ZERO);
        self.info.inserted = 0;
    }
}

/// The error for a key for which no slot is free.
pub(super) fn full() -> Error {
    Error::full(
        "no slot is left for this key in its two blocks",
        "plan for a larger capacity, or use a quotient filter for many copies of a key",
    )
}
