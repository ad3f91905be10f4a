//! The memory of a filter's bits: owned, borrowed, mapped from a file, or shared by threads.
//!
//! The unit is the [`CacheLine`]: eight 64-bit words. The *bytes* of a word are little-endian on
//! every machine, so memory, file and map have the same bytes. Code converts words with `from_le` and
//! `to_le`.
//!
//! `unsafe` code in this module allocates aligned memory, maps files, and converts between cache
//! lines and bytes.

#![allow(unsafe_code)]

mod borrowed;
mod cache_line;
#[cfg(feature = "mmap")]
mod mapped;
mod owned;
#[cfg(feature = "std")]
mod shared;
mod traits;

pub use borrowed::Borrowed;
pub(crate) use cache_line::{
    CacheLine, line_as_bytes, line_as_bytes_mut, lines_as_bytes, lines_as_bytes_mut,
    lines_as_half_words, lines_as_half_words_mut, lines_as_words, lines_as_words_mut,
};
#[cfg(feature = "mmap")]
pub use mapped::Mapped;
pub use owned::{Owned, Relocator, Words, use_global_allocator};
#[cfg(feature = "std")]
pub(crate) use shared::AtomicCacheLine;
#[cfg(all(feature = "std", not(all(loom, test))))]
pub(crate) use shared::Shared;
pub(crate) use traits::SliceStore;
pub use traits::{Store, StoreMut};
