//! The cache line, and conversions between cache lines, bytes and words.

/// A cache line: eight words whose bytes are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct CacheLine(pub(crate) [u64; 8]);

impl CacheLine {
    pub(crate) const BYTES: usize = 64;
    pub(crate) const ZERO: Self = Self([0; 8]);

    /// Returns the bitwise OR.
    #[inline]
    pub(crate) fn or(self, other: Self) -> Self {
        Self(core::array::from_fn(|at| self.0[at] | other.0[at]))
    }

    /// Returns the number of set bits.
    #[inline]
    pub(crate) fn count_ones(self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

/// Returns the bytes as cache lines; `None` if they are not aligned or not whole lines.
pub(super) fn bytes_as_lines(bytes: &[u8]) -> Option<&[CacheLine]> {
    if !bytes.len().is_multiple_of(CacheLine::BYTES)
        || !bytes.as_ptr().addr().is_multiple_of(align_of::<CacheLine>())
    {
        return None;
    }
    let lines = bytes.len() / CacheLine::BYTES;
    // SAFETY: the pointer is aligned for `CacheLine` and the length is a whole number of lines, both
    // checked above; every bit pattern is a `CacheLine`, which has no padding (8 words of 8 bytes,
    // 64 aligned); the result borrows from `bytes`, so the memory stays, shared and unchanged.
    Some(unsafe { core::slice::from_raw_parts(bytes.as_ptr().cast(), lines) })
}

/// Returns cache lines as bytes, as they are in a file.
pub(crate) fn lines_as_bytes(lines: &[CacheLine]) -> &[u8] {
    // SAFETY: a `CacheLine` is 64 initialised bytes without padding; `u8` needs no alignment; the
    // length in bytes is that of an existing slice, so it cannot overflow; the
    // result borrows from `lines`.
    unsafe { core::slice::from_raw_parts(lines.as_ptr().cast(), size_of_val(lines)) }
}

/// Returns cache lines as mutable bytes.
pub(crate) fn lines_as_bytes_mut(lines: &mut [CacheLine]) -> &mut [u8] {
    // SAFETY: as in `lines_as_bytes`; any bytes are a valid `CacheLine`; the borrow is exclusive.
    unsafe { core::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), size_of_val(lines)) }
}

/// Returns a cache line as bytes.
#[inline(always)]
pub(crate) fn line_as_bytes(line: &CacheLine) -> &[u8; CacheLine::BYTES] {
    // SAFETY: a `CacheLine` is 64 initialised bytes without padding; the result borrows from `line`.
    unsafe { &*core::ptr::from_ref(line).cast() }
}

/// Returns a cache line as mutable bytes.
#[inline(always)]
pub(crate) fn line_as_bytes_mut(line: &mut CacheLine) -> &mut [u8; CacheLine::BYTES] {
    // SAFETY: as in `line_as_bytes`; any bytes are a valid `CacheLine`; the borrow is exclusive.
    unsafe { &mut *core::ptr::from_mut(line).cast() }
}

/// Returns cache lines as little-endian words.
#[inline]
pub(crate) fn lines_as_words(lines: &[CacheLine]) -> &[u64] {
    // SAFETY: a `CacheLine` is eight words without padding, and at least as aligned as a word; the
    // number of words is that of an existing slice, so it cannot overflow; the
    // result borrows from `lines`.
    unsafe { core::slice::from_raw_parts(lines.as_ptr().cast(), lines.len() * 8) }
}

/// Returns cache lines as mutable little-endian words.
#[inline]
pub(crate) fn lines_as_words_mut(lines: &mut [CacheLine]) -> &mut [u64] {
    // SAFETY: as in `lines_as_words`; any word is part of a valid `CacheLine`; the borrow is
    // exclusive.
    unsafe { core::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), lines.len() * 8) }
}

/// Returns cache lines as little-endian half words.
pub(crate) fn lines_as_half_words(lines: &[CacheLine]) -> &[u32] {
    // SAFETY: a `CacheLine` is sixteen half words without padding, and at least as aligned as one;
    // their number is at most the number of bytes of an existing slice; the result borrows from
    // `lines`.
    unsafe { core::slice::from_raw_parts(lines.as_ptr().cast(), lines.len() * 16) }
}

/// Returns cache lines as mutable little-endian half words.
pub(crate) fn lines_as_half_words_mut(lines: &mut [CacheLine]) -> &mut [u32] {
    // SAFETY: as in `lines_as_half_words`; any half word is part of a valid `CacheLine`; the borrow
    // is exclusive.
    unsafe { core::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), lines.len() * 16) }
}

#[cfg(test)]
mod tests {
    use super::super::{Borrowed, Owned, Store as _, StoreMut as _};
    use super::*;

    #[test]
    fn bytes_and_lines_share_memory() {
        let mut store = Owned::zeroed(3).unwrap();
        lines_as_bytes_mut(store.lines_mut())[64] = 1;
        assert_eq!(u64::from_le(store.lines()[1].0[0]), 1);
        let bytes = lines_as_bytes(store.lines());
        assert_eq!((bytes.len(), bytes[64]), (192, 1));
        assert_eq!(Borrowed::new(bytes).unwrap().lines(), store.lines());
        assert!(Borrowed::new(&bytes[1..65]).is_err());
        assert!(Borrowed::new(&bytes[..63]).is_err());
        assert_eq!(Borrowed::new(&bytes[..0]).unwrap().lines().len(), 0);
    }
}
