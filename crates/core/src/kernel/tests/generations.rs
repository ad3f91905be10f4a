//! Compares the generations of every kernel with separate filters of the portable kernel.

use petal_testkit::rng::Rng;

use super::super::Kernel;
use super::super::blocked::BlockParams;
use super::super::generations::GenerationRing;
use super::{batches, hash, keys, words, zeroed};
use crate::kernel::UnhashedKeys;
use crate::store::CacheLine;

/// Runs a batch on separate filters. Returns found, new, and the number of hashes new to the newest.
fn model<const LANES: usize>(
    params: BlockParams<LANES>,
    generations: &mut [Vec<CacheLine>],
    newest: usize,
    batch: &[u64],
    if_absent: bool,
) -> (Vec<u64>, Vec<u64>, u64) {
    let portable = Kernel::Portable.handle().unwrap();
    let any = |generations: &[Vec<CacheLine>], hash| {
        generations.iter().any(|lines| portable.contains(params, lines, hash))
    };
    let found: Vec<bool> = batch.iter().map(|&hash| any(generations, hash)).collect();
    let mut new_in_newest = 0;
    let new: Vec<bool> = batch
        .iter()
        .map(|&hash| {
            let new = !any(generations, hash);
            if new || !if_absent {
                new_in_newest += u64::from(portable.insert(params, &mut generations[newest], hash));
            }
            new
        })
        .collect();
    (words(&found), words(&new), new_in_newest)
}

fn interleaved<const LANES: usize>(generations: &[Vec<CacheLine>]) -> Vec<CacheLine> {
    let block = LANES / 8;
    let at = |at| generations.iter().flat_map(move |lines| &lines[at..at + block]);
    (0..generations[0].len()).step_by(block).flat_map(at).copied().collect()
}

fn check<const LANES: usize>(params: BlockParams<LANES>, count: usize, seed: u64) {
    for kernel in Kernel::ALL.into_iter().filter_map(Kernel::handle) {
        let mut generations = vec![zeroed(params); count];
        let mut lines = interleaved::<LANES>(&generations);
        let mut singly = lines.clone();
        for (round, batch) in batches(seed).into_iter().enumerate() {
            let (newest, if_absent) = (round % count, round % 3 == 1);
            let generations_before = generations.clone();
            let (found, new, new_in_newest) =
                model(params, &mut generations, newest, &batch, if_absent);
            let mut results = vec![0; batch.len().div_ceil(64)];
            let ring = GenerationRing::new(kernel, params, count, newest, &lines[..]);
            kernel.contains_batch_in_ring(ring, &batch[..], &mut results);
            assert_eq!(results, found, "{kernel:?}");
            // Live generations only.
            for live in [0, 1 << newest, 0b1010_1010_1010 & ((1 << count) - 1)] {
                let some: Vec<_> = (0..count).filter(|at| live >> at & 1 == 1).collect();
                let any = |hash| {
                    some.iter().any(|&at| kernel.contains(params, &generations_before[at], hash))
                };
                let expected: Vec<bool> = batch.iter().map(|&hash| any(hash)).collect();
                let ring = GenerationRing::new(kernel, params, count, newest, &lines[..]);
                ring.live_contain_batch(live, &batch[..], &mut results);
                assert_eq!(results, words(&expected), "{kernel:?}");
            }
            // Single keys.
            let mut one_by_one = 0;
            for (at, &hash) in batch.iter().enumerate() {
                let ring_mut = GenerationRing::new(kernel, params, count, newest, &mut singly[..]);
                let (result, more) = ring_mut.insert(if_absent, hash);
                assert_eq!(result, new[at / 64] >> (at % 64) & 1 == 1, "{kernel:?}");
                one_by_one += more;
                let ring = GenerationRing::new(kernel, params, count, newest, &singly[..]);
                assert!(ring.contains(hash));
                assert!(ring.newest_contains(hash) || if_absent && !result);
            }
            // Hashes and unhashed keys in round.
            let ring_mut = GenerationRing::new(kernel, params, count, newest, &mut lines[..]);
            let words = &keys(&batch);
            let (hashes, words) = (&batch[..], UnhashedKeys { words, hash });
            let batch_new_in_newest = if round % 2 == 0 {
                kernel.insert_batch_in_ring(ring_mut, if_absent, hashes, &mut results)
            } else {
                kernel.insert_batch_in_ring(ring_mut, if_absent, words, &mut results)
            };
            assert_eq!(
                (results, batch_new_in_newest, one_by_one),
                (new, new_in_newest, new_in_newest),
                "{kernel:?}"
            );
            let expected = interleaved::<LANES>(&generations);
            assert!(lines == expected && singly == expected, "{kernel:?}");
        }
    }
}

#[test]
fn every_kernel_equals_separate_filters() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let blocks = 1 + rng.below(40) as u64;
        let count = 2 + rng.below(11);
        for probes in [1 + rng.below(8) as u32, 8] {
            check(BlockParams::<8> { blocks, probes }, count, seed);
            check(BlockParams::<16> { blocks, probes: probes * 2 }, count, seed);
        }
    }
    // Large enough for prefetching.
    check(BlockParams::<8> { blocks: 50_000, probes: 5 }, 3, 1);
    check(BlockParams::<16> { blocks: 30_000, probes: 16 }, 3, 2);
}
