//! Every kernel that the machine has equals the portable one, bit for bit.
//!
//! Here in filters and batches of many kinds; `sizes` has batches of every size, at every
//! alignment, `classic` the classic layout.

mod classic;
#[cfg(not(loom))]
mod ring;
#[cfg(not(loom))]
mod sizes;

use petal_testkit::rng::Rng;
use proptest::prelude::*;

use super::blocked::{Blocks, Rule};
#[cfg(not(loom))]
use super::shared::{SharedBlocks, Stripes};
use super::{Hashes, Kernel, Keys, Ready};
use crate::store::Line;
#[cfg(not(loom))]
use crate::store::{Owned, Shared, Store as _, StoreMut as _};

/// Around a group of 8, four of them ahead, and a word of answers.
const SIZES: [usize; 12] = [0, 1, 7, 8, 9, 32, 33, 41, 64, 65, 200, 1000];

/// Batches one after another: of all sizes, random or of few keys, which come up twice in a batch.
fn batches(seed: u64) -> Vec<Vec<u64>> {
    let mut rng = Rng::new(seed);
    let few: Vec<u64> = (0..20).map(|_| rng.next_u64()).chain([0, u64::MAX]).collect();
    let hash = |rng: &mut Rng| match rng.below(4) {
        0 => few[rng.below(few.len())],
        // One block, other bits.
        1 => few[0] >> 40 << 40 | rng.next_u64() >> 24,
        _ => rng.next_u64(),
    };
    let sizes: Vec<usize> = (0..8).map(|_| SIZES[rng.below(SIZES.len())]).collect();
    sizes.into_iter().map(|size| (0..size).map(|_| hash(&mut rng)).collect()).collect()
}

fn zeroed<const LANES: usize>(rule: Rule<LANES>) -> Vec<Line> {
    vec![Line::ZERO; rule.blocks as usize * LANES / 8]
}

/// Stands for what hashes words: each hash is that of one word, its [`key`].
fn hash(word: u64) -> u64 {
    !word.rotate_left(23)
}

fn key(hash: u64) -> u64 {
    (!hash).rotate_right(23)
}

fn keys(hashes: &[u64]) -> Vec<u64> {
    hashes.iter().copied().map(key).collect()
}

/// The answers of a kernel to a batch: to queries, then to inserts. What was inserted is found.
fn ask<const LANES: usize>(
    kernel: Ready,
    rule: Rule<LANES>,
    lines: &mut [Line],
    hashes: impl Hashes,
) -> Vec<u64> {
    let keys = hashes.words().len();
    let (mut found, mut new) = (vec![!0; keys.div_ceil(64)], vec![!0; keys.div_ceil(64)]);
    kernel.contains_batch(Blocks::new(rule, &*lines, 0), hashes, &mut found);
    kernel.insert_batch(Blocks::new(rule, &mut *lines, 0), hashes, &mut new);
    let said = [&found[..], &new].concat();
    kernel.contains_batch(Blocks::new(rule, &*lines, 0), hashes, &mut found);
    assert_eq!(found, words(&vec![true; keys]), "{kernel:?}");
    said
}

/// The same, key by key.
fn ask_singly<const LANES: usize>(
    kernel: Ready,
    rule: Rule<LANES>,
    lines: &mut [Line],
    hashes: &[u64],
) -> Vec<u64> {
    let contained: Vec<bool> =
        hashes.iter().map(|&hash| kernel.contains(rule, lines, hash)).collect();
    let new: Vec<bool> = hashes.iter().map(|&hash| kernel.insert(rule, lines, hash)).collect();
    assert!(hashes.iter().all(|&hash| kernel.contains(rule, lines, hash)), "{kernel:?}");
    [words(&contained), words(&new)].concat()
}

/// What a kernel leaves and says, batch by batch, of hashes or of words to be hashed on the way.
fn run<const LANES: usize>(
    kernel: Ready,
    rule: Rule<LANES>,
    seed: u64,
    hashed: bool,
) -> (Vec<Line>, Vec<u64>) {
    let mut lines = zeroed(rule);
    let said = batches(seed).into_iter().flat_map(|batch| {
        if hashed {
            ask(kernel, rule, &mut lines, &batch[..])
        } else {
            ask(kernel, rule, &mut lines, Keys { words: &keys(&batch), hash })
        }
    });
    let said = said.collect();
    (lines, said)
}

/// What a kernel leaves and says, key by key.
fn one_by_one<const LANES: usize>(
    kernel: Ready,
    rule: Rule<LANES>,
    seed: u64,
) -> (Vec<Line>, Vec<u64>) {
    let mut lines = zeroed(rule);
    let ask = |batch: Vec<u64>| ask_singly(kernel, rule, &mut lines, &batch);
    let said = batches(seed).into_iter().flat_map(ask).collect();
    (lines, said)
}

/// The same with blocks that threads share: what a kernel leaves and says, in batches if `many`.
#[cfg(not(loom))]
fn run_shared<const LANES: usize>(
    kernel: Ready,
    rule: Rule<LANES>,
    seed: u64,
    many: bool,
) -> (Vec<Line>, Vec<u64>) {
    let mut memory = Owned::zeroed(zeroed(rule).len() as u64).unwrap();
    let (stripes, mut said) = (Stripes::new(rule.blocks), vec![]);
    for batch in batches(seed) {
        let shared = Shared::from(memory);
        let blocks = SharedBlocks { rule, lines: shared.lines(), stripes: &stripes, kernel };
        let mut answers = vec![!0; batch.len().div_ceil(64)];
        if many {
            blocks.contains_batch(&batch[..], &mut answers);
            said.extend_from_slice(&answers);
            blocks.insert_batch(&batch[..], &mut answers);
            said.extend_from_slice(&answers);
        } else {
            let contained: Vec<bool> = batch.iter().map(|&hash| blocks.contains(hash)).collect();
            let new: Vec<bool> = batch.iter().map(|&hash| blocks.insert(hash)).collect();
            said.extend(words(&contained));
            said.extend(words(&new));
        }
        assert!(batch.iter().all(|&hash| blocks.contains(hash)), "{kernel:?}, seed {seed}");
        memory = shared.into();
    }
    let new = said_to_be_new(seed, &said);
    assert_eq!(stripes.inserted(), new, "{kernel:?}, seed {seed}");
    (memory.lines().to_vec(), said)
}

/// How many inserts were new: after the answers of a batch's queries come those of its inserts.
#[cfg(not(loom))]
fn said_to_be_new(seed: u64, mut said: &[u64]) -> u64 {
    let mut new = 0;
    for batch in batches(seed) {
        let words = batch.len().div_ceil(64);
        let (this, rest) = said.split_at(2 * words);
        new += this[words..].iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        said = rest;
    }
    new
}

fn kernels() -> impl Iterator<Item = Ready> {
    Kernel::ALL.into_iter().filter_map(Kernel::ready)
}

fn words(answers: &[bool]) -> Vec<u64> {
    let word =
        |answers: &[bool]| answers.iter().rev().fold(0, |word, &yes| word << 1 | u64::from(yes));
    answers.chunks(64).map(word).collect()
}

fn agree<const LANES: usize>(blocks: u64, probes: u32, seed: u64) {
    let rule = Rule::<LANES> { blocks, probes };
    let law = kernels().map(|portable| one_by_one(portable, rule, seed)).next().unwrap();
    for kernel in kernels() {
        let about = format!("{kernel:?}, {LANES} lanes, {blocks} blocks, k {probes}, seed {seed}");
        assert!(one_by_one(kernel, rule, seed) == law, "one by one, {about}");
        for hashed in [true, false] {
            assert!(run(kernel, rule, seed, hashed) == law, "batches, hashed {hashed}, {about}");
        }
        #[cfg(not(loom))]
        for many in [false, true] {
            assert!(run_shared(kernel, rule, seed, many) == law, "shared, many {many}, {about}");
        }
    }
}

#[test]
fn every_kernel_is_there_for_every_number_of_probes() {
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

/// Single keys of lines are inlined with AVX-512, and with no other kernel.
#[test]
fn what_is_inlined_equals_the_law() {
    let law = Kernel::Portable.ready().unwrap();
    for (kernel, ready) in
        Kernel::ALL.into_iter().filter_map(|kernel| Some((kernel, kernel.ready()?)))
    {
        let inlined = kernel == Kernel::Avx512;
        for (blocks, seed) in [1, 2, 77, 4096].into_iter().zip(1..) {
            for probes in 1..=8 {
                let rule = Rule::<8> { blocks, probes };
                let (mut lawful, mut lines) = (zeroed(rule), zeroed(rule));
                for hash in batches(seed).concat() {
                    let about = format!("{kernel:?}, {blocks} blocks, k {probes}, hash {hash:#x}");
                    let found = law.contains(rule, &lawful, hash);
                    let said = ready.contains_inline(rule, &lines, hash);
                    assert_eq!(said, inlined.then_some(found), "{about}");
                    let new = law.insert(rule, &mut lawful, hash);
                    let said = ready.insert_inline(rule, &mut lines, hash);
                    assert_eq!(said, inlined.then_some(new), "{about}");
                    let here = rule.lines_of(hash);
                    assert!(!inlined || lines[here.clone()] == lawful[here], "{about}");
                }
                assert!(!inlined || lines == lawful, "{blocks} blocks, k {probes}");
            }
        }
    }
}

/// Hashes of blocks from `first` on, in a filter of so many blocks.
fn hashes_from(first: u64, blocks: u64) -> impl Iterator<Item = u64> {
    let least = (u128::from(first) << 64).div_ceil(blocks.into()) as u64;
    let mut rng = Rng::new(first);
    std::iter::repeat_with(move || least + rng.next_u64() % (u64::MAX - least))
}

#[test]
fn a_run_of_blocks_is_as_in_the_whole() {
    // More blocks than 32 bits can count, of which only the last are there.
    for blocks in [10, 1 << 20, 1 << 32, (1 << 32) + 5, u64::MAX >> 7] {
        let (there, rule) = (8, Rule::<16> { blocks, probes: 11 });
        let first = blocks - there;
        let hashes: Vec<u64> = hashes_from(first, blocks).take(300).chain([u64::MAX]).collect();
        let run = |kernel: Ready| {
            let mut lines = vec![Line::ZERO; 2 * there as usize];
            let mut new = vec![0; hashes.len().div_ceil(64)];
            kernel.insert_batch(Blocks::new(rule, &mut lines, first), &hashes[..], &mut new);
            (lines, new)
        };
        let law = kernels().map(run).next().unwrap();
        let ones: u32 = law.0.iter().flat_map(|line| line.0).map(u64::count_ones).sum();
        assert!(ones > 900 && kernels().map(run).all(|said| said == law), "{blocks} blocks");
    }
}

#[test]
fn lines_that_are_not_there_are_refused() {
    let rule = Rule::<16> { blocks: 4, probes: 3 };
    // Of four blocks only the third; and of one of them only a half.
    for (hash, lines) in [(u64::MAX, 2), (0, 2), (1 << 63, 1)] {
        for kernel in kernels() {
            let lines = vec![Line::ZERO; lines];
            let look =
                || kernel.contains_batch(Blocks::new(rule, &lines, 2), &[hash][..], &mut [0]);
            assert!(std::panic::catch_unwind(look).is_err(), "{kernel:?}, {hash}");
        }
    }
}
