//! Putting keys in and taking them out.

use super::{HASHED, QuotientFilter};
use crate::answers::Answers;
use crate::error::{Error, Result};
use crate::kernel::quotient::Inserted;
use crate::key::Key;
use crate::store::{Line, StoreMut};

impl<S: StoreMut> QuotientFilter<S> {
    /// Inserts a key as into a set; whether it was new. `true` is certain; `false` means that it
    /// was put in before, or is a false positive, and takes no slot.
    ///
    /// Cost: one hash; two cache lines and all that lies between the key's place and the next free
    /// slot: 10 slots in the mean while a filter is filled to its plan, 200 for the last of them.
    ///
    /// # Errors
    /// If no slot is left, or it is to grow and memory for that is refused. Nothing is lost.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool> {
        self.insert_mixed_hash(key.hash_with(&self.hash))
    }

    /// [`insert`](Self::insert) for a hash made with [`hash_spec`](Self::hash_spec), or with
    /// another hash of 64 bits whose every bit is random. A plain integer is no such hash: insert
    /// it as a key.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn insert_mixed_hash(&mut self, hash: u64) -> Result<bool> {
        Ok(self.put(hash, false)? == Inserted::New)
    }

    /// Adds a key as to a multiset: one copy more, in a slot of its own; whether it is the first.
    ///
    /// Cost: as [`insert`](Self::insert). All copies of a key lie side by side: many thousands of
    /// one key make the keys around it slow.
    ///
    /// # Errors
    /// As [`insert`](Self::insert). Copies go into the slots behind the key's own place: of a key
    /// near the end of the table, the more likely the more copies there are, those beyond 320 may
    /// be refused though there are free slots before it.
    #[inline]
    pub fn add<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool> {
        self.add_mixed_hash(key.hash_with(&self.hash))
    }

    /// [`add`](Self::add) for a hash.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn add_mixed_hash(&mut self, hash: u64) -> Result<bool> {
        Ok(self.put(hash, true)? == Inserted::New)
    }

    fn put(&mut self, hash: u64, again: bool) -> Result<Inserted> {
        if self.room() == 0 {
            if !again && self.contains_mixed_hash(hash) {
                return Ok(Inserted::There);
            }
            self.grow()?;
        }
        let inserted = self.table.insert(self.store.lines_mut(), hash, again);
        if inserted == Inserted::Full {
            return Err(full());
        }
        self.facts.inserted += u64::from(inserted != Inserted::There);
        self.distinct += u64::from(inserted == Inserted::New);
        Ok(inserted)
    }

    /// How many fingerprints more fit before it is time to grow.
    #[inline]
    fn room(&self) -> u64 {
        if !self.growing {
            return u64::MAX;
        }
        let left = self.shape.capacity().saturating_sub(self.len());
        if left > 0 || self.is_promised(self.shape) { left } else { u64::MAX }
    }

    /// [`insert`](Self::insert) for many keys, as if one by one; `new` gets an answer for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    ///
    /// # Errors
    /// As [`insert`](Self::insert): the keys before the one that was refused are in, it and those
    /// behind it are not.
    pub fn insert_batch<K: Key>(&mut self, keys: &[K], new: &mut Answers) -> Result<()> {
        self.put_keys(keys, false, new)
    }

    /// [`insert_batch`](Self::insert_batch) for hashes.
    ///
    /// # Errors
    /// As there.
    pub fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut Answers) -> Result<()> {
        self.put_all(hashes, false, new.reset(hashes.len()))
    }

    /// [`add`](Self::add) for many keys, as if one by one; `new` gets an answer for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    ///
    /// # Errors
    /// As [`insert_batch`](Self::insert_batch).
    pub fn add_batch<K: Key>(&mut self, keys: &[K], new: &mut Answers) -> Result<()> {
        self.put_keys(keys, true, new)
    }

    /// [`add_batch`](Self::add_batch) for hashes.
    ///
    /// # Errors
    /// As there.
    pub fn add_mixed_hashes(&mut self, hashes: &[u64], new: &mut Answers) -> Result<()> {
        self.put_all(hashes, true, new.reset(hashes.len()))
    }

    fn put_keys<K: Key>(&mut self, keys: &[K], again: bool, new: &mut Answers) -> Result<()> {
        let words = new.reset(keys.len()).chunks_mut(HASHED / 64);
        let mut hashes = Vec::with_capacity(HASHED.min(keys.len()));
        for (keys, words) in keys.chunks(HASHED).zip(words) {
            hashes.clear();
            self.hash.hash_all(keys.iter().map(Key::bytes), &mut hashes);
            self.put_all(&hashes, again, words)?;
        }
        Ok(())
    }

    fn put_all(&mut self, hashes: &[u64], again: bool, new: &mut [u64]) -> Result<()> {
        let mut at = 0;
        while at < hashes.len() {
            let room = self.room();
            if room == 0 {
                let inserted = self.put(hashes[at], again)?;
                new[at / 64] |= u64::from(inserted == Inserted::New) << (at % 64);
                at += 1;
                continue;
            }
            let lines = self.store.lines_mut();
            let taken = self.table.insert_batch(lines, hashes, at, (room, again), new);
            self.facts.inserted += taken.slots;
            self.distinct += taken.new;
            at += taken.hashes;
            if taken.full {
                return Err(full());
            }
        }
        Ok(())
    }

    /// Removes one copy of a key; `false` if it was certainly not there. See
    /// [`QuotientFilter`] for which keys may be removed.
    ///
    /// Cost: as [`insert`](Self::insert).
    #[inline]
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        self.remove_mixed_hash(key.hash_with(&self.hash))
    }

    /// [`remove`](Self::remove) for a hash.
    #[inline]
    pub fn remove_mixed_hash(&mut self, hash: u64) -> bool {
        let copies = self.table.remove(self.store.lines_mut(), hash);
        self.facts.inserted -= u64::from(copies > 0);
        self.distinct -= u64::from(copies == 1);
        copies > 0
    }

    /// [`remove`](Self::remove) for many keys, as if one by one; `removed` gets an answer for each.
    pub fn remove_batch<K: Key>(&mut self, keys: &[K], removed: &mut Answers) {
        let words = removed.reset(keys.len()).chunks_mut(HASHED / 64);
        let mut hashes = Vec::with_capacity(HASHED.min(keys.len()));
        for (keys, words) in keys.chunks(HASHED).zip(words) {
            hashes.clear();
            self.hash.hash_all(keys.iter().map(Key::bytes), &mut hashes);
            self.take_all(&hashes, words);
        }
    }

    /// [`remove_batch`](Self::remove_batch) for hashes.
    pub fn remove_mixed_hashes(&mut self, hashes: &[u64], removed: &mut Answers) {
        self.take_all(hashes, removed.reset(hashes.len()));
    }

    fn take_all(&mut self, hashes: &[u64], removed: &mut [u64]) {
        for (at, hash) in hashes.iter().enumerate() {
            self.table.ask_ahead(self.store.lines(), hashes, at);
            removed[at / 64] |= u64::from(self.remove_mixed_hash(*hash)) << (at % 64);
        }
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        self.store.lines_mut().fill(Line::ZERO);
        (self.facts.inserted, self.distinct) = (0, 0);
    }
}

/// No slot is free from the place on where a key wants to be.
pub(super) fn full() -> Error {
    Error::full("no slot is left for this key", "grow it, or plan for more keys (max_keys)")
}
