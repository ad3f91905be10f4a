//! RedisBloom's mathematics: the hashes, the size of a link, the positions of a key in it, the next
//! link, and the header of a dump.

use std::fmt::Display;

use crate::encoding::bytes::{le32, le64, lef64};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::hashes::murmur2;

/// Sizes are not rounded up to a power of two.
pub const NO_ROUND: u32 = 1;
/// Capacities of links are logarithms of bits; no command makes such filters.
pub const CAPACITY_IS_BITS: u32 = 2;
/// 64-bit hashes.
pub const FORCE64: u32 = 4;
/// The filter does not grow.
pub const NO_SCALING: u32 = 8;
const OPTIONS: u32 = 15;

/// Factor between the rates of successive links, and between the requested rate and that of the
/// first link of a filter that grows.
pub const TIGHTENING: f64 = 0.5;

/// Maximum number of links: rates that halve reach 0 after this many.
pub const MAX_LINKS: usize = 1100;

const CHAIN_HEADER: usize = 20;
const LINK_HEADER: usize = 53;

fn bad<T>(what: &'static str, expected: impl Display, found: impl Display) -> Result<T> {
    Err(Error::malformed(Format::RedisBloom.name(), what, expected, found))
}

/// Returns the hash of a key for all links: the start, and the step from probe to probe.
#[inline]
#[must_use]
pub fn hash(key: &[u8], options: u32) -> [u64; 2] {
    if options & FORCE64 != 0 {
        let first = murmur2::x64(key, 0xc6a4_a793_5bd1_e995);
        [first, murmur2::x64(key, first)]
    } else {
        let first = murmur2::x32(key, 0x9747_b28c);
        [first, murmur2::x32(key, first)].map(u64::from)
    }
}

/// Returns the hash of RedisBloom's cuckoo filters.
#[inline]
#[must_use]
pub fn cuckoo_hash(key: &[u8]) -> u64 {
    murmur2::x64(key, 0)
}

/// The size of a link, and the positions of a key in it.
///
/// Positions are below [`bits`](Self::bits) for any header.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkPlan {
    bits: u64,
    modulus: Modulus,
    rate: f64,
    bits_per_key: f64,
    probes: u32,
    capacity: u64,
    logarithm: u8,
}

/// The fields of a link in a header.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkFields {
    /// Number of bits.
    pub bits: u64,
    /// Target false-positive rate.
    pub rate: f64,
    /// Bits per key at this rate.
    pub bits_per_key: f64,
    /// Probes.
    pub probes: u64,
    /// Capacity.
    pub capacity: u64,
    /// Logarithm of the bits, if they were rounded up to a power of two.
    pub logarithm: u64,
}

impl LinkPlan {
    /// Sizes a link as RedisBloom does.
    #[must_use]
    pub fn new(capacity: u64, rate: f64) -> Self {
        let bits_per_key = bits_per_key(rate);
        let bits = (capacity as f64 * bits_per_key) as u64;
        let bits = bits.max(1).div_ceil(64).saturating_mul(64) & !63;
        Self {
            bits,
            modulus: Modulus::new(bits),
            rate,
            bits_per_key,
            probes: probes(bits_per_key),
            capacity,
            logarithm: 0,
        }
    }

    /// Sizes a link as RedisBloom did before [`NO_ROUND`]: bits are a power of two, and the gain is
    /// added to the capacity.
    fn rounded(capacity: u64, rate: f64) -> Option<Self> {
        let plan = Self::new(capacity, rate);
        let ideal = capacity as f64 * plan.bits_per_key;
        let bits = (ideal as u64).max(64).checked_next_power_of_two()?;
        let more = ((bits as f64 - ideal).max(0.0) / plan.bits_per_key) as u64;
        let logarithm = bits.trailing_zeros() as u8;
        let capacity = capacity.checked_add(more)?;
        Some(Self { bits, modulus: Modulus::new(bits), capacity, logarithm, ..plan })
    }

    /// Checks the fields of a header.
    ///
    /// # Errors
    /// If a field does not follow from the others.
    pub fn checked(fields: &LinkFields, options: u32) -> Result<Self> {
        let LinkFields { bits, rate, bits_per_key, capacity, .. } = *fields;
        if bits == 0 || !bits.is_multiple_of(8) || bits > 1 << 62 {
            return bad("bits of a link", "a multiple of 8, below 2^62", bits);
        }
        if !(rate > 0.0 && rate < 1.0) {
            return bad("rate of a link", "above 0 and below 1", rate);
        }
        let ideal = self::bits_per_key(rate);
        let off = (bits_per_key / ideal - 1.0).abs();
        if off.is_nan() || off > 1e-4 {
            return bad("bits per key of a link", ideal, bits_per_key);
        }
        let probes = probes(bits_per_key);
        if fields.probes != u64::from(probes) {
            return bad("probes of a link", probes, fields.probes);
        }
        if capacity == 0 {
            return bad("capacity of a link", "at least 1", capacity);
        }
        let modulus = match fields.logarithm {
            0 => bits,
            more => u32::try_from(more).ok().and_then(|more| 1u64.checked_shl(more)).unwrap_or(0),
        };
        if modulus == 0 || modulus > bits {
            let expected = format!("that of {bits} or less");
            return bad("logarithm of a link's bits", expected, fields.logarithm);
        }
        if options & FORCE64 == 0 && !(1..32).contains(&fields.logarithm) {
            let what = "logarithm of a link's bits without FORCE64";
            return bad(what, "1 to 31", fields.logarithm);
        }
        let (modulus, logarithm) = (Modulus::new(modulus), fields.logarithm as u8);
        Ok(Self { bits, modulus, rate, bits_per_key, probes, capacity, logarithm })
    }

    /// Returns the next link when this one is full; `None` if there can be none.
    #[must_use]
    pub fn next(&self, growth: u32, options: u32) -> Option<Self> {
        if options & (NO_SCALING | CAPACITY_IS_BITS) != 0 {
            return None;
        }
        let capacity = self.capacity.checked_mul(growth.into()).filter(|more| *more > 0)?;
        let rate = Some(self.rate * TIGHTENING).filter(|rate| *rate > 0.0)?;
        if options & NO_ROUND != 0 {
            Some(Self::new(capacity, rate))
        } else {
            Self::rounded(capacity, rate)
        }
    }

    /// Returns the fields for a header.
    #[must_use]
    pub fn fields(&self) -> LinkFields {
        LinkFields {
            bits: self.bits,
            rate: self.rate,
            bits_per_key: self.bits_per_key,
            probes: self.probes.into(),
            capacity: self.capacity,
            logarithm: self.logarithm.into(),
        }
    }

    /// Returns the number of bits, a multiple of 8.
    #[inline]
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.bits
    }

    /// Returns the modulus of positions.
    pub(crate) fn modulus(&self) -> u64 {
        self.modulus.divisor
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bits / 8
    }

    /// Returns the capacity.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the target false-positive rate.
    #[must_use]
    pub fn fpr(&self) -> f64 {
        self.rate
    }

    /// Returns the number of probes.
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.probes
    }

    /// Returns true if its bits are those that its capacity needs, rounded by RedisBloom's rules.
    #[must_use]
    pub fn is_as_sized(&self) -> bool {
        let ideal = self.capacity as f64 * self.bits_per_key;
        let bits = self.bits as f64;
        bits >= ideal.floor() && bits <= ideal + self.bits_per_key.max(64.0)
    }

    /// Checks that a link can contain this many keys: each was added below its capacity and set a
    /// bit.
    ///
    /// # Errors
    /// If it cannot.
    pub fn check_keys(&self, keys: u64, options: u32) -> Result<()> {
        let max = if options & CAPACITY_IS_BITS == 0 { self.capacity } else { self.bits };
        if keys > max { bad("keys of a link", format!("at most {max}"), keys) } else { Ok(()) }
    }

    /// Returns the positions of a key, by its [`hash`].
    #[inline]
    pub fn positions(&self, hash: [u64; 2]) -> impl Iterator<Item = u64> + use<> {
        let ([start, step], modulus) = (hash, self.modulus);
        (0..u64::from(self.probes))
            .map(move |probe| modulus.of(start.wrapping_add(probe.wrapping_mul(step))))
    }
}

fn bits_per_key(rate: f64) -> f64 {
    rate.ln().abs() / 0.480_453_013_918_201
}

/// RedisBloom's constants have 15 digits.
#[expect(clippy::approx_constant, reason = "it is what RedisBloom multiplies with")]
fn probes(bits_per_key: f64) -> u32 {
    (0.693_147_180_559_945 * bits_per_key).ceil() as u32
}

/// The remainder of a division by an even number, without dividing.
///
/// Let w be half the divisor, c the logarithm of w rounded up, and M = ⌈2^(63+c) / w⌉, which is
/// below 2^64. For n below 2^63, ⌊n·M / 2^(63+c)⌋ = ⌊n / w⌋: M is too large by less than 1, which
/// adds less than n / 2^(63+c) < 1 / 2^c ≤ 1 / w. Here n is half of the dividend. Source: Granlund
/// & Montgomery 1994, "Division by invariant integers using multiplication".
#[derive(Clone, Copy, Debug, PartialEq)]
struct Modulus {
    divisor: u64,
    multiplier: u64,
    shift: u32,
}

impl Modulus {
    /// The divisor must be even, above 0, and at most 2^63.
    fn new(divisor: u64) -> Self {
        let half = (divisor / 2).max(1);
        let shift = half.next_power_of_two().trailing_zeros();
        let multiplier = (1u128 << (63 + shift)).div_ceil(half.into()) as u64;
        Self { divisor, multiplier, shift }
    }

    #[inline]
    fn of(self, number: u64) -> u64 {
        let product = u128::from(number & !1) * u128::from(self.multiplier);
        let quotient = ((product >> 64) as u64) >> self.shift;
        number - quotient * self.divisor
    }
}

/// The header of a dump.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// Number of keys in all links.
    pub size: u64,
    /// Options, a sum of [`NO_ROUND`], [`FORCE64`], [`NO_SCALING`] and unused bits.
    pub options: u32,
    /// Factor between the capacities of successive links.
    pub growth: u32,
    /// The links, each with its number of keys; the newest is last.
    pub links: Vec<(LinkPlan, u64)>,
}

impl Header {
    /// Parses the header at the start of bytes. Returns it and its length.
    ///
    /// # Errors
    /// If it is truncated, or its fields contradict each other.
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize)> {
        let (Some(size), Some(count), Some(options), Some(growth)) =
            (le64(bytes, 0), le32(bytes, 8), le32(bytes, 12), le32(bytes, 16))
        else {
            return bad("length", "20 bytes or more", format!("{} bytes", bytes.len()));
        };
        Self::check_options(options)?;
        let there = ((bytes.len() - CHAIN_HEADER) / LINK_HEADER).min(MAX_LINKS);
        let count = count as usize;
        if count == 0 || count > there {
            return bad("links", format!("1 to {there}"), count);
        }
        let length = CHAIN_HEADER + count * LINK_HEADER;
        let links = bytes[CHAIN_HEADER..length].chunks(LINK_HEADER);
        let links = links.map(|link| parse_link(link, options)).collect::<Result<_>>()?;
        let header = Self { size, options, growth, links };
        header.check_size()?;
        Ok((header, length))
    }

    /// Checks that these options are known.
    ///
    /// # Errors
    /// If they are not.
    pub fn check_options(options: u32) -> Result<()> {
        if options > OPTIONS { bad("options", "0 to 15", options) } else { Ok(()) }
    }

    /// Checks that a filter may have this many links.
    ///
    /// # Errors
    /// If it may not.
    pub fn check_links(count: u64) -> Result<()> {
        if count == 0 || count > MAX_LINKS as u64 {
            return bad("links", format!("1 to {MAX_LINKS}"), count);
        }
        Ok(())
    }

    /// Checks that the keys of the links add up to the total.
    ///
    /// # Errors
    /// If they do not.
    pub fn check_size(&self) -> Result<()> {
        let keys = self.links.iter().fold(0u64, |sum, (_, size)| sum.saturating_add(*size));
        if keys != self.size {
            return bad("keys", format!("{keys}, the sum of the links"), self.size);
        }
        self.links.iter().try_for_each(|(plan, size)| plan.check_keys(*size, self.options))
    }

    /// Returns the bytes of the header.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.size.to_le_bytes().to_vec();
        for number in [self.links.len() as u32, self.options, self.growth] {
            bytes.extend(number.to_le_bytes());
        }
        for (plan, size) in &self.links {
            bytes.extend(link_header(plan, *size));
        }
        bytes
    }
}

/// Parses a link and its number of keys.
fn parse_link(header: &[u8], options: u32) -> Result<(LinkPlan, u64)> {
    let (Some(bytes), Some(bits), Some(size), Some(rate), Some(bits_per_key)) = (
        le64(header, 0),
        le64(header, 8),
        le64(header, LINK_SIZE),
        lef64(header, 24),
        lef64(header, 32),
    ) else {
        return bad("length", "a whole header", format!("{} bytes", header.len()));
    };
    let (Some(probes), Some(capacity)) = (le32(header, 40), le64(header, 44)) else {
        return bad("length", "a whole header", format!("{} bytes", header.len()));
    };
    if bytes.checked_mul(8) != Some(bits) {
        return bad("bits of a link", format!("8 times {bytes} bytes"), bits);
    }
    let (probes, logarithm) = (probes.into(), header.get(52).copied().unwrap_or(0).into());
    let fields = LinkFields { bits, rate, bits_per_key, probes, capacity, logarithm };
    Ok((LinkPlan::checked(&fields, options)?, size))
}

/// Offset of the number of keys in a link's header.
const LINK_SIZE: usize = 16;

fn link_header(plan: &LinkPlan, size: u64) -> [u8; LINK_HEADER] {
    let mut header = [0; LINK_HEADER];
    let mut put = |at, bytes: &[u8]| crate::encoding::bytes::put(&mut header, at, bytes);
    put(0, &plan.bytes().to_le_bytes());
    put(8, &plan.bits.to_le_bytes());
    put(LINK_SIZE, &size.to_le_bytes());
    put(24, &plan.rate.to_le_bytes());
    put(32, &plan.bits_per_key.to_le_bytes());
    put(40, &plan.probes.to_le_bytes());
    put(44, &plan.capacity.to_le_bytes());
    put(52, &[plan.logarithm]);
    header
}

/// Returns the offset of a link's header in a dump's.
pub(super) fn link_at(link: usize) -> usize {
    CHAIN_HEADER + link * LINK_HEADER
}

/// Returns the offset of a link's number of keys in a dump's header.
pub(super) fn size_at(link: usize) -> usize {
    link_at(link) + LINK_SIZE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainders_equal_division() {
        let mut divisors: Vec<u64> = (1..200).map(|half| half * 2).collect();
        divisors.extend((1..63).flat_map(|power| {
            let divisor = 1u64 << power;
            [divisor, divisor.saturating_sub(2).max(2), divisor + 2]
        }));
        divisors.extend([1 << 63, (1 << 63) - 64, 9_585_088, 0x7edc_ba98_7654_3210]);
        let mut number = 1u64;
        for divisor in divisors {
            let modulus = Modulus::new(divisor);
            let near =
                (0..4).flat_map(|times| [divisor.wrapping_mul(times), divisor * (times / 3)]);
            let last = u64::MAX - u64::MAX % divisor;
            let edges = near.chain([last, u64::MAX, 0]).flat_map(|edge| {
                [edge, edge.wrapping_sub(1), edge.wrapping_add(1), edge.wrapping_sub(2)]
            });
            for edge in edges {
                assert_eq!(modulus.of(edge), edge % divisor, "{edge} {divisor}");
            }
            for _ in 0..1000 {
                number = number.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e);
                let number = number ^ number >> 29;
                assert_eq!(modulus.of(number), number % divisor, "{number} {divisor}");
            }
        }
    }

    #[test]
    fn link_with_more_keys_than_its_capacity_is_an_error() {
        let plan = LinkPlan::new(5, 0.01);
        let parse = |keys, options| {
            let links = vec![(plan, keys)];
            Header::parse(&Header { size: keys, options, growth: 2, links }.to_bytes())
        };
        assert!(parse(5, NO_ROUND | FORCE64).is_ok());
        for keys in [6, 1 << 40, u64::MAX] {
            assert!(parse(keys, NO_ROUND | FORCE64).is_err(), "{keys}");
        }
        let options = NO_ROUND | FORCE64 | CAPACITY_IS_BITS;
        assert!(parse(plan.bits(), options).is_ok() && parse(plan.bits() + 1, options).is_err());
    }
}
