//! The list of formats.

use std::fmt;

/// The file format of a filter, as one program or library writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Parquet's split-block filter with its Thrift header, as stored in a Parquet file.
    Parquet,
    /// Guava's `BloomFilter.writeTo`, strategy MURMUR128_MITZ_64, the current one.
    Guava,
    /// Guava's `BloomFilter.writeTo`, strategy MURMUR128_MITZ_32, of Guava before 16.
    Guava32,
    /// Spark's `BloomFilter.writeTo`, version 1.
    SparkV1,
    /// Spark's `BloomFilter.writeTo`, version 2, the default since Spark 4.1.
    SparkV2,
    /// The chunks of RedisBloom's `BF.SCANDUMP`, concatenated.
    RedisBloom,
    /// DCSO's `bloom`, version 1; also version 1 of poppy.
    Dcso,
    /// CIRCL's poppy, version 2.
    Poppy,
    /// `BloomFilter.WriteTo` of the Go package bits-and-blooms/bloom, version 3.
    GoBloom,
    /// The digest that Squid caches exchange.
    SquidDigest,
    /// Apache DataSketches' `BloomFilter.toByteArray`.
    DataSketches,
    /// `Bloom.save` of the Python package rbloom.
    Rbloom,
    /// Hadoop's `BloomFilter.write` with Jenkins' hash.
    HadoopJenkins,
    /// Hadoop's `BloomFilter.write` with MurmurHash2.
    HadoopMurmur,
    /// `BloomFilter.tofile` of the Python package pybloom-live, version 4.
    Pybloom,
    /// Mozilla's filter cascade, version 2; version 1 can be read.
    FilterCascade,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 16] = [
        Self::Parquet,
        Self::Guava,
        Self::Guava32,
        Self::SparkV1,
        Self::SparkV2,
        Self::RedisBloom,
        Self::Dcso,
        Self::Poppy,
        Self::GoBloom,
        Self::SquidDigest,
        Self::DataSketches,
        Self::Rbloom,
        Self::HadoopJenkins,
        Self::HadoopMurmur,
        Self::Pybloom,
        Self::FilterCascade,
    ];

    /// Returns the name, as on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Guava => "guava",
            Self::Guava32 => "guava-32",
            Self::SparkV1 => "spark-v1",
            Self::SparkV2 => "spark-v2",
            Self::RedisBloom => "redisbloom",
            Self::Dcso => "dcso",
            Self::Poppy => "poppy",
            Self::GoBloom => "go-bloom",
            Self::SquidDigest => "squid-digest",
            Self::DataSketches => "datasketches",
            Self::Rbloom => "rbloom",
            Self::HadoopJenkins => "hadoop-jenkins",
            Self::HadoopMurmur => "hadoop-murmur",
            Self::Pybloom => "pybloom",
            Self::FilterCascade => "filter-cascade",
        }
    }

    /// Returns true if the bytes of a file identify this format.
    #[must_use]
    pub fn is_recognizable(self) -> bool {
        self != Self::Rbloom
    }

    /// Returns the format with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
