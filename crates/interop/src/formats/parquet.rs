//! Parquet's split-block filter as stored in a Parquet file: a header in Thrift's compact protocol,
//! with the length in bytes and the only defined algorithm, hash and compression, and blocks of 256
//! bits, each eight little-endian words.
//!
//! The bytes of a key, in Parquet's plain encoding without the length of text, are hashed with
//! XXH64. The high half of the hash selects the block; the low half, times an odd number for each
//! word, one bit of every word.
//!
//! The size is that of `optimalNumOfBits` of Parquet's Java library. Its rounding adds up to 255
//! bits before it takes the next power of two; where a size just fits, the C++ library behind
//! pyarrow makes it half as large. That library also folds a filter with fewer keys than its
//! capacity. The Java library stops at 1 MiB unless configured otherwise.
//!
//! Source: Apache Parquet's specification of its Bloom filter; files of parquet-column 1.16.

use std::sync::Arc;

use xxhash_rust::xxh64::xxh64;

use crate::encoding::bits::Bits;
use crate::encoding::thrift::{Kind, Reader};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::formats::format_impl::{BitArrayFormat, HashFn, NewFilter, Plan};
use crate::key_type::KeyType;
use crate::stats::FilterStats;

/// Bytes of a block, and its words of 32 bits.
const BLOCK: usize = 32;
const LANES: usize = 8;
/// Maximum number of bits of the libraries: 128 MiB.
const MAX_BITS: f64 = (1 << 30) as f64;
const SALTS: [u32; LANES] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

#[derive(Clone, Debug)]
pub(crate) struct Parquet {
    /// Bytes of the header.
    pub(crate) header: usize,
    blocks: u32,
}

fn bad<T>(what: &'static str, expected: &str, found: impl std::fmt::Display) -> Result<T> {
    Err(Error::malformed(Format::Parquet.name(), what, expected, found))
}

impl Parquet {
    /// Parses a whole file.
    pub(crate) fn parse(file: &[u8]) -> Result<Self> {
        let filter = Self::begin(file)?;
        let (bytes, there) = (filter.bits().bytes(), file.len() - filter.header);
        if there as u64 != bytes {
            return Err(Error::cut(Format::Parquet, filter.header as u64 + bytes, file));
        }
        Ok(filter)
    }

    /// Parses a header, without the following bytes.
    pub(crate) fn begin(file: &[u8]) -> Result<Self> {
        let (header, bytes) = read_header(file)?;
        match u32::try_from(bytes) {
            Ok(bytes) if bytes > 0 && bytes % BLOCK as u32 == 0 => {
                Ok(Self { header, blocks: bytes / BLOCK as u32 })
            }
            _ => bad("bytes", "a multiple of 32", bytes),
        }
    }

    /// Returns the block of a hash; it does not decrease with the hash.
    #[inline]
    pub(crate) fn block(&self, hash: u64) -> u64 {
        ((hash >> 32) * u64::from(self.blocks)) >> 32
    }

    /// Sizes a filter as parquet-mr's `BlockSplitBloomFilter` does, but refuses one that is too
    /// small.
    pub(crate) fn plan(plan: &Plan) -> Result<NewFilter<Self>> {
        let bits = -8.0 * plan.keys as f64 / (1.0 - plan.rate.powf(0.125)).ln();
        if !(0.0..=MAX_BITS).contains(&bits.trunc()) {
            return Err(Error::limit(
                Format::Parquet,
                format!("{} keys at a rate of {:e} take more than 128 MiB", plan.keys, plan.rate),
                "plan for fewer keys or a higher rate",
            ));
        }
        let bytes = java_bits(bits as u32) / 8;
        let bytes = bytes.next_power_of_two().min(MAX_BITS as u32 / 8);
        let header = header(bytes);
        let layout = Self { header: header.len(), blocks: bytes / BLOCK as u32 };
        let file = plan.file(&header, header.len() as u64 + u64::from(bytes))?;
        Ok((layout, file))
    }
}

/// Rounds a number of bits as the Java library does: it intends the next multiple of 256, but
/// clears one bit instead of eight.
fn java_bits(bits: u32) -> u32 {
    ((bits + 255) & !256).max(256)
}

/// Returns the header of a filter of this size: four fields, of which the last three are unions
/// with an empty struct.
fn header(bytes: u32) -> Vec<u8> {
    let mut header = vec![0x15];
    let mut rest = u64::from(bytes) << 1;
    while rest > 0x7f {
        header.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    header.push(rest as u8);
    for _ in 0..3 {
        header.extend([0x1c, 0x1c, 0, 0]);
    }
    header.push(0);
    header
}

/// Returns the length of the header, and the number of bytes that follow.
fn read_header(file: &[u8]) -> Result<(usize, i32)> {
    let mut reader = Reader::new(file);
    let (mut bytes, mut chosen, mut last) = (None, [false; 3], 0);
    while let Some(field) = reader.field(&mut last)? {
        match (field.id, field.kind) {
            (1, Kind::I32) => bytes = Some(reader.i32()?),
            (2, Kind::Struct) => chosen[0] = first_choice(&mut reader, "algorithm")?,
            (3, Kind::Struct) => chosen[1] = first_choice(&mut reader, "hash")?,
            (4, Kind::Struct) => chosen[2] = first_choice(&mut reader, "compression")?,
            (_, kind) => reader.skip(kind)?,
        }
    }
    match bytes {
        Some(bytes) if chosen == [true; 3] => Ok((reader.position(), bytes)),
        _ => bad("header", "a length, an algorithm, a hash and a compression", "not all of them"),
    }
}

/// Reads a union of which Parquet defines only the first choice.
fn first_choice(reader: &mut Reader, what: &'static str) -> Result<bool> {
    let mut last = 0;
    while let Some(field) = reader.field(&mut last)? {
        if field.id != 1 {
            return bad(what, "number 1, the only one there is", field.id);
        }
        reader.skip(field.kind)?;
    }
    Ok(last == 1)
}

impl BitArrayFormat for Parquet {
    fn format(&self) -> Format {
        Format::Parquet
    }

    fn words(&self) -> usize {
        1
    }

    fn hash_fn(&self) -> HashFn {
        Arc::new(|key, words| words.push(xxh64(key, 0)))
    }

    #[inline]
    fn positions(&self, words: &[u64]) -> impl Iterator<Item = u64> {
        let (block, low) = (self.block(words[0]), words[0] as u32);
        let lanes = SALTS.iter().zip((block * 256..).step_by(32));
        lanes.map(move |(salt, lane)| lane + u64::from(low.wrapping_mul(*salt) >> 27))
    }

    fn bits(&self) -> Bits {
        Bits::low_first(self.header, u64::from(self.blocks) * 256)
    }

    fn probes(&self) -> u32 {
        LANES as u32
    }

    /// A key sets one bit of each word of one block, so the rate is the mean over the blocks of the
    /// probability that all eight are set.
    fn measure(&self, file: &[u8], stats: &mut FilterStats) {
        let bits = self.bits();
        let (mut set, mut rates) = (0_u64, 0.0);
        for block in bits.of(file).as_chunks::<BLOCK>().0 {
            let mut rate = 1.0;
            for lane in block.as_chunks().0 {
                let ones = u32::from_le_bytes(*lane).count_ones();
                set += u64::from(ones);
                rate *= f64::from(ones) / 32.0;
            }
            rates += rate;
        }
        let zero = 1.0 - set as f64 / bits.count as f64;
        let touch = 1.0 / f64::from(self.blocks) / 32.0;
        stats.bits = bits.count;
        stats.set = set;
        stats.probes = LANES as u32;
        stats.layers = 1;
        stats.estimated_keys = Some(petal::math::cardinality(zero, touch));
        stats.estimated_fpr = rates / f64::from(self.blocks);
    }

    fn describe(&self, _file: &[u8], stats: &mut FilterStats) {
        stats.key_types =
            &[KeyType::Text, KeyType::Int64, KeyType::Int32, KeyType::Uint64, KeyType::Uint32];
        stats.not_recorded.push(
            "the type of the column: text for strings and binary values, int64 and int32 \
             for whole numbers of that size, uint64 and uint32 for those without a sign",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ForeignFilter;

    fn sized(keys: u64, rate: f64) -> Result<u32> {
        Ok(Parquet::plan(&Plan::new(keys, rate, 1 << 40)?)?.0.blocks)
    }

    #[test]
    fn sizes_are_powers_of_two_up_to_128_mib() {
        assert_eq!(sized(1, 0.01).unwrap(), 1);
        assert_eq!(sized(600, 0.1).unwrap(), 16);
        // 1,016 bits are needed; with the library's rounding they do not fit into 1,024.
        assert_eq!(sized(105, 0.01).unwrap(), 8);
        assert_eq!(sized(110_000_000, 0.01).unwrap(), 1 << 22);
        for (keys, rate) in [(120_000_000, 0.01), (1, 1e-200), (u64::MAX, 0.9)] {
            assert!(sized(keys, rate).unwrap_err().is_limit(), "{keys} {rate}");
        }
    }

    #[test]
    fn field_order_and_unknown_fields_are_accepted() {
        let mut file = header(32);
        file.resize(file.len() + 32, 0);
        assert_eq!(Parquet::parse(&file).unwrap().blocks, 1);
        // An unknown field 5, and the length last.
        let mut file = b"\x2c\x1c\0\0\x1c\x1c\0\0\x1c\x1c\0\0\x18\x01x\x05\x02\x40\0".to_vec();
        let header = file.len();
        file.resize(header + 32, 0);
        assert_eq!(Parquet::parse(&file).unwrap().header, header);
    }

    #[test]
    fn invalid_headers_are_errors() {
        let mut file = header(64);
        file.resize(file.len() + 64, 0);
        for length in 0..file.len() {
            assert!(Parquet::parse(&file[..length]).is_err(), "{length}");
        }
        let with = |header: &[u8]| {
            let mut file = header.to_vec();
            file.resize(header.len() + 64, 0);
            Parquet::parse(&file).unwrap_err()
        };
        let invalid: [&[u8]; 8] = [
            // 32, 65, 0 and -32 bytes.
            b"\x15\x40\x1c\x1c\0\0\x1c\x1c\0\0\x1c\x1c\0\0\0",
            b"\x15\x82\x01\x1c\x1c\0\0\x1c\x1c\0\0\x1c\x1c\0\0\0",
            b"\x15\x00\x1c\x1c\0\0\x1c\x1c\0\0\x1c\x1c\0\0\0",
            b"\x15\x3f\x1c\x1c\0\0\x1c\x1c\0\0\x1c\x1c\0\0\0",
            // Another algorithm, no algorithm, no compression, no length.
            b"\x15\x80\x01\x1c\x2c\0\0\x1c\x1c\0\0\x1c\x1c\0\0\0",
            b"\x15\x80\x01\x1c\0\x1c\x1c\0\0\x1c\x1c\0\0\0",
            b"\x15\x80\x01\x1c\x1c\0\0\x1c\x1c\0\0\0",
            b"\x2c\x1c\0\0\x1c\x1c\0\0\x1c\x1c\0\0\0",
        ];
        for bytes in invalid {
            assert!(with(bytes).is_malformed(), "{bytes:x?}");
        }
    }

    #[test]
    fn estimates_equal_measurements() {
        for (keys, members) in [(20_000_u64, 20_000_u64), (20_000, 50_000), (20_000, 5_000)] {
            let mut filter = ForeignFilter::with_fpr(Format::Parquet, keys, 0.02).unwrap();
            for key in 0..members {
                filter.insert(&key.to_le_bytes()).unwrap();
            }
            let stats = filter.stats();
            let estimated = stats.estimated_keys.unwrap();
            assert!((estimated / members as f64 - 1.0).abs() < 0.02, "{estimated}");
            let queried = 400_000;
            let yes = (members..members + queried)
                .filter(|key| filter.contains(&key.to_le_bytes()).unwrap())
                .count() as f64;
            let expect = stats.estimated_fpr * queried as f64;
            assert!((yes - expect).abs() < 5.0 * expect.sqrt() + 1.0, "{yes}, not {expect}");
        }
    }
}
