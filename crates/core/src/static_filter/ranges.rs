//! Keys outside memory: in ranges of the hash of a layer, each of which fits in memory.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use core::num::NonZeroUsize;

use super::keys::{HashedKey, grow, reserve};
use super::sort::sort;
use crate::error::{Error, Result};
use crate::kernel::scale;

/// Hashes outside memory, in a number of ranges that is a power of two.
pub trait HashRanges: Send {
    /// Returns the logarithm of the number of ranges, 1 to 20.
    fn bits(&self) -> u32;

    /// Adds each hash to a range: the highest [`bits`](Self::bits) of its place are the number of the
    /// range.
    ///
    /// # Errors
    /// If they cannot be stored.
    fn extend(&mut self, places: &[u64], hashes: &[u64]) -> Result<()>;

    /// Calls a function with the hashes of a range in any order, piece by piece. A range can be read
    /// several times, but no hashes are added after the first time.
    ///
    /// # Errors
    /// If they cannot be read, or the function returns an error.
    fn read(&mut self, range: u64, take: &mut dyn FnMut(&[u64]) -> Result<()>) -> Result<()>;
}

/// Where the builder of a static filter puts hashes that do not fit in memory.
pub trait HashStore: Sync {
    /// Creates empty ranges.
    ///
    /// # Errors
    /// If that is impossible.
    fn ranges(&self) -> Result<Box<dyn HashRanges + '_>>;
}

/// A place for hashes outside memory, and the memory for keys and filter.
#[derive(Clone, Copy)]
pub(super) struct Spill<'a> {
    store: &'a dyn HashStore,
    memory: u64,
    max_keys: usize,
}

impl<'a> Spill<'a> {
    /// A third of the memory is for keys, because they are sorted to a copy.
    pub(super) fn new<K>(store: &'a dyn HashStore, memory: u64) -> Self {
        let max_keys = usize::try_from(memory / 3).unwrap_or(usize::MAX) / size_of::<K>();
        Self { store, memory, max_keys }
    }

    /// Returns the number of keys of a layer that may be in memory.
    pub(super) fn max_keys(&self) -> usize {
        self.max_keys
    }

    /// Subtracts the memory of a filter.
    ///
    /// # Errors
    /// If too little is left.
    pub(super) fn beside<K>(self, filter: u64) -> Result<Self> {
        let needed = filter.saturating_add(filter / LEAST_ROOM).saturating_add(LEAST_MEMORY);
        if needed > self.memory {
            return Err(Error::over_limit(self.memory, needed));
        }
        Ok(Self::new::<K>(self.store, self.memory - filter))
    }
}

/// The least memory beside a filter: a part of it, and bytes.
const LEAST_ROOM: u64 = 16;
const LEAST_MEMORY: u64 = 1 << 20;

/// The hash of a layer: a function, its inverse if it has one, and its seed.
#[derive(Clone, Copy)]
pub(super) struct Mix {
    pub(super) function: fn(u64, u64) -> u64,
    /// With an inverse, ranges have the mixed hashes, which are mixed once instead of whenever they are
    /// read.
    pub(super) inverse: Option<fn(u64, u64) -> u64>,
    pub(super) seed: u64,
}

impl Mix {
    #[inline]
    pub(super) fn of(self, hash: u64) -> u64 {
        (self.function)(hash, self.seed)
    }

    /// Returns the hash that was mixed, given what is in the ranges.
    #[inline]
    fn restore(self, stored: u64) -> u64 {
        self.inverse.map_or(stored, |inverse| inverse(stored, self.seed))
    }
}

/// Keys in ranges of their mixed hash: those of the first list, and those of the other.
pub(super) struct RangedKeys<'a> {
    lists: [Box<dyn HashRanges + 'a>; 2],
    spill: Spill<'a>,
    mix: Mix,
    /// The number of keys, with duplicates.
    keys: u64,
}

/// Returns whether the keys of each list are the other ones.
fn lists_of<K: HashedKey>() -> &'static [bool] {
    if K::HAS_LIST { &[false, true] } else { &[false] }
}

/// Hashes that go to ranges at once.
const PIECE: usize = 1 << 12;

impl<'a> RangedKeys<'a> {
    pub(super) fn new(spill: Spill<'a>, mix: Mix) -> Result<Self> {
        Ok(Self { lists: [spill.store.ranges()?, spill.store.ranges()?], spill, mix, keys: 0 })
    }

    /// Returns the place that the keys are in.
    pub(super) fn spill(&self) -> Spill<'a> {
        self.spill
    }

    /// Returns the number of keys, with duplicates.
    pub(super) fn count(&self) -> u64 {
        self.keys
    }

    pub(super) fn extend<K: HashedKey>(&mut self, keys: &[K]) -> Result<()> {
        let (mut hashes, mut places) = (Vec::new(), Vec::new());
        reserve(&mut hashes, PIECE.min(keys.len()))?;
        reserve(&mut places, PIECE.min(keys.len()))?;
        for keys in keys.chunks(PIECE) {
            for (list, other) in self.lists.iter_mut().zip(lists_of::<K>()) {
                hashes.clear();
                places.clear();
                let listed = keys.iter().filter(|key| key.is_other() == *other);
                hashes.extend(listed.map(|key| key.hash()));
                places.extend(hashes.iter().map(|&hash| self.mix.of(hash)));
                list.extend(&places, if self.mix.inverse.is_some() { &places } else { &hashes })?;
            }
        }
        self.keys += keys.len() as u64;
        Ok(())
    }

    fn bits(&self) -> u32 {
        self.lists[0].bits()
    }

    /// Calls a function with the distinct keys of each range in order, their hashes mixed.
    ///
    /// # Errors
    /// If a range has more than half of `max_keys`; if the function returns an error.
    pub(super) fn for_each_range<K: HashedKey>(
        &mut self,
        max_keys: usize,
        threads: NonZeroUsize,
        mut look: impl FnMut(&[K]) -> Result<()>,
    ) -> Result<()> {
        let mut buffers = Buffers::<K>::default();
        for range in 0..1 << self.bits() {
            buffers.read(self, range, max_keys, threads)?;
            look(&buffers.keys)?;
            buffers.keys.clear();
        }
        Ok(())
    }

    /// Calls a function with the hashes as they were added, in any order.
    ///
    /// # Errors
    /// If they cannot be read, or the function returns an error.
    pub(super) fn for_each_hash(
        &mut self,
        mut look: impl FnMut(&[u64]) -> Result<()>,
    ) -> Result<()> {
        let (mut hashes, mix) = (Vec::new(), self.mix);
        for range in 0..1 << self.bits() {
            for list in &mut self.lists {
                list.read(range, &mut |piece| {
                    hashes.clear();
                    grow(&mut hashes, piece.len())?;
                    hashes.extend(piece.iter().map(|&stored| mix.restore(stored)));
                    look(&hashes)
                })?;
            }
        }
        Ok(())
    }

    /// Calls a function with consecutive shards and their distinct keys in order, range by range. The
    /// keys of a shard are a range of all hashes.
    ///
    /// # Errors
    /// As [`for_each_range`](Self::for_each_range).
    pub(super) fn for_each_run<K: HashedKey>(
        &mut self,
        shards: u64,
        max_keys: usize,
        threads: NonZeroUsize,
        mut act: impl FnMut(core::ops::Range<u64>, &mut [K]) -> Result<()>,
    ) -> Result<()> {
        let mut buffers = Buffers::<K>::default();
        let (bits, mut first) = (self.bits(), 0);
        for range in 0..1 << bits {
            buffers.read(self, range, max_keys, threads)?;
            // The shards whose keys are all read.
            let is_last = range + 1 == 1 << bits;
            let behind = if is_last { shards } else { scale((range + 1) << (64 - bits), shards) };
            let whole = buffers.keys.partition_point(|key| scale(key.hash(), shards) < behind);
            act(first..behind, &mut buffers.keys[..whole])?;
            buffers.keys.drain(..whole);
            first = behind;
        }
        Ok(())
    }

    /// Returns the distinct keys, whose number is known to be small, with the hashes that they were
    /// added with.
    ///
    /// # Errors
    /// As [`for_each_range`](Self::for_each_range).
    pub(super) fn all_in_memory<K: HashedKey>(
        &mut self,
        max_keys: usize,
        threads: NonZeroUsize,
    ) -> Result<Vec<K>> {
        let (mut buffers, mut all) = (Buffers::<K>::default(), Vec::new());
        for range in 0..1 << self.bits() {
            let mix = self.mix;
            buffers.read_with(self, range, |stored| mix.restore(stored), max_keys, threads)?;
            grow(&mut all, buffers.new.len())?;
            all.extend_from_slice(&buffers.new);
        }
        Ok(all)
    }
}

/// The keys of a range.
struct Buffers<K> {
    /// Keys of the range before that belong to an unfinished shard, then those of the range.
    keys: Vec<K>,
    new: Vec<K>,
    spare: Vec<K>,
}

impl<K> Default for Buffers<K> {
    fn default() -> Self {
        Self { keys: Vec::new(), new: Vec::new(), spare: Vec::new() }
    }
}

impl<K: HashedKey> Buffers<K> {
    /// Appends the distinct keys of a range in order.
    fn read(
        &mut self,
        keys: &mut RangedKeys<'_>,
        range: u64,
        max_keys: usize,
        threads: NonZeroUsize,
    ) -> Result<()> {
        let bits = keys.bits();
        // Without the bits that all have, hashes are as evenly spread as those of all ranges.
        let mix = keys.mix;
        match mix.inverse {
            Some(_) => self.read_with(keys, range, |g| g << bits, max_keys, threads)?,
            None => self.read_with(keys, range, |hash| mix.of(hash) << bits, max_keys, threads)?,
        }
        grow(&mut self.keys, self.new.len())?;
        let restore = |key: &K| key.with_hash(key.hash() >> bits | range << (64 - bits));
        self.keys.extend(self.new.iter().map(restore));
        Ok(())
    }

    /// Reads the distinct keys of a range in the order of their changed hash.
    fn read_with(
        &mut self,
        keys: &mut RangedKeys<'_>,
        range: u64,
        change: impl Fn(u64) -> u64,
        max_keys: usize,
        threads: NonZeroUsize,
    ) -> Result<()> {
        let Self { new, spare, .. } = self;
        new.clear();
        let (share, memory) = (keys.count() >> keys.bits(), keys.spill.memory);
        for (list, &other) in keys.lists.iter_mut().zip(lists_of::<K>()) {
            list.read(range, &mut |piece| {
                if new.len() + piece.len() > max_keys {
                    // Many are duplicates, unless the hashes are not random.
                    sort_distinct(new, spare, threads)?;
                    if new.len() > max_keys / 2 {
                        return Err(too_many::<K>(share, max_keys, memory));
                    }
                }
                grow(new, piece.len())?;
                new.extend(piece.iter().map(|&stored| K::new(change(stored), other)));
                Ok(())
            })?;
        }
        sort_distinct(new, spare, threads)
    }
}

/// Sorts keys and drops duplicates.
pub(super) fn sort_distinct<K: HashedKey>(
    keys: &mut Vec<K>,
    spare: &mut Vec<K>,
    threads: NonZeroUsize,
) -> Result<()> {
    if spare.len() < keys.len() {
        let missing = keys.len() - spare.len();
        reserve(spare, missing)?;
        spare.resize(keys.len(), K::default());
    }
    let len = keys.len();
    let left = sort(keys, &mut spare[..len], |hash| hash, threads)?;
    keys.truncate(left);
    Ok(())
}

/// The error for a range with more than half of `max_keys` keys, where its even share is `share`: too little memory,
/// unless the share is small.
fn too_many<K>(share: u64, max_keys: usize, memory: u64) -> Error {
    let missing = (share.saturating_mul(9) / 4).saturating_sub(max_keys as u64);
    if missing == 0 {
        return not_random();
    }
    Error::over_limit(memory, memory.saturating_add(missing * 3 * size_of::<K>() as u64))
}

/// The error for hashes that are not evenly spread.
pub(super) fn not_random() -> Error {
    Error::invalid("hashes", "hashes that look random", "hashes that fit no filter")
}
