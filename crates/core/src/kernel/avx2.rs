//! The blocked layout with AVX2: half a line, four lanes, is one vector.
//!
//! Per half of a key's lines: a shift brings each lane's field to the bottom, a one is shifted by
//! it to become the lane's bit, and what the words miss of the bits is gathered over the block
//! and tested once. An insertion stores the words with the bits. A lane that a key leaves alone
//! has a zero in place of its one; where a key marks all lanes (`ALL`) they are all ones.
//!
//! Bits and answers are those of [`Rule`]; the tests of this room hold it to that.

use std::arch::x86_64::*;

use super::batch::Hashes;
use super::blocked::{Blocks, MIX_HIGH, MIX_LOW, Rule};
use crate::store::Line;

/// As [`Rule::insert`].
#[target_feature(enable = "avx2")]
pub(super) fn insert<const LANES: usize>(rule: Rule<LANES>, block: &mut [Line], hash: u64) -> bool {
    Marker::<LANES>::new(rule.probes).insert::<false>(block, hash)
}

/// As [`Rule::contains`].
#[target_feature(enable = "avx2")]
pub(super) fn contains<const LANES: usize>(rule: Rule<LANES>, block: &[Line], hash: u64) -> bool {
    Marker::<LANES>::new(rule.probes).contains::<false>(block, hash)
}

/// As [`Blocks::insert_batch`].
#[target_feature(enable = "avx2")]
pub(super) fn insert_batch<const LANES: usize>(
    blocks: Blocks<LANES, &mut [Line]>,
    hashes: impl Hashes,
    new: &mut [u64],
) {
    let marker = Marker::<LANES>::new(blocks.rule.probes);
    if marker.all() {
        blocks.insert_batch(hashes, new, |block, hash| marker.insert::<true>(block, hash));
    } else {
        blocks.insert_batch(hashes, new, |block, hash| marker.insert::<false>(block, hash));
    }
}

/// As [`Blocks::contains_batch`].
#[target_feature(enable = "avx2")]
pub(super) fn contains_batch<const LANES: usize>(
    blocks: Blocks<LANES, &[Line]>,
    hashes: impl Hashes,
    found: &mut [u64],
) {
    let marker = Marker::<LANES>::new(blocks.rule.probes);
    if marker.all() {
        blocks.contains_batch(hashes, found, |block, hash| marker.contains::<true>(block, hash));
    } else {
        blocks.contains_batch(hashes, found, |block, hash| marker.contains::<false>(block, hash));
    }
}

/// Marks keys in their blocks.
struct Marker<const LANES: usize> {
    probes: u32,
}

impl<const LANES: usize> Marker<LANES> {
    fn new(probes: u32) -> Self {
        Self { probes }
    }

    /// Whether all lanes are marked.
    fn all(&self) -> bool {
        self.probes as usize == LANES
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn insert<const ALL: bool>(&self, block: &mut [Line], hash: u64) -> bool {
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
    fn contains<const ALL: bool>(&self, block: &[Line], hash: u64) -> bool {
        let mut clear = _mm256_setzero_si256();
        for (at, line) in block.iter().enumerate() {
            for (half, &words) in halves(line).iter().enumerate() {
                let bits = self.bits::<ALL>(2 * at + half, hash);
                clear = _mm256_or_si256(clear, _mm256_andnot_si256(words, bits));
            }
        }
        _mm256_testz_si256(clear, clear) == 1
    }

    /// The bits of a hash in a half line of its block.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn bits<const ALL: bool>(&self, half: usize, hash: u64) -> __m256i {
        let low = hash.wrapping_mul(MIX_LOW);
        let fields = if half < 2 { low } else { hash.wrapping_mul(MIX_HIGH) };
        let shifts = [_mm256_setr_epi64x(16, 22, 28, 34), _mm256_setr_epi64x(40, 46, 52, 58)];
        let fields = _mm256_srlv_epi64(_mm256_set1_epi64x(fields as i64), shifts[half % 2]);
        let ones = if ALL {
            _mm256_set1_epi64x(1)
        } else {
            let ones = &Rule::<LANES>::ONES.of(self.probes, low >> 12)[4 * half..4 * half + 4];
            // SAFETY: four words, and the load needs no alignment.
            unsafe { _mm256_loadu_si256(ones.as_ptr().cast()) }
        };
        _mm256_sllv_epi64(ones, _mm256_and_si256(fields, _mm256_set1_epi64x(63)))
    }
}

#[inline]
fn halves(line: &Line) -> &[__m256i; 2] {
    // SAFETY: a line is two vectors of 32 bytes, aligned to 64; any bits are a vector.
    unsafe { &*std::ptr::from_ref(line).cast() }
}

#[inline]
fn halves_mut(line: &mut Line) -> &mut [__m256i; 2] {
    // SAFETY: as in `halves`; any bits are a line, too.
    unsafe { &mut *std::ptr::from_mut(line).cast() }
}
