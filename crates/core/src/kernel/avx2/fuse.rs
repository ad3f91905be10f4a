//! Binary fuse filters with AVX2: the positions of the slots of eight keys at a time.
//!
//! Slots are loaded one by one, because gathers are slower than loads on many processors. There is no
//! prefetching: 32 prefetches in a row are slower than the portable code, which computes in between.
//! Results are those of [`Fuse`], which the tests check.

use core::arch::x86_64::*;

use super::Avx2;
use crate::kernel::batch::{GROUP, HashSource, in_groups};
use crate::kernel::dispatch::BinaryFuse;
use crate::kernel::fuse::Fuse;

/// The dimensions of a filter in each lane of 32 bits, computed once for a batch.
struct LaneParams {
    /// Shifts by the number of bits that select a shard, and by 32 less that number.
    log_shards: __m128i,
    after_shard: __m128i,
    stride: __m256i,
    /// In lanes of 64 bits.
    starts: __m256i,
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
        let all = |number: u64| _mm256_set1_epi32(number as i32);
        Self {
            log_shards: _mm_cvtsi32_si128(log_shards),
            after_shard: _mm_cvtsi32_si128(32 - log_shards),
            stride: all(params.stride),
            // Converted, so that the compiler knows that half of the bits are 0.
            starts: _mm256_set1_epi64x((params.starts as u32).into()),
            in_segment: all(params.in_segment()),
            bits: all(params.bits.into()),
            wide_slots: all(params.wide_slots),
            wide_starts: all(params.wide_starts),
            narrow_mask: all(params.narrow_mask.into()),
            wide_bit: all(1 << params.bits),
        }
    }
}

impl BinaryFuse for Avx2 {
    #[target_feature(enable = "avx2,bmi2")]
    unsafe fn fuse_batch(fuse: Fuse<'_>, hashes: impl HashSource, found: &mut [u64]) {
        if !fuse.pays_for_vectors() {
            return fuse.batch(hashes, found);
        }
        let params = LaneParams::new(fuse);
        in_groups(hashes, found, |group| contains_eight(fuse, &params, group));
    }
}

/// Returns the halves of 32 bits of eight lanes of 64 bits, the low ones first. `first` has the
/// lanes 0, 1, 4 and 5 and `second` the others, because vectors are rearranged within their halves.
#[inline]
#[target_feature(enable = "avx2")]
fn halves(first: __m256i, second: __m256i) -> (__m256i, __m256i) {
    let (first, second) = (_mm256_castsi256_ps(first), _mm256_castsi256_ps(second));
    let low = _mm256_shuffle_ps::<0b10_00_10_00>(first, second);
    let high = _mm256_shuffle_ps::<0b11_01_11_01>(first, second);
    (_mm256_castps_si256(low), _mm256_castps_si256(high))
}

/// Returns a bit for each of eight hashes: whether the filter contains it.
#[inline]
#[target_feature(enable = "avx2,bmi2")]
fn contains_eight(fuse: Fuse<'_>, params: &LaneParams, hashes: &[u64; GROUP]) -> u8 {
    let hashed = hashes.map(|hash| fuse.params.mix(hash));
    // SAFETY: the shard of a hash exists.
    let product = |g: u64| g.wrapping_mul(unsafe { fuse.multiplier(fuse.params.shard(g)) });
    let products = hashed.map(product);
    // From registers: reading a vector is slow while the stores of its words are in flight.
    let vector = |words: &[u64; GROUP], lanes: [usize; 4]| {
        let [first, second, third, fourth] = lanes.map(|lane| words[lane] as i64);
        _mm256_set_epi64x(fourth, third, second, first)
    };
    let first = [0, 1, 4, 5];
    let second = [2, 3, 6, 7];
    let (g_first, g_second) = (vector(&hashed, first), vector(&hashed, second));
    let (g_low, g_high) = halves(g_first, g_second);
    let (e_low, e_high) = halves(vector(&products, first), vector(&products, second));
    let start = |g| {
        let rest = _mm256_srli_epi64::<32>(_mm256_sll_epi64(g, params.log_shards));
        _mm256_mul_epu32(rest, params.starts)
    };
    let (_, start) = halves(start(g_first), start(g_second));
    let shard = _mm256_srl_epi32(g_high, params.after_shard);
    let start = _mm256_add_epi32(start, _mm256_mullo_epi32(shard, params.stride));
    let in_segment = |e| _mm256_and_si256(e, params.in_segment);
    let next_segment = |slot| {
        let last = _mm256_or_si256(slot, params.in_segment);
        _mm256_sub_epi32(last, _mm256_set1_epi32(-1))
    };
    let second = next_segment(start);
    let third = next_segment(second);
    let fourth = next_segment(third);
    let slots = [
        start,
        _mm256_or_si256(second, in_segment(_mm256_srli_epi32::<16>(e_low))),
        _mm256_or_si256(third, in_segment(e_high)),
        _mm256_or_si256(fourth, in_segment(_mm256_srli_epi32::<16>(e_high))),
    ];
    // The XOR of the fingerprint and the slots, and other bits above those of a slot.
    let mut sum = _mm256_xor_si256(g_low, e_high);
    for slot in slots {
        let wide = _mm256_min_epu32(slot, params.wide_slots);
        // Below 2^26, because the filter fits a cache.
        let bit = _mm256_add_epi32(_mm256_mullo_epi32(slot, params.bits), wide);
        let mut bytes = [0u32; GROUP];
        // SAFETY: eight words.
        unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), _mm256_srli_epi32::<3>(bit)) };
        let words = bytes.map(|byte| {
            // SAFETY: the slots of a key exist, as in `Fuse::contains`, and at least one multiplier
            // follows.
            unsafe { fuse.bytes.as_ptr().add(byte as usize).cast::<i32>().read_unaligned() }
        });
        let [a, b, c, d, e, f, g, h] = words;
        let words = _mm256_set_epi32(h, g, f, e, d, c, b, a);
        let shift = _mm256_and_si256(bit, _mm256_set1_epi32(7));
        sum = _mm256_xor_si256(sum, _mm256_srlv_epi32(words, shift));
    }
    let is_wide = _mm256_cmpgt_epi32(params.wide_starts, start);
    let wide_bit = _mm256_and_si256(is_wide, params.wide_bit);
    let compared = _mm256_and_si256(sum, _mm256_or_si256(params.narrow_mask, wide_bit));
    let equal = _mm256_cmpeq_epi32(compared, _mm256_setzero_si256());
    _mm256_movemask_ps(_mm256_castsi256_ps(equal)) as u8
}
