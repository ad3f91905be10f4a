//! The blocked layout with AVX-512: a line, eight lanes, is one vector.
//!
//! Per line of a key: a shift brings each lane's field to the bottom, a one is rotated by it
//! (which takes it modulo 64 for free), and a test says which lanes miss their bit. An insertion
//! stores the line with the bits. The lanes that a key leaves alone are masked out; where a key
//! marks all lanes (`ALL`) there is no mask.
//!
//! Bits and answers are those of [`Rule`]; the tests of this room hold it to that.

use std::arch::x86_64::*;

use super::blocked::{Blocks, MIX_HIGH, MIX_LOW, Rule};
use super::{AHEAD, batch};
use crate::answers::Answers;
use crate::store::Line;

/// As [`Rule::insert_batch`].
#[target_feature(enable = "avx512f,avx512dq,bmi2")]
pub(super) fn insert_batch<const LANES: usize>(
    rule: &Rule<LANES>,
    lines: &mut [Line],
    hashes: &[u64],
    new: &mut Answers,
) {
    let blocks = Blocks::new(rule, lines);
    let marker = Marker::<LANES>::new(rule.probes);
    if rule.probes as usize == LANES {
        batch(blocks, hashes, AHEAD, new, Blocks::prefetch, |blocks, hash| {
            marker.insert::<true>(blocks.of_mut(hash), hash)
        });
    } else {
        batch(blocks, hashes, AHEAD, new, Blocks::prefetch, |blocks, hash| {
            marker.insert::<false>(blocks.of_mut(hash), hash)
        });
    }
}

/// As [`Rule::contains_batch`].
#[target_feature(enable = "avx512f,avx512dq,bmi2")]
pub(super) fn contains_batch<const LANES: usize>(
    rule: &Rule<LANES>,
    lines: &[Line],
    hashes: &[u64],
    found: &mut Answers,
) {
    let blocks = Blocks::new(rule, lines);
    let marker = Marker::<LANES>::new(rule.probes);
    if rule.probes as usize == LANES {
        batch(blocks, hashes, AHEAD, found, Blocks::prefetch, |blocks, hash| {
            marker.contains::<true>(blocks.of(hash), hash)
        });
    } else {
        batch(blocks, hashes, AHEAD, found, Blocks::prefetch, |blocks, hash| {
            marker.contains::<false>(blocks.of(hash), hash)
        });
    }
}

/// For each start, a bit for each lane that is marked: a look into a table is faster than a
/// rotation of a mask.
struct Marker<const LANES: usize> {
    masks: [u16; LANES],
}

impl<const LANES: usize> Marker<LANES> {
    fn new(probes: u32) -> Self {
        let window = (1_u32 << probes) - 1;
        let mask = |start| (window << start | window << start >> LANES) as u16;
        Self { masks: std::array::from_fn(mask) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,bmi2")]
    fn insert<const ALL: bool>(&self, block: &mut [Line], hash: u64) -> bool {
        let mut clear = 0;
        for (at, line) in block.iter_mut().enumerate() {
            let (words, (mask, bits)) = (load(line), self.marks::<ALL>(at, hash));
            clear |= _mm512_mask_testn_epi64_mask(mask, words, bits);
            store(line, _mm512_or_si512(words, bits));
        }
        clear != 0
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,bmi2")]
    fn contains<const ALL: bool>(&self, block: &[Line], hash: u64) -> bool {
        let mut clear = 0;
        for (at, line) in block.iter().enumerate() {
            let (mask, bits) = self.marks::<ALL>(at, hash);
            clear |= _mm512_mask_testn_epi64_mask(mask, load(line), bits);
        }
        clear == 0
    }

    /// The lanes that a hash marks in a line of its block, and their bits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,bmi2")]
    fn marks<const ALL: bool>(&self, line: usize, hash: u64) -> (u8, __m512i) {
        let low = hash.wrapping_mul(MIX_LOW);
        let mask: u16 = if ALL { !0 } else { self.masks[(low >> 12) as usize % LANES] };
        let mask = (mask >> (8 * line)) as u8;
        let fields = if line == 0 { low } else { hash.wrapping_mul(MIX_HIGH) };
        let shifts = _mm512_setr_epi64(16, 22, 28, 34, 40, 46, 52, 58);
        let fields = _mm512_srlv_epi64(_mm512_set1_epi64(fields as i64), shifts);
        (mask, _mm512_maskz_rolv_epi64(mask, _mm512_set1_epi64(1), fields))
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq,bmi2")]
fn load(line: &Line) -> __m512i {
    // SAFETY: a line is 64 bytes, aligned to 64.
    unsafe { _mm512_load_si512(std::ptr::from_ref(line).cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq,bmi2")]
fn store(line: &mut Line, words: __m512i) {
    // SAFETY: as in `load`, and borrowed exclusively.
    unsafe { _mm512_store_si512(std::ptr::from_mut(line).cast(), words) }
}
