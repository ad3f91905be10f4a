//! Compares every available kernel with the portable one, bit for bit.
//!
//! This file tests filters and batches of many kinds; `sizes` tests batches of every size at every
//! alignment, `classic` the classic layout, `generations` windowed filters.

mod classic;
#[cfg(not(loom))]
mod generations;
#[cfg(not(loom))]
mod sizes;

use petal_testkit::rng::Rng;
use proptest::prelude::*;

use super::batch::{PREFETCH_EARLY_FROM, PREFETCH_FROM};
use super::blocked::{BlockParams, BlockRange};
#[cfg(not(loom))]
use super::shared::{SharedBlocks, Stripes};
use super::{HashSource, InlineCode, Kernel, KernelHandle, UnhashedKeys};
use crate::store::CacheLine;
#[cfg(not(loom))]
use crate::store::{Owned, Shared, Store as _, StoreMut as _};

/// Sizes around a group of 8, four prepared groups, and a word of results.
const SIZES: [usize; 12] = [0, 1, 7, 8, 9, 32, 33, 41, 64, 65, 200, 1000];

/// Returns batches of all sizes, of random hashes and of a few hashes that occur repeatedly.
fn batches(seed: u64) -> Vec<Vec<u64>> {
    let mut rng = Rng::new(seed);
    let few: Vec<u64> = (0..20).map(|_| rng.next_u64()).chain([0, u64::MAX]).collect();
    let hash = |rng: &mut Rng| match rng.below(4) {
        0 => few[rng.below(few.len())],
        // The same block, other bits.
        1 => few[0] >> 40 << 40 | rng.next_u64() >> 24,
        _ => rng.next_u64(),
    };
    let sizes: Vec<usize> = (0..8).map(|_| SIZES[rng.below(SIZES.len())]).collect();
    sizes.into_iter().map(|size| (0..size).map(|_| hash(&mut rng)).collect()).collect()
}

fn zeroed<const LANES: usize>(params: BlockParams<LANES>) -> Vec<CacheLine> {
    vec![CacheLine::ZERO; params.blocks as usize * LANES / 8]
}

/// A hash function for words; [`key`] is its inverse.
fn hash(word: u64) -> u64 {
    !word.rotate_left(23)
}

fn key(hash: u64) -> u64 {
    (!hash).rotate_right(23)
}

fn keys(hashes: &[u64]) -> Vec<u64> {
    hashes.iter().copied().map(key).collect()
}

/// Returns the results of a batch of queries, then those of a batch of inserts.
fn run_batch<const LANES: usize>(
    kernel: KernelHandle,
    params: BlockParams<LANES>,
    lines: &mut [CacheLine],
    hashes: impl HashSource,
) -> Vec<u64> {
    let keys = hashes.words().len();
    let (mut found, mut new) = (vec![!0; keys.div_ceil(64)], vec![!0; keys.div_ceil(64)]);
    kernel.contains_batch(BlockRange::new(params, &*lines, 0), hashes, &mut found);
    let mut lines_set = lines.to_vec();
    kernel.insert_batch(BlockRange::new(params, &mut *lines, 0), hashes, &mut new);
    if kernel.set_small(BlockRange::new(params, &mut lines_set, 0), hashes) {
        assert!(lines_set == lines, "{kernel:?}");
    }
    let results = [&found[..], &new].concat();
    kernel.contains_batch(BlockRange::new(params, &*lines, 0), hashes, &mut found);
    assert_eq!(found, words(&vec![true; keys]), "{kernel:?}");
    results
}

/// Same as [`run_batch`] with single keys.
fn run_singly<const LANES: usize>(
    kernel: KernelHandle,
    params: BlockParams<LANES>,
    lines: &mut [CacheLine],
    hashes: &[u64],
) -> Vec<u64> {
    let contained: Vec<bool> =
        hashes.iter().map(|&hash| kernel.contains(params, lines, hash)).collect();
    let mut lines_set = lines.to_vec();
    let new: Vec<bool> = hashes.iter().map(|&hash| kernel.insert(params, lines, hash)).collect();
    hashes.iter().for_each(|&hash| kernel.set(params, &mut lines_set, hash));
    assert!(lines_set == lines, "{kernel:?}");
    assert!(hashes.iter().all(|&hash| kernel.contains(params, lines, hash)), "{kernel:?}");
    [words(&contained), words(&new)].concat()
}

/// Returns the bits and the results of all batches, of hashes or of unhashed keys.
fn run<const LANES: usize>(
    kernel: KernelHandle,
    params: BlockParams<LANES>,
    seed: u64,
    hashed: bool,
) -> (Vec<CacheLine>, Vec<u64>) {
    let mut lines = zeroed(params);
    let results = batches(seed).into_iter().flat_map(|batch| {
        if hashed {
            run_batch(kernel, params, &mut lines, &batch[..])
        } else {
            run_batch(kernel, params, &mut lines, UnhashedKeys { words: &keys(&batch), hash })
        }
    });
    let results = results.collect();
    (lines, results)
}

/// Same as [`run`] with single keys.
fn one_by_one<const LANES: usize>(
    kernel: KernelHandle,
    params: BlockParams<LANES>,
    seed: u64,
) -> (Vec<CacheLine>, Vec<u64>) {
    let mut lines = zeroed(params);
    let run = |batch: Vec<u64>| run_singly(kernel, params, &mut lines, &batch);
    let results = batches(seed).into_iter().flat_map(run).collect();
    (lines, results)
}

/// Same as [`run`] with shared blocks, in batches or with single keys.
#[cfg(not(loom))]
fn run_shared<const LANES: usize>(
    kernel: KernelHandle,
    params: BlockParams<LANES>,
    seed: u64,
    batched: bool,
) -> (Vec<CacheLine>, Vec<u64>) {
    let mut memory = Owned::zeroed(zeroed(params).len() as u64).unwrap();
    let (stripes, mut results) = (Stripes::new(params.blocks), vec![]);
    for batch in batches(seed) {
        let shared = Shared::from(memory);
        let blocks = SharedBlocks { params, lines: shared.lines(), stripes: &stripes };
        let mut results_of_batch = vec![!0; batch.len().div_ceil(64)];
        if batched {
            kernel.shared_contains_batch(blocks, &batch[..], &mut results_of_batch);
            results.extend_from_slice(&results_of_batch);
            kernel.shared_insert_batch(blocks, &batch[..], &mut results_of_batch);
            results.extend_from_slice(&results_of_batch);
        } else {
            let contained: Vec<bool> =
                batch.iter().map(|&hash| kernel.shared_contains(blocks, hash)).collect();
            let new: Vec<bool> =
                batch.iter().map(|&hash| kernel.shared_insert(blocks, hash)).collect();
            results.extend(words(&contained));
            results.extend(words(&new));
        }
        assert!(
            batch.iter().all(|&hash| kernel.shared_contains(blocks, hash)),
            "{kernel:?}, seed {seed}"
        );
        memory = shared.into();
    }
    let new = count_new(seed, &results);
    assert_eq!(stripes.inserted(), new, "{kernel:?}, seed {seed}");
    (memory.lines().to_vec(), results)
}

/// Returns the number of new inserts. Each batch has the results of queries, then of inserts.
#[cfg(not(loom))]
fn count_new(seed: u64, mut results: &[u64]) -> u64 {
    let mut new = 0;
    for batch in batches(seed) {
        let words = batch.len().div_ceil(64);
        let (this, rest) = results.split_at(2 * words);
        new += this[words..].iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        results = rest;
    }
    new
}

fn kernels() -> impl Iterator<Item = KernelHandle> {
    Kernel::ALL.into_iter().filter_map(Kernel::handle)
}

fn words(results: &[bool]) -> Vec<u64> {
    let word = |results: &[bool]| {
        results.iter().rev().fold(0, |word, &result| word << 1 | u64::from(result))
    };
    results.chunks(64).map(word).collect()
}

fn agree<const LANES: usize>(blocks: u64, probes: u32, seed: u64) {
    let params = BlockParams::<LANES> { blocks, probes };
    let expected = kernels().map(|portable| one_by_one(portable, params, seed)).next().unwrap();
    for kernel in kernels() {
        let context =
            format!("{kernel:?}, {LANES} lanes, {blocks} blocks, k {probes}, seed {seed}");
        assert!(one_by_one(kernel, params, seed) == expected, "one by one, {context}");
        for hashed in [true, false] {
            assert!(
                run(kernel, params, seed, hashed) == expected,
                "batches, hashed {hashed}, {context}"
            );
        }
        #[cfg(not(loom))]
        for batched in [false, true] {
            assert!(
                run_shared(kernel, params, seed, batched) == expected,
                "shared, batched {batched}, {context}"
            );
        }
    }
}

#[test]
fn kernels_agree_for_every_number_of_probes() {
    for (blocks, seed) in [1, 2, 3, 77, 4096].into_iter().zip(1..) {
        (1..=8).for_each(|probes| agree::<8>(blocks, probes, seed));
        (1..=16).for_each(|probes| agree::<16>(blocks, probes, seed));
    }
}

proptest! {
    #[test]
    fn kernels_agree(
        blocks in prop_oneof![1..=3_u64, 4..200_u64, 10_000..10_100_u64],
        probes in 1..=16_u32,
        seed: u64,
    ) {
        agree::<8>(blocks, (probes - 1) % 8 + 1, seed);
        agree::<16>(blocks, probes, seed);
    }
}

/// Above 512 KiB or 8 MiB batches are prefetched.
#[test]
#[cfg_attr(miri, ignore = "minutes")]
fn kernels_agree_on_large_filters() {
    let lines = PREFETCH_FROM as u64;
    for (seed, probes) in (1..).zip([8, 6]) {
        for lines in [PREFETCH_EARLY_FROM as u64, lines] {
            agree::<8>(lines - 1 + seed % 2, probes, seed);
            agree::<16>(lines / 2 + seed % 2, 2 * probes, seed);
        }
    }
}

/// Small filters are filled without results, except with AVX-512.
#[test]
fn set_small_exists_for_small_filters() {
    for (kernel, handle) in
        Kernel::ALL.into_iter().filter_map(|kernel| Some((kernel, kernel.handle()?)))
    {
        for (blocks, small) in [(1, true), (PREFETCH_FROM as u64, false)] {
            let params = BlockParams::<8> { blocks, probes: 8 };
            let mut lines = zeroed(params);
            let set = handle.set_small(BlockRange::new(params, &mut lines, 0), &[1][..]);
            assert_eq!(set, small && kernel != Kernel::Avx512, "{kernel:?}");
        }
    }
}

/// Single keys in blocks of one line are inlined with AVX-512 and AVX2.
#[test]
fn inlined_code_equals_portable_code() {
    let expected = Kernel::Portable.handle().unwrap();
    for (kernel, handle) in
        Kernel::ALL.into_iter().filter_map(|kernel| Some((kernel, kernel.handle()?)))
    {
        let inlined = matches!(kernel, Kernel::Avx512 | Kernel::Avx2);
        for (blocks, seed) in [1, 2, 77, 4096].into_iter().zip(1..) {
            for probes in 1..=8 {
                let params = BlockParams::<8> { blocks, probes };
                let code = InlineCode::of_lines(handle, probes);
                assert_eq!(code.is_none(), !inlined);
                let (mut expected_lines, mut lines) = (zeroed(params), zeroed(params));
                let mut lines_set = zeroed(params);
                for hash in batches(seed).concat() {
                    let context =
                        format!("{kernel:?}, {blocks} blocks, k {probes}, hash {hash:#x}");
                    let found = expected.contains(params, &expected_lines, hash);
                    let results = code.contains(params, &lines, || hash);
                    assert_eq!(results, inlined.then_some(found), "{context}");
                    let new = expected.insert(params, &mut expected_lines, hash);
                    let results = code.insert(params, &mut lines, || hash);
                    assert_eq!(results, inlined.then_some(new), "{context}");
                    assert_eq!(code.set(params, &mut lines_set, || hash), inlined.then_some(()));
                    let block = params.line_range(hash);
                    assert!(!inlined || lines[block.clone()] == expected_lines[block], "{context}");
                }
                assert!(!inlined || lines == expected_lines, "{blocks} blocks, k {probes}");
                assert!(!inlined || lines_set == expected_lines, "{blocks} blocks, k {probes}");
            }
        }
    }
}

/// The inlined code accesses lines without a check of their index.
#[test]
fn inlined_code_panics_if_there_are_fewer_lines_than_blocks() {
    let inlined = [Kernel::Avx512, Kernel::Avx2].map(Kernel::handle);
    for kernel in inlined.into_iter().flatten() {
        for (blocks, present) in [(1, 0), (0, 0), (0, 3), (5, 4), (1 << 50, 7)] {
            for probes in [3, 8] {
                let params = BlockParams::<8> { blocks, probes };
                let code = InlineCode::of_lines(kernel, probes);
                let lines = || vec![CacheLine::ZERO; present];
                let attempts: [&dyn Fn(); 3] = [
                    &|| _ = code.insert(params, &mut lines(), || u64::MAX),
                    &|| _ = code.set(params, &mut lines(), || 0),
                    &|| _ = code.contains(params, &lines(), || 1 << 63),
                ];
                for attempt in attempts {
                    let attempt = std::panic::AssertUnwindSafe(attempt);
                    assert!(std::panic::catch_unwind(attempt).is_err(), "{kernel:?} {blocks}");
                }
            }
        }
    }
}

/// Returns hashes of blocks from `first` on, in a filter of `blocks` blocks.
fn hashes_from(first: u64, blocks: u64) -> impl Iterator<Item = u64> {
    let least = (u128::from(first) << 64).div_ceil(blocks.into()) as u64;
    let mut rng = Rng::new(first);
    core::iter::repeat_with(move || least + rng.next_u64() % (u64::MAX - least))
}

#[test]
fn block_range_equals_the_whole_filter() {
    // Up to more than 2^32 blocks, of which only the last exist.
    for blocks in [10, 1 << 20, 1 << 32, (1 << 32) + 5, u64::MAX >> 7] {
        let (available, params) = (8, BlockParams::<16> { blocks, probes: 11 });
        let first = blocks - available;
        let hashes: Vec<u64> = hashes_from(first, blocks).take(300).chain([u64::MAX]).collect();
        let run = |kernel: KernelHandle| {
            let mut lines = vec![CacheLine::ZERO; 2 * available as usize];
            let mut new = vec![0; hashes.len().div_ceil(64)];
            kernel.insert_batch(BlockRange::new(params, &mut lines, first), &hashes[..], &mut new);
            (lines, new)
        };
        let expected = kernels().map(run).next().unwrap();
        let ones: u32 = expected.0.iter().flat_map(|line| line.0).map(u64::count_ones).sum();
        assert!(
            ones > 900 && kernels().map(run).all(|results| results == expected),
            "{blocks} blocks"
        );
    }
}

#[test]
fn blocks_outside_the_range_panic() {
    let params = BlockParams::<16> { blocks: 4, probes: 3 };
    // Only the third of four blocks exists; in the last case only half of it.
    for (hash, lines) in [(u64::MAX, 2), (0, 2), (1 << 63, 1)] {
        for kernel in kernels() {
            let lines = vec![CacheLine::ZERO; lines];
            let query =
                || kernel.contains_batch(BlockRange::new(params, &lines, 2), &[hash][..], &mut [0]);
            assert!(std::panic::catch_unwind(query).is_err(), "{kernel:?}, {hash}");
        }
    }
}
