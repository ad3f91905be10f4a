//! Estimates of an exact job: runs through the phases of its strategy in numbers, with the same
//! divisions of memory as the phases themselves.
//!
//! Lines, overlaps and repeats come from samples; the rest is arithmetic. The time is uncertain and
//! given as a range, from the cost model, a short measurement of the hash functions on this machine,
//! and assumed disk speeds.

use std::time::Instant;

use petal::{BlockedLayout, ByteSize};
use serde::Serialize;

use super::job::ExactJob;
use super::join::choose_build_side;
use super::passes::HASH_LOG_MEMORY;
use super::records::{FIRST_RECORD, OTHER_RECORD};
use crate::error::{Error, Result};
use crate::fingerprint::{LineHasher, Table};
use crate::io::{Input, SpillWriter};
use crate::memory::least_records;
use crate::setops::planning::Sample;
use crate::setops::planning::cost;
use crate::setops::planning::filter_bytes;
use crate::setops::planning::{InputSizes, Plan, Strategy};
use crate::setops::positions::Spans;
use crate::setops::set_semantics::{BuildSide, SetOp};

/// The estimate of an exact job.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct JobEstimate {
    /// The first input, then the others.
    pub inputs: Vec<InputEstimate>,
    /// The strategy.
    pub strategy: &'static str,
    /// Passes over inputs.
    pub passes: u64,
    /// Bytes of input read in all passes.
    pub bytes_read: u64,
    /// Bytes written to the temporary directory.
    pub spilled: u64,
    /// Candidates: lines that the filter cannot rule out.
    pub candidates: u64,
    /// False positives among the candidates.
    pub false_candidates: u64,
    /// Lines of the result.
    pub kept: u64,
    /// Bounds of the lines of the result.
    pub kept_range: [u64; 2],
    /// Expected range of the time in seconds.
    pub seconds: [f64; 2],
}

/// The estimate of an input from a sample.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct InputEstimate {
    /// Bytes of lines.
    pub bytes: u64,
    /// Lines.
    pub lines: u64,
    /// Distinct lines. The estimate may be inaccurate if lines are repeated unevenly.
    pub distinct: u64,
    /// Bounds of the distinct lines; equal if all lines were sampled.
    pub distinct_range: [u64; 2],
}

impl InputEstimate {
    fn of(sample: &Sample) -> Self {
        let Sample { bytes, lines, distinct, distinct_range, .. } = *sample;
        Self { bytes, lines, distinct, distinct_range }
    }
}

/// Assumed bytes a second of slow and of fast disks.
const SLOW_DISK: f64 = 150e6;
const FAST_DISK: f64 = 2e9;

impl ExactJob<'_> {
    /// Estimates the job. `with_output`: include the cost of printing.
    pub(crate) fn estimate(
        &self,
        first: &[Input],
        others: &[Input],
        with_output: bool,
    ) -> Result<JobEstimate> {
        if let Some(stream) = first.iter().chain(others).find(|input| !input.is_repeatable()) {
            return Err(Error::unforeseeable(stream.name()));
        }
        let sizes = self.sizes(first, others)?;
        let plan = match self.strategy {
            Some(strategy) => sizes.plan(strategy, false, &self.budget),
            None => sizes.choose(&self.budget),
        };
        let mut estimate = self.simulate(&sizes, plan, with_output).out;
        let all = [&sizes.first].into_iter().chain(&sizes.others);
        estimate.inputs = all.map(InputEstimate::of).collect();
        let printed = estimate.kept as f64 * cost::print(sizes.first.line_length());
        let cost = sizes.cost(plan, &self.budget) + if with_output { printed } else { 0.0 };
        let cpu = cost * 1e-9 * speed(&self.hasher) / self.budget.workers as f64;
        // Input outside of the page cache is read from the disk once; spilled data may be written
        // to it.
        let all = [&sizes.first].into_iter().chain(&sizes.others);
        let cold = all.map(|sample| sample.bytes as f64 * sample.cold).sum::<f64>();
        let spilled = estimate.spilled as f64;
        estimate.seconds = [
            (cpu * 0.7).max(cold / FAST_DISK),
            cpu * 1.6 + cold / SLOW_DISK + 2.0 * spilled / FAST_DISK,
        ];
        Ok(estimate)
    }

    /// Returns the bytes that the phases of this plan will report as progress: of inputs, read or
    /// skipped, and of the records that are joined.
    pub(super) fn expected_bytes(&self, sizes: &InputSizes, plan: Plan, with_output: bool) -> u64 {
        let run = self.simulate(sizes, plan, with_output);
        run.out.bytes_read.saturating_add(run.skipped).saturating_add(run.records)
    }

    /// Returns the bytes that the strategy `Partition` will report as progress after the table became
    /// full: `rest` bytes of the first input are undecided, and the table holds `entries` fingerprints.
    /// 0 if nothing is undecided.
    pub(super) fn expected_bytes_of_rest(
        &self,
        sizes: &InputSizes,
        rest: u64,
        entries: u64,
        with_output: bool,
    ) -> u64 {
        if rest == 0 {
            return 0;
        }
        let lines = (rest as f64 / sizes.first.line_length().max(1.0)) as u64;
        let passes = 1 + u64::from(with_output);
        let records = lines
            .saturating_mul(FIRST_RECORD as u64)
            .saturating_add(entries.saturating_mul(OTHER_RECORD as u64));
        rest.saturating_mul(passes).saturating_add(records)
    }

    /// Runs through the phases of a plan in numbers.
    fn simulate<'a>(&'a self, sizes: &'a InputSizes, plan: Plan, with_output: bool) -> Run<'a> {
        let work = self.budget.work;
        let out = JobEstimate { strategy: plan.strategy.name(), ..JobEstimate::default() };
        let mut run = Run { sizes, plan, job: self, held: 0, records: 0, skipped: 0, out };
        let kept = run.kept();
        run.out.kept = kept as u64;
        run.out.kept_range = run.kept_range();
        match (plan.strategy, self.op) {
            (Strategy::Memory, _) => run.memory(work),
            (Strategy::Narrow, SetOp::Common) if !sizes.others.is_empty() => {
                run.narrow_common(kept);
            }
            (Strategy::Narrow, op) if !op.separates_others() => run.narrow_diff(kept),
            _ => run.partition(),
        }
        run.keep(work / 2);
        if plan.strategy != Strategy::Memory && with_output {
            let dropped = plan.strategy == Strategy::Narrow
                && !matches!(self.op, SetOp::Common | SetOp::Duplicates);
            run.print(kept, dropped && run.out.strategy == Strategy::Narrow.name());
        }
        run
    }
}

/// Returns the time of hashing on this machine relative to the machine of the cost model.
fn speed(hasher: &LineHasher) -> f64 {
    const LINES: usize = 4000;
    const NANOSECONDS: f64 = 24.0;
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

/// The phases of a job in numbers.
struct Run<'a> {
    sizes: &'a InputSizes,
    plan: Plan,
    job: &'a ExactJob<'a>,
    /// Bytes of records in memory.
    held: u64,
    /// Bytes of all records.
    records: u64,
    /// Bytes of inputs that are skipped in a pass.
    skipped: u64,
    out: JobEstimate,
}

impl Run<'_> {
    fn work(&self) -> u64 {
        self.job.budget.work
    }

    fn read(&mut self, sample: &Sample) {
        self.out.passes += 1;
        self.out.bytes_read += sample.bytes;
    }

    fn filter_memory(&self) -> u64 {
        self.work() - least_records(self.work())
    }

    /// Returns the size and the rate of the filter for `keys` keys.
    fn filter(&self, keys: u64, memory: u64) -> (u64, f64) {
        let keys = keys.max(1);
        let shape = BlockedLayout::for_memory(keys, ByteSize::bytes(filter_bytes(keys, memory)));
        shape.map_or((memory, 1.0), |shape| (shape.size_bytes(), shape.fpr(keys)))
    }

    /// Writes records besides a filter of `filter` bytes.
    fn write_records(&mut self, records: f64, size: usize, filter: u64) {
        let bytes = (records * size as f64) as u64;
        let free = self.work().saturating_sub(filter);
        let least = least_records(self.work()).min(free);
        let mut allowance = free.saturating_sub(self.held);
        if allowance < least.max(free / 2) {
            self.keep(0);
            allowance = free;
        }
        let parts = self.job.partition_scheme(self.plan, self.sizes, None).partitions();
        let written = SpillWriter::written(bytes, parts, allowance);
        self.out.spilled += written;
        self.records += bytes;
        self.held += bytes.saturating_sub(written);
    }

    /// Writes records to disk until those in memory take at most `most` bytes.
    fn keep(&mut self, most: u64) {
        let more = self.held.saturating_sub(most);
        self.held -= more;
        self.out.spilled += more;
    }

    fn log(&mut self, keys: f64) {
        self.out.spilled += SpillWriter::written((keys * 8.0) as u64, 1, HASH_LOG_MEMORY);
    }

    /// Returns the distinct lines of the first input that are in the result.
    fn kept(&self) -> f64 {
        let InputSizes { op, first, others, .. } = self.sizes;
        let overlaps = (0..others.len()).map(|other| self.sizes.share_of_first_in(other));
        let share = match op {
            SetOp::Common => overlaps.fold(1.0, f64::min),
            // As if the others shared all lines that they can.
            SetOp::AtLeast(number) => {
                let mut overlaps: Vec<_> = overlaps.collect();
                overlaps.sort_by(|a, b| b.total_cmp(a));
                overlaps.get(usize::from(*number).saturating_sub(1)).copied().unwrap_or(0.0)
            }
            SetOp::Diff => (1.0 - overlaps.sum::<f64>()).max(0.0),
            SetOp::Dedup => 1.0,
            SetOp::Duplicates => self.share_of_duplicates(),
            // `SymDiff`: as if no line occurred twice in one input.
            SetOp::SymDiff | SetOp::Unique => 1.0 - self.share_of_duplicates(),
        };
        first.distinct as f64 * share
    }

    /// Returns the share of the distinct lines of the first input that occur more than once, as if
    /// none occurred more than twice.
    fn share_of_duplicates(&self) -> f64 {
        let Sample { lines, distinct, .. } = self.sizes.first;
        (lines.saturating_sub(distinct) as f64 / distinct.max(1) as f64).min(1.0)
    }

    /// Returns the bounds of the lines of the result.
    fn kept_range(&self) -> [u64; 2] {
        let InputSizes { op, first, others, .. } = self.sizes;
        let all = || others.iter().chain([first]).map(|sample| sample.distinct_range);
        let [least, most] = first.distinct_range;
        match op {
            SetOp::Dedup => [least, most],
            SetOp::Duplicates | SetOp::Unique | SetOp::AtLeast(_) | SetOp::SymDiff => [0, most],
            // The shared lines are estimated from pairs of lines, also if all lines were sampled.
            SetOp::Common => [0, all().map(|[_, most]| most).min().unwrap_or(most)],
            SetOp::Diff => {
                let others = all().take(others.len()).map(|[_, most]| most);
                [least.saturating_sub(others.fold(0, u64::saturating_add)), most]
            }
        }
    }

    fn memory(&mut self, work: u64) {
        let sizes = self.sizes;
        let distinct: Vec<_> = sizes.others.iter().map(|other| other.distinct).collect();
        let capacity = Table::capacity(work) / 10 * 9;
        let (seed, _) = choose_build_side(sizes.op, sizes.first.distinct, &distinct, capacity);
        if seed == BuildSide::First {
            self.read(&sizes.first);
        }
        sizes.others.iter().for_each(|other| self.read(other));
        self.read(&sizes.first);
    }

    fn partition(&mut self) {
        let sizes = self.sizes;
        for other in &sizes.others {
            self.read(other);
            self.write_records(other.lines as f64, OTHER_RECORD, 0);
        }
        self.read(&sizes.first);
        self.write_records(sizes.first.lines as f64, FIRST_RECORD, 0);
    }

    fn narrow_common(&mut self, kept: f64) {
        let sizes = self.sizes;
        let Some((begin, next, overlap)) = sizes.sides(self.plan) else { return };
        let (there, back) = if self.plan.build_from_first {
            (OTHER_RECORD, FIRST_RECORD)
        } else {
            (FIRST_RECORD, OTHER_RECORD)
        };
        let (size, rate) = self.filter(begin.lines, self.filter_memory());
        self.read(begin);
        let right = next.lines as f64 * overlap;
        let wrong = (next.lines as f64 - right) * rate;
        self.read(next);
        self.write_records(right + wrong, there, size + self.plan.candidate_filter_bytes);
        if self.plan.candidate_filter_bytes == 0 {
            self.log(right + wrong);
        }
        self.out.candidates = (right + wrong) as u64;
        self.out.false_candidates = wrong as u64;
        let memory = self.filter_memory().saturating_sub(self.held).max(self.work() / 4);
        let (size, rate) = match self.plan.candidate_filter_bytes {
            0 => self.filter(self.out.candidates, memory),
            // Sized for twice the estimate.
            bytes => (bytes, self.filter(self.out.candidates, bytes).1),
        };
        let confirm = |run: &mut Self, sample: &Sample, shared: f64, record| {
            run.read(sample);
            let rest = (sample.lines as f64 - shared).max(0.0);
            run.write_records(shared + rest * rate, record, size);
        };
        confirm(self, begin, right.min(begin.lines as f64), back);
        for (j, other) in sizes.others.iter().enumerate() {
            if j != self.plan.smallest {
                confirm(self, other, kept, OTHER_RECORD);
            }
        }
    }

    fn narrow_diff(&mut self, kept: f64) {
        let sizes = self.sizes;
        // Lines that are absent from the filter when they are inserted.
        let new = match sizes.op {
            SetOp::Duplicates | SetOp::Unique | SetOp::SymDiff => sizes.first.distinct as f64,
            _ => kept,
        };
        let (size, _) = self.filter(sizes.lines(), self.filter_memory());
        if !sizes.others.is_empty() {
            self.out.passes += 1;
            self.out.bytes_read += sizes.others.iter().map(|other| other.bytes).sum::<u64>();
        }
        self.read(&sizes.first);
        let right = sizes.first.lines as f64 - new;
        let wrong = new * self.mean_rate(size, new as u64);
        self.log(right + wrong);
        if right + wrong > sizes.first.lines as f64 / 2.0 {
            self.out.strategy = "narrow, then partition";
            return self.partition();
        }
        self.out.candidates = (right + wrong) as u64;
        self.out.false_candidates = wrong as u64;
        if right + wrong < 1.0 {
            return;
        }
        let (size, rate) = self.filter(self.out.candidates, self.filter_memory());
        let of_others: f64 = sizes.others.iter().map(|other| other.lines as f64).sum();
        let shared: f64 = (0..sizes.others.len())
            .map(|j| sizes.others[j].lines as f64 * sizes.share_in_first(j))
            .sum();
        if !sizes.others.is_empty() {
            self.out.passes += 1;
            self.out.bytes_read += sizes.others.iter().map(|other| other.bytes).sum::<u64>();
            self.write_records(shared + (of_others - shared) * rate, OTHER_RECORD, size);
        }
        self.read(&sizes.first);
        // The first occurrence of a repeated line is a record too.
        let copies = (sizes.first.lines - sizes.first.distinct.min(sizes.first.lines)) as f64;
        let lines = right + wrong + copies;
        let rest = (sizes.first.lines as f64 - lines).max(0.0);
        self.write_records(lines + rest * rate, FIRST_RECORD, size);
    }

    /// Returns the mean false-positive rate while `new` lines of the first input are inserted after
    /// the others.
    fn mean_rate(&self, size: u64, new: u64) -> f64 {
        const STEPS: u64 = 32;
        let others: u64 = self.sizes.others.iter().map(|other| other.distinct).sum();
        let Ok(shape) = BlockedLayout::for_memory(self.sizes.lines().max(1), ByteSize::bytes(size))
        else {
            return 1.0;
        };
        let at = |step: u64| shape.fpr(others + new / STEPS * step);
        (0..STEPS).map(|step| (at(step) + at(step + 1)) / 2.0).sum::<f64>() / STEPS as f64
    }

    /// The positions and the last pass: over the whole first input, or over the chunks with kept
    /// lines.
    fn print(&mut self, kept: f64, dropped: bool) {
        let first = &self.sizes.first;
        let budget = &self.job.budget;
        let lines = first.lines.max(1) as f64;
        let marks = if dropped { lines - kept } else { kept };
        let workers = budget.workers as u64;
        let memory = (self.work() - self.held.min(self.work() / 2)) / workers / 8;
        let share = self.work() / 8 / workers;
        let spans = Spans::new(first.bytes, SpillWriter::max_streams(share)).count();
        let each = (marks * 8.0 / workers as f64) as u64;
        self.out.spilled += workers * SpillWriter::written(each, spans, memory);
        if dropped {
            return self.read(first);
        }
        if kept >= 1.0 {
            let in_chunk = budget.chunk as f64 * lines / first.bytes.max(1) as f64;
            let empty = (1.0 - (kept / lines).min(1.0)).powf(in_chunk);
            self.out.passes += 1;
            let read = (first.bytes as f64 * (1.0 - empty)) as u64;
            self.out.bytes_read += read;
            self.skipped += first.bytes.saturating_sub(read);
        }
    }
}
