//! The files of CIRCL's poppy, version 2, all little-endian: version and optimisation level in one
//! byte each, six zeros, capacity, rate, probes and count of keys; the bits of an index and the
//! index; the number of buckets and the buckets of 4,096 bytes; user data. Version 1 is the format
//! of [DCSO](super::dcso).
//!
//! A key of up to 8 bytes is its own hash, padded with zeros; a longer one is hashed with wyhash.
//! The hash, mixed by an xorshift generator, selects the bucket and a bit of the index. All probes
//! are in the bucket, by enhanced double hashing from the hash and the wyhash of its big-endian
//! bytes. Levels 2 (speed) and 3 (best) have an index of as many bits as keys, rounded up to a
//! power of two, and fewer probes; level 2 also has a power of two of buckets.
//!
//! The crate counts an insert if it changed a bucket. Once the count equals the capacity it refuses
//! keys that would change one. A union estimates the count from the bits of the buckets.
//!
//! Source: the crate poppy-filters 0.2.1 and files written by it; Dillinger & Manolios 2004.

use std::fmt;
use std::sync::Arc;

use petal::BatchResults;

use crate::encoding::bits::{Bits, count_ones};
use crate::encoding::bytes::{le64, lef64, put};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::formats::format_impl::{
    FormatImpl, FprEstimate, HashFn, MAX_PROBES, NewFilter, Plan, contains_together, expected_fill,
};
use crate::hashes::wyhash::wyhash;
use crate::key_type::KeyType;
use crate::stats::FilterStats;

const VERSION: u8 = 2;
const LEVELS: [&str; 4] = ["none", "space", "speed", "best"];
/// Offset of the number of inserted keys.
const COUNTED: usize = 32;
/// Offset of the index, after the number of its bits.
const INDEX: usize = 48;
const BUCKET_BYTES: usize = 4096;
const BUCKET_BITS: u64 = 8 * BUCKET_BYTES as u64;
const SEED: u64 = 0x706f_7070_7953_3d42;

#[derive(Clone, Debug)]
pub(crate) struct Poppy {
    level: usize,
    capacity: u64,
    rate: f64,
    probes: u64,
    /// Empty without an index.
    index: Bits,
    /// The bits of all buckets.
    bits: Bits,
}

impl Poppy {
    pub(crate) fn parse(file: &[u8]) -> Result<Self> {
        fn bad<T>(
            what: &'static str,
            expected: impl fmt::Display,
            found: impl fmt::Display,
        ) -> Result<T> {
            Err(Error::malformed(Format::Poppy.name(), what, expected, found))
        }
        let words = [0, 8, 24, COUNTED, INDEX - 8].map(|at| le64(file, at));
        let ([Some(flags), Some(capacity), Some(probes), Some(_), Some(index)], Some(rate)) =
            (words, lef64(file, 16))
        else {
            return bad("length", "56 bytes or more", format_args!("{} bytes", file.len()));
        };
        let [version, level, reserved @ ..] = flags.to_le_bytes();
        if version != VERSION {
            return bad("version", VERSION, version);
        }
        let level = usize::from(level);
        if level >= LEVELS.len() || reserved != [0; 6] {
            return bad("flags", "a level of 0 to 3, and zeros", format_args!("{flags:#x}"));
        }
        if capacity == 0 {
            return bad("capacity", "1 or more", capacity);
        }
        if !(f64::MIN_POSITIVE..=1.0).contains(&rate) {
            return bad("rate", "above 0 and at most 1", rate);
        }
        if probes > MAX_PROBES {
            return bad("probes", format_args!("at most {MAX_PROBES}"), probes);
        }
        let index_end = index.div_ceil(8).saturating_add(INDEX as u64);
        let start = index_end.saturating_add(8);
        let Some(buckets) = usize::try_from(index_end).ok().and_then(|end| le64(file, end)) else {
            return Err(Error::cut(Format::Poppy, start, file));
        };
        if buckets == 0 {
            return bad("buckets", "1 or more", buckets);
        }
        let expected = buckets.saturating_mul(BUCKET_BYTES as u64).saturating_add(start);
        // User data may follow.
        if (file.len() as u64) < expected {
            return Err(Error::cut(Format::Poppy, expected, file));
        }
        Ok(Self {
            level,
            capacity,
            rate,
            probes,
            index: Bits::low_first(INDEX, (index_end - INDEX as u64) * 8),
            bits: Bits::low_first(start as usize, buckets * BUCKET_BITS),
        })
    }

    /// Sizes a filter as `BloomFilter::with_capacity` does: level 0, without an index.
    pub(crate) fn plan(plan: &Plan) -> Result<NewFilter<Self>> {
        if plan.rate < f64::MIN_POSITIVE {
            let what = format!("poppy takes no rate below {:e}", f64::MIN_POSITIVE);
            return Err(Error::limit(Format::Poppy, what, "use a higher rate"));
        }
        let (ln2, bits) = (std::f64::consts::LN_2, BUCKET_BITS as f64);
        let keys_per_bucket = (bits * (ln2 * ln2) / plan.rate.ln()).abs().floor();
        let buckets = (plan.keys as f64 / keys_per_bucket).ceil() as u64;
        let probes = (ln2 * bits / keys_per_bucket).ceil() as u64;
        let header: Vec<u8> =
            [VERSION.into(), plan.keys, plan.rate.to_bits(), probes, 0, 0, buckets]
                .into_iter()
                .flat_map(u64::to_le_bytes)
                .collect();
        let start = header.len();
        let length = buckets.saturating_mul(BUCKET_BYTES as u64).saturating_add(start as u64);
        let file = plan.file(&header, length)?;
        let layout = Self {
            level: 0,
            capacity: plan.keys,
            rate: plan.rate,
            probes,
            index: Bits::low_first(INDEX, 0),
            bits: Bits::low_first(start, buckets * BUCKET_BITS),
        };
        Ok((layout, file))
    }

    fn buckets(&self) -> u64 {
        self.bits.count / BUCKET_BITS
    }

    fn counted(file: &[u8]) -> u64 {
        le64(file, COUNTED).unwrap_or(0)
    }

    /// Returns the bit of the index of a key; `None` without an index.
    #[inline]
    fn index_bit(&self, words: &[u64]) -> Option<u64> {
        self.index.count.checked_sub(1).map(|mask| spread(words[0]) & mask)
    }

    /// Returns the positions of a key, all in one bucket.
    #[inline]
    fn positions(&self, words: &[u64]) -> impl Iterator<Item = u64> {
        let first = spread(words[0]) % self.buckets() * BUCKET_BITS;
        let (mut hash, mut step) = (words[0], words[1]);
        (0..self.probes).map(move |probe| {
            if probe > 0 {
                hash = hash.wrapping_add(step);
                step = step.wrapping_add(probe);
            }
            first + hash % BUCKET_BITS
        })
    }

    /// Inserts a key. Returns true if it certainly was not present.
    fn add(&self, file: &mut [u8], words: &[u64]) -> Result<bool> {
        let (counted, mut changed) = (Self::counted(file), false);
        for bit in self.positions(words) {
            if counted == self.capacity && !self.bits.get(file, bit) {
                let what = format!("it holds the {counted} keys that it was made for");
                return Err(Error::full(Format::Poppy, what, "make one for more keys"));
            }
            changed |= self.bits.set(file, bit);
        }
        if changed {
            put(file, COUNTED, &counted.saturating_add(1).to_le_bytes());
        }
        Ok(self.index_bit(words).is_some_and(|bit| self.index.set(file, bit)) | changed)
    }

    /// Returns the number of set bits of each bucket.
    fn set_bits<'a>(&self, file: &'a [u8]) -> impl Iterator<Item = u64> + use<'a> {
        self.bits.of(file).chunks(BUCKET_BYTES).map(count_ones)
    }

    /// Returns the part of the rate due to double hashing if buckets have this many keys: a key
    /// whose hashes equal another one's modulo the bits of their bucket has the same positions.
    fn floor(&self, keys_per_bucket: f64) -> f64 {
        let patterns = (BUCKET_BITS * BUCKET_BITS) as f64;
        if self.probes > 1 { (keys_per_bucket / patterns).min(1.0) } else { 0.0 }
    }
}

/// Returns the offset where the filter ends and user data may follow.
pub(crate) fn end(file: &[u8]) -> Result<u64> {
    let bits = Poppy::parse(file)?.bits;
    Ok(bits.bytes().saturating_add(bits.at as u64))
}

/// Mixes a hash. Source: xorshift64*, Vigna 2016, with the shift directions of poppy.
#[inline]
fn spread(mut hash: u64) -> u64 {
    hash ^= hash << 12;
    hash ^= hash >> 25;
    hash ^= hash << 27;
    hash.wrapping_mul(2_685_821_657_736_338_717)
}

/// Returns the hash and the first step of a key.
#[inline]
#[expect(clippy::big_endian_bytes, reason = "poppy hashes them")]
fn words_of(key: &[u8]) -> [u64; 2] {
    let hash = if key.len() > 8 {
        wyhash(key, SEED)
    } else {
        key.iter().rev().fold(0, |hash, byte| hash << 8 | u64::from(*byte))
    };
    [hash, wyhash(&hash.to_be_bytes(), SEED)]
}

impl FormatImpl for Poppy {
    fn words(&self) -> usize {
        2
    }

    fn hash_fn(&self) -> HashFn {
        Arc::new(|key, words| words.extend(words_of(key)))
    }

    fn contains(&self, file: &[u8], words: &[u64], found: &mut BatchResults) {
        let indexed =
            |words: &[u64]| self.index_bit(words).is_none_or(|bit| self.index.get(file, bit));
        let begins = |words: &[u64]| {
            let mut positions = self.positions(words);
            indexed(words) && positions.next().is_none_or(|bit| self.bits.get(file, bit))
        };
        contains_together(words, 2, found, begins, |words| {
            self.positions(words).all(|bit| self.bits.get(file, bit))
        });
    }

    fn insert(
        &mut self,
        file: &mut Vec<u8>,
        words: &[u64],
        _limit: u64,
        new: &mut BatchResults,
    ) -> Result<()> {
        let mut result = Ok(());
        new.fill_with(words.len() / 2, |at| {
            if result.is_err() {
                return false;
            }
            self.add(file, &words[2 * at..]).unwrap_or_else(|error| {
                result = Err(error);
                false
            })
        });
        result
    }

    fn union_bits(&mut self, file: &mut [u8], _theirs: &dyn FormatImpl, their_file: &[u8]) {
        // Their offsets are equal, as is their description.
        self.index.union_bits(file, self.index, their_file);
        self.bits.union_bits(file, self.bits, their_file);
        let estimate = |set: u64| {
            let zeros = 1.0 - set as f64 / BUCKET_BITS as f64;
            (-(BUCKET_BITS as f64 * zeros.ln()) / self.probes as f64) as u64
        };
        let counted = self.set_bits(file).map(estimate).fold(0, u64::saturating_add);
        put(file, COUNTED, &counted.to_le_bytes());
    }

    fn bit_array(&self) -> Option<(String, Bits)> {
        let (bits, probes) = (self.bits.count, self.probes);
        let (level, index) = (LEVELS[self.level], self.index.count);
        let (keys, percent) = (self.capacity, self.rate * 100.0);
        let shape = format!(
            "{bits} bits, {probes} probes, index of {index} bits, optimisation {level}, for {keys} \
             keys at {percent} %"
        );
        Some((shape, self.bits))
    }

    fn header_stats(&self, file: &[u8]) -> FilterStats {
        let mut stats = FilterStats::new(Format::Poppy);
        stats.key_types = &[KeyType::Text, KeyType::TextCrlf];
        stats.capacity = Some(self.capacity);
        stats.target_fpr = Some(self.rate);
        stats.counted = Some(Self::counted(file));
        stats.choice("optimisation", LEVELS[self.level]);
        stats.choice("buckets", self.buckets());
        if self.index.count > 0 {
            stats.choice("index", format!("{} bits", self.index.count));
        }
        let end = self.bits.bytes().saturating_add(self.bits.at as u64);
        let data = (file.len() as u64).saturating_sub(end);
        if data > 0 {
            stats.choice("data behind the filter", format!("{data} bytes"));
        }
        stats.not_recorded.push(
            "the ends of lines: the program poppy drops a CR before the LF, petal does not; text-crlf for lines that end in CR LF",
        );
        stats
    }

    fn stats(&self, file: &[u8]) -> FilterStats {
        let mut stats = self.header_stats(file);
        let (buckets, index_set) = (self.buckets() as f64, self.index.count_ones(file));
        let (mut keys, mut rate, mut floor) = (0.0, 0.0, 0.0);
        for set in self.set_bits(file) {
            let mut bucket = FilterStats::new(Format::Poppy);
            bucket.add_row(BUCKET_BITS, set, self.probes as u32);
            let own_keys = bucket.estimated_keys.unwrap_or(0.0);
            stats.set += set;
            keys += own_keys;
            rate += bucket.estimated_fpr / buckets;
            // The rate of a full bucket is 1 without it.
            floor += if own_keys.is_finite() { self.floor(own_keys) / buckets } else { 0.0 };
        }
        let passes = match self.index.count {
            0 => 1.0,
            bits => index_set as f64 / bits as f64,
        };
        stats.bits = self.bits.count + self.index.count;
        stats.set += index_set;
        stats.probes = self.probes as u32;
        stats.layers = 1;
        stats.estimated_keys = (self.probes > 0).then_some(keys);
        stats.estimated_fpr = (passes * rate).min(1.0);
        stats.add_floor((passes * floor).min(1.0));
        stats
    }

    fn expected_fpr(&self, keys: u64) -> Option<FprEstimate> {
        let (probes, keys) = (self.probes as u32, keys as f64);
        let passes =
            if self.index.count == 0 { 1.0 } else { expected_fill(self.index.count, 1, keys) };
        let rate = expected_fill(self.bits.count, probes, keys).powf(probes.into());
        let floor = self.floor(keys / self.buckets() as f64);
        let all = passes * petal::math::probability_of_either(rate, floor);
        Some(FprEstimate { all, floor: passes * floor })
    }

    fn check(&self, _file: &[u8]) -> Result<()> {
        Ok(())
    }
}
