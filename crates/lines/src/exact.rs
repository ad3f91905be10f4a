//! The set verbs, exactly. The phases, and how they follow from the strategy.
//!
//! * **Memory**: a judge is shown the lines as they are read, and answers are printed at once.
//!   Should the table fill up under `diff` or `dedup` while lines are being printed, what was
//!   printed stands: its fingerprints become one more "other" and the rest of the input goes on
//!   as `Partition`.
//! * **Partition**: every line becomes a record, records are resolved by partition, and a last
//!   pass over the first input prints the positions kept.
//! * **Narrow**, `common`: filter one side, keep the other side's hits, filter those, keep the
//!   first side's hits; resolve and print as above.
//! * **Narrow**, `diff` and `dedup`: put all lines through one filter; a line that it has not
//!   seen is certainly new. The lines it has seen are *questioned*: filter their keys, collect
//!   every line with such a key, resolve, and print all lines but those dropped.

use std::time::Instant;

use petal::BloomFilter;

use crate::budget::Budget;
use crate::error::Result;
use crate::fingerprint::{Fingerprint, Hashes};
use crate::input::{Input, Spool, Temp};
use crate::judge::{Judge, Seed, Verb};
use crate::pass::{Batch, Flow, Pass, Scratch, Seen};
use crate::plan::{Plan, Sample, Sizes, Strategy, filter_bytes};
use crate::print::{Printer, print_listed};
use crate::progress::Progress;
use crate::report::Report;
use crate::resolve::{Digits, Listed, Part, Resolver, choose_seed, first_record};
use crate::runs::{Merge, narrow};
use crate::spill::{Scratchpad, Spill, Stream, held, write_out};
use crate::table::Table;

/// Memory kept free for records beside a filter that could use all there is.
fn least_records(work: u64) -> u64 {
    (work / 16).min(256 << 20)
}

/// One exact job.
pub(crate) struct Exact<'a> {
    pub(crate) verb: Verb,
    pub(crate) budget: Budget,
    pub(crate) delimiter: u8,
    pub(crate) temp: Temp,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) strategy: Option<Strategy>,
    pub(crate) hashes: Hashes,
}

impl Exact<'_> {
    fn pass(&self) -> Pass<'_> {
        Pass { budget: self.budget, delimiter: self.delimiter, progress: self.progress }
    }

    pub(crate) fn run(
        &self,
        first: Vec<Input>,
        others: Vec<Input>,
        printer: &mut Printer<'_>,
    ) -> Result<Report> {
        let begun = Instant::now();
        let mut report = Report::default();
        // Others are read twice by some strategies, and their sizes choose among them.
        let spool = |input: Input| input.spool(&self.temp, self.progress);
        let others = others.into_iter().map(spool).collect::<Result<Vec<_>>>()?;
        let streams = first.iter().any(|input| !input.is_file());
        let mut sizes = self.sizes(&first, &others)?;
        let plan = match self.strategy {
            Some(strategy) => Plan { strategy, first_begins: false },
            // Of unknown size: begin in memory, and see.
            None if streams && self.begins_in_memory(&sizes) => {
                Plan { strategy: Strategy::Memory, first_begins: false }
            }
            None if streams => {
                let first = first.into_iter().map(spool).collect::<Result<Vec<_>>>()?;
                return self.run(first, others, printer);
            }
            None => sizes.choose(&self.budget),
        };
        sizes.forget_keys();
        report.strategy = plan.strategy.name();
        if plan.strategy == Strategy::Memory {
            self.in_memory(first, others, &sizes, printer, &mut report)?;
        } else {
            let first = first.into_iter().map(spool).collect::<Result<Vec<_>>>()?;
            self.on_disk(plan, first, Others::new(others), &sizes, printer, &mut report)?;
        }
        printer.flush()?;
        report.kept = printer.lines;
        report.seconds = begun.elapsed().as_secs_f64();
        Ok(report)
    }

    fn sizes(&self, first: &[Input], others: &[Input]) -> Result<Sizes> {
        let among = others.len() + 1;
        let sample = |inputs: &[&Input]| {
            Sample::of(inputs, &self.hashes, self.delimiter, self.budget.work, among)
        };
        let files: Vec<_> = first.iter().filter(|input| input.is_file()).collect();
        let first = sample(&files)?;
        let others = others.iter().map(|other| sample(&[other])).collect::<Result<_>>()?;
        Ok(Sizes { verb: self.verb, first, others })
    }

    /// Whether a first input of unknown size can be judged while it streams by.
    fn begins_in_memory(&self, sizes: &Sizes) -> bool {
        let capacity = Table::capacity(self.budget.work) / 10 * 9;
        match self.verb {
            Verb::Dedup => true,
            Verb::Diff => sizes.others.iter().map(|o| o.distinct).sum::<u64>() <= capacity / 2,
            Verb::Common => {
                sizes.others.iter().map(|o| o.distinct).min().is_some_and(|d| d <= capacity)
            }
        }
    }

    // ---- Memory -------------------------------------------------------------------------------

    fn in_memory(
        &self,
        first: Vec<Input>,
        others: Vec<Input>,
        sizes: &Sizes,
        printer: &mut Printer<'_>,
        report: &mut Report,
    ) -> Result<()> {
        let Some(overflow) = self.judge_lines(&first, &others, sizes, printer, report)? else {
            return Ok(());
        };
        report.strategy = "memory, then partition";
        let plan = Plan { strategy: Strategy::Partition, first_begins: false };
        let Some(Overflow { judge, at: (input, position), mut spools }) = overflow else {
            // Nothing was printed yet.
            let spool = |input: Input| input.spool(&self.temp, self.progress);
            let first = first.into_iter().map(spool).collect::<Result<_>>()?;
            return self.on_disk(plan, first, Others::new(others), sizes, printer, report);
        };
        let mut rest = Vec::new();
        for (index, whole) in first.into_iter().enumerate().skip(input) {
            let name = whole.name().to_owned();
            rest.push(match spools.iter().position(|(spooled, _)| *spooled == index) {
                Some(at) => spools.swap_remove(at).1.into_input(name),
                None if !whole.is_file() => Spool::new(&self.temp)?.into_input(name),
                None if index == input => whole.from(position),
                None => whole,
            });
        }
        let others = Others { lines: Vec::new(), prior: Some(judge.into_table()) };
        self.on_disk(plan, rest, others, sizes, printer, report)
    }

    /// Shows all lines to a judge and prints its answers. `None`: done. `Some(None)`: the seed
    /// did not fit. `Some(Some(_))`: the table was full when so much was printed.
    fn judge_lines(
        &self,
        first: &[Input],
        others: &[Input],
        sizes: &Sizes,
        printer: &mut Printer<'_>,
        report: &mut Report,
    ) -> Result<Option<Option<Overflow>>> {
        let memory = self.budget.work;
        let distinct: Vec<_> = sizes.others.iter().map(|other| other.distinct).collect();
        let repeatable = first.iter().all(Input::is_file);
        let known = if repeatable { sizes.first.distinct } else { u64::MAX / 2 };
        let (mut seed, mut expected) =
            choose_seed(self.verb, known, &distinct, Table::capacity(memory) / 10 * 9);
        if !repeatable && seed == Seed::First {
            (seed, expected) = (Seed::Others(0), distinct.iter().sum());
        }
        if !repeatable {
            // The table grows with what comes: a short stream must not cost all of the memory.
            expected = expected.min(distinct.iter().sum());
        }
        let mut judge = Judge::new(self.verb, seed, Table::new(memory, expected)?);
        let refs: Vec<_> = first.iter().collect();

        // The seed and the marks.
        let mut fits = true;
        let mut seeders: Vec<Vec<&Input>> = Vec::new();
        if seed == Seed::First {
            seeders.push(refs.clone());
        }
        seeders.extend(judge.seeders(others.len()).into_iter().map(|j| vec![&others[j]]));
        for inputs in seeders {
            let fold = |_: &Batch<'_>, scratch: &mut Scratch| {
                for &print in &scratch.prints {
                    if judge.seed(print)?.is_err() {
                        fits = false;
                        return Ok(Flow::Stop);
                    }
                }
                Ok(Flow::Go)
            };
            report.saw(self.pass().run("reading", &inputs, self.fingerprints(), fold)?);
            if !fits {
                return Ok(Some(None));
            }
        }
        for j in judge.markers(others.len()) {
            let fold = |_: &Batch<'_>, scratch: &mut Scratch| {
                scratch.prints.iter().for_each(|&print| judge.mark(print));
                Ok(Flow::Go)
            };
            report.saw(self.pass().run("reading", &[&others[j]], self.fingerprints(), fold)?);
            judge.end_round();
        }

        // The answer, line by line.
        let live = !repeatable;
        let mut full: Option<(usize, u64)> = None;
        let mut spools: Vec<(usize, Spool)> = Vec::new();
        let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
            let mut line = 0;
            while full.is_none() && line < batch.len() {
                match judge.verdict(scratch.prints[line])? {
                    Ok(true) => printer.line(batch.line(line))?,
                    Ok(false) => {}
                    Err(_) => full = Some((batch.input, batch.offset(line))),
                }
                line += usize::from(full.is_none());
            }
            if full.is_some() {
                // What streams have brought must be kept, whoever read it already.
                if repeatable {
                    return Ok(Flow::Stop);
                }
                if !first[batch.input].is_file() {
                    if spools.last().is_none_or(|(input, _)| *input != batch.input) {
                        spools.push((batch.input, Spool::new(&self.temp)?));
                    }
                    if let Some((_, spool)) = spools.last_mut() {
                        spool.append(batch.tail(line))?;
                    }
                }
            } else if live && !batch.more {
                printer.flush()?;
            }
            Ok(Flow::Go)
        };
        report.saw(self.pass().run("comparing", &refs, self.fingerprints(), fold)?);
        for input in first {
            input.check_unchanged()?;
        }
        Ok(full.map(|at| Some(Overflow { judge, at, spools })))
    }

    /// Fingerprints every line of a batch.
    fn fingerprints(&self) -> impl Fn(&Batch<'_>, &mut Scratch) + Sync + '_ {
        |batch, scratch| {
            scratch.prints.clear();
            scratch.prints.extend(batch.lines().map(|line| self.hashes.fingerprint(line)));
        }
    }

    // ---- Narrow and Partition -----------------------------------------------------------------

    fn on_disk(
        &self,
        plan: Plan,
        first: Vec<Input>,
        others: Others,
        sizes: &Sizes,
        printer: &mut Printer<'_>,
        report: &mut Report,
    ) -> Result<()> {
        let pad = Scratchpad::new(&self.temp)?;
        let mut work = Gather {
            job: self,
            pad: &pad,
            digits: self.digits(sizes, others.prior.as_ref()),
            first: Vec::new(),
            others: Vec::new(),
            report,
        };
        let refs: Vec<_> = first.iter().collect();
        let listed = match (plan.strategy, self.verb) {
            (Strategy::Narrow, Verb::Common) if !others.lines.is_empty() => {
                work.narrow_common(&refs, &others.lines, sizes, plan.first_begins)?;
                Listed::Kept
            }
            (Strategy::Narrow, Verb::Diff | Verb::Dedup) => {
                work.narrow_diff(&refs, &others.lines, sizes)?
            }
            _ => {
                work.everything(&refs, others)?;
                Listed::Kept
            }
        };
        let (runs, digits, report) = (work.take_parts(), work.digits, work.report);
        self.progress.phase("deciding", None);
        let resolver = Resolver {
            verb: self.verb,
            listed,
            pad: &pad,
            memory: self.budget.work - runs.1.min(self.budget.work / 2),
            workers: self.budget.workers,
        };
        let (runs, count) = resolver.resolve(runs.0, &digits)?;
        report.spilled = pad.written();
        if printer.counts_only() {
            printer.lines += match listed {
                Listed::Kept => count,
                Listed::Dropped => report.first_lines - count,
            };
            return Ok(());
        }
        let before = printer.lines;
        let runs = narrow(runs, self.budget.work, &pad)?;
        let mut merge = Merge::new(&runs, &pad)?;
        print_listed(&first, listed, || merge.next_position(), printer, self.progress)?;
        if listed == Listed::Dropped {
            printer.lines = before + report.first_lines - count;
        }
        report.passes += u64::from(listed == Listed::Dropped || count > 0);
        report.spilled = pad.written();
        Ok(())
    }

    /// Enough partitions that each is likely to fit one worker's share of memory.
    fn digits(&self, sizes: &Sizes, prior: Option<&Table>) -> Digits {
        let share = self.budget.work / self.budget.workers as u64 / 2;
        let lines = sizes.lines() + prior.map_or(0, Table::len) * 8;
        let wanted = (lines / Table::capacity(share).max(1) + 1) * 3 / 2;
        let affordable = Spill::most_streams(least_records(self.budget.work));
        Digits::new(wanted.clamp(1, affordable.min(1024)))
    }
}

/// A judge whose table is full, and from where in the first input the lines are undecided.
struct Overflow {
    judge: Judge,
    at: (usize, u64),
    /// The undecided rest of inputs that cannot be read again.
    spools: Vec<(usize, Spool)>,
}

/// What the first input is compared with.
struct Others {
    lines: Vec<Input>,
    /// Lines that were printed already.
    prior: Option<Table>,
}

impl Others {
    fn new(lines: Vec<Input>) -> Self {
        Self { lines, prior: None }
    }
}

/// Collects the records of all inputs.
struct Gather<'a, 'r> {
    job: &'a Exact<'a>,
    pad: &'a Scratchpad,
    digits: Digits,
    first: Vec<Stream>,
    others: Vec<Vec<Stream>>,
    report: &'r mut Report,
}

impl<'a> Gather<'a, '_> {
    fn work(&self) -> u64 {
        self.job.budget.work
    }

    /// All lines of all inputs.
    fn everything(&mut self, first: &[&Input], others: Others) -> Result<()> {
        if let Some(table) = others.prior {
            // The table still fills the memory: go to disk through a small window.
            let mut spill = Spill::new(self.pad, self.digits.parts(), 0);
            for (print, _) in table.iter() {
                spill.push(self.digits.of(print), &print.to_bytes())?;
            }
            let mut streams = spill.finish()?;
            write_out(&mut streams, self.pad)?;
            self.others.push(streams);
        }
        for other in &others.lines {
            let streams = self.gather("reading", &[other], Role::Other, None, None)?;
            self.others.push(streams);
        }
        self.first = self.gather("reading", first, Role::First, None, None)?;
        Ok(())
    }

    fn narrow_common(
        &mut self,
        first: &[&Input],
        others: &[Input],
        sizes: &Sizes,
        first_begins: bool,
    ) -> Result<()> {
        let small = sizes.smallest_other();
        let smallest = &[&others[small]][..];
        let (begin, next, lines) = if first_begins {
            (first, smallest, sizes.first.lines)
        } else {
            (smallest, first, sizes.others[small].lines)
        };
        let (role, back) =
            if first_begins { (Role::Other, Role::First) } else { (Role::First, Role::Other) };

        // There: whatever of `next` the filter of `begin` cannot rule out.
        let filter = self.filter_lines("filtering", begin, lines)?;
        let mut keys = self.key_log();
        let hits = self.gather("matching", next, role, Some(&filter), Some(&mut keys))?;
        drop(filter);
        // And back: whatever of `begin`, and of the others, the filter of those hits cannot.
        let filter = self.filter_keys(keys.finish()?.swap_remove(0), held(&hits))?;
        self.report.candidates = filter.as_ref().map_or(0, BloomFilter::inserted);
        let mut set = |streams, index: Option<usize>| match index {
            None => self.first = streams,
            Some(_) => self.others.push(streams),
        };
        set(hits, first_begins.then_some(small));
        let Some(filter) = filter else {
            // Nothing hit: nothing is common.
            return Ok(());
        };
        let streams = self.gather("confirming", begin, back, Some(&filter), None)?;
        match back {
            Role::First => self.first = streams,
            Role::Other => self.others.push(streams),
        }
        for (j, other) in others.iter().enumerate() {
            if j != small {
                let streams =
                    self.gather("confirming", &[other], Role::Other, Some(&filter), None)?;
                self.others.push(streams);
            }
        }
        Ok(())
    }

    fn narrow_diff(&mut self, first: &[&Input], others: &[Input], sizes: &Sizes) -> Result<Listed> {
        let job = self.job;
        let memory = self.work() - least_records(self.work());
        let mut filter =
            BloomFilter::with_memory(filter_bytes(sizes.lines(), memory), sizes.lines().max(1))?;
        for other in others {
            self.fill("filtering", &[other], &mut filter)?;
        }
        // A line the filter has not seen is new; the others are in question.
        let mut keys = self.key_log();
        let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
            scratch.keys.clear();
            scratch.keys.extend(batch.lines().map(|line| job.hashes.key(line)));
        };
        let fold = |_: &Batch<'_>, scratch: &mut Scratch| {
            filter.insert_hashes(&scratch.keys, &mut scratch.answers);
            for (at, key) in scratch.keys.iter().enumerate() {
                if !scratch.answers.get(at) {
                    keys.push(0, &key.to_le_bytes())?;
                }
            }
            Ok(Flow::Go)
        };
        let seen = job.pass().run("filtering", first, map, fold)?;
        self.report.saw(seen);
        self.report.first_lines = seen.lines;
        drop(filter);
        self.report.candidates = keys.bytes() / 8;
        let questions = keys.finish()?.swap_remove(0);
        let all = (seen.lines + sizes.lines()) / 2;
        if questions.bytes() / 8 > all / 2 {
            // Most lines are in question: filters cannot narrow this.
            drop(questions);
            self.report.strategy = "narrow, then partition";
            let others = others.iter().map(|other| vec![other]);
            for other in others {
                let streams = self.gather("reading", &other, Role::Other, None, None)?;
                self.others.push(streams);
            }
            self.first = self.gather("reading", first, Role::First, None, None)?;
            return Ok(Listed::Kept);
        }
        if let Some(filter) = self.filter_keys(questions, 0)? {
            for other in others {
                let streams =
                    self.gather("confirming", &[other], Role::Other, Some(&filter), None)?;
                self.others.push(streams);
            }
            self.first = self.gather("confirming", first, Role::First, Some(&filter), None)?;
        }
        Ok(Listed::Dropped)
    }

    /// A filter of all lines of the inputs, as large as the memory allows.
    fn filter_lines(
        &mut self,
        what: &'static str,
        inputs: &[&Input],
        lines: u64,
    ) -> Result<BloomFilter> {
        let memory = self.work() - least_records(self.work());
        let mut filter = BloomFilter::with_memory(filter_bytes(lines, memory), lines.max(1))?;
        self.fill(what, inputs, &mut filter)?;
        Ok(filter)
    }

    fn fill(
        &mut self,
        what: &'static str,
        inputs: &[&Input],
        filter: &mut BloomFilter,
    ) -> Result<()> {
        let job = self.job;
        let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
            scratch.keys.clear();
            scratch.keys.extend(batch.lines().map(|line| job.hashes.key(line)));
        };
        let fold = |_: &Batch<'_>, scratch: &mut Scratch| {
            filter.insert_hashes(&scratch.keys, &mut scratch.answers);
            Ok(Flow::Go)
        };
        self.report.saw(job.pass().run(what, inputs, map, fold)?);
        Ok(())
    }

    /// Where the keys of hits go, to make the next filter from.
    fn key_log(&self) -> Spill<'a> {
        Spill::new(self.pad, 1, 256 << 10)
    }

    /// A filter of logged keys, beside records that take `held` bytes; `None` of no keys.
    fn filter_keys(&self, keys: Stream, held: u64) -> Result<Option<BloomFilter>> {
        let count = keys.bytes() / 8;
        if count == 0 {
            return Ok(None);
        }
        let memory = self.work() - least_records(self.work());
        let memory = memory.saturating_sub(held).max(self.work() / 4);
        let mut filter = BloomFilter::with_memory(filter_bytes(count, memory), count)?;
        let (mut hashes, mut new) = (Vec::new(), petal::Answers::default());
        keys.for_each_block(self.pad, |block| {
            hashes.clear();
            hashes.extend(block.as_chunks().0.iter().map(|key| u64::from_le_bytes(*key)));
            filter.insert_hashes(&hashes, &mut new);
            Ok(())
        })?;
        Ok(Some(filter))
    }

    /// Records of the lines that the filter cannot rule out, or of all lines.
    fn gather(
        &mut self,
        what: &'static str,
        inputs: &[&Input],
        role: Role,
        filter: Option<&BloomFilter>,
        mut keys: Option<&mut Spill<'a>>,
    ) -> Result<Vec<Stream>> {
        let job = self.job;
        let allowance = self.make_room(filter.map_or(0, BloomFilter::size_bytes))?;
        let mut spill = Spill::new(self.pad, self.digits.parts(), allowance);
        let digits = &self.digits;
        let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
            scratch.picks.clear();
            match filter {
                None => scratch.picks.extend(0..batch.len()),
                Some(filter) => {
                    scratch.keys.clear();
                    scratch.keys.extend(batch.lines().map(|line| job.hashes.key(line)));
                    filter.contains_hashes(&scratch.keys, &mut scratch.answers);
                    scratch.picks.extend(scratch.answers.iter());
                }
            }
            scratch.prints.clear();
            let picked = scratch.picks.iter().map(|&line| batch.line(line));
            scratch.prints.extend(picked.map(|line| job.hashes.fingerprint(line)));
        };
        let starts = starts(inputs);
        let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
            for (&line, &print) in scratch.picks.iter().zip(&scratch.prints) {
                let part = digits.of(print);
                match role {
                    Role::Other => spill.push(part, &print.to_bytes())?,
                    Role::First => {
                        let position = starts[batch.input] + batch.offset(line);
                        spill.push(part, &first_record(print, position))?;
                    }
                }
                if let Some(keys) = &mut keys {
                    keys.push(0, &scratch.keys[line].to_le_bytes())?;
                }
            }
            Ok(Flow::Go)
        };
        let seen: Seen = job.pass().run(what, inputs, map, fold)?;
        self.report.saw(seen);
        if role == Role::First {
            self.report.first_lines = seen.lines;
        }
        self.report.records += spill.bytes() / role.record() as u64;
        spill.finish()
    }

    /// How much memory the next records may take beside a filter of so many bytes. Earlier
    /// records that are still in memory go to disk if that leaves too little.
    fn make_room(&mut self, filter: u64) -> Result<u64> {
        let free = self.work().saturating_sub(filter);
        let least = least_records(self.work()).min(free);
        let all = || self.others.iter().flatten().chain(&self.first);
        let taken: u64 = all().map(|stream| held(std::slice::from_ref(stream))).sum();
        if free.saturating_sub(taken) >= least.max(free / 2) {
            return Ok(free - taken);
        }
        for streams in self.others.iter_mut().chain([&mut self.first]) {
            write_out(streams, self.pad)?;
        }
        Ok(free)
    }

    /// The records by partition, and the memory they hold.
    fn take_parts(&mut self) -> (Vec<Part>, u64) {
        let count = self.digits.parts();
        let all = self.others.iter().flatten().chain(&self.first);
        let taken = all.map(|stream| held(std::slice::from_ref(stream))).sum();
        let first = std::mem::take(&mut self.first);
        let others = std::mem::take(&mut self.others);
        let mut parts: Vec<_> = first
            .into_iter()
            .chain(std::iter::repeat_with(Stream::default))
            .take(count)
            .map(|first| Part { first, others: Vec::new() })
            .collect();
        for streams in others {
            let streams = streams.into_iter().chain(std::iter::repeat_with(Stream::default));
            parts.iter_mut().zip(streams).for_each(|(part, other)| part.others.push(other));
        }
        (parts, taken)
    }
}

/// Whose records.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    First,
    Other,
}

impl Role {
    fn record(self) -> usize {
        match self {
            Self::First => crate::resolve::FIRST_RECORD,
            Self::Other => crate::resolve::OTHER_RECORD,
        }
    }
}

/// Where each input begins when they are taken as one.
fn starts(inputs: &[&Input]) -> Vec<u64> {
    let mut next = 0;
    let start = |input: &&Input| {
        let start = next;
        next += input.length().unwrap_or(0);
        start
    };
    inputs.iter().map(start).collect()
}

/// A fingerprint is what records begin with.
const _: () = assert!(crate::resolve::FIRST_RECORD == Fingerprint::BYTES + 8);
