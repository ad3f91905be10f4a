//! Binary fuse filters with AVX2: the positions of the slots of four keys at a time.
//!
//! Slots are loaded one by one, because gathers are slower than loads on many processors. There is no
//! prefetching: 32 prefetches in a row are slower than the portable code, which computes in between.
//! Results are those of [`Fuse`], which the tests check.

use core::arch::x86_64::*;

use super::super::batch::{GROUP, in_groups, test_each};
use super::super::fuse::{Fuse, WAYS, fuse_hash};

/// Keys whose positions are computed together.
const LANES: usize = 4;
const SLOTS: usize = WAYS as usize;

/// The positions of the slots of a group of keys, and their fingerprints.
#[derive(Default)]
struct PreparedKeys {
    /// The byte in which a slot begins, and the bits before it in that byte.
    bytes: [[u64; GROUP]; SLOTS],
    shifts: [[u64; GROUP]; SLOTS],
    fingerprints: [u64; GROUP],
    /// The bits that are compared.
    masks: [u64; GROUP],
}

/// Same as [`Fuse::batch`], for filters with [`Fuse::pays_for_vectors`].
#[target_feature(enable = "avx2,bmi2")]
pub(in super::super) fn contains_batch(fuse: Fuse<'_>, hashes: &[u64], found: &mut [u64]) {
    assert!(fuse.pays_for_vectors(), "slots of 32 bits");
    // A slot and the bits before it in its first byte.
    if fuse.params.bits + 1 + 7 <= u32::BITS {
        contains_batch_with(fuse, hashes, found, test::<u32>);
    } else {
        contains_batch_with(fuse, hashes, found, test::<u64>);
    }
}

#[inline]
#[target_feature(enable = "avx2,bmi2")]
fn contains_batch_with(
    fuse: Fuse<'_>,
    hashes: &[u64],
    found: &mut [u64],
    test: impl Fn(Fuse<'_>, &PreparedKeys) -> u8,
) {
    let mut prepared = PreparedKeys::default();
    in_groups(hashes, found, |group| {
        prepare(fuse, group, &mut prepared);
        test(fuse, &prepared)
    });
}

/// Computes the positions of the slots of a group of keys.
#[inline]
#[target_feature(enable = "avx2,bmi2")]
fn prepare(fuse: Fuse<'_>, hashes: &[u64; GROUP], prepared: &mut PreparedKeys) {
    let params = fuse.params;
    let all = |number: u64| _mm256_set1_epi64x(number as i64);
    let segment = 1 << params.log_segment;
    let (starts, in_segment) = (all(params.starts), all(segment - 1));
    let (bits, wide_slots) = (all(params.bits.into()), all(params.wide_slots));
    let wide_starts = all(params.wide_starts);
    let (narrow_mask, wide_bit) = (all((1 << params.bits) - 1), all(1 << params.bits));
    let log_shards = _mm_cvtsi32_si128(params.log_shards as i32);
    let after_shard = _mm_cvtsi32_si128(63 - params.log_shards as i32);
    let stride = all(params.stride);
    for first in (0..GROUP).step_by(LANES) {
        // SAFETY: four words of an array of eight, from 0 or 4 on.
        let store = |words: &mut [u64; GROUP], vector| unsafe {
            _mm256_storeu_si256(words.as_mut_ptr().add(first).cast(), vector);
        };
        // In registers: reading a vector is slow while the stores of its words are in flight.
        let hash = |lane: usize| fuse_hash(hashes[first + lane]);
        let hashed = [hash(0), hash(1), hash(2), hash(3)];
        // SAFETY: the shard of a hash exists.
        let product = |g: u64| g.wrapping_mul(unsafe { fuse.multiplier(params.shard(g)) });
        let vector = |[first, second, third, fourth]: [u64; LANES]| {
            _mm256_set_epi64x(fourth as i64, third as i64, second as i64, first as i64)
        };
        let (g, e) = (vector(hashed), vector(hashed.map(product)));
        let shard = _mm256_srl_epi64(_mm256_srli_epi64::<1>(g), after_shard);
        let shard = _mm256_mul_epu32(shard, stride);
        let rest = _mm256_srli_epi64::<32>(_mm256_sll_epi64(g, log_shards));
        let start = _mm256_srli_epi64::<32>(_mm256_mul_epu32(rest, starts));
        let start = _mm256_add_epi64(shard, start);
        let base = _mm256_andnot_si256(in_segment, start);
        let other = |number: u64, e| {
            let base = _mm256_add_epi64(base, all(number * segment));
            _mm256_add_epi64(base, _mm256_and_si256(e, in_segment))
        };
        let slots = [
            start,
            other(1, _mm256_srli_epi64::<16>(e)),
            other(2, _mm256_srli_epi64::<32>(e)),
            other(3, _mm256_srli_epi64::<48>(e)),
        ];
        for (way, slot) in slots.into_iter().enumerate() {
            // Slots have 32 bits, so the other halves are 0 in the minimum, too.
            let wide = _mm256_min_epu32(slot, wide_slots);
            let bit = _mm256_add_epi64(_mm256_mul_epu32(slot, bits), wide);
            store(&mut prepared.bytes[way], _mm256_srli_epi64::<3>(bit));
            store(&mut prepared.shifts[way], _mm256_and_si256(bit, all(7)));
        }
        let is_wide = _mm256_cmpgt_epi64(wide_starts, start);
        let mask = _mm256_or_si256(narrow_mask, _mm256_and_si256(is_wide, wide_bit));
        store(&mut prepared.masks, mask);
        store(&mut prepared.fingerprints, _mm256_xor_si256(g, _mm256_srli_epi64::<32>(e)));
    }
}

/// A word or half word that contains a slot.
trait SlotWord: Copy + Into<u64> {}
impl SlotWord for u32 {}
impl SlotWord for u64 {}

/// Returns a bit for each key of a group: whether the filter contains it.
#[inline(always)]
fn test<W: SlotWord>(fuse: Fuse<'_>, prepared: &PreparedKeys) -> u8 {
    test_each(0..GROUP, |key| {
        let mut sum = prepared.fingerprints[key];
        for way in 0..SLOTS {
            let (byte, shift) = (prepared.bytes[way][key], prepared.shifts[way][key]);
            // SAFETY: the slots of a key exist, as in `Fuse::contains`, and at least one word
            // follows.
            let word =
                unsafe { fuse.bytes.as_ptr().add(byte as usize).cast::<W>().read_unaligned() };
            sum ^= word.into() >> (shift % 64);
        }
        sum & prepared.masks[key] == 0
    })
}
