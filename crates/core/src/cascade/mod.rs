//! Filters without errors on a known universe of keys: a blocklist with all its exceptions.
//!
//! The first filter is a static filter of the members. The second one has the members and the known
//! non-members that the first contains by mistake, and has one bit for each, which tells them apart. A
//! key is a member if both contain it.
//!
//! Invariants: no hash is that of a member and that of a non-member, so that queries of the universe
//! are exact. Both filters mix hashes differently, so that their mistakes are independent.
//!
//! Cost: a query reads the first filter, and the second if the first contains the key. Space: see
//! [`FilterCascade`].
//!
//! Source: Schanck 2025, "Clubcards for the WebPKI: smaller certificate revocation tests in theory and
//! practice".

#[cfg(not(feature = "std"))]
use crate::no_std::*;
mod build;
mod file;
mod membership;

#[doc(hidden)] // For the crates of this repository.
pub use build::{MemberCollector, OtherCollector};

pub(crate) use file::filters_of;

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
/// With r members, s known non-members and the rate ε it takes about c + 1 + s/r · 2^-c bits per member
/// for c columns, the best number or at least log2(1/ε) - 1: 8.7 bits if s is 100 times r, 12.2 if it
/// is 1000 times r, for rates of 0.8 and 0.1 % and more.
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
    /// A filter of the members.
    first: StaticFilter<S>,
    /// Contains all members, and none of the non-members that the first contains.
    second: StaticFilter<S>,
    info: CascadeInfo,
}

/// The values of a cascade in its file, besides the filters.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CascadeInfo {
    /// The number of distinct members.
    members: u64,
    /// The number of known non-members, with duplicates.
    non_members: u64,
    /// The target rate for keys outside the universe.
    target_fpr: f64,
}

impl FilterCascade {
    /// Builds the cascade that contains all `members` and none of `non_members`, and other keys
    /// with the false-positive rate `fpr`.
    ///
    /// Cost: about two builds of a static filter of the members, and one query for each non-member;
    /// 80 bytes of memory per member. Non-members take no memory, except a few that are as many as the
    /// members.
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
        self.first.contains_mixed_hash(hash) && self.second.contains_mixed_hash(hash)
    }

    /// Looks up hashes; `found` must be zero.
    fn contains_chunk(&self, hashes: &[u64], found: &mut [u64]) {
        let mut results = BatchResults::new();
        self.first.contains_mixed_hashes(hashes, &mut results);
        let places: Vec<usize> = results.iter().collect();
        let left: Vec<u64> = places.iter().map(|&at| hashes[at]).collect();
        self.second.contains_mixed_hashes(&left, &mut results);
        for at in results.iter().map(|at| places[at]) {
            found[at / 64] |= 1 << (at % 64);
        }
    }

    /// Returns the number of distinct members.
    #[must_use]
    pub fn members(&self) -> u64 {
        self.info.members
    }

    /// Returns the number of known non-members, with duplicates.
    #[must_use]
    pub fn non_members(&self) -> u64 {
        self.info.non_members
    }

    /// Copies the cascade into memory of its own: see
    /// [`Filter::try_clone`](crate::Filter::try_clone).
    ///
    /// # Errors
    /// If memory allocation fails.
    pub fn try_clone(&self) -> Result<FilterCascade> {
        let (first, second) = (self.first.try_clone()?, self.second.try_clone()?);
        Ok(FilterCascade { hash: self.hash, first, second, info: self.info })
    }
}

impl<S: Store, T: Store> PartialEq<FilterCascade<T>> for FilterCascade<S>
where
    StaticFilter<S>: PartialEq<StaticFilter<T>>,
{
    /// Compares hash, numbers of members and non-members, and both filters.
    fn eq(&self, other: &FilterCascade<T>) -> bool {
        let filters = self.first == other.first && self.second == other.second;
        self.hash == other.hash && self.info == other.info && filters
    }
}
