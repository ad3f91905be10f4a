//! Eight words of SipHash in an AVX-512 register.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_and_si512, _mm512_rol_epi64, _mm512_set_epi64,
    _mm512_storeu_si512, _mm512_xor_si512,
};

use super::LANES;
use super::lanes::{Words, hash};

/// Returns the hashes of eight lines: the first halves, then the second halves.
#[target_feature(enable = "avx512f")]
pub(super) fn avx512(key: [u64; 2], lines: &[&[u8]; LANES]) -> [[u64; LANES]; 2] {
    // SAFETY: this function has the feature that the type requires.
    unsafe { hash::<Register>(key, lines) }
}

#[derive(Clone, Copy)]
struct Register(__m512i);

impl Words for Register {
    #[inline(always)]
    unsafe fn new(words: [u64; LANES]) -> Self {
        let word = |lane: usize| words[lane].cast_signed();
        // SAFETY: the caller promises AVX-512.
        unsafe {
            Self(_mm512_set_epi64(
                word(7),
                word(6),
                word(5),
                word(4),
                word(3),
                word(2),
                word(1),
                word(0),
            ))
        }
    }

    #[inline(always)]
    unsafe fn get(self) -> [u64; LANES] {
        let mut words = [0; LANES];
        // SAFETY: the caller promises AVX-512. The array has 64 bytes; the store needs no alignment.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), self.0) };
        words
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the caller promises AVX-512.
        unsafe { Self(_mm512_add_epi64(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller promises AVX-512.
        unsafe { Self(_mm512_xor_si512(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        // SAFETY: the caller promises AVX-512.
        unsafe { Self(_mm512_and_si512(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn rotate<const LEFT: i32, const RIGHT: i32>(self) -> Self {
        // SAFETY: the caller promises AVX-512.
        unsafe { Self(_mm512_rol_epi64::<LEFT>(self.0)) }
    }
}
