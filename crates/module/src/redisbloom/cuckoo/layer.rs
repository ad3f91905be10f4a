//! A layer of a cuckoo filter: buckets of fingerprints, and where those of a key are.

use super::super::byte_arrays::zeroed;
use super::params::CuckooParams;
use crate::error::FilterError;

/// The position of a key: its fingerprint, and two numbers whose lower bits are its buckets.
#[derive(Clone, Copy)]
pub(super) struct Position {
    pub(super) fingerprint: u8,
    first: u64,
    second: u64,
}

impl Position {
    pub(super) fn of(hash: u64) -> Self {
        Self::at(hash, (hash % 255 + 1) as u8)
    }

    /// Returns the position of a fingerprint that is stored in a bucket.
    pub(super) fn at(bucket: u64, fingerprint: u8) -> Self {
        Self { fingerprint, first: bucket, second: other_bucket(bucket, fingerprint) }
    }
}

/// Returns the other bucket of a fingerprint.
fn other_bucket(bucket: u64, fingerprint: u8) -> u64 {
    bucket ^ (u64::from(fingerprint) * 0x5bd1_e995)
}

#[derive(Debug)]
pub(super) struct Layer {
    /// Number of buckets minus one.
    pub(super) mask: u64,
    pub(super) bucket_size: usize,
    pub(super) slots: Box<[u8]>,
}

impl Layer {
    pub(super) fn new(params: &CuckooParams, layer: u64) -> Result<Self, FilterError> {
        Self::from_slots(
            params,
            layer,
            zeroed(params.bytes_of(layer).ok_or(FilterError::MemoryLimit)?)?,
        )
    }

    pub(super) fn from_slots(
        params: &CuckooParams,
        layer: u64,
        slots: Box<[u8]>,
    ) -> Result<Self, FilterError> {
        let buckets = params.buckets_of(layer).ok_or(FilterError::MemoryLimit)?;
        if params.bytes_of(layer).ok_or(FilterError::MemoryLimit)? != slots.len() as u64 {
            return FilterError::malformed(
                "the number of slots of a layer does not match its buckets",
            );
        }
        Ok(Self { mask: buckets - 1, bucket_size: params.bucket_size.into(), slots })
    }

    #[inline]
    fn bucket(&self, number: u64) -> &[u8] {
        let at = (number & self.mask) as usize * self.bucket_size;
        &self.slots[at..at + self.bucket_size]
    }

    #[inline]
    fn bucket_mut(&mut self, number: u64) -> &mut [u8] {
        let at = (number & self.mask) as usize * self.bucket_size;
        &mut self.slots[at..at + self.bucket_size]
    }

    #[inline]
    pub(super) fn contains(&self, position: Position) -> bool {
        self.bucket(position.first).contains(&position.fingerprint)
            || self.bucket(position.second).contains(&position.fingerprint)
    }

    pub(super) fn count(&self, position: Position) -> u64 {
        let count = |bucket: u64| {
            self.bucket(bucket).iter().filter(|slot| **slot == position.fingerprint).count() as u64
        };
        // RedisBloom counts twice if both are the same bucket.
        count(position.first) + count(position.second)
    }

    /// Replaces the first slot with the value `old` in a key's buckets. Returns whether there is
    /// one.
    #[inline]
    pub(super) fn replace(&mut self, position: Position, old: u8, new: u8) -> bool {
        for bucket in [position.first, position.second] {
            if let Some(slot) = self.bucket_mut(bucket).iter_mut().find(|slot| **slot == old) {
                *slot = new;
                return true;
            }
        }
        false
    }

    /// Inserts a fingerprint by moving others to their other buckets until one finds a free slot.
    /// If none does, all moves are undone.
    pub(super) fn kick(&mut self, position: Position, iterations: u16) -> bool {
        let (mut fingerprint, mut bucket, mut victim) = (position.fingerprint, position.first, 0);
        for _ in 0..iterations {
            std::mem::swap(&mut self.bucket_mut(bucket)[victim], &mut fingerprint);
            bucket = other_bucket(bucket, fingerprint);
            if let Some(free) = self.bucket_mut(bucket).iter_mut().find(|slot| **slot == 0) {
                *free = fingerprint;
                return true;
            }
            victim = (victim + 1) % self.bucket_size;
        }
        for _ in 0..iterations {
            victim = (victim + self.bucket_size - 1) % self.bucket_size;
            bucket = other_bucket(bucket, fingerprint);
            std::mem::swap(&mut self.bucket_mut(bucket)[victim], &mut fingerprint);
        }
        false
    }
}
