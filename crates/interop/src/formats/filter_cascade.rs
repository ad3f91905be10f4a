//! Mozilla's filter cascade: Bloom filters that correct each other. Numbers with the low byte
//! first: the version in 2 bytes; in version 2 a byte that is 1 if all answers are to be inverted,
//! the length of the salt in one byte, and the salt; then the layers. A layer is its hash in one
//! byte, its bits in 4, its probes in 4, its number from 1 in one, and its bits, the low bit first.
//!
//! Layer 1 holds the members, layer 2 the known non-members that layer 1 takes for members, layer 3
//! the members that layer 2 takes for non-members, and so on: the first layer that says no decides,
//! and without one the last. An inverted cascade is one of the non-members.
//!
//! Hashes, all modulo the bits of the layer:
//! 1. MurmurHash3 of 32 bits, seeded with probe · 2¹⁶ + layer; a salt is not used;
//! 2. the first 4 bytes of SHA-256 of salt, probe (4 bytes), layer (1 byte) and key;
//! 3. a stream of bytes, the SHA-256 of number of the block (4 bytes), salt and key, of which each
//!    probe of each layer takes as many as positions in its layer need.
//!
//! Version 1 has the layers right behind the version. There may be layers without probes, that say
//! yes to all: rust-cascade makes them of members that outnumber the others.
//!
//! Source: the files that the Python package filtercascade 0.4.1 (versions 1 and 2, hashes 1
//! and 2) and the crate rust_cascade 1.5.0 (hash 3) write; Larisch et al. 2017 for the idea.

use std::fmt;
use std::sync::Arc;

use petal::Answers;
use sha2::{Digest as _, Sha256};

use crate::bits::Bits;
use crate::bytes::{at, le16, le32};
use crate::error::{Error, Result};
use crate::facts::Facts;
use crate::format::Format;
use crate::hashes::murmur3;
use crate::scheme::{Digest, MOST_WORDS, Scheme};

/// Bytes of a layer before its bits.
pub(crate) const LAYER_HEADER: usize = 10;

/// Probes of all layers together that are believed. All are hashed for each key asked, so this
/// bounds what a file can make a query cost. Libraries come to 5 to 100.
pub(crate) const MOST_PROBES: u64 = MOST_WORDS;

/// How a cascade hashes keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CascadeHash {
    /// MurmurHash3 of 32 bits, without salt: the default of Mozilla's library.
    #[default]
    Murmur3,
    /// A SHA-256 for each probe, with or without salt.
    Sha256,
    /// One stream of SHA-256 for all probes, with or without salt: the crate `rust_cascade` has
    /// it, the Python package does not.
    Sha256Stream,
}

impl CascadeHash {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Murmur3, Self::Sha256, Self::Sha256Stream];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Murmur3 => "murmur3",
            Self::Sha256 => "sha256",
            Self::Sha256Stream => "sha256-stream",
        }
    }

    /// How files name it.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Murmur3 => 1,
            Self::Sha256 => 2,
            Self::Sha256Stream => 3,
        }
    }

    /// How many bytes one probe takes from the stream.
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

/// One layer: where it is, and what the keys need to know of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layer {
    number: u8,
    /// Where its bits begin in the file.
    at: usize,
    bits: u32,
    probes: u32,
    /// Bytes of a key's stream that earlier layers take.
    skipped: u64,
}

impl Layer {
    pub(crate) fn row(&self) -> Bits {
        Bits::low_first(self.at, self.bits.into())
    }

    /// Whether it holds a key with these positions.
    pub(crate) fn holds(&self, file: &[u8], words: &[u64]) -> bool {
        let row = self.row();
        words.iter().all(|bit| row.get(file, *bit))
    }
}

/// How keys become positions: the hash, and the layers so far.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) hash: CascadeHash,
    pub(crate) salt: Vec<u8>,
    pub(crate) layers: Vec<Layer>,
}

impl Shape {
    /// Takes in another layer, its bits at `at` of the file.
    pub(crate) fn push(&mut self, number: u8, at: usize, bits: u32, probes: u32) -> Layer {
        let skipped = self
            .layers
            .last()
            .map_or(0, |last| last.skipped + u64::from(last.probes) * self.hash.taken(last.bits));
        let layer = Layer { number, at, bits, probes, skipped };
        self.layers.push(layer);
        layer
    }

    fn probes(&self) -> u64 {
        self.layers.iter().map(|layer| u64::from(layer.probes)).sum()
    }

    /// Appends a key's positions in one layer, all below its bits.
    pub(crate) fn positions(&self, layer: &Layer, key: &[u8], words: &mut Vec<u64>) {
        let bits = layer.bits.max(1);
        let mut stream = Stream::new(&self.salt, key, layer.skipped);
        words.extend((0..layer.probes).map(|probe| {
            let hash = match self.hash {
                CascadeHash::Murmur3 => {
                    murmur3::x86_32(key, (probe << 16).wrapping_add(layer.number.into()))
                }
                CascadeHash::Sha256 => {
                    let hash = Sha256::new_with_prefix(&self.salt)
                        .chain_update(probe.to_le_bytes())
                        .chain_update([layer.number])
                        .chain_update(key)
                        .finalize();
                    le32(&hash, 0).unwrap_or(0)
                }
                CascadeHash::Sha256Stream => stream.take(self.hash.taken(layer.bits)),
            };
            u64::from(hash % bits)
        }));
    }
}

/// The bytes that a key gives with the third hash.
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

    /// A number of so many bytes, at most 4.
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
    shape: Arc<Shape>,
}

fn bad<T>(what: &'static str, expected: impl fmt::Display, found: impl fmt::Display) -> Result<T> {
    Err(Error::malformed(Format::FilterCascade.name(), what, expected, found))
}

impl FilterCascade {
    /// Examines all headers and the length of a file.
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
        let mut shape = Shape { hash, salt: salt.to_vec(), layers: Vec::new() };
        while next < file.len() {
            next = Self::parse_layer(file, next, &mut shape)?;
        }
        if shape.probes() == 0 {
            return bad("probes", "at least 1 in some layer", 0);
        }
        Ok(Self { version, inverted: inverted == 1, shape: Arc::new(shape) })
    }

    /// Examines the layer that begins at a place; where the next one does.
    fn parse_layer(file: &[u8], start: usize, shape: &mut Shape) -> Result<usize> {
        let number = shape.layers.len() as u64 + 1;
        let (Some(hash), Some(bits), Some(probes), Some(named)) =
            (file.get(start), le32(file, start + 1), le32(file, start + 5), file.get(start + 9))
        else {
            let end = start.saturating_add(LAYER_HEADER) as u64;
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
        if probes_before + u64::from(probes) > MOST_PROBES {
            let expected =
                format!("{} at most ({MOST_PROBES} in all)", MOST_PROBES - probes_before);
            return bad("probes of a layer", expected, probes);
        }
        let (at, there) = (start + LAYER_HEADER, file.len() - start - LAYER_HEADER);
        let bytes = bits.div_ceil(8) as usize;
        if bytes > there {
            let end = (at as u64).saturating_add(bytes as u64);
            return Err(Error::cut(Format::FilterCascade, end, file));
        }
        let layer = shape.push(*named, at, bits, probes);
        Ok(layer.at + bytes)
    }
}

impl Scheme for FilterCascade {
    fn words(&self) -> usize {
        self.shape.probes() as usize
    }

    fn digest(&self) -> Digest {
        let shape = Arc::clone(&self.shape);
        Arc::new(move |key, words| {
            shape.layers.iter().for_each(|layer| shape.positions(layer, key, words));
        })
    }

    fn contains(&self, file: &[u8], words: &[u64], found: &mut Answers) {
        let each = self.words();
        found.answer(words.len() / each, |at| {
            let mut words = &words[at * each..(at + 1) * each];
            let mut member = self.inverted;
            for layer in &self.shape.layers {
                let (own, rest) = words.split_at(layer.probes as usize);
                if !layer.holds(file, own) {
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
        _new: &mut Answers,
    ) -> Result<()> {
        let what = "is made once, of all members and non-members, and takes no more keys";
        Err(Error::unsupported(Format::FilterCascade, what))
    }

    fn facts(&self, file: &[u8]) -> Facts {
        let mut facts = self.told(file);
        let mut first = None;
        // From the last layer up: the chance that a key unknown to the maker is taken for one
        // that this layer holds.
        let mut taken = 0.0;
        for layer in self.shape.layers.iter().rev() {
            let mut row = Facts::new(Format::FilterCascade);
            row.add_row(layer.bits.into(), layer.row().count_ones(file), layer.probes);
            taken = row.rate_now * (1.0 - taken);
            facts.bits += row.bits;
            facts.set += row.set;
            facts.probes = facts.probes.max(row.probes);
            facts.layers += 1;
            first = row.estimated_keys.filter(|_| layer.probes > 0);
        }
        facts.rate_now = if self.inverted { 1.0 - taken } else { taken };
        // An inverted one has the others in its first layer.
        facts.estimated_keys = first.filter(|_| !self.inverted);
        facts
    }

    fn told(&self, _file: &[u8]) -> Facts {
        let mut facts = Facts::new(Format::FilterCascade);
        facts.choice("version", self.version);
        facts.choice("hash", self.shape.hash);
        if !self.shape.salt.is_empty() {
            let salt: String = self.shape.salt.iter().map(|byte| format!("{byte:02x}")).collect();
            facts.choice("salt", salt);
        }
        facts.choice("inverted", if self.inverted { "yes" } else { "no" });
        facts.untold.push(
            "which keys it was made of: only for those, members and known non-members, are its \
             answers certain; to others it may say yes or no",
        );
        if self.inverted {
            facts.warnings.push("it is inverted: to keys it was not made of it mostly says yes");
        }
        facts
    }

    fn check(&self, file: &[u8]) -> Result<()> {
        for layer in &self.shape.layers {
            let row = layer.row();
            if (row.count..row.bytes() * 8).any(|bit| row.get(file, bit)) {
                return bad("bits behind the last of a layer", "0", "1");
            }
        }
        Ok(())
    }
}
