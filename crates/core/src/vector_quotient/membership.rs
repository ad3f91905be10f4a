//! The traits that all types of filters share, for vector quotient filters.

use super::VectorQuotientFilter;
use crate::error::Result;
use crate::explanation::{ExplainedPart, Explanation};
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::math;
use crate::membership::{Membership, MembershipMut};
#[cfg(not(feature = "std"))]
use crate::no_std::*;
use crate::results::BatchResults;
use crate::store::{Store, StoreMut};

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

    /// Estimates the number of distinct keys, if each was added once: copies are counted.
    fn estimated_len(&self) -> f64 {
        self.len() as f64
    }

    fn expected_fpr(&self, keys: u64) -> f64 {
        self.layout.fpr(keys)
    }

    fn estimated_fpr(&self) -> f64 {
        math::fingerprint_pair_fpr(self.len(), self.layout.fingerprints(), self.layout.region())
    }

    fn fill_ratio(&self) -> f64 {
        (self.len() as f64 / self.layout.slots() as f64).min(1.0)
    }

    /// Exact if every key was added once. Copies count like keys but do not raise the rate, so with
    /// copies it may be true too early.
    fn is_overfull(&self) -> bool {
        let target = self.info.target_fpr;
        target > 0.0 && self.len() > self.layout.capacity_at_fpr(target)
    }

    fn capacity_left(&self) -> Option<u64> {
        if self.info.target_fpr == 0.0 {
            return None;
        }
        let capacity = self.layout.capacity_at_fpr(self.info.target_fpr);
        Some(capacity.min(self.layout.capacity()).saturating_sub(self.len()))
    }
}

impl<S: StoreMut> MembershipMut for VectorQuotientFilter<S> {
    /// [Adds](VectorQuotientFilter::add) each key, so that it can be removed without losing others.
    fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut BatchResults) -> Result<()> {
        self.add_and_report(hashes, new)
    }

    fn remove_mixed_hashes(&mut self, hashes: &[u64], removed: &mut BatchResults) -> Result<()> {
        self.remove_mixed_hashes(hashes, removed);
        Ok(())
    }
}
