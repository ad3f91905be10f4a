//! Spark's `BloomFilter.writeTo` (org.apache.spark.util.sketch), big-endian: four bytes each for
//! the version, the probes, in version 2 the seed, and the number of 64-bit words; then the words.
//!
//! A key is hashed twice with 32 bits, the second time with the first hash as the seed. Version 1
//! adds the second hash repeatedly in 32 bits, and so addresses 2³¹ bits. Version 2 starts with the
//! first hash times 2³¹ - 1, and adds in 64 bits. The file does not record the type of the keys;
//! integers of any size are hashed as 8 bytes.
//!
//! Source: files and results of the sketch library of Spark 4.1, whose default is version 2 with
//! seed 0.

use std::sync::Arc;

use crate::encoding::bits::Bits;
use crate::encoding::bytes::{be32, to_be32};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::formats::format_impl::{BitArrayFormat, HashFn, MAX_PROBES, NewFilter, Plan, REACH};
use crate::formats::fpr_floor::Stepping;
use crate::hashes::spark::{murmur3, xxhash64};
use crate::key_type::KeyType;
use crate::stats::FilterStats;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V2,
}

#[derive(Clone, Debug)]
pub(crate) struct Spark {
    version: Version,
    probes: u32,
    /// 0 in version 1.
    seed: u32,
    words: u32,
}

impl Version {
    fn format(self) -> Format {
        match self {
            Self::V1 => Format::SparkV1,
            Self::V2 => Format::SparkV2,
        }
    }

    fn number(self) -> u32 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }

    /// Bytes before the words.
    fn header(self) -> usize {
        match self {
            Self::V1 => 12,
            Self::V2 => 16,
        }
    }
}

impl Spark {
    pub(crate) fn parse(file: &[u8], version: Version) -> Result<Self> {
        let bad = |what, expected: &str, found: String| {
            Err(Error::malformed(version.format().name(), what, expected, found))
        };
        let header = version.header();
        let seed = match version {
            Version::V1 => Some(0),
            Version::V2 => be32(file, 8),
        };
        let (Some(number), Some(probes), Some(seed), Some(words)) =
            (be32(file, 0), be32(file, 4), seed, be32(file, header - 4))
        else {
            let expected = format!("{header} bytes or more");
            return bad("length", &expected, format!("{} bytes", file.len()));
        };
        if number != version.number() {
            return bad("version", &version.number().to_string(), number.to_string());
        }
        if !(1..=MAX_PROBES).contains(&u64::from(probes)) {
            return bad("probes", "1 to 4096", probes.to_string());
        }
        if words == 0 || words > i32::MAX as u32 {
            return bad("words", "1 to 2147483647", words.to_string());
        }
        let expected = header as u64 + u64::from(words) * 8;
        if file.len() as u64 != expected {
            return Err(Error::cut(version.format(), expected, file));
        }
        Ok(Self { version, probes, seed, words })
    }

    /// Sizes a filter as `BloomFilter.create` does, but refuses version 1 beyond the bits it can
    /// address.
    pub(crate) fn plan(plan: &Plan, version: Version) -> Result<NewFilter<Self>> {
        let ln2 = std::f64::consts::LN_2;
        let keys = plan.keys as f64;
        let bits = (-keys * plan.rate.ln() / (ln2 * ln2)) as u64;
        let limit = |what, do_this| Err(Error::limit(version.format(), what, do_this));
        if bits == 0 {
            let what = "Spark makes no filter of 0 bits".to_owned();
            return limit(what, "plan for more keys or a lower rate");
        }
        if version == Version::V1 && bits > REACH {
            let what = format!("{bits} bits are needed, version 1 reaches 2147483648");
            return limit(what, "make it spark-v2, or plan for fewer keys or a higher rate");
        }
        let Ok(words) = i32::try_from(bits.div_ceil(64)) else {
            let what = format!("{bits} bits are needed, 137438953408 are the most");
            return limit(what, "plan for fewer keys or a higher rate");
        };
        let probes = (bits as f64 / keys * ln2).round().max(1.0) as u32;
        let layout = Self { version, probes, seed: 0, words: words.cast_unsigned() };
        let mut header = [version.number(), probes].map(to_be32).concat();
        if version == Version::V2 {
            header.extend(to_be32(layout.seed));
        }
        header.extend(to_be32(layout.words));
        let file = plan.file(&header, header.len() as u64 + u64::from(layout.words) * 8)?;
        Ok((layout, file))
    }
}

impl BitArrayFormat for Spark {
    fn format(&self) -> Format {
        self.version.format()
    }

    fn words(&self) -> usize {
        1
    }

    /// Both hashes in one word, the first one in the low half.
    fn hash_fn(&self) -> HashFn {
        let seed = self.seed;
        Arc::new(move |key, words| {
            let first = murmur3(key, seed);
            words.push(u64::from(first) | u64::from(murmur3(key, first)) << 32);
        })
    }

    #[inline]
    fn positions(&self, words: &[u64]) -> impl Iterator<Item = u64> {
        let (version, bits) = (self.version, u64::from(self.words) * 64);
        let (first, step) = (words[0] as i32, (words[0] >> 32) as i32);
        let mut sum = match version {
            Version::V1 => i64::from(first),
            Version::V2 => i64::from(first) * i64::from(i32::MAX),
        };
        (0..self.probes).map(move |_| {
            sum = sum.wrapping_add(step.into());
            let place = match version {
                Version::V1 => i64::from(sum as i32),
                Version::V2 => sum,
            };
            (if place < 0 { !place } else { place }) as u64 % bits
        })
    }

    fn bits(&self) -> Bits {
        Bits::high_byte_words(self.version.header(), self.words.into())
    }

    fn probes(&self) -> u32 {
        self.probes
    }

    fn reach(&self) -> u64 {
        if self.version == Version::V1 { REACH } else { u64::MAX }
    }

    /// Version 2 adds 32-bit steps in 64 bits, which do not overflow.
    fn stepping(&self) -> Option<Stepping> {
        Some(Stepping {
            modulus: self.bits().count,
            width: 32,
            shift: 0,
            signed: self.version == Version::V2,
            put: &[|words, step| words[0] = words[0] & 0xffff_ffff | step << 32],
        })
    }

    fn describe(&self, _file: &[u8], stats: &mut FilterStats) {
        stats.choice("version", self.version.number());
        if self.version == Version::V2 {
            stats.choice("seed", self.seed.cast_signed());
        } else if self.bits().count > REACH {
            stats.warnings.push(
                "version 1 sets none of the bits from 2^31 on: such a filter is worse than it \
                 looks; version 2 has no such limit",
            );
        }
        stats.key_types = &[KeyType::Text, KeyType::Int64];
        stats.not_recorded.push(
            "the type of the keys: text for strings and binary values, int64 for whole \
             numbers of any size",
        );
    }
}

/// Returns the function `xxhash64` of Spark SQL.
pub(crate) fn sql_hash_fn() -> HashFn {
    Arc::new(|key, words| words.push(xxhash64(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_beyond_the_format_are_errors() {
        let plan = |keys, rate, version| {
            Spark::plan(&Plan::new(keys, rate, 1 << 40).unwrap(), version).unwrap_err()
        };
        assert!(plan(1, 0.9, Version::V2).is_limit());
        assert!(plan(1 << 30, 0.01, Version::V1).is_limit());
        assert!(plan(1 << 40, 0.01, Version::V2).is_limit());
    }

    #[test]
    fn invalid_headers_are_errors() {
        let plan = Plan::new(10, 0.01, 1000).unwrap();
        for version in [Version::V1, Version::V2] {
            let (_, file) = Spark::plan(&plan, version).unwrap();
            Spark::parse(&file, version).unwrap();
            // Version, probes, words, each with a changed byte.
            for (at, value) in [(3, 7), (4, 0x80), (7, 0), (version.header() - 1, 1)] {
                let mut file = file.clone();
                file[at] = value;
                assert!(Spark::parse(&file, version).unwrap_err().is_malformed(), "{at}");
            }
            let whole = file.len();
            for length in 0..whole {
                assert!(Spark::parse(&file[..length], version).is_err(), "{length}");
            }
        }
    }
}
