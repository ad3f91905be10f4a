//! The keys of a filter that is built: in memory until they are too many, then in ranges of a store.

#[cfg(not(feature = "std"))]
use crate::no_std::*;

use super::keys::{HashedKey, grow};
use super::ranges::{Mix, RangedKeys, Spill};
use crate::error::Result;

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
