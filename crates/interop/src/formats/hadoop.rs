//! Hadoop's `BloomFilter.write` (org.apache.hadoop.util.bloom), which Apache Hudi stores in base64
//! in the footers of its files. Big-endian: -1 in four bytes, the probes in four, the hash in one
//! (0 Jenkins, 1 Murmur), the number of bits in four; then the bits, least significant first.
//!
//! A key is hashed once per probe, with the previous hash as the seed. A hash as a signed number
//! modulo the number of bits, without its sign, is a position. Empty keys are refused. The file
//! does not have the weights that Hadoop gives keys.
//!
//! Hadoop leaves the size to the user; petal uses Hudi's formulas. Source: files and results of
//! Hadoop's client library 3.4.

use std::sync::Arc;

use crate::encoding::bits::Bits;
use crate::encoding::bytes::{be32, to_be32};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::formats::format_impl::{BitArrayFormat, HashFn, NewFilter, Plan};
use crate::hashes::hadoop::{jenkins, murmur2};
use crate::stats::FilterStats;

const HEADER: usize = 13;
const VERSION: u32 = u32::MAX;
/// Each probe is a word of a key; the smallest possible rate needs 1,075.
const MAX_PROBES: u32 = 2048;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hash {
    Jenkins,
    Murmur,
}

#[derive(Clone, Debug)]
pub(crate) struct Hadoop {
    hash: Hash,
    probes: u32,
    bits: u32,
}

impl Hash {
    fn format(self) -> Format {
        match self {
            Self::Jenkins => Format::HadoopJenkins,
            Self::Murmur => Format::HadoopMurmur,
        }
    }

    fn number(self) -> u8 {
        match self {
            Self::Jenkins => 0,
            Self::Murmur => 1,
        }
    }
}

impl Hadoop {
    pub(crate) fn parse(file: &[u8], hash: Hash) -> Result<Self> {
        let bad = |what, expected: &str, found: String| {
            Err(Error::malformed(hash.format().name(), what, expected, found))
        };
        let (Some(version), Some(probes), Some(&number), Some(bits)) =
            (be32(file, 0), be32(file, 4), file.get(8), be32(file, 9))
        else {
            return bad("length", "13 bytes or more", format!("{} bytes", file.len()));
        };
        if version != VERSION {
            return bad("version", "-1", version.cast_signed().to_string());
        }
        if number != hash.number() {
            return bad("hash", &hash.number().to_string(), number.to_string());
        }
        if !(1..=MAX_PROBES).contains(&probes) {
            return bad("probes", "1 to 2048", probes.to_string());
        }
        if bits == 0 || bits > i32::MAX as u32 {
            return bad("bits", "1 to 2147483647", bits.to_string());
        }
        let expected = HEADER + bits.div_ceil(8) as usize;
        if file.len() != expected {
            return Err(Error::cut(hash.format(), expected as u64, file));
        }
        Ok(Self { hash, probes, bits })
    }

    /// Sizes a filter as Hudi does.
    pub(crate) fn plan(plan: &Plan, hash: Hash) -> Result<NewFilter<Self>> {
        let ln2 = std::f64::consts::LN_2;
        let keys = plan.keys as f64;
        let bits = (keys * (-plan.rate.ln() / (ln2 * ln2))).ceil();
        let probes = (ln2 * bits / keys).ceil() as u32;
        if bits > f64::from(i32::MAX) {
            return Err(Error::limit(
                hash.format(),
                format!("{bits} bits are needed, 2147483647 are the most"),
                "plan for fewer keys or a higher rate",
            ));
        }
        let layout = Self { hash, probes, bits: bits as u32 };
        let mut header = [VERSION, probes].map(to_be32).concat();
        header.push(hash.number());
        header.extend(to_be32(layout.bits));
        let file = plan.file(&header, HEADER as u64 + u64::from(layout.bits.div_ceil(8)))?;
        Ok((layout, file))
    }
}

impl BitArrayFormat for Hadoop {
    fn format(&self) -> Format {
        self.hash.format()
    }

    /// One per probe: none follows from the others without the key.
    fn words(&self) -> usize {
        self.probes as usize
    }

    fn hash_fn(&self) -> HashFn {
        let probes = self.probes;
        let hash = match self.hash {
            Hash::Jenkins => jenkins,
            Hash::Murmur => murmur2,
        };
        Arc::new(move |key, words| {
            let mut last = 0;
            words.extend((0..probes).map(|_| {
                last = hash(key, last);
                u64::from(last)
            }));
        })
    }

    fn takes_empty_keys(&self) -> bool {
        false
    }

    #[inline]
    fn positions(&self, words: &[u64]) -> impl Iterator<Item = u64> {
        let bits = self.bits;
        words.iter().map(move |word| u64::from((*word as i32).unsigned_abs() % bits))
    }

    fn bits(&self) -> Bits {
        Bits::low_first(HEADER, self.bits.into())
    }

    fn probes(&self) -> u32 {
        self.probes
    }

    fn describe(&self, _file: &[u8], stats: &mut FilterStats) {
        stats.choice(
            "hash",
            match self.hash {
                Hash::Jenkins => "Jenkins",
                Hash::Murmur => "Murmur",
            },
        );
    }

    fn check(&self, file: &[u8]) -> Result<()> {
        let bits = self.bits();
        bits.check_padding(file, bits.bytes() * 8, self.hash.format())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_beyond_the_limits_are_errors() {
        let plan = Plan::new(1 << 30, 0.01, 1 << 40).unwrap();
        assert!(Hadoop::plan(&plan, Hash::Murmur).unwrap_err().is_limit());
        let plan = Plan::new(10, 0.01, 1000).unwrap();
        let (layout, _) = Hadoop::plan(&plan, Hash::Murmur).unwrap();
        assert!(!BitArrayFormat::takes_empty_keys(&layout));
    }

    #[test]
    fn invalid_headers_are_errors() {
        let plan = Plan::new(5, 0.01, 1000).unwrap();
        for hash in [Hash::Jenkins, Hash::Murmur] {
            let (_, file) = Hadoop::plan(&plan, hash).unwrap();
            Hadoop::parse(&file, hash).unwrap();
            for (at, value) in [(0, 0), (4, 0x80), (7, 0), (8, 2), (9, 0xff), (12, 0), (12, 1)] {
                let mut file = file.clone();
                file[at] = value;
                assert!(Hadoop::parse(&file, hash).unwrap_err().is_malformed(), "{at}");
            }
            for length in 0..file.len() {
                assert!(Hadoop::parse(&file[..length], hash).is_err(), "{length}");
            }
        }
    }

    #[test]
    fn bits_after_the_last_one_are_errors() {
        for bits in 1..=16_u8 {
            let mut file = [&[0xff; 4][..], &[0, 0, 0, 7, 1, 0, 0, 0, bits]].concat();
            file.resize(HEADER + usize::from(bits).div_ceil(8), 0xff);
            let last = file.len() - 1;
            file[last] = 0xff >> (bits.next_multiple_of(8) - bits);
            let layout = Hadoop::parse(&file, Hash::Murmur).unwrap();
            BitArrayFormat::check(&layout, &file).unwrap();
            if bits % 8 > 0 {
                file[last] |= 1 << (bits % 8);
                assert!(
                    BitArrayFormat::check(&layout, &file).unwrap_err().is_malformed(),
                    "{bits}"
                );
            }
        }
    }
}
