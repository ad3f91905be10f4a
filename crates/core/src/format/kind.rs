//! The types of filters.

use core::fmt;
use core::str::FromStr;

use crate::error::{Error, Result};

/// A type of filter. The number of a type that no longer exists is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u16)]
pub enum FilterType {
    /// [`BloomFilter`](crate::BloomFilter).
    Bloom = 1,
    /// [`ClassicBloomFilter`](crate::ClassicBloomFilter).
    Classic = 2,
    /// [`CountingBloomFilter`](crate::CountingBloomFilter).
    Counting = 3,
    /// [`ClassicCountingBloomFilter`](crate::ClassicCountingBloomFilter).
    CountingClassic = 4,
    /// [`QuotientFilter`](crate::QuotientFilter).
    Quotient = 5,
    /// [`ScalableBloomFilter`](crate::ScalableBloomFilter).
    Scalable = 6,
    /// [`WindowedBloomFilter`](crate::WindowedBloomFilter).
    Windowed = 7,
    /// [`StaticFilter`](crate::StaticFilter).
    Static = 8,
    /// [`FilterCascade`](crate::FilterCascade).
    Cascade = 9,
    /// [`VectorQuotientFilter`](crate::VectorQuotientFilter).
    VectorQuotient = 11,
    /// [`StaticFilter`](crate::StaticFilter) as a binary fuse filter.
    StaticFuse = 12,
}

impl FilterType {
    /// All types, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Bloom,
        Self::Classic,
        Self::Counting,
        Self::CountingClassic,
        Self::Quotient,
        Self::Scalable,
        Self::Windowed,
        Self::Static,
        Self::Cascade,
        Self::VectorQuotient,
        Self::StaticFuse,
    ];

    /// Returns the name of the type: `"bloom"`, `"counting-classic"`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bloom => "bloom",
            Self::Classic => "classic",
            Self::Counting => "counting",
            Self::CountingClassic => "counting-classic",
            Self::Quotient => "quotient",
            Self::Scalable => "scalable",
            Self::Windowed => "windowed",
            Self::Static => "static",
            Self::Cascade => "cascade",
            Self::VectorQuotient => "vector-quotient",
            Self::StaticFuse => "static-fuse",
        }
    }

    /// Returns true if a filter of this type is built from all its keys and takes no more.
    #[must_use]
    pub fn is_fixed(self) -> bool {
        matches!(self, Self::Static | Self::StaticFuse | Self::Cascade)
    }

    /// Returns the number of the type in files.
    #[must_use]
    pub fn number(self) -> u16 {
        self as u16
    }

    /// Returns the type with this number in files.
    pub(crate) fn from_number(number: u16) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.number() == number)
            .ok_or_else(|| Error::version(number))
    }
}

impl FromStr for FilterType {
    type Err = Error;

    /// Parses the [name](Self::name) of a type.
    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|filter_type| filter_type.name() == name);
        found.ok_or_else(|| Error::invalid("filter type", "bloom, classic or another name", name))
    }
}

impl fmt::Display for FilterType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
