//! The blocked layout with NEON: a quarter of a cache line, two lanes, is one vector.
//!
//! A shift moves each lane's field to the bottom (a left shift by a negative number is a right shift), and a 1
//! is shifted by it to give the lane's bit. Lanes without a bit of the key have a 0 in place of the 1.
//!
//! Little-endian machines only. Not measured: this kernel has only run in an emulator.

use core::arch::aarch64::*;

use super::batch::HashSource;
use super::blocked::{BlockParams, BlockRange, MIX_HIGH, MIX_LOW, by_lanes};
use super::dispatch::Blocked;
use super::vectors::{Vectors, vector_batches};
use crate::store::CacheLine;

/// NEON. A value is proof that the machine has it.
#[derive(Clone, Copy)]
pub(super) struct Neon(());

impl Neon {
    /// # Safety
    /// The machine must have the instructions.
    #[inline(always)]
    unsafe fn new_unchecked() -> Self {
        Self(())
    }
}

impl Blocked for Neon {
    #[target_feature(enable = "neon")]
    unsafe fn insert<const LANES: usize>(
        params: BlockParams<LANES>,
        lines: &mut [CacheLine],
        hash: u64,
    ) -> bool {
        let block = &mut lines[params.line_range(hash)];
        // SAFETY: the caller guarantees the instructions.
        let neon = unsafe { Self::new_unchecked() };
        Vectors::insert::<LANES, false>(neon, params.probes, block, hash)
    }

    #[target_feature(enable = "neon")]
    unsafe fn contains<const LANES: usize>(
        params: BlockParams<LANES>,
        lines: &[CacheLine],
        hash: u64,
    ) -> bool {
        let block = &lines[params.line_range(hash)];
        // SAFETY: as above.
        let neon = unsafe { Self::new_unchecked() };
        Vectors::contains::<LANES, false>(neon, params.probes, block, hash)
    }

    vector_batches!(
        // SAFETY: the caller guarantees the instructions.
        unsafe { Self::new_unchecked() },
        target_feature(enable = "neon")
    );
}

// SAFETY: the vectors are integers.
unsafe impl Vectors for Neon {
    type Vector = uint64x2_t;

    #[inline(always)]
    fn bits<const LANES: usize, const ALL: bool>(
        self,
        probes: u32,
        quarter: usize,
        hash: u64,
    ) -> uint64x2_t {
        let low = hash.wrapping_mul(MIX_LOW);
        let fields = if quarter < 4 { low } else { hash.wrapping_mul(MIX_HIGH) };
        let shift = -16 - 12 * (quarter % 4) as i64;
        let ones = if ALL {
            [1; 2]
        } else {
            let masks = BlockParams::<LANES>::LANE_MASKS.get(probes, low >> 12);
            [masks[2 * quarter], masks[2 * quarter + 1]]
        };
        // SAFETY: a `Neon` is proof that the machine has the instructions; the load is of two words.
        unsafe {
            let shifts = vcombine_s64(vdup_n_s64(shift), vdup_n_s64(shift - 6));
            let fields = vandq_u64(vshlq_u64(vdupq_n_u64(fields), shifts), vdupq_n_u64(63));
            vshlq_u64(vld1q_u64(ones.as_ptr()), vreinterpretq_s64_u64(fields))
        }
    }

    #[inline(always)]
    fn zero(self) -> uint64x2_t {
        // SAFETY: as above.
        unsafe { vdupq_n_u64(0) }
    }

    #[inline(always)]
    fn or(self, a: uint64x2_t, b: uint64x2_t) -> uint64x2_t {
        // SAFETY: as above.
        unsafe { vorrq_u64(a, b) }
    }

    #[inline(always)]
    fn and_not(self, a: uint64x2_t, b: uint64x2_t) -> uint64x2_t {
        // SAFETY: as above.
        unsafe { vbicq_u64(a, b) }
    }

    #[inline(always)]
    fn any(self, bits: uint64x2_t) -> bool {
        // SAFETY: as above.
        unsafe { vmaxvq_u32(vreinterpretq_u32_u64(bits)) != 0 }
    }
}
