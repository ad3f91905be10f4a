//! Operations on filters that may have a window of time: they take the time from a clock.

use petal::{AnyFilter, BatchResults, Explanation, Store};

use super::Clock;

/// Advances a filter with a window of time to the time of the clock.
pub(super) fn advance(filter: &mut AnyFilter, clock: Clock) {
    if let AnyFilter::Windowed(filter) = filter
        && filter.window_ticks().is_some()
    {
        filter.advance_to(clock.now());
    }
}

/// Looks up one key.
#[inline]
pub(super) fn contains<S: Store>(filter: &AnyFilter<S>, clock: Clock, key: &[u8]) -> bool {
    match filter {
        AnyFilter::Windowed(filter) if filter.window_ticks().is_some() => {
            filter.contains_at(clock.now(), key)
        }
        filter => filter.contains(key),
    }
}

/// Returns the hash of a key, and how the filter answers its query.
pub(super) fn explain<S: Store>(
    filter: &AnyFilter<S>,
    clock: Clock,
    key: &[u8],
) -> (u64, Explanation) {
    let hash = filter.as_dyn().hash_spec().hash(key);
    let explanation = match filter {
        AnyFilter::Windowed(filter) if filter.window_ticks().is_some() => {
            filter.explain_mixed_hash_at(clock.now(), hash)
        }
        filter => filter.as_dyn().explain_mixed_hash(hash),
    };
    (hash, explanation)
}

/// Looks up keys by their hashes.
pub(super) fn contains_hashes<S: Store>(
    filter: &AnyFilter<S>,
    clock: Clock,
    hashes: &[u64],
    found: &mut BatchResults,
) {
    match filter {
        AnyFilter::Windowed(filter) if filter.window_ticks().is_some() => {
            filter.contains_mixed_hashes_at(clock.now(), hashes, found);
        }
        filter => filter.as_dyn().contains_mixed_hashes(hashes, found),
    }
}

/// Adds one key; types that support deletion store it once for each call. Returns true if it
/// certainly was not in the filter.
#[inline]
pub(super) fn insert(filter: &mut AnyFilter, clock: Clock, key: &[u8]) -> petal::Result<bool> {
    advance(filter, clock);
    filter.insert(key)
}
