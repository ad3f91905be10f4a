//! The traits that all types of filters share, for Bloom filters.

use super::layout::{Layout, cardinality_of, fill_of, whole_cardinality};
use super::{Filter, FilterInfo};
use crate::error::Result;
use crate::explanation::{ExplainedPart, Explanation, Probe};
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::kernel::classic::is_set;
use crate::math;
use crate::membership::{Membership, MembershipMut, common_methods, stats_with};
#[cfg(not(feature = "std"))]
use crate::no_std::*;
use crate::results::BatchResults;
use crate::stats::Stats;
use crate::store::{CacheLine, Store, StoreMut};

common_methods!(Filter<L: Layout>);

impl<L: Layout, S: Store> Membership for Filter<L, S> {
    fn filter_type(&self) -> FilterType {
        L::KIND
    }

    #[inline]
    fn hash_spec(&self) -> HashSpec {
        self.hash
    }

    fn describe(&self) -> String {
        self.layout.describe()
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        self.layout.parameters()
    }

    #[inline]
    fn contains_mixed_hash(&self, hash: u64) -> bool {
        self.contains_mixed_hash(hash)
    }

    fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut BatchResults) {
        self.layout.contains_batch(
            self.kernel,
            self.store.lines(),
            hashes,
            found.reset(hashes.len()),
        );
    }

    fn explain_mixed_hash(&self, hash: u64) -> Explanation {
        let lines = self.store.lines();
        let value = |position| u64::from(is_set(lines, position));
        Explanation::of_one(explain(&self.layout, hash, value))
    }

    fn size_bytes(&self) -> u64 {
        self.layout.lines() * CacheLine::BYTES as u64
    }

    fn memory_usage(&self) -> u64 {
        self.store.memory_usage() + size_of::<Self>() as u64
    }

    fn capacity(&self) -> u64 {
        self.info.capacity
    }

    fn target_fpr(&self) -> f64 {
        self.info.target_fpr
    }

    fn expected_fpr(&self, keys: u64) -> f64 {
        self.layout.fpr(keys)
    }

    /// The rate is exact for keys with a good hash, not an estimate. Bits that an intersection left set
    /// by chance count like those of keys, so that the capacity left is right after set operations,
    /// too.
    fn stats(&self) -> Stats {
        let (lines, target_fpr) = (self.store.lines(), self.info.target_fpr);
        let ones = lines.iter().map(|line| line.count_ones()).sum();
        let estimated_len = cardinality_of(&self.layout, ones);
        let inserted = match self.counted {
            true => self.info.inserted,
            false => whole_cardinality(&self.layout, estimated_len),
        };
        let max = (target_fpr > 0.0).then(|| self.layout.capacity_at_fpr(target_fpr));
        Stats {
            estimated_len,
            fill_ratio: fill_of(&self.layout, ones),
            capacity_left: max.map(|max| max.saturating_sub(estimated_len.ceil() as u64)),
            ..stats_with(self, FilterInfo { inserted, ..self.info }, self.fpr_at(estimated_len))
        }
    }

    fn block_fills(&self, steps: usize) -> Vec<u64> {
        self.layout.block_fills(self.store.lines(), steps)
    }
}

impl<L: Layout, S: Store> Filter<L, S> {
    /// Returns the false-positive rate from the bits.
    pub(super) fn estimated_fpr(&self) -> f64 {
        self.fpr_at(self.estimated_len())
    }

    /// [`estimated_fpr`](Self::estimated_fpr), if the number of keys is known.
    fn fpr_at(&self, estimated_len: f64) -> f64 {
        let fpr = self.layout.fpr_from_bits(self.store.lines());
        math::probability_of_either(fpr, math::hash_floor(estimated_len as u64))
    }
}

/// Explains a query of a Bloom filter whose bits or counters have these values.
pub(crate) fn explain(
    layout: &impl Layout,
    hash: u64,
    value: impl Fn(u64) -> u64,
) -> ExplainedPart {
    let probe = |position| Probe { position, value: value(position) };
    let probes: Vec<_> = layout.positions(hash).into_iter().map(probe).collect();
    ExplainedPart {
        contains: probes.iter().all(|probe| probe.value > 0),
        numbers: layout.block(hash).map(|block| ("block", block)).into_iter().collect(),
        probes,
        ..ExplainedPart::default()
    }
}

impl<L: Layout, S: StoreMut> MembershipMut for Filter<L, S> {
    #[inline]
    fn insert_mixed_hash(&mut self, hash: u64) -> Result<bool> {
        Ok(self.insert_mixed_hash(hash))
    }

    fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut BatchResults) -> Result<()> {
        self.insert_mixed_hashes(hashes, new);
        Ok(())
    }
}
