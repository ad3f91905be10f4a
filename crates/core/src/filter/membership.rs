//! The traits that all types of filters share, for Bloom filters.

use super::Filter;
use super::layout::{Layout, cardinality, fill};
use crate::error::Result;
use crate::explanation::{ExplainedPart, Explanation, Probe};
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::kernel::classic::is_set;
use crate::math;
use crate::membership::{Membership, MembershipMut};
#[cfg(not(feature = "std"))]
use crate::no_std::*;
use crate::results::BatchResults;
use crate::store::{CacheLine, Store, StoreMut};

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

    /// See [`math::cardinality`].
    fn estimated_len(&self) -> f64 {
        cardinality(&self.layout, self.store.lines())
    }

    fn expected_fpr(&self, keys: u64) -> f64 {
        self.layout.fpr(keys)
    }

    /// The rate is exact for keys with a good hash, not an estimate.
    fn estimated_fpr(&self) -> f64 {
        let fpr = self.layout.fpr_from_bits(self.store.lines());
        math::probability_of_either(fpr, math::hash_floor(self.estimated_len() as u64))
    }

    fn fill_ratio(&self) -> f64 {
        fill(&self.layout, self.store.lines())
    }

    /// Bits that an intersection left set by chance count like those of keys, so that the result
    /// is right after set operations, too.
    fn capacity_left(&self) -> Option<u64> {
        if self.info.target_fpr == 0.0 {
            return None;
        }
        let capacity = self.layout.capacity_at_fpr(self.info.target_fpr);
        Some(capacity.saturating_sub(self.estimated_len().ceil() as u64))
    }

    fn block_fills(&self, steps: usize) -> Vec<u64> {
        self.layout.block_fills(self.store.lines(), steps)
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
    fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut BatchResults) -> Result<()> {
        self.insert_mixed_hashes(hashes, new);
        Ok(())
    }
}
