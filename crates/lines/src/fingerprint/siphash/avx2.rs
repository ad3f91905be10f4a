//! Eight words of SipHash in two AVX2 registers.
//!
//! The registers do not depend on each other: while one waits for a result, the other continues.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi64, _mm256_and_si256, _mm256_or_si256, _mm256_set_epi64x,
    _mm256_setr_epi8, _mm256_shuffle_epi8, _mm256_shuffle_epi32, _mm256_slli_epi64,
    _mm256_srli_epi64, _mm256_storeu_si256, _mm256_xor_si256,
};

use super::LANES;
use super::lanes::{Words, hash};

/// Returns the hashes of eight lines: the first halves, then the second halves.
#[target_feature(enable = "avx2")]
pub(super) fn avx2(key: [u64; 2], lines: &[&[u8]; LANES]) -> [[u64; LANES]; 2] {
    // SAFETY: this function has the feature that the type requires.
    unsafe { hash::<Pair>(key, lines) }
}

#[derive(Clone, Copy)]
struct Pair(__m256i, __m256i);

impl Words for Pair {
    #[inline(always)]
    unsafe fn new(words: [u64; LANES]) -> Self {
        let word = |lane: usize| words[lane].cast_signed();
        // SAFETY: the caller promises AVX2.
        unsafe {
            Self(
                _mm256_set_epi64x(word(3), word(2), word(1), word(0)),
                _mm256_set_epi64x(word(7), word(6), word(5), word(4)),
            )
        }
    }

    #[inline(always)]
    unsafe fn get(self) -> [u64; LANES] {
        let mut words = [0; LANES];
        let (low, high) = words.split_at_mut(LANES / 2);
        // SAFETY: the caller promises AVX2. Each half of the array has 32 bytes; the stores need no
        // alignment.
        unsafe {
            _mm256_storeu_si256(low.as_mut_ptr().cast(), self.0);
            _mm256_storeu_si256(high.as_mut_ptr().cast(), self.1);
        }
        words
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the caller promises AVX2.
        unsafe { Self(_mm256_add_epi64(self.0, other.0), _mm256_add_epi64(self.1, other.1)) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller promises AVX2.
        unsafe { Self(_mm256_xor_si256(self.0, other.0), _mm256_xor_si256(self.1, other.1)) }
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        // SAFETY: the caller promises AVX2.
        unsafe { Self(_mm256_and_si256(self.0, other.0), _mm256_and_si256(self.1, other.1)) }
    }

    #[inline(always)]
    unsafe fn rotate<const LEFT: i32, const RIGHT: i32>(self) -> Self {
        // SAFETY: the caller promises AVX2.
        unsafe { Self(rotate::<LEFT, RIGHT>(self.0), rotate::<LEFT, RIGHT>(self.1)) }
    }
}

/// Rotates each word to the left. A shuffle moves whole bytes in one instruction.
#[target_feature(enable = "avx2")]
#[inline]
fn rotate<const LEFT: i32, const RIGHT: i32>(words: __m256i) -> __m256i {
    match LEFT {
        16 => {
            let order = _mm256_setr_epi8(
                6, 7, 0, 1, 2, 3, 4, 5, 14, 15, 8, 9, 10, 11, 12, 13, //
                6, 7, 0, 1, 2, 3, 4, 5, 14, 15, 8, 9, 10, 11, 12, 13,
            );
            _mm256_shuffle_epi8(words, order)
        }
        32 => _mm256_shuffle_epi32::<0b10_11_00_01>(words),
        _ => _mm256_or_si256(_mm256_slli_epi64::<LEFT>(words), _mm256_srli_epi64::<RIGHT>(words)),
    }
}
