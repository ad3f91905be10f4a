//! Compares batches of every size, at every alignment of lines and hashes, with single keys of the
//! portable kernel.
//!
//! Sizes exceed two words of results and the number of prepared groups, with every remainder. Lines
//! start at both halves of a pair, hashes at every word of a line. The lines before and after the
//! filter must not change.

use super::*;

const MAX_SIZE: usize = 140;
const BLOCKS: u64 = 5;
/// Words of a cache line.
const STARTS: usize = 8;

/// Returns hashes that fill the blocks by half, and hashes to look up: some of the former, some
/// repeated, and others.
fn hashes() -> (Vec<u64>, Vec<u64>) {
    let mut rng = Rng::new(140);
    let known: Vec<u64> = (0..200).map(|_| rng.next_u64()).collect();
    let mut hashes: Vec<u64> = vec![0, u64::MAX];
    while hashes.len() < MAX_SIZE + STARTS {
        hashes.push(match rng.below(4) {
            0 => *rng.pick(&known),
            1 => *rng.pick(&hashes),
            _ => rng.next_u64(),
        });
    }
    (known, hashes)
}

/// Cache lines, aligned to pairs, with a filter that starts at line `from` and at least one line
/// after it.
struct Surrounded<const LANES: usize> {
    params: BlockParams<LANES>,
    lines: Vec<CacheLine>,
    from: usize,
}

impl<const LANES: usize> Surrounded<LANES> {
    fn new(probes: u32, from: usize, known: &[u64]) -> Self {
        let params = BlockParams::<LANES> { blocks: BLOCKS, probes };
        let around = CacheLine([0x5555_5555_5555_5555; 8]);
        let mut lines = zeroed(params);
        let expected = Kernel::Portable.handle().unwrap();
        known.iter().for_each(|&hash| _ = expected.insert(params, &mut lines, hash));
        let lines = [&vec![around; from][..], &lines, &[around; 2]].concat();
        Self { params, lines, from }
    }

    fn owned(&self) -> Owned {
        let mut memory = Owned::zeroed(self.lines.len() as u64).unwrap();
        memory.lines_mut().copy_from_slice(&self.lines);
        memory
    }

    /// Returns all lines after `run`, and its results.
    fn run(&self, run: impl FnOnce(&mut [CacheLine]) -> Vec<u64>) -> (Vec<CacheLine>, Vec<u64>) {
        let (mut memory, len) = (self.owned(), zeroed(self.params).len());
        let results = run(&mut memory.lines_mut()[self.from..][..len]);
        (memory.lines().to_vec(), results)
    }

    /// Same as [`run`](Self::run) with shared lines.
    fn run_shared(
        &self,
        kernel: KernelHandle,
        hashes: impl HashSource,
    ) -> (Vec<CacheLine>, Vec<u64>) {
        let (shared, stripes) = (Shared::from(self.owned()), Stripes::new(BLOCKS));
        let lines = &shared.lines()[self.from..][..zeroed(self.params).len()];
        let blocks = SharedBlocks { params: self.params, lines, stripes: &stripes };
        let size = hashes.words().len().div_ceil(64);
        let (mut found, mut new) = (vec![!0; size], vec![!0; size]);
        kernel.shared_contains_batch(blocks, hashes, &mut found);
        kernel.shared_insert_batch(blocks, hashes, &mut new);
        (Owned::from(shared).lines().to_vec(), [found, new].concat())
    }
}

fn every_size<const LANES: usize>(probes: u32) {
    let (known, hashes) = hashes();
    let words = keys(&hashes);
    let portable = Kernel::Portable.handle().unwrap();
    for (from, start) in (0..2).flat_map(|from| (0..STARTS).map(move |start| (from, start))) {
        let filter = Surrounded::<LANES>::new(probes, from, &known);
        let params = filter.params;
        for size in 0..=MAX_SIZE {
            let batch = &hashes[start..][..size];
            let words = UnhashedKeys { words: &words[start..][..size], hash };
            let expected = filter.run(|lines| run_singly(portable, params, lines, batch));
            for kernel in kernels() {
                let context = format!(
                    "{kernel:?}, {LANES} lanes, k {probes}, {size} hashes from {start} on, \
                     lines from {from} on"
                );
                let singly = filter.run(|lines| run_singly(kernel, params, lines, batch));
                assert!(singly == expected, "one by one, {context}");
                let many = filter.run(|lines| run_batch(kernel, params, lines, batch));
                assert!(many == expected, "batch, {context}");
                let keys = filter.run(|lines| run_batch(kernel, params, lines, words));
                assert!(keys == expected, "batch of keys, {context}");
                assert!(filter.run_shared(kernel, batch) == expected, "shared, {context}");
                assert!(filter.run_shared(kernel, words) == expected, "shared, keys, {context}");
            }
        }
    }
}

#[test]
fn every_batch_size_with_8_lanes() {
    [1, 5, 8].into_iter().for_each(every_size::<8>);
}

#[test]
fn every_batch_size_with_16_lanes() {
    [1, 11, 16].into_iter().for_each(every_size::<16>);
}
