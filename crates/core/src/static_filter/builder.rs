//! The builder of static filters.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use core::num::NonZeroUsize;

use super::{FilterInfo, StaticFilter, Table, Wanted, fuse, ribbon};
use crate::batch::CHUNK;
use crate::error::{Error, Result};
use crate::format::kind::FilterType;
use crate::key::Key;
use crate::math;
use crate::spec::{FilterSpec, hash_setters, setters};
use crate::store::{Owned, StoreMut, lines_as_words_mut};
use crate::threads::{run_each, useful_threads};

/// The least number of keys for which another thread pays.
const KEYS_OF_A_THREAD: usize = 1 << 10;

/// Builds a [`StaticFilter`].
///
/// ```
/// use std::num::NonZeroUsize;
/// use petal::{HashSpec, StaticFilter};
///
/// let filter = StaticFilter::builder()
///     .fpr(1e-4)
///     .hash(HashSpec::keyed(*b"sixteen secrets!"))
///     .threads(NonZeroUsize::MIN.saturating_add(1))
///     .build(&[1u64, 2, 3])?;
/// assert!(filter.contains(&2u64));
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct StaticBuilder {
    spec: FilterSpec,
    level: u64,
    threads: NonZeroUsize,
}

impl StaticBuilder {
    pub(super) fn new() -> Self {
        let spec = FilterSpec::new(FilterType::Static);
        Self { spec, level: 0, threads: NonZeroUsize::MIN }
    }

    setters! {
        /// Sets the target false-positive rate.
        fpr: f64 => fpr;
    }

    hash_setters!(spec.hash);

    /// Chooses the layout: false, the default, for a ribbon, which takes the least space; true for a
    /// binary fuse filter, which is faster to query and to build, and takes 9 to 15 % above the
    /// minimum instead of 1 to 6 %.
    #[must_use]
    pub fn fuse(mut self, fuse: bool) -> Self {
        self.spec.filter_type = if fuse { FilterType::StaticFuse } else { FilterType::Static };
        self
    }

    /// Sets the number of threads \[default: 1\]; more than useful or than the system gives are not
    /// started. The filter is the same for any number. Without the feature `std` there is one thread.
    #[must_use]
    pub fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets the seed that distinguishes the levels of a cascade.
    pub(super) fn level(mut self, level: u64) -> Self {
        self.level = level;
        self
    }

    pub(crate) fn spec(&self) -> &FilterSpec {
        &self.spec
    }

    /// Builds the filter of these keys, which may contain duplicates.
    ///
    /// Cost: about 100 ns per key and thread; 16 bytes of memory per key beside the filter, and
    /// without [`fuse`](Self::fuse) the filter a second time at the end.
    ///
    /// # Errors
    /// If the rate is missing, is not between 2.5 · 10⁻¹⁰ and 1 or cannot be reached with 64-bit
    /// hashes, or memory allocation fails.
    pub fn build<K: Key + Sync>(self, keys: &[K]) -> Result<StaticFilter> {
        self.check(keys.len() as u64)?;
        let mut hashes = words(keys.len())?;
        let hashes = &mut lines_as_words_mut(hashes.lines_mut())[..keys.len()];
        let part = keys.len().div_ceil(self.threads_for(keys.len()).get()).max(1);
        run_each(keys.chunks(part).zip(hashes.chunks_mut(part)), |(keys, hashes)| {
            let mut few = Vec::with_capacity(CHUNK.min(keys.len()));
            for (keys, hashes) in keys.chunks(CHUNK).zip(hashes.chunks_mut(CHUNK)) {
                few.clear();
                self.spec.hash.hash_all(keys.iter().map(Key::bytes), &mut few);
                hashes.copy_from_slice(&few);
            }
        });
        self.made_of(hashes)
    }

    /// Builds the filter of hashes made with [`hash`](Self::hash), or with another 64-bit hash
    /// function whose every output bit is random. Plain integers are not such hashes: build from them
    /// as keys.
    ///
    /// Cost: as [`build`](Self::build); `hashes` is half of the memory beside the filter.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn from_mixed_hashes(self, mut hashes: Vec<u64>) -> Result<StaticFilter> {
        self.check(hashes.len() as u64)?;
        self.made_of(&mut hashes)
    }

    /// [`from_mixed_hashes`](Self::from_mixed_hashes) for borrowed hashes.
    pub(super) fn build_from_slice(self, hashes: &[u64]) -> Result<StaticFilter> {
        self.check(hashes.len() as u64)?;
        let mut copy = words(hashes.len())?;
        let copy = &mut lines_as_words_mut(copy.lines_mut())[..hashes.len()];
        copy.copy_from_slice(hashes);
        self.made_of(copy)
    }

    fn check(&self, keys: u64) -> Result<f64> {
        checked_fpr(&self.spec, keys)
    }

    fn threads_for(&self, keys: usize) -> NonZeroUsize {
        useful_threads(self.threads, keys / KEYS_OF_A_THREAD)
    }

    fn made_of(self, hashes: &mut [u64]) -> Result<StaticFilter> {
        let rate = self.check(hashes.len() as u64)?;
        let wanted = Wanted { rate, seed: self.level, threads: self.threads_for(hashes.len()) };
        let mut spare = words(hashes.len())?;
        let spare = &mut lines_as_words_mut(spare.lines_mut())[..hashes.len()];
        let (table, keys) = if self.spec.filter_type == FilterType::StaticFuse {
            let (table, keys) = fuse::build(hashes, spare, &wanted)?;
            (Table::Fuse(table), keys)
        } else {
            let (table, keys) = ribbon::build(hashes, spare, &wanted)?;
            (Table::Ribbon(table), keys)
        };
        let info = FilterInfo { capacity: keys, target_fpr: rate, inserted: keys };
        Ok(StaticFilter::from_parts(self.spec.hash, info, table))
    }
}

/// Returns the number of bits of a filter before it is built, and its plan. For a ribbon it is
/// approximate, and small ribbons take more. For a fuse filter it is an upper bound with overwhelming
/// probability: equal to the size from 6200 to 390,000 keys, at most 2 % above it for more, at most a
/// half and a cache line above it from 257 keys on, and at most twice the size and a cache line for
/// fewer. It is not less for more keys.
pub(crate) fn dimensions(spec: &FilterSpec) -> Result<(u64, FilterInfo)> {
    let needed = "capacity and false-positive rate";
    let keys = spec.capacity.ok_or_else(|| Error::unsized_filter(needed))?;
    let rate = checked_fpr(spec, keys)?;
    let bits = match spec.filter_type {
        FilterType::StaticFuse => fuse::planned_bits(keys, rate)?,
        _ => math::static_bits(keys, rate) as u64,
    };
    Ok((bits, FilterInfo::planned(keys, rate)))
}

/// Returns the rate, if it can be reached with this number of keys.
fn checked_fpr(spec: &FilterSpec, keys: u64) -> Result<f64> {
    let rate = spec.fpr.ok_or_else(|| Error::unsized_filter("a false-positive rate"))?;
    check_fpr(rate)?;
    let is_fuse = spec.filter_type == FilterType::StaticFuse;
    let floor = if is_fuse { fuse::hash_floor(keys) } else { math::hash_floor(keys) };
    if floor > rate / 2.0 {
        return Err(Error::unattainable(keys, rate, floor));
    }
    Ok(rate)
}

/// Returns an error if no static filter has the rate.
pub(crate) fn check_fpr(rate: f64) -> Result<()> {
    if (FilterSpec::MIN_STATIC_FPR..1.0).contains(&rate) {
        return Ok(());
    }
    let expected = "at least 2.5e-10 and less than 1";
    Err(Error::invalid("false-positive rate", expected, format!("{rate:?}")))
}

/// Allocates space for `len` words.
fn words(len: usize) -> Result<Owned> {
    Owned::zeroed(len.div_ceil(8) as u64)
}
