//! Choosing a static filter's rate, hash and threads.

use std::num::NonZeroUsize;

use super::build::{self, Wanted, at_once};
use super::{Facts, HASHED, StaticFilter};
use crate::error::{Error, Result};
use crate::hash::HashSpec;
use crate::key::Key;
use crate::rate;
use crate::store::{Owned, StoreMut, words_of_mut};

/// The least rate: 32 columns, the most there are, have 2.33 · 10⁻¹⁰.
pub(crate) const LEAST_RATE: f64 = 2.5e-10;

/// Makes a [`StaticFilter`].
///
/// ```
/// use std::num::NonZeroUsize;
/// use petal::{HashSpec, StaticFilter};
///
/// let filter = StaticFilter::builder()
///     .rate(1e-4)
///     .hash(HashSpec::keyed(*b"sixteen secrets!"))
///     .threads(NonZeroUsize::MIN.saturating_add(1))
///     .build(&[1u64, 2, 3])?;
/// assert!(filter.contains(&2u64));
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct StaticBuilder {
    rate: Option<f64>,
    hash: HashSpec,
    level: u64,
    threads: NonZeroUsize,
}

impl StaticBuilder {
    pub(super) fn new() -> Self {
        Self { rate: None, hash: HashSpec::default(), level: 0, threads: NonZeroUsize::MIN }
    }

    /// The false-positive rate.
    #[must_use]
    pub fn rate(mut self, rate: f64) -> Self {
        self.rate = Some(rate);
        self
    }

    /// The default hash with this seed: filters with different seeds err on different keys.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.hash(HashSpec::rapid(seed))
    }

    /// The hash.
    #[must_use]
    pub fn hash(mut self, hash: HashSpec) -> Self {
        self.hash = hash;
        self
    }

    /// How many threads work on it; one if it is not said. The filter is the same for any number.
    #[must_use]
    pub fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = threads;
        self
    }

    /// What sets a filter apart from others of the same hashes.
    pub(super) fn level(mut self, level: u64) -> Self {
        self.level = level;
        self
    }

    /// Makes the filter of these keys, which may be there twice.
    ///
    /// Cost: about 100 ns a key and thread; 16 bytes of memory a key beside the
    /// filter, and the filter a second time at the end.
    ///
    /// # Errors
    /// If the rate is not given, is not between 2.5 · 10⁻¹⁰ and 1, cannot be reached with 64-bit
    /// hashes, or the memory is refused.
    pub fn build<K: Key + Sync>(self, keys: &[K]) -> Result<StaticFilter> {
        self.check(keys.len())?;
        let mut hashes = words(keys.len())?;
        let hashes = &mut words_of_mut(hashes.lines_mut())[..keys.len()];
        let part = keys.len().div_ceil(self.threads.get()).max(1);
        at_once(keys.chunks(part).zip(hashes.chunks_mut(part)), |(keys, hashes)| {
            let mut few = Vec::with_capacity(HASHED.min(keys.len()));
            for (keys, hashes) in keys.chunks(HASHED).zip(hashes.chunks_mut(HASHED)) {
                few.clear();
                self.hash.hash_all(keys.iter().map(Key::bytes), &mut few);
                hashes.copy_from_slice(&few);
            }
        });
        self.made_of(hashes)
    }

    /// Makes the filter of hashes that the caller made with [`hash`](Self::hash), or with another
    /// hash of 64 bits whose every bit is random. Plain integers are no such hashes: build of them as
    /// keys.
    ///
    /// Cost: as [`build`](Self::build); of the memory beside the filter, half are the hashes
    /// themselves.
    ///
    /// # Errors
    /// As there.
    pub fn from_mixed_hashes(self, mut hashes: Vec<u64>) -> Result<StaticFilter> {
        self.check(hashes.len())?;
        self.made_of(&mut hashes)
    }

    /// [`from_mixed_hashes`](Self::from_mixed_hashes) for hashes that stay.
    pub(super) fn of_hashes(self, hashes: &[u64]) -> Result<StaticFilter> {
        self.check(hashes.len())?;
        let mut copy = words(hashes.len())?;
        let copy = &mut words_of_mut(copy.lines_mut())[..hashes.len()];
        copy.copy_from_slice(hashes);
        self.made_of(copy)
    }

    /// The rate, if it can be kept for so many keys.
    fn check(&self, keys: usize) -> Result<f64> {
        self.hash.check_words(1)?;
        let rate = self.rate.ok_or_else(Error::unsized_filter)?;
        if !(LEAST_RATE..1.0).contains(&rate) {
            let found = format!("{rate:?}");
            return Err(Error::invalid("rate", "at least 2.5e-10 and less than 1", found));
        }
        let floor = rate::hash_floor(keys as u64);
        if floor > rate / 2.0 {
            return Err(Error::unattainable(keys as u64, rate, floor));
        }
        Ok(rate)
    }

    fn made_of(self, hashes: &mut [u64]) -> Result<StaticFilter> {
        let rate = self.check(hashes.len())?;
        let wanted = Wanted { rate, seed: self.level, threads: self.threads };
        let mut spare = words(hashes.len())?;
        let spare = &mut words_of_mut(spare.lines_mut())[..hashes.len()];
        let built = build::build(hashes, spare, &wanted)?;
        let facts = Facts { planned: built.keys, target: rate, inserted: built.keys };
        Ok(StaticFilter::over(built.layout, self.hash, facts, built.cuts, built.rows))
    }
}

/// Room for so many words.
fn words(len: usize) -> Result<Owned> {
    Owned::zeroed(len.div_ceil(8) as u64)
}
