//! What every format tells of its filters: how keys become words, and words bits of the file.
//!
//! A filter is the bytes of its file. A *scheme* is what their beginning says, examined: it holds
//! numbers, no bits. Keys are hashed to a fixed number of words, which any thread can do, and the
//! words are then looked up or put in.
//!
//! Nearly all formats are a row of bits and some positions in it: those implement [`Positional`],
//! and have the rest from here.

use std::fmt::Debug;
use std::sync::Arc;

use petal::Answers;

use crate::bits::Bits;
use crate::error::{Error, Result};
use crate::facts::Facts;
use crate::floor::{Budget, Stepping, distinct, rate_floor};
use crate::format::Format;

/// From the bytes of a key to words: always appends as many as [`Scheme::words`] says.
pub(crate) type Digest = Arc<dyn Fn(&[u8], &mut Vec<u64>) + Send + Sync>;

/// Bits of a key that a file may claim. The least rate that a 64-bit float has needs 1,074; each takes
/// some nanoseconds of every query, so that a file of 32 bytes could cost hours.
pub(crate) const MOST_PROBES: u64 = 4096;

/// Words that a key may come to: each probe of some formats has a hash of its own, and words of
/// many keys are held at once.
pub(crate) const MOST_WORDS: u64 = 4096;

/// Bits that hashes of 32 bits reach where their sign is taken off.
pub(crate) const REACH: u64 = 1 << 31;

/// A false-positive rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) all: f64,
    /// What of it comes from the format's double hashing.
    pub(crate) floor: f64,
}

/// A format's way with keys and bits.
pub(crate) trait Scheme: Debug + Send + Sync {
    /// Words that a key comes to; at least one.
    fn words(&self) -> usize;

    /// How it comes to them.
    fn digest(&self) -> Digest;

    /// Whether the program holds empty keys: some refuse them, some drop them.
    fn takes_empty_keys(&self) -> bool {
        true
    }

    /// Answers for each key of a batch.
    fn contains(&self, file: &[u8], words: &[u64], found: &mut Answers);

    /// Puts a batch of keys in; `new` tells for each whether it certainly was not there. The file
    /// may grow to `limit` bytes.
    fn insert(
        &mut self,
        file: &mut Vec<u8>,
        words: &[u64],
        limit: u64,
        new: &mut Answers,
    ) -> Result<()>;

    /// Gives an empty filter that lies in a short form the bytes that it is to have, which may be
    /// so many; called before anything is put in.
    fn unfold(&mut self, _file: &mut Vec<u8>, _limit: u64) -> Result<()> {
        Ok(())
    }

    /// Takes in a filter with the same [`row`](Self::row).
    fn unite(&mut self, _file: &mut [u8], _theirs: &dyn Scheme, _their_file: &[u8]) {}

    /// What two filters must have in common to be united, in words, and the bits to unite; `None`
    /// of formats that cannot.
    fn row(&self) -> Option<(String, Bits)> {
        None
    }

    /// What its header says.
    fn told(&self, file: &[u8]) -> Facts;

    /// What is known of it, from its header and its bits.
    fn facts(&self, file: &[u8]) -> Facts;

    /// The false-positive rate that it will have with so many keys; `None` if that is not computed
    /// for the format.
    fn expected_rate(&self, _keys: u64) -> Option<Rate> {
        None
    }

    /// Examines whatever the format lets one examine beyond its header.
    fn check(&self, file: &[u8]) -> Result<()>;
}

/// A format with one row of bits in which a key has some positions.
pub(crate) trait Positional: Debug + Send + Sync {
    /// Which format.
    fn format(&self) -> Format;

    /// See [`Scheme::words`].
    fn words(&self) -> usize;

    /// See [`Scheme::digest`].
    fn digest(&self) -> Digest;

    /// See [`Scheme::takes_empty_keys`].
    fn takes_empty_keys(&self) -> bool {
        true
    }

    /// The bits of the key with these words, each below the number of bits.
    fn positions(&self, words: &[u64]) -> impl Iterator<Item = u64>;

    /// Where the bits are.
    fn bits(&self) -> Bits;

    /// Bits of a key.
    fn probes(&self) -> u32;

    /// Whether the library would put one more key in.
    fn room(&self, _file: &[u8]) -> Result<()> {
        Ok(())
    }

    /// See [`Scheme::unfold`].
    fn unfold(&mut self, _file: &mut Vec<u8>, _limit: u64) -> Result<()> {
        Ok(())
    }

    /// Notes in the file that a key was put in and how many bits that changed.
    fn note(&mut self, _file: &mut [u8], _changed: u64) {}

    /// Notes in the file that another filter was taken in, that holds what `theirs` says.
    fn note_union(&mut self, _file: &mut [u8], _theirs: &Facts) {}

    /// The first bits, which are all that positions reach.
    fn reach(&self) -> u64 {
        u64::MAX
    }

    /// How positions follow from a start and a step, in formats that hash so.
    fn stepping(&self) -> Option<Stepping> {
        None
    }

    /// Adds to what is known what the bits tell; as it is here if a key's positions may be anywhere.
    fn measure(&self, file: &[u8], facts: &mut Facts) {
        facts.add_row_within(self.reach(), self.bits(), file, self.probes());
        if let (Some(stepping), Some(keys)) = (self.stepping(), facts.estimated_keys) {
            let fill = facts.set as f64 / self.bits().count.min(self.reach()) as f64;
            let count = |words: &[u64; 4]| distinct(self.positions(words), fill);
            let mut budget = Budget::new(1);
            let floor = rate_floor(&mut budget, stepping, self.probes(), fill, keys, count);
            facts.add_floor(floor);
        }
    }

    /// Adds to what is known what the header says.
    fn tell(&self, file: &[u8], facts: &mut Facts);

    /// See [`Scheme::check`].
    fn check(&self, _file: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// Keys whose first bits are looked up together, so that their cache misses overlap.
const TOGETHER: usize = 16;

impl<P: Positional> Scheme for P {
    fn words(&self) -> usize {
        Positional::words(self)
    }

    fn digest(&self) -> Digest {
        Positional::digest(self)
    }

    fn takes_empty_keys(&self) -> bool {
        Positional::takes_empty_keys(self)
    }

    fn contains(&self, file: &[u8], words: &[u64], found: &mut Answers) {
        let (each, bits) = (Positional::words(self), self.bits());
        let mut first = [false; TOGETHER];
        found.answer(words.len() / each, |at| {
            if at % TOGETHER == 0 {
                let group = words[at * each..].chunks_exact(each).zip(&mut first);
                for (key, first) in group {
                    *first = self.positions(key).next().is_none_or(|bit| bits.get(file, bit));
                }
            }
            let key = &words[at * each..(at + 1) * each];
            first[at % TOGETHER] && self.positions(key).all(|bit| bits.get(file, bit))
        });
    }

    fn insert(
        &mut self,
        file: &mut Vec<u8>,
        words: &[u64],
        _limit: u64,
        new: &mut Answers,
    ) -> Result<()> {
        let (each, bits) = (Positional::words(self), self.bits());
        let mut room = Ok(());
        new.answer(words.len() / each, |at| {
            if room.is_ok() {
                room = self.room(file);
            }
            if room.is_err() {
                return false;
            }
            let key = &words[at * each..(at + 1) * each];
            let changed = self.positions(key).map(|bit| u64::from(bits.set(file, bit))).sum();
            self.note(file, changed);
            changed > 0
        });
        room
    }

    fn unfold(&mut self, file: &mut Vec<u8>, limit: u64) -> Result<()> {
        Positional::unfold(self, file, limit)
    }

    fn unite(&mut self, file: &mut [u8], theirs: &dyn Scheme, their_file: &[u8]) {
        if let Some((_, bits)) = theirs.row() {
            self.bits().unite(file, bits, their_file);
            self.note_union(file, &theirs.told(their_file));
        }
    }

    fn row(&self) -> Option<(String, Bits)> {
        let facts = self.told(&[]);
        let (bits, probes) = (self.bits(), self.probes());
        let mut row = format!("{} bits, {probes} probes{}", bits.count, facts.variant());
        if let Some(keys) = facts.planned_keys {
            row += &format!(", for {keys} keys");
        }
        if let Some(rate) = facts.target_rate {
            row += &format!(" at {} %", rate * 100.0);
        }
        Some((row, bits))
    }

    fn told(&self, file: &[u8]) -> Facts {
        let mut facts = Facts::new(self.format());
        self.tell(file, &mut facts);
        facts
    }

    fn facts(&self, file: &[u8]) -> Facts {
        let mut facts = Facts::new(self.format());
        self.measure(file, &mut facts);
        self.tell(file, &mut facts);
        facts
    }

    fn expected_rate(&self, keys: u64) -> Option<Rate> {
        let (stepping, keys) = (self.stepping()?, keys as f64);
        let (bits, probes) = (self.bits().count.min(self.reach()), self.probes());
        let fill = expected_fill(bits, probes, keys);
        let count = |words: &[u64; 4]| distinct(self.positions(words), fill);
        let floor = rate_floor(&mut Budget::new(1), stepping, probes, fill, keys, count);
        Some(Rate { all: petal::rate::either(fill.powf(probes.into()), floor), floor })
    }

    fn check(&self, file: &[u8]) -> Result<()> {
        Positional::check(self, file)
    }
}

/// The share of bits that so many keys set.
pub(crate) fn expected_fill(bits: u64, probes: u32, keys: f64) -> f64 {
    -((-(bits.max(1) as f64).recip()).ln_1p() * f64::from(probes) * keys).exp_m1()
}

/// What a filter is to be made for, examined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// At least one.
    pub(crate) keys: u64,
    /// Above 0, below 1.
    pub(crate) rate: f64,
    /// Bytes that it may take.
    pub(crate) limit: u64,
}

impl Plan {
    pub(crate) fn new(keys: u64, rate: f64, limit: u64) -> Result<Self> {
        if keys == 0 {
            return Err(Error::invalid("keys", "at least 1", keys));
        }
        if !(rate > 0.0 && rate < 1.0) {
            return Err(Error::invalid("rate", "above 0 and below 1", format!("{rate:e}")));
        }
        Ok(Self { keys, rate, limit })
    }

    /// The bytes of an empty filter: a beginning, and zeros up to its length.
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

/// An empty filter: its scheme and its bytes.
pub(crate) type Empty<S> = (S, Vec<u8>);
