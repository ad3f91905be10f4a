//! Binary fuse filters with AVX2: the positions of the slots of four keys at a time.
//!
//! Slots are loaded one by one, because gathers are slower than loads on many processors. There is no
//! prefetching: 32 prefetches in a row are slower than the portable code, which computes in between.
//! Results are those of [`Fuse`], which the tests check.

use core::arch::x86_64::*;

use super::super::batch::in_groups;
use super::super::fuse::{Fuse, fuse_hash};

/// Keys whose positions are computed together.
const LANES: usize = 4;

/// The dimensions of a filter in each lane, computed once for a batch.
struct LaneParams {
    /// Shifts by the number of bits that select a shard.
    log_shards: __m128i,
    after_shard: __m128i,
    stride: __m256i,
    starts: __m256i,
    /// Slots of a segment, and a mask of a slot's place in it.
    segment: __m256i,
    in_segment: __m256i,
    bits: __m256i,
    wide_slots: __m256i,
    wide_starts: __m256i,
    /// The bits that all keys compare, and the one that keys in wide slots compare, too.
    narrow_mask: __m256i,
    wide_bit: __m256i,
}

impl LaneParams {
    #[target_feature(enable = "avx2")]
    fn new(fuse: Fuse<'_>) -> Self {
        let params = fuse.params;
        let log_shards = params.shards().ilog2() as i32;
        let all = |number: u64| _mm256_set1_epi64x(number as i64);
        Self {
            log_shards: _mm_cvtsi32_si128(log_shards),
            after_shard: _mm_cvtsi32_si128(63 - log_shards),
            stride: all(params.stride),
            starts: all(params.starts),
            segment: all(params.segment),
            in_segment: all(params.segment - 1),
            bits: all(params.bits.into()),
            wide_slots: all(params.wide_slots),
            wide_starts: all(params.wide_starts),
            narrow_mask: all(params.narrow_mask.into()),
            wide_bit: all(1 << params.bits),
        }
    }
}

/// Same as [`Fuse::batch`], for filters with [`Fuse::pays_for_vectors`].
#[target_feature(enable = "avx2,bmi2")]
pub(in super::super) fn contains_batch(fuse: Fuse<'_>, hashes: &[u64], found: &mut [u64]) {
    assert!(fuse.pays_for_vectors(), "slots of 32 bits");
    let params = LaneParams::new(fuse);
    in_groups(hashes, found, |group| {
        let (first, second) = group.split_at(LANES);
        contains_four(fuse, &params, first) | contains_four(fuse, &params, second) << LANES
    });
}

/// Returns a bit for each of four hashes: whether the filter contains it.
#[inline]
#[target_feature(enable = "avx2,bmi2")]
fn contains_four(fuse: Fuse<'_>, params: &LaneParams, hashes: &[u64]) -> u8 {
    let hashed = [hashes[0], hashes[1], hashes[2], hashes[3]].map(fuse_hash);
    // SAFETY: the shard of a hash exists.
    let product = |g: u64| g.wrapping_mul(unsafe { fuse.multiplier(fuse.params.shard(g)) });
    // From registers: reading a vector is slow while the stores of its words are in flight.
    let vector = |[first, second, third, fourth]: [u64; LANES]| {
        _mm256_set_epi64x(fourth as i64, third as i64, second as i64, first as i64)
    };
    let (g, e) = (vector(hashed), vector(hashed.map(product)));
    let shard = _mm256_srl_epi64(_mm256_srli_epi64::<1>(g), params.after_shard);
    let shard = _mm256_mul_epu32(shard, params.stride);
    let rest = _mm256_srli_epi64::<32>(_mm256_sll_epi64(g, params.log_shards));
    let start = _mm256_srli_epi64::<32>(_mm256_mul_epu32(rest, params.starts));
    let start = _mm256_add_epi64(shard, start);
    let e_high = _mm256_srli_epi64::<32>(e);
    let first = _mm256_andnot_si256(params.in_segment, start);
    let second = _mm256_add_epi64(first, params.segment);
    let third = _mm256_add_epi64(second, params.segment);
    let fourth = _mm256_add_epi64(third, params.segment);
    let in_segment = |e| _mm256_and_si256(e, params.in_segment);
    let slots = [
        start,
        _mm256_add_epi64(second, in_segment(_mm256_srli_epi64::<16>(e))),
        _mm256_add_epi64(third, in_segment(e_high)),
        _mm256_add_epi64(fourth, in_segment(_mm256_srli_epi64::<48>(e))),
    ];
    // The XOR of the fingerprint and the slots, and other bits above those of a slot.
    let mut sum = _mm256_xor_si256(g, e_high);
    for slot in slots {
        // Slots have 32 bits, so the other halves are 0 in the minimum, too.
        let wide = _mm256_min_epu32(slot, params.wide_slots);
        let bit = _mm256_add_epi64(_mm256_mul_epu32(slot, params.bits), wide);
        let mut bytes = [0u64; LANES];
        // SAFETY: four words.
        unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), _mm256_srli_epi64::<3>(bit)) };
        let word = |lane: usize| {
            // SAFETY: the slots of a key exist, as in `Fuse::contains`, and at least one word follows.
            unsafe { fuse.bytes.as_ptr().add(bytes[lane] as usize).cast::<u64>().read_unaligned() }
        };
        let words = vector([word(0), word(1), word(2), word(3)]);
        let shift = _mm256_and_si256(bit, _mm256_set1_epi64x(7));
        sum = _mm256_xor_si256(sum, _mm256_srlv_epi64(words, shift));
    }
    let is_wide = _mm256_cmpgt_epi64(params.wide_starts, start);
    let wide_bit = _mm256_and_si256(is_wide, params.wide_bit);
    let compared = _mm256_and_si256(sum, _mm256_or_si256(params.narrow_mask, wide_bit));
    let equal = _mm256_cmpeq_epi64(compared, _mm256_setzero_si256());
    _mm256_movemask_pd(_mm256_castsi256_pd(equal)) as u8
}
