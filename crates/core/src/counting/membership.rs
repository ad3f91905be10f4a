//! The traits that all types of filters share, for counting filters.

use super::{CountingFilter, kind};
use crate::error::Result;
use crate::explanation::Explanation;
use crate::filter::explain;
use crate::filter::layout::Layout;
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::kernel::counting::count;
use crate::membership::{Membership, MembershipMut, common_methods};
#[cfg(not(feature = "std"))]
use crate::no_std::*;
use crate::results::BatchResults;
use crate::stats::Stats;
use crate::store::{Store, StoreMut};

common_methods!(CountingFilter<L: Layout>);

impl<L: Layout, S: Store> Membership for CountingFilter<L, S> {
    fn filter_type(&self) -> FilterType {
        kind::<L>()
    }

    #[inline]
    fn hash_spec(&self) -> HashSpec {
        self.bloom.hash_spec()
    }

    fn describe(&self) -> String {
        format!("{}, counters of {} bits", self.layout().describe(), self.width)
    }

    /// Cost: reads the whole filter, for the number of saturated counters.
    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let mut parameters = self.layout().parameters();
        parameters.extend([("width", self.width.into()), ("saturated", self.saturated())]);
        parameters
    }

    #[inline]
    fn contains_mixed_hash(&self, hash: u64) -> bool {
        self.contains_mixed_hash(hash)
    }

    fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut BatchResults) {
        self.bloom.contains_mixed_hashes(hashes, found);
    }

    fn explain_mixed_hash(&self, hash: u64) -> Explanation {
        let (bits, planes, depth) = (self.bits(), self.planes.lines(), self.depth());
        let value = |position| count(bits, planes, depth, position);
        Explanation::of_one(explain(&self.layout(), hash, value))
    }

    fn size_bytes(&self) -> u64 {
        self.bloom.size_bytes() * u64::from(self.width)
    }

    fn memory_usage(&self) -> u64 {
        let stores = self.bloom.store().memory_usage() + self.planes.memory_usage();
        stores + size_of::<Self>() as u64
    }

    /// Returns the number of distinct keys counted at inserts and removals: one more for each
    /// insert of a key that was not contained before, one less for each removal after which the
    /// key is not contained any more. After a union it is an estimate from the bits.
    ///
    /// Inserts and removals of false positives are not counted, so that the number drifts to both
    /// sides alike: with the false-positive rate ε, its standard error is √(2 ε r) after r
    /// removals and as many inserts. For 10,000 keys at 1 % that is 14 % after 10,000 turnovers.
    /// [`Stats::estimated_len`] does not drift; it is too high by about 1.5 %
    /// for each per cent of counters that are saturated.
    fn inserted(&self) -> u64 {
        self.bloom.inserted()
    }

    fn expected_fpr(&self, keys: u64) -> f64 {
        self.bloom.expected_fpr(keys)
    }

    /// Saturated counters are not chance: a filter whose rate they raised above the target is
    /// overfull. Chance depends on the number of bits, whatever the width of the counters.
    fn stats(&self) -> Stats {
        Stats {
            filter_type: kind::<L>(),
            layout: self.describe(),
            parameters: self.parameters(),
            size_bytes: self.size_bytes(),
            memory_usage: self.memory_usage(),
            ..self.bloom.stats()
        }
    }

    fn block_fills(&self, steps: usize) -> Vec<u64> {
        self.bloom.block_fills(steps)
    }
}

impl<L: Layout, S: StoreMut> MembershipMut for CountingFilter<L, S> {
    #[inline]
    fn insert_mixed_hash(&mut self, hash: u64) -> Result<bool> {
        Ok(self.insert_mixed_hash(hash))
    }

    fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut BatchResults) -> Result<()> {
        self.insert_mixed_hashes(hashes, new);
        Ok(())
    }

    fn remove_mixed_hashes(&mut self, hashes: &[u64], removed: &mut BatchResults) -> Result<()> {
        self.remove_mixed_hashes(hashes, removed);
        Ok(())
    }
}
