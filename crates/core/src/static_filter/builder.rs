//! The builder of static filters.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use core::num::NonZeroUsize;

use super::collector::{CollectedKeys, KeyCollector};
use super::ranges::{HashStore, Spill};
use super::{FilterInfo, StaticFilter, Table, Wanted, fuse, ribbon};
use crate::batch::CHUNK;
use crate::error::{Error, Result};
use crate::format::kind::FilterType;
use crate::key::Key;
use crate::math;
use crate::spec::{Builder, FilterSpec};
use crate::store::{Owned, StoreMut, lines_as_words_mut};
use crate::threads::{run_each, useful_threads};

/// The least number of keys for which another thread pays.
const KEYS_OF_A_THREAD: usize = 1 << 10;

impl Builder<StaticFilter> {
    /// Chooses the layout: false, the default, for a ribbon, which takes the least space; true for a
    /// binary fuse filter, which is faster to query and to build, and takes 9 to 15 % above the
    /// minimum instead of 1 to 6 %.
    #[must_use]
    pub fn fuse(mut self, fuse: bool) -> Self {
        self.spec.filter_type = if fuse { FilterType::StaticFuse } else { FilterType::Static };
        self
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
        self.check(keys.len())?;
        let mut hashes = words(keys.len())?;
        let hashes = &mut lines_as_words_mut(hashes.lines_mut())[..keys.len()];
        let part = keys.len().div_ceil(threads_for(self.threads, keys.len()).get()).max(1);
        run_each(keys.chunks(part).zip(hashes.chunks_mut(part)), |(keys, hashes)| {
            let mut few = Vec::with_capacity(CHUNK.min(keys.len()));
            for (keys, hashes) in keys.chunks(CHUNK).zip(hashes.chunks_mut(CHUNK)) {
                few.clear();
                self.spec.hash.hash_all(keys.iter().map(Key::bytes), &mut few);
                hashes.copy_from_slice(&few);
            }
        });
        made_of(&self.spec, self.threads, hashes)
    }

    /// Builds the filter of hashes made with [`hash`](Self::hash), or with another 64-bit hash
    /// function whose every output bit is random. Plain integers are not such hashes: build from them
    /// as keys.
    ///
    /// Cost: as [`build`](Self::build); `hashes` is half of the memory beside the filter.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    #[allow(clippy::wrong_self_convention, reason = "the filter is made from the hashes")]
    pub fn from_mixed_hashes(self, mut hashes: Vec<u64>) -> Result<StaticFilter> {
        self.check(hashes.len())?;
        made_of(&self.spec, self.threads, &mut hashes)
    }

    /// Returns a collector of hashes, which builds the filter of more keys than memory holds: those that
    /// do not fit in `memory` bytes beside the filter go to the store.
    ///
    /// # Errors
    /// If the rate is missing or is not between 2.5 · 10⁻¹⁰ and 1.
    #[doc(hidden)] // For the crates of this repository.
    pub fn collector(self, store: &dyn HashStore, memory: u64) -> Result<StaticCollector<'_>> {
        self.check(0)?;
        let mix = match self.spec.filter_type {
            FilterType::StaticFuse => fuse::first_hash(),
            _ => ribbon::layer_hash(0),
        };
        let spill = Spill::new::<u64>(store, memory);
        let keys = KeyCollector::new(Some(spill), mix);
        Ok(StaticCollector { spec: self.spec, threads: self.threads, keys })
    }

    fn check(&self, keys: usize) -> Result<()> {
        self.spec.check_fixed()?;
        checked_fpr(&self.spec, keys as u64).map(drop)
    }
}

/// Collects the hashes of a filter: see [`Builder::collector`].
pub struct StaticCollector<'a> {
    spec: FilterSpec,
    threads: NonZeroUsize,
    keys: KeyCollector<'a, u64>,
}

impl StaticCollector<'_> {
    /// Adds hashes.
    ///
    /// # Errors
    /// If the store fails, or memory allocation.
    pub fn extend(&mut self, hashes: &[u64]) -> Result<()> {
        self.keys.extend(hashes)
    }

    /// Builds the filter, which is the same as that of all hashes at once.
    ///
    /// Cost: as [`StaticFilter::build`], and the store reads all hashes twice.
    ///
    /// # Errors
    /// If the filter does not fit in memory, or the rate cannot be reached with 64-bit hashes; if the
    /// store fails, or memory allocation.
    pub fn finish(self) -> Result<StaticFilter> {
        let Self { spec, threads, keys } = self;
        let mut ranges = match keys.finish() {
            CollectedKeys::Memory(mut hashes) => return made_of(&spec, threads, &mut hashes),
            CollectedKeys::Ranges(ranges) => ranges,
        };
        let rate = checked_fpr(&spec, ranges.count())?;
        let wanted = Wanted { rate, columns: None, seed: 0, threads };
        let (table, keys) = if spec.filter_type == FilterType::StaticFuse {
            let (table, keys) = fuse::build_from_ranges(&mut ranges, &wanted)?;
            (Table::Fuse(table), keys)
        } else {
            let (table, keys) = ribbon::build_from_ranges::<u64>(&mut ranges, None, &wanted)?;
            (Table::Ribbon(table), keys)
        };
        Ok(finished(&spec, rate, table, keys))
    }
}

pub(super) fn threads_for(threads: NonZeroUsize, keys: usize) -> NonZeroUsize {
    useful_threads(threads, keys / KEYS_OF_A_THREAD)
}

fn made_of(spec: &FilterSpec, threads: NonZeroUsize, hashes: &mut [u64]) -> Result<StaticFilter> {
    let rate = checked_fpr(spec, hashes.len() as u64)?;
    let threads = threads_for(threads, hashes.len());
    let wanted = Wanted { rate, columns: None, seed: 0, threads };
    let mut spare = words(hashes.len())?;
    let spare = &mut lines_as_words_mut(spare.lines_mut())[..hashes.len()];
    let (table, keys) = if spec.filter_type == FilterType::StaticFuse {
        let (table, keys) = fuse::build(hashes, spare, &wanted)?;
        (Table::Fuse(table), keys)
    } else {
        let (table, keys) = ribbon::build(hashes, spare, &wanted)?;
        (Table::Ribbon(table), keys)
    };
    Ok(finished(spec, rate, table, keys))
}

pub(super) fn finished(
    spec: &FilterSpec,
    rate: f64,
    table: Table<Owned>,
    keys: u64,
) -> StaticFilter {
    let info = FilterInfo { capacity: keys, target_fpr: rate, inserted: keys };
    StaticFilter::from_parts(spec.hash, info, table)
}

/// Returns the number of bits of a filter before it is built, and its plan. For a ribbon it is
/// within 1 %. For a fuse filter it is an upper bound with overwhelming
/// probability: equal to the size from 6200 to 390,000 keys, at most 2 % above it for more, at most a
/// half and a cache line above it from 257 keys on, and at most twice the size and a cache line for
/// fewer. It is not less for more keys.
pub(crate) fn dimensions(spec: &FilterSpec) -> Result<(u64, FilterInfo)> {
    let needed = "capacity and false-positive rate";
    let keys = spec.capacity.ok_or_else(|| Error::unsized_filter(needed))?;
    let rate = checked_fpr(spec, keys)?;
    let bits = match spec.filter_type {
        FilterType::StaticFuse => fuse::planned_bits(keys, rate)?,
        _ => ribbon::planned_bits(keys, rate)?,
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
