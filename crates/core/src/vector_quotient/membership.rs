//! The traits that all types of filters share, for vector quotient filters.

use super::VectorQuotientFilter;
use crate::error::Result;
use crate::explanation::{ExplainedPart, Explanation};
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::math;
use crate::membership::{Membership, MembershipMut, basic_stats, common_methods};
#[cfg(not(feature = "std"))]
use crate::no_std::*;
use crate::results::BatchResults;
use crate::stats::Stats;
use crate::store::{Store, StoreMut};

common_methods!(VectorQuotientFilter);

impl<S: Store> Membership for VectorQuotientFilter<S> {
    fn filter_type(&self) -> FilterType {
        FilterType::VectorQuotient
    }

    #[inline]
    fn hash_spec(&self) -> HashSpec {
        self.hash
    }

    fn describe(&self) -> String {
        self.layout.describe()
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("blocks", self.layout.blocks()),
            ("slots", self.layout.slots()),
            ("tag_bits", self.layout.tag_bits().into()),
            ("fingerprints", self.len()),
        ]
    }

    #[inline]
    fn contains_mixed_hash(&self, hash: u64) -> bool {
        self.contains_mixed_hash(hash)
    }

    fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut BatchResults) {
        self.table.contains_batch(self.store.lines(), hashes, found.reset(hashes.len()));
    }

    fn explain_mixed_hash(&self, hash: u64) -> Explanation {
        let place = self.table.place(hash);
        let copies = self.count_mixed_hash(hash);
        Explanation::of_one(ExplainedPart {
            contains: copies > 0,
            numbers: [
                ("first_block", place.block),
                ("second_block", self.table.second_block(place)),
                ("bucket", place.fingerprint.bucket.into()),
                ("tag", place.fingerprint.tag.into()),
                ("copies", copies),
            ]
            .into(),
            ..ExplainedPart::default()
        })
    }

    fn size_bytes(&self) -> u64 {
        self.layout.size_bytes()
    }

    fn memory_usage(&self) -> u64 {
        self.store.memory_usage() + size_of::<Self>() as u64
    }

    fn expected_fpr(&self, keys: u64) -> f64 {
        self.layout.fpr(keys)
    }

    /// Exact if every key was added once. Copies count like keys but do not raise the rate, so that
    /// with copies the filter may be overfull too early.
    fn stats(&self) -> Stats {
        let (len, layout) = (self.len(), self.layout);
        let target_fpr = self.info.target_fpr;
        let fpr = math::fingerprint_pair_fpr(len, layout.fingerprints(), layout.region());
        let max = (target_fpr > 0.0).then(|| layout.capacity_at_fpr(target_fpr));
        Stats {
            fill_ratio: (len as f64 / layout.slots() as f64).min(1.0),
            capacity_left: max.map(|max| max.min(layout.capacity()).saturating_sub(len)),
            is_overfull: max.is_some_and(|max| len > max),
            ..basic_stats(self, fpr)
        }
    }
}

impl<S: StoreMut> MembershipMut for VectorQuotientFilter<S> {
    #[inline]
    fn insert_mixed_hash(&mut self, hash: u64) -> Result<bool> {
        let new = !self.contains_mixed_hash(hash);
        self.add_mixed_hash(hash).map(|()| new)
    }

    /// [Adds](VectorQuotientFilter::add) each key, so that it can be removed without losing others.
    fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut BatchResults) -> Result<()> {
        self.add_and_report(hashes, new)
    }

    fn remove_mixed_hashes(&mut self, hashes: &[u64], removed: &mut BatchResults) -> Result<()> {
        self.remove_mixed_hashes(hashes, removed);
        Ok(())
    }
}
