//! `BloomFilter.tofile` of the Python package pybloom-live, version 4: the rate as a float of 64
//! bits, then the probes, bits of a slice, capacity and count in 8 bytes each, all with the low
//! byte first, and the bits. A key has one bit in each slice.
//!
//! The hash function follows from the bits that a key needs. The package counts a key when it
//! changed a bit, refuses more once the count is above the capacity, and forgets the count when it
//! unites filters. Text is hashed as UTF-8, anything else as its `str()`. Versions before 4 wrote
//! the same header with another hash.
//!
//! `ScalableBloomFilter.tofile` puts a header before several of these: growth, tightening, first
//! capacity and rate, how many there are and their lengths. Those are asked, not filled: each
//! filter that is added has its own hash function. Source: the files that version 4.0.0 writes.

use std::fmt::Display;
use std::sync::Arc;

use petal::Answers;

use crate::bits::Bits;
use crate::bytes::{le32, le64, lef64, put};
use crate::error::{Error, Result};
use crate::facts::Facts;
use crate::format::Format;
use crate::hashes::salted::Salted;
use crate::keys::KeyForm;
use crate::scheme::{Digest, Empty, MOST_WORDS, Plan, Positional, Scheme};

const HEADER: usize = 40;
const COUNT: usize = 32;
/// Bytes of the growing filter's header, before the lengths.
const CHAIN_HEADER: usize = 32;
/// How much lower the rate of each filter of a growing one is. The package has no other: this is
/// what tells the header from that of a single filter.
const RATIO: f64 = 0.9;
/// Each filter of a growing one is at least twice as large as the one before.
const MOST_LAYERS: u32 = 64;

fn bad<T>(what: &'static str, expected: impl Display, found: impl Display) -> Result<T> {
    Err(Error::malformed(Format::Pybloom.name(), what, expected, found))
}

/// A filter of a fixed size, somewhere in a file.
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

    /// One that fills the bytes from `at` on.
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
        if !(1..=MOST_WORDS).contains(&probes) {
            return bad("slices", format!("1 to {MOST_WORDS}"), probes);
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
        if probes.checked_mul(slice).map(|bits| bits.div_ceil(8)) != Some(there) {
            let expected = format!("as many as {there} bytes hold");
            return bad("bits", &expected, format!("{probes} slices of {slice}"));
        }
        let hash = Arc::new(Salted::new(probes as usize, slice));
        Ok(Self { at, rate, probes, slice, capacity, hash })
    }

    /// As `BloomFilter` sizes it.
    pub(crate) fn plan(plan: &Plan) -> Result<Empty<Self>> {
        let ln2 = std::f64::consts::LN_2;
        let probes = (plan.rate.recip().ln() / ln2).ceil();
        if probes < 1.0 || probes.is_infinite() {
            return Err(Error::limit(
                Format::Pybloom,
                format!("the package cannot compute with a rate of {:e}", plan.rate),
                "ask for one above 1e-300 and below 1",
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
const UNTOLD_KEYS: &str = "the type of the keys: --as text for str and numbers, python-bytes for \
                           bytes objects, of which the package hashes what Python shows, b'...'";

impl Positional for Pybloom {
    fn format(&self) -> Format {
        Format::Pybloom
    }

    fn words(&self) -> usize {
        self.probes as usize
    }

    fn digest(&self) -> Digest {
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

    fn room(&self, file: &[u8]) -> Result<()> {
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

    /// The package's union is a new filter with a count of its own, which nothing adds to.
    fn note_union(&mut self, file: &mut [u8], _theirs: &Facts) {
        put(file, self.at + COUNT, &0u64.to_le_bytes());
    }

    fn tell(&self, file: &[u8], facts: &mut Facts) {
        facts.planned_keys = Some(self.capacity);
        facts.target_rate = Some(self.rate);
        facts.counted = Some(self.count(file));
        facts.choice("hash", self.hash.name());
        facts.forms = &[KeyForm::Text, KeyForm::PythonBytes];
        facts.untold.extend([UNTOLD, UNTOLD_KEYS]);
    }

    fn check(&self, file: &[u8]) -> Result<()> {
        let bits = self.bits();
        bits.check_padding(file, bits.bytes() * 8, Format::Pybloom)
    }
}

/// A filter that grew: several of a fixed size.
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
        // One without any, which a cut file of a fixed size can look like, holds nothing.
        if !(1..=MOST_LAYERS).contains(&count) {
            return bad("filters", "1 to 64", count);
        }
        let mut at = CHAIN_HEADER + count as usize * 8;
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
        if at != file.len() {
            return bad("length", format!("{at} bytes"), file.len());
        }
        let slices: u64 = layers.iter().map(|layer| layer.probes).sum();
        if slices > MOST_WORDS {
            return bad("slices of all filters", format!("{MOST_WORDS} or fewer"), slices);
        }
        Ok(Self { rate, layers })
    }
}

impl Scheme for Growing {
    fn words(&self) -> usize {
        self.layers.iter().map(Positional::words).sum()
    }

    fn digest(&self) -> Digest {
        let hashes: Vec<_> = self.layers.iter().map(|layer| Arc::clone(&layer.hash)).collect();
        Arc::new(move |key, words| hashes.iter().for_each(|hash| hash.hash(key, words)))
    }

    fn contains(&self, file: &[u8], words: &[u64], found: &mut Answers) {
        let each = Scheme::words(self);
        found.answer(words.len() / each, |at| {
            let mut rest = &words[at * each..(at + 1) * each];
            self.layers.iter().any(|layer| {
                let (own, others) = rest.split_at(Positional::words(layer));
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
        _new: &mut Answers,
    ) -> Result<()> {
        Err(Error::unsupported(Format::Pybloom, "that grows is only asked, not filled"))
    }

    fn facts(&self, file: &[u8]) -> Facts {
        let mut facts = self.told(file);
        for layer in &self.layers {
            let bits = layer.bits();
            facts.add_row(bits.count, bits.count_ones(file), Positional::probes(layer));
        }
        facts
    }

    fn told(&self, file: &[u8]) -> Facts {
        let mut facts = Facts::new(Format::Pybloom);
        let (mut capacity, mut counted) = (0u64, 0u64);
        for layer in &self.layers {
            capacity = capacity.saturating_add(layer.capacity);
            counted = counted.saturating_add(layer.count(file));
        }
        facts.planned_keys = Some(capacity);
        facts.target_rate = Some(self.rate);
        facts.counted = Some(counted);
        facts.choice("kind", "ScalableBloomFilter");
        facts.forms = &[KeyForm::Text, KeyForm::PythonBytes];
        facts.untold.extend([UNTOLD, UNTOLD_KEYS]);
        facts
    }

    fn check(&self, file: &[u8]) -> Result<()> {
        self.layers.iter().try_for_each(|layer| Positional::check(layer, file))
    }
}
