//! The blocked layout with AVX2: half a cache line, four lanes, is one vector.
//!
//! A shift moves each lane's field to the bottom, and a 1 is shifted by it to give the lane's bit. Lanes
//! without a bit of the key have a 0 in place of the 1.
//!
//! [`inline`]: single keys; [`fuse`]: binary fuse filters; [`ribbon`]: ribbons.
//!
//! Bits and results are those of [`BlockParams`], which the tests of `kernel` check.

mod fuse;
pub(super) mod inline;
mod ribbon;

use core::arch::x86_64::*;

use super::batch::{GROUP, HashSource, PREFETCH_EARLY_FROM, PREFETCH_FROM, in_groups_with};
use super::blocked::{BlockParams, BlockRange, MIX_HIGH, MIX_LOW, by_lanes};
#[cfg(test)]
use super::cpu::Kernel;
use super::dispatch::{Blocked, called_keys};
use super::vectors::Vectors;
use crate::store::CacheLine;

/// AVX2, BMI1, BMI2, LZCNT and POPCNT. A value is proof that the machine has them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

impl Avx2 {
    /// Returns `None` if the machine does not have the instructions.
    #[cfg(test)]
    pub(super) fn new() -> Option<Self> {
        Kernel::Avx2.is_available().then_some(Self(()))
    }

    /// # Safety
    /// The machine must have the instructions.
    #[inline(always)]
    pub(super) unsafe fn new_unchecked() -> Self {
        Self(())
    }
}

impl Blocked for Avx2 {
    called_keys!();

    #[target_feature(enable = "avx2")]
    unsafe fn set_small<const LANES: usize>(
        blocks: BlockRange<LANES, &mut [CacheLine]>,
        hashes: impl HashSource,
    ) -> bool {
        // SAFETY: the caller guarantees the instructions.
        let (vectors, params) = (unsafe { Self::new_unchecked() }, blocks.params);
        by_lanes!(params, ALL => blocks.set_small(hashes, |block, hash| {
            Vectors::set::<LANES, ALL>(vectors, params.probes, block, hash);
        }))
    }

    #[target_feature(enable = "avx2")]
    unsafe fn insert_batch<const LANES: usize>(
        blocks: BlockRange<LANES, &mut [CacheLine]>,
        hashes: impl HashSource,
        new: &mut [u64],
    ) {
        // SAFETY: the caller guarantees the instructions.
        let (vectors, params) = (unsafe { Self::new_unchecked() }, blocks.params);
        if blocks.is_below(PREFETCH_FROM) {
            by_lanes!(params, ALL => insert_small::<LANES, ALL>(vectors, blocks, hashes, new));
        } else {
            by_lanes!(params, ALL => blocks.insert_batch(hashes, new, |block, hash| {
                Vectors::insert::<LANES, ALL>(vectors, params.probes, block, hash)
            }));
        }
    }

    #[target_feature(enable = "avx2")]
    unsafe fn contains_batch<const LANES: usize>(
        blocks: BlockRange<LANES, &[CacheLine]>,
        hashes: impl HashSource,
        found: &mut [u64],
    ) {
        // SAFETY: the caller guarantees the instructions.
        let (vectors, params) = (unsafe { Self::new_unchecked() }, blocks.params);
        if blocks.is_below(PREFETCH_EARLY_FROM) {
            by_lanes!(params, ALL => contains_small::<LANES, ALL>(vectors, blocks, hashes, found));
        } else {
            by_lanes!(params, ALL => blocks.contains_batch(hashes, found, |block, hash| {
                Vectors::contains::<LANES, ALL>(vectors, params.probes, block, hash)
            }));
        }
    }
}

/// Same as [`Avx2::insert_batch`] for a filter that fits a cache: an insert must wait for earlier ones to
/// addresses with the same last 12 bits, and prefetching adds loads that must wait, too.
#[inline]
#[target_feature(enable = "avx2")]
fn insert_small<const LANES: usize, const ALL: bool>(
    vectors: Avx2,
    mut blocks: BlockRange<LANES, &mut [CacheLine]>,
    hashes: impl HashSource,
    new: &mut [u64],
) {
    let BlockParams { probes, .. } = blocks.params;
    let process = |group: &[u64; GROUP], known: &mut Outcomes| {
        for (&hash, known) in group.iter().zip(known) {
            let block = blocks.block_mut(hash);
            store(known, !Vectors::insert::<LANES, ALL>(vectors, probes, block, hash));
        }
    };
    in_groups_with(hashes, new, process, |known| zeros(known));
}

/// Same as [`Avx2::contains_batch`] for a filter that fits a cache.
#[inline]
#[target_feature(enable = "avx2")]
fn contains_small<const LANES: usize, const ALL: bool>(
    vectors: Avx2,
    blocks: BlockRange<LANES, &[CacheLine]>,
    hashes: impl HashSource,
    found: &mut [u64],
) {
    let BlockParams { probes, .. } = blocks.params;
    let process = |group: &[u64; GROUP], absent: &mut Outcomes| {
        for (&hash, absent) in group.iter().zip(absent) {
            let block = blocks.block(hash);
            store(absent, !Vectors::contains::<LANES, ALL>(vectors, probes, block, hash));
        }
    };
    in_groups_with(hashes, found, process, |absent| zeros(absent));
}

/// A byte for each key of a group.
type Outcomes = [u8; GROUP];

/// Stores an outcome.
#[inline(always)]
fn store(to: &mut u8, outcome: bool) {
    // SAFETY: a borrowed byte. Volatile, because compilers otherwise test all keys of a group at its
    // end and spill their vectors until then.
    unsafe { core::ptr::write_volatile(to, u8::from(outcome)) };
}

/// Returns which of 64 outcomes are zero.
#[inline]
#[target_feature(enable = "avx2")]
fn zeros(outcomes: &[Outcomes; 8]) -> u64 {
    let half = |at: usize| {
        // SAFETY: 32 of 64 bytes, and the load needs no alignment.
        let bytes = unsafe { _mm256_loadu_si256(outcomes[at..at + 4].as_ptr().cast()) };
        let zero = _mm256_cmpeq_epi8(bytes, _mm256_setzero_si256());
        u64::from(_mm256_movemask_epi8(zero) as u32)
    };
    half(4) << 32 | half(0)
}

// SAFETY: the vectors are integers.
unsafe impl Vectors for Avx2 {
    type Vector = __m256i;

    #[inline(always)]
    fn bits<const LANES: usize, const ALL: bool>(
        self,
        probes: u32,
        half: usize,
        hash: u64,
    ) -> __m256i {
        let low = hash.wrapping_mul(MIX_LOW);
        let fields = if half < 2 { low } else { hash.wrapping_mul(MIX_HIGH) };
        // SAFETY: an `Avx2` is proof that the machine has the instructions. The load is of four words and needs
        // no alignment.
        unsafe {
            let ones = if ALL {
                _mm256_set1_epi64x(1)
            } else {
                // A product of its own: those of several keys in one vector are slower to take apart.
                let start = (hash as u32).wrapping_mul(MIX_LOW as u32) >> 12;
                let masks = BlockParams::<LANES>::LANE_MASKS.get(probes, start.into());
                _mm256_loadu_si256(masks[4 * half..4 * half + 4].as_ptr().cast())
            };
            let shifts = [_mm256_setr_epi64x(16, 22, 28, 34), _mm256_setr_epi64x(40, 46, 52, 58)];
            let fields = _mm256_srlv_epi64(_mm256_set1_epi64x(fields as i64), shifts[half % 2]);
            _mm256_sllv_epi64(ones, _mm256_and_si256(fields, _mm256_set1_epi64x(63)))
        }
    }

    #[inline(always)]
    fn zero(self) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    fn or(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_or_si256(a, b) }
    }

    #[inline(always)]
    fn and_not(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_andnot_si256(b, a) }
    }

    #[inline(always)]
    fn any(self, bits: __m256i) -> bool {
        // SAFETY: as above.
        unsafe { _mm256_testz_si256(bits, bits) == 0 }
    }
}
