//! The blocked layout with the vectors that every x86-64 has (SSE2), or the SIMD of WebAssembly: a
//! quarter of a cache line, two lanes, is one vector.
//!
//! These instruction sets cannot shift two lanes by different counts. So the bit of a lane is loaded
//! from a table, [`BITS`]; the table has 512 bytes and stays in the nearest cache. Lanes without a
//! bit of the key are masked out; if a key sets a bit in every lane (`ALL`), no mask is loaded.
//!
//! Bits and results are those of [`BlockParams`], which the tests of `kernel` check.

#[cfg(target_arch = "wasm32")]
use core::arch::wasm32::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

use super::batch::HashSource;
use super::blocked::{BlockParams, BlockRange, MIX_HIGH, MIX_LOW, by_lanes};
use super::dispatch::Blocked;
use super::vectors::{Vectors, vector_batches};
use crate::store::CacheLine;

#[cfg(target_arch = "x86_64")]
type Vector = __m128i;
#[cfg(target_arch = "wasm32")]
type Vector = v128;

/// Every bit of a word.
static BITS: [u64; 64] = {
    let mut bits = [0; 64];
    let mut at = 0;
    while at < 64 {
        bits[at] = 1 << at;
        at += 1;
    }
    bits
};

/// SSE2, or the SIMD of WebAssembly, which the compiler may use anywhere.
#[derive(Clone, Copy)]
pub(super) struct Simd128;

impl Blocked for Simd128 {
    #[inline(always)]
    unsafe fn insert<const LANES: usize>(
        params: BlockParams<LANES>,
        lines: &mut [CacheLine],
        hash: u64,
    ) -> bool {
        let block = &mut lines[params.line_range(hash)];
        by_lanes!(params, ALL => Vectors::insert::<LANES, ALL>(Simd128, params.probes, block, hash))
    }

    #[inline(always)]
    unsafe fn set<const LANES: usize>(
        params: BlockParams<LANES>,
        lines: &mut [CacheLine],
        hash: u64,
    ) {
        let block = &mut lines[params.line_range(hash)];
        by_lanes!(params, ALL => Vectors::set::<LANES, ALL>(Simd128, params.probes, block, hash));
    }

    #[inline(always)]
    unsafe fn contains<const LANES: usize>(
        params: BlockParams<LANES>,
        lines: &[CacheLine],
        hash: u64,
    ) -> bool {
        let block = &lines[params.line_range(hash)];
        by_lanes!(params, ALL => Vectors::contains::<LANES, ALL>(Simd128, params.probes, block, hash))
    }

    vector_batches!(Simd128, inline);
}

/// Returns a vector of two lanes.
#[inline(always)]
fn pair(first: u64, second: u64) -> Vector {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has SSE2.
    unsafe {
        _mm_set_epi64x(second as i64, first as i64)
    }
    #[cfg(target_arch = "wasm32")]
    u64x2(first, second)
}

// SAFETY: the vectors are integers.
unsafe impl Vectors for Simd128 {
    type Vector = Vector;

    #[inline(always)]
    fn bits<const LANES: usize, const ALL: bool>(
        self,
        probes: u32,
        quarter: usize,
        hash: u64,
    ) -> Vector {
        let low = hash.wrapping_mul(MIX_LOW);
        let fields = if quarter < 4 { low } else { hash.wrapping_mul(MIX_HIGH) };
        let shift = 16 + 12 * (quarter % 4);
        let bit = |shift| BITS[(fields >> shift & 63) as usize];
        let bits = pair(bit(shift), bit(shift + 6));
        if ALL {
            return bits;
        }
        let ones = BlockParams::<LANES>::LANE_MASKS.get(probes, low >> 12);
        let [first, second] = [ones[2 * quarter], ones[2 * quarter + 1]];
        self.and_not(bits, pair(first.wrapping_sub(1), second.wrapping_sub(1)))
    }

    #[inline(always)]
    fn zero(self) -> Vector {
        pair(0, 0)
    }

    #[inline(always)]
    fn or(self, a: Vector, b: Vector) -> Vector {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every x86-64 has SSE2.
        unsafe {
            _mm_or_si128(a, b)
        }
        #[cfg(target_arch = "wasm32")]
        v128_or(a, b)
    }

    #[inline(always)]
    fn and_not(self, a: Vector, b: Vector) -> Vector {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every x86-64 has SSE2.
        unsafe {
            _mm_andnot_si128(b, a)
        }
        #[cfg(target_arch = "wasm32")]
        v128_andnot(a, b)
    }

    #[inline(always)]
    fn any(self, bits: Vector) -> bool {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every x86-64 has SSE2.
        unsafe {
            _mm_movemask_epi8(_mm_cmpeq_epi8(bits, _mm_setzero_si128())) != 0xffff
        }
        #[cfg(target_arch = "wasm32")]
        v128_any_true(bits)
    }
}
