//! The keys of a filter that is built: their hashes, and which of two lists they are in.

#[cfg(not(feature = "std"))]
use crate::no_std::*;

use crate::error::{Error, Result};

/// A hash, and which of two lists it is in if the filter tells them apart.
pub(super) trait HashedKey: Copy + Default + Ord + Send + Sync {
    /// Whether a key knows its list.
    const HAS_LIST: bool;

    fn new(hash: u64, other: bool) -> Self;

    fn hash(self) -> u64;

    fn is_other(self) -> bool;

    /// Returns the key of the same list with this hash.
    fn with_hash(self, hash: u64) -> Self {
        Self::new(hash, self.is_other())
    }
}

impl HashedKey for u64 {
    const HAS_LIST: bool = false;

    fn new(hash: u64, _: bool) -> Self {
        hash
    }

    fn hash(self) -> u64 {
        self
    }

    fn is_other(self) -> bool {
        false
    }
}

/// A hash of a member or of another key, which a filter must not contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ListedKey {
    hash: u64,
    other: bool,
}

impl HashedKey for ListedKey {
    const HAS_LIST: bool = true;

    fn new(hash: u64, other: bool) -> Self {
        Self { hash, other }
    }

    fn hash(self) -> u64 {
        self.hash
    }

    fn is_other(self) -> bool {
        self.other
    }
}

/// Makes space for `more` elements, and for as many again if the vector grows.
pub(super) fn grow<T>(vec: &mut Vec<T>, more: usize) -> Result<()> {
    let free = vec.capacity() - vec.len();
    if more > free { reserve(vec, more.max(vec.len())) } else { Ok(()) }
}

/// Returns `len` default keys.
pub(super) fn default_keys<K: HashedKey>(len: usize) -> Result<Vec<K>> {
    let mut keys = Vec::new();
    reserve(&mut keys, len)?;
    keys.resize(len, K::default());
    Ok(keys)
}

/// Reserves space for `more` elements, or returns an error.
pub(super) fn reserve<T>(vec: &mut Vec<T>, more: usize) -> Result<()> {
    let refused = |_| Error::alloc((more as u64).saturating_mul(size_of::<T>() as u64));
    vec.try_reserve_exact(more).map_err(refused)
}
