//! An amount of memory, as a type of its own.

use core::fmt;

/// An amount of memory in bytes.
///
/// Functions that take a capacity and a memory limit take the limit as a `ByteSize`, so that the
/// two cannot be swapped.
///
/// ```
/// use petal::{BloomFilter, ByteSize, Membership};
///
/// let filter = BloomFilter::with_memory(1_000_000, ByteSize::mib(1))?;
/// assert!(filter.size_bytes() <= ByteSize::mib(1).as_u64());
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

impl ByteSize {
    /// Creates a size of `n` bytes.
    #[must_use]
    pub const fn bytes(n: u64) -> Self {
        Self(n)
    }

    /// Creates a size of `n` KiB (2¹⁰ bytes); the largest size if that overflows.
    #[must_use]
    pub const fn kib(n: u64) -> Self {
        Self(n.saturating_mul(1 << 10))
    }

    /// Creates a size of `n` MiB (2²⁰ bytes); the largest size if that overflows.
    #[must_use]
    pub const fn mib(n: u64) -> Self {
        Self(n.saturating_mul(1 << 20))
    }

    /// Creates a size of `n` GiB (2³⁰ bytes); the largest size if that overflows.
    #[must_use]
    pub const fn gib(n: u64) -> Self {
        Self(n.saturating_mul(1 << 30))
    }

    /// Returns the number of bytes.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_saturate() {
        assert_eq!(ByteSize::kib(3), ByteSize::bytes(3072));
        assert_eq!(ByteSize::mib(1), ByteSize::kib(1024));
        assert_eq!(ByteSize::gib(1), ByteSize::mib(1024));
        assert_eq!(ByteSize::gib(u64::MAX).as_u64(), u64::MAX);
    }
}
