//! The phases of an exact job in numbers, with the same divisions of memory as the phases themselves.

use petal::{BlockedLayout, ByteSize};

use super::job::ExactJob;
use super::join::choose_build_side;
use super::passes::HASH_LOG_MEMORY;
use super::records::{FIRST_RECORD, OTHER_RECORD};
use crate::fingerprint::Table;
use crate::io::SpillWriter;
use crate::memory::least_records;
use crate::setops::planning::Sample;
use crate::setops::planning::filter_bytes;
use crate::setops::planning::{InputSizes, Plan, Strategy};
use crate::setops::positions::Spans;
use crate::setops::set_semantics::{BuildSide, SetOp};

/// What the phases of a job do.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PhaseTotals {
    pub(super) strategy: &'static str,
    /// Passes over inputs.
    pub(super) passes: u64,
    /// Bytes of input read in all passes, and their bounds: lines of the result may be close to each
    /// other or far apart.
    pub(super) bytes_read: u64,
    pub(super) bytes_read_bounds: [u64; 2],
    /// Bytes written to the temporary directory, and their bounds.
    pub(super) spilled: u64,
    pub(super) spilled_bounds: [u64; 2],
    /// Lines that the filter cannot rule out, and false positives among them.
    pub(super) candidates: u64,
    pub(super) false_candidates: u64,
    /// Lines of the result.
    pub(super) kept: u64,
}

impl ExactJob<'_> {
    /// Returns the bytes that the phases of this plan will report as progress: of inputs, read or
    /// skipped, and of the records that are joined.
    pub(super) fn expected_bytes(&self, sizes: &InputSizes, plan: Plan, with_output: bool) -> u64 {
        let run = self.simulate(sizes, sizes, plan, with_output);
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

    /// Runs through the phases of a plan in numbers. `planned`: the sizes that the job will assume.
    pub(super) fn simulate<'a>(
        &'a self,
        planned: &InputSizes,
        sizes: &'a InputSizes,
        plan: Plan,
        with_output: bool,
    ) -> Run<'a> {
        let work = self.budget.work;
        let out = PhaseTotals { strategy: plan.strategy.name(), ..PhaseTotals::default() };
        let mut run = Run {
            sizes,
            plan,
            job: self,
            held: 0,
            records: 0,
            smaller: 0,
            skipped: 0,
            rest: 1.0,
            out,
        };
        let kept = run.kept();
        run.out.kept = kept as u64;
        match (plan.strategy, self.op) {
            (Strategy::Memory, _) => run.memory(planned, work, kept),
            (Strategy::Narrow, SetOp::Common) if !sizes.others.is_empty() => {
                run.narrow_common(kept);
            }
            (Strategy::Narrow, op) if !op.separates_others() => run.narrow_diff(kept),
            _ => run.partition(0),
        }
        run.keep(work / 2);
        if run.out.strategy != Strategy::Memory.name() && with_output {
            let dropped = plan.strategy == Strategy::Narrow
                && !matches!(self.op, SetOp::Common | SetOp::Duplicates);
            let kept = kept * run.rest;
            run.print(kept, dropped && run.out.strategy == Strategy::Narrow.name());
        }
        if run.out.bytes_read_bounds == [0; 2] {
            run.out.bytes_read_bounds = [run.out.bytes_read; 2];
        }
        run.out.spilled_bounds = run.spilled_bounds();
        run
    }
}

/// The phases of a job in numbers.
pub(super) struct Run<'a> {
    sizes: &'a InputSizes,
    plan: Plan,
    job: &'a ExactJob<'a>,
    /// Bytes of records in memory.
    held: u64,
    /// Bytes of all records.
    records: u64,
    /// Bytes of hashes in logs and of positions.
    smaller: u64,
    /// Bytes of inputs that are skipped in a pass.
    skipped: u64,
    /// The share of the first input that is not decided in memory.
    rest: f64,
    pub(super) out: PhaseTotals,
}

impl Run<'_> {
    fn work(&self) -> u64 {
        self.job.budget.work
    }

    fn read(&mut self, sample: &Sample) {
        self.read_part(sample, 1.0);
    }

    /// Reads a part of an input in a pass.
    fn read_part(&mut self, sample: &Sample, part: f64) {
        self.out.passes += 1;
        self.out.bytes_read += (sample.bytes as f64 * part) as u64;
    }

    fn filter_memory(&self) -> u64 {
        self.work() - least_records(self.work())
    }

    /// Returns the size and the rate of the filter for `keys` keys.
    fn filter(&self, keys: u64, memory: u64) -> (u64, f64) {
        self.filter_of_lines(keys, keys, memory)
    }

    /// Returns the size of the filter for `lines` lines, and its rate with the `distinct` ones.
    fn filter_of_lines(&self, lines: u64, distinct: u64, memory: u64) -> (u64, f64) {
        let lines = lines.max(1);
        let shape = BlockedLayout::for_memory(lines, ByteSize::bytes(filter_bytes(lines, memory)));
        shape.map_or((memory, 1.0), |shape| (shape.size_bytes(), shape.fpr(distinct)))
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

    /// Returns the bounds of the bytes written. Blocks that are being filled when a phase ends take an
    /// unknown part of their memory, and a partition whose table does not fit is divided: its records
    /// are written again.
    fn spilled_bounds(&self) -> [u64; 2] {
        let (work, spilled) = (self.work(), self.out.spilled);
        let total = self.records + self.smaller;
        if spilled == 0 && total < work / 8 {
            return [0; 2];
        }
        let partitions = self.job.partition_scheme(self.plan, self.sizes, None).partitions();
        let workers = self.job.budget.workers.min(partitions).max(1) as u64;
        let capacity = Table::capacity((work - self.held.min(work / 2)) / workers / 4 * 3);
        let entries = match self.out.strategy {
            "narrow" if self.sizes.op == SetOp::Common => self.out.kept,
            "narrow" => self.out.candidates,
            _ => self.sizes.first.distinct,
        };
        // Partitions are not of equal size.
        let divided = entries / partitions as u64 > capacity / 5 * 4;
        let again = if divided { self.records + self.smaller } else { 0 };
        let slack = work / 8;
        let most = (spilled + slack).min(total + total / 100);
        [spilled.saturating_sub(slack), most.max(spilled) + again]
    }

    fn log(&mut self, keys: f64) {
        self.smaller += (keys * 8.0) as u64;
        self.out.spilled += SpillWriter::written((keys * 8.0) as u64, 1, HASH_LOG_MEMORY);
    }

    /// Returns the distinct lines of the first input that are in the result.
    fn kept(&self) -> f64 {
        if let Some(result) = self.sizes.result {
            return result;
        }
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

    /// `planned`: the sizes by which the job divides the memory.
    fn memory(&mut self, planned: &InputSizes, work: u64, kept: f64) {
        let sizes = self.sizes;
        let distinct: Vec<_> = planned.others.iter().map(|other| other.distinct).collect();
        let (op, first) = (sizes.op, planned.first.distinct);
        let (seed, expected) =
            choose_build_side(op, first, &distinct, Table::capacity(work) / 10 * 9);
        let capacity = Table::capacity_after_growth(work, expected);
        // The inputs whose lines are in the table before the first input is decided.
        let build: Vec<&Sample> = match (seed, op) {
            (BuildSide::First, _) => vec![&sizes.first],
            (BuildSide::Others(nth), SetOp::Common) => vec![&sizes.others[nth]],
            (BuildSide::Others(_), _) => sizes.others.iter().collect(),
        };
        let mut entries = 0;
        for input in &build {
            let free = capacity.saturating_sub(entries);
            entries += input.distinct;
            if entries > capacity {
                self.read_part(input, free as f64 / input.distinct.max(1) as f64);
                self.out.strategy = "memory, then partition";
                return self.partition(0);
            }
            self.read(input);
        }
        let built = |other: &Sample| build.iter().any(|input| std::ptr::eq(*input, other));
        sizes.others.iter().filter(|other| !built(other)).for_each(|other| self.read(other));
        let inserts = matches!((seed, op), (BuildSide::Others(_), SetOp::Diff | SetOp::Dedup));
        let free = (capacity - entries) as f64;
        if !inserts || kept <= free {
            return self.read(&sizes.first);
        }
        let part = free / kept;
        self.read_part(&sizes.first, part);
        self.rest = 1.0 - part;
        self.out.strategy = "memory, then partition";
        self.partition(capacity);
    }

    /// Writes records of all lines. `prior`: fingerprints of lines that were decided in memory, which
    /// take the place of the other inputs.
    fn partition(&mut self, prior: u64) {
        let sizes = self.sizes;
        if prior == 0 {
            for other in &sizes.others {
                self.read(other);
                self.write_records(other.lines as f64, OTHER_RECORD, 0);
            }
        } else {
            self.write_records(prior as f64, OTHER_RECORD, 0);
        }
        self.read_part(&sizes.first, self.rest);
        self.write_records(sizes.first.lines as f64 * self.rest, FIRST_RECORD, 0);
    }

    fn narrow_common(&mut self, kept: f64) {
        let sizes = self.sizes;
        let Some((begin, next, overlap)) = sizes.sides(self.plan) else { return };
        let (there, back) = if self.plan.build_from_first {
            (OTHER_RECORD, FIRST_RECORD)
        } else {
            (FIRST_RECORD, OTHER_RECORD)
        };
        let (size, rate) = self.filter_of_lines(begin.lines, begin.distinct, self.filter_memory());
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
            return self.partition(0);
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
        let rest = Sample {
            bytes: (self.sizes.first.bytes as f64 * self.rest) as u64,
            lines: (self.sizes.first.lines as f64 * self.rest) as u64,
            ..Sample::default()
        };
        let (first, budget) = (&rest, &self.job.budget);
        let lines = first.lines.max(1) as f64;
        let marks = if dropped { lines - kept } else { kept };
        let workers = budget.workers as u64;
        let memory = (self.work() - self.held.min(self.work() / 2)) / workers / 8;
        let share = self.work() / 8 / workers;
        let spans = Spans::new(first.bytes, SpillWriter::max_streams(share)).count();
        let each = (marks * 8.0 / workers as f64) as u64;
        self.smaller += (marks * 8.0) as u64;
        self.out.spilled += workers * SpillWriter::written(each, spans, memory);
        if dropped {
            return self.read(first);
        }
        if kept >= 1.0 {
            let in_chunk = budget.chunk as f64 * lines / first.bytes.max(1) as f64;
            let empty = (1.0 - (kept / lines).min(1.0)).powf(in_chunk);
            self.out.passes += 1;
            let read = (first.bytes as f64 * (1.0 - empty)) as u64;
            // All lines of the result are close to each other, or each is in a chunk of its own.
            let chunk = budget.chunk as f64;
            let close = (kept / lines * first.bytes as f64 - chunk).max(0.0) as u64;
            let apart = ((kept * chunk) as u64).min(first.bytes);
            self.out.bytes_read_bounds = [close, apart].map(|part| self.out.bytes_read + part);
            self.out.bytes_read += read;
            self.skipped += first.bytes.saturating_sub(read);
        }
    }
}
