//! Every kernel that the machine has equals the portable one, bit for bit.

use petal_testkit::rng::Rng;
use proptest::prelude::*;

use super::Kernel;
use super::blocked::Rule;
use crate::answers::Answers;
use crate::store::Line;

const SIZES: [usize; 10] = [0, 1, 31, 32, 33, 63, 64, 65, 200, 1000];

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

/// What a kernel leaves and says, batch by batch.
fn run<const LANES: usize>(kernel: Kernel, rule: Rule<LANES>, seed: u64) -> (Vec<Line>, Vec<u64>) {
    let mut lines = vec![Line::ZERO; rule.blocks as usize * LANES / 8];
    let (mut said, mut answers) = (vec![], Answers::new());
    for batch in batches(seed) {
        kernel.contains_batch(&rule, &lines, &batch, &mut answers);
        said.extend_from_slice(answers.as_words());
        let new = kernel.insert_batch(&rule, &mut lines, &batch, &mut answers);
        said.extend_from_slice(answers.as_words());
        said.push(new);
        kernel.contains_batch(&rule, &lines, &batch, &mut answers);
        assert_eq!(answers.count_ones(), batch.len() as u64, "{kernel:?}, seed {seed}");
    }
    (lines, said)
}

/// What the portable kernel leaves and says, key by key.
fn one_by_one<const LANES: usize>(rule: Rule<LANES>, seed: u64) -> (Vec<Line>, Vec<u64>) {
    let mut lines = vec![Line::ZERO; rule.blocks as usize * LANES / 8];
    let mut said = vec![];
    for batch in batches(seed) {
        let contained: Vec<bool> = batch.iter().map(|&hash| rule.contains(&lines, hash)).collect();
        let new: Vec<bool> = batch.iter().map(|&hash| rule.insert(&mut lines, hash)).collect();
        said.extend(words(&contained));
        said.extend(words(&new));
        said.push(new.iter().map(|&new| u64::from(new)).sum());
    }
    (lines, said)
}

fn words(answers: &[bool]) -> Vec<u64> {
    let word =
        |answers: &[bool]| answers.iter().rev().fold(0, |word, &yes| word << 1 | u64::from(yes));
    answers.chunks(64).map(word).collect()
}

fn agree<const LANES: usize>(blocks: u64, probes: u32, seed: u64) {
    let rule = Rule::<LANES> { blocks, probes };
    let law = one_by_one(rule, seed);
    for kernel in Kernel::ALL.into_iter().filter(|kernel| kernel.is_there()) {
        let about = format!("{kernel:?}, {LANES} lanes, {blocks} blocks, k {probes}, seed {seed}");
        assert!(run(kernel, rule, seed) == law, "{about}");
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

#[test]
fn lines_that_do_not_fit_are_refused() {
    for kernel in Kernel::ALL.into_iter().filter(|kernel| kernel.is_there()) {
        let rule = Rule::<16> { blocks: 2, probes: 3 };
        let look =
            || kernel.contains_batch(&rule, &[Line::ZERO; 3], &[u64::MAX], &mut Answers::new());
        assert!(std::panic::catch_unwind(look).is_err(), "{kernel:?}");
    }
}
