//! The choice of a strategy: input sizes from samples, and the cost of each strategy.
//!
//! docs/design/file-engine.md describes the strategies. A wrong estimate costs
//! time; it never changes the result.

use serde::{Deserialize, Serialize};

use super::cost;
use super::filter_size::{filter_bytes, fpr};
use super::interval::Interval;
use super::job_counts::{BaseCounts, InputCounts, JobCounts};
use super::sample::Sample;
use crate::fingerprint::Table;
use crate::memory::Budget;
use crate::setops::set_semantics::SetOp;

/// A strategy of exact set operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Strategy {
    /// Keep the fingerprints of one side in memory and print lines as they are read.
    Memory,
    /// Rule out most lines by filters and compare only the fingerprints of the rest.
    Narrow,
    /// Divide all fingerprints into partitions that fit in memory.
    Partition,
}

impl Strategy {
    /// Returns the name in reports and options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Narrow => "narrow",
            Self::Partition => "partition",
        }
    }

    /// Returns the name in reports of jobs that began with this strategy and changed to `Partition`.
    pub(crate) fn name_then_partition(self) -> &'static str {
        match self {
            Self::Memory => "memory, then partition",
            Self::Narrow => "narrow, then partition",
            Self::Partition => self.name(),
        }
    }
}

/// Estimated sizes of the inputs of a job.
pub(crate) struct InputSizes {
    pub(crate) op: SetOp,
    pub(crate) first: Sample,
    pub(crate) others: Vec<Sample>,
    /// For each other input, the share of equal pairs among all pairs with a line of the first input.
    matches: Vec<f64>,
    /// For each other input, the share of the first input's lines that it has, and the share of its
    /// lines that the first input has; empty if they are derived from `matches`.
    shares: Vec<[f64; 2]>,
    /// The lines of the result; `None`: derived from the other numbers.
    pub(crate) result: Option<f64>,
}

/// A strategy with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) strategy: Strategy,
    /// `Narrow` for `common`: the first filter holds the first input, not the smallest other.
    pub(crate) build_from_first: bool,
    /// Index of the other input with the fewest lines, stored so that a resumed job uses the same.
    pub(crate) smallest: usize,
    /// Estimated entries of the tables of all partitions together.
    pub(crate) entries: u64,
    /// `Narrow` for `common`: size of the filter of the candidates if it fits besides the first one
    /// and is filled at the same time; 0 if the hashes of the candidates are logged first.
    pub(crate) candidate_filter_bytes: u64,
}

/// A place within bounds.
pub(crate) type Place = fn(&Interval) -> f64;

impl InputSizes {
    /// Compares the samples and frees their memory.
    pub(crate) fn new(op: SetOp, mut first: Sample, mut others: Vec<Sample>) -> Self {
        let matches = others.iter().map(|other| first.matches(other)).collect();
        for sample in others.iter_mut().chain([&mut first]) {
            sample.keys = Vec::new();
        }
        Self { op, first, others, matches, shares: vec![], result: None }
    }

    /// Returns these sizes with other numbers, each at one place of its bounds: that of bytes and lines,
    /// of distinct lines, of shared lines, and of the result.
    pub(crate) fn with_counts(&self, counts: &JobCounts, at: [Place; 4]) -> Self {
        let [lines, distinct, shared, result] = at;
        let sample = |sample: &Sample, counts: &InputCounts| {
            let bytes = lines(&counts.bytes);
            let lines = lines(&counts.lines).ceil();
            let distinct = distinct(&counts.distinct).ceil().min(lines);
            Sample {
                bytes: bytes as u64,
                lines: lines as u64,
                distinct: distinct as u64,
                cold: sample.cold,
                ..Sample::default()
            }
        };
        let first = sample(&self.first, &counts.first);
        let others: Vec<_> =
            self.others.iter().zip(&counts.others).map(|(other, c)| sample(other, c)).collect();
        let share =
            |rows: &Interval, input: &Sample| (shared(rows) / input.lines.max(1) as f64).min(1.0);
        let shares = counts.rows.iter().zip(&others);
        let shares = shares
            .map(|([of_first, of_other], other)| [share(of_first, &first), share(of_other, other)])
            .collect();
        let result = result(&counts.result).min(first.distinct as f64);
        Self { op: self.op, first, others, matches: vec![], shares, result: Some(result) }
    }

    /// Returns whether the bytes of all inputs are exact.
    pub(crate) fn have_exact_bytes(&self) -> bool {
        self.first.has_exact_bytes && self.others.iter().all(|other| other.has_exact_bytes)
    }

    /// Returns the counts of samples that may not be representative: of the beginning of a compressed
    /// input. They have no upper bounds.
    pub(crate) fn extrapolated(&self) -> BaseCounts {
        let counts = |sample: &Sample| {
            let [lines, distinct] = [sample.sampled, sample.sampled_distinct].map(|min| min as f64);
            let unbounded = |value: u64, min| Interval::new(value as f64, min, f64::INFINITY);
            InputCounts {
                bytes: unbounded(sample.bytes, 0.0),
                lines: unbounded(sample.lines, lines),
                distinct: unbounded(sample.distinct, distinct),
            }
        };
        let shared = |other| {
            let value = self.share_of_first_in(other) * self.first.distinct as f64;
            Interval::new(value, 0.0, f64::INFINITY)
        };
        let inputs = [&self.first].into_iter().chain(&self.others).map(counts).collect();
        BaseCounts { inputs, shared: (0..self.others.len()).map(shared).collect() }
    }

    /// Returns the estimated share of the first input's lines that another input has.
    pub(crate) fn share_of_first_in(&self, other: usize) -> f64 {
        match self.shares.get(other) {
            Some([share, _]) => *share,
            None => (self.matches[other] * self.others[other].distinct as f64).min(1.0),
        }
    }

    /// Returns the estimated share of another input's lines that the first input has.
    pub(crate) fn share_in_first(&self, other: usize) -> f64 {
        match self.shares.get(other) {
            Some([_, share]) => *share,
            None => (self.matches[other] * self.first.distinct as f64).min(1.0),
        }
    }

    /// Returns the index of the other input with the fewest lines.
    pub(crate) fn smallest_other(&self) -> usize {
        let by_lines = |j: &usize| self.others[*j].lines;
        (0..self.others.len()).min_by_key(by_lines).unwrap_or(0)
    }

    /// Returns the number of lines of all inputs.
    pub(crate) fn lines(&self) -> u64 {
        self.first.lines + self.others.iter().map(|other| other.lines).sum::<u64>()
    }

    /// Returns whether the fingerprints of one side fit in memory.
    fn fits(&self, budget: &Budget) -> bool {
        let capacity = Table::capacity(budget.work) / 10 * 9;
        let others = self.others.iter().map(|other| other.distinct);
        match self.op {
            SetOp::Common => others.chain([self.first.distinct]).min() <= Some(capacity),
            _ => self.first.distinct <= capacity,
        }
    }

    /// Returns the plan for a strategy.
    pub(crate) fn plan(&self, strategy: Strategy, build_from_first: bool, budget: &Budget) -> Plan {
        let strategy = match (strategy, self.op) {
            // A line of the result may be missing from any of the others.
            (Strategy::Narrow, SetOp::AtLeast(_)) => Strategy::Partition,
            // Lines that are decided as they are read have no records.
            (Strategy::Memory, SetOp::DedupLast) => Strategy::Partition,
            _ => strategy,
        };
        let smallest = self.smallest_other();
        let mut plan =
            Plan { strategy, build_from_first, smallest, entries: 0, candidate_filter_bytes: 0 };
        plan.entries = self.entries(plan, budget);
        plan.candidate_filter_bytes = self.candidate_filter_bytes(plan, budget);
        plan
    }

    /// Returns the cheapest plan of a strategy, or of those that fit in memory.
    pub(crate) fn choose(&self, strategy: Option<Strategy>, budget: &Budget) -> Plan {
        let memory = self.fits(budget).then_some(Strategy::Memory);
        let strategies = match strategy {
            Some(strategy) => vec![strategy],
            None => memory.into_iter().chain([Strategy::Partition, Strategy::Narrow]).collect(),
        };
        let sides = |strategy| match (strategy, self.op) {
            (Strategy::Narrow, SetOp::Common) => &[false, true][..],
            _ => &[false],
        };
        let plans = strategies.into_iter().flat_map(|strategy| {
            sides(strategy).iter().map(move |&from_first| self.plan(strategy, from_first, budget))
        });
        let cost = |plan: &Plan| self.cost(*plan, budget);
        plans
            .min_by(|a, b| cost(a).total_cmp(&cost(b)))
            .unwrap_or_else(|| self.plan(Strategy::Partition, false, budget))
    }

    fn entries(&self, plan: Plan, budget: &Budget) -> u64 {
        match (plan.strategy, self.op) {
            (Strategy::Narrow, SetOp::Common) => self.candidates(plan, budget) as u64,
            (Strategy::Narrow, _) => self.repeated_candidates(budget) as u64,
            (_, SetOp::AtLeast(_)) => self.first.lines,
            (_, SetOp::Common) => {
                let others = self.others.iter().map(|other| other.lines);
                others.chain([self.first.lines]).min().unwrap_or(0)
            }
            _ => self.lines(),
        }
    }

    /// For `Narrow` of `common`: the build side, the probe side, and the share of the probe side's
    /// lines that the build side has.
    pub(crate) fn sides(&self, plan: Plan) -> Option<(&Sample, &Sample, f64)> {
        let other = self.others.get(plan.smallest)?;
        Some(if plan.build_from_first {
            (&self.first, other, self.share_in_first(plan.smallest))
        } else {
            (other, &self.first, self.share_of_first_in(plan.smallest))
        })
    }

    /// Returns the number of lines that the first filter may contain.
    fn candidates(&self, plan: Plan, budget: &Budget) -> f64 {
        let Some((begin, next, overlap)) = self.sides(plan) else { return 0.0 };
        next.lines as f64 * (overlap + fpr(begin.lines, budget.work) * (1.0 - overlap))
    }

    fn candidate_filter_bytes(&self, plan: Plan, budget: &Budget) -> u64 {
        let Some((begin, next, _)) = self.sides(plan) else { return 0 };
        // Twice the estimate, and at least a quarter of all lines, because the estimate may be low.
        let max = next.lines.max(1);
        let candidates = (self.candidates(plan, budget) as u64 * 2).clamp(max.div_ceil(4), max);
        let (first, second) =
            (filter_bytes(begin.lines, u64::MAX), filter_bytes(candidates, u64::MAX));
        // Leave an eighth for records.
        if first.saturating_add(second) <= budget.work / 8 * 7 { second } else { 0 }
    }

    /// Returns the number of lines of the first input that are candidates: repeated ones, those that
    /// another input has, and false positives of a filter of the first input.
    fn repeated_candidates(&self, budget: &Budget) -> f64 {
        // The rate rises while the filter fills; its mean is about half the last.
        let rate = fpr(self.first.lines, budget.work) / 2.0;
        let copies = 1.0 - self.first.distinct as f64 / self.first.lines.max(1) as f64;
        let shared = (0..self.others.len()).map(|other| self.share_of_first_in(other)).sum::<f64>();
        self.first.lines as f64 * (copies + shared.min(1.0) + rate).min(1.0)
    }

    /// Returns the estimated time of one core in nanoseconds.
    pub(crate) fn cost(&self, plan: Plan, budget: &Budget) -> f64 {
        let all = || self.others.iter().chain([&self.first]);
        let length = |sample: &Sample| sample.line_length();
        let read =
            |sample: &Sample| sample.lines as f64 * (cost::key(length(sample)) + cost::FILTER);
        let decide = |sample: &Sample, lines: f64| {
            lines * (cost::fingerprint(length(sample)) + cost::RECORD)
        };
        let at_once = |sample: &Sample, lines: f64| {
            lines * (cost::fingerprint(length(sample)) + cost::AT_ONCE)
        };
        let inputs = self.others.len() as f64 + 1.0;
        let passes = match plan.strategy {
            Strategy::Memory => inputs,
            Strategy::Partition => inputs + 2.0,
            Strategy::Narrow => inputs + 4.0,
        };
        let lines = match (plan.strategy, self.op) {
            (Strategy::Memory, op) => {
                let entries = match op {
                    SetOp::Common => all().map(|sample| sample.distinct).min().unwrap_or(0),
                    SetOp::AtLeast(_) => self.first.distinct,
                    _ => all().map(|sample| sample.distinct).sum(),
                } as f64;
                let reads = if op.needs_whole_first() { 2.0 } else { 1.0 };
                let judged = |s: &Sample| cost::fingerprint(length(s)) + cost::table(entries);
                all().map(|s| reads * s.lines as f64 * (cost::key(length(s)) + judged(s))).sum()
            }
            (Strategy::Partition, _) => all()
                .map(|s| s.lines as f64 * cost::key(length(s)) + decide(s, s.lines as f64))
                .sum(),
            (Strategy::Narrow, SetOp::Common) => {
                let Some((begin, next, overlap)) = self.sides(plan) else { return f64::INFINITY };
                let candidates = self.candidates(plan, budget);
                let back_rate = fpr(candidates as u64, budget.work);
                let shared = (next.lines as f64 * overlap).min(begin.lines as f64);
                let back = shared + (begin.lines as f64 - shared) * back_rate;
                let reads = all().map(read).sum::<f64>() + read(begin);
                let others = self.others.len() as f64;
                if plan.build_from_first && decides_while_reading(candidates, budget) {
                    reads + at_once(next, candidates) + others * at_once(begin, back)
                } else {
                    reads + decide(next, candidates) + others * decide(begin, back)
                }
            }
            (Strategy::Narrow, op) => {
                let lines = self.repeated_candidates(budget);
                let reads = all().map(read).sum::<f64>() + read(&self.first);
                let at_once_fits = !op.needs_records() && decides_while_reading(lines, budget);
                let decide = |lines| match at_once_fits {
                    true => at_once(&self.first, lines),
                    false => decide(&self.first, lines),
                };
                reads + 2.0 * decide(lines)
            }
        };
        lines + passes * cost::PASS
    }
}

/// Returns whether a table of `entries` fingerprints fits in memory besides a filter of them.
fn decides_while_reading(entries: f64, budget: &Budget) -> bool {
    let filter = filter_bytes(entries as u64, budget.work);
    entries as u64 <= Table::capacity(budget.work - filter) / 10 * 9
}
