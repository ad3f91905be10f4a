//! Generations side by side: every kernel equals a row of plain filters with the portable one.

use petal_testkit::rng::Rng;

use super::super::Kernel;
use super::super::blocked::Rule;
use super::super::ring::Ring;
use super::{batches, hash, keys, words, zeroed};
use crate::kernel::Keys;
use crate::store::Line;

/// Plain filters, of which a key is in some, and what goes to which.
fn model<const LANES: usize>(
    rule: Rule<LANES>,
    generations: &mut [Vec<Line>],
    newest: usize,
    batch: &[u64],
    if_absent: bool,
) -> (Vec<u64>, Vec<u64>, u64) {
    let portable = Kernel::Portable.ready().unwrap();
    let any = |generations: &[Vec<Line>], hash| {
        generations.iter().any(|lines| portable.contains(rule, lines, hash))
    };
    let found: Vec<bool> = batch.iter().map(|&hash| any(generations, hash)).collect();
    let mut fresh = 0;
    let new: Vec<bool> = batch
        .iter()
        .map(|&hash| {
            let new = !any(generations, hash);
            if new || !if_absent {
                fresh += u64::from(portable.insert(rule, &mut generations[newest], hash));
            }
            new
        })
        .collect();
    (words(&found), words(&new), fresh)
}

fn interleaved<const LANES: usize>(generations: &[Vec<Line>]) -> Vec<Line> {
    let block = LANES / 8;
    let at = |at| generations.iter().flat_map(move |lines| &lines[at..at + block]);
    (0..generations[0].len()).step_by(block).flat_map(at).copied().collect()
}

fn check<const LANES: usize>(rule: Rule<LANES>, many: usize, seed: u64) {
    for kernel in Kernel::ALL.into_iter().filter_map(Kernel::ready) {
        let mut generations = vec![zeroed(rule); many];
        let mut lines = interleaved::<LANES>(&generations);
        let mut singly = lines.clone();
        for (turn, batch) in batches(seed).into_iter().enumerate() {
            let (newest, if_absent) = (turn % many, turn % 3 == 1);
            let generations_before = generations.clone();
            let (found, new, fresh) = model(rule, &mut generations, newest, &batch, if_absent);
            let mut answers = vec![0; batch.len().div_ceil(64)];
            let asked = Ring::new(rule, many, newest, &lines[..]);
            kernel.contains_batch_in_ring(asked, &batch[..], &mut answers);
            assert_eq!(answers, found, "{kernel:?}");
            // Of some generations only.
            for live in [0, 1 << newest, 0b1010_1010_1010 & ((1 << many) - 1)] {
                let some: Vec<_> = (0..many).filter(|at| live >> at & 1 == 1).collect();
                let any = |hash| {
                    some.iter().any(|&at| kernel.contains(rule, &generations_before[at], hash))
                };
                let expected: Vec<bool> = batch.iter().map(|&hash| any(hash)).collect();
                let asked = Ring::new(rule, many, newest, &lines[..]);
                kernel.live_contain_batch(asked, live, &batch[..], &mut answers);
                assert_eq!(answers, words(&expected), "{kernel:?}");
            }
            // Key by key.
            let mut one_by_one = 0;
            for (at, &hash) in batch.iter().enumerate() {
                let changed = Ring::new(rule, many, newest, &mut singly[..]);
                let (said, more) = match if_absent {
                    true => changed.insert_if_absent(kernel, hash),
                    false => changed.insert(kernel, hash),
                };
                assert_eq!(said, new[at / 64] >> (at % 64) & 1 == 1, "{kernel:?}");
                one_by_one += more;
                let asked = Ring::new(rule, many, newest, &singly[..]);
                assert!(asked.contains(kernel, hash));
                assert!(asked.newest_contains(kernel, hash) || if_absent && !said);
            }
            // Words that are hashed on the way, every other time.
            let changed = Ring::new(rule, many, newest, &mut lines[..]);
            let words = &keys(&batch);
            let (hashes, words) = (&batch[..], Keys { words, hash });
            let batch_fresh = match (turn % 2 == 0, if_absent) {
                (true, false) => {
                    kernel.insert_batch_in_ring::<_, false>(changed, hashes, &mut answers)
                }
                (true, true) => {
                    kernel.insert_batch_in_ring::<_, true>(changed, hashes, &mut answers)
                }
                (false, false) => {
                    kernel.insert_batch_in_ring::<_, false>(changed, words, &mut answers)
                }
                (false, true) => {
                    kernel.insert_batch_in_ring::<_, true>(changed, words, &mut answers)
                }
            };
            assert_eq!((answers, batch_fresh, one_by_one), (new, fresh, fresh), "{kernel:?}");
            let expected = interleaved::<LANES>(&generations);
            assert!(lines == expected && singly == expected, "{kernel:?}");
        }
    }
}

#[test]
fn every_kernel_equals_a_row_of_filters() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let blocks = 1 + rng.below(40) as u64;
        let many = 2 + rng.below(11);
        for probes in [1 + rng.below(8) as u32, 8] {
            check(Rule::<8> { blocks, probes }, many, seed);
            check(Rule::<16> { blocks, probes: probes * 2 }, many, seed);
        }
    }
    // So many that lines are asked for.
    check(Rule::<8> { blocks: 50_000, probes: 5 }, 3, 1);
    check(Rule::<16> { blocks: 30_000, probes: 16 }, 3, 2);
}
