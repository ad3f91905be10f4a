//! Apache DataSketches' `BloomFilter.toByteArray`, little-endian: one byte each for the 8-byte
//! words of the header (4, or 3 if the filter is empty), the version (1), the family (21) and
//! flags; two bytes of probes and two unused; eight of seed; four for the number of 64-bit words
//! and four unused. An empty filter ends here. Others continue with the number of set bits in eight
//! bytes, and the words.
//!
//! A key is hashed with XXH64 and the seed, then with that hash as the seed. The second hash is
//! added for each probe, and the sum without its lowest bit, modulo the number of bits, is a
//! position. Empty keys are skipped.
//!
//! The number of set bits is -1 after an `update`, and is counted by a union. `createByAccuracy`
//! takes a random seed if none is given; petal always takes 12345.
//!
//! Source: files and results of datasketches-java 6.2, and its documented preamble.

use std::sync::Arc;

use xxhash_rust::xxh64::xxh64;

use crate::encoding::bits::Bits;
use crate::encoding::bytes::{le16, le32, le64, put};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::formats::format_impl::{BitArrayFormat, HashFn, MAX_PROBES, NewFilter, Plan};
use crate::formats::fpr_floor::Stepping;
use crate::key_type::KeyType;
use crate::stats::FilterStats;

/// Bytes of an empty filter.
const EMPTY: usize = 24;
/// Offset of the number of set bits; the words follow it.
const SET: usize = 24;
const HEADER: usize = 32;
const VERSION: u8 = 1;
const FAMILY: u8 = 21;
/// The flag of an empty filter.
const IS_EMPTY: u8 = 4;
/// The value of an unknown number of set bits.
const UNCOUNTED: u64 = u64::MAX;
/// Maximum number of words that the library makes.
const MAX_WORDS: u32 = i32::MAX as u32 - 4;
const SEED: u64 = 12345;

#[derive(Clone, Debug)]
pub(crate) struct DataSketches {
    probes: u16,
    seed: u64,
    words: u32,
}

fn bad<T>(what: &'static str, expected: &str, found: impl std::fmt::Display) -> Result<T> {
    Err(Error::malformed(Format::DataSketches.name(), what, expected, found))
}

impl DataSketches {
    pub(crate) fn parse(file: &[u8]) -> Result<Self> {
        let (Some(&[longs, version, family, flags]), Some(probes), Some(seed), Some(words)) =
            (file.first_chunk(), le16(file, 4), le64(file, 8), le32(file, 16))
        else {
            return bad("length", "24 bytes or more", format_args!("{} bytes", file.len()));
        };
        if (version, family) != (VERSION, FAMILY) {
            let found = format_args!("{version} and {family}");
            return bad("version and family", "1 and 21", found);
        }
        if !(3..=4).contains(&longs) {
            return bad("words of the header", "3 or 4", longs);
        }
        if flags & !IS_EMPTY != 0 {
            return bad("flags", "0 or 4", flags);
        }
        if !(1..=MAX_PROBES).contains(&probes.into()) {
            return bad("probes", "1 to 4096", probes);
        }
        if !(1..=MAX_WORDS).contains(&words) {
            return bad("words", &format!("1 to {MAX_WORDS}"), words);
        }
        let layout = Self { probes, seed, words };
        let expected = if flags == IS_EMPTY { EMPTY as u64 } else { layout.length() };
        if file.len() as u64 != expected {
            return Err(Error::cut(Format::DataSketches, expected, file));
        }
        match le64(file, SET) {
            Some(set) if set != UNCOUNTED && set > u64::from(words) * 64 => {
                bad("set bits", "-1, or as many as there are bits at most", set.cast_signed())
            }
            _ => Ok(layout),
        }
    }

    /// Sizes a filter as `BloomFilterBuilder.createByAccuracy` does.
    pub(crate) fn plan(plan: &Plan) -> Result<NewFilter<Self>> {
        let ln2 = std::f64::consts::LN_2;
        let keys = plan.keys as f64;
        let bits = (-keys * plan.rate.ln() / (ln2 * ln2)).ceil();
        let probes = (bits / keys * ln2).ceil().max(1.0) as u16;
        let words = (bits / 64.0).ceil();
        if words > f64::from(MAX_WORDS) {
            return Err(Error::limit(
                Format::DataSketches,
                format!("{bits} bits are needed, 137438953216 are the most"),
                "plan for fewer keys or a higher rate",
            ));
        }
        let layout = Self { probes, seed: SEED, words: words as u32 };
        if layout.length() > plan.limit {
            // The file is in short form until the first insert.
            return Err(Error::too_large(layout.length(), plan.limit));
        }
        let mut header = vec![3, VERSION, FAMILY, IS_EMPTY];
        header.extend(u32::from(probes).to_le_bytes());
        header.extend(SEED.to_le_bytes());
        header.extend(layout.words.to_le_bytes());
        let file = plan.file(&header, EMPTY as u64)?;
        Ok((layout, file))
    }

    /// Returns the length of a filter that is not empty.
    fn length(&self) -> u64 {
        HEADER as u64 + u64::from(self.words) * 8
    }
}

impl BitArrayFormat for DataSketches {
    fn format(&self) -> Format {
        Format::DataSketches
    }

    fn words(&self) -> usize {
        2
    }

    fn hash_fn(&self) -> HashFn {
        let seed = self.seed;
        Arc::new(move |key, words| {
            let first = xxh64(key, seed);
            words.extend([first, xxh64(key, first)]);
        })
    }

    fn takes_empty_keys(&self) -> bool {
        false
    }

    #[inline]
    fn positions(&self, words: &[u64]) -> impl Iterator<Item = u64> {
        let (mut sum, step, bits) = (words[0], words[1], u64::from(self.words) * 64);
        (0..self.probes).map(move |_| {
            sum = sum.wrapping_add(step);
            (sum >> 1) % bits
        })
    }

    fn bits(&self) -> Bits {
        Bits::low_first(HEADER, u64::from(self.words) * 64)
    }

    fn probes(&self) -> u32 {
        self.probes.into()
    }

    /// A sum loses its lowest bit, so only even steps are progressions.
    fn stepping(&self) -> Option<Stepping> {
        let modulus = self.bits().count;
        let put: &'static [fn(&mut [u64; 4], u64)] = &[|words, step| words[1] = step];
        Some(Stepping { modulus, width: 63, shift: 1, signed: false, put })
    }

    fn materialize(&mut self, file: &mut Vec<u8>, limit: u64) -> Result<()> {
        let length = self.length();
        if file.len() as u64 == length {
            return Ok(());
        }
        if length > limit {
            return Err(Error::too_large(length, limit));
        }
        let more = length - file.len() as u64;
        let refused = |_| Error::alloc(length);
        let more = usize::try_from(more).map_err(|_| Error::alloc(length))?;
        file.try_reserve_exact(more).map_err(refused)?;
        file.resize(file.len() + more, 0);
        put(file, 0, &[4, VERSION, FAMILY, 0]);
        Ok(())
    }

    fn note(&mut self, file: &mut [u8], _changed: u64) {
        put(file, SET, &UNCOUNTED.to_le_bytes());
    }

    fn note_union(&mut self, file: &mut [u8], _theirs: &FilterStats) {
        let set = self.bits().count_ones(file);
        put(file, SET, &set.to_le_bytes());
    }

    fn describe(&self, _file: &[u8], stats: &mut FilterStats) {
        stats.choice("seed", self.seed);
        stats.key_types = &[
            KeyType::Text,
            KeyType::Int64,
            KeyType::Int32,
            KeyType::Uint64,
            KeyType::Uint32,
            KeyType::RustStr,
            KeyType::RustSlice,
        ];
        stats.not_recorded.push(
            "the type of the keys: text for strings and arrays of bytes, int64 for whole \
             numbers of Java and C++",
        );
        stats.not_recorded.push(
            "whether the Rust crate datasketches wrote it: it hashes other bytes; rust-str \
             for its strings, rust-slice for its slices of bytes, and numbers by their type \
             (int64, uint64, int32, uint32)",
        );
    }

    /// Checks the number of set bits, if the header has it.
    fn check(&self, file: &[u8]) -> Result<()> {
        let set = self.bits().count_ones(file);
        match le64(file, SET) {
            Some(counted) if counted != UNCOUNTED && counted != set => {
                bad("set bits", &format!("{counted}, as in the header"), set)
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ForeignFilter;

    fn planned() -> ForeignFilter {
        ForeignFilter::with_fpr(Format::DataSketches, 5, 0.01).unwrap()
    }

    fn set(filter: &ForeignFilter) -> Option<u64> {
        le64(filter.as_bytes(), SET)
    }

    #[test]
    fn empty_filter_is_short_until_the_first_insert() {
        let mut filter = planned();
        assert_eq!(filter.as_bytes().len(), EMPTY);
        assert!(!filter.contains(b"key").unwrap());
        assert_eq!((filter.stats().set, filter.stats().estimated_fpr), (0, 0.0));
        let mut read = ForeignFilter::from_bytes(filter.as_bytes().to_vec(), None).unwrap();
        for filter in [&mut filter, &mut read] {
            assert!(filter.insert(b"").unwrap_err().is_key());
            assert_eq!(filter.as_bytes().len(), EMPTY);
            assert!(filter.insert(b"key").unwrap() && filter.contains(b"key").unwrap());
            assert_eq!((filter.as_bytes().len(), set(filter)), (HEADER + 8, Some(UNCOUNTED)));
            ForeignFilter::from_bytes(filter.as_bytes(), None).unwrap().verify().unwrap();
        }
    }

    #[test]
    fn union_counts_set_bits() {
        let (mut ours, mut theirs, mut empty) = (planned(), planned(), planned());
        ours.insert(b"a").unwrap();
        theirs.insert(b"hello").unwrap();
        ours.union(&theirs).unwrap();
        theirs.union(&empty).unwrap();
        empty.union(&planned()).unwrap();
        // The number of set bits, and the bits, as the library writes them after the same unions.
        let tail = |filter: &ForeignFilter| [SET, HEADER].map(|at| le64(filter.as_bytes(), at));
        assert_eq!(tail(&ours), [Some(10), Some(0x0040_00a0_07a0_0140)]);
        assert_eq!(tail(&theirs), [Some(7), Some(0x0040_00a0_00a0_0140)]);
        assert_eq!(empty.as_bytes(), planned().as_bytes());
        empty.union(&theirs).unwrap();
        assert_eq!(empty.as_bytes(), theirs.as_bytes());
        ours.verify().unwrap();
        ours.insert(b"b").unwrap();
        assert_eq!(tail(&ours), [Some(UNCOUNTED), Some(0x1040_88a0_47a0_2340)]);
    }

    #[test]
    fn small_file_cannot_claim_large_memory() {
        let mut file = planned().as_bytes().to_vec();
        put(&mut file, 16, &MAX_WORDS.to_le_bytes());
        let mut filter = ForeignFilter::from_bytes(file, None).unwrap();
        assert!(filter.insert(b"key").unwrap_err().is_too_large());
        let mut file = planned().as_bytes().to_vec();
        put(&mut file, 16, &[16]);
        let mut filter = ForeignFilter::read_from(&file[..], None, 100).unwrap();
        assert!(filter.insert(b"key").unwrap_err().is_too_large());
        let mut filter = ForeignFilter::read_from(&file[..], None, 160).unwrap();
        filter.insert(b"key").unwrap();
        assert!(ForeignFilter::with_fpr_within(Format::DataSketches, 1000, 0.01, 100).is_err());
    }

    #[test]
    fn invalid_headers_are_errors() {
        let mut filter = planned();
        filter.insert(b"key").unwrap();
        let file = filter.as_bytes().to_vec();
        let invalid: [(usize, &[u8]); 9] = [
            (0, &[5]),
            (1, &[2]),
            (2, &[20]),
            (3, &[4]),
            (3, &[1]),
            (4, &[0]),
            (5, &[0x80]),
            (16, &[0]),
            (SET, &[65, 0, 0, 0, 0, 0, 0, 0]),
        ];
        for (at, bytes) in invalid {
            let mut file = file.clone();
            put(&mut file, at, bytes);
            assert!(DataSketches::parse(&file).unwrap_err().is_malformed(), "{at}");
        }
        for length in 0..file.len() {
            assert!(DataSketches::parse(&file[..length]).is_err(), "{length}");
        }
        let mut file = file;
        put(&mut file, SET, &[9, 0, 0, 0, 0, 0, 0, 0]);
        assert!(
            ForeignFilter::from_bytes(file, None).unwrap().verify().unwrap_err().is_malformed()
        );
    }
}
