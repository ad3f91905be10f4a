//! Batches of every size, wherever lines and hashes begin, equal the law key by key.
//!
//! Sizes go past two words of answers, and past the groups that are on the way at once, by every
//! rest. Lines begin at both places of a pair, hashes at all places of a line; around the lines
//! are others that nobody may change.

use super::*;

const MOST: usize = 140;
const BLOCKS: u64 = 5;
/// Words of a line.
const STARTS: usize = 8;

/// Hashes to begin with, which fill the few blocks by half, and hashes to ask for: of the former,
/// some twice, and others.
fn hashes() -> (Vec<u64>, Vec<u64>) {
    let mut rng = Rng::new(140);
    let known: Vec<u64> = (0..200).map(|_| rng.next_u64()).collect();
    let mut hashes: Vec<u64> = vec![0, u64::MAX];
    while hashes.len() < MOST + STARTS {
        hashes.push(match rng.below(4) {
            0 => *rng.pick(&known),
            1 => *rng.pick(&hashes),
            _ => rng.next_u64(),
        });
    }
    (known, hashes)
}

/// Lines, aligned to pairs, of which a filter begins at `from`, with one line behind it at least.
struct Ground<const LANES: usize> {
    rule: Rule<LANES>,
    lines: Vec<Line>,
    from: usize,
}

impl<const LANES: usize> Ground<LANES> {
    fn new(probes: u32, from: usize, known: &[u64]) -> Self {
        let rule = Rule::<LANES> { blocks: BLOCKS, probes };
        let around = Line([0x5555_5555_5555_5555; 8]);
        let mut lines = zeroed(rule);
        let law = Kernel::Portable.ready().unwrap();
        known.iter().for_each(|&hash| _ = law.insert(rule, &mut lines, hash));
        let lines = [&vec![around; from][..], &lines, &[around; 2]].concat();
        Self { rule, lines, from }
    }

    fn owned(&self) -> Owned {
        let mut memory = Owned::zeroed(self.lines.len() as u64).unwrap();
        memory.lines_mut().copy_from_slice(&self.lines);
        memory
    }

    /// All lines as they are left, and what was said.
    fn run(&self, ask: impl FnOnce(&mut [Line]) -> Vec<u64>) -> (Vec<Line>, Vec<u64>) {
        let (mut memory, len) = (self.owned(), zeroed(self.rule).len());
        let said = ask(&mut memory.lines_mut()[self.from..][..len]);
        (memory.lines().to_vec(), said)
    }

    /// The same, if threads could share the lines.
    fn run_shared(&self, kernel: Ready, hashes: impl Hashes) -> (Vec<Line>, Vec<u64>) {
        let (shared, stripes) = (Shared::from(self.owned()), Stripes::new(BLOCKS));
        let lines = &shared.lines()[self.from..][..zeroed(self.rule).len()];
        let blocks = SharedBlocks { rule: self.rule, lines, stripes: &stripes, kernel };
        let size = hashes.words().len().div_ceil(64);
        let (mut found, mut new) = (vec![!0; size], vec![!0; size]);
        blocks.contains_batch(hashes, &mut found);
        blocks.insert_batch(hashes, &mut new);
        (Owned::from(shared).lines().to_vec(), [found, new].concat())
    }
}

fn every_size<const LANES: usize>(probes: u32) {
    let (known, hashes) = hashes();
    let words = keys(&hashes);
    let portable = Kernel::Portable.ready().unwrap();
    for (from, start) in (0..2).flat_map(|from| (0..STARTS).map(move |start| (from, start))) {
        let ground = Ground::<LANES>::new(probes, from, &known);
        let rule = ground.rule;
        for size in 0..=MOST {
            let batch = &hashes[start..][..size];
            let words = Keys { words: &words[start..][..size], hash };
            let law = ground.run(|lines| ask_singly(portable, rule, lines, batch));
            for kernel in kernels() {
                let about = format!(
                    "{kernel:?}, {LANES} lanes, k {probes}, {size} hashes from {start} on, \
                     lines from {from} on"
                );
                let singly = ground.run(|lines| ask_singly(kernel, rule, lines, batch));
                assert!(singly == law, "one by one, {about}");
                let many = ground.run(|lines| ask(kernel, rule, lines, batch));
                assert!(many == law, "batch, {about}");
                let keys = ground.run(|lines| ask(kernel, rule, lines, words));
                assert!(keys == law, "batch of keys, {about}");
                assert!(ground.run_shared(kernel, batch) == law, "shared, {about}");
                assert!(ground.run_shared(kernel, words) == law, "shared, keys, {about}");
            }
        }
    }
}

#[test]
fn every_size_of_a_batch_in_lines() {
    [1, 5, 8].into_iter().for_each(every_size::<8>);
}

#[test]
fn every_size_of_a_batch_in_pairs_of_lines() {
    [1, 11, 16].into_iter().for_each(every_size::<16>);
}
