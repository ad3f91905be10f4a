//! Where the bits live: memory of our own, a mapped file, or bytes that somebody lends; or memory
//! of our own that many threads change at once.
//!
//! The unit is the [`Line`], one cache line of eight 64-bit words. Words are kept so that their
//! *bytes* are little-endian, on every machine: memory, file and map hold the same bytes, and
//! whoever looks at a word turns it with `from_le` first.
//!
//! One of the rooms in which `unsafe` is allowed: it allocates aligned memory and looks at bytes
//! as lines.

#![allow(unsafe_code)]

mod mapped;
mod owned;
mod shared;

pub use mapped::Mapped;
pub use owned::{Mover, Owned, use_allocator_only};
pub(crate) use shared::AtomicLine;
#[cfg(not(all(loom, test)))]
pub(crate) use shared::Shared;

use std::ops::Range;

use crate::error::{Error, Result};

/// One cache line: eight words whose bytes are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Line(pub(crate) [u64; 8]);

impl Line {
    pub(crate) const BYTES: usize = 64;
    pub(crate) const ZERO: Self = Self([0; 8]);

    /// All bits that are set in either.
    #[inline]
    pub(crate) fn or(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] | other.0[at]))
    }

    /// How many bits are set.
    #[inline]
    pub(crate) fn count_ones(self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

/// Lends the lines of a filter. Sealed: [`Owned`], [`Mapped`], [`Lent`].
pub trait Store: sealed::Sealed + std::fmt::Debug + Send + Sync {
    /// The lines.
    fn lines(&self) -> &[Line];

    /// Bytes of memory of its own that it takes; a file's pages and lent bytes are not.
    fn memory_usage(&self) -> u64;
}

/// Stores of which a piece is a store again, without a copy: [`Mapped`], [`Lent`].
pub(crate) trait Pieces: Store + Sized {
    /// The lines in a range, which must be there.
    fn piece(&self, lines: Range<usize>) -> Self;
}

/// Lends the lines of a filter to be changed. Sealed: [`Owned`].
pub trait StoreMut: Store {
    /// The lines.
    fn lines_mut(&mut self) -> &mut [Line];

    /// Another store of this kind, of so many lines of zeros.
    ///
    /// # Errors
    /// If the memory is refused.
    fn of_zeros(lines: u64) -> Result<Self>
    where
        Self: Sized;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Owned {}
    impl Sealed for super::Mapped {}
    impl Sealed for super::Lent<'_> {}
}

/// Bytes that somebody else owns, in place.
#[derive(Clone, Copy, Debug)]
pub struct Lent<'a>(&'a [Line]);

impl<'a> Lent<'a> {
    /// Lines that are there.
    pub(crate) fn of(lines: &'a [Line]) -> Self {
        Self(lines)
    }

    /// The bytes as lines.
    ///
    /// # Errors
    /// If they do not begin at a multiple of 64 in memory.
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self> {
        lines_of(bytes).map(Self).ok_or_else(Error::unaligned)
    }
}

impl Store for Lent<'_> {
    #[inline]
    fn lines(&self) -> &[Line] {
        self.0
    }

    fn memory_usage(&self) -> u64 {
        0
    }
}

impl Pieces for Lent<'_> {
    fn piece(&self, lines: Range<usize>) -> Self {
        Self(&self.0[lines])
    }
}

/// The bytes as lines, if they are aligned to lines and whole lines.
fn lines_of(bytes: &[u8]) -> Option<&[Line]> {
    if !bytes.len().is_multiple_of(Line::BYTES)
        || !bytes.as_ptr().addr().is_multiple_of(align_of::<Line>())
    {
        return None;
    }
    // SAFETY: the pointer is aligned for `Line` and the length is a whole number of lines, both
    // checked above; every bit pattern is a `Line`, which has no padding (8 words of 8 bytes, 64
    // aligned); the result borrows from `bytes`, so the memory stays, shared and unchanged.
    Some(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / Line::BYTES) })
}

/// The lines as the bytes a file holds.
pub(crate) fn bytes_of(lines: &[Line]) -> &[u8] {
    // SAFETY: a `Line` is 64 initialised bytes without padding; `u8` needs no alignment; the
    // length in bytes is that of a slice that exists, so it cannot overflow; borrowed as above.
    unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), size_of_val(lines)) }
}

/// The lines as bytes to be read into.
pub(crate) fn bytes_of_mut(lines: &mut [Line]) -> &mut [u8] {
    // SAFETY: as in `bytes_of`; any bytes written are a valid `Line`; the borrow is exclusive.
    unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), size_of_val(lines)) }
}

/// The lines as words.
pub(crate) fn words_of(lines: &[Line]) -> &[u64] {
    // SAFETY: a `Line` is eight words without padding, and at least as aligned as a word; the
    // number of words is that of a slice that exists, so it cannot overflow; borrowed as above.
    unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), lines.len() * 8) }
}

/// The lines as words to be written to.
pub(crate) fn words_of_mut(lines: &mut [Line]) -> &mut [u64] {
    // SAFETY: as in `words_of`; any word is part of a valid `Line`; the borrow is exclusive.
    unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), lines.len() * 8) }
}

/// The lines as half words, which are little-endian as words are.
pub(crate) fn halves_of(lines: &[Line]) -> &[u32] {
    // SAFETY: a `Line` is sixteen half words without padding, and at least as aligned as one; the
    // number of them is at most that of the bytes of a slice that exists; borrowed as above.
    unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), lines.len() * 16) }
}

/// The lines as half words to be written to.
pub(crate) fn halves_of_mut(lines: &mut [Line]) -> &mut [u32] {
    // SAFETY: as in `halves_of`; any half word is part of a valid `Line`; the borrow is exclusive.
    unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), lines.len() * 16) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_lines_are_the_same_memory() {
        let mut store = Owned::zeroed(3).unwrap();
        bytes_of_mut(store.lines_mut())[64] = 1;
        assert_eq!(u64::from_le(store.lines()[1].0[0]), 1);
        let bytes = bytes_of(store.lines());
        assert_eq!((bytes.len(), bytes[64]), (192, 1));
        assert_eq!(Lent::new(bytes).unwrap().lines(), store.lines());
        assert!(Lent::new(&bytes[1..65]).is_err());
        assert!(Lent::new(&bytes[..63]).is_err());
        assert_eq!(Lent::new(&bytes[..0]).unwrap().lines().len(), 0);
    }
}
