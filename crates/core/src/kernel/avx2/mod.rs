//! The blocked layout with AVX2: half a cache line, four lanes, is one vector.
//!
//! For each half line of a key's block: a shift moves each lane's field to the bottom, a 1 is
//! shifted by it to give the lane's bit, and the bits missing in the words are collected over the
//! block and tested once. An insertion stores the words with the bits. Lanes without a bit of the
//! key have a 0 in place of the 1; if a key sets a bit in every lane (`ALL`), no mask is loaded.
//!
//! [`inline`]: single keys; [`fuse`]: binary fuse filters; [`ribbon`]: ribbons.
//!
//! Bits and results are those of [`BlockParams`], which the tests of `kernel` check.

mod fuse;
mod inline;
mod ribbon;

use core::arch::x86_64::*;

use super::batch::{GROUP, HashSource, PREFETCH_EARLY_FROM, PREFETCH_FROM, in_groups_with};
use super::blocked::{BlockParams, BlockRange, MIX_HIGH, MIX_LOW};
#[cfg(test)]
use super::cpu::Kernel;
use super::dispatch::Blocked;
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
    const INLINE: bool = true;

    #[inline(always)]
    unsafe fn insert<const LANES: usize>(
        params: BlockParams<LANES>,
        lines: &mut [CacheLine],
        hash: u64,
    ) -> bool {
        let at = params.checked_line(lines, hash);
        // SAFETY: the caller guarantees the instructions; the block exists and is borrowed exclusively.
        unsafe { inline::insert::<LANES>(params.probes, lines.as_mut_ptr(), at, hash) }
    }

    #[inline(always)]
    unsafe fn set<const LANES: usize>(
        params: BlockParams<LANES>,
        lines: &mut [CacheLine],
        hash: u64,
    ) {
        let at = params.checked_line(lines, hash);
        // SAFETY: as in `insert`.
        unsafe { inline::set::<LANES>(params.probes, lines.as_mut_ptr(), at, hash) };
    }

    #[inline(always)]
    unsafe fn contains<const LANES: usize>(
        params: BlockParams<LANES>,
        lines: &[CacheLine],
        hash: u64,
    ) -> bool {
        let at = params.checked_line(lines, hash);
        // SAFETY: the caller guarantees the instructions; the block exists and is borrowed.
        unsafe { inline::contains::<LANES>(params.probes, lines.as_ptr(), at, hash) }
    }

    #[target_feature(enable = "avx2")]
    unsafe fn set_small<const LANES: usize>(
        blocks: BlockRange<LANES, &mut [CacheLine]>,
        hashes: impl HashSource,
    ) -> bool {
        let prober = BlockProber::<LANES>::new(blocks.params.probes);
        if prober.all_lanes() {
            blocks.set_small(hashes, |block, hash| prober.set::<true>(block, hash))
        } else {
            blocks.set_small(hashes, |block, hash| prober.set::<false>(block, hash))
        }
    }

    #[target_feature(enable = "avx2")]
    unsafe fn insert_batch<const LANES: usize>(
        blocks: BlockRange<LANES, &mut [CacheLine]>,
        hashes: impl HashSource,
        new: &mut [u64],
    ) {
        let prober = BlockProber::<LANES>::new(blocks.params.probes);
        match (blocks.is_below(PREFETCH_FROM), prober.all_lanes()) {
            (true, true) => insert_small::<LANES, true>(blocks, &prober, hashes, new),
            (true, false) => insert_small::<LANES, false>(blocks, &prober, hashes, new),
            (false, true) => {
                blocks.insert_batch(hashes, new, |block, hash| prober.insert::<true>(block, hash))
            }
            (false, false) => {
                blocks.insert_batch(hashes, new, |block, hash| prober.insert::<false>(block, hash))
            }
        }
    }

    #[target_feature(enable = "avx2")]
    unsafe fn contains_batch<const LANES: usize>(
        blocks: BlockRange<LANES, &[CacheLine]>,
        hashes: impl HashSource,
        found: &mut [u64],
    ) {
        let prober = BlockProber::<LANES>::new(blocks.params.probes);
        match (blocks.is_below(PREFETCH_EARLY_FROM), prober.all_lanes()) {
            (true, true) => contains_small::<LANES, true>(blocks, &prober, hashes, found),
            (true, false) => contains_small::<LANES, false>(blocks, &prober, hashes, found),
            (false, true) => blocks
                .contains_batch(hashes, found, |block, hash| prober.contains::<true>(block, hash)),
            (false, false) => blocks
                .contains_batch(hashes, found, |block, hash| prober.contains::<false>(block, hash)),
        }
    }
}

/// Same as [`Avx2::insert_batch`] for a filter that fits a cache: an insert must wait for earlier ones to
/// addresses with the same last 12 bits, and prefetching adds loads that must wait, too.
#[inline]
#[target_feature(enable = "avx2")]
fn insert_small<const LANES: usize, const ALL: bool>(
    mut blocks: BlockRange<LANES, &mut [CacheLine]>,
    prober: &BlockProber<LANES>,
    hashes: impl HashSource,
    new: &mut [u64],
) {
    let process = |group: &[u64; GROUP], known: &mut Outcomes| {
        for (&hash, known) in group.iter().zip(known) {
            store(known, !prober.insert::<ALL>(blocks.block_mut(hash), hash));
        }
    };
    in_groups_with(hashes, new, process, |known| zeros(known));
}

/// Same as [`Avx2::contains_batch`] for a filter that fits a cache.
#[inline]
#[target_feature(enable = "avx2")]
fn contains_small<const LANES: usize, const ALL: bool>(
    blocks: BlockRange<LANES, &[CacheLine]>,
    prober: &BlockProber<LANES>,
    hashes: impl HashSource,
    found: &mut [u64],
) {
    let process = |group: &[u64; GROUP], absent: &mut Outcomes| {
        for (&hash, absent) in group.iter().zip(absent) {
            store(absent, !prober.contains::<ALL>(blocks.block(hash), hash));
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
    #[target_feature(enable = "avx2")]
    fn insert<const ALL: bool>(&self, block: &mut [CacheLine], hash: u64) -> bool {
        let mut clear = _mm256_setzero_si256();
        for (at, line) in block.iter_mut().enumerate() {
            for (half, words_at) in halves_mut(line).iter_mut().enumerate() {
                let bits = self.bits::<ALL>(2 * at + half, hash);
                clear = _mm256_or_si256(clear, _mm256_andnot_si256(*words_at, bits));
                *words_at = _mm256_or_si256(*words_at, bits);
            }
        }
        _mm256_testz_si256(clear, clear) == 0
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn set<const ALL: bool>(&self, block: &mut [CacheLine], hash: u64) {
        for (at, line) in block.iter_mut().enumerate() {
            for (half, words) in halves_mut(line).iter_mut().enumerate() {
                *words = _mm256_or_si256(*words, self.bits::<ALL>(2 * at + half, hash));
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn contains<const ALL: bool>(&self, block: &[CacheLine], hash: u64) -> bool {
        let mut clear = _mm256_setzero_si256();
        for (at, line) in block.iter().enumerate() {
            for (half, &words) in halves(line).iter().enumerate() {
                let bits = self.bits::<ALL>(2 * at + half, hash);
                clear = _mm256_or_si256(clear, _mm256_andnot_si256(words, bits));
            }
        }
        _mm256_testz_si256(clear, clear) == 1
    }

    /// Returns the bits of a hash in a half line of its block.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn bits<const ALL: bool>(&self, half: usize, hash: u64) -> __m256i {
        _mm256_sllv_epi64(self.ones::<ALL>(half, hash), fields(half, hash))
    }

    /// Returns a 1 for each lane of a half line with a bit of the hash.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn ones<const ALL: bool>(&self, half: usize, hash: u64) -> __m256i {
        if ALL {
            return _mm256_set1_epi64x(1);
        }
        let start = hash.wrapping_mul(MIX_LOW) >> 12;
        let masks = BlockParams::<LANES>::LANE_MASKS.get(self.probes, start);
        let mask = &masks[4 * half..4 * half + 4];
        // SAFETY: four words, and the load needs no alignment.
        unsafe { _mm256_loadu_si256(mask.as_ptr().cast()) }
    }
}

/// Returns the fields of the lanes of a half line.
#[inline]
#[target_feature(enable = "avx2")]
fn fields(half: usize, hash: u64) -> __m256i {
    let fields = hash.wrapping_mul(if half < 2 { MIX_LOW } else { MIX_HIGH });
    let shifts = [_mm256_setr_epi64x(16, 22, 28, 34), _mm256_setr_epi64x(40, 46, 52, 58)];
    let fields = _mm256_srlv_epi64(_mm256_set1_epi64x(fields as i64), shifts[half % 2]);
    _mm256_and_si256(fields, _mm256_set1_epi64x(63))
}

#[inline]
fn halves(line: &CacheLine) -> &[__m256i; 2] {
    // SAFETY: a line is two vectors of 32 bytes, aligned to 64; any bits are a vector.
    unsafe { &*core::ptr::from_ref(line).cast() }
}

#[inline]
fn halves_mut(line: &mut CacheLine) -> &mut [__m256i; 2] {
    // SAFETY: as in `halves`; any bits are a line.
    unsafe { &mut *core::ptr::from_mut(line).cast() }
}
