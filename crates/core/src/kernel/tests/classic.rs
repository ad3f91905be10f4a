//! Classic batches equal single keys and a loop over positions, in filters on both sides of the
//! size from which searches take turns.

use super::super::classic::{FAR, Rule, STEP};
use super::*;

/// The textbook: bytes, and a loop over positions.
struct Naive {
    bytes: Vec<u8>,
    rule: Rule,
}

impl Naive {
    fn positions(&self, hash: u64) -> Vec<u64> {
        let (mut x, mut positions) = (u128::from(hash), vec![]);
        for _ in 0..self.rule.probes {
            positions.push(((x * u128::from(self.rule.bits)) >> 64) as u64);
            x = x * u128::from(STEP) % (1 << 64);
        }
        positions
    }

    fn contains(&self, hash: u64) -> bool {
        let is_set = |&at: &u64| self.bytes[at as usize / 8] >> (at % 8) & 1 == 1;
        self.positions(hash).iter().all(is_set)
    }

    fn insert(&mut self, hash: u64) -> bool {
        let new = !self.contains(hash);
        for at in self.positions(hash) {
            self.bytes[at as usize / 8] |= 1 << (at % 8);
        }
        new
    }
}

fn bytes(lines: &[Line]) -> Vec<u8> {
    lines.iter().flat_map(|line| line.0).flat_map(u64::to_ne_bytes).collect()
}

/// Half of all bits set, so that searches end everywhere.
fn half_full(lines: usize) -> Vec<Line> {
    let mut rng = Rng::new(8);
    (0..lines).map(|_| Line(std::array::from_fn(|_| rng.next_u64()))).collect()
}

/// Batches of every size up to more than two words of answers, and some far larger: of what
/// batches before have inserted, of other keys, and of both mixed, some twice.
fn batches() -> Vec<Vec<u64>> {
    let mut rng = Rng::new(140);
    let (mut known, mut batches) = (vec![0, u64::MAX], vec![]);
    for size in (0..=140).chain([1000, 1023, 2048, 3001]) {
        for kind in 0..3 {
            let hash = || match (kind, rng.below(2)) {
                (0, _) | (2, 0) => *rng.pick(&known),
                _ => rng.next_u64(),
            };
            let batch: Vec<u64> = std::iter::repeat_with(hash).take(size).collect();
            known.extend_from_slice(&batch);
            batches.push(batch);
        }
    }
    batches
}

/// The form in which keys come.
#[derive(Clone, Copy, Debug)]
enum Form {
    Singly,
    Hashed,
    Words,
}

impl Form {
    fn contains(self, rule: Rule, lines: &[Line], hashes: &[u64], words: &[u64]) -> Vec<u64> {
        let mut found = vec![!0; hashes.len().div_ceil(64)];
        match self {
            Self::Singly => {
                let look = |&hash: &u64| rule.contains(lines, hash);
                return super::words(&hashes.iter().map(look).collect::<Vec<_>>());
            }
            Self::Hashed => rule.contains_batch(lines, hashes, &mut found),
            Self::Words => rule.contains_batch(lines, Keys { words, hash }, &mut found),
        }
        found
    }

    fn insert(self, rule: Rule, lines: &mut [Line], hashes: &[u64], words: &[u64]) -> Vec<u64> {
        let mut new = vec![!0; hashes.len().div_ceil(64)];
        match self {
            Self::Singly => {
                let insert = |&hash: &u64| rule.insert(lines, hash);
                return super::words(&hashes.iter().map(insert).collect::<Vec<_>>());
            }
            Self::Hashed => rule.insert_batch(lines, hashes, &mut new),
            Self::Words => rule.insert_batch(lines, Keys { words, hash }, &mut new),
        }
        new
    }
}

/// What is said of each batch (found, new, found then), and the bytes that are left.
type Said = (Vec<[Vec<u64>; 3]>, Vec<u8>);

fn run(rule: Rule, mut lines: Vec<Line>, batches: &[Vec<u64>], form: Form) -> Said {
    let mut said = vec![];
    for (at, batch) in batches.iter().enumerate() {
        // Hashes begin elsewhere each time.
        let start = at % 8;
        let padded = [&vec![7; start][..], batch].concat();
        let words = keys(&padded);
        let (hashes, words) = (&padded[start..], &words[start..]);
        let found = form.contains(rule, &lines, hashes, words);
        let new = form.insert(rule, &mut lines, hashes, words);
        said.push([found, new, form.contains(rule, &lines, hashes, words)]);
    }
    (said, bytes(&lines))
}

fn run_naively(rule: Rule, lines: &[Line], batches: &[Vec<u64>]) -> Said {
    let mut naive = Naive { bytes: bytes(lines), rule };
    let mut said = vec![];
    for batch in batches {
        let found: Vec<bool> = batch.iter().map(|&hash| naive.contains(hash)).collect();
        let new: Vec<bool> = batch.iter().map(|&hash| naive.insert(hash)).collect();
        said.push([words(&found), words(&new), words(&vec![true; batch.len()])]);
    }
    (said, naive.bytes)
}

fn agree(lines: usize, missing_bits: u64) {
    let (before, batches) = (half_full(lines), batches());
    // Fewer bits than a near filter looks at blindly, just as many, and more.
    for probes in [1, 3, 4, 5, 11] {
        let rule = Rule { bits: 512 * lines as u64 - missing_bits, probes };
        let law = run_naively(rule, &before, &batches);
        for form in [Form::Singly, Form::Hashed, Form::Words] {
            let told = run(rule, before.clone(), &batches, form);
            assert!(told.0 == law.0, "answers, {form:?}, {lines} lines, k {probes}");
            assert!(told.1 == law.1, "bits, {form:?}, {lines} lines, k {probes}");
        }
    }
}

#[test]
fn small_classic_batches_equal_the_textbook() {
    agree(3, 100);
}

#[test]
fn near_classic_batches_equal_the_textbook() {
    agree(FAR - 1, 0);
}

#[test]
fn far_classic_batches_equal_the_textbook() {
    agree(FAR, 0);
    agree(FAR + 1, 77);
}
