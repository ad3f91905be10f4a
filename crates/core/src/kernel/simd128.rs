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
use super::blocked::{BlockParams, BlockRange, MIX_HIGH, MIX_LOW};
use super::dispatch::Blocked;
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

/// SSE2, or the SIMD of WebAssembly.
pub(super) struct Simd128;

impl Blocked for Simd128 {
    const INLINE: bool = true;

    #[inline(always)]
    unsafe fn insert<const LANES: usize>(
        params: BlockParams<LANES>,
        lines: &mut [CacheLine],
        hash: u64,
    ) -> bool {
        insert(params, &mut lines[params.line_range(hash)], hash)
    }

    #[inline(always)]
    unsafe fn set<const LANES: usize>(
        params: BlockParams<LANES>,
        lines: &mut [CacheLine],
        hash: u64,
    ) {
        set(params, &mut lines[params.line_range(hash)], hash);
    }

    #[inline(always)]
    unsafe fn contains<const LANES: usize>(
        params: BlockParams<LANES>,
        lines: &[CacheLine],
        hash: u64,
    ) -> bool {
        contains(params, &lines[params.line_range(hash)], hash)
    }

    unsafe fn set_small<const LANES: usize>(
        blocks: BlockRange<LANES, &mut [CacheLine]>,
        hashes: impl HashSource,
    ) -> bool {
        let BlockParams { probes, .. } = blocks.params;
        if blocks.params.has_all_lanes() {
            blocks.set_small(hashes, |block, hash| set_lanes::<LANES, true>(probes, block, hash))
        } else {
            blocks.set_small(hashes, |block, hash| set_lanes::<LANES, false>(probes, block, hash))
        }
    }

    unsafe fn insert_batch<const LANES: usize>(
        blocks: BlockRange<LANES, &mut [CacheLine]>,
        hashes: impl HashSource,
        new: &mut [u64],
    ) {
        let BlockParams { probes, .. } = blocks.params;
        if blocks.params.has_all_lanes() {
            blocks.insert_batch(hashes, new, |block, hash| {
                insert_lanes::<LANES, true>(probes, block, hash)
            });
        } else {
            blocks.insert_batch(hashes, new, |block, hash| {
                insert_lanes::<LANES, false>(probes, block, hash)
            });
        }
    }

    unsafe fn contains_batch<const LANES: usize>(
        blocks: BlockRange<LANES, &[CacheLine]>,
        hashes: impl HashSource,
        found: &mut [u64],
    ) {
        let BlockParams { probes, .. } = blocks.params;
        if blocks.params.has_all_lanes() {
            blocks.contains_batch(hashes, found, |block, hash| {
                contains_lanes::<LANES, true>(probes, block, hash)
            });
        } else {
            blocks.contains_batch(hashes, found, |block, hash| {
                contains_lanes::<LANES, false>(probes, block, hash)
            });
        }
    }
}

/// Same as [`BlockParams::insert`].
#[inline(never)]
fn insert<const LANES: usize>(
    params: BlockParams<LANES>,
    block: &mut [CacheLine],
    hash: u64,
) -> bool {
    if params.has_all_lanes() {
        insert_lanes::<LANES, true>(params.probes, block, hash)
    } else {
        insert_lanes::<LANES, false>(params.probes, block, hash)
    }
}

/// Same as [`BlockParams::insert`] without a result.
#[inline(never)]
fn set<const LANES: usize>(params: BlockParams<LANES>, block: &mut [CacheLine], hash: u64) {
    if params.has_all_lanes() {
        set_lanes::<LANES, true>(params.probes, block, hash);
    } else {
        set_lanes::<LANES, false>(params.probes, block, hash);
    }
}

/// Same as [`BlockParams::contains`].
#[inline(never)]
fn contains<const LANES: usize>(
    params: BlockParams<LANES>,
    block: &[CacheLine],
    hash: u64,
) -> bool {
    if params.has_all_lanes() {
        contains_lanes::<LANES, true>(params.probes, block, hash)
    } else {
        contains_lanes::<LANES, false>(params.probes, block, hash)
    }
}

#[inline(always)]
fn insert_lanes<const LANES: usize, const ALL: bool>(
    probes: u32,
    block: &mut [CacheLine],
    hash: u64,
) -> bool {
    let mut clear = splat(0);
    for (at, line) in block.iter_mut().enumerate().take(BlockParams::<LANES>::LINES) {
        for (quarter, words_at) in quarters_mut(line).iter_mut().enumerate() {
            let (bits, words) = (bits::<LANES, ALL>(probes, 4 * at + quarter, hash), *words_at);
            clear = or(clear, and_not(bits, words));
            *words_at = or(words, bits);
        }
    }
    any(clear)
}

#[inline(always)]
fn set_lanes<const LANES: usize, const ALL: bool>(probes: u32, block: &mut [CacheLine], hash: u64) {
    for (at, line) in block.iter_mut().enumerate().take(BlockParams::<LANES>::LINES) {
        for (quarter, words) in quarters_mut(line).iter_mut().enumerate() {
            *words = or(*words, bits::<LANES, ALL>(probes, 4 * at + quarter, hash));
        }
    }
}

#[inline(always)]
fn contains_lanes<const LANES: usize, const ALL: bool>(
    probes: u32,
    block: &[CacheLine],
    hash: u64,
) -> bool {
    let mut clear = splat(0);
    for (at, line) in block.iter().enumerate().take(BlockParams::<LANES>::LINES) {
        for (quarter, &words) in quarters(line).iter().enumerate() {
            clear = or(clear, and_not(bits::<LANES, ALL>(probes, 4 * at + quarter, hash), words));
        }
    }
    !any(clear)
}

/// Returns the bits of a hash in a quarter line of its block.
#[inline(always)]
fn bits<const LANES: usize, const ALL: bool>(probes: u32, quarter: usize, hash: u64) -> Vector {
    let low = hash.wrapping_mul(MIX_LOW);
    let fields = if quarter < 4 { low } else { hash.wrapping_mul(MIX_HIGH) };
    let shift = 16 + 12 * (quarter % 4);
    let bit = |shift| BITS[(fields >> shift & 63) as usize];
    let bits = pair(bit(shift), bit(shift + 6));
    if ALL {
        bits
    } else {
        let ones = BlockParams::<LANES>::LANE_MASKS.get(probes, low >> 12);
        and_not(
            bits,
            pair(ones[2 * quarter].wrapping_sub(1), ones[2 * quarter + 1].wrapping_sub(1)),
        )
    }
}

#[cfg(target_arch = "x86_64")]
mod vector {
    use super::*;

    /// Returns a vector of two lanes.
    #[inline(always)]
    pub(super) fn pair(first: u64, second: u64) -> Vector {
        // SAFETY: every x86-64 has SSE2.
        unsafe { _mm_set_epi64x(second as i64, first as i64) }
    }

    #[inline(always)]
    pub(super) fn splat(word: u64) -> Vector {
        // SAFETY: every x86-64 has SSE2.
        unsafe { _mm_set1_epi64x(word as i64) }
    }

    #[inline(always)]
    pub(super) fn or(a: Vector, b: Vector) -> Vector {
        // SAFETY: every x86-64 has SSE2.
        unsafe { _mm_or_si128(a, b) }
    }

    /// Returns the bits of `a` that are clear in `b`.
    #[inline(always)]
    pub(super) fn and_not(a: Vector, b: Vector) -> Vector {
        // SAFETY: every x86-64 has SSE2.
        unsafe { _mm_andnot_si128(b, a) }
    }

    /// Whether any bit is set.
    #[inline(always)]
    pub(super) fn any(bits: Vector) -> bool {
        // SAFETY: every x86-64 has SSE2.
        unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(bits, _mm_setzero_si128())) != 0xffff }
    }
}

#[cfg(target_arch = "wasm32")]
mod vector {
    use super::*;

    /// Returns a vector of two lanes.
    #[inline(always)]
    pub(super) fn pair(first: u64, second: u64) -> Vector {
        u64x2(first, second)
    }

    #[inline(always)]
    pub(super) fn splat(word: u64) -> Vector {
        u64x2_splat(word)
    }

    #[inline(always)]
    pub(super) fn or(a: Vector, b: Vector) -> Vector {
        v128_or(a, b)
    }

    /// Returns the bits of `a` that are clear in `b`.
    #[inline(always)]
    pub(super) fn and_not(a: Vector, b: Vector) -> Vector {
        v128_andnot(a, b)
    }

    /// Whether any bit is set.
    #[inline(always)]
    pub(super) fn any(bits: Vector) -> bool {
        v128_any_true(bits)
    }
}

use vector::{and_not, any, or, pair, splat};

#[inline(always)]
fn quarters(line: &CacheLine) -> &[Vector; 4] {
    // SAFETY: a line is four vectors of 16 bytes, aligned to 64; any bits are a vector.
    unsafe { &*core::ptr::from_ref(line).cast() }
}

#[inline(always)]
fn quarters_mut(line: &mut CacheLine) -> &mut [Vector; 4] {
    // SAFETY: as in `quarters`; any bits are a line.
    unsafe { &mut *core::ptr::from_mut(line).cast() }
}
