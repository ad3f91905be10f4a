//! Sizes of the filters of a job.

use petal::embed::BlockedLayout;
use petal::{BloomFilter, ByteSize, Membership as _};

/// Maximum bits per key: a rate of 0.15 %. The cache misses of a larger filter, for every line, cost
/// more than the records of the few false positives.
const MAX_BITS: u64 = 14;

/// Returns the size of a filter for `keys` keys within `memory` bytes.
pub(crate) fn filter_bytes(keys: u64, memory: u64) -> u64 {
    memory.min(keys.saturating_mul(MAX_BITS) / 8).max(128)
}

/// Returns the number of keys for a filter of `bytes` bytes at the maximum bits per key.
pub(crate) fn capacity_for_bytes(bytes: u64) -> u64 {
    (bytes * 8 / MAX_BITS).max(1)
}

/// Estimates the number of distinct keys inserted into a filter that had `keys` keys and then
/// reported `new` insertions as new. At a rate p a share 1 - p of new keys is reported as new. The
/// rate rises during insertion, so it is integrated by the midpoint rule.
pub(crate) fn estimated_insertions(filter: &BloomFilter, keys: f64, new: u64) -> f64 {
    const STEPS: u32 = 128;
    let step = new as f64 / f64::from(STEPS);
    let each = |keys: f64| (1.0 - filter.expected_fpr(keys as u64)).max(f64::EPSILON).recip();
    (0..STEPS).fold(keys, |keys, _| keys + step * each(keys + step / 2.0 * each(keys)))
}

/// Returns the rate of the filter for `keys` keys within `memory` bytes.
pub(crate) fn fpr(keys: u64, memory: u64) -> f64 {
    let keys = keys.max(1);
    BlockedLayout::for_memory(keys, ByteSize::bytes(filter_bytes(keys, memory)))
        .map_or(1.0, |shape| shape.fpr(keys))
}
