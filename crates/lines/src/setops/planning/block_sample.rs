//! Estimates from random blocks of large files, with bounds that hold for any order of the lines.
//!
//! Neighbouring lines are not independent: a sorted file has its copies side by side. So the units
//! of the sample are blocks, drawn with equal probability from all blocks of an input. Let B be the
//! number of blocks, b that of sampled ones, q = b / B, and c the number of blocks that a distinct
//! line is in.
//!
//! * **Lines**: the mean over blocks, with the deviation between blocks.
//! * **Distinct lines, upper bound**: the lines that one sampled block has, divided by q, and those
//!   that several have. The expectation is at least the number of distinct lines for every c:
//!   1 + (c - 1)(1 - q)^c. (Charikar, Chaudhuri, Motwani & Narasayya, "Towards estimation error
//!   guarantees for distinct values", 2000, for rows instead of blocks.)
//! * **Distinct lines, lower bound**: by Cauchy and Schwarz, (Σc)² / Σc². Σc is a mean over blocks,
//!   and Σc(c - 1) is estimated from the lines that pairs of sampled blocks share. At least the
//!   distinct lines of the sample exist.
//! * **Shared lines, upper bound**: the pairs of a block of each input that share a line, divided by
//!   both q. **Lower bound**: the same without the pairs that repeated lines may cause, at most
//!   Σc(c - 1) of each input.
//!
//! A part of a file that no sampled block shows is possible: the bounds of pairs assume that as many
//! lines as a block has may be shared by a pair of blocks, as often as an event that was observed zero
//! times may be expected.
//!
//! If the hashes do not fit in memory, only those that begin with `depth` zero bits are kept. All of
//! this is then done for the lines with such hashes alone, and the number of all lines follows from
//! theirs with bounds of its own: equal lines are kept in all blocks or in none, so the deviation
//! between blocks does not show how many are kept.
//!
//! An input that was read completely is one block: its lines are in one block each.
//!
//! Cost: reads at most 256 MiB of an input.

use std::ops::ControlFlow;

use super::block_reader::{BlockReader, SampledLine};
use super::hash_sample::mixed_bits;
use super::interval::Interval;
use super::job_counts::{BaseCounts, InputCounts};
use super::sample::scattered;
use crate::error::Result;
use crate::fingerprint::LineHasher;
use crate::input::Input;
use crate::progress::Progress;
use crate::scan::{Batch, Pass, Scratch};

/// The length of a block in bytes.
const BLOCK: u64 = 16 << 10;
/// Maximum number of sampled blocks, and of those in objects of a store, where each is a request.
const MAX_BLOCKS: u64 = 1 << BLOCK_BITS;
const MAX_REQUESTS: u64 = 64;
/// The low bits of a key are the number of the block among the sampled ones.
const BLOCK_BITS: u32 = 14;
/// Minimum and maximum number of keys of all samples of a job: 8 to 32 MiB.
const MIN_KEYS: u64 = 1 << 20;
const MAX_KEYS: u64 = 1 << 22;
/// A line in this number of sampled blocks is frequent: it is counted, not extrapolated.
const FREQUENT: usize = 4;

/// A sample of the blocks of one input, or of several that are taken as one.
pub(crate) struct BlockSample {
    bytes: u64,
    /// The share of the blocks that were sampled; 1 if the input was read completely.
    share: f64,
    /// The lines of each sampled block. An input that was read completely is one block.
    lines: Vec<f64>,
    /// Distinct pairs of a hash and a block, sorted: mixed bits of the hash, then the block.
    keys: Vec<u64>,
    depth: u32,
}

impl BlockSample {
    /// Samples files. `number`: of this input among `among` inputs, which share `memory` bytes. Samples
    /// of different numbers are independent.
    pub(crate) fn of(
        inputs: &[&Input],
        hasher: &LineHasher,
        delimiter: u8,
        memory: u64,
        [number, among]: [usize; 2],
        progress: &dyn Progress,
    ) -> Result<Self> {
        let keys = Keys::within(memory, among);
        let objects = inputs.iter().any(|input| input.is_object());
        let blocks = if objects { MAX_REQUESTS } else { MAX_BLOCKS };
        let mut reader = BlockReader::new(hasher, delimiter, progress);
        Self::of_blocks(blocks, keys, inputs, &mut reader, number as u64)
    }

    /// Reads whole inputs, which may be compressed.
    pub(crate) fn complete(
        inputs: &[&Input],
        pass: &Pass<'_>,
        hasher: &LineHasher,
        memory: u64,
        among: usize,
    ) -> Result<Self> {
        let mut keys = Keys::within(memory, among);
        let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
            scratch.hash_lines(batch, hasher.spec());
        };
        let fold = |_: &Batch<'_>, scratch: &mut Scratch| {
            scratch.hashes.iter().for_each(|&hash| keys.push(hash, 0));
            Ok(ControlFlow::Continue(()))
        };
        let stats = pass.run("counting", inputs, map, fold)?;
        keys.compact();
        let Keys { keys, depth, .. } = keys;
        Ok(Self { bytes: stats.bytes, share: 1.0, lines: vec![stats.lines as f64], keys, depth })
    }

    /// Samples at most `max` blocks.
    fn of_blocks(
        max: u64,
        mut keys: Keys,
        inputs: &[&Input],
        reader: &mut BlockReader<'_>,
        salt: u64,
    ) -> Result<Self> {
        let bytes = inputs.iter().filter_map(|input| input.length()).sum();
        let numbers = block_numbers(bytes, max, salt);
        let mut lines = vec![0.0; numbers.len()];
        let (mut inputs, mut begin, mut open) = (inputs.iter().peekable(), 0, None);
        for (block, number) in numbers.iter().enumerate() {
            let (mut at, end) = (number * BLOCK, ((number + 1) * BLOCK).min(bytes));
            // A block may be in several files.
            while at < end
                && let Some(input) = inputs.peek()
            {
                let length = input.length().unwrap_or(0);
                if begin + length <= at {
                    (begin, open) = (begin + length, None);
                    inputs.next();
                    continue;
                }
                let opened = match &mut open {
                    Some(open) => open,
                    none => none.insert(input.open_sample(reader.progress)?),
                };
                let size = (end - at).min(begin + length - at);
                reader.read(input, opened, [at - begin, size], |line: SampledLine| {
                    lines[block] += 1.0;
                    keys.push(line.hash, block as u64);
                    ControlFlow::Continue(())
                })?;
                at += size;
            }
        }
        let covered = numbers.iter().map(|number| (bytes - number * BLOCK).min(BLOCK)).sum::<u64>();
        let mut share = covered as f64 / bytes as f64;
        if covered == bytes {
            share = 1.0;
            lines = vec![lines.iter().sum()];
            keys.keys.iter_mut().for_each(|key| *key = line_of(*key));
        }
        keys.compact();
        let Keys { keys, depth, .. } = keys;
        Ok(Self { bytes, share, lines, keys, depth })
    }

    fn is_complete(&self) -> bool {
        self.share >= 1.0
    }

    /// Keeps only the hashes that begin with `depth` zero bits.
    fn deepen(&mut self, depth: u32) {
        self.depth = self.depth.max(depth);
        self.keys.retain(|key| key.leading_zeros() >= depth);
    }

    fn block_counts(&self) -> BlockCounts {
        let blocks = self.lines.len();
        let zeros = || vec![0.0; blocks];
        let mut counts = BlockCounts {
            distinct_lines: 0.0,
            distinct: zeros(),
            upper: zeros(),
            pairs: zeros(),
            frequent: 0.0,
            rare: [0.0; 2],
        };
        for of_line in self.keys.chunk_by(|a, b| line_of(*a) == line_of(*b)) {
            let holders = of_line.len();
            counts.distinct_lines += 1.0;
            let upper = if holders == 1 { self.share.recip() } else { (holders as f64).recip() };
            for &key in of_line {
                let block = block_of(key);
                counts.distinct[block] += 1.0;
                counts.upper[block] += upper;
                counts.pairs[block] += (holders - 1) as f64;
            }
            if holders >= FREQUENT {
                counts.frequent += 1.0;
            } else {
                counts.rare[0] += holders as f64;
                counts.rare[1] += (holders * (holders - 1)) as f64;
            }
        }
        counts
    }

    /// Returns the factor of deviations: less if most blocks were sampled.
    fn shrink(&self) -> f64 {
        (1.0 - self.share).max(0.0).sqrt()
    }

    /// Returns the number of hashes that each kept one represents.
    fn weight(&self) -> f64 {
        f64::from(self.depth).exp2()
    }

    /// Returns the counts of the input.
    fn counts(&self, kept: &KeptLines) -> InputCounts {
        let lines = Interval::of_sum(&self.lines, self.shrink()).scaled(self.share.recip());
        let sampled = self.lines.iter().sum::<f64>();
        let lines = lines.at_least(sampled).at_most(self.bytes as f64);
        let distinct = kept.distinct.of_all(self.weight()).at_most(lines.upper);
        InputCounts { bytes: Interval::exact(self.bytes as f64), lines, distinct }
    }

    /// Returns the bounds of the lines whose hashes are kept, in the whole input.
    fn kept_lines(&self) -> KeptLines {
        let counts = self.block_counts();
        let total = Interval::of_sum(&counts.distinct, self.shrink()).scaled(self.share.recip());
        if self.is_complete() {
            let distinct = Interval::exact(counts.distinct_lines);
            return KeptLines { distinct, total, repeats: Interval::default() };
        }
        let all_pairs = counts.pairs.iter().sum::<f64>();
        let largest = largest(&counts.distinct);
        let repeats = Interval::of_pairs(all_pairs / 2.0, &[&counts.pairs], largest)
            .scaled(2.0 / self.share.powi(2));
        let upper = Interval::of_sum(&counts.upper, self.shrink());
        let by_squares = |total: f64, repeats: f64| total * total / (total + repeats).max(1.0);
        let [rare, rare_pairs] = counts.rare;
        let rare = by_squares(rare / self.share, rare_pairs / self.share.powi(2));
        let lower = by_squares(total.lower, repeats.upper).max(counts.distinct_lines);
        let value = counts.frequent + rare;
        let distinct = Interval::new(value, lower, upper.upper.min(total.upper));
        KeptLines { distinct, total, repeats }
    }
}

/// The lines of an input whose hashes are kept.
struct KeptLines {
    distinct: Interval,
    /// Σc.
    total: Interval,
    /// Σc(c - 1).
    repeats: Interval,
}

/// Returns the numbers of the sampled blocks, ascending.
fn block_numbers(bytes: u64, max: u64, salt: u64) -> Vec<u64> {
    let blocks = bytes.div_ceil(BLOCK);
    if blocks <= max {
        return (0..blocks).collect();
    }
    let salt = scattered(salt);
    let draw = |nth| ((u128::from(scattered(salt ^ nth)) * u128::from(blocks)) >> 64) as u64;
    let mut numbers: Vec<_> = (0..max).map(draw).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// What the sampled blocks have, for each block.
struct BlockCounts {
    /// Distinct lines of all blocks together.
    distinct_lines: f64,
    distinct: Vec<f64>,
    /// The block's part of the upper bound of distinct lines.
    upper: Vec<f64>,
    /// For each line of the block, the other sampled blocks that have it.
    pairs: Vec<f64>,
    /// Frequent lines; of the others, the blocks that have them, and the ordered pairs of these.
    frequent: f64,
    rare: [f64; 2],
}

/// Returns the largest value; at least 1, because hashes that are not kept may be in a block.
fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(1.0, f64::max)
}

/// Keys of at most this number.
struct Keys {
    keys: Vec<u64>,
    depth: u32,
    max: usize,
}

const BLOCK_MASK: u64 = MAX_BLOCKS - 1;

fn line_of(key: u64) -> u64 {
    key & !BLOCK_MASK
}

fn block_of(key: u64) -> usize {
    (key & BLOCK_MASK) as usize
}

impl Keys {
    /// The keys of one of `among` samples, which share `memory` bytes.
    fn within(memory: u64, among: usize) -> Self {
        let max = (memory / 8).clamp(MIN_KEYS, MAX_KEYS) / among as u64;
        Self::at_most(max as usize)
    }

    fn at_most(max: usize) -> Self {
        Self { keys: vec![], depth: 0, max }
    }

    fn push(&mut self, hash: u64, block: u64) {
        let mixed = mixed_bits(hash);
        if mixed.leading_zeros() < self.depth {
            return;
        }
        self.keys.push(line_of(mixed) | block);
        if self.keys.len() >= self.max {
            self.compact();
            // Sort again only after many more.
            while self.keys.len() > self.max / 4 * 3 {
                self.depth += 1;
                let depth = self.depth;
                self.keys.retain(|key| key.leading_zeros() >= depth);
            }
        }
    }

    fn compact(&mut self) {
        self.keys.sort_unstable();
        self.keys.dedup();
    }
}

/// A sample with its counts.
struct Counted<'a> {
    sample: &'a BlockSample,
    counts: InputCounts,
    kept: KeptLines,
}

impl<'a> Counted<'a> {
    fn new(sample: &'a BlockSample) -> Self {
        let kept = sample.kept_lines();
        Self { sample, counts: sample.counts(&kept), kept }
    }

    /// Returns the distinct lines that two inputs share. Their samples have the same depth.
    fn shared(&self, other: &Self) -> Interval {
        let samples = [self.sample, other.sample];
        let (mut pairs, mut lines) = (0.0, 0.0);
        let mut by_block = samples.map(|sample| vec![0.0; sample.lines.len()]);
        let same = |a: &u64, b: &u64| line_of(*a) == line_of(*b);
        let mut groups = other.sample.keys.chunk_by(same).peekable();
        for group in self.sample.keys.chunk_by(same) {
            let line = line_of(group[0]);
            while groups.next_if(|others| line_of(others[0]) < line).is_some() {}
            let Some(others) = groups.next_if(|others| line_of(others[0]) == line) else {
                continue;
            };
            lines += 1.0;
            pairs += (group.len() * others.len()) as f64;
            group.iter().for_each(|&key| by_block[0][block_of(key)] += others.len() as f64);
            others.iter().for_each(|&key| by_block[1][block_of(key)] += group.len() as f64);
        }
        let weight = self.sample.weight();
        if samples.iter().all(|sample| sample.is_complete()) {
            return Interval::of_count(lines, weight);
        }
        let in_pair = samples.map(|sample| largest(&sample.block_counts().distinct));
        let sides: [&[f64]; 2] = [&by_block[0], &by_block[1]];
        let pairs = Interval::of_pairs(pairs, &sides, in_pair[0].min(in_pair[1]))
            .scaled((self.sample.share * other.sample.share).recip());
        let once = |kept: &KeptLines| kept.distinct.value / kept.total.value.max(1.0);
        let repeats = 2.0 * (self.kept.repeats.upper + other.kept.repeats.upper);
        let lower = (pairs.lower - repeats).max(lines);
        let value = pairs.value * once(&self.kept) * once(&other.kept);
        let shared = Interval::new(value, lower, pairs.upper).of_all(weight);
        shared.at_most(self.counts.distinct.upper.min(other.counts.distinct.upper))
    }
}

/// Replaces the numbers of inputs, and of the lines that two inputs share, where there are samples of
/// them. The inputs of a symmetric difference are its sides.
pub(crate) fn refine(mut counts: BaseCounts, mut samples: Vec<Option<BlockSample>>) -> BaseCounts {
    let depth = samples.iter().flatten().map(|sample| sample.depth).max().unwrap_or(0);
    samples.iter_mut().flatten().for_each(|sample| sample.deepen(depth));
    let counted: Vec<_> = samples.iter().map(|sample| sample.as_ref().map(Counted::new)).collect();
    for (counts, sample) in counts.inputs.iter_mut().zip(&counted) {
        *counts = sample.as_ref().map_or(*counts, |sample| sample.counts);
    }
    let Some((first, others)) = counted.split_first() else { return counts };
    for (nth, (shared, other)) in counts.shared.iter_mut().zip(others).enumerate() {
        let [upper, others_most] = [0, nth + 1].map(|input| counts.inputs[input].distinct.upper);
        *shared = match (first, other) {
            (Some(first), Some(other)) => first.shared(other),
            _ => shared.at_most(upper.min(others_most)),
        };
    }
    counts
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::input::Source;
    use crate::setops::planning::job_counts::JobCounts;
    use crate::setops::set_semantics::SetOp;
    use petal_testkit::rng::Rng;

    /// The lines of a file of `n` lines: numbers.
    type Shape = fn(n: u64, rng: &mut Rng) -> Vec<u64>;

    /// A number with a skewed distribution: about half of the mass in one of 100 values.
    fn skewed(rng: &mut Rng, n: u64) -> u64 {
        let unit = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        (n as f64).powf(unit) as u64
    }

    fn sorted(mut lines: Vec<u64>) -> Vec<u64> {
        lines.sort_unstable();
        lines
    }

    const SHAPES: [(&str, Shape); 14] = [
        ("all equal", |n, _| vec![7; n as usize]),
        ("all distinct", |n, _| (0..n).collect()),
        ("1,000 values", |n, rng| (0..n).map(|_| rng.next_u64() % 1000).collect()),
        ("skewed", |n, rng| (0..n).map(|_| skewed(rng, n)).collect()),
        ("skewed and sorted", |n, rng| sorted((0..n).map(|_| skewed(rng, n)).collect())),
        ("repeats", |n, rng| (0..n).map(|_| rng.next_u64() % (n / 3)).collect()),
        ("sorted repeats", |n, rng| sorted((0..n).map(|_| rng.next_u64() % (n / 3)).collect())),
        ("twice, adjacent", |n, _| (0..n).map(|i| i / 2).collect()),
        ("twice, far apart", |n, _| (0..n).map(|i| i % (n / 2)).collect()),
        ("twice, 5,000 apart", |n, _| (0..n).map(|i| i / 10_000 * 5000 + i % 5000).collect()),
        ("hot and a tail", |n, rng| {
            (0..n).map(|i| if rng.one_in(4) { i } else { rng.next_u64() % 7 }).collect()
        }),
        ("one half repeats", |n, rng| {
            (0..n).map(|i| if i < n / 2 { i } else { rng.next_u64() % 500 }).collect()
        }),
        ("shuffled", |n, rng| {
            let mut lines: Vec<_> = (n / 2..n + n / 2).collect();
            rng.shuffle(&mut lines);
            lines
        }),
        // In common with "all distinct" only at the end.
        ("equal end", |n, _| (0..n).map(|i| if i < n / 50 * 49 { 2 * n + i } else { i }).collect()),
    ];

    fn line(number: u64, length: fn(u64) -> usize) -> Vec<u8> {
        let text = format!("{number:010}");
        text.bytes().cycle().take(length(number)).chain([b'\n']).collect()
    }

    /// The salt of samples of whole inputs.
    const COMPLETE: u64 = u64::MAX;

    fn counts(op: SetOp, samples: Vec<BlockSample>) -> JobCounts {
        let unknown = BaseCounts::unknown(samples.len());
        refine(unknown, samples.into_iter().map(Some).collect()).derive(op)
    }

    /// The bounds of lines, distinct lines, shared lines and results contain the true numbers in at
    /// least 99 % of the cases, for inputs of which one block in eight is sampled, with all hashes and
    /// with few, beside others of which all blocks are.
    #[test]
    fn bounds_hold_for_all_shapes() {
        const SEEDS: u64 = 6;
        let n = 60_000;
        let lengths: [fn(u64) -> usize; 2] = [
            |_| 30,
            |number| if number.is_multiple_of(40) { 1500 } else { 10 + number as usize % 3 },
        ];
        let dir = tempfile::tempdir().unwrap();
        let mut rng = Rng::new(1);
        let (mut checked, mut missed) = (0, Vec::new());
        for (nth, length) in lengths.into_iter().enumerate() {
            let mut all = Vec::new();
            for (name, shape) in SHAPES {
                let lines = shape(n, &mut rng);
                let path = dir.path().join(name);
                let text: Vec<u8> = lines.iter().flat_map(|&number| line(number, length)).collect();
                std::fs::write(&path, &text).unwrap();
                let input = Input::open_unchecked(&[Source::from_arg(&path)], 0).unwrap();
                let distinct: HashSet<_> = lines.iter().map(|&n| line(n, length)).collect();
                all.push((name, input, distinct));
            }
            for seed in 0..SEEDS {
                let hasher = LineHasher::with_keys([seed, 2, 3]);
                let mut reader = BlockReader::new(&hasher, b'\n', &());
                let blocks = all[0].1[0].length().unwrap() / BLOCK / 8;
                let mut sample = |at: usize, salt| {
                    let input: &Input = &all[at].1[0];
                    let keys = Keys::at_most([1 << 20, 4096, 512][seed as usize % 3]);
                    let blocks = if salt == COMPLETE { MAX_BLOCKS } else { blocks };
                    BlockSample::of_blocks(blocks, keys, &[input], &mut reader, salt).unwrap()
                };
                for at in 0..all.len() {
                    let (name, _, a) = &all[at];
                    let mut check = |what: &str, interval: Interval, found: usize| {
                        checked += 1;
                        let found = found as f64;
                        // Bounds are shown as whole numbers.
                        if found < interval.lower.floor() || found > interval.upper.ceil() {
                            missed
                                .push(format!("{name} {nth} {seed}: {what}: {found} {interval:?}"));
                        }
                    };
                    let dedup = counts(SetOp::Dedup, vec![sample(at, seed * 100)]);
                    check("lines", dedup.first.lines, n as usize);
                    check("distinct", dedup.first.distinct, a.len());
                    for other in [1, 5, (at + 3) % all.len()] {
                        let b = &all[other].2;
                        let common = a.intersection(b).count();
                        for salt in [seed * 100 + 1, COMPLETE] {
                            let samples = vec![sample(at, seed * 100), sample(other, salt)];
                            check(all[other].0, counts(SetOp::Common, samples).result, common);
                        }
                    }
                }
            }
        }
        assert!(missed.len() * 100 <= checked, "{} of {checked}: {missed:#?}", missed.len());
    }
}
