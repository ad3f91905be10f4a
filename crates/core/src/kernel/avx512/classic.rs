//! The classic layout with AVX-512: eight positions of a key are one vector, and one gather loads
//! their words.
//!
//! Positions are the high words of products by the number of bits, which are fast if it is below
//! 2^32. Larger filters have the portable code, as have batches of queries of filters larger than the
//! cache, which test one bit of many keys in turn. Bits and results are those of the portable code.

use core::arch::x86_64::*;

use super::{load_words, scale_short, splat, words};
use crate::kernel::batch::{GROUP, HashSource, batch, in_groups, join, test_each};
use crate::kernel::classic::{ClassicParams, FIRST_TESTS, LARGE_FILTER, POWERS};
use crate::kernel::primitives::prefetch;
use crate::store::{CacheLine, lines_as_words, lines_as_words_mut};

/// Positions of a vector.
const LANES: usize = 8;

/// A vector of a key's positions.
struct Probes {
    positions: __m512i,
    /// The number of positions of the key from the first of these on.
    left: u32,
}

impl Probes {
    /// Returns a mask of the positions that are the key's.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    fn mask(&self) -> __mmask8 {
        _bzhi_u32(0xff, self.left) as __mmask8
    }

    /// Returns the positions among some of them whose bit is clear.
    ///
    /// # Safety
    /// The words must have all bits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn clear(&self, bits: &[u64], mask: __mmask8) -> __mmask8 {
        let at = _mm512_srli_epi64::<6>(self.positions);
        // SAFETY: the caller guarantees the words of the positions; others are not read.
        let words = unsafe {
            _mm512_mask_i64gather_epi64::<8>(_mm512_setzero_si512(), mask, at, bits.as_ptr().cast())
        };
        _mm512_mask_testn_epi64_mask(mask, _mm512_rorv_epi64(words, self.positions), splat(1))
    }
}

/// Calls a function with each vector of a key's positions, until it returns false.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn for_each(params: ClassicParams, hash: u64, mut f: impl FnMut(Probes) -> bool) -> bool {
    let (hash, bits) = (splat(hash), splat(params.bits));
    let mut left = params.probes;
    for powers in POWERS.as_chunks::<LANES>().0 {
        let positions = scale_short(_mm512_mullo_epi64(hash, load_words(powers)), bits);
        if !f(Probes { positions, left }) {
            return false;
        }
        if left <= LANES as u32 {
            break;
        }
        left -= LANES as u32;
    }
    true
}

/// [`ClassicParams::contains`] for words with all bits.
///
/// # Safety
/// The words must have all bits, fewer than 2^32.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
unsafe fn contains_in<const LARGE: bool>(bits: &[u64], params: ClassicParams, hash: u64) -> bool {
    for_each(params, hash, |probes| {
        let mask = probes.mask();
        // SAFETY: the caller guarantees the words.
        unsafe {
            if LARGE {
                // One of sixteen absent keys has more tests, so their cache lines are not read.
                let first = mask & ((1 << FIRST_TESTS) - 1);
                return probes.clear(bits, first) == 0 && probes.clear(bits, mask & !first) == 0;
            }
            probes.clear(bits, mask) == 0
        }
    })
}

/// [`ClassicParams::insert`] for words with all bits.
///
/// # Safety
/// As of [`contains_in`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
unsafe fn insert_in(bits: &mut [u64], params: ClassicParams, hash: u64) -> bool {
    let mut clear = 0;
    for_each(params, hash, |probes| {
        // SAFETY: the caller guarantees the words.
        clear |= unsafe { probes.clear(bits, probes.mask()) };
        for position in words(probes.positions).into_iter().take(probes.left as usize) {
            // SAFETY: as above.
            unsafe { *bits.get_unchecked_mut((position / 64) as usize) |= 1 << (position % 64) };
        }
        true
    });
    clear != 0
}

/// Same as [`ClassicParams::contains`].
///
/// # Safety
/// There must be fewer than 2^32 bits.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
pub(in super::super) unsafe fn contains(
    params: ClassicParams,
    lines: &[CacheLine],
    hash: u64,
) -> bool {
    params.check(lines);
    // SAFETY: the lines have all bits.
    unsafe {
        if lines.len() < LARGE_FILTER {
            contains_in::<false>(lines_as_words(lines), params, hash)
        } else {
            contains_in::<true>(lines_as_words(lines), params, hash)
        }
    }
}

/// Same as [`ClassicParams::insert`].
///
/// # Safety
/// As of [`contains`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
pub(in super::super) unsafe fn insert(
    params: ClassicParams,
    lines: &mut [CacheLine],
    hash: u64,
) -> bool {
    params.check(lines);
    // SAFETY: the lines have all bits.
    unsafe { insert_in(lines_as_words_mut(lines), params, hash) }
}

/// Same as [`ClassicParams::contains_batch`] for filters that fit a cache.
///
/// # Safety
/// As of [`contains`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
pub(in super::super) unsafe fn contains_small(
    params: ClassicParams,
    lines: &[CacheLine],
    hashes: impl HashSource,
    found: &mut [u64],
) {
    params.check(lines);
    let bits = lines_as_words(lines);
    in_groups(hashes, found, |group| {
        // SAFETY: the lines have all bits.
        test_each(*group, |hash| unsafe { contains_in::<false>(bits, params, hash) })
    });
}

/// Same as [`ClassicParams::insert_batch`].
///
/// # Safety
/// As of [`contains`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
pub(in super::super) unsafe fn insert_batch(
    params: ClassicParams,
    lines: &mut [CacheLine],
    hashes: impl HashSource,
    new: &mut [u64],
) {
    params.check(lines);
    let insert = |bits: &mut [u64], group: &[u64; GROUP]| {
        // SAFETY: the lines have all bits.
        test_each(*group, |hash| unsafe { insert_in(bits, params, hash) })
    };
    let large = lines.len() >= LARGE_FILTER;
    let bits = lines_as_words_mut(lines);
    if !large {
        return in_groups(hashes, new, |group| insert(bits, group));
    }
    let prepare = |bits: &&mut [u64], hashes: &[u64; GROUP], group: &mut [u64; GROUP]| {
        *group = *hashes;
        for &hash in hashes {
            for_each(params, hash, |probes| {
                let positions = words(probes.positions).into_iter().take(probes.left as usize);
                positions.for_each(|position| prefetch(bits, (position / 64) as usize));
                true
            });
        }
    };
    let process = |bits: &mut &mut [u64], group: &[u64; GROUP], new: &mut u8| {
        *new = insert(bits, group);
    };
    batch(bits, hashes, new, prepare, process, join);
}
