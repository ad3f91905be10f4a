//! Building a cascade: its two filters, one after the other.

#[cfg(not(feature = "std"))]
use crate::no_std::*;

use super::{CascadeInfo, FilterCascade};
use crate::batch::CHUNK;
use crate::error::{Error, Result};
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::key::Key;
use crate::spec::{Builder, FilterSpec};
use crate::static_filter::{FirstStage, HashStore, SecondStage, check_fpr};

/// The largest number of columns of a static filter.
const MAX_COLUMNS: f64 = 31.0;
/// The highest rate of the first filter.
const MAX_FIRST_FPR: f64 = 0.5;

impl Builder<FilterCascade> {
    /// Builds the cascade.
    ///
    /// Cost: as [`FilterCascade::build`].
    ///
    /// # Errors
    /// As [`FilterCascade::build`], and if the rate is missing or a field is set that a cascade does not
    /// have.
    pub fn build<K: Key, L: Key>(self, members: &[K], non_members: &[L]) -> Result<FilterCascade> {
        let hash = self.spec.hash;
        let mut first = self.collector_of(None)?;
        let mut hashes = Vec::with_capacity(CHUNK.min(members.len().max(non_members.len())));
        for keys in members.chunks(CHUNK) {
            hashes.clear();
            hash.hash_all(keys.iter().map(Key::bytes), &mut hashes);
            first.extend(&hashes)?;
        }
        let mut second = first.others(non_members.len() as u64)?;
        for keys in non_members.chunks(CHUNK) {
            hashes.clear();
            hash.hash_all(keys.iter().map(Key::bytes), &mut hashes);
            second.extend(&hashes)?;
        }
        second.finish()
    }

    /// [`build`](Self::build) for hashes of this builder's hash, in any order.
    ///
    /// # Errors
    /// As [`FilterCascade::build`]. Two different keys may have equal hashes, with a probability of
    /// r · s / 2⁶⁴ for r members and s non-members, and are then reported as contradictions; use
    /// another seed.
    #[allow(clippy::wrong_self_convention, reason = "the cascade is made from the hashes")]
    pub fn from_mixed_hashes(self, members: &[u64], non_members: &[u64]) -> Result<FilterCascade> {
        let mut first = self.collector_of(None)?;
        first.extend(members)?;
        let mut second = first.others(non_members.len() as u64)?;
        second.extend(non_members)?;
        second.finish()
    }

    /// Returns a collector of hashes, which builds the cascade of more keys than memory holds: those that
    /// do not fit in `memory` bytes beside the filters go to the store.
    ///
    /// # Errors
    /// If the rate is missing or is not between 2.5 · 10⁻¹⁰ and 1.
    #[doc(hidden)] // For the crates of this repository.
    pub fn collector(self, store: &dyn HashStore, memory: u64) -> Result<MemberCollector<'_>> {
        self.collector_of(Some((store, memory)))
    }

    fn collector_of(self, store: Option<(&dyn HashStore, u64)>) -> Result<MemberCollector<'_>> {
        self.spec.check_fixed()?;
        let needed = "a false-positive rate";
        let target_fpr = self.spec.fpr.ok_or_else(|| Error::unsized_filter(needed))?;
        check_fpr(target_fpr)?;
        let hash = self.spec.hash;
        let spec = FilterSpec { filter_type: FilterType::Static, ..self.spec };
        Ok(MemberCollector { hash, target_fpr, first: FirstStage::new(spec, self.threads, store) })
    }
}

/// Collects the hashes of members: see [`Builder::collector`].
pub struct MemberCollector<'a> {
    hash: HashSpec,
    target_fpr: f64,
    first: FirstStage<'a>,
}

impl<'a> MemberCollector<'a> {
    /// Adds hashes.
    ///
    /// # Errors
    /// If the store fails, or memory allocation.
    pub fn extend(&mut self, hashes: &[u64]) -> Result<()> {
        self.first.extend(hashes)
    }

    /// Ends the members; `others` is the number of known non-members that follow.
    ///
    /// # Errors
    /// If the filter of the members does not fit in memory, or the rate cannot be reached with 64-bit
    /// hashes; if the store fails, or memory allocation.
    pub fn others(self, others: u64) -> Result<OtherCollector<'a>> {
        let Self { hash, target_fpr, first } = self;
        let second = first.finish(|members| first_fpr(target_fpr, members, others))?;
        let info = CascadeInfo { members: second.members(), non_members: others, target_fpr };
        Ok(OtherCollector { hash, info, second })
    }
}

/// Collects the hashes of known non-members: see [`Builder::collector`].
pub struct OtherCollector<'a> {
    hash: HashSpec,
    info: CascadeInfo,
    second: SecondStage<'a>,
}

impl OtherCollector<'_> {
    /// Adds hashes, of which those that are members by mistake are kept.
    ///
    /// # Errors
    /// If the store fails, or memory allocation.
    pub fn extend(&mut self, hashes: &[u64]) -> Result<()> {
        self.second.extend(hashes)
    }

    /// Builds the cascade.
    ///
    /// # Errors
    /// If hashes are in both lists ([`Error::contradictions`](crate::Error::contradictions)), the
    /// filters do not fit in memory, the store fails, or memory allocation.
    pub fn finish(self) -> Result<FilterCascade> {
        let Self { hash, info, second } = self;
        let [first, second] = second.finish()?;
        Ok(FilterCascade { hash, first, second, info })
    }
}

/// Returns the rate of the first filter, and its number of columns if that is whole: twice the target
/// rate, or less if that saves space in the second filter.
///
/// With r members, s non-members and c columns the first filter takes r · c bits and the second
/// r + s / 2^c. One column more pays as long as it takes s / 2^(c+1) > r keys off the second. For the
/// share of the members that have one more the sum is linear, so that the best number is whole.
fn first_fpr(target: f64, members: u64, non_members: u64) -> (f64, Option<u64>) {
    let rate = (2.0 * target).clamp(FilterSpec::MIN_STATIC_FPR, MAX_FIRST_FPR);
    let each = if members == 0 { 0.0 } else { non_members as f64 / members as f64 };
    let columns = each.log2().ceil().clamp(1.0, MAX_COLUMNS + 1.0) - 1.0;
    let best = (-columns).exp2();
    if best <= rate { (best, Some(columns as u64)) } else { (rate, None) }
}
