//! The classic layout with AVX-512: eight positions of a key are one vector, and one gather loads
//! their words.
//!
//! Inserts use the portable code, because a gather waits for the stores of earlier keys. So do filters
//! of 2^32 bits and more, whose products are slower, and batches in filters of 8 MiB and more, which
//! test one bit of many keys in turn. Results are those of the portable code.

use core::arch::x86_64::*;

use super::{Avx512, load_words, scale_short, splat};
use crate::kernel::batch::{HashSource, in_groups, test_each};
use crate::kernel::classic::{ClassicParams, FIRST_TESTS, LARGE_FILTER, POWERS};
use crate::kernel::dispatch::Classic;
use crate::store::{CacheLine, lines_as_words};

/// Positions of a vector.
const LANES: usize = 8;

/// Returns the selected lanes whose bit is clear.
///
/// # Safety
/// The words must have the bits at the selected positions.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
unsafe fn clear_lanes(words: &[u64], positions: __m512i, selected: __mmask8) -> __mmask8 {
    let at = _mm512_srli_epi64::<6>(positions);
    let zero = _mm512_setzero_si512();
    // SAFETY: the caller guarantees the words of the selected positions; others are not read.
    let words =
        unsafe { _mm512_mask_i64gather_epi64::<8>(zero, selected, at, words.as_ptr().cast()) };
    _mm512_mask_testn_epi64_mask(selected, _mm512_rorv_epi64(words, positions), splat(1))
}

/// Returns whether all bits of a hash are set.
///
/// # Safety
/// The words must have all bits, fewer than 2^32.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
unsafe fn contains_in<const LARGE: bool>(words: &[u64], params: ClassicParams, hash: u64) -> bool {
    let (hash, bits) = (splat(hash), splat(params.bits));
    let mut left = params.probes;
    for powers in POWERS.as_chunks::<LANES>().0 {
        let positions = scale_short(_mm512_mullo_epi64(hash, load_words(powers)), bits);
        let lanes = _bzhi_u32(0xff, left) as __mmask8;
        // The cache lines of the other lanes are not read for fifteen of sixteen absent keys.
        let first = if LARGE { lanes & ((1 << FIRST_TESTS) - 1) } else { lanes };
        // SAFETY: the caller guarantees the words.
        unsafe {
            if clear_lanes(words, positions, first) != 0
                || LARGE && clear_lanes(words, positions, lanes & !first) != 0
            {
                return false;
            }
        }
        if left <= LANES as u32 {
            break;
        }
        left -= LANES as u32;
    }
    true
}

/// A call, because otherwise all queries would save the registers for this code.
#[cold]
#[inline(never)]
fn contains_in_huge(params: ClassicParams, lines: &[CacheLine], hash: u64) -> bool {
    params.contains(lines, hash)
}

impl Classic for Avx512 {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn classic_contains(params: ClassicParams, lines: &[CacheLine], hash: u64) -> bool {
        params.check(lines);
        let words = lines_as_words(lines);
        // SAFETY: the lines have all bits, fewer than 2^32.
        unsafe {
            if lines.len() < LARGE_FILTER {
                contains_in::<false>(words, params, hash)
            } else if params.bits <= u32::MAX.into() {
                contains_in::<true>(words, params, hash)
            } else {
                contains_in_huge(params, lines, hash)
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn classic_contains_batch(
        params: ClassicParams,
        lines: &[CacheLine],
        hashes: impl HashSource,
        found: &mut [u64],
    ) {
        if lines.len() >= LARGE_FILTER {
            return params.contains_large(lines, hashes, found);
        }
        params.check(lines);
        let words = lines_as_words(lines);
        in_groups(hashes, found, |group| {
            // SAFETY: the lines have all bits, fewer than 2^32.
            test_each(*group, |hash| unsafe { contains_in::<false>(words, params, hash) })
        });
    }
}
