//! Polynomials with the carry-less multiplication of x86-64.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m128i, _mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_extract_epi64, _mm_loadu_si128,
    _mm_set_epi64x, _mm_setzero_si128, _mm_slli_si128, _mm_srli_si128, _mm_xor_si128,
};

use super::{BLOCK, Fingerprint, GROUP, Point, last_block};

/// Passes the fingerprint of each line to `each`.
#[target_feature(enable = "avx,pclmulqdq")]
pub(super) fn for_each<'a>(
    point: &Point,
    lines: impl Iterator<Item = &'a [u8]>,
    mut each: impl FnMut(Fingerprint),
) {
    for line in lines {
        each(fingerprint(point, line));
    }
}

#[inline]
#[target_feature(enable = "avx,pclmulqdq")]
fn fingerprint(point: &Point, line: &[u8]) -> Fingerprint {
    let (mut whole, tail) = line.as_chunks();
    let mut value = _mm_setzero_si128();
    loop {
        let (group, rest) = whole.split_at(whole.len().min(GROUP));
        let has_tail = group.len() < GROUP && !tail.is_empty();
        let powers = &point.powers[usize::from(has_tail)..][..group.len()];
        let mut sum = Sum([_mm_setzero_si128(); 3]);
        for (block, power) in group.iter().zip(powers.iter().rev()) {
            sum.add(_mm_xor_si128(load(block), value), *power);
            value = _mm_setzero_si128();
        }
        if has_tail {
            let block = match line.last_chunk() {
                Some(block) => load(block),
                None => register(last_block(line)),
            };
            sum.add(_mm_xor_si128(block, value), point.powers[0]);
        }
        value = sum.reduce();
        whole = rest;
        if whole.is_empty() && (has_tail || tail.is_empty()) {
            break;
        }
    }
    let (low, high) = (_mm_cvtsi128_si64(value), _mm_extract_epi64::<1>(value));
    point.mix([low.cast_unsigned(), high.cast_unsigned()], line.len())
}

/// A sum of products: their low, middle and high parts.
struct Sum([__m128i; 3]);

impl Sum {
    /// Adds a product.
    #[inline]
    #[target_feature(enable = "avx,pclmulqdq")]
    fn add(&mut self, block: __m128i, power: u128) {
        let power = register(power);
        let [low, middle, high] = &mut self.0;
        *low = _mm_xor_si128(*low, _mm_clmulepi64_si128::<0x00>(block, power));
        *high = _mm_xor_si128(*high, _mm_clmulepi64_si128::<0x11>(block, power));
        *middle = _mm_xor_si128(*middle, _mm_clmulepi64_si128::<0x01>(block, power));
        *middle = _mm_xor_si128(*middle, _mm_clmulepi64_si128::<0x10>(block, power));
    }

    /// Reduces the sum modulo x^128 + x^7 + x^2 + x + 1.
    #[inline]
    #[target_feature(enable = "avx,pclmulqdq")]
    fn reduce(self) -> __m128i {
        let [low, middle, high] = self.0;
        let low = _mm_xor_si128(low, _mm_slli_si128::<8>(middle));
        let high = _mm_xor_si128(high, _mm_srli_si128::<8>(middle));
        let modulus = _mm_set_epi64x(0, 0x87);
        // The highest word first, because its product reaches into the word below.
        let over = _mm_clmulepi64_si128::<0x01>(high, modulus);
        let high = _mm_xor_si128(high, _mm_srli_si128::<8>(over));
        let low = _mm_xor_si128(low, _mm_slli_si128::<8>(over));
        _mm_xor_si128(low, _mm_clmulepi64_si128::<0x00>(high, modulus))
    }
}

#[inline]
#[target_feature(enable = "avx")]
fn load(block: &[u8; BLOCK]) -> __m128i {
    // SAFETY: the block has 16 bytes, and the load needs no alignment.
    unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx")]
fn register(block: u128) -> __m128i {
    _mm_set_epi64x((block >> 64) as i64, block as i64)
}
