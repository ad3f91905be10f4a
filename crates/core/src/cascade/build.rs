//! Making a cascade: levels, until one errs on nobody.

use super::{Facts, FilterCascade};
use std::borrow::Cow;
use std::num::NonZeroUsize;

use crate::answers::Answers;
use crate::error::{Error, Result};
use crate::hash::HashSpec;
use crate::key::Key;
use crate::ribbon::{LEAST_RATE, StaticFilter};

/// The rate of all levels but the first: one bit a key.
const LATER: f64 = 0.5;
/// More levels than this only bad luck makes, as each halves what is left: then all is mixed anew.
pub(super) const MOST_LEVELS: u64 = 96;
/// How often bad luck is believed.
const TRIES: u64 = 8;

/// Makes a [`FilterCascade`].
///
/// Cost: a hash of 8 bytes for every key, sorted, and twice as much again for the members while
/// level 0 is built; then levels, of which the first two take most of
/// the time: about one build of a static filter of the members and one query for each non-member.
#[derive(Clone, Copy, Debug)]
pub struct CascadeBuilder {
    rate: f64,
    hash: HashSpec,
    threads: NonZeroUsize,
}

impl CascadeBuilder {
    pub(super) fn new(rate: f64) -> Self {
        Self { rate, hash: HashSpec::default(), threads: NonZeroUsize::MIN }
    }

    /// The hash.
    #[must_use]
    pub fn hash(mut self, hash: HashSpec) -> Self {
        self.hash = hash;
        self
    }

    /// The default hash with this seed.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.hash(HashSpec::rapid(seed))
    }

    /// How many threads build a level; one if it is not said. The cascade is the same for any
    /// number.
    #[must_use]
    pub fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = threads;
        self
    }

    /// Makes the cascade.
    ///
    /// # Errors
    /// As [`FilterCascade::build`].
    pub fn build<K: Key, L: Key>(self, members: &[K], others: &[L]) -> Result<FilterCascade> {
        self.hash.check_words(1)?;
        let (mut ours, mut theirs) = (room(members.len())?, room(others.len())?);
        self.hash.hash_all(members.iter().map(Key::bytes), &mut ours);
        self.hash.hash_all(others.iter().map(Key::bytes), &mut theirs);
        self.from_mixed_hashes(ours, theirs)
    }

    /// [`build`](Self::build) for hashes of this builder's hash, in any order.
    ///
    /// # Errors
    /// As [`FilterCascade::build`]. The contradictions are hashes then: two different keys may
    /// have the same one, with a chance of r · s / 2⁶⁴ for r members and s others; another seed
    /// ends that.
    #[allow(clippy::wrong_self_convention, reason = "the hashes are what it is made from")]
    pub fn from_mixed_hashes(
        self,
        mut members: Vec<u64>,
        mut others: Vec<u64>,
    ) -> Result<FilterCascade> {
        self.hash.check_words(1)?;
        for hashes in [&mut members, &mut others] {
            hashes.sort_unstable();
            hashes.dedup();
        }
        let both = in_both(&members, &others);
        if !both.is_empty() {
            return Err(Error::contradiction(both));
        }
        let first = self.first_rate(members.len(), others.len())?;
        for salt in 0..TRIES {
            if let Some(levels) = self.levels(&members, &others, first, salt)? {
                let (members, others) = (members.len() as u64, others.len() as u64);
                let facts = Facts { members, others, target: self.rate };
                return Ok(FilterCascade { hash: self.hash, levels, facts });
            }
        }
        Err(Error::invalid("keys", "hashes that can be told apart", "some that cannot"))
    }

    /// The rate of level 0: what was promised, or less if that saves space in the levels behind.
    ///
    /// With r members, s others and the rate p, level 0 takes r · log2(1/p) bits and the others
    /// together 2 · (s · p + r/2), for each halves what the one before the last left. The sum is
    /// least at p = r / (2 s ln 2), about 0.72 r/s.
    fn first_rate(&self, members: usize, others: usize) -> Result<f64> {
        if !(LEAST_RATE..1.0).contains(&self.rate) {
            let found = format!("{:?}", self.rate);
            return Err(Error::invalid("rate", "at least 2.5e-10 and less than 1", found));
        }
        let best = members as f64 / (2.0 * std::f64::consts::LN_2 * others.max(1) as f64);
        Ok(if members == 0 { self.rate } else { self.rate.min(best) }.clamp(LEAST_RATE, LATER))
    }

    /// All levels; `None` if there is no end to them.
    fn levels(
        &self,
        members: &[u64],
        others: &[u64],
        first: f64,
        salt: u64,
    ) -> Result<Option<Vec<StaticFilter>>> {
        let mut levels = Vec::new();
        // What the next level holds, and what it must not err on.
        let (mut held, mut against) = (Cow::Borrowed(members), Cow::Borrowed(others));
        let mut found = Answers::new();
        for number in 0..MOST_LEVELS {
            let rate = if number == 0 { first } else { LATER };
            let seed = salt * MOST_LEVELS + number + 1;
            let level = StaticFilter::build_level(&held, rate, seed, self.hash, self.threads)?;
            level.contains_mixed_hashes(&against, &mut found);
            let mut fooled = room(found.count_ones() as usize)?;
            fooled.extend(found.iter().map(|at| against[at]));
            levels.push(level);
            if fooled.is_empty() {
                levels.shrink_to_fit();
                return Ok(Some(levels));
            }
            against = std::mem::replace(&mut held, Cow::Owned(fooled));
        }
        Ok(None)
    }
}

/// Room for so many hashes.
fn room(len: usize) -> Result<Vec<u64>> {
    let mut hashes = Vec::new();
    let refused = |_| Error::alloc((len as u64).saturating_mul(8));
    hashes.try_reserve_exact(len).map_err(refused)?;
    Ok(hashes)
}

/// The hashes that are in two ascending lists.
fn in_both(members: &[u64], others: &[u64]) -> Vec<u64> {
    let (short, long) =
        if members.len() < others.len() { (members, others) } else { (others, members) };
    let mut rest = long;
    let is_there = |hash: &&u64| {
        rest = &rest[rest.partition_point(|other| other < *hash)..];
        rest.first() == Some(*hash)
    };
    short.iter().filter(is_there).copied().collect()
}
