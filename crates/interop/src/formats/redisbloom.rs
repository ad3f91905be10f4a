//! RedisBloom's `BF.SCANDUMP`: its chunks, one after the other. The first is a header of 20 bytes
//! (keys, links, options, growth) and 53 for each link (bytes, bits, keys, rate, bits per key,
//! probes, capacity, logarithm of the bits); the others are the bits of the links. Numbers have
//! the low byte first and no padding.
//!
//! A key is hashed twice with MurmurHash64A, the second time seeded with the first hash; probe i
//! is at the first plus i times the second, modulo the bits. Without the option `FORCE64`, in old
//! filters, it is MurmurHash2 of 32 bits.
//!
//! A key is in the filter if it is in any link, and is put in the last. When that holds its
//! capacity, a link of `growth` times the capacity and half the rate is added, unless the filter
//! is `NONSCALING`. The first link of a filter that grows is already made for half the rate.
//!
//! Source: captures of RedisBloom 2.8.20, which has since opened ours and written the same. They
//! have no old filters: of those, only what every reading of the option allows is read, and no link
//! is added.

use std::fmt::Display;
use std::sync::Arc;

use petal::Answers;

use crate::bits::Bits;
use crate::bytes::{le32, le64, lef64, put};
use crate::error::{Error, Result};
use crate::facts::Facts;
use crate::format::Format;
use crate::hashes::murmur2;
use crate::scheme::{Digest, Empty, Plan, Scheme};

const HEADER: usize = 20;
const LINK_HEADER: usize = 53;
/// Where the number of keys is in a link's header.
const LINK_SIZE: usize = 16;
/// `BF.LOADCHUNK` is given no more at once.
const LONGEST_CHUNK: usize = 16 << 20;

/// Sizes are not rounded up to a power of two.
const NO_ROUND: u32 = 1;
/// Hashes of 64 bits.
const FORCE64: u32 = 4;
const NO_SCALING: u32 = 8;
const OPTIONS: u32 = 15;

/// How much lower the rate of each link is; and of the first, than what was asked for.
const TIGHTENING: f64 = 0.5;
/// A chain whose rates halve has no more: the last would be nothing.
const MOST_LINKS: usize = 1100;
/// What `BF.RESERVE` takes if nothing is said.
const GROWTH: u32 = 2;

fn bad<T>(what: &'static str, expected: impl Display, found: impl Display) -> Result<T> {
    Err(Error::malformed(Format::RedisBloom.name(), what, expected, found))
}

#[derive(Clone, Debug)]
pub(crate) struct RedisBloom {
    size: u64,
    options: u32,
    growth: u32,
    links: Vec<Link>,
}

/// A row of bits.
#[derive(Clone, Debug)]
struct Link {
    bits: Bits,
    /// Positions are below; no more than there are bits.
    modulus: u64,
    size: u64,
    rate: f64,
    bits_per_key: f64,
    probes: u32,
    capacity: u64,
    logarithm: u8,
}

impl Link {
    /// As RedisBloom sizes it; its bits are to be put at a place.
    fn plan(place: usize, capacity: u64, rate: f64) -> Self {
        let bits_per_key = rate.ln().abs() / 0.480_453_013_918_201;
        let probes = probes_for(bits_per_key);
        let bits = (capacity as f64 * bits_per_key) as u64;
        let bits = Bits::low_first(place, bits.max(1).div_ceil(64).saturating_mul(64));
        let modulus = bits.count;
        Self { bits, modulus, size: 0, rate, bits_per_key, probes, capacity, logarithm: 0 }
    }

    /// From its header; its bits begin at a place.
    fn parse(header: &[u8], place: usize, options: u32) -> Result<Self> {
        let (Some([bytes, bits, size, capacity]), Some(rate), Some(bits_per_key), Some(probes)) = (
            words(header, [0, 8, LINK_SIZE, 44]),
            lef64(header, 24),
            lef64(header, 32),
            le32(header, 40),
        ) else {
            return bad("length", "a whole header", format!("{} bytes", header.len()));
        };
        let logarithm = header.get(52).copied().unwrap_or(0);
        if bits == 0 || bytes.checked_mul(8) != Some(bits) {
            return bad("bits of a link", format!("8 times {bytes} bytes"), bits);
        }
        if !(rate > 0.0 && rate < 1.0) {
            return bad("rate of a link", "above 0 and below 1", rate);
        }
        let ideal = Self::plan(place, capacity, rate);
        let off = (bits_per_key / ideal.bits_per_key - 1.0).abs();
        if off.is_nan() || off > 1e-6 {
            return bad("bits per key of a link", ideal.bits_per_key, bits_per_key);
        }
        if probes != probes_for(bits_per_key) {
            return bad("probes of a link", probes_for(bits_per_key), probes);
        }
        if capacity == 0 {
            return bad("capacity of a link", "at least 1", capacity);
        }
        let modulus =
            if logarithm == 0 { bits } else { 1u64.checked_shl(logarithm.into()).unwrap_or(0) };
        if modulus == 0 || modulus > bits {
            return bad("logarithm of a link's bits", format!("that of {bits} or less"), logarithm);
        }
        if options & FORCE64 == 0 && !(1..32).contains(&logarithm) {
            return bad("logarithm of a link's bits without FORCE64", "1 to 31", logarithm);
        }
        let bits = Bits::low_first(place, bits);
        Ok(Self { bits, modulus, size, rate, bits_per_key, probes, capacity, logarithm })
    }

    fn header(&self) -> [u8; LINK_HEADER] {
        let mut header = [0; LINK_HEADER];
        let bytes = self.bits.bytes();
        put(&mut header, 0, &bytes.to_le_bytes());
        put(&mut header, 8, &self.bits.count.to_le_bytes());
        put(&mut header, LINK_SIZE, &self.size.to_le_bytes());
        put(&mut header, 24, &self.rate.to_le_bytes());
        put(&mut header, 32, &self.bits_per_key.to_le_bytes());
        put(&mut header, 40, &self.probes.to_le_bytes());
        put(&mut header, 44, &self.capacity.to_le_bytes());
        put(&mut header, 52, &[self.logarithm]);
        header
    }

    #[inline]
    fn positions(&self, words: &[u64]) -> impl Iterator<Item = u64> {
        let (start, step, modulus) = (words[0], words[1], self.modulus);
        (0..u64::from(self.probes))
            .map(move |probe| start.wrapping_add(probe.wrapping_mul(step)) % modulus)
    }

    #[inline]
    fn holds(&self, file: &[u8], words: &[u64]) -> bool {
        self.positions(words).all(|bit| self.bits.get(file, bit))
    }
}

/// Both constants of RedisBloom's sizes end after 15 digits.
#[expect(clippy::approx_constant, reason = "it is what RedisBloom multiplies with")]
fn probes_for(bits_per_key: f64) -> u32 {
    (0.693_147_180_559_945 * bits_per_key).ceil() as u32
}

fn words<const N: usize>(bytes: &[u8], places: [usize; N]) -> Option<[u64; N]> {
    let mut words = [0; N];
    for (word, place) in words.iter_mut().zip(places) {
        *word = le64(bytes, place)?;
    }
    Some(words)
}

impl RedisBloom {
    pub(crate) fn parse(file: &[u8]) -> Result<Self> {
        let (Some(size), Some(count), Some(options), Some(growth)) =
            (le64(file, 0), le32(file, 8), le32(file, 12), le32(file, 16))
        else {
            return bad("length", "20 bytes or more", format!("{} bytes", file.len()));
        };
        if options > OPTIONS {
            return bad("options", "0 to 15", options);
        }
        let there = ((file.len() - HEADER) / LINK_HEADER).min(MOST_LINKS);
        let count = count as usize;
        if count == 0 || count > there {
            return bad("links", format!("1 to {there}"), count);
        }
        let mut place = HEADER + count * LINK_HEADER;
        let mut links = Vec::new();
        let mut keys = 0u64;
        for header in file[HEADER..place].chunks(LINK_HEADER) {
            let link = Link::parse(header, place, options)?;
            keys = keys.saturating_add(link.size);
            let end = (place as u64).saturating_add(link.bits.bytes());
            match usize::try_from(end).ok().filter(|end| *end <= file.len()) {
                Some(end) => place = end,
                None => return Err(Error::cut(Format::RedisBloom, end, file)),
            }
            links.push(link);
        }
        if place != file.len() {
            return Err(Error::cut(Format::RedisBloom, place as u64, file));
        }
        if keys != size {
            return bad("keys", format!("{keys}, the sum of the links"), size);
        }
        Ok(Self { size, options, growth, links })
    }

    /// As `BF.RESERVE` without further words makes it.
    pub(crate) fn plan(plan: &Plan) -> Result<Empty<Self>> {
        let rate = plan.rate * TIGHTENING;
        if rate == 0.0 {
            return Err(Error::limit(
                Format::RedisBloom,
                format!("a rate of {:e} cannot be halved", plan.rate),
                "ask for a higher rate",
            ));
        }
        let link = Link::plan(HEADER + LINK_HEADER, plan.keys, rate);
        let length = link.bits.bytes().saturating_add((HEADER + LINK_HEADER) as u64);
        let options = NO_ROUND | FORCE64;
        let scheme = Self { size: 0, options, growth: GROWTH, links: vec![link] };
        let file = plan.file(&scheme.header(), length)?;
        Ok((scheme, file))
    }

    fn header(&self) -> Vec<u8> {
        let mut header = self.size.to_le_bytes().to_vec();
        for number in [self.links.len() as u32, self.options, self.growth] {
            header.extend(number.to_le_bytes());
        }
        self.links.iter().for_each(|link| header.extend(link.header()));
        header
    }

    /// Puts in a key that no link holds.
    fn add(&mut self, file: &mut Vec<u8>, words: &[u64], limit: u64) -> Result<()> {
        if self.links.last().is_none_or(|link| link.size >= link.capacity) {
            self.grow(file, limit)?;
        }
        let place = HEADER + (self.links.len() - 1) * LINK_HEADER + LINK_SIZE;
        if let Some(link) = self.links.last_mut() {
            for bit in link.positions(words) {
                link.bits.set(file, bit);
            }
            link.size += 1;
            self.size = self.size.saturating_add(1);
            put(file, place, &link.size.to_le_bytes());
            put(file, 0, &self.size.to_le_bytes());
        }
        Ok(())
    }

    /// Adds a link behind the last, which is full.
    fn grow(&mut self, file: &mut Vec<u8>, limit: u64) -> Result<()> {
        let full = |what, do_this| Err(Error::full(Format::RedisBloom, what, do_this));
        if self.options & NO_SCALING != 0 {
            return full("it is NONSCALING and holds its capacity", "make one for more keys");
        }
        if self.options & (NO_ROUND | FORCE64) != NO_ROUND | FORCE64 {
            return full(
                "it holds its capacity, and is of a kind that is not grown here",
                "make it anew",
            );
        }
        let next = self.links.last().and_then(|last| {
            let capacity =
                last.capacity.checked_mul(self.growth.into()).filter(|more| *more > 0)?;
            let rate = Some(last.rate * TIGHTENING).filter(|rate| *rate > 0.0)?;
            Some(Link::plan(file.len() + LINK_HEADER, capacity, rate))
        });
        let Some(link) = next else {
            return full("it cannot grow further", "make one for more keys");
        };
        let length = link.bits.bytes().saturating_add((file.len() + LINK_HEADER) as u64);
        if length > limit {
            return Err(Error::too_large(length, limit));
        }
        let refused = || Error::alloc(length);
        let length = usize::try_from(length).map_err(|_| refused())?;
        file.try_reserve_exact(length - file.len()).map_err(|_| refused())?;
        let place = HEADER + self.links.len() * LINK_HEADER;
        file.splice(place..place, link.header());
        file.resize(length, 0);
        self.links.iter_mut().for_each(|link| link.bits.at += LINK_HEADER);
        self.links.push(link);
        put(file, 8, &(self.links.len() as u32).to_le_bytes());
        Ok(())
    }
}

impl Scheme for RedisBloom {
    fn words(&self) -> usize {
        2
    }

    fn digest(&self) -> Digest {
        if self.options & FORCE64 != 0 {
            return Arc::new(|key, words| {
                let first = murmur2::x64(key, 0xc6a4_a793_5bd1_e995);
                words.extend([first, murmur2::x64(key, first)]);
            });
        }
        Arc::new(|key, words| {
            let first = murmur2::x32(key, 0x9747_b28c);
            words.extend([first, murmur2::x32(key, first)].map(u64::from));
        })
    }

    fn contains(&self, file: &[u8], words: &[u64], found: &mut Answers) {
        // The last link is the largest.
        found.answer(words.len() / 2, |at| {
            self.links.iter().rev().any(|link| link.holds(file, &words[at * 2..]))
        });
    }

    fn insert(
        &mut self,
        file: &mut Vec<u8>,
        words: &[u64],
        limit: u64,
        new: &mut Answers,
    ) -> Result<()> {
        let mut room = Ok(());
        new.answer(words.len() / 2, |at| {
            let key = &words[at * 2..at * 2 + 2];
            if room.is_err() || self.links.iter().rev().any(|link| link.holds(file, key)) {
                return false;
            }
            room = self.add(file, key, limit);
            room.is_ok()
        });
        room
    }

    fn facts(&self, file: &[u8]) -> Facts {
        let mut facts = self.told(file);
        for link in &self.links {
            facts.add_row(link.bits.count, link.bits.count_ones(file), link.probes);
        }
        facts
    }

    fn told(&self, _file: &[u8]) -> Facts {
        let mut facts = Facts::new(Format::RedisBloom);
        let capacity = self.links.iter().fold(0u64, |sum, link| sum.saturating_add(link.capacity));
        let grows = self.options & NO_SCALING == 0;
        let tightened = if grows { TIGHTENING } else { 1.0 };
        facts.planned_keys = Some(capacity);
        facts.target_rate = self.links.first().map(|link| link.rate / tightened);
        facts.counted = Some(self.size);
        facts.choice("hash", if self.options & FORCE64 != 0 { "64 bits" } else { "32 bits" });
        facts.choice("growth", if grows { self.growth.to_string() } else { "none".to_owned() });
        facts
    }

    fn check(&self, file: &[u8]) -> Result<()> {
        self.links.iter().try_for_each(|link| {
            let set = link.bits.count_ones(file);
            let most = link.size.saturating_mul(link.probes.into());
            if set <= most {
                Ok(())
            } else {
                bad("set bits of a link", format!("at most {most}"), set)
            }
        })
    }
}

/// The chunks of a filter, as `BF.SCANDUMP` gives and `BF.LOADCHUNK` takes them: a number that
/// tells how far they reach, and bytes.
pub(crate) fn chunks(file: &[u8]) -> Result<impl Iterator<Item = (u64, &[u8])>> {
    let links = RedisBloom::parse(file)?.links;
    let (header, _) = file.split_at(HEADER + links.len() * LINK_HEADER);
    let mut reached = 1;
    let data = links.into_iter().flat_map(|link| link.bits.of(file).chunks(LONGEST_CHUNK));
    Ok(std::iter::once((1, header)).chain(data.map(move |chunk| {
        reached += chunk.len() as u64;
        (reached, chunk)
    })))
}
