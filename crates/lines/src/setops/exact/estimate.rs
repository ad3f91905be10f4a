//! Estimates of an exact job: runs through the phases of its strategy in numbers.
//!
//! The strategy is the one that the job would choose, from the same samples. The numbers come from one
//! pass over the inputs, or from random blocks of them; both have bounds, and the phases are calculated
//! at all ends of the bounds. The time is uncertain and given as a range, from the cost model, a short
//! measurement of the hash functions on this machine, and assumed disk speeds.

use std::time::Instant;

use serde::Serialize;

use super::ExactJob;
use super::simulation::{Chance, PhaseTotals};
use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::LineHasher;
use crate::input::Input;
use crate::setops::planning::block_sample::{self, BlockSample};
use crate::setops::planning::{
    BaseCounts, CONFIDENCE, InputCounts, InputSizes, Interval, JobCounts, MAX_DECOMPRESSED, Place,
    Plan, Sample,
};
use crate::setops::planning::{cost, full_scan};
use crate::setops::set_semantics::SetOp;

/// How the lines of the inputs are counted for an estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// By a full scan if the inputs are files of at most 512 MiB together, and compressed ones of at
    /// most 64 MiB, decompressed; otherwise by samples.
    #[default]
    Auto,
    /// By random blocks of files, at most 256 MiB of each, and by the first 64 MiB of compressed
    /// inputs.
    Sample,
    /// By one pass over all inputs.
    FullScan,
}

/// Maximum size of inputs that are scanned without being asked to: a second or two.
const MAX_AUTO_SCAN: u64 = 512 << 20;

/// The bounds of a number at 99 % confidence. As JSON an array of both; without an upper bound the
/// second one is `null`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(into = "(u64, Option<u64>)")]
pub struct Bounds {
    /// The lower bound.
    pub lower: u64,
    /// The upper bound; `None` if there is none.
    pub upper: Option<u64>,
}

impl Bounds {
    /// Returns whether both bounds are equal.
    #[must_use]
    pub fn is_exact(self) -> bool {
        self.upper == Some(self.lower)
    }

    fn of(interval: Interval) -> Self {
        let upper = interval.upper.is_finite().then(|| interval.upper.ceil() as u64);
        Self { lower: interval.lower as u64, upper }
    }
}

impl From<Bounds> for (u64, Option<u64>) {
    fn from(bounds: Bounds) -> Self {
        (bounds.lower, bounds.upper)
    }
}

/// The estimate of an exact job. A range has the bounds of the number before it.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct JobEstimate {
    /// The first input, then the others.
    pub inputs: Vec<InputEstimate>,
    /// Whether all lines were read. If not, the numbers are from samples.
    pub full_scan: bool,
    /// The probability with which a range contains the number that the job will find.
    pub confidence: f64,
    /// The strategy.
    pub strategy: &'static str,
    /// Passes over inputs.
    pub passes: u64,
    /// Bounds of the passes.
    pub passes_range: Bounds,
    /// Bytes of input read in all passes.
    pub bytes_read: u64,
    /// Bounds of the bytes read.
    pub bytes_read_range: Bounds,
    /// Bytes written to the temporary directory.
    pub spilled: u64,
    /// Bounds of the bytes written.
    pub spilled_range: Bounds,
    /// Candidates: lines that the filter cannot rule out.
    pub candidates: u64,
    /// Bounds of the candidates.
    pub candidates_range: Bounds,
    /// False positives among the candidates.
    pub false_candidates: u64,
    /// Bounds of the false positives.
    pub false_candidates_range: Bounds,
    /// Lines of the result.
    pub kept: u64,
    /// Bounds of the lines of the result.
    pub kept_range: Bounds,
    /// Expected range of the time in seconds.
    pub seconds: [f64; 2],
}

/// The estimate of an input. A range has the bounds of the number before it.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct InputEstimate {
    /// Bytes of lines.
    pub bytes: u64,
    /// Bounds of the bytes.
    pub bytes_range: Bounds,
    /// Lines.
    pub lines: u64,
    /// Bounds of the lines.
    pub lines_range: Bounds,
    /// Distinct lines.
    pub distinct: u64,
    /// Bounds of the distinct lines.
    pub distinct_range: Bounds,
}

impl InputEstimate {
    fn of(counts: &InputCounts) -> Self {
        let InputCounts { bytes, lines, distinct } = *counts;
        Self {
            bytes: bytes.value as u64,
            bytes_range: Bounds::of(bytes),
            lines: lines.value.round() as u64,
            lines_range: Bounds::of(lines),
            distinct: distinct.value.round() as u64,
            distinct_range: Bounds::of(distinct),
        }
    }
}

/// Assumed bytes a second of slow and of fast disks.
const SLOW_DISK: f64 = 150e6;
const FAST_DISK: f64 = 2e9;

/// The places within bounds at which a job is simulated.
const ENDS: [Place; 2] = [
    |interval| interval.lower,
    // Without an upper bound only the value is known.
    |interval| if interval.upper.is_finite() { interval.upper } else { interval.value },
];

impl ExactJob<'_> {
    /// Estimates the job. `with_output`: include the cost of printing.
    pub(crate) fn estimate(
        &self,
        first: &[Input],
        others: &[Input],
        with_output: bool,
        counting: Counting,
    ) -> Result<JobEstimate> {
        if let Some(stream) = first.iter().chain(others).find(|input| !input.is_repeatable()) {
            let problem = "is not a file, so its lines cannot be sampled";
            return Err(Error::new(ErrorKind::Setting, problem)
                .of(stream.name())
                .advise("save it to a file first"));
        }
        let sizes = self.sizes(first, others)?;
        let plan = sizes.choose(self.strategy, &self.budget);
        let bytes = sizes.others.iter().map(|other| other.bytes).sum::<u64>() + sizes.first.bytes;
        let objects = first.iter().chain(others).any(Input::is_object);
        let full_scan = match counting {
            Counting::Auto => !objects && bytes <= MAX_AUTO_SCAN && sizes.have_exact_bytes(),
            Counting::Sample => false,
            Counting::FullScan => true,
        };
        let counts = self.counts(first, others, &sizes, full_scan)?;
        let speed = speed(&self.hasher);
        let planned = &sizes;
        let at = |places: [Place; 4], chance| {
            let sizes = planned.with_counts(&counts, places);
            let totals = self.simulate(planned, &sizes, plan, with_output, chance).out;
            (totals, self.seconds(&sizes, plan, &totals, with_output, speed))
        };
        let value: Place = |interval| interval.value;
        let estimated = at([value; 4], Chance::Expected);
        let mut all = vec![estimated];
        for ends in 0..16 {
            let places = [0, 1, 2, 3].map(|axis| ENDS[ends >> axis & 1]);
            all.extend([Chance::Expected, Chance::Low, Chance::High].map(|c| at(places, c)));
        }
        let bounded = counts.are_bounded();
        let range = |number: fn(&PhaseTotals) -> [u64; 2]| {
            let numbers = || all.iter().map(|(totals, _)| number(totals));
            let upper = bounded.then(|| numbers().map(|[_, upper]| upper).max().unwrap_or(0));
            Bounds { lower: numbers().map(|[lower, _]| lower).min().unwrap_or(0), upper }
        };
        let (totals, _) = estimated;
        let inputs = [&counts.first].into_iter().chain(&counts.others);
        Ok(JobEstimate {
            inputs: inputs.map(InputEstimate::of).collect(),
            full_scan,
            confidence: CONFIDENCE,
            strategy: if totals.then_partition {
                plan.strategy.name_then_partition()
            } else {
                plan.strategy.name()
            },
            passes: totals.passes,
            passes_range: range(|totals| [totals.passes; 2]),
            bytes_read: totals.bytes_read,
            bytes_read_range: range(|totals| totals.bytes_read_bounds),
            spilled: totals.spilled,
            spilled_range: range(|totals| totals.spilled_bounds),
            candidates: totals.candidates,
            candidates_range: range(|totals| {
                let right = totals.candidates.saturating_sub(totals.false_candidates);
                false_candidates(totals).map(|wrong| right + wrong)
            }),
            false_candidates: totals.false_candidates,
            false_candidates_range: range(false_candidates),
            kept: counts.result.value.round() as u64,
            kept_range: Bounds::of(counts.result),
            seconds: [
                all.iter().map(|(_, seconds)| seconds[0]).fold(f64::INFINITY, f64::min),
                all.iter().map(|(_, seconds)| seconds[1]).fold(0.0, f64::max),
            ],
        })
    }

    /// Counts lines by a full scan or by samples.
    fn counts(
        &self,
        first: &[Input],
        others: &[Input],
        sizes: &InputSizes,
        full_scan: bool,
    ) -> Result<JobCounts> {
        // The sides of a symmetric difference are one first input in the job.
        let (first, second) = match self.op {
            SetOp::SymDiff => first.split_at(self.boundary),
            _ => (first, &[][..]),
        };
        let mut inputs: Vec<Vec<&Input>> = vec![first.iter().collect()];
        match self.op {
            SetOp::SymDiff => inputs.push(second.iter().collect()),
            _ => inputs.extend(others.iter().map(|other| vec![other])),
        }
        let (among, memory) = (inputs.len(), self.budget.work);
        if full_scan {
            let pass = self.pass();
            let scan =
                |inputs: &Vec<_>| full_scan::scan(&pass, &self.hasher, inputs, memory, among);
            return Ok(full_scan::counts(self.op, inputs.iter().map(scan).collect::<Result<_>>()?));
        }
        // Both sides of a symmetric difference are one sample.
        let sampled = [&sizes.first].into_iter().chain(&sizes.others).chain([&sizes.first]);
        let hasher = &self.hasher;
        let sample = |((number, inputs), sampled): ((usize, &Vec<&Input>), &Sample)| {
            if inputs.iter().all(|input| input.has_positions()) {
                let numbers = [number, among];
                let (delimiter, progress) = (self.delimiter, self.progress);
                BlockSample::of(inputs, hasher, delimiter, memory, numbers, progress).map(Some)
            } else if sampled.has_exact_bytes && sampled.bytes <= MAX_DECOMPRESSED {
                BlockSample::complete(inputs, &self.pass(), hasher, memory, among).map(Some)
            } else {
                Ok(None)
            }
        };
        let samples = inputs.iter().enumerate().zip(sampled).map(sample);
        let samples = samples.collect::<Result<Vec<_>>>()?;
        let counts = if samples.iter().all(Option::is_some) {
            BaseCounts::unknown(among)
        } else if self.op == SetOp::SymDiff {
            return Ok(sizes.extrapolated().derive_joined_sides());
        } else {
            sizes.extrapolated()
        };
        Ok(block_sample::refine(counts, samples).derive(self.op))
    }

    /// Returns the range of the time.
    fn seconds(
        &self,
        sizes: &InputSizes,
        plan: Plan,
        totals: &PhaseTotals,
        with_output: bool,
        speed: f64,
    ) -> [f64; 2] {
        let printed = totals.kept as f64 * cost::print(sizes.first.line_length());
        let cost = sizes.cost(plan, &self.budget) + if with_output { printed } else { 0.0 };
        let cpu = cost * 1e-9 * speed / self.budget.workers as f64;
        // Input outside of the page cache is read from the disk once; spilled data may be written
        // to it.
        let all = [&sizes.first].into_iter().chain(&sizes.others);
        let cold = all.map(|sample| sample.bytes as f64 * sample.cold).sum::<f64>();
        let spilled = totals.spilled as f64;
        [
            (cpu * 0.7).max(cold / FAST_DISK),
            cpu * 1.6 + cold / SLOW_DISK + 2.0 * spilled / FAST_DISK,
        ]
    }
}

/// Returns the bounds of the false positives among the candidates.
fn false_candidates(totals: &PhaseTotals) -> [u64; 2] {
    let [lower, upper] = totals.false_bounds;
    [lower as u64, upper.ceil() as u64]
}

/// Returns the time of hashing on this machine relative to the machine of the cost model.
fn speed(hasher: &LineHasher) -> f64 {
    const LINES: usize = 4000;
    const NANOSECONDS: f64 = 11.0;
    let text = [b'x'; 80];
    let begun = Instant::now();
    let mut fingerprints = Vec::with_capacity(LINES);
    let lines = (0..LINES).map(|line| &text[line % 7..][..64]);
    let keys = lines.clone().fold(0, |sum, line| hasher.filter_hash(line) ^ sum);
    hasher.fingerprints(lines, &mut fingerprints);
    std::hint::black_box((keys, fingerprints));
    let taken = begun.elapsed().as_nanos() as f64 / LINES as f64;
    (taken / NANOSECONDS).clamp(0.3, 5.0)
}
