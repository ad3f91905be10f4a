//! The blocked layout with AVX-512: a cache line, eight lanes, is one vector; so are eight hashes.
//!
//! Positions, products and lanes of eight hashes are computed together. Then, for each line of a
//! key: a shift moves each lane's field to the bottom, a 1 is rotated by it (which takes it modulo
//! 64), and a test returns the lanes whose bit is clear. An insertion stores the line with the
//! bits. Lanes without a bit of the key are masked out; if a key sets a bit in every lane (`ALL`),
//! there is no mask.
//!
//! The clear lanes of a key are one byte, zero if the key is present; eight such bytes become eight
//! results at once. A key takes so few instructions that out-of-order execution hides the latency
//! of the caches: only filters of at least [`PREFETCH_FROM`] lines are prefetched.
//!
//! Bits and results are those of [`BlockParams`], which the tests of `kernel` check.
//!
//! [`inline`]: single keys. [`classic`]: classic filters. [`counting`]: counting filters.
//! [`generations`]: windowed filters. [`ribbon`] and [`fuse`]: static filters. [`shared`]: filters
//! that many threads access.

mod classic;
mod counting;
mod fuse;
mod generations;
pub(super) mod inline;
mod ribbon;
#[cfg(feature = "std")]
mod shared;

use core::arch::x86_64::*;
use core::ops::Deref;
use core::slice::{from_raw_parts, from_raw_parts_mut};

use super::batch::{GROUP, HashSource, PREFETCH_FROM, batch};
use super::blocked::{BlockParams, BlockRange, MIX_HIGH, MIX_LOW, by_lanes};
use super::dispatch::{Blocked, called_keys};
use super::primitives::scale;
use crate::store::CacheLine;

/// AVX-512 F, BW, DQ and VL, and the instructions of [`Avx2`](super::avx2::Avx2).
pub(super) struct Avx512;

impl Blocked for Avx512 {
    called_keys!();

    /// Testing the bits takes one instruction, so there is no faster code without results.
    unsafe fn set_small<const LANES: usize>(
        _: BlockRange<LANES, &mut [CacheLine]>,
        _: impl HashSource,
    ) -> bool {
        false
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn insert_batch<const LANES: usize>(
        blocks: BlockRange<LANES, &mut [CacheLine]>,
        hashes: impl HashSource,
        new: &mut [u64],
    ) {
        by_lanes!(blocks.params, ALL => insert_groups::<LANES, ALL, _>(blocks, hashes, new));
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn contains_batch<const LANES: usize>(
        blocks: BlockRange<LANES, &[CacheLine]>,
        hashes: impl HashSource,
        found: &mut [u64],
    ) {
        let load = |line: &CacheLine| load_words(&line.0);
        by_lanes!(blocks.params, ALL => {
            contains_groups::<LANES, ALL, _, _>(blocks, hashes, found, PREFETCH_FROM, load);
        });
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn insert_groups<const LANES: usize, const ALL: bool, H: HashSource>(
    blocks: BlockRange<LANES, &mut [CacheLine]>,
    hashes: H,
    new: &mut [u64],
) {
    let process = |blocks: &mut BlockRange<LANES, &mut [CacheLine]>,
                   group: &Group,
                   clear: &mut ClearLanes| {
        for (key, clear) in clear.iter_mut().enumerate() {
            let first = blocks.lines.as_mut_ptr().wrapping_byte_add(group.at[key] as usize);
            // SAFETY: `prepare` has checked that all lines of the block exist.
            let block = unsafe { from_raw_parts_mut(first, BlockParams::<LANES>::LINES) };
            *clear = set_bits::<LANES, ALL>(block, &group.probes(key));
        }
    };
    let prepare = |blocks: &BlockRange<_, _>, hashes: &_, group: &mut _| {
        prepare(blocks, hashes, group, PREFETCH_FROM);
    };
    batch(blocks, hashes, new, prepare, process, |clear| !all_set(clear));
}

/// Looks up hashes in plain or atomic cache lines, which `load` loads.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn contains_groups<const LANES: usize, const ALL: bool, L, H: HashSource>(
    blocks: BlockRange<LANES, &[L]>,
    hashes: H,
    found: &mut [u64],
    prefetch_from: usize,
    load: impl Fn(&L) -> __m512i,
) {
    let prepare = |blocks: &BlockRange<_, _>, hashes: &_, group: &mut _| {
        prepare(blocks, hashes, group, prefetch_from);
    };
    let process = |blocks: &mut BlockRange<LANES, &[L]>, group: &Group, clear: &mut ClearLanes| {
        // SAFETY: the group was prepared for these lines.
        unsafe { test_group::<LANES, ALL, L>(blocks.lines, group, clear, &load) };
    };
    batch(blocks, hashes, found, prepare, process, |clear| all_set(clear));
}

/// Tests the keys of a group.
///
/// # Safety
/// [`prepare`] must have prepared the group for these lines.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
unsafe fn test_group<const LANES: usize, const ALL: bool, L>(
    lines: &[L],
    group: &Group,
    clear: &mut ClearLanes,
    load: impl Fn(&L) -> __m512i,
) {
    for (key, clear) in clear.iter_mut().enumerate() {
        let first = lines.as_ptr().wrapping_byte_add(group.at[key] as usize);
        // SAFETY: the caller guarantees that all lines of the block exist.
        let block = unsafe { from_raw_parts(first, BlockParams::<LANES>::LINES) };
        *clear = clear_lanes::<LANES, ALL, L>(block, &group.probes(key), &load);
    }
}

/// For each key of a group, the lanes whose bit is clear; both lines of a pair are combined.
type ClearLanes = [u8; GROUP];

/// Eight prepared keys, one per array element.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
struct Group {
    /// The offset of the block in bytes.
    at: [u64; GROUP],
    /// The fields of the lanes; those of the second line are in `high`.
    low: [u64; GROUP],
    high: [u64; GROUP],
    /// One bit for each lane of the key.
    masks: [u64; GROUP],
}

impl Group {
    #[inline(always)]
    fn probes<const LANES: usize>(&self, key: usize) -> VectorProbes<LANES> {
        VectorProbes { low: self.low[key], high: self.high[key], mask: self.masks[key] as u16 }
    }
}

/// Prepares eight keys, and prefetches their lines if the filter has at least `prefetch_from` lines.
///
/// # Panics
/// If a block is not in the range.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn prepare<const LANES: usize, L, D: Deref<Target = [L]>>(
    blocks: &BlockRange<LANES, D>,
    hashes: &[u64; GROUP],
    group: &mut Group,
    prefetch_from: usize,
) {
    let BlockParams { blocks: range, probes } = blocks.params;
    let keys = load_words(hashes);
    let low = _mm512_mullo_epi64(keys, splat(MIX_LOW));
    group.low = words(low);
    if LANES == 16 {
        group.high = words(_mm512_mullo_epi64(keys, splat(MIX_HIGH)));
    }
    if probes as usize != LANES {
        let starts = _mm512_and_si512(_mm512_srli_epi64::<12>(low), splat(LANES as u64 - 1));
        let down = _mm512_sub_epi64(splat(LANES as u64), starts);
        group.masks = words(_mm512_srlv_epi64(splat(repeated_mask::<LANES>(probes).into()), down));
    }
    let block = if range >> 32 == 0 {
        scale_short(keys, splat(range))
    } else {
        load_words(&hashes.map(|hash| scale(hash, range)))
    };
    let block = _mm512_sub_epi64(block, splat(blocks.first));
    let available = blocks.lines.len() / BlockParams::<LANES>::LINES;
    assert!(
        _mm512_cmplt_epu64_mask(block, splat(available as u64)) == !0,
        "block outside the range"
    );
    let bytes =
        if LANES == 16 { _mm512_slli_epi64::<7>(block) } else { _mm512_slli_epi64::<6>(block) };
    group.at = words(bytes);
    // The size of the whole filter decides: a range of its blocks is no closer than the rest.
    if range as usize * BlockParams::<LANES>::LINES >= prefetch_from {
        group.at.iter().for_each(|&at| blocks.prefetch(at as usize / CacheLine::BYTES));
    }
}

/// Returns [`scale`] of eight hashes for a range below 2^32: two 32-bit products and their carry.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
pub(super) fn scale_short(hashes: __m512i, range: __m512i) -> __m512i {
    let low = _mm512_mul_epu32(hashes, range);
    let high = _mm512_mul_epu32(_mm512_srli_epi64::<32>(hashes), range);
    _mm512_srli_epi64::<32>(_mm512_add_epi64(high, _mm512_srli_epi64::<32>(low)))
}

/// Returns the lane mask of start 0, repeated twice: shifted down by L-r it is the mask of start r.
#[inline(always)]
fn repeated_mask<const LANES: usize>(probes: u32) -> u32 {
    let window = (1 << probes) - 1;
    window << LANES | window
}

/// The lanes and fields of one key.
struct VectorProbes<const LANES: usize> {
    low: u64,
    high: u64,
    mask: u16,
}

impl<const LANES: usize> VectorProbes<LANES> {
    #[inline(always)]
    fn fields(&self, line: usize) -> u64 {
        if line == 0 { self.low } else { self.high }
    }

    #[inline(always)]
    fn mask(&self, line: usize) -> u8 {
        (self.mask >> (8 * line)) as u8
    }

    /// Returns the bits of the key in a line.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    fn bits<const ALL: bool>(&self, line: usize) -> __m512i {
        let shifts = _mm512_setr_epi64(16, 22, 28, 34, 40, 46, 52, 58);
        let fields = _mm512_srlv_epi64(splat(self.fields(line)), shifts);
        if ALL {
            _mm512_rolv_epi64(splat(1), fields)
        } else {
            _mm512_maskz_rolv_epi64(self.mask(line), splat(1), fields)
        }
    }
}

/// Returns the lanes of a block whose bit is clear, both lines combined.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn clear_lanes<const LANES: usize, const ALL: bool, L>(
    block: &[L],
    key: &VectorProbes<LANES>,
    load: impl Fn(&L) -> __m512i,
) -> u8 {
    let mut clear = 0;
    for (at, line) in block.iter().enumerate().take(BlockParams::<LANES>::LINES) {
        let (mask, bits) = (key.mask(at), key.bits::<ALL>(at));
        let words = load(line);
        clear |= if ALL {
            _mm512_testn_epi64_mask(words, bits)
        } else {
            _mm512_mask_testn_epi64_mask(mask, words, bits)
        };
    }
    clear
}

/// Sets the bits in a block. Returns the lanes whose bit was clear.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn set_bits<const LANES: usize, const ALL: bool>(
    block: &mut [CacheLine],
    key: &VectorProbes<LANES>,
) -> u8 {
    let clear = clear_lanes::<LANES, ALL, _>(block, key, |line| load_words(&line.0));
    for (at, line) in block.iter_mut().enumerate() {
        line.0 = words(_mm512_or_si512(load_words(&line.0), key.bits::<ALL>(at)));
    }
    clear
}

/// Returns which of 64 keys have no clear lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn all_set(clear: &[ClearLanes; 8]) -> u64 {
    // SAFETY: 64 bytes, and the load needs no alignment.
    let clear = unsafe { _mm512_loadu_si512(clear.as_ptr().cast()) };
    _mm512_testn_epi8_mask(clear, clear)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
pub(super) fn splat(word: u64) -> __m512i {
    _mm512_set1_epi64(word as i64)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
pub(super) fn load_words(words: &[u64; 8]) -> __m512i {
    // SAFETY: 64 bytes, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
pub(super) fn words(vector: __m512i) -> [u64; 8] {
    // SAFETY: both are 64 bytes of any bits.
    unsafe { core::mem::transmute(vector) }
}
