//! The interface of a format: how keys become words, and words become bits of the file.
//!
//! A filter is the bytes of its file. A [`FormatImpl`] is the parsed and checked header; it holds
//! numbers and no bits. Keys are hashed to a fixed number of words, on any thread, and the words
//! are looked up or inserted.
//!
//! Most formats are one bit array with some positions per key. They implement [`BitArrayFormat`],
//! and this module provides the rest.

use std::fmt::Debug;
use std::sync::Arc;

use petal::BatchResults;

use crate::encoding::bits::Bits;
use crate::error::{Error, Result};
use crate::format::Format;
use crate::formats::fpr_floor::{SampleBudget, Stepping, distinct, fpr_floor};
use crate::stats::FilterStats;

/// Hashes the bytes of a key: appends [`FormatImpl::words`] words.
pub(crate) type HashFn = Arc<dyn Fn(&[u8], &mut Vec<u64>) + Send + Sync>;

/// Maximum number of probes. The smallest 64-bit float as a rate needs 1,074. Each probe takes some
/// nanoseconds of every query, so a hostile file of 32 bytes could otherwise cost hours.
pub(crate) const MAX_PROBES: u64 = 4096;

/// Maximum number of words per key. Some formats have a hash per probe, and words of many keys are
/// in memory at the same time.
pub(crate) const MAX_WORDS: u64 = 4096;

/// Bits that a 32-bit hash without its sign can address.
pub(crate) const REACH: u64 = 1 << 31;

/// A false-positive rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FprEstimate {
    pub(crate) all: f64,
    /// The part of it due to the format's double hashing.
    pub(crate) floor: f64,
}

/// The parsed header of a filter, with the operations of its format.
pub(crate) trait FormatImpl: Debug + Send + Sync {
    /// Returns the number of words per key, at least one.
    fn words(&self) -> usize;

    /// Returns the hash function.
    fn hash_fn(&self) -> HashFn;

    /// Returns true if the program stores empty keys; some refuse them, some drop them.
    fn takes_empty_keys(&self) -> bool {
        true
    }

    /// Looks up a batch of keys.
    fn contains(&self, file: &[u8], words: &[u64], found: &mut BatchResults);

    /// Inserts a batch of keys; `new` gets for each key whether it certainly was not present. The
    /// file may grow to `limit` bytes.
    fn insert(
        &mut self,
        file: &mut Vec<u8>,
        words: &[u64],
        limit: u64,
        new: &mut BatchResults,
    ) -> Result<()>;

    /// Expands an empty filter in short form to its full size, at most `limit` bytes. Called before
    /// the first insert.
    fn materialize(&mut self, _file: &mut Vec<u8>, _limit: u64) -> Result<()> {
        Ok(())
    }

    /// Adds the keys of a filter with the same [`bit_array`](Self::bit_array).
    fn union_bits(&mut self, _file: &mut [u8], _theirs: &dyn FormatImpl, _their_file: &[u8]) {}

    /// Returns a description that two filters must share for a union, and the bits to combine;
    /// `None` if the format has no union.
    fn bit_array(&self) -> Option<(String, Bits)> {
        None
    }

    /// Returns the values of the header.
    fn header_stats(&self, file: &[u8]) -> FilterStats;

    /// Returns the values of the header and statistics of the bits.
    fn stats(&self, file: &[u8]) -> FilterStats;

    /// Returns the false-positive rate with `keys` keys; `None` if it is not computed for the
    /// format.
    fn expected_fpr(&self, _keys: u64) -> Option<FprEstimate> {
        None
    }

    /// Checks everything that the format allows to check beyond its header.
    fn check(&self, file: &[u8]) -> Result<()>;
}

/// A format with one bit array in which a key has some positions.
pub(crate) trait BitArrayFormat: Debug + Send + Sync {
    /// Returns the format.
    fn format(&self) -> Format;

    /// See [`FormatImpl::words`].
    fn words(&self) -> usize;

    /// See [`FormatImpl::hash_fn`].
    fn hash_fn(&self) -> HashFn;

    /// See [`FormatImpl::takes_empty_keys`].
    fn takes_empty_keys(&self) -> bool {
        true
    }

    /// Returns the positions of the key with these words, each below the number of bits.
    fn positions(&self, words: &[u64]) -> impl Iterator<Item = u64>;

    /// Returns where the bits are.
    fn bits(&self) -> Bits;

    /// Returns the number of probes.
    fn probes(&self) -> u32;

    /// Checks that the program would accept one more key.
    fn check_capacity(&self, _file: &[u8]) -> Result<()> {
        Ok(())
    }

    /// See [`FormatImpl::materialize`].
    fn materialize(&mut self, _file: &mut Vec<u8>, _limit: u64) -> Result<()> {
        Ok(())
    }

    /// Updates the file's counters after an insert that set `changed` bits.
    fn note(&mut self, _file: &mut [u8], _changed: u64) {}

    /// Updates the file's counters after a union with a filter that has the statistics `theirs`.
    fn note_union(&mut self, _file: &mut [u8], _theirs: &FilterStats) {}

    /// Returns the number of bits that positions can address.
    fn reach(&self) -> u64 {
        u64::MAX
    }

    /// Returns the rule that derives positions from a start and a step, for formats with double
    /// hashing.
    fn stepping(&self) -> Option<Stepping> {
        None
    }

    /// Adds statistics of the bits. This version is for formats whose positions are anywhere.
    fn measure(&self, file: &[u8], stats: &mut FilterStats) {
        stats.add_row_within(self.reach(), self.bits(), file, self.probes());
        if let (Some(stepping), Some(keys)) = (self.stepping(), stats.estimated_keys) {
            let fill = stats.set as f64 / self.bits().count.min(self.reach()) as f64;
            let count = |words: &[u64; 4]| distinct(self.positions(words), fill);
            let mut budget = SampleBudget::new(1);
            let floor = fpr_floor(&mut budget, stepping, self.probes(), fill, keys, count);
            stats.add_floor(floor);
        }
    }

    /// Adds the values of the header.
    fn describe(&self, file: &[u8], stats: &mut FilterStats);

    /// See [`FormatImpl::check`].
    fn check(&self, _file: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// Looks up keys of `each` words in groups: first `first` of all keys of a group, to overlap their
/// cache misses, then `all` of those for which it returned true.
pub(crate) fn contains_together(
    words: &[u64],
    each: usize,
    found: &mut BatchResults,
    first: impl Fn(&[u64]) -> bool,
    all: impl Fn(&[u64]) -> bool,
) {
    const TOGETHER: usize = 16;
    let mut begins = [false; TOGETHER];
    found.fill_with(words.len() / each, |at| {
        if at % TOGETHER == 0 {
            let group = words[at * each..].chunks_exact(each).zip(&mut begins);
            group.for_each(|(key, begins)| *begins = first(key));
        }
        begins[at % TOGETHER] && all(&words[at * each..(at + 1) * each])
    });
}

impl<P: BitArrayFormat> FormatImpl for P {
    fn words(&self) -> usize {
        BitArrayFormat::words(self)
    }

    fn hash_fn(&self) -> HashFn {
        BitArrayFormat::hash_fn(self)
    }

    fn takes_empty_keys(&self) -> bool {
        BitArrayFormat::takes_empty_keys(self)
    }

    fn contains(&self, file: &[u8], words: &[u64], found: &mut BatchResults) {
        let (each, bits) = (BitArrayFormat::words(self), self.bits());
        let first = |key: &[u64]| self.positions(key).next().is_none_or(|bit| bits.get(file, bit));
        contains_together(words, each, found, first, |key| {
            self.positions(key).all(|bit| bits.get(file, bit))
        });
    }

    fn insert(
        &mut self,
        file: &mut Vec<u8>,
        words: &[u64],
        _limit: u64,
        new: &mut BatchResults,
    ) -> Result<()> {
        let (each, bits) = (BitArrayFormat::words(self), self.bits());
        let mut result = Ok(());
        new.fill_with(words.len() / each, |at| {
            if result.is_ok() {
                result = self.check_capacity(file);
            }
            if result.is_err() {
                return false;
            }
            let key = &words[at * each..(at + 1) * each];
            let changed = self.positions(key).map(|bit| u64::from(bits.set(file, bit))).sum();
            self.note(file, changed);
            changed > 0
        });
        result
    }

    fn materialize(&mut self, file: &mut Vec<u8>, limit: u64) -> Result<()> {
        BitArrayFormat::materialize(self, file, limit)
    }

    fn union_bits(&mut self, file: &mut [u8], theirs: &dyn FormatImpl, their_file: &[u8]) {
        if let Some((_, bits)) = theirs.bit_array() {
            self.bits().union_bits(file, bits, their_file);
            self.note_union(file, &theirs.header_stats(their_file));
        }
    }

    fn bit_array(&self) -> Option<(String, Bits)> {
        let stats = self.header_stats(&[]);
        let (bits, probes) = (self.bits(), self.probes());
        let mut row = format!("{} bits, {probes} probes{}", bits.count, stats.variant());
        if let Some(keys) = stats.capacity {
            row += &format!(", for {keys} keys");
        }
        if let Some(rate) = stats.target_fpr {
            row += &format!(" at {} %", rate * 100.0);
        }
        Some((row, bits))
    }

    fn header_stats(&self, file: &[u8]) -> FilterStats {
        let mut stats = FilterStats::new(self.format());
        self.describe(file, &mut stats);
        stats
    }

    fn stats(&self, file: &[u8]) -> FilterStats {
        let mut stats = FilterStats::new(self.format());
        self.measure(file, &mut stats);
        self.describe(file, &mut stats);
        stats
    }

    fn expected_fpr(&self, keys: u64) -> Option<FprEstimate> {
        let (stepping, keys) = (self.stepping()?, keys as f64);
        let (bits, probes) = (self.bits().count.min(self.reach()), self.probes());
        let fill = expected_fill(bits, probes, keys);
        let count = |words: &[u64; 4]| distinct(self.positions(words), fill);
        let floor = fpr_floor(&mut SampleBudget::new(1), stepping, probes, fill, keys, count);
        Some(FprEstimate {
            all: petal::math::probability_of_either(fill.powf(probes.into()), floor),
            floor,
        })
    }

    fn check(&self, file: &[u8]) -> Result<()> {
        BitArrayFormat::check(self, file)
    }
}

/// Returns the share of bits that `keys` keys set.
pub(crate) fn expected_fill(bits: u64, probes: u32, keys: f64) -> f64 {
    -((-(bits.max(1) as f64).recip()).ln_1p() * f64::from(probes) * keys).exp_m1()
}

/// The checked parameters of a new filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// At least one.
    pub(crate) keys: u64,
    /// Above 0, below 1.
    pub(crate) rate: f64,
    /// Maximum size in bytes.
    pub(crate) limit: u64,
}

impl Plan {
    pub(crate) fn new(keys: u64, rate: f64, limit: u64) -> Result<Self> {
        if keys == 0 {
            return Err(Error::invalid("capacity", "at least 1", keys));
        }
        if !(rate > 0.0 && rate < 1.0) {
            return Err(Error::invalid(
                "false-positive rate",
                "above 0 and below 1",
                format!("{rate:e}"),
            ));
        }
        Ok(Self { keys, rate, limit })
    }

    /// Returns the bytes of an empty filter: a header, and zeros up to its length.
    pub(crate) fn file(&self, beginning: &[u8], length: u64) -> Result<Vec<u8>> {
        if length > self.limit {
            return Err(Error::too_large(length, self.limit));
        }
        let refused = || Error::alloc(length);
        let bytes = usize::try_from(length).map_err(|_| refused())?;
        let mut file = Vec::new();
        file.try_reserve_exact(bytes).map_err(|_| refused())?;
        file.extend_from_slice(beginning);
        file.resize(bytes, 0);
        Ok(file)
    }
}

/// An empty filter: its header and its bytes.
pub(crate) type NewFilter<S> = (S, Vec<u8>);
