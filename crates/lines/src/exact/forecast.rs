//! What a job would do, before it is done: the phases of its strategy gone through in numbers,
//! with the same divisions of memory that the phases themselves make.
//!
//! Lines, overlaps and copies come from samples; the rest is arithmetic. Uncertain is the time:
//! it is a range, from the cost model, a short run of this machine's hashing, and a guess at its
//! disk.

use std::time::Instant;

use petal::Shape;
use serde::Serialize;

use super::{Exact, least_records};
use crate::error::{Error, Result};
use crate::fingerprint::Hashes;
use crate::input::Input;
use crate::judge::{Seed, Verb};
use crate::marks::Spans;
use crate::plan::{Plan, Sample, Sizes, Strategy, cost, filter_bytes};
use crate::resolve::{FIRST_RECORD, OTHER_RECORD, choose_seed};
use crate::spill::Spill;
use crate::table::Table;

/// What an exact job would do.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Forecast {
    /// The first input, or all of them taken as one, then the others.
    pub inputs: Vec<Sampled>,
    /// How it would be done.
    pub strategy: &'static str,
    /// Passes over an input.
    pub passes: u64,
    /// Bytes of input read, all passes together.
    pub bytes_read: u64,
    /// Bytes written to the directory for temporary files.
    pub spilled: u64,
    /// Lines that the filter could not rule out.
    pub candidates: u64,
    /// How many of them would be its false positives.
    pub false_candidates: u64,
    /// Lines in the answer.
    pub kept: u64,
    /// The least and the most lines that the answer can have.
    pub kept_range: [u64; 2],
    /// The least and the most time to expect, in seconds.
    pub seconds: [f64; 2],
}

/// What a sample says of an input.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Sampled {
    /// Bytes of lines.
    pub bytes: u64,
    /// Lines.
    pub lines: u64,
    /// Distinct lines: an estimate that may be far off where lines are repeated unevenly.
    pub distinct: u64,
    /// The least and the most distinct lines that there can be; equal if all lines were sampled.
    pub distinct_range: [u64; 2],
}

impl Sampled {
    fn of(sample: &Sample) -> Self {
        let Sample { bytes, lines, distinct, distinct_range, .. } = *sample;
        Self { bytes, lines, distinct, distinct_range }
    }
}

/// Bytes that disks are taken to read or write in a second: slow ones, and fast ones.
const SLOW_DISK: f64 = 150e6;
const FAST_DISK: f64 = 2e9;

impl Exact<'_> {
    /// Foretells the job; `prints` unless lines are only counted.
    pub(crate) fn forecast(
        &self,
        first: &[Input],
        others: &[Input],
        prints: bool,
    ) -> Result<Forecast> {
        if let Some(stream) = first.iter().chain(others).find(|input| !input.is_repeatable()) {
            return Err(Error::unforeseeable(stream.name()));
        }
        let sizes = self.sizes(first, others)?;
        let plan = match self.strategy {
            Some(strategy) => sizes.plan(strategy, false, &self.budget),
            None => sizes.choose(&self.budget),
        };
        let work = self.budget.work;
        let out = Forecast::default();
        let mut run = Run { sizes: &sizes, plan, job: self, held: 0, out };
        run.out.strategy = plan.strategy.name();
        let all = [&sizes.first].into_iter().chain(&sizes.others);
        run.out.inputs = all.map(Sampled::of).collect();
        let kept = run.kept();
        run.out.kept = kept as u64;
        run.out.kept_range = run.kept_range(kept as u64);
        match (plan.strategy, self.verb) {
            (Strategy::Memory, _) => run.memory(work),
            (Strategy::Narrow, Verb::Common) if !others.is_empty() => run.narrow_common(kept),
            (Strategy::Narrow, Verb::Diff | Verb::Dedup) => run.narrow_diff(kept),
            _ => run.partition(),
        }
        run.keep(work / 2);
        if plan.strategy != Strategy::Memory && prints {
            let dropped = plan.strategy == Strategy::Narrow && self.verb != Verb::Common;
            run.print(kept, dropped && run.out.strategy == Strategy::Narrow.name());
        }
        let mut forecast = run.out;
        let printed = forecast.kept as f64 * cost::print(sizes.first.line_length());
        let cost = sizes.cost(plan, &self.budget) + if prints { printed } else { 0.0 };
        let cpu = cost * 1e-9 * speed(&self.hashes) / self.budget.workers as f64;
        // What is not in memory comes from the disk, once; what is spilled may have to go there.
        let all = [&sizes.first].into_iter().chain(&sizes.others);
        let cold = all.map(|sample| sample.bytes as f64 * sample.cold).sum::<f64>();
        let spilled = forecast.spilled as f64;
        forecast.seconds = [
            (cpu * 0.7).max(cold / FAST_DISK),
            cpu * 1.6 + cold / SLOW_DISK + 2.0 * spilled / FAST_DISK,
        ];
        Ok(forecast)
    }
}

/// How much longer this machine takes to hash than the one the cost model was made on.
fn speed(hashes: &Hashes) -> f64 {
    const LINES: usize = 4000;
    const NANOSECONDS: f64 = 24.0;
    let text = [b'x'; 80];
    let begun = Instant::now();
    let mut prints = Vec::with_capacity(LINES);
    let lines = (0..LINES).map(|line| &text[line % 7..][..64]);
    let keys = lines.clone().fold(0, |sum, line| hashes.key(line) ^ sum);
    hashes.fingerprints(lines, &mut prints);
    std::hint::black_box((keys, prints));
    let taken = begun.elapsed().as_nanos() as f64 / LINES as f64;
    (taken / NANOSECONDS).clamp(0.3, 5.0)
}

/// A job gone through in numbers.
struct Run<'a> {
    sizes: &'a Sizes,
    plan: Plan,
    job: &'a Exact<'a>,
    /// Bytes of records in memory.
    held: u64,
    out: Forecast,
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

    /// The size and the rate of the filter that so many keys would get.
    fn filter(&self, keys: u64, memory: u64) -> (u64, f64) {
        let keys = keys.max(1);
        let shape = Shape::for_memory(filter_bytes(keys, memory), keys);
        shape.map_or((memory, 1.0), |shape| (shape.size_bytes(), shape.rate(keys)))
    }

    /// Collects so many records beside a filter of so many bytes.
    fn gather(&mut self, records: f64, size: usize, filter: u64) {
        let bytes = (records * size as f64) as u64;
        let free = self.work().saturating_sub(filter);
        let least = least_records(self.work()).min(free);
        let mut allowance = free.saturating_sub(self.held);
        if allowance < least.max(free / 2) {
            self.keep(0);
            allowance = free;
        }
        let parts = self.job.digits(self.plan, self.sizes, None).parts();
        let written = Spill::written(bytes, parts, allowance);
        self.out.spilled += written;
        self.held += bytes.saturating_sub(written);
    }

    /// Writes out records until they hold no more than so many bytes.
    fn keep(&mut self, most: u64) {
        let more = self.held.saturating_sub(most);
        self.held -= more;
        self.out.spilled += more;
    }

    fn log(&mut self, keys: f64) {
        self.out.spilled += Spill::written((keys * 8.0) as u64, 1, crate::steps::KEY_LOG);
    }

    /// Distinct lines of the first input in the answer.
    fn kept(&self) -> f64 {
        let Sizes { verb, first, others, .. } = self.sizes;
        let overlaps = (0..others.len()).map(|other| self.sizes.of_first_in(other));
        let share = match verb {
            Verb::Common => overlaps.fold(1.0, f64::min),
            Verb::Diff => (1.0 - overlaps.sum::<f64>()).max(0.0),
            Verb::Dedup => 1.0,
        };
        first.distinct as f64 * share
    }

    /// The least and the most lines of the answer, where the estimate is `kept`.
    fn kept_range(&self, kept: u64) -> [u64; 2] {
        let Sizes { verb, first, others, .. } = self.sizes;
        let all = || others.iter().chain([first]).map(|sample| sample.distinct_range);
        if all().all(|[least, most]| least == most) {
            return [kept; 2];
        }
        let [least, most] = first.distinct_range;
        match verb {
            Verb::Dedup => [least, most],
            Verb::Common => [0, all().map(|[_, most]| most).min().unwrap_or(most)],
            Verb::Diff => {
                let others = all().take(others.len()).map(|[_, most]| most);
                [least.saturating_sub(others.fold(0, u64::saturating_add)), most]
            }
        }
    }

    fn memory(&mut self, work: u64) {
        let sizes = self.sizes;
        let distinct: Vec<_> = sizes.others.iter().map(|other| other.distinct).collect();
        let capacity = Table::capacity(work) / 10 * 9;
        let (seed, _) = choose_seed(sizes.verb, sizes.first.distinct, &distinct, capacity);
        if seed == Seed::First {
            self.read(&sizes.first);
        }
        sizes.others.iter().for_each(|other| self.read(other));
        self.read(&sizes.first);
    }

    fn partition(&mut self) {
        let sizes = self.sizes;
        for other in &sizes.others {
            self.read(other);
            self.gather(other.lines as f64, OTHER_RECORD, 0);
        }
        self.read(&sizes.first);
        self.gather(sizes.first.lines as f64, FIRST_RECORD, 0);
    }

    fn narrow_common(&mut self, kept: f64) {
        let sizes = self.sizes;
        let Some((begin, next, overlap)) = sizes.sides(self.plan) else { return };
        let (there, back) = if self.plan.first_begins {
            (OTHER_RECORD, FIRST_RECORD)
        } else {
            (FIRST_RECORD, OTHER_RECORD)
        };
        let (size, rate) = self.filter(begin.lines, self.filter_memory());
        self.read(begin);
        let right = next.lines as f64 * overlap;
        let wrong = (next.lines as f64 - right) * rate;
        self.read(next);
        self.gather(right + wrong, there, size + self.plan.beside);
        if self.plan.beside == 0 {
            self.log(right + wrong);
        }
        self.out.candidates = (right + wrong) as u64;
        self.out.false_candidates = wrong as u64;
        let memory = self.filter_memory().saturating_sub(self.held).max(self.work() / 4);
        let (size, rate) = match self.plan.beside {
            0 => self.filter(self.out.candidates, memory),
            // Sized for twice as many.
            bytes => (bytes, self.filter(self.out.candidates, bytes).1),
        };
        let confirm = |run: &mut Self, sample: &Sample, shared: f64, record| {
            run.read(sample);
            let rest = (sample.lines as f64 - shared).max(0.0);
            run.gather(shared + rest * rate, record, size);
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
        let (size, _) = self.filter(sizes.lines(), self.filter_memory());
        if !sizes.others.is_empty() {
            self.out.passes += 1;
            self.out.bytes_read += sizes.others.iter().map(|other| other.bytes).sum::<u64>();
        }
        self.read(&sizes.first);
        let right = sizes.first.lines as f64 - kept;
        let wrong = kept * self.mean_rate(size, kept as u64);
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
        let shared: f64 =
            (0..sizes.others.len()).map(|j| sizes.others[j].lines as f64 * sizes.in_first(j)).sum();
        if !sizes.others.is_empty() {
            self.out.passes += 1;
            self.out.bytes_read += sizes.others.iter().map(|other| other.bytes).sum::<u64>();
            self.gather(shared + (of_others - shared) * rate, OTHER_RECORD, size);
        }
        self.read(&sizes.first);
        // A line that occurs again is there once more than it is questioned.
        let copies = (sizes.first.lines - sizes.first.distinct.min(sizes.first.lines)) as f64;
        let lines = right + wrong + copies;
        let rest = (sizes.first.lines as f64 - lines).max(0.0);
        self.gather(lines + rest * rate, FIRST_RECORD, size);
    }

    /// The rate at which a filter misleads while the first input's `new` lines fill it up behind
    /// the others.
    fn mean_rate(&self, size: u64, new: u64) -> f64 {
        const STEPS: u64 = 32;
        let others: u64 = self.sizes.others.iter().map(|other| other.distinct).sum();
        let Ok(shape) = Shape::for_memory(size, self.sizes.lines().max(1)) else { return 1.0 };
        let at = |step: u64| shape.rate(others + new / STEPS * step);
        (0..STEPS).map(|step| (at(step) + at(step + 1)) / 2.0).sum::<f64>() / STEPS as f64
    }

    /// The marks, and the last pass: all of the first input, or the chunks with kept lines.
    fn print(&mut self, kept: f64, dropped: bool) {
        let first = &self.sizes.first;
        let budget = &self.job.budget;
        let lines = first.lines.max(1) as f64;
        let marks = if dropped { lines - kept } else { kept };
        let workers = budget.workers as u64;
        let memory = (self.work() - self.held.min(self.work() / 2)) / workers / 8;
        let share = self.work() / 8 / workers;
        let spans = Spans::new(first.bytes, Spill::most_streams(share)).count();
        let each = (marks * 8.0 / workers as f64) as u64;
        self.out.spilled += workers * Spill::written(each, spans, memory);
        if dropped {
            return self.read(first);
        }
        if kept >= 1.0 {
            let in_chunk = budget.chunk as f64 * lines / first.bytes.max(1) as f64;
            let empty = (1.0 - (kept / lines).min(1.0)).powf(in_chunk);
            self.out.passes += 1;
            self.out.bytes_read += (first.bytes as f64 * (1.0 - empty)) as u64;
        }
    }
}
