//! `BloomFilter.tofile` of the Python package pybloom-live, version 4, little-endian: the rate as a
//! 64-bit float, then the probes, bits of a slice, capacity and count in 8 bytes each, and the
//! bits. A key has one bit in each slice.
//!
//! The hash function depends on the number of bits that a key needs. The package counts a key that
//! changed a bit, refuses more when the count is above the capacity, and resets the count in a
//! union. Text is hashed as UTF-8, anything else as its `str()`. Versions before 4 wrote the same
//! header with another hash.
//!
//! `ScalableBloomFilter.tofile` writes a header before several of these: growth, tightening, first
//! capacity and rate, the number of filters and their lengths. Those can be queried, not filled:
//! each added filter has its own hash function. Source: files written by version 4.0.0.

use std::fmt::Display;
use std::sync::Arc;

use petal::BatchResults;

use crate::encoding::bits::Bits;
use crate::encoding::bytes::{le32, le64, lef64, put};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::formats::format_impl::{BitArrayFormat, FormatImpl, HashFn, MAX_WORDS, NewFilter, Plan};
use crate::hashes::salted::Salted;
use crate::key_type::KeyType;
use crate::stats::FilterStats;

const HEADER: usize = 40;
const COUNT: usize = 32;
/// Bytes of a scalable filter's header, before the lengths.
const CHAIN_HEADER: usize = 32;
/// Factor between the rates of the filters of a scalable one. The package has no other, so it
/// distinguishes the header from that of a single filter.
const RATIO: f64 = 0.9;
/// Each filter of a scalable one is at least twice as large as the previous one.
const MAX_LAYERS: u32 = 64;

fn bad<T>(what: &'static str, expected: impl Display, found: impl Display) -> Result<T> {
    Err(Error::malformed(Format::Pybloom.name(), what, expected, found))
}

/// A filter of fixed size at some offset of a file.
#[derive(Clone, Debug)]
pub(crate) struct Pybloom {
    at: usize,
    rate: f64,
    probes: u64,
    slice: u64,
    capacity: u64,
    hash: Arc<Salted>,
}

impl Pybloom {
    pub(crate) fn parse(file: &[u8]) -> Result<Self> {
        Self::parse_at(file, 0)
    }

    /// Parses a filter that extends from `at` to the end.
    fn parse_at(file: &[u8], at: usize) -> Result<Self> {
        let numbers = [8, 16, 24, COUNT].map(|place| le64(file, at + place));
        let (Some(rate), [Some(probes), Some(slice), Some(capacity), Some(count)]) =
            (lef64(file, at), numbers)
        else {
            return bad("length", "40 bytes or more", format!("{} bytes", file.len() - at));
        };
        if !(rate > 0.0 && rate < 1.0) {
            return bad("rate", "above 0 and below 1", rate);
        }
        if !(1..=MAX_WORDS).contains(&probes) {
            return bad("slices", format!("1 to {MAX_WORDS}"), probes);
        }
        if slice == 0 || capacity == 0 {
            return bad(
                "bits of a slice and capacity",
                "at least 1",
                format!("{slice}, {capacity}"),
            );
        }
        if count > capacity.saturating_add(1) {
            return bad("count", format!("at most one above {capacity}"), count);
        }
        let there = (file.len() - at - HEADER) as u64;
        let bytes = probes.checked_mul(slice).map(|bits| bits.div_ceil(8));
        if let (Some(bytes), 0) = (bytes.filter(|bytes| *bytes != there), at) {
            return Err(Error::cut(Format::Pybloom, bytes.saturating_add(HEADER as u64), file));
        }
        if bytes != Some(there) {
            let expected = format!("as many as {there} bytes hold");
            return bad("bits", &expected, format!("{probes} slices of {slice}"));
        }
        let hash = Arc::new(Salted::new(probes as usize, slice));
        Ok(Self { at, rate, probes, slice, capacity, hash })
    }

    /// Sizes a filter as `BloomFilter` does.
    pub(crate) fn plan(plan: &Plan) -> Result<NewFilter<Self>> {
        let ln2 = std::f64::consts::LN_2;
        let probes = (plan.rate.recip().ln() / ln2).ceil();
        if probes < 1.0 || probes.is_infinite() {
            return Err(Error::limit(
                Format::Pybloom,
                format!("the package cannot compute with a rate of {:e}", plan.rate),
                "use one above 1e-300 and below 1",
            ));
        }
        let slice = (plan.keys as f64 * plan.rate.ln().abs()) / (probes * (ln2 * ln2));
        let (probes, slice) = (probes as u64, slice.ceil() as u64);
        let bits = probes.saturating_mul(slice);
        let header: Vec<u8> = [plan.rate.to_bits(), probes, slice, plan.keys, 0]
            .into_iter()
            .flat_map(u64::to_le_bytes)
            .collect();
        let file = plan.file(&header, bits.div_ceil(8).saturating_add(HEADER as u64))?;
        let hash = Arc::new(Salted::new(probes as usize, slice));
        Ok((Self { at: 0, rate: plan.rate, probes, slice, capacity: plan.keys, hash }, file))
    }

    fn count(&self, file: &[u8]) -> u64 {
        le64(file, self.at + COUNT).unwrap_or(0)
    }

    fn holds(&self, file: &[u8], words: &[u64]) -> bool {
        let bits = self.bits();
        self.positions(words).all(|bit| bits.get(file, bit))
    }
}

const UNTOLD: &str =
    "the version: before 4, pybloom-live hashed otherwise and wrote the same header";
const UNTOLD_KEYS: &str = "the type of the keys: text for str and numbers, python-bytes for \
                           bytes objects, of which the package hashes what Python shows, b'...'";

impl BitArrayFormat for Pybloom {
    fn format(&self) -> Format {
        Format::Pybloom
    }

    fn words(&self) -> usize {
        self.probes as usize
    }

    fn hash_fn(&self) -> HashFn {
        let hash = Arc::clone(&self.hash);
        Arc::new(move |key, words| hash.hash(key, words))
    }

    #[inline]
    fn positions(&self, words: &[u64]) -> impl Iterator<Item = u64> {
        let slice = self.slice;
        (0..).zip(words).map(move |(at, word)| at * slice + word % slice)
    }

    fn bits(&self) -> Bits {
        Bits::low_first(self.at + HEADER, self.probes * self.slice)
    }

    fn probes(&self) -> u32 {
        self.probes as u32
    }

    fn check_capacity(&self, file: &[u8]) -> Result<()> {
        if self.count(file) <= self.capacity {
            return Ok(());
        }
        let what = format!("it holds more than the {} keys that it was made for", self.capacity);
        Err(Error::full(Format::Pybloom, what, "make one for more keys"))
    }

    fn note(&mut self, file: &mut [u8], changed: u64) {
        if changed > 0 {
            let count = self.count(file).saturating_add(1);
            put(file, self.at + COUNT, &count.to_le_bytes());
        }
    }

    /// The package's union is a new filter with a count of 0.
    fn note_union(&mut self, file: &mut [u8], _theirs: &FilterStats) {
        put(file, self.at + COUNT, &0u64.to_le_bytes());
    }

    fn describe(&self, file: &[u8], stats: &mut FilterStats) {
        stats.capacity = Some(self.capacity);
        stats.target_fpr = Some(self.rate);
        stats.counted = Some(self.count(file));
        stats.choice("hash", self.hash.name());
        stats.key_types = &[KeyType::Text, KeyType::PythonBytes];
        stats.not_recorded.extend([UNTOLD, UNTOLD_KEYS]);
    }

    fn check(&self, file: &[u8]) -> Result<()> {
        let bits = self.bits();
        bits.check_padding(file, bits.bytes() * 8, Format::Pybloom)
    }
}

/// A scalable filter: several filters of fixed size.
#[derive(Clone, Debug)]
pub(crate) struct Growing {
    rate: f64,
    layers: Vec<Pybloom>,
}

impl Growing {
    pub(crate) fn parse(file: &[u8]) -> Result<Self> {
        let (Some(growth), Some(ratio), Some(first), Some(rate), Some(count)) =
            (le32(file, 0), lef64(file, 4), le64(file, 12), lef64(file, 20), le32(file, 28))
        else {
            return bad("length", "32 bytes or more", format!("{} bytes", file.len()));
        };
        if growth == 0 || growth > i32::MAX as u32 || first == 0 {
            return bad("growth and first capacity", "at least 1", format!("{growth}, {first}"));
        }
        if ratio != RATIO {
            return bad("ratio", RATIO, ratio);
        }
        if !(rate > 0.0 && rate < 1.0) {
            return bad("rate", "above 0 and below 1", rate);
        }
        // A scalable filter without filters, which a truncated filter of fixed size can look like,
        // is empty.
        if !(1..=MAX_LAYERS).contains(&count) {
            return bad("filters", "1 to 64", count);
        }
        let mut at = CHAIN_HEADER + count as usize * 8;
        let lengths = (0..count as usize).filter_map(|layer| le64(file, CHAIN_HEADER + layer * 8));
        let end = lengths.fold(at as u64, u64::saturating_add);
        if file.len() as u64 != end {
            return Err(Error::cut(Format::Pybloom, end, file));
        }
        let mut layers = Vec::new();
        for layer in 0..count as usize {
            let length = le64(file, CHAIN_HEADER + layer * 8).unwrap_or(0);
            let end = usize::try_from(length).ok().and_then(|length| at.checked_add(length));
            let Some(bytes) = end.and_then(|end| file.get(..end)).filter(|bytes| bytes.len() > at)
            else {
                return bad("length of a filter", "no more than there is", length);
            };
            layers.push(Pybloom::parse_at(bytes, at)?);
            at = bytes.len();
        }
        let slices: u64 = layers.iter().map(|layer| layer.probes).sum();
        if slices > MAX_WORDS {
            return bad("slices of all filters", format!("{MAX_WORDS} or fewer"), slices);
        }
        Ok(Self { rate, layers })
    }
}

impl FormatImpl for Growing {
    fn words(&self) -> usize {
        self.layers.iter().map(BitArrayFormat::words).sum()
    }

    fn hash_fn(&self) -> HashFn {
        let hashes: Vec<_> = self.layers.iter().map(|layer| Arc::clone(&layer.hash)).collect();
        Arc::new(move |key, words| hashes.iter().for_each(|hash| hash.hash(key, words)))
    }

    fn contains(&self, file: &[u8], words: &[u64], found: &mut BatchResults) {
        let each = FormatImpl::words(self);
        found.fill_with(words.len() / each, |at| {
            let mut rest = &words[at * each..(at + 1) * each];
            self.layers.iter().any(|layer| {
                let (own, others) = rest.split_at(BitArrayFormat::words(layer));
                rest = others;
                layer.holds(file, own)
            })
        });
    }

    fn insert(
        &mut self,
        _file: &mut Vec<u8>,
        _words: &[u64],
        _limit: u64,
        _new: &mut BatchResults,
    ) -> Result<()> {
        Err(Error::unsupported(Format::Pybloom, "that grows can be queried, but not filled"))
    }

    fn stats(&self, file: &[u8]) -> FilterStats {
        let mut stats = self.header_stats(file);
        for layer in &self.layers {
            let bits = layer.bits();
            stats.add_row(bits.count, bits.count_ones(file), BitArrayFormat::probes(layer));
        }
        stats
    }

    fn header_stats(&self, file: &[u8]) -> FilterStats {
        let mut stats = FilterStats::new(Format::Pybloom);
        let (mut capacity, mut counted) = (0u64, 0u64);
        for layer in &self.layers {
            capacity = capacity.saturating_add(layer.capacity);
            counted = counted.saturating_add(layer.count(file));
        }
        stats.capacity = Some(capacity);
        stats.target_fpr = Some(self.rate);
        stats.counted = Some(counted);
        stats.choice("kind", "ScalableBloomFilter");
        stats.key_types = &[KeyType::Text, KeyType::PythonBytes];
        stats.not_recorded.extend([UNTOLD, UNTOLD_KEYS]);
        stats
    }

    fn check(&self, file: &[u8]) -> Result<()> {
        self.layers.iter().try_for_each(|layer| BitArrayFormat::check(layer, file))
    }
}
