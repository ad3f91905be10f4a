//! Binary fuse filters with AVX-512: eight keys, in lanes of 64 bits, at a time.
//!
//! The positions of the slots of eight keys are computed together, a vector for each slot of a key,
//! and their slots are gathered some groups later. Hashes are mixed one by one, because no
//! instruction has products of 128 bits in lanes. Results are those of [`Fuse`], which the tests
//! check.

use core::arch::asm;
use core::arch::x86_64::*;

use super::{Avx512, load_words, splat, words};
use crate::kernel::batch::{GROUP, HashSource, batch, join};
use crate::kernel::dispatch::BinaryFuse;
use crate::kernel::fuse::{Fuse, WAYS, fuse_hash};
use crate::kernel::primitives::prefetch;

/// The dimensions of a filter in each lane, computed once for a batch.
struct LaneParams {
    /// Shifts by the number of bits that select a shard, and by 64 less that number.
    log_shards: __m128i,
    after_shard: __m128i,
    stride: __m512i,
    starts: __m512i,
    in_segment: __m512i,
    segment: __m512i,
    bits: __m512i,
    wide_slots: __m512i,
    wide_starts: __m512i,
    /// The bits that a key compares, and those of a key in wide slots.
    narrow_mask: __m512i,
    wide_mask: __m512i,
}

impl LaneParams {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    fn new(fuse: Fuse<'_>) -> Self {
        let params = fuse.params;
        let log_shards = i64::from(params.shards().ilog2());
        Self {
            log_shards: _mm_cvtsi64_si128(log_shards),
            after_shard: _mm_cvtsi64_si128(64 - log_shards),
            stride: splat(params.stride),
            starts: splat(params.starts),
            in_segment: splat(params.in_segment()),
            segment: splat(params.in_segment() + 1),
            bits: splat(params.bits.into()),
            wide_slots: splat(params.wide_slots),
            wide_starts: splat(params.wide_starts),
            narrow_mask: splat(params.narrow_mask.into()),
            wide_mask: splat(u64::from(params.narrow_mask) << 1 | 1),
        }
    }
}

/// Eight prepared keys, one per lane.
#[derive(Default)]
#[repr(C, align(64))]
struct Group {
    /// The first bit of each slot.
    positions: [[u64; GROUP]; WAYS as usize],
    fingerprints: [u64; GROUP],
    /// The bits that are compared.
    masks: [u64; GROUP],
}

/// Hashes of keys in the filter.
///
/// Computed when a group is hashed, some groups before they are read as a vector: a vector of words
/// whose stores are in flight is slow to load.
#[derive(Clone, Copy)]
struct FuseHashes<H> {
    hashes: H,
    mixer: u64,
}

impl<H: HashSource> HashSource for FuseHashes<H> {
    #[inline(always)]
    fn words(&self) -> &[u64] {
        self.hashes.words()
    }

    #[inline(always)]
    fn hash_group(&self, words: &[u64; GROUP], hashes: &mut [u64; GROUP]) {
        self.hashes.hash_group(words, hashes);
        for hash in hashes {
            // SAFETY: a borrowed word. Volatile, so that it is not vectorised, which is slower.
            unsafe { core::ptr::write_volatile(hash, fuse_hash(*hash, self.mixer)) };
        }
    }
}

/// For each slot of a key, the shift that moves its place in the segment to the bottom; then a mask of
/// the bits of a position that are inside a byte. In one cache line.
#[repr(align(64))]
struct Constants(#[expect(dead_code, reason = "read by assembly")] [u64; 5]);
static CONSTANTS: Constants = Constants([0, 16, 32, 48, 7]);

/// Same as [`Fuse::contains`] for filters with [`Fuse::fits_lanes`], in inline assembly: see
/// [`inline`](super::inline).
///
/// # Safety
/// The machine must have the instructions of this kernel, and the filter must have
/// [`Fuse::fits_lanes`]: there must be a shard.
#[inline(always)]
unsafe fn contains(fuse: Fuse<'_>, hash: u64) -> bool {
    let key = fuse.start_of(hash);
    let sum: u64;
    // SAFETY: computes positions as `prepare`; reads eight bytes at each, which exist as in
    // `matches`, and the numbers for lanes.
    unsafe {
        asm!(
            "vpmovzxdq ymm19, xmmword ptr [{lanes}]",
            "vpmovzxdq ymm17, xmmword ptr [{lanes} + 16]",
            "vpbroadcastq ymm16, {start}",
            "vporq ymm16, ymm16, ymm19",
            "vpaddq ymm16, ymm16, ymm17",
            "vpbroadcastq ymm17, {e}",
            "vpsrlvq ymm17, ymm17, ymmword ptr [{constants}]",
            // ymm16 | (ymm17 & in_segment): the slots.
            "vpternlogq ymm16, ymm17, ymm19, 0xf8",
            "vpbroadcastd ymm17, {bits:e}",
            "vpmuludq ymm17, ymm16, ymm17",
            "vpminuq ymm16, ymm16, qword ptr [{wide_slots}]{{1to4}}",
            "vpaddq ymm16, ymm16, ymm17",
            "vpsrlq ymm17, ymm16, 3",
            "kxnorw k1, k1, k1",
            "vpxorq ymm18, ymm18, ymm18",
            "vpgatherqq ymm18{{k1}}, qword ptr [{bytes} + ymm17]",
            "vpandq ymm16, ymm16, qword ptr [{constants} + 32]{{1to4}}",
            "vpsrlvq ymm18, ymm18, ymm16",
            "vextracti64x2 xmm16, ymm18, 1",
            "vpxorq xmm16, xmm16, xmm18",
            "vpshufd xmm17, xmm16, 0xee",
            "vpxorq xmm16, xmm16, xmm17",
            "vmovq {sum}, xmm16",
            start = in(reg) key.start,
            e = in(reg) key.e,
            lanes = in(reg) &fuse.params.lanes,
            bits = in(reg) fuse.params.bits,
            wide_slots = in(reg) &fuse.params.wide_slots,
            constants = in(reg) &CONSTANTS,
            bytes = in(reg) fuse.bytes.as_ptr(),
            sum = lateout(reg) sum,
            out("ymm16") _, out("ymm17") _, out("ymm18") _, out("ymm19") _, out("k1") _,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    fuse.compares_equal(&key, sum as u32)
}

impl BinaryFuse for Avx512 {
    #[inline(always)]
    unsafe fn fuse_contains(fuse: Fuse<'_>, hash: u64) -> bool {
        if fuse.has_bit_slots() && fuse.fits_lanes() {
            // SAFETY: the caller guarantees the instructions; the filter fits the lanes.
            unsafe { contains(fuse, hash) }
        } else {
            fuse.contains(hash)
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn fuse_batch(fuse: Fuse<'_>, hashes: impl HashSource, found: &mut [u64]) {
        if !fuse.fits_lanes() {
            return fuse.batch(hashes, found);
        }
        let params = LaneParams::new(fuse);
        if fuse.is_small() {
            groups::<false>(fuse, &params, hashes, found);
        } else {
            groups::<true>(fuse, &params, hashes, found);
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn groups<const PREFETCH: bool>(
    fuse: Fuse<'_>,
    params: &LaneParams,
    hashes: impl HashSource,
    found: &mut [u64],
) {
    let prepare = |(): &(), hashes: &[u64; GROUP], group: &mut Group| {
        prepare(fuse, params, hashes, group);
        if PREFETCH {
            // Only the first byte: one slot in nine is in two cache lines, and a second prefetch for
            // every slot takes more time than these misses.
            for &position in group.positions.as_flattened() {
                prefetch(fuse.bytes, (position / 8) as usize);
            }
        }
    };
    let process = |(): &mut (), group: &Group, results: &mut u8| *results = matches(fuse, group);
    let hashes = FuseHashes { hashes, mixer: fuse.params.mixer };
    batch((), hashes, found, prepare, process, join);
}

/// Computes the positions of the slots of eight keys from their [`fuse_hash`]es.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn prepare(fuse: Fuse<'_>, params: &LaneParams, hashes: &[u64; GROUP], group: &mut Group) {
    let g = load_words(hashes);
    // A shift by 64 bits, with one shard, is 0.
    let shard = _mm512_srl_epi64(g, params.after_shard);
    // SAFETY: the shards of hashes exist, so their multipliers are inside the bytes.
    let multiplier = unsafe {
        let multipliers = fuse.bytes.as_ptr().cast::<u64>().add(fuse.params.slot_words() as usize);
        _mm512_i64gather_epi64::<8>(shard, multipliers.cast())
    };
    let e = _mm512_mullo_epi64(g, multiplier);
    // All slots are below 2^32, so products of 32 bits are enough.
    let rest = _mm512_srli_epi64::<32>(_mm512_sll_epi64(g, params.log_shards));
    let start = _mm512_srli_epi64::<32>(_mm512_mul_epu32(rest, params.starts));
    let start = _mm512_add_epi64(start, _mm512_mul_epu32(shard, params.stride));
    let second = _mm512_or_si512(start, params.in_segment);
    let second = _mm512_sub_epi64(second, splat(u64::MAX));
    let third = _mm512_add_epi64(second, params.segment);
    let fourth = _mm512_add_epi64(third, params.segment);
    // first | (e & in_segment)
    let slot = |first, e| _mm512_ternarylogic_epi64::<0xf8>(first, e, params.in_segment);
    let e_high = _mm512_srli_epi64::<32>(e);
    let slots = [
        start,
        slot(second, _mm512_srli_epi64::<16>(e)),
        slot(third, e_high),
        slot(fourth, _mm512_srli_epi64::<48>(e)),
    ];
    for (positions, slot) in group.positions.iter_mut().zip(slots) {
        let wide = _mm512_min_epu64(slot, params.wide_slots);
        *positions = words(_mm512_add_epi64(_mm512_mul_epu32(slot, params.bits), wide));
    }
    group.fingerprints = words(_mm512_xor_si512(g, e_high));
    let wide = _mm512_cmplt_epu64_mask(start, params.wide_starts);
    let masks = _mm512_mask_blend_epi64(wide, params.narrow_mask, params.wide_mask);
    group.masks = words(masks);
}

/// Returns a bit for each key of a group: whether the XOR of its slots is its fingerprint.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn matches(fuse: Fuse<'_>, group: &Group) -> u8 {
    let slots = group.positions.each_ref().map(|positions| {
        let position = load_words(positions);
        let byte = _mm512_srli_epi64::<3>(position);
        // SAFETY: the slots of keys exist, as in `Fuse::contains`, and at least one multiplier
        // follows, so eight bytes exist.
        let word = unsafe { _mm512_i64gather_epi64::<1>(byte, fuse.bytes.as_ptr().cast()) };
        _mm512_srlv_epi64(word, _mm512_and_si512(position, splat(7)))
    });
    let [first, second, third, fourth] = slots;
    let sum = _mm512_xor_si512(load_words(&group.fingerprints), first);
    // The XOR of three.
    let sum = _mm512_ternarylogic_epi64::<0x96>(sum, second, third);
    let sum = _mm512_xor_si512(sum, fourth);
    _mm512_testn_epi64_mask(sum, load_words(&group.masks))
}
