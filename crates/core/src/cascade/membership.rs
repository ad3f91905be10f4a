//! The traits that all types of filters share, for cascades.

use super::{FilterCascade, file};
use crate::explanation::Explanation;
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::membership::{Membership, basic_stats, common_methods, counted};
#[cfg(not(feature = "std"))]
use crate::no_std::*;
use crate::results::BatchResults;
use crate::static_filter::StaticFilter;
use crate::stats::Stats;
use crate::store::Store;

common_methods!(FilterCascade);

impl<S: Store> Membership for FilterCascade<S> {
    fn filter_type(&self) -> FilterType {
        FilterType::Cascade
    }

    #[inline]
    fn hash_spec(&self) -> HashSpec {
        self.hash
    }

    fn describe(&self) -> String {
        let (members, non_members) = (self.members(), self.non_members());
        format!("{} among {}", counted(members, "member"), counted(non_members, "known other"))
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("members", self.members()),
            ("others", self.non_members()),
            ("others in the second filter", self.second.len().saturating_sub(self.members())),
        ]
    }

    #[inline]
    fn contains_mixed_hash(&self, hash: u64) -> bool {
        self.contains_mixed_hash(hash)
    }

    fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut BatchResults) {
        self.contains_chunk(hashes, found.reset(hashes.len()));
    }

    fn explain_mixed_hash(&self, hash: u64) -> Explanation {
        let mut parts = Vec::new();
        for (name, filter) in [("first filter", &self.first), ("second filter", &self.second)] {
            let Explanation { contains, parts: layers } = filter.explain_mixed_hash(hash);
            // The layer that decides is the last one.
            let layer = layers.into_iter().next_back().unwrap_or_default();
            parts.push(layer.named(name.to_owned()));
            if !contains {
                break;
            }
        }
        Explanation { contains: self.contains_mixed_hash(hash), parts }
    }

    fn size_bytes(&self) -> u64 {
        self.first.size_bytes() + self.second.size_bytes() + file::FIRST_LINE_BYTES
    }

    fn memory_usage(&self) -> u64 {
        let inside = 2 * size_of::<StaticFilter<S>>();
        let filters = self.first.memory_usage() + self.second.memory_usage();
        filters + (size_of::<Self>() - inside) as u64
    }

    /// The rate for keys in neither list: both filters contain a key by mistake.
    fn expected_fpr(&self, _: u64) -> f64 {
        self.first.fpr() * self.second.fpr()
    }

    fn stats(&self) -> Stats {
        basic_stats(self, self.expected_fpr(0))
    }
}
