//! Windowed filters with AVX-512: the bits of a key are computed once and compared with each
//! generation, without a branch on which generation contains the key.

use core::arch::x86_64::*;
use core::ops::Deref;

use super::{
    Avx512, BlockParams, BlockRange, CacheLine, ClearLanes, GROUP, Group, HashSource,
    PREFETCH_FROM, VectorProbes, all_set, batch, load_words, words,
};
use crate::kernel::dispatch::Windowed;
use crate::kernel::generations::GenerationRing;

impl Windowed for Avx512 {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn contains_batch_in_ring<const LANES: usize>(
        ring: GenerationRing<LANES, &[CacheLine]>,
        hashes: impl HashSource,
        found: &mut [u64],
    ) {
        type Ring<'a, const LANES: usize> = GenerationRing<LANES, &'a [CacheLine]>;
        let process = |ring: &mut Ring<LANES>, group: &Group, clear: &mut ClearLanes| {
            for (key, clear) in clear.iter_mut().enumerate() {
                *clear = clear_in_generations(ring, group.at[key] as usize, &group.probes(key)).0;
            }
        };
        let prepare = |ring: &Ring<LANES>, hashes: &_, group: &mut _| prepare(ring, hashes, group);
        batch(ring, hashes, found, prepare, process, |clear| all_set(clear));
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
    unsafe fn insert_batch_in_ring<const LANES: usize>(
        mut ring: GenerationRing<LANES, &mut [CacheLine]>,
        if_absent: bool,
        hashes: impl HashSource,
        new: &mut [u64],
    ) -> u64 {
        if if_absent {
            insert_batch::<LANES, true>(&mut ring, hashes, new);
        } else {
            insert_batch::<LANES, false>(&mut ring, hashes, new);
        }
        ring.new_in_newest
    }
}

/// Inserts many hashes in turn.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn insert_batch<const LANES: usize, const IF_ABSENT: bool>(
    ring: &mut GenerationRing<LANES, &mut [CacheLine]>,
    hashes: impl HashSource,
    new: &mut [u64],
) {
    let process = |ring: &mut &mut GenerationRing<LANES, &mut [CacheLine]>,
                   group: &Group,
                   clear: &mut ClearLanes| {
        for (key, clear) in clear.iter_mut().enumerate() {
            let (at, key_probes) = (group.at[key] as usize, group.probes(key));
            let (absent, new) = clear_in_generations(ring, at, &key_probes);
            *clear = absent;
            // A hash that no generation contains is new to the newest in either case.
            let inserted = if IF_ABSENT { absent != 0 } else { new };
            ring.new_in_newest += u64::from(inserted);
            let mask = if IF_ABSENT { 0u8.wrapping_sub(u8::from(inserted)) } else { u8::MAX };
            for (line, part) in ring.newest_block(at).iter_mut().zip(0..) {
                let (bits, old) = (key_probes.bits::<false>(part), load_words(&line.0));
                line.0 = words(_mm512_mask_or_epi64(old, mask, old, bits));
            }
        }
    };
    let prepare =
        |ring: &&mut GenerationRing<_, _>, hashes: &_, group: &mut _| prepare(ring, hashes, group);
    batch(ring, hashes, new, prepare, process, |clear| !all_set(clear));
}

/// Prepares eight keys, and prefetches their lines if the filter is large.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn prepare<const LANES: usize, L: Deref<Target = [CacheLine]>>(
    ring: &GenerationRing<LANES, L>,
    hashes: &[u64; GROUP],
    group: &mut Group,
) {
    // As for one generation, without prefetching its lines.
    let blocks = BlockRange::new(ring.params, &*ring.lines, 0);
    super::prepare(&blocks, hashes, group, usize::MAX);
    for at in &mut group.at {
        *at = *at / CacheLine::BYTES as u64 * ring.generations as u64;
    }
    // `clear_lanes` uses the mask with any number of probes.
    if ring.params.probes as usize == LANES {
        group.masks = [u64::MAX; GROUP];
    }
    if ring.lines.len() >= PREFETCH_FROM {
        group.at.iter().for_each(|&at| ring.prefetch(at as usize));
    }
}

/// Returns a value that is not zero if every generation has a clear bit of the key, and whether the
/// newest has one.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn clear_in_generations<const LANES: usize, L: Deref<Target = [CacheLine]>>(
    ring: &GenerationRing<LANES, L>,
    at: usize,
    key_probes: &VectorProbes<LANES>,
) -> (u8, bool) {
    let bits =
        [key_probes.bits::<false>(0), key_probes.bits::<false>(BlockParams::<LANES>::LINES - 1)];
    let (mut all, mut newest) = (1, false);
    for (generation, block) in ring.blocks(at).enumerate() {
        let mut clear = 0;
        for (part, (line, bits)) in block.iter().zip(bits).enumerate() {
            let mask = key_probes.mask(part);
            clear |= _mm512_mask_testn_epi64_mask(mask, load_words(&line.0), bits);
        }
        all &= u8::from(clear != 0);
        newest |= generation == ring.newest && clear != 0;
    }
    (all, newest)
}
