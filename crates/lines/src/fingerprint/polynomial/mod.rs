//! The value of a line as a polynomial over GF(2^128), at a secret point.
//!
//! The coefficients are the bytes of the line, 16 at a time; the constant term is its length. Two
//! distinct lines of at most n blocks have different polynomials of at most degree n, so their
//! values are equal at no more than n of the 2^128 points. If the lines were chosen without
//! knowledge of the point, the probability of equal values is at most n / 2^128: a theorem, not a
//! belief about a cipher.
//!
//! A value is a linear function of the bits of the line, so similar lines have similar values. The
//! values are therefore mixed by a bijection, which keeps the bound.
//!
//! Source: Carter & Wegman, "Universal classes of hash functions" (1979). The field is that of GCM
//! (NIST SP 800-38D), with the bits of a block in the order of an integer.

#![allow(unsafe_code)]

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86;

use super::hash::Fingerprint;

/// Bytes of a block.
const BLOCK: usize = 16;
/// Number of blocks between two reductions.
const GROUP: usize = 16;

/// A secret point.
#[derive(Clone)]
pub(super) struct Point {
    /// The powers of the point, the first power first.
    powers: [u128; GROUP],
    mixers: [u64; 2],
}

impl Point {
    pub(super) fn new(point: u128, mixers: [u64; 2]) -> Self {
        let mut powers = [point; GROUP];
        for at in 1..GROUP {
            powers[at] = reduce(multiply(powers[at - 1], point, clmul));
        }
        Self { powers, mixers: mixers.map(|mixer| mixer | 1) }
    }

    /// Passes the fingerprint of each line to `each`, in order.
    ///
    /// Cost: 8 ns for 66 bytes with instructions for carry-less multiplication, which nearly all x86-64
    /// and most AArch64 processors have; 200 ns without.
    #[inline]
    pub(super) fn for_each<'a>(
        &self,
        lines: impl Iterator<Item = &'a [u8]>,
        each: impl FnMut(Fingerprint),
    ) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("pclmulqdq") && is_x86_feature_detected!("avx") {
            // SAFETY: the processor has the features that the function requires.
            return unsafe { x86::for_each(self, lines, each) };
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("aes") {
            // SAFETY: the processor has the feature that the function requires.
            return unsafe { aarch64::for_each(self, lines, each) };
        }
        lines.map(|line| self.fingerprint(line, clmul)).for_each(each);
    }

    /// Returns the fingerprint of a line. `clmul` multiplies polynomials over GF(2).
    #[inline(always)]
    fn fingerprint(&self, line: &[u8], clmul: impl Fn(u64, u64) -> u128 + Copy) -> Fingerprint {
        let (whole, tail) = line.as_chunks();
        let tail = (!tail.is_empty()).then(|| last_block(line));
        let mut left = whole.len() + usize::from(tail.is_some());
        let mut blocks = whole.iter().map(|block| u128::from_le_bytes(*block)).chain(tail);
        let mut value = 0;
        while left > 0 {
            let count = left.min(GROUP);
            let mut sum = [0; 2];
            for (power, block) in self.powers[..count].iter().rev().zip(&mut blocks) {
                let [low, high] = multiply(block ^ std::mem::take(&mut value), *power, clmul);
                sum = [sum[0] ^ low, sum[1] ^ high];
            }
            value = reduce(sum);
            left -= count;
        }
        self.mix([value as u64, (value >> 64) as u64], line.len())
    }

    /// Adds the constant term to a value, given by its halves, and mixes the sum.
    #[inline(always)]
    fn mix(&self, [low, high]: [u64; 2], length: usize) -> Fingerprint {
        // Each step is its own inverse, whatever the function of the other half.
        let low = low ^ length as u64 ^ fold(high, self.mixers[0]);
        let high = high ^ fold(low, self.mixers[1]);
        Fingerprint::new(high, low)
    }
}

/// Returns the halves of a product, added without carry.
#[inline(always)]
fn fold(word: u64, mixer: u64) -> u64 {
    let product = u128::from(word) * u128::from(mixer);
    product as u64 ^ (product >> 64) as u64
}

/// Returns the last block of a line that is not empty. It may overlap the block before; of a short
/// line it has every byte at a place that depends on the length only.
#[inline(always)]
fn last_block(line: &[u8]) -> u128 {
    if let Some(block) = line.last_chunk() {
        return u128::from_le_bytes(*block);
    }
    if let (Some(first), Some(last)) = (line.first_chunk(), line.last_chunk()) {
        return u128::from(u64::from_le_bytes(*first)) | u128::from(u64::from_le_bytes(*last)) << 64;
    }
    if let (Some(first), Some(last)) = (line.first_chunk(), line.last_chunk()) {
        return u128::from(u32::from_le_bytes(*first)) | u128::from(u32::from_le_bytes(*last)) << 32;
    }
    let byte = |at: usize| u128::from(line.get(at).copied().unwrap_or_default());
    byte(0) | byte(line.len() / 2) << 8 | byte(line.len().saturating_sub(1)) << 16
}

/// Returns the product of two blocks before its reduction, the low half first.
#[inline(always)]
fn multiply(a: u128, b: u128, clmul: impl Fn(u64, u64) -> u128) -> [u128; 2] {
    let ([a, a_high], [b, b_high]) = ([a as u64, (a >> 64) as u64], [b as u64, (b >> 64) as u64]);
    let middle = clmul(a, b_high) ^ clmul(a_high, b);
    [clmul(a, b) ^ middle << 64, clmul(a_high, b_high) ^ middle >> 64]
}

/// Reduces a product modulo x^128 + x^7 + x^2 + x + 1.
#[inline(always)]
fn reduce([low, high]: [u128; 2]) -> u128 {
    let over = high >> 127 ^ high >> 126 ^ high >> 121;
    let high = high ^ over;
    low ^ high ^ high << 1 ^ high << 2 ^ high << 7
}

/// Multiplies polynomials over GF(2) by integer multiplications.
fn clmul(a: u64, b: u64) -> u128 {
    let high = low_half(a.reverse_bits(), b.reverse_bits()).reverse_bits() >> 1;
    u128::from(high) << 64 | u128::from(low_half(a, b))
}

/// Returns the low half of a product of polynomials. Of every four bits three are zero, so the carries
/// of an integer product do not reach the next bit of interest.
///
/// Source: Pornin, "Constant-time GHASH", BearSSL (2016).
fn low_half(a: u64, b: u64) -> u64 {
    let every_fourth = |word: u64, from: u32| word & 0x1111_1111_1111_1111 << from;
    let (mut product, parts) = (0, [0, 1, 2, 3]);
    let (a, b) = (parts.map(|from| every_fourth(a, from)), parts.map(|from| every_fourth(b, from)));
    for place in 0..4 {
        let sum = (0..4).fold(0, |sum, from| sum ^ a[from].wrapping_mul(b[(place + 4 - from) % 4]));
        product |= every_fourth(sum, place as u32);
    }
    product
}

#[cfg(test)]
mod tests {
    use petal_testkit::rng::Rng;

    use super::*;

    /// Multiplication in the field, bit by bit.
    fn times(a: u128, b: u128) -> u128 {
        let mut product = 0;
        for bit in (0..128).rev() {
            product = product << 1 ^ if product >> 127 == 1 { 0x87 } else { 0 };
            product ^= if b >> bit & 1 == 1 { a } else { 0 };
        }
        product
    }

    /// The fingerprint by its definition, with Horner's rule.
    fn naive(point: u128, mixers: [u64; 2], line: &[u8]) -> Fingerprint {
        let mut value = 0;
        for start in (0..line.len()).step_by(16) {
            let block = match line.get(start..start + 16) {
                Some(block) => u128::from_le_bytes(block.try_into().unwrap()),
                None => last_block(line),
            };
            value = times(value ^ block, point);
        }
        value ^= line.len() as u128;
        let folded = |half: u128, mixer: u64| {
            let product = half * u128::from(mixer | 1);
            (product ^ product >> 64) & u128::from(u64::MAX)
        };
        let low = (value & u128::from(u64::MAX)) ^ folded(value >> 64, mixers[0]);
        let high = value >> 64 ^ folded(low, mixers[1]);
        Fingerprint::new(high as u64, low as u64)
    }

    #[test]
    fn every_implementation_equals_the_naive_one() {
        let mut rng = Rng::new(11);
        let text: Vec<u8> = (0..4000).map(|_| rng.next_u64() as u8).collect();
        for length in (0..300).chain([511, 512, 513, 1000, 3000]) {
            let word = |rng: &mut Rng| u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
            let (point, mixers) = (word(&mut rng), [rng.next_u64(), rng.next_u64()]);
            let line = &text[rng.below(900)..][..length];
            let expected = naive(point, mixers, line);
            let key = Point::new(point, mixers);
            assert_eq!(key.fingerprint(line, clmul), expected, "{length}");
            let mut fast = Vec::new();
            key.for_each([line, b"x", line].into_iter(), |found| fast.push(found));
            assert_eq!([fast[0], fast[2]], [expected; 2], "{length}");
        }
    }

    #[test]
    fn short_lines_have_different_last_blocks() {
        for length in 1..16 {
            for at in 0..length {
                let mut line = vec![0; length];
                let before = last_block(&line);
                line[at] = 1;
                assert_ne!(last_block(&line), before, "{length} {at}");
            }
        }
    }

    /// The coefficients of zeros are zero: only the length tells such lines apart.
    #[test]
    fn lines_of_zeros_differ() {
        let key = Point::new(7 << 64 | 5, [3, 5]);
        let mut found = std::collections::HashSet::new();
        for length in 0..200 {
            assert!(found.insert(key.fingerprint(&[0; 200][..length], clmul)));
        }
    }
}
