//! The keys of a filter that is built: their hashes, in memory or in ranges of a store.

#[cfg(not(feature = "std"))]
use crate::no_std::*;

use super::ranges::{Mix, RangedKeys, Spill};
use super::sort::reserve;
use crate::error::Result;

/// A hash, and which of two lists it is in if the filter tells them apart.
pub(super) trait HashedKey: Copy + Default + Ord + Send + Sync {
    /// Whether a key knows its list.
    const HAS_LIST: bool;

    fn new(hash: u64, other: bool) -> Self;

    fn hash(self) -> u64;

    fn is_other(self) -> bool;

    /// Returns the key of the same list with this hash.
    fn with_hash(self, hash: u64) -> Self {
        Self::new(hash, self.is_other())
    }
}

impl HashedKey for u64 {
    const HAS_LIST: bool = false;

    fn new(hash: u64, _: bool) -> Self {
        hash
    }

    fn hash(self) -> u64 {
        self
    }

    fn is_other(self) -> bool {
        false
    }
}

/// A hash of a member or of another key, which a filter must not contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ListedKey {
    hash: u64,
    other: bool,
}

impl HashedKey for ListedKey {
    const HAS_LIST: bool = true;

    fn new(hash: u64, other: bool) -> Self {
        Self { hash, other }
    }

    fn hash(self) -> u64 {
        self.hash
    }

    fn is_other(self) -> bool {
        self.other
    }
}

/// Keys on their way to a layer: in memory until they are too many.
pub(super) struct KeyCollector<'a, K> {
    spill: Option<Spill<'a>>,
    mix: Mix,
    memory: Vec<K>,
    ranges: Option<RangedKeys<'a>>,
}

/// The keys of a [`KeyCollector`].
pub(super) enum CollectedKeys<'a, K> {
    Memory(Vec<K>),
    Ranges(RangedKeys<'a>),
}

impl<'a, K: HashedKey> KeyCollector<'a, K> {
    /// `mix`: the hash of the layer that the keys go to.
    pub(super) fn new(spill: Option<Spill<'a>>, mix: Mix) -> Self {
        Self { spill, mix, memory: Vec::new(), ranges: None }
    }

    pub(super) fn extend(&mut self, keys: &[K]) -> Result<()> {
        let is_too_many = |spill: &Spill<'_>| self.memory.len() + keys.len() > spill.max_keys();
        let ranges = match (&mut self.ranges, self.spill.filter(is_too_many)) {
            (Some(ranges), _) => ranges,
            (none, Some(spill)) => {
                let ranges = none.insert(RangedKeys::new(spill, self.mix)?);
                ranges.extend(&core::mem::take(&mut self.memory))?;
                ranges
            }
            (None, None) => {
                grow(&mut self.memory, keys.len())?;
                self.memory.extend_from_slice(keys);
                return Ok(());
            }
        };
        ranges.extend(keys)
    }

    pub(super) fn finish(self) -> CollectedKeys<'a, K> {
        match self.ranges {
            Some(ranges) => CollectedKeys::Ranges(ranges),
            None => CollectedKeys::Memory(self.memory),
        }
    }
}

/// Makes space for `more` elements, and for as many again if the vector grows.
pub(super) fn grow<T>(vec: &mut Vec<T>, more: usize) -> Result<()> {
    let free = vec.capacity() - vec.len();
    if more > free { reserve(vec, more.max(vec.len())) } else { Ok(()) }
}

/// Returns `len` default keys.
pub(super) fn default_keys<K: HashedKey>(len: usize) -> Result<Vec<K>> {
    let mut keys = Vec::new();
    reserve(&mut keys, len)?;
    keys.resize(len, K::default());
    Ok(keys)
}
