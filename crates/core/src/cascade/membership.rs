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
        let (levels, members) =
            (counted(self.levels() as u64, "level"), counted(members, "member"));
        format!("{levels}, {members} among {}", counted(non_members, "known other"))
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("levels", self.levels() as u64),
            ("members", self.members()),
            ("others", self.non_members()),
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
        for (number, level) in self.levels.iter().enumerate() {
            let Explanation { contains, parts: layers } = level.explain_mixed_hash(hash);
            // The layer that decides is the last one.
            let layer = layers.into_iter().next_back().unwrap_or_default();
            let of = if number % 2 == 0 { "members" } else { "non-members" };
            parts.push(layer.named(format!("level {number}, of {of}")));
            if !contains {
                break;
            }
        }
        Explanation { contains: self.contains_mixed_hash(hash), parts }
    }

    fn size_bytes(&self) -> u64 {
        let levels = self.levels.iter().map(StaticFilter::size_bytes).sum::<u64>();
        levels + self.levels.len() as u64 * file::ENTRY_BYTES
    }

    fn memory_usage(&self) -> u64 {
        let spare = self.levels.capacity() - self.levels.len();
        let levels = self.levels.iter().map(StaticFilter::memory_usage).sum::<u64>();
        levels + (size_of::<Self>() + spare * size_of::<StaticFilter<S>>()) as u64
    }

    /// The rate for keys outside the universe, from the rates of the levels: a key is reported as a
    /// member if the first level that does not contain it is odd.
    fn expected_fpr(&self, _: u64) -> f64 {
        let (mut reach, mut fpr) = (1.0, 0.0);
        for (at, level) in self.levels.iter().enumerate() {
            let level_fpr = level.fpr();
            if at % 2 == 1 {
                fpr += reach * (1.0 - level_fpr);
            }
            reach *= level_fpr;
        }
        fpr + if self.levels.len() % 2 == 1 { reach } else { 0.0 }
    }

    fn stats(&self) -> Stats {
        basic_stats(self, self.expected_fpr(0))
    }
}
