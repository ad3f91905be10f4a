//! The traits of stores.

use core::fmt::Debug;
use core::ops::Range;

use super::cache_line::CacheLine;
use crate::error::Result;

/// Access to the cache lines of a filter. Sealed: [`Owned`](super::Owned),
/// [`Mapped`](super::Mapped), [`Borrowed`](super::Borrowed).
pub trait Store: Sealed + Debug + Send + Sync {
    /// Returns the cache lines.
    fn lines(&self) -> &[CacheLine];

    /// Returns the bytes of memory that the store owns; mapped and borrowed bytes do not count.
    fn memory_usage(&self) -> u64;
}

/// Mutable access to the cache lines of a filter. Sealed: [`Owned`](super::Owned).
pub trait StoreMut: Store {
    /// Returns the cache lines.
    fn lines_mut(&mut self) -> &mut [CacheLine];

    /// Returns a new store with `lines` lines of zeros.
    ///
    /// # Errors
    /// If the memory cannot be allocated.
    fn new_zeroed(lines: u64) -> Result<Self>
    where
        Self: Sized;
}

/// A store of which a part is a store, without a copy: [`Mapped`](super::Mapped),
/// [`Borrowed`](super::Borrowed).
pub(crate) trait SliceStore: Store + Sized {
    /// Returns the lines in a range, which must exist.
    fn slice_lines(&self, lines: Range<usize>) -> Self;
}

/// Not public: prevents implementations outside this module.
pub trait Sealed {}
