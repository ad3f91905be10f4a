//! Which formats there are.

use std::fmt;

/// A file format of filters, as one program or library writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Parquet's split-block filter, with its Thrift header, as it lies in a Parquet file.
    Parquet,
    /// Guava's `BloomFilter.writeTo`, strategy MURMUR128_MITZ_64, which Guava makes today.
    Guava,
    /// The same with strategy MURMUR128_MITZ_32, of Guava before 16.
    Guava32,
    /// Spark's `BloomFilter.writeTo`, version 1.
    SparkV1,
    /// The same, version 2, the default since Spark 4.1.
    SparkV2,
    /// The chunks of RedisBloom's `BF.SCANDUMP`, one after the other.
    RedisBloom,
    /// DCSO's `bloom`, version 1.
    Dcso,
    /// `BloomFilter.WriteTo` of the Go package bits-and-blooms/bloom, version 3.
    GoBloom,
    /// The digest that Squid caches exchange.
    SquidDigest,
    /// Apache DataSketches' `BloomFilter.toByteArray`.
    DataSketches,
    /// `Bloom.save` of the Python package rbloom.
    Rbloom,
    /// Hadoop's `BloomFilter.write`, with Jenkins' hash.
    HadoopJenkins,
    /// The same with Murmur's.
    HadoopMurmur,
    /// `BloomFilter.tofile` of the Python package pybloom-live, version 4.
    Pybloom,
    /// Mozilla's filter cascade, version 2; version 1 is read, too.
    FilterCascade,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 15] = [
        Self::Parquet,
        Self::Guava,
        Self::Guava32,
        Self::SparkV1,
        Self::SparkV2,
        Self::RedisBloom,
        Self::Dcso,
        Self::GoBloom,
        Self::SquidDigest,
        Self::DataSketches,
        Self::Rbloom,
        Self::HadoopJenkins,
        Self::HadoopMurmur,
        Self::Pybloom,
        Self::FilterCascade,
    ];

    /// Its name, as on the command line.
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

    /// Whether files of this format can be told from all others by their bytes.
    #[must_use]
    pub fn is_told_by_its_bytes(self) -> bool {
        self != Self::Rbloom
    }

    /// The format of that name.
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
