//! An amount of memory, as a type of its own.

use core::fmt;
use core::str::FromStr;

use crate::error::{Error, Result};

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

/// The units of a size, and the exponents of 2 that they stand for.
const UNITS: [(&str, u32); 10] = [
    ("TiB", 40),
    ("GiB", 30),
    ("MiB", 20),
    ("KiB", 10),
    ("T", 40),
    ("G", 30),
    ("M", 20),
    ("K", 10),
    ("bytes", 0),
    ("", 0),
];

impl FromStr for ByteSize {
    type Err = Error;

    /// Parses a whole number with a unit: "64 MiB", "1GiB", "64M", "4096 bytes", "4096".
    fn from_str(text: &str) -> Result<Self> {
        let parse = |(unit, exponent): (&str, u32)| {
            let number: u64 = text.strip_suffix(unit)?.trim_end().parse().ok()?;
            number.checked_mul(1 << exponent).map(Self)
        };
        let expected = "a whole number of bytes, KiB, MiB, GiB or TiB";
        UNITS.into_iter().find_map(parse).ok_or_else(|| Error::invalid("size", expected, text))
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

    #[test]
    fn sizes_are_parsed() {
        for (text, size) in [
            ("4096", ByteSize::bytes(4096)),
            ("1 KiB", ByteSize::kib(1)),
            ("64MiB", ByteSize::mib(64)),
            ("2 TiB", ByteSize::gib(2048)),
            ("64M", ByteSize::mib(64)),
            ("1 T", ByteSize::gib(1024)),
            (&ByteSize::bytes(7).to_string(), ByteSize::bytes(7)),
        ] {
            assert_eq!(text.parse::<ByteSize>().unwrap(), size);
        }
        for text in ["", "MiB", "1.5 MiB", "-1", "1 MB", "99999999 TiB"] {
            assert!(text.parse::<ByteSize>().unwrap_err().is_invalid(), "{text}");
        }
    }
}
