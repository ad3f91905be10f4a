//! The traits that all types of filters share, for static filters.

use super::{StaticFilter, Table, with_table};
use crate::explanation::Explanation;
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::math;
use crate::membership::{Membership, basic_stats, common_methods};
#[cfg(not(feature = "std"))]
use crate::no_std::*;
use crate::results::BatchResults;
use crate::stats::Stats;
use crate::store::Store;

common_methods!(StaticFilter);

impl<S: Store> Membership for StaticFilter<S> {
    fn filter_type(&self) -> FilterType {
        match self.table {
            Table::Ribbon(_) => FilterType::Static,
            Table::Fuse(_) => FilterType::StaticFuse,
        }
    }

    #[inline]
    fn hash_spec(&self) -> HashSpec {
        self.hash
    }

    fn describe(&self) -> String {
        with_table!(self, table => table.describe())
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let mut parameters = vec![("bits", self.size_bytes() * 8)];
        parameters.extend(with_table!(self, table => table.parameters()));
        parameters
    }

    #[inline]
    fn contains_mixed_hash(&self, hash: u64) -> bool {
        self.contains_mixed_hash(hash)
    }

    fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut BatchResults) {
        self.contains_words(hashes, found.reset(hashes.len()));
    }

    fn explain_mixed_hash(&self, hash: u64) -> Explanation {
        with_table!(self, table => table.explain(hash))
    }

    fn size_bytes(&self) -> u64 {
        with_table!(self, table => table.size_bytes())
    }

    fn memory_usage(&self) -> u64 {
        with_table!(self, table => table.memory_usage()) + size_of::<Self>() as u64
    }

    /// Depends on the number of keys only by collisions of hashes.
    fn expected_fpr(&self, keys: u64) -> f64 {
        let fpr = match &self.table {
            Table::Ribbon(table) => table.expected_fpr(),
            Table::Fuse(table) => table.fpr(),
        };
        math::probability_of_either(fpr, self.hash_floor(keys))
    }
    /// The number of keys and the rate are exact; the fill ratio is the share of equations or slots
    /// that keys take.
    fn stats(&self) -> Stats {
        let places = match &self.table {
            Table::Ribbon(table) => table.rows(),
            Table::Fuse(table) => table.slots(),
        };
        Stats {
            fill_ratio: if places == 0.0 { 0.0 } else { (self.len() as f64 / places).min(1.0) },
            ..basic_stats(self, self.fpr())
        }
    }
}
