//! What the filters of `CF.*` are asked and told: petal's own rows, and RedisBloom's cuckoo filters.

use super::{Object, Refusal};
use crate::compat::Cuckoo;

/// What `CF.INFO` tells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CuckooFigures {
    pub(crate) size: u64,
    /// Keys that it holds as it is, more or less.
    pub(crate) capacity: u64,
    /// The false-positive rate that was asked for, if one was.
    pub(crate) rate: f64,
    /// Of the first layer.
    pub(crate) buckets: u64,
    pub(crate) filters: u64,
    pub(crate) items: u64,
    pub(crate) deletes: u64,
    pub(crate) bucket_size: u64,
    pub(crate) expansion: u64,
    pub(crate) iterations: u64,
}

impl Object {
    /// Whether it is for `CF.*`.
    pub(crate) fn is_cuckoo(&self) -> bool {
        matches!(self, Self::Row(_) | Self::RedisCuckoo(_))
    }

    /// What `CF.INFO` tells, if it is for `CF.*`.
    pub(crate) fn cuckoo(&self) -> Option<CuckooFigures> {
        let size = self.memory_usage();
        match self {
            Self::Row(row) => {
                let plan = row.plan();
                let bucket_size = u64::from(plan.bucket_size);
                Some(CuckooFigures {
                    size,
                    capacity: row.capacity(),
                    rate: plan.rate,
                    buckets: row.first_slots().div_ceil(bucket_size.max(1)),
                    filters: row.layers(),
                    items: row.len(),
                    deletes: row.deletes(),
                    bucket_size,
                    expansion: plan.expansion.into(),
                    iterations: plan.iterations.into(),
                })
            }
            Self::RedisCuckoo(filter) => {
                let plan = filter.plan();
                Some(CuckooFigures {
                    size,
                    capacity: filter.slots(),
                    rate: 0.0,
                    buckets: plan.buckets,
                    filters: filter.layers(),
                    items: filter.len(),
                    deletes: filter.deletes(),
                    bucket_size: plan.bucket_size.into(),
                    expansion: plan.expansion.into(),
                    iterations: plan.iterations.into(),
                })
            }
            _ => None,
        }
    }

    /// Puts a key in once more, or only if it seems not to be there; whether it was put in. If it
    /// has to grow, to so many layers and bytes at most.
    #[inline]
    pub(crate) fn add_copy(
        &mut self,
        key: &[u8],
        absent: bool,
        layers: u64,
        limit: u64,
    ) -> Result<bool, Refusal> {
        match self {
            Self::Row(row) => {
                let hash = row.hash(key);
                if absent && row.contains(hash) {
                    return Ok(false);
                }
                row.add(hash, layers, limit)?;
            }
            Self::RedisCuckoo(filter) => {
                let hash = Cuckoo::hash(key);
                if absent && filter.contains(hash) {
                    return Ok(false);
                }
                filter.insert(hash, layers, limit)?;
            }
            _ => return Err(Refusal::Type),
        }
        Ok(true)
    }

    /// Takes a key out once; whether it was there.
    #[inline]
    pub(crate) fn remove_copy(&mut self, key: &[u8]) -> Result<bool, Refusal> {
        match self {
            Self::Row(row) => Ok(row.remove(row.hash(key))),
            Self::RedisCuckoo(filter) => Ok(filter.delete(Cuckoo::hash(key))),
            _ => Err(Refusal::Type),
        }
    }

    /// How often a key may be there.
    pub(crate) fn copies(&self, key: &[u8]) -> Result<u64, Refusal> {
        match self {
            Self::Row(row) => Ok(row.count(row.hash(key))),
            Self::RedisCuckoo(filter) => Ok(filter.count(Cuckoo::hash(key))),
            _ => Err(Refusal::Type),
        }
    }

    /// Gives back what memory it can.
    pub(crate) fn compact(&mut self) -> Result<(), Refusal> {
        match self {
            Self::Row(row) => row.compact(),
            Self::RedisCuckoo(filter) => filter.compact(true),
            _ => return Err(Refusal::Type),
        }
        Ok(())
    }
}
