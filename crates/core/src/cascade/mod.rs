//! A filter that does not err on a universe that is known beforehand: a blocklist with all its
//! exceptions.
//!
//! Level 0 is a static filter of the members. Level 1 is one of those non-members of the universe
//! that level 0 takes for members; level 2 one of those members that level 1 takes for
//! non-members; and so on, until a level errs on nobody. A key is asked for level by level, up to
//! the first that says no: whoever is stopped at an odd level is a member.
//!
//! The first level's rate is the one promised for keys outside the universe, or less where that
//! saves more in later levels; those have a rate of 1/2, at which a static filter takes one bit a
//! key.
//!
//! Invariants: no hash is a member's and a non-member's, so that every key of the universe is
//! answered rightly, with certainty. Levels differ in how they mix a hash, so that one is not
//! fooled by what fooled another.
//!
//! Cost: a query looks at level 0, and at more of them only if that says yes; a member at three
//! levels on average. Space: see [`FilterCascade`].
//!
//! Source: Larisch, Choffnes, Levin, Maggs, Mislove & Wilson 2017, "CRLite: a scalable system for
//! pushing all TLS revocations to all browsers", with static filters in place of Bloom filters.

mod build;
mod file;

use crate::answers::Answers;
use crate::hash::HashSpec;
use crate::key::Key;
use crate::membership::Membership;
use crate::ribbon::StaticFilter;
use crate::store::{Owned, Store};

pub use build::CascadeBuilder;

/// A set of members that are told without error from a set of known non-members; and from all
/// other keys at the promised rate. Made once, of all keys.
///
/// With r members, s known non-members and the rate ε it takes about log2(1/p) + 3 bits for
/// each member, where p is the lesser of ε and 0.7 · r/s: what tells members and non-members apart
/// costs bits for members only, however many non-members there are.
///
/// ```
/// use petal::FilterCascade;
///
/// let bad = ["bad.example", "worse.example"];
/// let good = ["good.example", "fine.example", "best.example"];
/// let blocked = FilterCascade::build(&bad, &good, 0.01)?;
/// assert!(bad.iter().all(|host| blocked.contains(host)));
/// assert!(!good.iter().any(|host| blocked.contains(host)));
/// // Of hosts in neither list, 1 % would be taken for bad ones.
///
/// // A key in both lists is found out.
/// let error = FilterCascade::build(&bad, &["bad.example"], 0.01).unwrap_err();
/// assert_eq!(error.contradictions().len(), 1);
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Debug)]
pub struct FilterCascade<S = Owned> {
    hash: HashSpec,
    levels: Vec<StaticFilter<S>>,
    facts: Facts,
}

/// What is known of a cascade beside its levels.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Facts {
    /// Distinct members.
    members: u64,
    /// Distinct known non-members.
    others: u64,
    /// The rate promised for keys outside the universe.
    target: f64,
}

impl FilterCascade {
    /// The cascade that says yes to all of `members`, no to all of `others`, and yes to other keys
    /// with the rate `rate`.
    ///
    /// Cost: see [`CascadeBuilder`].
    ///
    /// # Errors
    /// If a key is in both lists ([`Error::contradictions`](crate::Error::contradictions)), the
    /// rate is not between 2.5 · 10⁻¹⁰ and 1 or cannot be reached with 64-bit hashes, or memory is
    /// refused.
    pub fn build<K: Key, L: Key>(members: &[K], others: &[L], rate: f64) -> crate::Result<Self> {
        Self::builder(rate).build(members, others)
    }

    /// Chooses hash, seed and threads.
    #[must_use]
    pub fn builder(rate: f64) -> CascadeBuilder {
        CascadeBuilder::new(rate)
    }
}

/// Keys that are hashed together, and their hashes looked at while they are in the nearest cache.
const HASHED: usize = 2048;

impl<S: Store> FilterCascade<S> {
    /// Whether the key is a member: certain for keys of the universe.
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_mixed_hash(key.hash_with(&self.hash))
    }

    /// [`contains`](Self::contains) for a hash that the caller made with
    /// [`hash_spec`](Self::hash_spec).
    #[must_use]
    pub fn contains_mixed_hash(&self, hash: u64) -> bool {
        let stopped = self.levels.iter().position(|level| !level.contains_mixed_hash(hash));
        stopped.unwrap_or(self.levels.len()) % 2 == 1
    }

    /// [`contains`](Self::contains) for many keys; `found` gets an answer for each.
    ///
    /// Cost: as one by one, but cache misses of the first level overlap.
    pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut Answers) {
        let mut hashes = Vec::with_capacity(HASHED.min(keys.len()));
        let words = found.reset(keys.len()).chunks_mut(HASHED / 64);
        for (keys, words) in keys.chunks(HASHED).zip(words) {
            hashes.clear();
            self.hash.hash_all(keys.iter().map(Key::bytes), &mut hashes);
            self.ask(&hashes, words);
        }
    }

    /// [`contains_batch`](Self::contains_batch) for hashes.
    pub fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut Answers) {
        self.ask(hashes, found.reset(hashes.len()));
    }

    /// There are words for all answers, 64 to a word, and they are 0.
    fn ask(&self, hashes: &[u64], words: &mut [u64]) {
        let Some((first, deeper)) = self.levels.split_first() else { return };
        // Those on whom no level has said no yet.
        let mut on_the_way: Vec<usize> = Vec::new();
        let mut answers = Answers::new();
        first.contains_mixed_hashes(hashes, &mut answers);
        on_the_way.extend(answers.iter());
        let mut left = Vec::new();
        for (stop, level) in (1..).zip(deeper) {
            if on_the_way.is_empty() {
                return;
            }
            left.clear();
            left.extend(on_the_way.iter().map(|&at| hashes[at]));
            level.contains_mixed_hashes(&left, &mut answers);
            let mut next = 0;
            on_the_way.retain(|&at| {
                let goes_on = answers.get(next);
                next += 1;
                if !goes_on && stop % 2 == 1 {
                    words[at / 64] |= 1 << (at % 64);
                }
                goes_on
            });
        }
        if self.levels.len() % 2 == 1 {
            on_the_way.iter().for_each(|&at| words[at / 64] |= 1 << (at % 64));
        }
    }

    /// How keys become hashes.
    #[must_use]
    pub fn hash_spec(&self) -> HashSpec {
        self.hash
    }

    /// Distinct members.
    #[must_use]
    pub fn members(&self) -> u64 {
        self.facts.members
    }

    /// Distinct known non-members.
    #[must_use]
    pub fn others(&self) -> u64 {
        self.facts.others
    }

    /// How many levels there are.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// The rate promised for keys outside the universe.
    #[must_use]
    pub fn target_rate(&self) -> f64 {
        self.facts.target
    }

    /// The false-positive rate for keys outside the universe, by the rates of the levels: a key
    /// is taken for a member if it is stopped at an odd level.
    #[must_use]
    pub fn estimated_rate(&self) -> f64 {
        let (mut reach, mut rate) = (1.0, 0.0);
        for (at, level) in self.levels.iter().enumerate() {
            let on = level.estimated_rate();
            if at % 2 == 1 {
                rate += reach * (1.0 - on);
            }
            reach *= on;
        }
        rate + if self.levels.len() % 2 == 1 { reach } else { 0.0 }
    }

    /// Bytes that its data take in a file.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        let levels = self.levels.iter().map(|level| level.size_bytes()).sum::<u64>();
        levels + self.levels.len() as u64 * file::ENTRY_BYTES
    }

    /// A copy in memory of its own.
    ///
    /// # Errors
    /// If the memory is refused.
    pub fn to_owned_filter(&self) -> crate::Result<FilterCascade> {
        let levels =
            self.levels.iter().map(StaticFilter::to_owned_filter).collect::<Result<_, _>>()?;
        Ok(FilterCascade { hash: self.hash, levels, facts: self.facts })
    }

    /// Bytes of memory that it takes in all. A mapped file's pages are not counted.
    #[must_use]
    pub fn memory_usage(&self) -> u64 {
        let spare = self.levels.capacity() - self.levels.len();
        let levels = self.levels.iter().map(|level| level.memory_usage()).sum::<u64>();
        levels + (size_of::<Self>() + spare * size_of::<StaticFilter<S>>()) as u64
    }
}

impl<S: Store, T: Store> PartialEq<FilterCascade<T>> for FilterCascade<S>
where
    StaticFilter<S>: PartialEq<StaticFilter<T>>,
{
    /// Equal hash, universe in numbers, and levels.
    fn eq(&self, other: &FilterCascade<T>) -> bool {
        self.hash == other.hash && self.facts == other.facts && self.levels == other.levels
    }
}
