//! Looking up many hashes with AVX-512, in groups of 64.
//!
//! 1. The places of a group are computed, eight hashes at a time.
//! 2. The tags of its blocks are compared, while the blocks of the next group are prefetched. The
//!    slots with equal tags and the headers of the blocks are stored.
//! 3. The slots are compared with the buckets, eight hashes at a time.
//!
//! A slot s is in bucket b if bit s + b of the header is set and b bits 0 are before it. So each of the
//! slots is a test of one bit and a popcount; in a mask of slots they are tested from the lowest one on.

use core::arch::x86_64::*;

use super::super::block::BlockOps;
use super::super::header::Header;
use super::super::shape::{PairParams, SPREAD};
use super::{Avx512Gfni, LANE, Layout, MAX_PARTS, equal_parts};
use crate::kernel::avx512::{load_words, scale_short, splat, words};
use crate::kernel::primitives::prefetch;
use crate::store::{CacheLine, line_as_bytes};

/// Hashes of a group: those of a word of results.
const GROUP: usize = 64;
/// Hashes of a vector.
const LANES: usize = 8;

/// The places of a group.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Places {
    /// The numbers of both blocks, which exist.
    blocks: [[u64; GROUP]; 2],
    buckets: [u64; GROUP],
    /// The parts of the tags that are compared at once.
    tags: [[u8; GROUP]; MAX_PARTS],
}

/// The results of step 2.
#[repr(C, align(64))]
struct Slots {
    /// The slots with the tag of the hash.
    equal: [[u64; GROUP]; 2],
    /// The words that end with the header.
    headers: [[[u64; 2]; GROUP]; 2],
}

/// Same as [`batch::contains`](super::super::batch::contains), for less than 2³² blocks.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni",
    enable = "avx2,bmi1,bmi2,lzcnt,popcnt"
)]
pub(super) fn contains<const TAG_BITS: usize, const BYTES: usize>(
    kernel: Avx512Gfni,
    params: PairParams,
    blocks: &[CacheLine],
    hashes: &[u64],
    found: &mut [u64],
) {
    const EMPTY: Places =
        Places { blocks: [[0; GROUP]; 2], buckets: [0; GROUP], tags: [[0; GROUP]; MAX_PARTS] };
    let mut places = [EMPTY; 2];
    let [now, next] = &mut places;
    let (mut now, mut next) = (now, next);
    let mut slots = Slots { equal: [[0; GROUP]; 2], headers: [[[0; 2]; GROUP]; 2] };
    let mut groups = hashes.chunks(GROUP);
    let mut group = groups.next().unwrap_or_default();
    compute_places::<TAG_BITS, BYTES>(params, blocks.len(), group, now);
    for side in &now.blocks {
        for &block in &side[..group.len()] {
            prefetch(blocks, block as usize);
        }
    }
    for word in found {
        let later = groups.next().unwrap_or_default();
        compute_places::<TAG_BITS, BYTES>(params, blocks.len(), later, next);
        for key in 0..group.len() {
            for side in 0..2 {
                prefetch(blocks, next.blocks[side][key] as usize);
                // SAFETY: the numbers were checked when they were computed.
                let block = unsafe { blocks.get_unchecked(now.blocks[side][key] as usize) };
                let tag = [now.tags[0][key], now.tags[1][key], now.tags[2][key]];
                slots.equal[side][key] =
                    equal_parts::<TAG_BITS, BYTES>(kernel, line_as_bytes(block), tag);
                let [.., low, high] = block.0;
                slots.headers[side][key] = [low, high];
            }
        }
        let mut results = 0;
        for first in (0..group.len()).step_by(LANES) {
            let mut candidates = [
                Candidates::new::<TAG_BITS, BYTES>(&slots, &now.buckets, 0, first),
                Candidates::new::<TAG_BITS, BYTES>(&slots, &now.buckets, 1, first),
            ];
            results |= u64::from(any_in_bucket::<TAG_BITS>(&mut candidates)) << first;
        }
        let keys = u64::MAX.checked_shr((GROUP - group.len()) as u32).unwrap_or(0);
        *word |= results & keys;
        group = later;
        core::mem::swap(&mut now, &mut next);
    }
}

/// Computes the places of up to 64 hashes as [`PairParams::place`] and [`PairParams::second_block`]
/// do.
///
/// # Panics
/// If a block is not one of `len` blocks.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn compute_places<const TAG_BITS: usize, const BYTES: usize>(
    params: PairParams,
    len: usize,
    hashes: &[u64],
    places: &mut Places,
) {
    let buckets = u64::from(BlockOps::<TAG_BITS, BYTES>::SHAPE.buckets);
    let region = splat(params.region);
    for (at, hashes) in hashes.chunks(LANES).enumerate() {
        let some = u8::MAX >> (LANES - hashes.len());
        // SAFETY: lanes that are masked out are not read.
        let hashes = unsafe { _mm512_maskz_loadu_epi64(some, hashes.as_ptr().cast()) };
        let block = scale_short(hashes, splat(params.blocks()));
        let in_block = _mm512_mullo_epi64(hashes, splat(params.blocks()));
        let number = scale_short(in_block, splat(buckets << TAG_BITS));
        let sum = scale_short(_mm512_mullo_epi64(number, splat(SPREAD)), region);
        let first = _mm512_mul_epu32(scale_short(hashes, splat(params.regions)), region);
        let within = _mm512_sub_epi64(block, first);
        let is_negative = _mm512_cmplt_epu64_mask(sum, within);
        let second = _mm512_add_epi64(first, _mm512_sub_epi64(sum, within));
        let second = _mm512_mask_add_epi64(second, is_negative, second, region);
        let len = splat(len as u64);
        let exist = _mm512_cmplt_epu64_mask(block, len) & _mm512_cmplt_epu64_mask(second, len);
        assert!(exist == u8::MAX, "a block of a hash does not exist");
        let bucket = _mm512_srlv_epi64(number, splat(TAG_BITS as u64));
        let eight = at * LANES..(at + 1) * LANES;
        places.blocks[0][eight.clone()].copy_from_slice(&words(block));
        places.blocks[1][eight.clone()].copy_from_slice(&words(second));
        places.buckets[eight.clone()].copy_from_slice(&words(bucket));
        let tag = _mm512_and_si512(number, splat((1 << TAG_BITS) - 1));
        // As in `parts`.
        let tag = if TAG_BITS < LANE {
            _mm512_or_si512(tag, _mm512_sllv_epi64(tag, splat(TAG_BITS as u64)))
        } else {
            tag
        };
        for part in 0..Layout::<TAG_BITS, BYTES>::PARTS {
            let from = splat(Layout::<TAG_BITS, BYTES>::part_at(part).into());
            let bytes = _mm512_cvtepi64_epi8(_mm512_srlv_epi64(tag, from));
            let bytes = _mm_cvtsi128_si64(bytes).to_le_bytes();
            places.tags[part][eight.clone()].copy_from_slice(&bytes);
        }
    }
}

/// For eight keys, slots of one of their blocks that may be in their bucket.
struct Candidates {
    /// The slots that were not tested yet.
    slots: __m512i,
    /// The results of [`BlockOps::from_bucket`].
    bits: __m512i,
    ones: __m512i,
}

impl Candidates {
    /// Returns the candidates of eight keys of a group, from `first` on, in one of their blocks.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi2")]
    fn new<const TAG_BITS: usize, const BYTES: usize>(
        slots: &Slots,
        buckets: &[u64; GROUP],
        side: usize,
        first: usize,
    ) -> Self {
        let headers = slots.headers[side].as_flattened();
        let (some, others) = (eight(headers, 2 * first), eight(headers, 2 * first + LANES));
        let even = _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0);
        let odd = _mm512_set_epi64(15, 13, 11, 9, 7, 5, 3, 1);
        let low = _mm512_permutex2var_epi64(some, even, others);
        let high = _mm512_permutex2var_epi64(some, odd, others);
        let unused = splat(Header::<TAG_BITS, BYTES>::SHIFT.into());
        let used = _mm512_sub_epi64(splat(64), unused);
        let low = _mm512_or_si512(_mm512_srlv_epi64(low, unused), _mm512_sllv_epi64(high, used));
        let high = _mm512_srlv_epi64(high, unused);

        // As `BlockOps::from_bucket`; shifts by 64 and more, also by negative numbers, are 0.
        let bucket = eight(buckets, first);
        let from = _mm512_sllv_epi64(splat(u64::MAX), bucket);
        let mut ones = _mm512_popcnt_epi64(_mm512_andnot_si512(from, low));
        let from_high = _mm512_sllv_epi64(high, _mm512_sub_epi64(splat(64), bucket));
        let mut bits = _mm512_or_si512(_mm512_srlv_epi64(low, bucket), from_high);
        if BlockOps::<TAG_BITS, BYTES>::SHAPE.buckets > 64 {
            let in_high = _mm512_sub_epi64(bucket, splat(64));
            bits = _mm512_or_si512(bits, _mm512_srlv_epi64(high, in_high));
            let from = _mm512_sllv_epi64(splat(u64::MAX), _mm512_max_epi64(in_high, splat(0)));
            let more = _mm512_popcnt_epi64(_mm512_andnot_si512(from, high));
            ones = _mm512_add_epi64(ones, more);
        }
        let slots = _mm512_and_si512(eight(&slots.equal[side], first), bits);
        Self { slots, bits, ones }
    }

    /// Tests the lowest slot of each key and removes it. Returns the keys whose slot is in their
    /// bucket.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi2")]
    fn test_lowest(&mut self) -> u8 {
        let has_slot = _mm512_test_epi64_mask(self.slots, self.slots);
        let less = _mm512_add_epi64(self.slots, splat(u64::MAX));
        // The bits 0 before the lowest slot: !bits & !slots & less.
        let zeros = _mm512_ternarylogic_epi64::<0x02>(self.bits, self.slots, less);
        self.slots = _mm512_and_si512(self.slots, less);
        _mm512_mask_cmpeq_epi64_mask(has_slot, _mm512_popcnt_epi64(zeros), self.ones)
    }
}

/// Returns which of eight keys have a candidate in their bucket, one bit each.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi2")]
fn any_in_bucket<const TAG_BITS: usize>([one, other]: &mut [Candidates; 2]) -> u8 {
    // Few keys have more candidates, so that the branch can be predicted.
    let mostly = match TAG_BITS {
        ..8 => 3,
        8..13 => 2,
        _ => 1,
    };
    let mut found = 0;
    for _ in 0..mostly {
        found |= one.test_lowest() | other.test_lowest();
    }
    loop {
        let left = _mm512_or_si512(one.slots, other.slots);
        if _mm512_test_epi64_mask(left, left) == 0 {
            return found;
        }
        found |= one.test_lowest() | other.test_lowest();
    }
}

/// Returns eight words from `first` on.
///
/// # Panics
/// If there are fewer.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn eight(words: &[u64], first: usize) -> __m512i {
    let words = words[first..].first_chunk();
    load_words(words.expect("eight words"))
}
