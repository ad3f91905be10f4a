//! The blocked layout with NEON: a quarter of a line, two lanes, is one vector.
//!
//! Per quarter of a key's lines: a shift brings each lane's field to the bottom (to the left by
//! less than nothing is to the right), a one is shifted by it to become the lane's bit, and what
//! the words miss of the bits is gathered over the block and tested once. An insertion stores the
//! words with the bits. A lane that a key leaves alone has a zero in place of its one; where a
//! key marks all lanes (`ALL`) they are all ones.
//!
//! Words lie in memory from the low byte up, so this is for little-endian machines only.
//!
//! Bits and answers are those of [`Rule`]; the tests of this room hold it to that. Not measured:
//! so far it has run under an emulator only.

use std::arch::aarch64::*;

use super::batch::Hashes;
use super::blocked::{Blocks, MIX_HIGH, MIX_LOW, Rule};
use crate::store::Line;

/// As [`Rule::insert`].
#[target_feature(enable = "neon")]
pub(super) fn insert<const LANES: usize>(rule: Rule<LANES>, block: &mut [Line], hash: u64) -> bool {
    Marker::<LANES>::new(rule.probes).insert::<false>(block, hash)
}

/// As [`Rule::contains`].
#[target_feature(enable = "neon")]
pub(super) fn contains<const LANES: usize>(rule: Rule<LANES>, block: &[Line], hash: u64) -> bool {
    Marker::<LANES>::new(rule.probes).contains::<false>(block, hash)
}

/// As [`Blocks::insert_batch`].
#[target_feature(enable = "neon")]
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
#[target_feature(enable = "neon")]
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
    #[target_feature(enable = "neon")]
    fn insert<const ALL: bool>(&self, block: &mut [Line], hash: u64) -> bool {
        let mut clear = vdupq_n_u64(0);
        for (at, line) in block.iter_mut().enumerate() {
            for (quarter, words_at) in quarters_mut(line).iter_mut().enumerate() {
                let bits = self.bits::<ALL>(4 * at + quarter, hash);
                clear = vorrq_u64(clear, vbicq_u64(bits, *words_at));
                *words_at = vorrq_u64(*words_at, bits);
            }
        }
        any(clear)
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn contains<const ALL: bool>(&self, block: &[Line], hash: u64) -> bool {
        let mut clear = vdupq_n_u64(0);
        for (at, line) in block.iter().enumerate() {
            for (quarter, &words) in quarters(line).iter().enumerate() {
                let bits = self.bits::<ALL>(4 * at + quarter, hash);
                clear = vorrq_u64(clear, vbicq_u64(bits, words));
            }
        }
        !any(clear)
    }

    /// The bits of a hash in a quarter line of its block.
    #[inline]
    #[target_feature(enable = "neon")]
    fn bits<const ALL: bool>(&self, quarter: usize, hash: u64) -> uint64x2_t {
        let low = hash.wrapping_mul(MIX_LOW);
        let fields = if quarter < 4 { low } else { hash.wrapping_mul(MIX_HIGH) };
        let shift = -16 - 12 * (quarter % 4) as i64;
        let shifts = vcombine_s64(vdup_n_s64(shift), vdup_n_s64(shift - 6));
        let fields = vandq_u64(vshlq_u64(vdupq_n_u64(fields), shifts), vdupq_n_u64(63));
        let ones = if ALL {
            vdupq_n_u64(1)
        } else {
            let ones = Rule::<LANES>::ONES.of(self.probes, low >> 12);
            let ones = &ones[2 * quarter..2 * quarter + 2];
            // SAFETY: two words.
            unsafe { vld1q_u64(ones.as_ptr()) }
        };
        vshlq_u64(ones, vreinterpretq_s64_u64(fields))
    }
}

/// Whether any bit is set.
#[inline]
#[target_feature(enable = "neon")]
fn any(bits: uint64x2_t) -> bool {
    vmaxvq_u32(vreinterpretq_u32_u64(bits)) != 0
}

#[inline]
fn quarters(line: &Line) -> &[uint64x2_t; 4] {
    // SAFETY: a line is four vectors of 16 bytes, aligned to 64; any bits are a vector.
    unsafe { &*std::ptr::from_ref(line).cast() }
}

#[inline]
fn quarters_mut(line: &mut Line) -> &mut [uint64x2_t; 4] {
    // SAFETY: as in `quarters`; any bits are a line, too.
    unsafe { &mut *std::ptr::from_mut(line).cast() }
}
