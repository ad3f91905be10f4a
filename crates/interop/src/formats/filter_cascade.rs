//! Mozilla's filter cascade: Bloom filters of each other's false positives. Little-endian: the
//! version in 2 bytes; in version 2 a byte that is 1 if results are inverted, the length of the
//! salt in one byte, and the salt; then the levels. A level is its hash in one byte, its bits in 4,
//! its probes in 4, its number from 1 in one, and its bits, least significant first.
//!
//! Level 1 holds the members, level 2 the known non-members that level 1 contains, level 3 the
//! members that level 2 contains, and so on. The first level that does not contain a key decides,
//! or the last one. An inverted cascade is one of the non-members.
//!
//! Hashes, all modulo the bits of the level:
//! 1. 32-bit MurmurHash3, seeded with probe · 2¹⁶ + level; without salt;
//! 2. the first 4 bytes of SHA-256 of salt, probe (4 bytes), level (1 byte) and key;
//! 3. a stream of bytes, the SHA-256 of block number (4 bytes), salt and key. Each probe of each
//!    level consumes as many bytes as its positions need.
//!
//! In version 1 the levels directly follow the version. Levels without probes contain every key;
//! rust-cascade makes them when members outnumber non-members.
//!
//! Source: files written by the Python package filtercascade 0.4.1 (versions 1 and 2, hashes 1 and
//! 2) and the crate rust_cascade 1.5.0 (hash 3); Larisch et al. 2017.

use std::fmt;
use std::sync::Arc;

use petal::BatchResults;
use sha2::{Digest as _, Sha256};

use crate::encoding::bits::Bits;
use crate::encoding::bytes::{at, le16, le32};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::formats::format_impl::{FormatImpl, HashFn, MAX_WORDS};
use crate::hashes::murmur3;
use crate::stats::FilterStats;

/// Bytes of a level before its bits.
pub(crate) const LEVEL_HEADER: usize = 10;

/// Maximum number of probes of all levels together. Every lookup hashes for all of them, so this
/// limits the cost of a hostile file. Libraries use 5 to 100.
pub(crate) const MAX_PROBES: u64 = MAX_WORDS;

/// The hash of a cascade.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CascadeHash {
    /// 32-bit MurmurHash3 without salt: the default of Mozilla's library.
    #[default]
    Murmur3,
    /// One SHA-256 per probe, with or without salt.
    Sha256,
    /// One SHA-256 stream for all probes, with or without salt: in the crate `rust_cascade`, not in
    /// the Python package.
    Sha256Stream,
}

impl CascadeHash {
    /// All hashes.
    pub const ALL: [Self; 3] = [Self::Murmur3, Self::Sha256, Self::Sha256Stream];

    /// Returns the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Murmur3 => "murmur3",
            Self::Sha256 => "sha256",
            Self::Sha256Stream => "sha256-stream",
        }
    }

    /// Returns the number used in files.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Murmur3 => 1,
            Self::Sha256 => 2,
            Self::Sha256Stream => 3,
        }
    }

    /// Returns the number of bytes that one probe consumes from the stream.
    fn taken(self, bits: u32) -> u64 {
        match self {
            Self::Murmur3 | Self::Sha256 => 0,
            Self::Sha256Stream => {
                u64::from(u64::from(bits).next_power_of_two().ilog2().div_ceil(8))
            }
        }
    }
}

impl fmt::Display for CascadeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A level: its location and its hash parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    number: u8,
    /// Offset of its bits.
    at: usize,
    bits: u32,
    probes: u32,
    /// Bytes of a key's stream that earlier levels consume.
    skipped: u64,
}

impl Level {
    pub(crate) fn bit_array(&self) -> Bits {
        Bits::low_first(self.at, self.bits.into())
    }

    /// Returns true if the layer contains a key with these positions.
    pub(crate) fn holds(&self, file: &[u8], words: &[u64]) -> bool {
        let row = self.bit_array();
        words.iter().all(|bit| row.get(file, *bit))
    }
}

/// The hash of a cascade, with its levels.
#[derive(Clone, Debug)]
pub(crate) struct CascadeHashing {
    pub(crate) hash: CascadeHash,
    pub(crate) salt: Vec<u8>,
    pub(crate) levels: Vec<Level>,
}

impl CascadeHashing {
    /// Adds a level with its bits at `at`.
    pub(crate) fn push(&mut self, number: u8, at: usize, bits: u32, probes: u32) -> Level {
        let skipped = self
            .levels
            .last()
            .map_or(0, |last| last.skipped + u64::from(last.probes) * self.hash.taken(last.bits));
        let level = Level { number, at, bits, probes, skipped };
        self.levels.push(level);
        level
    }

    fn probes(&self) -> u64 {
        self.levels.iter().map(|level| u64::from(level.probes)).sum()
    }

    /// Appends a key's positions in one level, each below its number of bits.
    pub(crate) fn positions(&self, level: &Level, key: &[u8], words: &mut Vec<u64>) {
        let bits = level.bits.max(1);
        let mut stream = Stream::new(&self.salt, key, level.skipped);
        words.extend((0..level.probes).map(|probe| {
            let hash = match self.hash {
                CascadeHash::Murmur3 => {
                    murmur3::x86_32(key, (probe << 16).wrapping_add(level.number.into()))
                }
                CascadeHash::Sha256 => {
                    let hash = Sha256::new_with_prefix(&self.salt)
                        .chain_update(probe.to_le_bytes())
                        .chain_update([level.number])
                        .chain_update(key)
                        .finalize();
                    le32(&hash, 0).unwrap_or(0)
                }
                CascadeHash::Sha256Stream => stream.take(self.hash.taken(level.bits)),
            };
            u64::from(hash % bits)
        }));
    }
}

/// The byte stream of a key with the third hash.
struct Stream<'a> {
    salt: &'a [u8],
    key: &'a [u8],
    next: u64,
    block: Option<(u32, [u8; 32])>,
}

impl<'a> Stream<'a> {
    fn new(salt: &'a [u8], key: &'a [u8], next: u64) -> Self {
        Self { salt, key, next, block: None }
    }

    /// Reads a number of at most 4 bytes.
    fn take(&mut self, bytes: u64) -> u32 {
        (0..bytes).fold(0, |number, place| number | u32::from(self.byte()) << (8 * place))
    }

    fn byte(&mut self) -> u8 {
        let (number, place) = ((self.next / 32) as u32, (self.next % 32) as usize);
        self.next += 1;
        let block = match self.block {
            Some((had, block)) if had == number => block,
            _ => Sha256::new_with_prefix(number.to_le_bytes())
                .chain_update(self.salt)
                .chain_update(self.key)
                .finalize()
                .into(),
        };
        self.block = Some((number, block));
        block[place]
    }
}

#[derive(Clone, Debug)]
pub(crate) struct FilterCascade {
    version: u16,
    inverted: bool,
    shape: Arc<CascadeHashing>,
}

fn bad<T>(what: &'static str, expected: impl fmt::Display, found: impl fmt::Display) -> Result<T> {
    Err(Error::malformed(Format::FilterCascade.name(), what, expected, found))
}

impl FilterCascade {
    /// Parses all headers and checks the length of a file.
    pub(crate) fn parse(file: &[u8]) -> Result<Self> {
        let (version, inverted, salt) = match le16(file, 0) {
            Some(1) => (1, 0, Some(&[][..])),
            Some(2) => {
                let Some([inverted, salted]) = at::<2>(file, 2) else {
                    return bad("length", "4 bytes or more", file.len());
                };
                (2, inverted, file.get(4..4 + usize::from(salted)))
            }
            Some(version) => return bad("version", "1 or 2", version),
            None => return bad("length", "2 bytes or more", file.len()),
        };
        if inverted > 1 {
            return bad("inversion", "0 or 1", inverted);
        }
        let Some(salt) = salt else {
            return bad("length", "a whole salt", format!("{} bytes in all", file.len()));
        };
        let mut next = if version == 1 { 2 } else { 4 + salt.len() };
        let Some(hash) = file.get(next) else { return bad("layers", "at least 1", 0) };
        let Some(hash) = CascadeHash::ALL.into_iter().find(|known| known.number() == *hash) else {
            return bad("hash", "1, 2 or 3", hash);
        };
        let mut shape = CascadeHashing { hash, salt: salt.to_vec(), levels: Vec::new() };
        while next < file.len() {
            next = Self::parse_level(file, next, &mut shape)?;
        }
        if shape.probes() == 0 {
            return bad("probes", "at least 1 in some layer", 0);
        }
        Ok(Self { version, inverted: inverted == 1, shape: Arc::new(shape) })
    }

    /// Parses the level at an offset. Returns the offset of the next one.
    fn parse_level(file: &[u8], start: usize, shape: &mut CascadeHashing) -> Result<usize> {
        let number = shape.levels.len() as u64 + 1;
        let (Some(hash), Some(bits), Some(probes), Some(named)) =
            (file.get(start), le32(file, start + 1), le32(file, start + 5), file.get(start + 9))
        else {
            let end = start.saturating_add(LEVEL_HEADER) as u64;
            return Err(Error::cut(Format::FilterCascade, end, file));
        };
        if *hash != shape.hash.number() {
            return bad("hash of a layer", format!("{}, as before", shape.hash.number()), hash);
        }
        if u64::from(*named) != number {
            return bad("number of a layer", number, named);
        }
        if bits == 0 {
            return bad("bits of a layer", "1 or more", bits);
        }
        let probes_before = shape.probes();
        if probes_before + u64::from(probes) > MAX_PROBES {
            let expected = format!("{} at most ({MAX_PROBES} in all)", MAX_PROBES - probes_before);
            return bad("probes of a layer", expected, probes);
        }
        let (at, there) = (start + LEVEL_HEADER, file.len() - start - LEVEL_HEADER);
        let bytes = bits.div_ceil(8) as usize;
        if bytes > there {
            let end = (at as u64).saturating_add(bytes as u64);
            return Err(Error::cut(Format::FilterCascade, end, file));
        }
        let level = shape.push(*named, at, bits, probes);
        Ok(level.at + bytes)
    }
}

impl FormatImpl for FilterCascade {
    fn words(&self) -> usize {
        self.shape.probes() as usize
    }

    fn hash_fn(&self) -> HashFn {
        let shape = Arc::clone(&self.shape);
        Arc::new(move |key, words| {
            shape.levels.iter().for_each(|level| shape.positions(level, key, words));
        })
    }

    fn contains(&self, file: &[u8], words: &[u64], found: &mut BatchResults) {
        let each = self.words();
        found.fill_with(words.len() / each, |at| {
            let mut words = &words[at * each..(at + 1) * each];
            let mut member = self.inverted;
            for level in &self.shape.levels {
                let (own, rest) = words.split_at(level.probes as usize);
                if !level.holds(file, own) {
                    break;
                }
                member = !member;
                words = rest;
            }
            member
        });
    }

    fn insert(
        &mut self,
        _file: &mut Vec<u8>,
        _words: &[u64],
        _limit: u64,
        _new: &mut BatchResults,
    ) -> Result<()> {
        let what = "is made once, of all members and non-members, and takes no more keys";
        Err(Error::unsupported(Format::FilterCascade, what))
    }

    fn stats(&self, file: &[u8]) -> FilterStats {
        let mut stats = self.header_stats(file);
        let mut first = None;
        // The probability that this level and those after it report an unknown key as a key of
        // this level; computed from the last level to the first.
        let mut taken = 0.0;
        for level in self.shape.levels.iter().rev() {
            let mut row = FilterStats::new(Format::FilterCascade);
            row.add_row(level.bits.into(), level.bit_array().count_ones(file), level.probes);
            taken = row.estimated_fpr * (1.0 - taken);
            stats.bits += row.bits;
            stats.set += row.set;
            stats.probes = stats.probes.max(row.probes);
            stats.layers += 1;
            first = row.estimated_keys.filter(|_| level.probes > 0);
        }
        stats.estimated_fpr = if self.inverted { 1.0 - taken } else { taken };
        // The first level of an inverted cascade holds the non-members.
        stats.estimated_keys = first.filter(|_| !self.inverted);
        stats
    }

    fn header_stats(&self, _file: &[u8]) -> FilterStats {
        let mut stats = FilterStats::new(Format::FilterCascade);
        stats.choice("version", self.version);
        stats.choice("hash", self.shape.hash);
        if !self.shape.salt.is_empty() {
            let salt: String = self.shape.salt.iter().map(|byte| format!("{byte:02x}")).collect();
            stats.choice("salt", salt);
        }
        stats.choice("inverted", if self.inverted { "yes" } else { "no" });
        stats.not_recorded.push(
            "which keys it was made of: only for those, members and known non-members, are its \
             answers certain; to others it may say yes or no",
        );
        if self.inverted {
            stats
                .warnings
                .push("it is inverted: most keys in neither list are reported as present");
        }
        stats
    }

    fn check(&self, file: &[u8]) -> Result<()> {
        for level in &self.shape.levels {
            let row = level.bit_array();
            if (row.count..row.bytes() * 8).any(|bit| row.get(file, bit)) {
                return bad("bits behind the last of a layer", "0", "1");
            }
        }
        Ok(())
    }
}
