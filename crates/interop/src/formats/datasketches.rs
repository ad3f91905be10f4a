//! Apache DataSketches' `BloomFilter.toByteArray`: a byte each for the 8-byte words of the header
//! (4, or 3 if it is empty), the version (1), the family (21) and flags; the probes in two bytes
//! and two unused; the seed in eight; the number of 64-bit words in four and four unused. An empty
//! filter ends here. Others go on with how many bits are set in eight bytes, and the words. All
//! with the low byte first.
//!
//! A key is hashed with XXH64 and the seed, then with that hash as the seed; the second is added
//! for each probe, and the sum without its lowest bit, modulo the bits, is a position. Empty keys
//! are passed over.
//!
//! How many bits are set is -1 once keys were put in by `update`, and counted by a union.
//! `createByAccuracy` takes a random seed if it is given none; petal always takes 12345.
//!
//! Source: the files and answers of datasketches-java 6.2, and its documented preamble.

use std::sync::Arc;

use xxhash_rust::xxh64::xxh64;

use crate::bits::Bits;
use crate::bytes::{le16, le32, le64, put};
use crate::error::{Error, Result};
use crate::facts::Facts;
use crate::floor::Stepping;
use crate::format::Format;
use crate::keys::KeyForm;
use crate::scheme::{Digest, Empty, Plan, Positional};

/// Bytes of an empty filter.
const EMPTY: usize = 24;
/// Where the number of set bits is, and how many bytes are before the words.
const SET: usize = 24;
const HEADER: usize = 32;
const VERSION: u8 = 1;
const FAMILY: u8 = 21;
/// The flag of an empty filter.
const IS_EMPTY: u8 = 4;
/// What stands for a number of set bits that nobody counted.
const UNCOUNTED: u64 = u64::MAX;
/// Words that the library makes at most.
const MOST_WORDS: u32 = i32::MAX as u32 - 4;
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
        if !(1..=i16::MAX as u16).contains(&probes) {
            return bad("probes", "1 to 32767", probes);
        }
        if !(1..=MOST_WORDS).contains(&words) {
            return bad("words", &format!("1 to {MOST_WORDS}"), words);
        }
        let scheme = Self { probes, seed, words };
        let expected = if flags == IS_EMPTY { EMPTY as u64 } else { scheme.length() };
        if file.len() as u64 != expected {
            return Err(Error::cut(Format::DataSketches, expected, file));
        }
        match le64(file, SET) {
            Some(set) if set != UNCOUNTED && set > u64::from(words) * 64 => {
                bad("set bits", "-1, or as many as there are bits at most", set.cast_signed())
            }
            _ => Ok(scheme),
        }
    }

    /// As `BloomFilterBuilder.createByAccuracy` sizes it.
    pub(crate) fn plan(plan: &Plan) -> Result<Empty<Self>> {
        let ln2 = std::f64::consts::LN_2;
        let keys = plan.keys as f64;
        let bits = (-keys * plan.rate.ln() / (ln2 * ln2)).ceil();
        let probes = (bits / keys * ln2).ceil().max(1.0) as u16;
        let words = (bits / 64.0).ceil();
        if words > f64::from(MOST_WORDS) {
            return Err(Error::limit(
                Format::DataSketches,
                format!("{bits} bits are needed, 137438953216 are the most"),
                "plan for fewer keys or a higher rate",
            ));
        }
        let scheme = Self { probes, seed: SEED, words: words as u32 };
        if scheme.length() > plan.limit {
            // The file is short until a key comes.
            return Err(Error::too_large(scheme.length(), plan.limit));
        }
        let mut header = vec![3, VERSION, FAMILY, IS_EMPTY];
        header.extend(u32::from(probes).to_le_bytes());
        header.extend(SEED.to_le_bytes());
        header.extend(scheme.words.to_le_bytes());
        let file = plan.file(&header, EMPTY as u64)?;
        Ok((scheme, file))
    }

    /// Bytes of a filter that is not empty.
    fn length(&self) -> u64 {
        HEADER as u64 + u64::from(self.words) * 8
    }
}

impl Positional for DataSketches {
    fn format(&self) -> Format {
        Format::DataSketches
    }

    fn words(&self) -> usize {
        2
    }

    fn digest(&self) -> Digest {
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

    /// A sum loses its lowest bit, so that only even steps are progressions.
    fn stepping(&self) -> Option<Stepping> {
        let modulus = self.bits().count;
        let put: &'static [fn(&mut [u64; 4], u64)] = &[|words, step| words[1] = step];
        Some(Stepping { modulus, width: 63, shift: 1, signed: false, put })
    }

    fn unfold(&mut self, file: &mut Vec<u8>, limit: u64) -> Result<()> {
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

    fn note_union(&mut self, file: &mut [u8], _theirs: &Facts) {
        let set = self.bits().count_ones(file);
        put(file, SET, &set.to_le_bytes());
    }

    fn tell(&self, _file: &[u8], facts: &mut Facts) {
        facts.choice("seed", self.seed);
        facts.forms = &[
            KeyForm::Text,
            KeyForm::Int64,
            KeyForm::Int32,
            KeyForm::Uint64,
            KeyForm::Uint32,
            KeyForm::RustStr,
            KeyForm::RustSlice,
        ];
        facts.untold.push(
            "the type of the keys: --as text for strings and arrays of bytes, int64 for whole \
             numbers of Java and C++",
        );
        facts.untold.push(
            "whether the Rust crate datasketches wrote it: it hashes other bytes; --as rust-str \
             for its strings, rust-slice for its slices of bytes, and numbers by their type \
             (int64, uint64, int32, uint32)",
        );
    }

    /// The bits are as many as the header says, if it says it.
    fn check(&self, file: &[u8]) -> Result<()> {
        let set = self.bits().count_ones(file);
        match le64(file, SET) {
            Some(counted) if counted != UNCOUNTED && counted != set => {
                bad("set bits", &format!("{counted}, as the header says"), set)
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Foreign;

    fn planned() -> Foreign {
        Foreign::with_rate(Format::DataSketches, 5, 0.01).unwrap()
    }

    fn set(filter: &Foreign) -> Option<u64> {
        le64(filter.as_bytes(), SET)
    }

    #[test]
    fn an_empty_filter_is_short_until_a_key_comes() {
        let mut filter = planned();
        assert_eq!(filter.as_bytes().len(), EMPTY);
        assert!(!filter.contains(b"key").unwrap());
        assert_eq!((filter.facts().set, filter.facts().rate_now), (0, 0.0));
        let mut read = Foreign::from_bytes(filter.as_bytes().to_vec(), None).unwrap();
        for filter in [&mut filter, &mut read] {
            assert!(filter.insert(b"").unwrap_err().is_key());
            assert_eq!(filter.as_bytes().len(), EMPTY);
            assert!(filter.insert(b"key").unwrap() && filter.contains(b"key").unwrap());
            assert_eq!((filter.as_bytes().len(), set(filter)), (HEADER + 8, Some(UNCOUNTED)));
            Foreign::from_bytes(filter.as_bytes(), None).unwrap().verify().unwrap();
        }
    }

    #[test]
    fn a_union_counts() {
        let (mut ours, mut theirs, mut empty) = (planned(), planned(), planned());
        ours.insert(b"a").unwrap();
        theirs.insert(b"hello").unwrap();
        ours.union(&theirs).unwrap();
        theirs.union(&empty).unwrap();
        empty.union(&planned()).unwrap();
        // What the library writes after the same unions: number of set bits, and bits.
        let tail = |filter: &Foreign| [SET, HEADER].map(|at| le64(filter.as_bytes(), at));
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
    fn a_few_bytes_do_not_claim_all_memory() {
        let mut file = planned().as_bytes().to_vec();
        put(&mut file, 16, &MOST_WORDS.to_le_bytes());
        let mut filter = Foreign::from_bytes(file, None).unwrap();
        assert!(filter.insert(b"key").unwrap_err().is_too_large());
        let mut file = planned().as_bytes().to_vec();
        put(&mut file, 16, &[16]);
        let mut filter = Foreign::read_from(&file[..], None, 100).unwrap();
        assert!(filter.insert(b"key").unwrap_err().is_too_large());
        let mut filter = Foreign::read_from(&file[..], None, 160).unwrap();
        filter.insert(b"key").unwrap();
        assert!(Foreign::with_limit(Format::DataSketches, 1000, 0.01, 100).is_err());
    }

    #[test]
    fn lies_are_refused() {
        let mut filter = planned();
        filter.insert(b"key").unwrap();
        let file = filter.as_bytes().to_vec();
        let lies: [(usize, &[u8]); 9] = [
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
        for (at, lie) in lies {
            let mut file = file.clone();
            put(&mut file, at, lie);
            assert!(DataSketches::parse(&file).unwrap_err().is_malformed(), "{at}");
        }
        for length in 0..file.len() {
            assert!(DataSketches::parse(&file[..length]).is_err(), "{length}");
        }
        let mut file = file;
        put(&mut file, SET, &[9, 0, 0, 0, 0, 0, 0, 0]);
        assert!(Foreign::from_bytes(file, None).unwrap().verify().unwrap_err().is_malformed());
    }
}
