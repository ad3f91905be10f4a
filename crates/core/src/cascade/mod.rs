//! Filters without errors on a known universe of keys: a blocklist with all its exceptions.
//!
//! Level 0 is a static filter of the members. Level 1 is one of the known non-members that level 0
//! contains by mistake; level 2 one of the members that level 1 contains by mistake; and so on,
//! until a level makes no mistake. A query goes through the levels up to the first that does not
//! contain the key; the key is a member if that level is odd.
//!
//! The rate of level 0 is the target rate for keys outside the universe, or less if that saves more
//! in later levels. Those have a rate of 1/2, at which a static filter takes one bit per key.
//!
//! Invariants: no hash is that of a member and that of a non-member, so that queries of the universe
//! are exact. Levels mix hashes differently, so that their mistakes are independent.
//!
//! Cost: a query reads level 0, and more levels only if level 0 contains the key; for a member three
//! levels on average. Space: see [`FilterCascade`].
//!
//! Source: Larisch, Choffnes, Levin, Maggs, Mislove & Wilson 2017, "CRLite: a scalable system for
//! pushing all TLS revocations to all browsers", with static filters in place of Bloom filters.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
mod build;
mod file;
mod membership;

use crate::batch::key_methods;
use crate::error::Result;
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::key::Key;
use crate::results::BatchResults;
use crate::spec::Builder;
use crate::static_filter::StaticFilter;
use crate::store::{Owned, Store};

/// A set of members that is exact for a set of known non-members, and has the target
/// false-positive rate for all other keys. Built once from all keys.
///
/// With r members, s known non-members and the rate ε it takes about log2(1/p) + 3 bits per member,
/// where p is the smaller of ε and 0.7 · r/s. Non-members take no space of their own.
///
/// ```
/// use petal::FilterCascade;
///
/// let bad = ["bad.example", "worse.example"];
/// let good = ["good.example", "fine.example", "best.example"];
/// let blocked = FilterCascade::build(&bad, &good, 0.01)?;
/// assert!(bad.iter().all(|host| blocked.contains(host)));
/// assert!(!good.iter().any(|host| blocked.contains(host)));
/// // Of the hosts in neither list, 1 % are blocked by mistake.
///
/// // A key in both lists is an error.
/// let error = FilterCascade::build(&bad, &["bad.example"], 0.01).unwrap_err();
/// assert_eq!(error.contradictions().len(), 1);
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FilterCascade<S = Owned> {
    hash: HashSpec,
    levels: Vec<StaticFilter<S>>,
    info: CascadeInfo,
}

/// The values of a cascade in its file, besides the levels.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CascadeInfo {
    /// The number of distinct members.
    members: u64,
    /// The number of distinct known non-members.
    non_members: u64,
    /// The target rate for keys outside the universe.
    target_fpr: f64,
}

impl FilterCascade {
    /// Builds the cascade that contains all `members` and none of `non_members`, and other keys
    /// with the false-positive rate `fpr`.
    ///
    /// Cost: 8 bytes of memory for the hash of each key, sorted, and 8 more for each member while level
    /// 0 is built. The first two levels take most of the time: about one build of a static filter of
    /// the members, and one query for each non-member.
    ///
    /// # Errors
    /// If a key is in both lists ([`Error::contradictions`](crate::Error::contradictions)), the
    /// rate is not between 2.5 · 10⁻¹⁰ and 1 or cannot be reached with 64-bit hashes, or memory
    /// allocation fails.
    pub fn build<K: Key, L: Key>(members: &[K], non_members: &[L], fpr: f64) -> Result<Self> {
        Self::builder().fpr(fpr).build(members, non_members)
    }

    /// Returns a builder, which chooses rate, hash, seed and threads separately.
    #[must_use]
    pub fn builder() -> Builder<Self> {
        Builder::new(FilterType::Cascade)
    }
}

impl<S: Store> FilterCascade<S> {
    key_methods! {
        self [&self] self.hash, -> bool;
        /// Returns true if the key is a member. Exact for keys of the universe.
        #[must_use]
        contains, contains_mixed_hash, contains_batch;
        |hashes, found| self.contains_chunk(hashes, found)
    }

    /// [`contains`](Self::contains) for a hash made with
    /// [`hash_spec`](crate::Membership::hash_spec).
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn contains_mixed_hash(&self, hash: u64) -> bool {
        let stopped = self.levels.iter().position(|level| !level.contains_mixed_hash(hash));
        stopped.unwrap_or(self.levels.len()) % 2 == 1
    }

    /// Looks up hashes; `found` must be zero.
    fn contains_chunk(&self, hashes: &[u64], found: &mut [u64]) {
        let Some((first, deeper)) = self.levels.split_first() else { return };
        // The positions of the hashes that all levels so far contain.
        let mut pending: Vec<usize> = Vec::new();
        let mut results = BatchResults::new();
        first.contains_mixed_hashes(hashes, &mut results);
        pending.extend(results.iter());
        let mut pending_hashes = Vec::new();
        for (number, level) in (1..).zip(deeper) {
            if pending.is_empty() {
                return;
            }
            pending_hashes.clear();
            pending_hashes.extend(pending.iter().map(|&at| hashes[at]));
            level.contains_mixed_hashes(&pending_hashes, &mut results);
            let mut next = 0;
            pending.retain(|&at| {
                let in_level = results.get(next);
                next += 1;
                if !in_level && number % 2 == 1 {
                    found[at / 64] |= 1 << (at % 64);
                }
                in_level
            });
        }
        if self.levels.len() % 2 == 1 {
            pending.iter().for_each(|&at| found[at / 64] |= 1 << (at % 64));
        }
    }

    /// Returns the number of distinct members.
    #[must_use]
    pub fn members(&self) -> u64 {
        self.info.members
    }

    /// Returns the number of distinct known non-members.
    #[must_use]
    pub fn non_members(&self) -> u64 {
        self.info.non_members
    }

    /// Returns the number of levels.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// Copies the cascade into memory of its own: see
    /// [`Filter::try_clone`](crate::Filter::try_clone).
    ///
    /// # Errors
    /// If memory allocation fails.
    pub fn try_clone(&self) -> Result<FilterCascade> {
        let levels = self.levels.iter().map(StaticFilter::try_clone).collect::<Result<_>>()?;
        Ok(FilterCascade { hash: self.hash, levels, info: self.info })
    }
}

impl<S: Store, T: Store> PartialEq<FilterCascade<T>> for FilterCascade<S>
where
    StaticFilter<S>: PartialEq<StaticFilter<T>>,
{
    /// Compares hash, numbers of members and non-members, and levels.
    fn eq(&self, other: &FilterCascade<T>) -> bool {
        self.hash == other.hash && self.info == other.info && self.levels == other.levels
    }
}
