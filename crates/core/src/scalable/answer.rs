//! Batches over layers: each layer is asked for all keys that no newer one had.
//!
//! A layer's own batch overlaps its cache misses, so that nothing is won by asking for the lines
//! of several layers at once. Keys go through in runs that stay in the nearest cache.

use super::ScalableBloomFilter;
use crate::answers::Answers;
use crate::error::Result;
use crate::filter::HASHED;
use crate::store::Store;

/// Keys that are still looked for, and room for answers; used again from run to run.
#[derive(Default)]
pub(super) struct Asked {
    hashes: Vec<u64>,
    /// Their places in the run.
    places: Vec<u32>,
    answers: Answers,
}

/// Hashes and the words for their answers, a run at a time.
pub(super) fn runs<'a>(
    hashes: &'a [u64],
    words: &'a mut [u64],
) -> impl Iterator<Item = (&'a [u64], &'a mut [u64])> {
    hashes.chunks(HASHED).zip(words.chunks_mut(HASHED / 64))
}

impl Asked {
    /// All hashes of a run.
    fn begin(&mut self, hashes: &[u64]) {
        self.hashes.clear();
        self.hashes.extend_from_slice(hashes);
        self.places.clear();
        self.places.extend(0..hashes.len() as u32);
    }

    /// Drops the keys of which `found` says yes, by the last answers, their place among them and
    /// their place in the run.
    fn drop_found(&mut self, found: impl Fn(&Answers, usize, u32) -> bool) {
        let mut kept = 0;
        for at in 0..self.hashes.len() {
            let (hash, place) = (self.hashes[at], self.places[at]);
            self.hashes[kept] = hash;
            self.places[kept] = place;
            // Without a branch, which nothing could foresee.
            kept += usize::from(!found(&self.answers, at, place));
        }
        self.hashes.truncate(kept);
        self.places.truncate(kept);
    }
}

/// What a key that is asked for once more costs a layer, against what it costs to drop it.
const WORTH_DROPPING: u64 = 4;

fn set(words: &mut [u64], place: u32) {
    words[place as usize / 64] |= 1 << (place % 64);
}

fn is_set(words: &[u64], place: u32) -> bool {
    words[place as usize / 64] >> (place % 64) & 1 == 1
}

impl<S: Store> ScalableBloomFilter<S> {
    /// Looks for a run of hashes; `found` is zero before.
    pub(super) fn look_for(&self, hashes: &[u64], found: &mut [u64], asked: &mut Asked) {
        asked.begin(hashes);
        for layer in self.newest_first() {
            layer.contains_mixed_hashes(&asked.hashes, &mut asked.answers);
            asked.answers.iter().for_each(|at| set(found, asked.places[at]));
            // A few that were found may as well be asked for again.
            if asked.answers.count_ones() * WORTH_DROPPING >= asked.hashes.len() as u64 {
                asked.drop_found(|answers, at, _| answers.get(at));
            }
            if asked.hashes.is_empty() {
                return;
            }
        }
    }
}

impl ScalableBloomFilter {
    /// Inserts a run of hashes; `new` is zero before.
    pub(super) fn insert_run(
        &mut self,
        hashes: &[u64],
        new: &mut [u64],
        asked: &mut Asked,
    ) -> Result<()> {
        // What is found here is not new; the words hold something only meanwhile.
        self.look_for(hashes, new, asked);
        asked.drop_found(|_, _, place| is_set(new, place));
        new.fill(0);
        // The rest is new, but for keys like which there was one before them in the run.
        while !asked.hashes.is_empty() {
            let room = usize::try_from(self.layer_capacity_left()).unwrap_or(usize::MAX);
            if room == 0 {
                self.newest.contains_mixed_hashes(&asked.hashes, &mut asked.answers);
                asked.drop_found(|answers, at, _| answers.get(at));
                if !asked.hashes.is_empty() {
                    self.grow()?;
                }
                continue;
            }
            let some = room.min(asked.hashes.len());
            self.newest.insert_mixed_hashes(&asked.hashes[..some], &mut asked.answers);
            asked.answers.iter().for_each(|at| set(new, asked.places[at]));
            asked.hashes.drain(..some);
            asked.places.drain(..some);
        }
        Ok(())
    }
}
