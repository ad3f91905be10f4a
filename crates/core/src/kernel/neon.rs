//! The blocked layout with NEON: a quarter of a cache line, two lanes, is one vector.
//!
//! For each quarter line of a key's block: a shift moves each lane's field to the bottom (a left
//! shift by a negative number is a right shift), a 1 is shifted by it to give the lane's bit, and
//! the bits missing in the words are collected over the block and tested once. An insertion stores
//! the words with the bits. Lanes without a bit of the key have a 0 in place of the 1; if a key sets
//! a bit in every lane (`ALL`), no mask is loaded.
//!
//! Little-endian machines only.
//!
//! Bits and results are those of [`BlockParams`], which the tests of `kernel` check. Not measured:
//! this kernel has only run in an emulator.

use core::arch::aarch64::*;

use super::batch::HashSource;
use super::blocked::{BlockParams, BlockRange, MIX_HIGH, MIX_LOW};
use super::dispatch::Blocked;
use crate::store::CacheLine;

/// NEON.
pub(super) struct Neon;

impl Blocked for Neon {
    #[target_feature(enable = "neon")]
    unsafe fn insert<const LANES: usize>(
        params: BlockParams<LANES>,
        lines: &mut [CacheLine],
        hash: u64,
    ) -> bool {
        let block = &mut lines[params.line_range(hash)];
        BlockProber::<LANES>::new(params.probes).insert::<false>(block, hash)
    }

    #[target_feature(enable = "neon")]
    unsafe fn contains<const LANES: usize>(
        params: BlockParams<LANES>,
        lines: &[CacheLine],
        hash: u64,
    ) -> bool {
        let block = &lines[params.line_range(hash)];
        BlockProber::<LANES>::new(params.probes).contains::<false>(block, hash)
    }

    #[target_feature(enable = "neon")]
    unsafe fn set_small<const LANES: usize>(
        blocks: BlockRange<LANES, &mut [CacheLine]>,
        hashes: impl HashSource,
    ) -> bool {
        let prober = BlockProber::<LANES>::new(blocks.params.probes);
        if prober.all_lanes() {
            blocks.set_small(hashes, |block, hash| _ = prober.insert::<true>(block, hash))
        } else {
            blocks.set_small(hashes, |block, hash| _ = prober.insert::<false>(block, hash))
        }
    }

    #[target_feature(enable = "neon")]
    unsafe fn insert_batch<const LANES: usize>(
        blocks: BlockRange<LANES, &mut [CacheLine]>,
        hashes: impl HashSource,
        new: &mut [u64],
    ) {
        let prober = BlockProber::<LANES>::new(blocks.params.probes);
        if prober.all_lanes() {
            blocks.insert_batch(hashes, new, |block, hash| prober.insert::<true>(block, hash));
        } else {
            blocks.insert_batch(hashes, new, |block, hash| prober.insert::<false>(block, hash));
        }
    }

    #[target_feature(enable = "neon")]
    unsafe fn contains_batch<const LANES: usize>(
        blocks: BlockRange<LANES, &[CacheLine]>,
        hashes: impl HashSource,
        found: &mut [u64],
    ) {
        let prober = BlockProber::<LANES>::new(blocks.params.probes);
        if prober.all_lanes() {
            blocks
                .contains_batch(hashes, found, |block, hash| prober.contains::<true>(block, hash));
        } else {
            blocks
                .contains_batch(hashes, found, |block, hash| prober.contains::<false>(block, hash));
        }
    }
}

/// Sets and tests the bits of keys in their blocks.
struct BlockProber<const LANES: usize> {
    probes: u32,
}

impl<const LANES: usize> BlockProber<LANES> {
    fn new(probes: u32) -> Self {
        Self { probes }
    }

    /// Whether a key sets a bit in every lane.
    fn all_lanes(&self) -> bool {
        self.probes as usize == LANES
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn insert<const ALL: bool>(&self, block: &mut [CacheLine], hash: u64) -> bool {
        let mut clear = vdupq_n_u64(0);
        for (at, line) in block.iter_mut().enumerate() {
            for (quarter, words_at) in quarters_mut(line).iter_mut().enumerate() {
                let bits = self.bits::<ALL>(4 * at + quarter, hash);
                clear = vorrq_u64(clear, vbicq_u64(bits, *words_at));
                *words_at = vorrq_u64(*words_at, bits);
            }
        }
        any(clear)
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn contains<const ALL: bool>(&self, block: &[CacheLine], hash: u64) -> bool {
        let mut clear = vdupq_n_u64(0);
        for (at, line) in block.iter().enumerate() {
            for (quarter, &words) in quarters(line).iter().enumerate() {
                let bits = self.bits::<ALL>(4 * at + quarter, hash);
                clear = vorrq_u64(clear, vbicq_u64(bits, words));
            }
        }
        !any(clear)
    }

    /// Returns the bits of a hash in a quarter line of its block.
    #[inline]
    #[target_feature(enable = "neon")]
    fn bits<const ALL: bool>(&self, quarter: usize, hash: u64) -> uint64x2_t {
        let low = hash.wrapping_mul(MIX_LOW);
        let fields = if quarter < 4 { low } else { hash.wrapping_mul(MIX_HIGH) };
        let shift = -16 - 12 * (quarter % 4) as i64;
        let shifts = vcombine_s64(vdup_n_s64(shift), vdup_n_s64(shift - 6));
        let fields = vandq_u64(vshlq_u64(vdupq_n_u64(fields), shifts), vdupq_n_u64(63));
        let ones = if ALL {
            vdupq_n_u64(1)
        } else {
            let masks = BlockParams::<LANES>::LANE_MASKS.get(self.probes, low >> 12);
            let mask = &masks[2 * quarter..2 * quarter + 2];
            // SAFETY: two words.
            unsafe { vld1q_u64(mask.as_ptr()) }
        };
        vshlq_u64(ones, vreinterpretq_s64_u64(fields))
    }
}

/// Whether any bit is set.
#[inline]
#[target_feature(enable = "neon")]
fn any(bits: uint64x2_t) -> bool {
    vmaxvq_u32(vreinterpretq_u32_u64(bits)) != 0
}

#[inline]
fn quarters(line: &CacheLine) -> &[uint64x2_t; 4] {
    // SAFETY: a line is four vectors of 16 bytes, aligned to 64; any bits are a vector.
    unsafe { &*core::ptr::from_ref(line).cast() }
}

#[inline]
fn quarters_mut(line: &mut CacheLine) -> &mut [uint64x2_t; 4] {
    // SAFETY: as in `quarters`; any bits are a line.
    unsafe { &mut *core::ptr::from_mut(line).cast() }
}
