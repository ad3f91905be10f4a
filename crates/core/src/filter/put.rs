//! Inserts without a result. To find out whether a key was new is up to two fifths of the time of an
//! insert in cache.
//!
//! New keys are not counted either. The number of inserts is then an estimate, as after a union.

use super::layout::{Layout, SET_MAX, whole_cardinality};
use super::{Filter, FilterInfo, hash_of};
use crate::batch::CHUNK;
use crate::kernel::UnhashedKeys;
use crate::key::Key;
#[cfg(not(feature = "std"))]
use crate::no_std::*;
use crate::store::{Store, StoreMut};

const _: () = assert!(CHUNK <= SET_MAX);

impl<L: Layout, S: StoreMut> Filter<L, S> {
    /// Inserts a key without returning whether it was new. From then on
    /// [`inserted`](crate::Membership::inserted) is an estimate from the bits, until the filter is
    /// cleared.
    ///
    /// Cost: as [`insert`](Self::insert) or less; `inserted` then reads the whole filter.
    #[inline(always)]
    pub fn put<K: Key + ?Sized>(&mut self, key: &K) {
        let (code, hash) = (self.single_keys(), self.hash);
        self.counted = false;
        self.layout.set(code, self.store.lines_mut(), |inline| hash_of::<L, K>(hash, key, inline));
    }

    /// [`put`](Self::put) for a hash made with
    /// [`hash_spec`](crate::Membership::hash_spec), or with another 64-bit hash function whose every
    /// output bit is random. Plain integers are not such hashes: insert them as keys.
    #[inline(always)]
    pub fn put_mixed_hash(&mut self, hash: u64) {
        self.counted = false;
        self.layout.set(self.single_hashes(), self.store.lines_mut(), |_| hash);
    }

    /// [`put`](Self::put) for many keys.
    ///
    /// ```
    /// use petal::{BloomFilter, Membership};
    ///
    /// let keys: Vec<u64> = (0..10_000).collect();
    /// let mut filter = BloomFilter::with_fpr(10_000, 0.01)?;
    /// filter.put_batch(&keys);
    /// assert!(keys.iter().all(|key| filter.contains(key)));
    /// assert!((9_900..10_100).contains(&filter.inserted()));
    /// # Ok::<_, petal::Error>(())
    /// ```
    ///
    /// Cost: as one by one, but cache misses overlap.
    pub fn put_batch<K: Key>(&mut self, keys: &[K]) {
        self.counted = false;
        let lines = self.store.lines_mut();
        if let (Some(words), Some(hash)) = (K::words(keys), self.hash.word_hasher()) {
            for words in words.chunks(SET_MAX) {
                self.layout.set_batch(self.kernel, lines, UnhashedKeys { words, hash });
            }
            return;
        }
        let mut hashes = Vec::with_capacity(CHUNK.min(keys.len()));
        for keys in keys.chunks(CHUNK) {
            hashes.clear();
            self.hash.hash_all(keys.iter().map(Key::bytes), &mut hashes);
            self.layout.set_batch(self.kernel, lines, &hashes[..]);
        }
    }

    /// [`put_batch`](Self::put_batch) for hashes.
    pub fn put_mixed_hashes(&mut self, hashes: &[u64]) {
        self.counted = false;
        for hashes in hashes.chunks(SET_MAX) {
            self.layout.set_batch(self.kernel, self.store.lines_mut(), hashes);
        }
    }
}

impl<L: Layout, S: Store> Filter<L, S> {
    /// Returns the values of the filter for its file.
    pub(super) fn current_info(&self) -> FilterInfo {
        FilterInfo { inserted: self.current_inserted(), ..self.info }
    }

    /// Returns the number of inserts that were new, or an estimate if not all were counted.
    pub(super) fn current_inserted(&self) -> u64 {
        if self.counted {
            return self.info.inserted;
        }
        whole_cardinality(&self.layout, self.estimated_len())
    }

    /// Replaces the number of inserts.
    pub(super) fn set_inserted(&mut self, inserted: u64) {
        self.info.inserted = inserted;
        self.counted = true;
    }
}
