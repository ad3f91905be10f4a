//! The traits that all types of filters share, for quotient filters.

use super::{QuotientFilter, QuotientLayout};
use crate::error::Result;
use crate::explanation::{ExplainedPart, Explanation};
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::kernel::quotient::InsertOutcome;
use crate::math;
use crate::membership::{Membership, MembershipMut, basic_stats, common_methods};
#[cfg(not(feature = "std"))]
use crate::no_std::*;
use crate::results::BatchResults;
use crate::stats::Stats;
use crate::store::{Store, StoreMut};

common_methods!(QuotientFilter);

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

    #[inline]
    fn contains_mixed_hash(&self, hash: u64) -> bool {
        self.contains_mixed_hash(hash)
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

    fn expected_fpr(&self, keys: u64) -> f64 {
        self.layout.fpr(keys)
    }

    /// The number of keys is estimated from that of different fingerprints; the rate is the share of
    /// all fingerprints that are in the filter, and not due to chance. The capacity left includes the
    /// automatic growth.
    fn stats(&self) -> Stats {
        let target_fpr = self.info.target_fpr;
        let (len, fingerprints) = (self.len(), self.layout.fingerprints());
        let estimated_len = math::distinct_keys(self.distinct, fingerprints);
        let max_distinct = (target_fpr > 0.0).then(|| self.layout.capacity_at_fpr(target_fpr));
        let left = |max: u64| {
            let by_fpr = max.saturating_sub(estimated_len.ceil() as u64);
            by_fpr.min(self.max_layout().capacity().saturating_sub(len))
        };
        let rate = self.distinct as f64 * math::collision_probability(fingerprints);
        Stats {
            estimated_len,
            fill_ratio: (len as f64 / self.layout.slots() as f64).min(1.0),
            capacity_left: max_distinct.map(left),
            is_overfull: max_distinct.is_some_and(|max| self.distinct > max),
            ..basic_stats(self, rate.min(1.0))
        }
    }
}

impl<S: Store> QuotientFilter<S> {
    /// Returns the layout after all automatic growth.
    fn max_layout(&self) -> QuotientLayout {
        let mut layout = self.layout;
        while let Some(larger) = layout.doubled().filter(|_| self.growing)
            && self.keeps_target_doubled(layout)
        {
            layout = larger;
        }
        layout
    }
}

impl<S: StoreMut> MembershipMut for QuotientFilter<S> {
    #[inline]
    fn insert_mixed_hash(&mut self, hash: u64) -> Result<bool> {
        Ok(self.insert_one(hash, true)? == InsertOutcome::New)
    }

    /// [Adds](QuotientFilter::add) each key, so that it can be removed without losing others.
    fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut BatchResults) -> Result<()> {
        self.add_and_report(hashes, new)
    }

    fn remove_mixed_hashes(&mut self, hashes: &[u64], removed: &mut BatchResults) -> Result<()> {
        self.remove_mixed_hashes(hashes, removed);
        Ok(())
    }
}
