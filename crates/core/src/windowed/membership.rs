//! The traits that all types of filters share, for windowed filters.

use super::{WindowedBloomFilter, ring};
use crate::error::Result;
use crate::explanation::Explanation;
use crate::filter::layout::sealed::LayoutImpl as _;
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::math;
use crate::membership::{Membership, MembershipMut, basic_stats, common_methods};
#[cfg(not(feature = "std"))]
use crate::no_std::*;
use crate::results::BatchResults;
use crate::stats::Stats;
use crate::store::{Store, StoreMut};

common_methods!(WindowedBloomFilter);

impl<S: Store> Membership for WindowedBloomFilter<S> {
    fn filter_type(&self) -> FilterType {
        FilterType::Windowed
    }

    #[inline]
    fn hash_spec(&self) -> HashSpec {
        self.params.hash
    }

    fn describe(&self) -> String {
        format!("{} generations of {}", self.generations(), self.layout().describe())
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let mut parameters = self.layout().parameters();
        parameters.push(("generations", self.generations().into()));
        if let Some(ticks) = self.plan().ticks {
            parameters.extend([("window_ticks", ticks), ("now", self.clock)]);
        }
        parameters
    }

    #[inline]
    fn contains_mixed_hash(&self, hash: u64) -> bool {
        self.contains_mixed_hash(hash)
    }

    fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut BatchResults) {
        let (lines, found) = (self.store.lines(), found.reset(hashes.len()));
        ring!(self, lines, |ring| self.params.kernel.contains_batch_in_ring(ring, hashes, found));
    }

    fn explain_mixed_hash(&self, hash: u64) -> Explanation {
        self.explain_mixed_hash_at(0, hash)
    }

    fn size_bytes(&self) -> u64 {
        self.layout().size_bytes() * u64::from(self.generations())
    }

    fn memory_usage(&self) -> u64 {
        self.store.memory_usage() + self.counts.memory_usage() + size_of::<Self>() as u64
    }

    /// The number of keys in the window that the filter was planned for.
    fn capacity(&self) -> u64 {
        self.plan().keys
    }

    fn target_fpr(&self) -> f64 {
        self.plan().fpr
    }

    /// Returns the rate with `keys` distinct keys in each window, at its highest: just before the
    /// oldest generation is cleared.
    fn expected_fpr(&self, keys: u64) -> f64 {
        self.plan().expected_fpr(self.layout(), keys)
    }

    /// The rate is that at which any generation reports an absent key as present. The capacity left is
    /// what is left of the newest generation's share of a window by clock.
    fn stats(&self) -> Stats {
        let fpr = ring!(self, self.store.lines(), |ring| ring.fpr_from_bits());
        let estimated_fpr = math::probability_of_either(fpr, math::hash_floor(self.inserted()));
        let ones: u64 = self.store.lines().iter().map(|line| line.count_ones()).sum();
        let newest = self.counts.get(self.newest());
        Stats {
            estimated_len: self.estimated_len(),
            fill_ratio: ones as f64 / (self.size_bytes() * 8) as f64,
            capacity_left: self
                .window_ticks()
                .map(|_| self.generation_capacity().saturating_sub(newest)),
            ..basic_stats(self, estimated_fpr)
        }
    }

    fn block_fills(&self, steps: usize) -> Vec<u64> {
        self.layout().block_fills(self.store.lines(), steps)
    }
}

impl<S: Store> WindowedBloomFilter<S> {
    /// Estimates the number of distinct keys from the bits that are set in any generation.
    fn estimated_len(&self) -> f64 {
        let lines = self.layout().lanes() as usize / 8;
        let mut clear = 0u64;
        for run in self.store.lines().chunks_exact(lines * self.generations() as usize) {
            for part in 0..lines {
                let mut any = [0; 8];
                for line in run[part..].iter().step_by(lines) {
                    any.iter_mut().zip(line.0).for_each(|(any, word)| *any |= word);
                }
                clear += any.iter().map(|word| u64::from(word.count_zeros())).sum::<u64>();
            }
        }
        let clear_ratio = clear as f64 / self.layout().bits() as f64;
        math::cardinality(clear_ratio, self.layout().bit_probability())
    }
}

impl<S: StoreMut> MembershipMut for WindowedBloomFilter<S> {
    #[inline]
    fn insert_mixed_hash(&mut self, hash: u64) -> Result<bool> {
        Ok(self.insert_mixed_hash(hash))
    }

    fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut BatchResults) -> Result<()> {
        self.insert_mixed_hashes(hashes, new);
        Ok(())
    }
}
