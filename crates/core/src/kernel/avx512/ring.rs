//! Generations side by side: the bits of a key are made once and compared with each of them.
//!
//! Without a branch: which generation has a key, nothing can foresee.

use std::arch::x86_64::*;
use std::ops::Deref;

use super::super::ring::Ring;
use super::{
    ASKED_FOR_FROM, Blocks, GROUP, Group, Hashes, Line, Marks, Missed, Rule, batch, load_words,
    nothing, words,
};

/// As [`Ready::contains_batch_in_ring`](super::super::Ready::contains_batch_in_ring).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
pub(in super::super) fn contains_batch<const LANES: usize>(
    ring: Ring<LANES, &[Line]>,
    hashes: impl Hashes,
    found: &mut [u64],
) {
    let look = |ring: &mut Ring<LANES, &[Line]>, group: &Group, missed: &mut Missed| {
        for (key, missed) in missed.iter_mut().enumerate() {
            *missed = miss(ring, group.at[key] as usize, &group.marks(key)).0;
        }
    };
    let prepare = |ring: &Ring<_, _>, hashes: &_, group: &mut _| prepare(ring, hashes, group);
    batch(ring, hashes, found, prepare, look, |missed| nothing(missed));
}

/// As [`Ready::insert_batch_in_ring`](super::super::Ready::insert_batch_in_ring).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
pub(in super::super) fn insert_batch<const LANES: usize, const IF_ABSENT: bool>(
    ring: &mut Ring<LANES, &mut [Line]>,
    hashes: impl Hashes,
    new: &mut [u64],
) {
    let look = |ring: &mut &mut Ring<LANES, &mut [Line]>, group: &Group, missed: &mut Missed| {
        for (key, missed) in missed.iter_mut().enumerate() {
            let (at, marks) = (group.at[key] as usize, group.marks(key));
            let (absent, fresh) = miss(ring, at, &marks);
            *missed = absent;
            // A hash that no generation has is not in the newest: it counts as fresh either way.
            let inserted = if IF_ABSENT { absent != 0 } else { fresh };
            ring.fresh += u64::from(inserted);
            let mask = if IF_ABSENT { 0u8.wrapping_sub(u8::from(inserted)) } else { u8::MAX };
            for (line, part) in ring.newest_block(at).iter_mut().zip(0..) {
                let (bits, old) = (marks.bits::<false>(part), load_words(&line.0));
                line.0 = words(_mm512_mask_or_epi64(old, mask, old, bits));
            }
        }
    };
    let prepare = |ring: &&mut Ring<_, _>, hashes: &_, group: &mut _| prepare(ring, hashes, group);
    batch(ring, hashes, new, prepare, look, |missed| !nothing(missed));
}

/// Computes eight keys' marks and places, and asks for their lines if there are so many lines.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn prepare<const LANES: usize, L: Deref<Target = [Line]>>(
    ring: &Ring<LANES, L>,
    hashes: &[u64; GROUP],
    group: &mut Group,
) {
    // As if there were one generation; its lines are not asked for.
    let blocks = Blocks::new(ring.rule, &*ring.lines, 0);
    super::prepare(&blocks, hashes, group, usize::MAX);
    for at in &mut group.at {
        *at = *at / Line::BYTES as u64 * ring.generations as u64;
    }
    // All fields of lanes: bits are masked, whatever the number of probes.
    if ring.rule.probes as usize == LANES {
        group.masks = [u64::MAX; GROUP];
    }
    if ring.lines.len() >= ASKED_FOR_FROM {
        group.at.iter().for_each(|&at| ring.prefetch(at as usize));
    }
}

/// Not zero if every generation misses a bit of the key in its run of lines; and whether the
/// newest does.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn miss<const LANES: usize, L: Deref<Target = [Line]>>(
    ring: &Ring<LANES, L>,
    at: usize,
    marks: &Marks<LANES>,
) -> (u8, bool) {
    let bits = [marks.bits::<false>(0), marks.bits::<false>(Rule::<LANES>::LINES - 1)];
    let (mut all, mut newest) = (1, false);
    for (generation, block) in ring.blocks(at).enumerate() {
        let mut missed = 0;
        for (part, (line, bits)) in block.iter().zip(bits).enumerate() {
            let mask = marks.mask(part);
            missed |= _mm512_mask_testn_epi64_mask(mask, load_words(&line.0), bits);
        }
        all &= u8::from(missed != 0);
        newest |= generation == ring.newest && missed != 0;
    }
    (all, newest)
}
