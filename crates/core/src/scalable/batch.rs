//! Batches over layers: each layer is queried for the keys that no newer layer contains.
//!
//! The batch of one layer overlaps its cache misses; prefetching the lines of several layers at
//! once gains nothing. Batches are cut into runs that stay in the nearest cache.

use super::ScalableBloomFilter;
use crate::batch::CHUNK;
use crate::error::Result;
#[cfg(not(feature = "std"))]
use crate::no_std::*;
use crate::results::BatchResults;
use crate::store::Store;

/// Keys that are not found yet, with buffers that are reused from run to run.
#[derive(Default)]
pub(super) struct PendingKeys {
    hashes: Vec<u64>,
    /// Their positions in the run.
    positions: Vec<u32>,
    results: BatchResults,
}

/// Cuts hashes and the words for their results into runs.
pub(super) fn runs<'a>(
    hashes: &'a [u64],
    words: &'a mut [u64],
) -> impl Iterator<Item = (&'a [u64], &'a mut [u64])> {
    hashes.chunks(CHUNK).zip(words.chunks_mut(CHUNK / 64))
}

impl PendingKeys {
    /// Replaces the keys by all hashes of a run.
    fn reset(&mut self, hashes: &[u64]) {
        self.hashes.clear();
        self.hashes.extend_from_slice(hashes);
        self.positions.clear();
        self.positions.extend(0..hashes.len() as u32);
    }

    /// Drops the keys for which `found` returns true, given the last results, the index of the key
    /// in them and its position in the run.
    fn drop_found(&mut self, found: impl Fn(&BatchResults, usize, u32) -> bool) {
        let mut kept = 0;
        for at in 0..self.hashes.len() {
            let (hash, position) = (self.hashes[at], self.positions[at]);
            self.hashes[kept] = hash;
            self.positions[kept] = position;
            // Without a branch, which would be mispredicted.
            kept += usize::from(!found(&self.results, at, position));
        }
        self.hashes.truncate(kept);
        self.positions.truncate(kept);
    }
}

/// The cost of querying a layer for a key, relative to that of dropping the key.
const WORTH_DROPPING: u64 = 4;

fn set(words: &mut [u64], position: u32) {
    words[position as usize / 64] |= 1 << (position % 64);
}

fn is_set(words: &[u64], position: u32) -> bool {
    words[position as usize / 64] >> (position % 64) & 1 == 1
}

impl<S: Store> ScalableBloomFilter<S> {
    /// Looks up a run of hashes; `found` must be zero.
    pub(super) fn contains_run(
        &self,
        hashes: &[u64],
        found: &mut [u64],
        pending: &mut PendingKeys,
    ) {
        pending.reset(hashes);
        for layer in self.newest_first() {
            layer.contains_mixed_hashes(&pending.hashes, &mut pending.results);
            pending.results.iter().for_each(|at| set(found, pending.positions[at]));
            // Querying a few found keys again is cheaper than dropping them.
            if pending.results.count_ones() * WORTH_DROPPING >= pending.hashes.len() as u64 {
                pending.drop_found(|results, at, _| results.get(at));
            }
            if pending.hashes.is_empty() {
                return;
            }
        }
    }
}

impl ScalableBloomFilter {
    /// Inserts a run of hashes; `new` must be zero.
    pub(super) fn insert_run(
        &mut self,
        hashes: &[u64],
        new: &mut [u64],
        pending: &mut PendingKeys,
    ) -> Result<()> {
        // Keys that are found are not new. `new` is used as a buffer for the found keys.
        self.contains_run(hashes, new, pending);
        pending.drop_found(|_, _, position| is_set(new, position));
        new.fill(0);
        // The rest is new, except for keys that occur twice in the run.
        while !pending.hashes.is_empty() {
            let room = usize::try_from(self.left).unwrap_or(usize::MAX);
            if room == 0 {
                self.newest.contains_mixed_hashes(&pending.hashes, &mut pending.results);
                pending.drop_found(|results, at, _| results.get(at));
                if !pending.hashes.is_empty() {
                    self.grow()?;
                }
                continue;
            }
            let len = room.min(pending.hashes.len());
            self.newest.insert_mixed_hashes(&pending.hashes[..len], &mut pending.results);
            self.left -= pending.results.count_ones();
            pending.results.iter().for_each(|at| set(new, pending.positions[at]));
            pending.hashes.drain(..len);
            pending.positions.drain(..len);
        }
        Ok(())
    }
}
