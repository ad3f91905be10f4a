//! Compares every kernel's single keys and batches of classic filters with a simple loop over
//! positions, in filters below and above the size from which lookups are interleaved.

use super::super::classic::{ClassicParams, LARGE_FILTER, STEP};
use super::*;

/// A reference implementation: bytes, and a loop over positions.
struct Reference {
    bytes: Vec<u8>,
    params: ClassicParams,
}

impl Reference {
    fn positions(&self, hash: u64) -> Vec<u64> {
        let (mut x, mut positions) = (u128::from(hash), vec![]);
        for _ in 0..self.params.probes {
            positions.push(((x * u128::from(self.params.bits)) >> 64) as u64);
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

fn bytes(lines: &[CacheLine]) -> Vec<u8> {
    lines.iter().flat_map(|line| line.0).flat_map(u64::to_ne_bytes).collect()
}

/// Sets half of all bits, so that lookups end after any number of tests.
fn half_full(lines: usize) -> Vec<CacheLine> {
    let mut rng = Rng::new(8);
    (0..lines).map(|_| CacheLine(core::array::from_fn(|_| rng.next_u64()))).collect()
}

/// Returns batches of every size up to more than two words of results, and some larger ones, with
/// hashes of earlier batches, new hashes, or both, some of them repeated.
fn batches() -> Vec<Vec<u64>> {
    let mut rng = Rng::new(140);
    let (mut known, mut batches) = (vec![0, u64::MAX], vec![]);
    for size in (0..=140).chain([1000, 1023, 2048, 3001]) {
        for kind in 0..3 {
            let hash = || match (kind, rng.below(2)) {
                (0, _) | (2, 0) => *rng.pick(&known),
                _ => rng.next_u64(),
            };
            let batch: Vec<u64> = core::iter::repeat_with(hash).take(size).collect();
            known.extend_from_slice(&batch);
            batches.push(batch);
        }
    }
    batches
}

/// The form of the keys.
#[derive(Clone, Copy, Debug)]
enum Form {
    Singly,
    Hashed,
    Words,
}

impl Form {
    fn contains(
        self,
        kernel: KernelHandle,
        params: ClassicParams,
        lines: &[CacheLine],
        hashes: &[u64],
        words: &[u64],
    ) -> Vec<u64> {
        let mut found = vec![!0; hashes.len().div_ceil(64)];
        match self {
            Self::Singly => {
                let query = |&hash: &u64| kernel.classic_contains(params, lines, hash);
                return super::words(&hashes.iter().map(query).collect::<Vec<_>>());
            }
            Self::Hashed => kernel.classic_contains_batch(params, lines, hashes, &mut found),
            Self::Words => {
                let keys = UnhashedKeys { words, hash };
                kernel.classic_contains_batch(params, lines, keys, &mut found);
            }
        }
        found
    }

    fn insert(
        self,
        params: ClassicParams,
        lines: &mut [CacheLine],
        hashes: &[u64],
        words: &[u64],
    ) -> Vec<u64> {
        let mut new = vec![!0; hashes.len().div_ceil(64)];
        match self {
            Self::Singly => {
                let insert = |&hash: &u64| params.insert(lines, hash);
                return super::words(&hashes.iter().map(insert).collect::<Vec<_>>());
            }
            Self::Hashed => params.insert_batch(lines, hashes, &mut new),
            Self::Words => params.insert_batch(lines, UnhashedKeys { words, hash }, &mut new),
        }
        new
    }
}

/// The results of each batch (found before, new, found after), and the final bytes.
type Outcome = (Vec<[Vec<u64>; 3]>, Vec<u8>);

fn run(
    kernel: KernelHandle,
    params: ClassicParams,
    mut lines: Vec<CacheLine>,
    batches: &[Vec<u64>],
    form: Form,
) -> Outcome {
    let mut results = vec![];
    for (at, batch) in batches.iter().enumerate() {
        // Hashes start at another alignment each time.
        let start = at % 8;
        let padded = [&vec![7; start][..], batch].concat();
        let words = keys(&padded);
        let (hashes, words) = (&padded[start..], &words[start..]);
        let found = form.contains(kernel, params, &lines, hashes, words);
        let new = form.insert(params, &mut lines, hashes, words);
        results.push([found, new, form.contains(kernel, params, &lines, hashes, words)]);
    }
    (results, bytes(&lines))
}

fn run_reference(params: ClassicParams, lines: &[CacheLine], batches: &[Vec<u64>]) -> Outcome {
    let mut reference = Reference { bytes: bytes(lines), params };
    let mut results = vec![];
    for batch in batches {
        let found: Vec<bool> = batch.iter().map(|&hash| reference.contains(hash)).collect();
        let new: Vec<bool> = batch.iter().map(|&hash| reference.insert(hash)).collect();
        results.push([words(&found), words(&new), words(&vec![true; batch.len()])]);
    }
    (results, reference.bytes)
}

fn agree(lines: usize, missing_bits: u64) {
    let (before, batches) = (half_full(lines), batches());
    // Fewer probes than are tested before the first branch, equal, and more: all remainders of four,
    // with and without code of their own; vectors of eight that are full or not.
    for probes in [1, 2, 3, 4, 5, 7, 8, 9, 11, 16, 18, 64] {
        let params = ClassicParams { bits: 512 * lines as u64 - missing_bits, probes };
        let expected = run_reference(params, &before, &batches);
        for kernel in [Kernel::Portable, Kernel::Avx512].into_iter().filter_map(Kernel::handle) {
            for form in [Form::Singly, Form::Hashed, Form::Words] {
                let outcome = run(kernel, params, before.clone(), &batches, form);
                let case = format!("{kernel:?}, {form:?}, {lines} lines, k {probes}");
                assert!(outcome.0 == expected.0, "results, {case}");
                assert!(outcome.1 == expected.1, "bits, {case}");
            }
        }
    }
}

#[test]
fn tiny_filters_equal_the_reference() {
    agree(3, 100);
}

#[test]
fn small_filters_equal_the_reference() {
    agree(LARGE_FILTER - 1, 0);
}

#[test]
fn large_filters_equal_the_reference() {
    agree(LARGE_FILTER, 0);
    agree(LARGE_FILTER + 1, 77);
}
