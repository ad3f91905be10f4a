//! Building a cascade, level by level.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use alloc::borrow::Cow;

use super::{CascadeInfo, FilterCascade};
use crate::error::{Error, Result};
use crate::format::kind::FilterType;
use crate::key::Key;
use crate::results::BatchResults;
use crate::spec::{Builder, FilterSpec};
use crate::static_filter::{StaticFilter, build_level, check_fpr};

/// The rate of all levels but the first, at which a level takes one bit per key.
const LATER_FPR: f64 = 0.5;
/// The largest number of levels. Each level halves the number of keys, so more levels are
/// improbable. If more are needed, all levels are built again with other seeds.
pub(super) const MAX_LEVELS: u64 = 96;
/// The number of attempts with different seeds.
const ATTEMPTS: u64 = 8;

impl Builder<FilterCascade> {
    /// Builds the cascade.
    ///
    /// Cost: as [`FilterCascade::build`].
    ///
    /// # Errors
    /// As [`FilterCascade::build`], and if the rate is missing or a field is set that a cascade does not
    /// have.
    pub fn build<K: Key, L: Key>(self, members: &[K], non_members: &[L]) -> Result<FilterCascade> {
        let (mut ours, mut theirs) =
            (with_capacity(members.len())?, with_capacity(non_members.len())?);
        self.checked_fpr()?;
        self.spec.hash.hash_all(members.iter().map(Key::bytes), &mut ours);
        self.spec.hash.hash_all(non_members.iter().map(Key::bytes), &mut theirs);
        self.from_mixed_hashes(ours, theirs)
    }

    /// [`build`](Self::build) for hashes of this builder's hash, in any order.
    ///
    /// # Errors
    /// As [`FilterCascade::build`]. Two different keys may have equal hashes, with a probability of
    /// r · s / 2⁶⁴ for r members and s non-members, and are then reported as contradictions; use
    /// another seed.
    #[allow(clippy::wrong_self_convention, reason = "the cascade is made from the hashes")]
    pub fn from_mixed_hashes(
        self,
        mut members: Vec<u64>,
        mut non_members: Vec<u64>,
    ) -> Result<FilterCascade> {
        let target_fpr = self.checked_fpr()?;
        for hashes in [&mut members, &mut non_members] {
            hashes.sort_unstable();
            hashes.dedup();
        }
        let both = in_both(&members, &non_members)?;
        if !both.is_empty() {
            return Err(Error::contradiction(both));
        }
        let first = first_fpr(target_fpr, members.len(), non_members.len());
        for attempt in 0..ATTEMPTS {
            if let Some(levels) = self.build_levels(&members, &non_members, first, attempt)? {
                let info = CascadeInfo {
                    members: members.len() as u64,
                    non_members: non_members.len() as u64,
                    target_fpr,
                };
                return Ok(FilterCascade { hash: self.spec.hash, levels, info });
            }
        }
        Err(Error::invalid("keys", "hashes that can be distinguished", "some that cannot"))
    }

    /// Returns the rate, if static filters can have it and no other field is set.
    fn checked_fpr(&self) -> Result<f64> {
        self.spec.check_fixed()?;
        let needed = "a false-positive rate";
        let fpr = self.spec.fpr.ok_or_else(|| Error::unsized_filter(needed))?;
        check_fpr(fpr).map(|()| fpr)
    }

    /// Builds all levels; `None` if there would be more than [`MAX_LEVELS`].
    fn build_levels(
        &self,
        members: &[u64],
        non_members: &[u64],
        first: f64,
        attempt: u64,
    ) -> Result<Option<Vec<StaticFilter>>> {
        let mut levels = Vec::new();
        // The keys of the next level, and the keys that it must not contain.
        let (mut keys, mut excluded) = (Cow::Borrowed(members), Cow::Borrowed(non_members));
        let mut found = BatchResults::new();
        for number in 0..MAX_LEVELS {
            let fpr = if number == 0 { first } else { LATER_FPR };
            let seed = attempt * MAX_LEVELS + number + 1;
            let spec = FilterSpec { fpr: Some(fpr), filter_type: FilterType::Static, ..self.spec };
            let level = build_level(&spec, seed, self.threads, &keys)?;
            level.contains_mixed_hashes(&excluded, &mut found);
            let mut mistakes = with_capacity(found.count_ones() as usize)?;
            mistakes.extend(found.iter().map(|at| excluded[at]));
            levels.push(level);
            if mistakes.is_empty() {
                levels.shrink_to_fit();
                return Ok(Some(levels));
            }
            excluded = core::mem::replace(&mut keys, Cow::Owned(mistakes));
        }
        Ok(None)
    }
}

/// Returns the rate of level 0: the target rate, or less if that saves space in later levels.
///
/// With r members, s non-members and the rate p, level 0 takes r · log2(1/p) bits and the others
/// together 2 · (s · p + r/2), because each level has half the keys of the one two before it. The
/// sum has its minimum at p = r / (2 s ln 2), about 0.72 r/s.
fn first_fpr(target: f64, members: usize, non_members: usize) -> f64 {
    let best = members as f64 / (2.0 * core::f64::consts::LN_2 * non_members.max(1) as f64);
    let fpr = if members == 0 { target } else { target.min(best) };
    fpr.clamp(FilterSpec::MIN_STATIC_FPR, LATER_FPR)
}

/// Returns an empty vector with space for `len` hashes, or an error if allocation fails.
fn with_capacity(len: usize) -> Result<Vec<u64>> {
    let mut hashes = Vec::new();
    let refused = |_| Error::alloc((len as u64).saturating_mul(8));
    hashes.try_reserve_exact(len).map_err(refused)?;
    Ok(hashes)
}

/// Returns the hashes that are in both of two ascending lists.
fn in_both(members: &[u64], non_members: &[u64]) -> Result<Vec<u64>> {
    let (short, long) = if members.len() < non_members.len() {
        (members, non_members)
    } else {
        (non_members, members)
    };
    let mut rest = long;
    let is_in_long = |hash: &&u64| {
        rest = &rest[rest.partition_point(|other| other < *hash)..];
        rest.first() == Some(*hash)
    };
    let mut both = Vec::new();
    for &hash in short.iter().filter(is_in_long) {
        both.try_reserve(1).map_err(|_| Error::alloc(16 * both.len() as u64))?;
        both.push(hash);
    }
    Ok(both)
}
