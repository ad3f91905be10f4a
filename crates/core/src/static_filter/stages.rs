//! The two static filters of a cascade, one after the other.
//!
//! The first is a filter of the members. The second has the members and the other keys that the first
//! contains by mistake, and tells them apart with one bit for each.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use core::num::NonZeroUsize;

use super::builder::{finished, threads_for};
use super::collector::{CollectedKeys, KeyCollector};
use super::keys::{HashedKey as _, ListedKey, default_keys};
use super::ranges::{HashStore, Spill, sort_distinct};
use super::{StaticFilter, Table, Wanted, ribbon};
use crate::batch::CHUNK;
use crate::error::Result;
use crate::membership::Membership as _;
use crate::results::BatchResults;
use crate::spec::FilterSpec;

/// The seeds of both filters, whose mistakes are independent.
const SEEDS: [u64; 2] = [1, 2];

/// The rate of the second filter for keys in neither list.
pub(crate) const SECOND_RATE: f64 = 0.5;
/// The columns of the second filter.
pub(crate) const SECOND_COLUMNS: u64 = 1;

/// Collects the hashes of members.
pub(crate) struct FirstStage<'a> {
    spec: FilterSpec,
    threads: NonZeroUsize,
    spill: Option<Spill<'a>>,
    members: KeyCollector<'a, u64>,
}

/// Collects the hashes of other keys that the first filter contains.
pub(crate) struct SecondStage<'a> {
    spec: FilterSpec,
    threads: NonZeroUsize,
    first: StaticFilter,
    keys: KeyCollector<'a, ListedKey>,
    found: BatchResults,
    listed: Vec<ListedKey>,
}

impl<'a> FirstStage<'a> {
    /// Without a store all keys are in memory.
    pub(crate) fn new(
        spec: FilterSpec,
        threads: NonZeroUsize,
        store: Option<(&'a dyn HashStore, u64)>,
    ) -> Self {
        let spill = store.map(|(store, memory)| Spill::new::<u64>(store, memory));
        let members = KeyCollector::new(spill, ribbon::layer_hash(SEEDS[0]));
        Self { spec, threads, spill, members }
    }

    pub(crate) fn extend(&mut self, hashes: &[u64]) -> Result<()> {
        self.members.extend(hashes)
    }

    /// Builds the filter of the members. `rate_of` returns its rate for their number, and its number of
    /// columns if that is whole.
    pub(crate) fn finish(
        self,
        rate_of: impl FnOnce(u64) -> (f64, Option<u64>),
    ) -> Result<SecondStage<'a>> {
        let Self { spec, threads, spill, members } = self;
        let mut members = members.finish();
        let mut distinct = 0;
        match &mut members {
            CollectedKeys::Memory(hashes) => {
                sort_distinct(hashes, &mut Vec::new(), threads_for(threads, hashes.len()))?;
                distinct = hashes.len();
            }
            CollectedKeys::Ranges(ranges) => {
                let max_keys = ranges.spill().max_keys();
                ranges.for_each_range::<u64>(max_keys, threads, |keys| {
                    distinct += keys.len();
                    Ok(())
                })?;
            }
        }
        let (rate, columns) = rate_of(distinct as u64);
        let wanted = Wanted { rate, columns, seed: SEEDS[0], threads };
        let (table, count) = match &mut members {
            CollectedKeys::Memory(hashes) => {
                let wanted = Wanted { threads: threads_for(threads, hashes.len()), ..wanted };
                let mut copy = default_keys(hashes.len())?;
                copy.copy_from_slice(hashes);
                ribbon::build(&mut copy, &mut default_keys(hashes.len())?, &wanted)?
            }
            CollectedKeys::Ranges(ranges) => {
                ribbon::build_from_ranges::<u64>(ranges, Some(distinct), &wanted)?
            }
        };
        let first = finished(&spec, wanted.rate, Table::Ribbon(table), count);
        let size = first.size_bytes();
        let spill = spill.map(|spill| spill.beside::<ListedKey>(size)).transpose()?;
        let keys = KeyCollector::new(spill, ribbon::layer_hash(SEEDS[1]));
        let (found, listed) = (BatchResults::new(), Vec::new());
        let mut second = SecondStage { spec, threads, first, keys, found, listed };
        match members {
            CollectedKeys::Memory(hashes) => {
                hashes.chunks(CHUNK).try_for_each(|hashes| second.list(hashes, false))?;
            }
            CollectedKeys::Ranges(mut ranges) => {
                ranges.for_each_hash(|hashes| second.list(hashes, false))?;
            }
        }
        Ok(second)
    }
}

impl SecondStage<'_> {
    /// Returns the number of members.
    pub(crate) fn members(&self) -> u64 {
        self.first.len()
    }

    /// Adds hashes of other keys, of which those that the first filter contains are kept.
    pub(crate) fn extend(&mut self, hashes: &[u64]) -> Result<()> {
        for hashes in hashes.chunks(CHUNK) {
            self.first.contains_mixed_hashes(hashes, &mut self.found);
            self.listed.clear();
            let found = self.found.iter().map(|at| ListedKey::new(hashes[at], true));
            self.listed.extend(found);
            self.keys.extend(&self.listed)?;
        }
        Ok(())
    }

    fn list(&mut self, hashes: &[u64], other: bool) -> Result<()> {
        self.listed.clear();
        self.listed.extend(hashes.iter().map(|&hash| ListedKey::new(hash, other)));
        self.keys.extend(&self.listed)
    }

    /// Builds the second filter, and returns both.
    ///
    /// # Errors
    /// If hashes are in both lists.
    pub(crate) fn finish(self) -> Result<[StaticFilter; 2]> {
        let Self { spec, threads, first, keys, .. } = self;
        let columns = Some(SECOND_COLUMNS);
        let wanted = Wanted { rate: SECOND_RATE, columns, seed: SEEDS[1], threads };
        let (table, count) = match keys.finish() {
            CollectedKeys::Memory(mut keys) => {
                let wanted = Wanted { threads: threads_for(threads, keys.len()), ..wanted };
                let mut spare = default_keys(keys.len())?;
                ribbon::build(&mut keys, &mut spare, &wanted)?
            }
            CollectedKeys::Ranges(mut ranges) => {
                ribbon::build_from_ranges::<ListedKey>(&mut ranges, None, &wanted)?
            }
        };
        let second = finished(&spec, SECOND_RATE, Table::Ribbon(table), count);
        Ok([first, second])
    }
}
