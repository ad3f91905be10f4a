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

/// Calls `f` with the hashes of keys that are taken from an iterator, a few hundred at a time.
pub(crate) fn for_each_hashed_group<K: Key>(
    keys: impl IntoIterator<Item = K>,
    spec: HashSpec,
    mut f: impl FnMut(&[u64], &mut [u64]),
) {
    const LEN: usize = 256;
    let mut keys = keys.into_iter();
    let mut hashes = [0; LEN];
    loop {
        let mut len = 0;
        for (hash, key) in hashes.iter_mut().zip(keys.by_ref()) {
            *hash = key.hash_with(&spec);
            len += 1;
        }
        if len == 0 {
            return;
        }
        f(&hashes[..len], &mut [0; LEN / 64][..len.div_ceil(64)]);
    }
}

/// Defines the forms of a method for a key, for many keys, and for many hashes.
///
/// The type has the form for one hash. The expression handles many hashes; the words of their
/// results are zero before.
macro_rules! key_methods {
    (
        $self:ident [$($receiver:tt)*] $hash:expr, -> bool;
        $(#[$doc:meta])*
        $name:ident, $one:ident, $batch:ident;
        |$hashes:ident, $results:ident| $run:expr
    ) => {
        $(#[$doc])*
        #[inline]
        pub fn $name<K: $crate::Key + ?Sized>($($receiver)*, key: &K) -> bool {
            $self.$one(key.hash_with(&$hash))
        }

        #[doc = concat!("[`", stringify!($name), "`](Self::", stringify!($name), ") for many keys")]
        #[doc = concat!("in order; `", stringify!($results), "` has one result for each.")]
        ///
        /// Cost: as one by one, but cache misses overlap.
        pub fn $batch<K: $crate::Key>(
            $($receiver)*,
            keys: &[K],
            $results: &mut $crate::BatchResults,
        ) {
            let spec = $hash;
            $crate::batch::for_each_chunk(keys, &spec, $results, |$hashes, $results| $run);
        }
    };
    (
        $self:ident [$($receiver:tt)*] $hash:expr, -> bool;
        $(#[$doc:meta])*
        $name:ident, $one:ident, $batch:ident, $many:ident;
        |$hashes:ident, $results:ident| $run:expr
    ) => {
        $crate::batch::key_methods! {
            $self [$($receiver)*] $hash, -> bool;
            $(#[$doc])*
            $name, $one, $batch;
            |$hashes, $results| $run
        }

        #[doc = concat!("[`", stringify!($batch), "`](Self::", stringify!($batch), ") for hashes.")]
        #[doc(hidden)] // For the crates of this repository.
        pub fn $many(
            $($receiver)*,
            $hashes: &[u64],
            $results: &mut $crate::BatchResults,
        ) {
            let $results = $results.reset($hashes.len());
            $run;
        }
    };
    (
        $self:ident [$($receiver:tt)*] $hash:expr, -> Result<bool>;
        $(#[$doc:meta])*
        $name:ident, $one:ident, $batch:ident, $many:ident;
        |$hashes:ident, $results:ident| $run:expr
    ) => {
        $(#[$doc])*
        #[inline]
        pub fn $name<K: $crate::Key + ?Sized>($($receiver)*, key: &K) -> $crate::Result<bool> {
            $self.$one(key.hash_with(&$hash))
        }

        #[doc = concat!("[`", stringify!($name), "`](Self::", stringify!($name), ") for many keys")]
        #[doc = concat!("in order; `", stringify!($results), "` has one result for each.")]
        ///
        /// Cost: as one by one, but cache misses overlap.
        ///
        /// # Errors
        #[doc = concat!("As [`", stringify!($name), "`](Self::", stringify!($name), "). The keys")]
        /// before the one that failed are in the filter, the others are not.
        pub fn $batch<K: $crate::Key>(
            $($receiver)*,
            keys: &[K],
            $results: &mut $crate::BatchResults,
        ) -> $crate::Result<()> {
            let spec = $hash;
            $crate::batch::try_for_each_chunk(keys, &spec, $results, |$hashes, $results| $run)
        }

        #[doc = concat!("[`", stringify!($batch), "`](Self::", stringify!($batch), ") for hashes.")]
        ///
        /// # Errors
        #[doc = concat!("As [`", stringify!($batch), "`](Self::", stringify!($batch), ").")]
        #[doc(hidden)] // For the crates of this repository.
        pub fn $many(
            $($receiver)*,
            $hashes: &[u64],
            $results: &mut $crate::BatchResults,
        ) -> $crate::Result<()> {
            let $results = $results.reset($hashes.len());
            $run
        }
    };
}
pub(crate) use key_methods;
