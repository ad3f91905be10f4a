//! The operations of `CF.*`, for both layouts. Keys are hashed once for all layers.

use super::StoredFilter;
use crate::error::FilterError;
use crate::redisbloom::{Cuckoo, MAX_ANNOUNCED_LAYERS};

/// Maximum number of copies of an item in petal's layout. Operations on an item take time
/// proportional to the number of its copies.
pub(crate) const MAX_COPIES: u64 = 65_535;

/// The limits for a filter's growth.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GrowthLimits {
    /// Maximum number of layers.
    pub(crate) layers: u64,
    /// Maximum memory in bytes.
    pub(crate) bytes: u64,
    /// Maximum number of copies of an item in petal's layout: [`MAX_COPIES`] or no limit.
    pub(crate) copies: u64,
}

/// The fields of `CF.INFO`, and the capacity and target of `BF.INFO` and `PETAL.INFO`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CuckooInfo {
    /// Bytes.
    pub(crate) size: u64,
    /// Buckets of the first layer.
    pub(crate) buckets: u64,
    pub(crate) layers: u64,
    pub(crate) items: u64,
    /// Deletions since the last compaction.
    pub(crate) deleted: u64,
    pub(crate) bucket_size: u16,
    /// 0 if the filter does not grow.
    pub(crate) expansion: u16,
    pub(crate) iterations: u16,
    pub(crate) capacity: u64,
    /// Target false-positive rate; 0 if the layout has none.
    pub(crate) target_fpr: f64,
}

/// A filter that stores copies of keys and deletes them.
pub(crate) trait CuckooOps {
    /// Returns the hash of a key.
    fn hash(&self, key: &[u8]) -> u64;

    /// Returns the hashes of keys.
    fn hashes(&self, keys: &mut dyn Iterator<Item = &[u8]>) -> Vec<u64>;

    /// Prefetches the memory for a lookup or an insert, in layouts where this is known to help.
    fn prefetch(&self, _hash: u64) {}

    /// Returns whether the filter contains a key.
    fn contains(&self, hash: u64) -> bool;

    /// Returns the number of copies of a key; an upper bound.
    fn count(&self, hash: u64) -> u64;

    /// Returns whether commands insert nothing at this maximum of layers, even into free slots, as
    /// in RedisBloom.
    fn rejects_inserts(&self, _max_layers: u64) -> bool {
        false
    }

    /// Inserts a copy of a key. The limits are read only if the filter has to grow or has
    /// [`MAX_COPIES`] of the key.
    ///
    /// # Errors
    /// If the filter is full and cannot grow; `MaxLayers` if it has the maximum number of layers,
    /// `TooManyCopies` if it has the maximum number of copies of the key.
    fn add(&mut self, hash: u64, limits: &dyn Fn() -> GrowthLimits) -> Result<(), FilterError>;

    /// Removes one copy of a key. Returns whether it was present.
    fn remove(&mut self, hash: u64) -> bool;

    /// Moves keys to older layers and frees empty ones. Returns whether the filter changed.
    fn compact(&mut self) -> bool;

    fn info(&self) -> CuckooInfo;
}

impl StoredFilter {
    /// Returns the filter if it is one of `CF.*`.
    #[inline]
    pub(crate) fn as_cuckoo(&self) -> Option<&dyn CuckooOps> {
        match self {
            Self::QuotientChain(chain) => Some(&**chain),
            Self::RedisCuckoo(filter) => Some(&**filter),
            Self::Window(_)
            | Self::Scalable(_)
            | Self::Filter(_)
            | Self::Partial(_)
            | Self::RedisBloom(_) => None,
        }
    }

    /// Returns the filter for changes if it is one of `CF.*`.
    #[inline]
    pub(crate) fn as_cuckoo_mut(&mut self) -> Option<&mut dyn CuckooOps> {
        match self {
            Self::QuotientChain(chain) => Some(&mut **chain),
            Self::RedisCuckoo(filter) => Some(&mut **filter),
            Self::Window(_)
            | Self::Scalable(_)
            | Self::Filter(_)
            | Self::Partial(_)
            | Self::RedisBloom(_) => None,
        }
    }
}

impl CuckooOps for Cuckoo {
    fn hash(&self, key: &[u8]) -> u64 {
        Self::hash(key)
    }

    fn hashes(&self, keys: &mut dyn Iterator<Item = &[u8]>) -> Vec<u64> {
        keys.map(Self::hash).collect()
    }

    fn contains(&self, hash: u64) -> bool {
        self.contains(hash)
    }

    fn count(&self, hash: u64) -> u64 {
        self.count(hash)
    }

    fn rejects_inserts(&self, max_layers: u64) -> bool {
        self.layers() >= max_layers
    }

    /// [`rejects_inserts`](CuckooOps::rejects_inserts) is checked once per command, so one command
    /// may exceed the maximum of layers, but not so far that lookups become slow.
    fn add(&mut self, hash: u64, limits: &dyn Fn() -> GrowthLimits) -> Result<(), FilterError> {
        self.insert_within(hash, || {
            let GrowthLimits { layers, bytes, .. } = limits();
            (layers.max(MAX_ANNOUNCED_LAYERS), bytes)
        })
    }

    fn remove(&mut self, hash: u64) -> bool {
        self.delete(hash)
    }

    fn compact(&mut self) -> bool {
        self.compact(true)
    }

    fn info(&self) -> CuckooInfo {
        let params = self.params();
        CuckooInfo {
            size: self.size(),
            buckets: params.buckets,
            layers: self.layers(),
            items: self.len(),
            deleted: self.deletes(),
            bucket_size: params.bucket_size,
            expansion: params.expansion,
            iterations: params.iterations,
            capacity: self.slots(),
            target_fpr: 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use petal::HashSpec;

    use super::*;
    use crate::filters::quotient_chain::{ChainParams, QuotientChain};
    use crate::redisbloom::CuckooParams;
    use crate::server::count_allocations;

    const NO_LIMITS: GrowthLimits =
        GrowthLimits { layers: u64::MAX, bytes: u64::MAX, copies: u64::MAX };

    #[test]
    fn copies_of_a_key_are_limited_unless_commands_are_replayed() {
        let params = ChainParams { fpr: 0.01, expansion: 2, bucket_size: 2, iterations: 20 };
        let spec = HashSpec::keyed([7; 16]);
        let mut chain = QuotientChain::new(params, 10_000, spec, u64::MAX).unwrap();
        let [key, other] = [1u64, 2].map(|key| chain.hash(&key.to_le_bytes()));
        let limits = || GrowthLimits { copies: MAX_COPIES, ..NO_LIMITS };
        let mut add =
            |hash, limits: &dyn Fn() -> GrowthLimits| CuckooOps::add(&mut chain, hash, limits);
        assert!((0..MAX_COPIES).all(|_| add(key, &limits).is_ok()));
        assert_eq!(add(key, &limits), Err(FilterError::TooManyCopies));
        assert_eq!((add(other, &limits), add(key, &|| NO_LIMITS)), (Ok(()), Ok(())));
        assert_eq!((chain.count(key), chain.count(other)), (MAX_COPIES + 1, 1));
        assert!(chain.layers() > 1 && chain.remove(key) && chain.remove(key));
        assert_eq!(CuckooOps::add(&mut chain, key, &limits), Ok(()));
        assert_eq!(CuckooOps::add(&mut chain, key, &limits), Err(FilterError::TooManyCopies));
    }

    #[test]
    fn one_command_adds_at_most_the_announced_maximum_of_layers() {
        let params = CuckooParams::new(1, 1, 1, 1).unwrap();
        let mut filter = Cuckoo::new(params, u64::MAX).unwrap();
        let limits = || GrowthLimits { layers: 32, ..NO_LIMITS };
        let (allocations, error) = count_allocations(|| {
            (0..60_000u64).find_map(|_| CuckooOps::add(&mut filter, 7, &limits).err())
        });
        assert_eq!((error, filter.layers()), (Some(FilterError::MaxLayers), MAX_ANNOUNCED_LAYERS));
        assert!(allocations <= 2 * MAX_ANNOUNCED_LAYERS, "{allocations}");
        // A higher setting raises the maximum.
        let limits = || GrowthLimits { layers: 3000, ..NO_LIMITS };
        _ = (0..9000u64).find_map(|_| CuckooOps::add(&mut filter, 7, &limits).err());
        assert_eq!(filter.layers(), 3000);
    }
}
