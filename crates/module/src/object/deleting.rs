//! What `CF.*` asks and tells a filter, whatever its layout: all of it by a hash that is made once
//! for all layers.

use petal::Answers;

use super::{Object, Refusal};
use crate::chain::Chain;
use crate::compat::{Cuckoo, MOST_ANNOUNCED};

/// How far a filter may grow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// To so many layers.
    pub(crate) layers: u64,
    /// To so many bytes.
    pub(crate) bytes: u64,
}

/// What `CF.INFO` tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CuckooFigures {
    pub(crate) size: u64,
    /// Of the first layer.
    pub(crate) buckets: u64,
    pub(crate) layers: u64,
    pub(crate) items: u64,
    /// Since it was last compacted.
    pub(crate) deleted: u64,
    pub(crate) bucket_size: u16,
    /// 0 if it does not grow.
    pub(crate) expansion: u16,
    pub(crate) iterations: u16,
}

/// A filter that takes keys several times, and deletes them.
pub(crate) trait Deleting {
    /// The hash of a key.
    fn hash(&self, key: &[u8]) -> u64;

    /// The hashes of keys.
    fn hashes(&self, keys: &mut dyn Iterator<Item = &[u8]>) -> Vec<u64>;

    /// Asks for memory that will be looked at for a key.
    fn prefetch(&self, hash: u64);

    /// Whether a key may be there.
    fn contains(&self, hash: u64) -> bool;

    /// Whether keys may be there.
    fn contains_all(&self, hashes: &[u64], found: &mut Answers);

    /// How often a key may be there.
    fn count(&self, hash: u64) -> u64;

    /// Whether a command puts nothing in, whatever is free, where there may be so many layers:
    /// RedisBloom's answer.
    fn is_closed(&self, layers: u64) -> bool;

    /// Puts a key in once more. How far it may grow is asked only when it must.
    ///
    /// # Errors
    /// If it is full and cannot grow; `Layers` if it is full and has as many layers as it may.
    fn add(&mut self, hash: u64, room: &dyn Fn() -> Room) -> Result<(), Refusal>;

    /// Takes a key out once; whether it was there.
    fn remove(&mut self, hash: u64) -> bool;

    /// Makes do with fewer layers, if it can.
    fn compact(&mut self);

    /// What `CF.INFO` tells.
    fn figures(&self) -> CuckooFigures;

    /// Keys that it holds now, and the rate that it keeps while it grows; 0 if it keeps none.
    fn promise(&self) -> (u64, f64);
}

impl Object {
    /// As what `CF.*` is for.
    #[inline]
    pub(crate) fn deleting(&self) -> Option<&dyn Deleting> {
        match self {
            Self::Chain(chain) => Some(&**chain),
            Self::RedisCuckoo(filter) => Some(&**filter),
            Self::Window(_) | Self::Filter(_) | Self::Incoming(_) | Self::RedisBloom(_) => None,
        }
    }

    /// The same, to be changed.
    #[inline]
    pub(crate) fn deleting_mut(&mut self) -> Option<&mut dyn Deleting> {
        match self {
            Self::Chain(chain) => Some(&mut **chain),
            Self::RedisCuckoo(filter) => Some(&mut **filter),
            Self::Window(_) | Self::Filter(_) | Self::Incoming(_) | Self::RedisBloom(_) => None,
        }
    }
}

impl Deleting for Chain {
    fn hash(&self, key: &[u8]) -> u64 {
        self.hash(key)
    }

    fn hashes(&self, keys: &mut dyn Iterator<Item = &[u8]>) -> Vec<u64> {
        match self.hash_spec() {
            Some(spec) => super::hashes(spec, keys),
            None => Vec::new(),
        }
    }

    fn prefetch(&self, hash: u64) {
        self.prefetch(hash);
    }

    fn contains(&self, hash: u64) -> bool {
        self.contains(hash)
    }

    fn contains_all(&self, hashes: &[u64], found: &mut Answers) {
        self.contains_all(hashes, found);
    }

    fn count(&self, hash: u64) -> u64 {
        self.count(hash)
    }

    fn is_closed(&self, _: u64) -> bool {
        false
    }

    fn add(&mut self, hash: u64, room: &dyn Fn() -> Room) -> Result<(), Refusal> {
        match self.add(hash, 0, 0) {
            Err(Refusal::Layers) => {
                let Room { layers, bytes } = room();
                self.add(hash, layers, bytes)
            }
            done => done,
        }
    }

    fn remove(&mut self, hash: u64) -> bool {
        self.remove(hash)
    }

    fn compact(&mut self) {
        self.compact();
    }

    fn figures(&self) -> CuckooFigures {
        let plan = self.plan();
        CuckooFigures {
            size: self.memory_usage(),
            buckets: self.first_slots() / u64::from(plan.bucket_size.max(1)),
            layers: self.layers(),
            items: self.len(),
            deleted: self.deletes(),
            bucket_size: plan.bucket_size,
            expansion: plan.expansion,
            iterations: plan.iterations,
        }
    }

    fn promise(&self) -> (u64, f64) {
        (self.capacity(), self.plan().rate)
    }
}

impl Deleting for Cuckoo {
    fn hash(&self, key: &[u8]) -> u64 {
        Self::hash(key)
    }

    fn hashes(&self, keys: &mut dyn Iterator<Item = &[u8]>) -> Vec<u64> {
        keys.map(Self::hash).collect()
    }

    /// What a prefetch of two buckets a layer would save is not measured yet.
    fn prefetch(&self, _: u64) {}

    fn contains(&self, hash: u64) -> bool {
        self.contains(hash)
    }

    fn contains_all(&self, hashes: &[u64], found: &mut Answers) {
        found.answer(hashes.len(), |at| self.contains(hashes[at]));
    }

    fn count(&self, hash: u64) -> u64 {
        self.count(hash)
    }

    fn is_closed(&self, layers: u64) -> bool {
        self.layers() >= layers
    }

    /// Layers are counted once for a command: within one it may come to have more, but never so
    /// many that looking into all of them holds up the server.
    fn add(&mut self, hash: u64, room: &dyn Fn() -> Room) -> Result<(), Refusal> {
        self.insert_within(hash, || {
            let Room { layers, bytes } = room();
            (layers.max(MOST_ANNOUNCED), bytes)
        })
    }

    fn remove(&mut self, hash: u64) -> bool {
        self.delete(hash)
    }

    fn compact(&mut self) {
        self.compact(true);
    }

    fn figures(&self) -> CuckooFigures {
        let plan = self.plan();
        CuckooFigures {
            size: self.size(),
            buckets: plan.buckets,
            layers: self.layers(),
            items: self.len(),
            deleted: self.deletes(),
            bucket_size: plan.bucket_size,
            expansion: plan.expansion,
            iterations: plan.iterations,
        }
    }

    fn promise(&self) -> (u64, f64) {
        (self.slots(), 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compat::CuckooPlan;
    use crate::server::allocations;

    #[test]
    fn a_command_of_many_items_makes_no_more_layers_than_can_be_announced() {
        let plan = CuckooPlan::new(1, 1, 1, 1).unwrap();
        let mut filter = Cuckoo::new(plan, u64::MAX).unwrap();
        let room = || Room { layers: 32, bytes: u64::MAX };
        let (allocations, refused) =
            allocations(|| (0..60_000u64).find_map(|_| Deleting::add(&mut filter, 7, &room).err()));
        assert_eq!((refused, filter.layers()), (Some(Refusal::Layers), MOST_ANNOUNCED));
        assert!(allocations <= 2 * MOST_ANNOUNCED, "{allocations}");
        // More where the settings say so, and all where a master accepted them.
        let room = || Room { layers: 3000, bytes: u64::MAX };
        _ = (0..9000u64).find_map(|_| Deleting::add(&mut filter, 7, &room).err());
        assert_eq!(filter.layers(), 3000);
    }
}
