//! The phases of an exact job in numbers, with the same divisions of memory as the phases themselves.

use petal::ByteSize;
use petal::embed::BlockedLayout;

use super::ExactJob;
use super::join::choose_build_side;
use super::passes::HASH_LOG_MEMORY;
use super::phases::decided_entries;
use super::records::{FIRST_RECORD, OTHER_RECORD};
use super::spill_bounds::{RecordBytes, SpillBounds};
use crate::fingerprint::Table;
use crate::memory::least_records;
use crate::setops::planning::Sample;
use crate::setops::planning::filter_bytes;
use crate::setops::planning::{InputSizes, Interval, Plan, Strategy};
use crate::setops::positions::Spans;
use crate::setops::set_semantics::{BuildSide, SetOp};
use crate::temp::SpillWriter;

/// What the phases of a job do.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PhaseTotals {
    /// Whether the job changes from the planned strategy to `Partition`.
    pub(super) then_partition: bool,
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
    pub(super) false_bounds: [f64; 2],
    /// Lines of the result.
    pub(super) kept: u64,
}

/// What is not known about a job whose numbers of lines are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chance {
    /// Lines of the result are spread evenly, and there are as many false positives as expected.
    Expected,
    /// No line is a candidate, if that is possible. A table becomes full as late as possible.
    Low,
    /// Some line is a candidate, if that is possible. A table becomes full as early as possible.
    High,
}

/// The relative error of calculated false-positive rates in a job, whose filters are sized from
/// samples.
const FPR_MARGIN: f64 = 0.1;

/// Returns the bounds of the false positives, whose number is random even if the rate is known. The
/// calculated rate is that of a filter with the expected number of set bits.
fn false_positives(expected: f64) -> [f64; 2] {
    let wrong = Interval::around(expected);
    let margin = wrong.value * FPR_MARGIN;
    [(wrong.lower - margin).max(0.0), wrong.upper + margin]
}

/// Returns the bounds of the lines of an input that are false positives, if `right` of its lines are in
/// the filter. All copies of a line are false positives, or none.
fn false_lines(input: &Sample, right: f64, rate: f64) -> [f64; 2] {
    let [lines, distinct] = [input.lines, input.distinct].map(|number| number as f64);
    let expected = (lines - right).max(0.0) * rate;
    let [lower, upper] = false_positives(expected);
    let copies = lines - distinct;
    if copies < 1.0 {
        return [lower, upper];
    }
    // The inequalities of Markov and of Cantelli, at 99 %: the variance is at most the expected
    // number times the maximum number of copies.
    let expected = expected * (1.0 + FPR_MARGIN);
    let margin = (expected * 99.0).min(10.0 * (expected * (copies + 1.0)).sqrt());
    let [lower, _] = false_positives((distinct - right).max(0.0) * rate);
    [lower, upper.max(expected + margin).min((lines - right).max(0.0))]
}

/// Returns several inputs as one.
fn together(inputs: &[Sample]) -> Sample {
    let sum = |number: fn(&Sample) -> u64| inputs.iter().map(number).sum::<u64>();
    Sample {
        bytes: sum(|input| input.bytes),
        lines: sum(|input| input.lines),
        distinct: sum(|input| input.distinct),
        ..Sample::default()
    }
}

impl ExactJob<'_> {
    /// Returns the bytes that the phases of this plan will report as progress: of inputs, read or
    /// skipped, and of the records that are joined.
    pub(super) fn expected_bytes(&self, sizes: &InputSizes, plan: Plan, with_output: bool) -> u64 {
        let run = self.simulate(sizes, sizes, plan, with_output, Chance::Expected);
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
        chance: Chance,
    ) -> Run<'a> {
        let work = self.budget.work;
        let mut run = Run {
            sizes,
            plan,
            job: self,
            chance,
            held: 0,
            records: 0,
            prior: 0,
            skipped: 0,
            rest: Rest { bytes: sizes.first.bytes, lines: sizes.first.lines as f64 },
            most_first: 0,
            most_other: 0,
            divides: false,
            is_empty: false,
            is_decided: false,
            spill: SpillBounds::new(work, self.budget.workers, self.partitions(plan, sizes, 0)),
            out: PhaseTotals::default(),
        };
        let kept = run.kept();
        run.out.kept = kept as u64;
        match (plan.strategy, self.op) {
            (Strategy::Memory, _) => run.memory(planned, work, kept),
            (Strategy::Narrow, SetOp::Common) if !sizes.others.is_empty() => {
                run.narrow_common();
            }
            (Strategy::Narrow, op) if !op.separates_others() => run.narrow_diff(kept),
            _ => run.partition(),
        }
        if !run.is_decided {
            run.keep(work / 2);
            run.spill.keep(work / 2);
            run.join();
            if with_output {
                let dropped = plan.strategy == Strategy::Narrow
                    && !matches!(self.op, SetOp::Common | SetOp::Duplicates);
                let kept = if run.is_empty { 0.0 } else { (kept - run.prior as f64).max(0.0) };
                run.print(kept, dropped);
            }
        }
        if run.out.bytes_read_bounds == [0; 2] {
            run.out.bytes_read_bounds = [run.out.bytes_read; 2];
        }
        run.out.spilled_bounds = run.spill.written();
        run
    }

    fn partitions(&self, plan: Plan, sizes: &InputSizes, prior: u64) -> usize {
        self.partitioning(plan, sizes, prior).partitions()
    }
}

/// The phases of a job in numbers.
pub(super) struct Run<'a> {
    sizes: &'a InputSizes,
    plan: Plan,
    job: &'a ExactJob<'a>,
    chance: Chance,
    /// Bytes of records in memory.
    held: u64,
    /// Bytes of all records.
    records: u64,
    /// Lines of the result that were decided in memory before the table became full.
    prior: u64,
    /// Bytes of inputs that are skipped in a pass.
    skipped: u64,
    /// Maximum number of records of the first input, and of the other input that is narrowed.
    most_first: u64,
    most_other: u64,
    /// Whether partitions may be divided.
    divides: bool,
    /// The part of the first input that is not decided in memory.
    rest: Rest,
    /// Whether the result is empty because there are no candidates.
    is_empty: bool,
    /// Whether the lines of the first input are decided and printed while they are read.
    is_decided: bool,
    spill: SpillBounds,
    pub(super) out: PhaseTotals,
}

/// A part of an input.
#[derive(Clone, Copy)]
struct Rest {
    bytes: u64,
    lines: f64,
}

impl Run<'_> {
    fn work(&self) -> u64 {
        self.job.budget.work
    }

    fn read(&mut self, sample: &Sample) {
        self.read_part(sample.bytes);
    }

    /// Reads a part of an input in a pass.
    fn read_part(&mut self, bytes: u64) {
        self.out.passes += 1;
        self.out.bytes_read += bytes;
    }

    /// Returns the rest of an input after the first `free` of its `distinct` distinct lines. Lines have
    /// at least a byte each.
    fn rest_after(&self, input: &Sample, distinct: f64, free: f64) -> Rest {
        let more = (distinct - free).max(0.0);
        match self.chance {
            Chance::Expected => {
                let share = more / distinct.max(1.0);
                let bytes = (input.bytes as f64 * share) as u64;
                Rest { bytes, lines: input.lines as f64 * share }
            }
            Chance::Low => Rest { bytes: (more as u64).min(input.bytes), lines: more },
            Chance::High => Rest {
                bytes: input.bytes.saturating_sub(free as u64),
                lines: (input.lines as f64 - free).max(0.0),
            },
        }
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

    /// Writes records besides a filter of `filter` bytes. `bounds`: of the number of records.
    /// `repeated`: the number that may be of one line.
    fn write_records(
        &mut self,
        [lower, records, upper]: [f64; 3],
        repeated: f64,
        size: usize,
        [least_filter, filter]: [u64; 2],
    ) {
        let of = |records: f64| (records * size as f64).ceil() as u64;
        let records_bytes = RecordBytes { bytes: [of(lower), of(upper)], repeated: of(repeated) };
        self.spill.write_records(records_bytes, [least_filter, filter]);
        let bytes = (records * size as f64) as u64;
        let free = self.work().saturating_sub(filter);
        let lower = least_records(self.work()).min(free);
        let mut allowance = free.saturating_sub(self.held);
        if allowance < lower.max(free / 2) {
            self.keep(0);
            allowance = free;
        }
        let parts = self.job.partitions(self.plan, self.sizes, self.prior);
        let written = SpillWriter::written(bytes, parts, allowance);
        self.out.spilled += written;
        self.records += bytes;
        self.held += bytes.saturating_sub(written);
    }

    /// Writes records to disk until those in memory take at most `most` bytes.
    fn keep(&mut self, upper: u64) {
        let more = self.held.saturating_sub(upper);
        self.held -= more;
        self.out.spilled += more;
    }

    /// Joins the records.
    fn join(&mut self) {
        let InputSizes { op, first, others, .. } = self.sizes;
        let all = || others.iter().chain([first]).map(|input| input.distinct);
        let most_first = self.most_first;
        let entries = match (self.plan.strategy == Strategy::Narrow, op) {
            (true, SetOp::Common) => {
                [0, most_first.max(self.most_other).min(all().max().unwrap_or(0))]
            }
            (_, SetOp::Common) => [all().min().unwrap_or(0), all().max().unwrap_or(0)],
            (true, _) => [0, most_first.min(first.distinct)],
            // The rest has at least the lines of the result that were not decided.
            _ if self.prior > 0 => [self.out.kept.saturating_sub(self.prior), most_first],
            _ => [first.distinct, first.distinct.min(most_first)],
        };
        self.divides = self.spill.join(entries);
    }

    fn log(&mut self, [lower, keys, upper]: [f64; 3]) {
        self.spill.log([lower, upper].map(|keys| keys as u64 * 8));
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
            SetOp::Dedup | SetOp::DedupLast => 1.0,
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
                let rest = self.rest_after(input, input.distinct as f64, free as f64);
                self.read_part(input.bytes.saturating_sub(rest.bytes));
                self.out.then_partition = true;
                return self.partition();
            }
            self.read(input);
        }
        let is_built = |at: usize| match (seed, op) {
            (BuildSide::First, _) => false,
            (BuildSide::Others(nth), SetOp::Common) => at == nth,
            (BuildSide::Others(_), _) => true,
        };
        let others = sizes.others.iter().enumerate();
        others.filter(|(at, _)| !is_built(*at)).for_each(|(_, other)| self.read(other));
        let inserts = matches!((seed, op), (BuildSide::Others(_), SetOp::Diff | SetOp::Dedup));
        let free = (capacity - entries) as f64;
        if !inserts || kept <= free {
            self.is_decided = true;
            return self.read(&sizes.first);
        }
        self.rest = self.rest_after(&sizes.first, kept, free);
        self.read_part(sizes.first.bytes.saturating_sub(self.rest.bytes));
        self.prior = free as u64;
        self.out.then_partition = true;
        let partitions = self.job.partitions(self.plan, self.sizes, capacity);
        self.spill = SpillBounds::new(work, self.job.budget.workers, partitions);
        // The fingerprints of the table take the place of the other inputs.
        let bytes = capacity * OTHER_RECORD as u64;
        self.spill.write_all([bytes; 2]);
        self.out.spilled += bytes + SpillWriter::links(bytes, partitions, 0);
        self.records += bytes;
        self.partition_first();
    }

    /// Writes records of all lines.
    fn partition(&mut self) {
        let sizes = self.sizes;
        let roles = if sizes.op.separates_others() { 1 } else { sizes.others.len().max(1) };
        // Others that are taken as one input are read in one pass.
        for others in sizes.others.chunks(roles) {
            let together = together(others);
            self.read(&together);
            self.write_records_of_all(&together, together.lines as f64, OTHER_RECORD);
        }
        self.partition_first();
    }

    /// Writes records of the lines of the first input that are not decided.
    fn partition_first(&mut self) {
        let Rest { bytes, lines } = self.rest;
        self.read_part(bytes);
        self.write_records_of_all(&self.sizes.first, lines, FIRST_RECORD);
        self.most_first = lines as u64;
    }

    /// Writes records of `lines` lines of an input.
    fn write_records_of_all(&mut self, input: &Sample, lines: f64, size: usize) {
        let repeated = input.lines.saturating_sub(input.distinct) as f64;
        self.write_records([lines; 3], repeated.min(lines), size, [0, 0]);
    }

    /// Returns whether no line is a candidate: `right` are, and about `wrong` distinct lines are false
    /// positives.
    fn has_no_candidates(&self, right: f64, wrong: f64) -> bool {
        let [lower, upper] = false_positives(wrong);
        right < 1.0
            && match self.chance {
                // A probability of one half.
                Chance::Expected => wrong < std::f64::consts::LN_2,
                Chance::Low => lower < 1.0,
                Chance::High => upper < 0.005,
            }
    }

    fn narrow_common(&mut self) {
        let sizes = self.sizes;
        let Some((begin, next, overlap)) = sizes.sides(self.plan) else { return };
        let smallest = self.plan.smallest;
        let (there, back, shared_back) = if self.plan.build_from_first {
            (OTHER_RECORD, FIRST_RECORD, sizes.share_of_first_in(smallest))
        } else {
            (FIRST_RECORD, OTHER_RECORD, sizes.share_in_first(smallest))
        };
        let (size, rate) = self.filter_of_lines(begin.lines, begin.distinct, self.filter_memory());
        self.read(begin);
        let right = next.lines as f64 * overlap;
        let wrong = (next.lines as f64 - right) * rate;
        let wrong_distinct = next.distinct as f64 * (1.0 - overlap).max(0.0) * rate;
        self.read(next);
        let more = (0..).zip(&sizes.others).filter(|(other, _)| *other != smallest);
        if self.has_no_candidates(right, wrong_distinct) {
            self.is_empty = true;
            return more.for_each(|(_, other)| self.read(other));
        }
        let [lower, upper] = false_lines(next, right, rate);
        let candidates = [right + lower, right + wrong, right + upper];
        let filter = self.plan.candidate_filter_bytes;
        self.write_records(candidates, right + upper, there, [filter, size + filter]);
        if self.plan.candidate_filter_bytes == 0 {
            self.log(candidates);
        }
        self.out.candidates = (right + wrong) as u64;
        self.out.false_candidates = wrong as u64;
        self.out.false_bounds = [lower, upper];
        let memory = self.filter_memory().saturating_sub(self.held).max(self.work() / 4);
        let (size, rate) = match self.plan.candidate_filter_bytes {
            0 => self.filter(self.out.candidates, memory),
            // Sized for twice the estimate.
            bytes => (bytes, self.filter(self.out.candidates, bytes).1),
        };
        let least_size = if filter == 0 { 0 } else { size };
        let confirm = |run: &mut Self, sample: &Sample, shared: [f64; 3], record| {
            run.read(sample);
            let [lower, value, upper] = shared;
            let wrong = (sample.lines as f64 - value).max(0.0) * rate;
            let [least_wrong, _] = false_lines(sample, upper, rate);
            let [_, most_wrong] = false_lines(sample, lower, rate);
            let records = [lower + least_wrong, value + wrong, upper + most_wrong];
            run.write_records(records, records[2], record, [least_size, size]);
            records
        };
        for (j, other) in more {
            // Lines that all inputs have, or all that the first one has.
            let upper = other.lines as f64 * sizes.share_in_first(j);
            let value = self.out.kept as f64;
            confirm(self, other, [0.0, value.min(upper), upper], OTHER_RECORD);
        }
        let distinct = (next.distinct as f64 * overlap).min(right);
        let [least_wrong, most_wrong] = false_positives(wrong_distinct);
        let distinct = [distinct + least_wrong, distinct + wrong_distinct, right + most_wrong];
        if self.plan.build_from_first && self.decides_first(distinct, [least_size, size], rate) {
            return;
        }
        let shared = (begin.lines as f64 * shared_back).min(begin.lines as f64);
        let records = confirm(self, begin, [shared; 3], back);
        [self.most_other, self.most_first] =
            [candidates, records].map(|[_, _, upper]| upper as u64);
    }

    /// Reads the first input and decides about its lines, if that fits in memory. `distinct`: of the
    /// distinct candidates; `filter`: the size of their filter.
    fn decides_first(&mut self, distinct: [f64; 3], filter: [u64; 2], rate: f64) -> bool {
        let lines = self.sizes.first.lines as f64;
        let [lower, value, upper] =
            distinct.map(|distinct| decided_entries(self.sizes.op, distinct, lines, rate));
        let entries = match self.chance {
            Chance::Expected => value,
            Chance::Low => lower,
            Chance::High => upper,
        };
        let free = self.work().saturating_sub(filter[1]);
        let fits = |taken: u64| entries <= Table::capacity(free.saturating_sub(taken)) / 10 * 9;
        if !fits(0) {
            return false;
        }
        if !fits(self.held) {
            self.keep(0);
        }
        self.spill.make_room(fits);
        self.read(&self.sizes.first);
        self.is_decided = true;
        true
    }

    fn narrow_diff(&mut self, kept: f64) {
        let sizes = self.sizes;
        let first = &sizes.first;
        let [lines, distinct] = [first.lines, first.distinct].map(|number| number as f64);
        let (size, rate) = self.filter_of_lines(first.lines, first.distinct, self.filter_memory());
        self.read(first);
        // Lines that the filter of the lines before them may contain.
        let copies = (lines - distinct).max(0.0);
        let wrong = distinct * self.mean_rate(size, first.distinct);
        let [least_wrong, most_wrong] = false_positives(wrong);
        self.log([copies + least_wrong, copies + wrong, copies + most_wrong]);
        if sizes.op == SetOp::SymDiff {
            // The second side is a pass of its own, with records of its candidates.
            self.out.passes += 1;
            let records = [0.0, copies + wrong, copies + most_wrong];
            self.write_records(records, copies, OTHER_RECORD, [size, size]);
        }
        let mut right = copies;
        let mut false_candidates = [least_wrong, wrong, most_wrong];
        if !sizes.others.is_empty() {
            let others = together(&sizes.others);
            let shares = (0..sizes.others.len()).map(|j| sizes.share_in_first(j));
            let shared = shares.zip(&sizes.others).map(|(share, other)| share * other.lines as f64);
            let shared = shared.sum::<f64>();
            let wrong = (others.lines as f64 - shared).max(0.0) * rate;
            let [least_wrong, most_wrong] = false_lines(&others, shared, rate);
            let wrong = [least_wrong, wrong, most_wrong];
            let records = wrong.map(|wrong| shared + wrong);
            self.read(&others);
            self.write_records(records, records[2], OTHER_RECORD, [size, size]);
            self.log(records);
            right += shared;
            for (sum, wrong) in false_candidates.iter_mut().zip(wrong) {
                *sum += wrong;
            }
        }
        let [least_wrong, wrong, most_wrong] = false_candidates;
        if self.has_no_candidates(right, wrong) {
            return;
        }
        self.out.candidates = (right + wrong) as u64;
        self.out.false_candidates = wrong as u64;
        self.out.false_bounds = [least_wrong, most_wrong];
        let memory = self.filter_memory().saturating_sub(self.held).max(self.work() / 4);
        let (size, _) = self.filter(self.out.candidates, memory);
        // The lines that are dropped, and the first of those that are repeated.
        let dropped = match sizes.op {
            SetOp::Diff | SetOp::Dedup | SetOp::DedupLast => (lines - kept).max(0.0),
            _ => copies,
        };
        let shared = (dropped - copies).max(0.0);
        let repeated = copies.min(distinct);
        let (_, rate) = self.filter((shared + repeated + wrong) as u64, size);
        let entries = [shared.max(repeated), shared + repeated, right];
        let entries = [entries[0] + least_wrong, entries[1] + wrong, entries[2] + most_wrong];
        if !sizes.op.needs_records() && self.decides_first(entries, [0, size], rate) {
            return;
        }
        self.read(first);
        let candidates = dropped + copies + false_candidates[1];
        let rest = (lines - candidates).max(0.0);
        let more = false_positives(rest * rate)[1];
        let records = [dropped, candidates + rest * rate, dropped + copies + most_wrong + more];
        self.write_records(records, records[2], FIRST_RECORD, [0, size]);
        self.most_first = records[2] as u64;
    }

    /// Returns the mean false-positive rate of a filter of the first input while `new` lines are
    /// inserted.
    fn mean_rate(&self, size: u64, new: u64) -> f64 {
        const STEPS: u64 = 32;
        let lines = self.sizes.first.lines.max(1);
        let Ok(shape) = BlockedLayout::for_memory(lines, ByteSize::bytes(size)) else { return 1.0 };
        let at = |step: u64| shape.fpr(new / STEPS * step);
        (0..STEPS).map(|step| (at(step) + at(step + 1)) / 2.0).sum::<f64>() / STEPS as f64
    }

    /// The positions and the last pass: over the whole first input, or over the chunks with kept
    /// lines.
    fn print(&mut self, kept: f64, dropped: bool) {
        let Rest { bytes, lines } = self.rest;
        let budget = &self.job.budget;
        let lines = lines.max(1.0);
        let listed = if dropped { lines - kept } else { kept };
        let workers = budget.workers as u64;
        let memory = (self.work() - self.held.min(self.work() / 2)) / workers / 8;
        let share = self.work() / 8 / workers;
        let spans = Spans::new(bytes, SpillWriter::max_streams(share)).count();
        let each = (listed * 8.0 / workers as f64) as u64;
        self.out.spilled += workers * SpillWriter::written(each, spans, memory);
        // The positions of a partition that is divided may have been written before.
        let again = if self.divides { listed } else { 0.0 };
        let listed = [listed, listed + again].map(|listed| (listed * 8.0).ceil() as u64);
        self.spill.write_positions(listed, bytes);
        if dropped {
            return self.read_part(bytes);
        }
        if kept >= 1.0 {
            let in_chunk = budget.chunk as f64 * lines / bytes.max(1) as f64;
            let empty = (1.0 - (kept / lines).min(1.0)).powf(in_chunk);
            self.out.passes += 1;
            let read = (bytes as f64 * (1.0 - empty)) as u64;
            // All lines of the result are close to each other, or each is in a chunk of its own.
            let chunk = budget.chunk as f64;
            let close = (kept / lines * bytes as f64 - chunk).max(0.0) as u64;
            let apart = ((kept * chunk) as u64).min(bytes);
            self.out.bytes_read_bounds = [close, apart].map(|part| self.out.bytes_read + part);
            self.out.bytes_read += read;
            self.skipped += bytes.saturating_sub(read);
        }
    }
}
