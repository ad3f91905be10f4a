//! The traits that all types of filters share, for wide filters.

use super::{CHUNK, Scratch, WideBloomFilter, describe};
use crate::error::Result;
use crate::explanation::Explanation;
use crate::filter::BloomFilter;
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::math;
use crate::membership::{Membership, MembershipMut, hash_word};
#[cfg(not(feature = "std"))]
use crate::no_std::*;
use crate::results::BatchResults;
use crate::store::{Store, StoreMut};

impl<S: Store> Membership for WideBloomFilter<S> {
    fn filter_type(&self) -> FilterType {
        FilterType::Wide
    }

    #[inline]
    fn hash_spec(&self) -> HashSpec {
        self.low.hash_spec()
    }

    fn describe(&self) -> String {
        describe(self.layout())
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let layout = self.layout();
        vec![
            ("bits", 2 * layout.bits()),
            ("probes", layout.probes().into()),
            ("blocks", layout.blocks()),
            ("lanes", layout.lanes().into()),
            ("filters", 2),
        ]
    }

    /// Each key has two words, the low word first.
    fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut BatchResults) {
        let mut scratch = Scratch::default();
        let results = found.reset(hashes.len() / 2).chunks_mut(CHUNK / 64);
        for (hashes, found) in hashes.chunks(2 * CHUNK).zip(results) {
            self.contains_chunk(hashes, found, &mut scratch);
        }
    }

    fn explain_mixed_hash(&self, hash: &[u64]) -> Explanation {
        let half = |filter: &BloomFilter<S>, index, name: &str| {
            let mut parts = filter.explain_mixed_hash(&[hash_word(hash, index)]).parts.into_iter();
            parts.next().unwrap_or_default().named(name.into())
        };
        let low = half(&self.low, 0, "filter of the low word");
        let high = half(&self.high, 1, "filter of the high word");
        Explanation { contains: low.contains && high.contains, parts: [low, high].into() }
    }

    fn size_bytes(&self) -> u64 {
        self.low.size_bytes() + self.high.size_bytes()
    }

    fn memory_usage(&self) -> u64 {
        let halves = self.low.memory_usage() + self.high.memory_usage();
        let around = size_of::<Self>() - 2 * size_of::<BloomFilter<S>>();
        halves + around as u64
    }

    /// The mean of the estimates of both halves.
    fn estimated_len(&self) -> f64 {
        (self.low.estimated_len() + self.high.estimated_len()) / 2.0
    }

    /// See [`math::wide_fpr`].
    fn expected_fpr(&self, keys: u64) -> f64 {
        let layout = self.layout();
        math::wide_fpr(keys, layout.blocks(), layout.lanes(), layout.probes())
    }

    fn estimated_fpr(&self) -> f64 {
        self.low.estimated_fpr() * self.high.estimated_fpr()
    }

    fn fill_ratio(&self) -> f64 {
        (self.low.fill_ratio() + self.high.fill_ratio()) / 2.0
    }

    fn capacity_left(&self) -> Option<u64> {
        if self.info.target_fpr == 0.0 {
            return None;
        }
        let capacity = self.layout().capacity_at_fpr(math::wide_part_fpr(self.info.target_fpr));
        Some(capacity.saturating_sub(self.estimated_len().ceil() as u64))
    }

    fn is_overfull(&self) -> bool {
        // The rate of each half is the square root of the rate.
        let (target, now) = (self.info.target_fpr.sqrt(), self.estimated_fpr().sqrt());
        math::is_overfull(target, now, self.size_bytes() * 4)
    }

    fn block_fills(&self, steps: usize) -> Vec<u64> {
        let (low, high) = (self.low.block_fills(steps), self.high.block_fills(steps));
        low.into_iter().zip(high).map(|(low, high)| low + high).collect()
    }
}

impl<S: StoreMut> MembershipMut for WideBloomFilter<S> {
    fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut BatchResults) -> Result<()> {
        self.insert_mixed_hashes(hashes, new);
        Ok(())
    }
}
