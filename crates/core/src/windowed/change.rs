//! Inserting keys, clearing generations, and setting the time.

use super::counts::GenerationCounts;
use super::{WindowedBloomFilter, ring};
use crate::batch::{CHUNK, for_each_hashed_group, key_methods};
use crate::key::Key;
use crate::store::{CacheLine, StoreMut};

impl<S: StoreMut> WindowedBloomFilter<S> {
    key_methods! {
        self [&mut self] self.params.hash, -> bool;
        /// Inserts a key, or renews it, and returns true if it was new to the window. False means that it
        /// was in the window or is a false positive.
        ///
        /// Cost: as [`contains`](Self::contains). By count, one of N / (G - 1) insertions clears a
        /// generation, as in [`advance_to`](Self::advance_to).
        insert, insert_mixed_hash, insert_batch, insert_mixed_hashes;
        |hashes, new| self.insert_chunks::<false>(hashes, new)
    }

    /// [`insert`](Self::insert) for a hash made with
    /// [`hash_spec`](crate::Membership::hash_spec), or with another 64-bit hash function whose every
    /// output bit is random. Plain integers are not such hashes: insert them as keys.
    #[inline]
    #[doc(hidden)] // For the crates of this repository.
    pub fn insert_mixed_hash(&mut self, hash: u64) -> bool {
        if self.room() == 0 {
            return self.insert_in_next(hash);
        }
        self.insert_in_newest(hash)
    }

    key_methods! {
        self [&mut self] self.params.hash, -> bool;
        /// Inserts a key if the window does not contain it; returns true if it was inserted. A key that
        /// is contained keeps its age: it expires one window after it was inserted, however often this is
        /// called meanwhile.
        ///
        /// Use it to act on the first occurrence of each key within a window: [`insert`](Self::insert)
        /// would renew the key each time.
        ///
        /// ```
        /// use petal::WindowedBloomFilter;
        ///
        /// let mut sent = WindowedBloomFilter::with_time(1000, 1e-6, 60)?;
        /// assert!(sent.insert_if_absent("alert"));
        /// for second in 1..=60 {
        ///     sent.advance_to(second);
        ///     assert!(!sent.insert_if_absent("alert"));
        /// }
        /// sent.advance_to(80);
        /// assert!(sent.insert_if_absent("alert"));
        /// # Ok::<_, petal::Error>(())
        /// ```
        ///
        /// Cost: as [`insert`](Self::insert).
        insert_if_absent, insert_mixed_hash_if_absent, insert_batch_if_absent, insert_mixed_hashes_if_absent;
        |hashes, new| self.insert_chunks::<true>(hashes, new)
    }

    /// [`insert_if_absent`](Self::insert_if_absent) for a hash: see
    /// [`insert_mixed_hash`](Self::insert_mixed_hash).
    #[inline]
    pub fn insert_mixed_hash_if_absent(&mut self, hash: u64) -> bool {
        if self.room() == 0 {
            return !self.contains_mixed_hash(hash) && self.insert_in_next(hash);
        }
        let newest = self.newest();
        let inserted = ring!(self, self.store.lines_mut(), |ring| ring.insert(true, hash));
        self.counts.add(newest, inserted.1);
        inserted.0
    }

    #[inline]
    fn insert_in_newest(&mut self, hash: u64) -> bool {
        let newest = self.newest();
        let (new, fresh) = ring!(self, self.store.lines_mut(), |ring| ring.insert(false, hash));
        self.counts.add(newest, fresh);
        new
    }

    /// Inserts into the next generation, because the newest is full, unless the newest contains the
    /// key.
    fn insert_in_next(&mut self, hash: u64) -> bool {
        let lines = self.store.lines();
        if ring!(self, lines, |ring| ring.newest_contains(hash)) {
            return false;
        }
        // A key that only the expiring generation contains is not new.
        let new = !self.contains_mixed_hash(hash);
        self.clock = self.plan().rotated(self.clock);
        self.forget(self.newest());
        self.insert_in_newest(hash);
        new
    }

    /// Inserts hashes; `new` must be zero.
    fn insert_chunks<const IF_ABSENT: bool>(&mut self, hashes: &[u64], new: &mut [u64]) {
        for (hashes, new) in hashes.chunks(CHUNK).zip(new.chunks_mut(CHUNK / 64)) {
            self.insert_run::<IF_ABSENT>(hashes, new);
        }
    }

    /// Inserts at most [`CHUNK`] hashes; `new` must be zero.
    fn insert_run<const IF_ABSENT: bool>(&mut self, hashes: &[u64], new: &mut [u64]) {
        if self.insert_in_room::<IF_ABSENT>(hashes, new) {
            return;
        }
        // The newest generation becomes full in this run. Most parts of 64 hashes still have room.
        for (hashes, new) in hashes.chunks(64).zip(new) {
            if self.insert_in_room::<IF_ABSENT>(hashes, core::slice::from_mut(new)) {
                continue;
            }
            for (at, &hash) in hashes.iter().enumerate() {
                let inserted = match IF_ABSENT {
                    true => self.insert_mixed_hash_if_absent(hash),
                    false => self.insert_mixed_hash(hash),
                };
                *new |= u64::from(inserted) << at;
            }
        }
    }

    /// Inserts hashes if the newest generation has room for all; returns false if not.
    fn insert_in_room<const IF_ABSENT: bool>(&mut self, hashes: &[u64], new: &mut [u64]) -> bool {
        if self.room() < hashes.len() as u64 {
            return false;
        }
        let (kernel, newest) = (self.params.kernel, self.newest());
        let fresh = ring!(self, self.store.lines_mut(), |ring| {
            kernel.insert_batch_in_ring(ring, IF_ABSENT, hashes, new)
        });
        self.counts.add(newest, fresh);
        true
    }

    /// Sets the time of a window by clock; expired keys are forgotten. Earlier times are ignored, so
    /// that a wrong time in the future stops the clock until
    /// [`restart_at`](Self::restart_at).
    ///
    /// Call it before the first insert, which otherwise has time 0.
    ///
    /// Cost: none within T / (G - 1) ticks; then a generation is cleared, which writes every G-th
    /// line of the filter (30 ms for 100 MB, measured on a busy machine). After a longer gap all
    /// expired generations are cleared.
    pub fn advance_to(&mut self, now: u64) {
        if self.plan().ticks.is_none() || now <= self.clock {
            return;
        }
        let expired = self.expired_slots(now);
        self.clock = now;
        expired.for_each(|slot| self.forget(slot));
    }

    /// Clears a generation.
    fn forget(&mut self, slot: usize) {
        // A generation with count 0 has no bits.
        if self.counts.take(slot) == 0 {
            return;
        }
        let lines = self.layout().lanes() as usize / 8;
        let run = lines * self.generations() as usize;
        let runs = self.store.lines_mut().chunks_exact_mut(run);
        for run in runs {
            // Pages that were never written stay unallocated.
            let used = run[slot * lines..(slot + 1) * lines].iter_mut();
            used.filter(|line| **line != CacheLine::ZERO).for_each(|line| *line = CacheLine::ZERO);
        }
    }

    /// Removes all keys; the time of a window by clock is kept.
    pub fn clear(&mut self) {
        self.store.lines_mut().fill(CacheLine::ZERO);
        self.counts = GenerationCounts::zero(self.generations());
        if self.plan().ticks.is_none() {
            self.clock = 0;
        }
    }

    /// Removes all keys and sets the time, forward or back, for example after a wrong time. For a
    /// window by count it only removes the keys.
    pub fn restart_at(&mut self, now: u64) {
        self.clear();
        if self.plan().ticks.is_some() {
            self.clock = now;
        }
    }
}

impl<K: Key, S: StoreMut> Extend<K> for WindowedBloomFilter<S> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        let spec = self.params.hash;
        for_each_hashed_group(keys, spec, |hashes, new| self.insert_run::<false>(hashes, new));
    }
}
