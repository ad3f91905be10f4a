//! Keys that come in, generations that are forgotten, and the time.

use super::counts::Counts;
use super::{WindowedBloomFilter, ring};
use crate::answers::Answers;
use crate::filter::{HASHED, hashed};
use crate::key::Key;
use crate::store::{Line, StoreMut};

impl<S: StoreMut> WindowedBloomFilter<S> {
    /// Inserts a key, or makes it one of the newest; whether it was new to the window. `true` is
    /// certain; `false` means that it was there before, or is a false positive.
    ///
    /// Cost: as [`contains`](Self::contains). By count, once in N / (G - 1) insertions also the
    /// clearing of a generation, as in [`advance_to`](Self::advance_to).
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        self.insert_mixed_hash(key.hash_with(&self.frame.hash))
    }

    /// [`insert`](Self::insert) for a hash made with [`hash_spec`](Self::hash_spec), or with
    /// another hash of 64 bits whose every bit is random. A plain integer is no such hash: insert
    /// it as a key.
    #[inline]
    pub fn insert_mixed_hash(&mut self, hash: u64) -> bool {
        if self.room() == 0 {
            return self.insert_in_next(hash);
        }
        self.insert_in_newest(hash)
    }

    /// Inserts a key if the window does not contain it; returns whether it did so. A key that is
    /// contained keeps its age: it is forgotten one window after it was inserted, however often it
    /// comes in between.
    ///
    /// This is the operation for "the first of each key within a window":
    /// [`insert`](Self::insert) keeps a key that keeps coming for ever.
    ///
    /// ```
    /// use petal::WindowedBloomFilter;
    ///
    /// let mut sent = WindowedBloomFilter::with_time(60, 1000, 1e-6)?;
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
    #[inline]
    pub fn insert_if_absent<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        self.insert_mixed_hash_if_absent(key.hash_with(&self.frame.hash))
    }

    /// [`insert_if_absent`](Self::insert_if_absent) for a hash made with
    /// [`hash_spec`](Self::hash_spec), or with another hash of 64 bits whose every bit is random.
    /// A plain integer is no such hash: insert it as a key.
    #[inline]
    pub fn insert_mixed_hash_if_absent(&mut self, hash: u64) -> bool {
        if self.room() == 0 {
            return !self.contains_mixed_hash(hash) && self.insert_in_next(hash);
        }
        let (kernel, newest) = (self.frame.kernel, self.newest());
        let inserted =
            ring!(self, self.store.lines_mut(), |ring| ring.insert_if_absent(kernel, hash));
        self.counts.add(newest, inserted.1);
        inserted.0
    }

    #[inline]
    fn insert_in_newest(&mut self, hash: u64) -> bool {
        let (kernel, newest) = (self.frame.kernel, self.newest());
        let (new, fresh) = ring!(self, self.store.lines_mut(), |ring| ring.insert(kernel, hash));
        self.counts.add(newest, fresh);
        new
    }

    /// The newest generation has its part: a key that it has not goes to the next.
    fn insert_in_next(&mut self, hash: u64) -> bool {
        let lines = self.store.lines();
        if ring!(self, lines, |ring| ring.newest_contains(self.frame.kernel, hash)) {
            return false;
        }
        // What was only in the generation that is now forgotten was not new.
        let new = !self.contains_mixed_hash(hash);
        self.clock = self.plan().rotated(self.clock);
        self.forget(self.newest());
        self.insert_in_newest(hash);
        new
    }

    /// [`insert`](Self::insert) for many keys, as if one by one; `new` gets an answer for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn insert_batch<K: Key>(&mut self, keys: &[K], new: &mut Answers) {
        let hash = self.frame.hash;
        hashed(keys, &hash, new, |hashes, new| self.insert_run::<false>(hashes, new));
    }

    /// [`insert_batch`](Self::insert_batch) for hashes.
    pub fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut Answers) {
        let words = new.reset(hashes.len());
        for (hashes, new) in hashes.chunks(HASHED).zip(words.chunks_mut(HASHED / 64)) {
            self.insert_run::<false>(hashes, new);
        }
    }

    /// [`insert_if_absent`](Self::insert_if_absent) for many keys, as if one by one; `new` gets an
    /// answer for each.
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn insert_batch_if_absent<K: Key>(&mut self, keys: &[K], new: &mut Answers) {
        let hash = self.frame.hash;
        hashed(keys, &hash, new, |hashes, new| self.insert_run::<true>(hashes, new));
    }

    /// [`insert_batch_if_absent`](Self::insert_batch_if_absent) for hashes.
    pub fn insert_mixed_hashes_if_absent(&mut self, hashes: &[u64], new: &mut Answers) {
        let words = new.reset(hashes.len());
        for (hashes, new) in hashes.chunks(HASHED).zip(words.chunks_mut(HASHED / 64)) {
            self.insert_run::<true>(hashes, new);
        }
    }

    /// Inserts a run of hashes; `new` is zero before.
    fn insert_run<const IF_ABSENT: bool>(&mut self, hashes: &[u64], new: &mut [u64]) {
        if self.insert_in_room::<IF_ABSENT>(hashes, new) {
            return;
        }
        // The newest generation may become full within this run, but hardly in each part of it.
        for (hashes, new) in hashes.chunks(64).zip(new) {
            if self.insert_in_room::<IF_ABSENT>(hashes, std::slice::from_mut(new)) {
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

    /// Inserts hashes if the newest generation has room for all of them; returns whether it has.
    fn insert_in_room<const IF_ABSENT: bool>(&mut self, hashes: &[u64], new: &mut [u64]) -> bool {
        if self.room() < hashes.len() as u64 {
            return false;
        }
        let (kernel, newest) = (self.frame.kernel, self.newest());
        let fresh = ring!(self, self.store.lines_mut(), |ring| {
            kernel.insert_batch_in_ring::<_, IF_ABSENT>(ring, hashes, new)
        });
        self.counts.add(newest, fresh);
        true
    }

    /// Tells the time, if the window is a time: what has grown too old is forgotten. A time before
    /// the latest one is ignored, so that one far in the future stops the clock:
    /// [`restart_at`](Self::restart_at) is the way back.
    ///
    /// The first call may be of any time: say it before the first insert, which otherwise is of
    /// time 0.
    ///
    /// Cost: nothing within T / (G - 1) ticks; then the clearing of a generation, which writes
    /// every G-th line of the filter (30 ms for 100 MB, measured on a busy machine). After a longer
    /// gap all that is too old is cleared.
    pub fn advance_to(&mut self, now: u64) {
        if self.plan().ticks.is_none() || now <= self.clock {
            return;
        }
        let too_old = self.too_old(now);
        self.clock = now;
        too_old.for_each(|slot| self.forget(slot));
    }

    /// Clears a generation.
    fn forget(&mut self, slot: usize) {
        // A generation that counts nothing has no bits.
        if self.counts.take(slot) == 0 {
            return;
        }
        let lines = self.shape().lanes() as usize / 8;
        let run = lines * self.generations() as usize;
        let runs = self.store.lines_mut().chunks_exact_mut(run);
        for run in runs {
            // Memory that nobody has written to stays so.
            let used = run[slot * lines..(slot + 1) * lines].iter_mut();
            used.filter(|line| **line != Line::ZERO).for_each(|line| *line = Line::ZERO);
        }
    }

    /// Forgets all keys; a clock goes on.
    pub fn clear(&mut self) {
        self.store.lines_mut().fill(Line::ZERO);
        self.counts = Counts::zero(self.generations());
        if self.plan().ticks.is_none() {
            self.clock = 0;
        }
    }

    /// Forgets all keys, and sets the clock, forward or back: the way out after a time that was
    /// wrong. A window that is no time has no clock, and only forgets.
    pub fn restart_at(&mut self, now: u64) {
        self.clear();
        if self.plan().ticks.is_some() {
            self.clock = now;
        }
    }
}
