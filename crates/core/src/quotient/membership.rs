//! The traits that all types of filters share, for quotient filters.

use super::QuotientFilter;
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

impl<S: Store> Membership for QuotientFilter<S> {
    fn filter_type(&self) -> FilterType {
        FilterType::Quotient
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
            ("slots", self.layout.slots()),
            ("remainder_bits", self.layout.remainder_bits().into()),
            ("fingerprints", self.len()),
            ("distinct", self.distinct),
            ("growing", self.growing.into()),
        ]
    }

    fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut BatchResults) {
        self.table.contains_batch(self.store.lines(), hashes, found.reset(hashes.len()));
    }

    fn explain_mixed_hash(&self, hash: u64) -> Explanation {
        let (fingerprint, bits) = (self.fingerprint_of(hash), self.layout().remainder_bits());
        let copies = self.count_mixed_hash(hash);
        Explanation::of_one(ExplainedPart {
            contains: copies > 0,
            numbers: [
                ("fingerprint", fingerprint),
                ("slot", fingerprint >> bits),
                ("remainder", fingerprint & !(u64::MAX << bits)),
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

    /// Estimates the number of distinct keys from that of different fingerprints.
    fn estimated_len(&self) -> f64 {
        math::distinct_keys(self.distinct, self.layout.fingerprints())
    }

    fn expected_fpr(&self, keys: u64) -> f64 {
        self.layout.fpr(keys)
    }

    /// The share of all fingerprints that are in the filter.
    fn estimated_fpr(&self) -> f64 {
        (self.distinct as f64 * math::collision_probability(self.layout.fingerprints())).min(1.0)
    }

    fn fill_ratio(&self) -> f64 {
        (self.len() as f64 / self.layout.slots() as f64).min(1.0)
    }

    /// Exact: the rate depends on the number of different fingerprints, not on chance.
    fn is_overfull(&self) -> bool {
        let target = self.info.target_fpr;
        target > 0.0 && self.distinct > self.layout.capacity_at_fpr(target)
    }

    /// Includes the automatic growth.
    fn capacity_left(&self) -> Option<u64> {
        if self.info.target_fpr == 0.0 {
            return None;
        }
        let by_fpr = self.layout.capacity_at_fpr(self.info.target_fpr);
        let by_fpr = by_fpr.saturating_sub(self.estimated_len().ceil() as u64);
        let mut layout = self.layout;
        while let Some(larger) = layout.doubled().filter(|_| self.growing)
            && self.keeps_target_doubled(layout)
        {
            layout = larger;
        }
        Some(by_fpr.min(layout.capacity().saturating_sub(self.len())))
    }
}

impl<S: StoreMut> MembershipMut for QuotientFilter<S> {
    /// [Adds](QuotientFilter::add) each key, so that it can be removed without losing others.
    fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut BatchResults) -> Result<()> {
        self.add_mixed_hashes(hashes, new)
    }

    fn remove_mixed_hashes(&mut self, hashes: &[u64], removed: &mut BatchResults) -> Result<()> {
        self.remove_mixed_hashes(hashes, removed);
        Ok(())
    }
}
