//! The layout for speed: a binary fuse filter.
//!
//! Invariant: the store has exactly the lines of slots and multipliers.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
mod build;
mod duplicates;
mod file;
mod peel;

pub(super) use build::{build, build_from_ranges, first_hash, planned_bits};

use crate::error::Result;
use crate::explanation::{ExplainedPart, Explanation};
use crate::kernel::fuse::{Fuse, FuseParams, WAYS};
use crate::math;
use crate::store::{CacheLine, Owned, Store};

/// Returns the probability that an absent key has the same [`fuse_hash`](crate::kernel::fuse::fuse_hash) as one of
/// `keys` keys. Such a hash has one preimage on average, and one more if it is that of a key.
pub(super) fn hash_floor(keys: u64) -> f64 {
    math::hash_floor(keys.saturating_mul(2))
}

/// The dimensions of a binary fuse filter, and its slots and multipliers.
#[derive(Clone, Debug)]
pub(super) struct FuseTable<S> {
    params: FuseParams,
    data: S,
}

impl<S: Store> FuseTable<S> {
    fn from_parts(params: FuseParams, data: S) -> Self {
        debug_assert_eq!(data.lines().len() as u64, lines_of(&params));
        Self { params, data }
    }

    #[inline]
    pub(super) fn fuse(&self) -> Fuse<'_> {
        Fuse::new(&self.params, self.data.lines())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.params.shards() == 0
    }

    /// Returns the exact false-positive rate without collisions of hashes.
    pub(super) fn fpr(&self) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        // The segments in which a key may start, and those of them whose keys compare one more bit.
        let starts = self.params.segments() - (WAYS - 1);
        let wide = self.params.wide().saturating_sub(WAYS - 1);
        let (shards, rest) = (wide / self.params.segments(), wide % self.params.segments());
        let wide = shards * starts + rest.min(starts);
        let share = wide as f64 / (self.params.shards() * starts) as f64;
        math::static_fpr(self.params.bits() as u32, share)
    }

    /// Returns the number of slots.
    pub(super) fn slots(&self) -> f64 {
        self.params.shards() as f64 * self.params.stride() as f64
    }

    pub(super) fn describe(&self) -> String {
        let (bits, wide) = (self.params.bits(), self.params.wide());
        let slots = self.params.shards() * self.params.stride();
        match wide {
            0 => format!("{slots} slots of {bits} bits"),
            _ => format!("{slots} slots of {bits} to {} bits", bits + 1),
        }
    }

    pub(super) fn parameters(&self) -> Vec<(&'static str, u64)> {
        let params = &self.params;
        vec![
            ("slot bits", params.bits()),
            ("shards", params.shards()),
            ("segments", params.shards() * params.segments()),
            ("slots of a segment", 1 << params.log_segment()),
            ("wide segments", params.wide()),
        ]
    }

    pub(super) fn explain(&self, hash: u64) -> Explanation {
        let Some(step) = self.fuse().step(hash) else {
            return Explanation::of_one(ExplainedPart::default());
        };
        let [first, second, third, fourth] = step.slots;
        let numbers = vec![
            ("shard", step.shard),
            ("slot 1", first),
            ("slot 2", second),
            ("slot 3", third),
            ("slot 4", fourth),
            ("bits", step.bits.into()),
            ("fingerprint", step.fingerprint.into()),
            ("result", step.result.into()),
        ];
        let contains = step.fingerprint == step.result;
        Explanation::of_one(ExplainedPart { contains, numbers, ..ExplainedPart::default() })
    }

    pub(super) fn size_bytes(&self) -> u64 {
        lines_of(&self.params) * CacheLine::BYTES as u64
    }

    pub(super) fn memory_usage(&self) -> u64 {
        self.data.memory_usage()
    }

    pub(super) fn try_clone(&self) -> Result<FuseTable<Owned>> {
        Ok(FuseTable { params: self.params, data: Owned::from_lines(self.data.lines())? })
    }

    /// Returns true if dimensions, slots and multipliers are equal.
    pub(super) fn equals<T: Store>(&self, other: &FuseTable<T>) -> bool {
        self.params == other.params && self.data.lines() == other.data.lines()
    }
}

/// Returns the number of lines of slots and multipliers.
fn lines_of(params: &FuseParams) -> u64 {
    params.words().div_ceil(8)
}
