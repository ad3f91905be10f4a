//! Batches of keys, in chunks whose hashes stay in the nearest cache.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use core::convert::Infallible;

use crate::hash::HashSpec;
use crate::key::Key;
use crate::results::BatchResults;

/// The number of keys in a chunk: a multiple of 64.
pub(crate) const CHUNK: usize = 2048;

/// Hashes keys chunk by chunk and calls `f` with the hashes and the words for their results, which
/// are zero.
#[inline]
pub(crate) fn for_each_chunk<K: Key>(
    keys: &[K],
    spec: &HashSpec,
    results: &mut BatchResults,
    mut f: impl FnMut(&[u64], &mut [u64]),
) {
    let done = try_for_each_chunk(keys, spec, results, |hashes, words| {
        f(hashes, words);
        Ok::<_, Infallible>(())
    });
    match done {
        Ok(()) => {}
    }
}

/// [`for_each_chunk`] that stops at the first error.
#[inline]
pub(crate) fn try_for_each_chunk<K: Key, E>(
    keys: &[K],
    spec: &HashSpec,
    results: &mut BatchResults,
    mut f: impl FnMut(&[u64], &mut [u64]) -> Result<(), E>,
) -> Result<(), E> {
    let mut hashes = Vec::with_capacity(CHUNK.min(keys.len()));
    let words = results.reset(keys.len()).chunks_mut(CHUNK / 64);
    for (keys, words) in keys.chunks(CHUNK).zip(words) {
        hashes.clear();
        spec.hash_all(keys.iter().map(Key::bytes), &mut hashes);
        f(&hashes, words)?;
    }
    Ok(())
}
