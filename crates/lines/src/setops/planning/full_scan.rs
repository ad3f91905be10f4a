//! Counts from one pass over every input: distinct lines, shared lines and the result, on samples of
//! the hashes.
//!
//! All inputs use one rule: a hash is sampled if it begins with `depth` zero bits. A sampled line is
//! therefore known in every input that has it, and the operation itself can be done on the sample.
//! Every distinct line is sampled with the same probability, whatever its position and its repeats.
//!
//! Cost: one pass over each input; [`SampleMemory`] for the hashes.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};

use super::hash_sample::{HashSample, depth_of};
use super::interval::Interval;
use super::job_counts::{InputCounts, JobCounts};
use crate::error::Result;
use crate::fingerprint::LineHasher;
use crate::input::Input;
use crate::scan::{Batch, Pass, Scratch};
use crate::setops::set_semantics::SetOp;

/// Maximum number of hashes of all inputs of a job: a standard error of 0.2 %.
const MAX_HASHES: u64 = 1 << 19;

/// One input, or several that are taken as one.
pub(crate) struct ScannedInput {
    lines: u64,
    bytes: u64,
    /// Each hash with the number of its lines.
    sample: HashSample,
}

/// Counts the lines of inputs that are taken as one. `among` inputs share `memory` bytes.
pub(crate) fn scan(
    pass: &Pass<'_>,
    hasher: &LineHasher,
    inputs: &[&Input],
    memory: u64,
    among: usize,
) -> Result<ScannedInput> {
    let max = (HashSample::hashes_within(memory).min(MAX_HASHES) / among as u64).max(1 << 10);
    let mut sample = HashSample::with_max(max as usize);
    let depth = AtomicU32::new(0);
    let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
        scratch.hash_lines(batch, hasher.spec());
        let depth = depth.load(Ordering::Relaxed);
        scratch.hashes.retain(|&hash| depth_of(hash) >= depth);
    };
    let fold = |_: &Batch<'_>, scratch: &mut Scratch| {
        scratch.hashes.iter().for_each(|&hash| sample.add(hash));
        depth.store(sample.depth(), Ordering::Relaxed);
        Ok(ControlFlow::Continue(()))
    };
    let stats = pass.run("counting", inputs, map, fold)?;
    Ok(ScannedInput { lines: stats.lines, bytes: stats.bytes, sample })
}

/// Does the operation on the samples. Of a symmetric difference, the inputs are its sides.
pub(crate) fn counts(op: SetOp, mut inputs: Vec<ScannedInput>) -> JobCounts {
    let depth = inputs.iter().map(|input| input.sample.depth()).max().unwrap_or(0);
    inputs.iter_mut().for_each(|input| input.sample.deepen(depth));
    let counted = |count: usize| Interval::of_count(count as f64, f64::from(depth).exp2());
    let of_input = |input: &ScannedInput| InputCounts {
        bytes: Interval::exact(input.bytes as f64),
        lines: Interval::exact(input.lines as f64),
        distinct: counted(input.sample.len()).at_most(input.lines as f64),
    };
    let Some((first, others)) = inputs.split_first() else { return JobCounts::default() };
    let holders = |hash| others.iter().filter(|other| other.sample.contains(hash)).count();
    let result = first.sample.iter().filter(|&(hash, lines)| match op {
        SetOp::Common => holders(hash) == others.len(),
        SetOp::AtLeast(number) => holders(hash) >= usize::from(number),
        SetOp::Diff | SetOp::SymDiff => holders(hash) == 0,
        SetOp::Dedup | SetOp::DedupLast => true,
        SetOp::Duplicates => lines > 1.0,
        SetOp::Unique => lines == 1.0,
    });
    let mut result = result.count();
    let shared: Vec<_> = others.iter().map(|other| first.sample.shared(&other.sample)).collect();
    let mut first_counts = of_input(first);
    if let (SetOp::SymDiff, [second], [shared]) = (op, others, &shared[..]) {
        result += second.sample.len() - shared;
        first_counts.lines = first_counts.lines + of_input(second).lines;
        first_counts.bytes = first_counts.bytes + of_input(second).bytes;
        first_counts.distinct = counted(first.sample.len() + second.sample.len() - shared);
        return JobCounts { first: first_counts, result: counted(result), ..Default::default() };
    }
    // The values are the sums over the sample.
    let weight = f64::from(depth).exp2();
    let rows = others.iter().zip(&shared).map(|(other, &shared)| {
        [(first, other), (other, first)].map(|(input, held)| {
            let held = input.sample.iter().filter(|&(hash, _)| held.sample.contains(hash));
            let rows = held.map(|(_, lines)| lines).sum::<f64>() * weight;
            of_input(input).rows_of(counted(shared), rows)
        })
    });
    JobCounts {
        rows: rows.collect(),
        first: first_counts,
        others: others.iter().map(of_input).collect(),
        shared: shared.into_iter().map(counted).collect(),
        result: counted(result),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// With 500 keys, each range contains the true number in at least 99 % of the cases: samples of
    /// at most 1024 hashes, of inputs with repeats that share a third of their lines.
    #[test]
    fn bounds_hold_for_500_keys() {
        const KEYS: u64 = 500;
        // At these sizes one depth is about as likely as the next.
        let first = || (0..4200).chain(0..1400);
        let second = || 2800..7000;
        let (mut checked, mut missed) = (0, Vec::new());
        for key in 0..KEYS {
            let hasher = LineHasher::with_keys([key, 0, 0]);
            let scanned = |lines: &mut dyn Iterator<Item = u64>| {
                let mut scanned =
                    ScannedInput { lines: 0, bytes: 0, sample: HashSample::with_max(1024) };
                for line in lines {
                    scanned.lines += 1;
                    scanned.sample.add(hasher.filter_hash(&line.to_le_bytes()));
                }
                scanned
            };
            for (op, result) in [
                (SetOp::Dedup, 4200),
                (SetOp::Duplicates, 1400),
                (SetOp::Unique, 2800),
                (SetOp::Common, 1400),
                (SetOp::Diff, 2800),
                (SetOp::SymDiff, 5600),
            ] {
                let mut inputs = vec![scanned(&mut first())];
                if op.takes_others() {
                    inputs.push(scanned(&mut second()));
                }
                let counts = counts(op, inputs);
                let distinct = if op == SetOp::SymDiff { 7000 } else { 4200 };
                let mut numbers = HashMap::from([
                    ("result", (counts.result, result)),
                    ("distinct", (counts.first.distinct, distinct)),
                ]);
                if let [shared] = counts.shared[..] {
                    numbers.insert("shared", (shared, 1400));
                }
                for (name, (interval, found)) in numbers {
                    checked += 1;
                    let found = f64::from(found);
                    if found < interval.lower.floor() || found > interval.upper.ceil() {
                        missed.push(format!("{key} {op:?} {name}: {found} {interval:?}"));
                    }
                }
            }
        }
        assert!(missed.len() * 100 <= checked, "{} of {checked}: {missed:#?}", missed.len());
    }
}
