//! The strategy `Memory`: lines are judged as they are read, answers printed at once.

use std::sync::Arc;

use super::{Exact, Others};
use crate::error::Result;
use crate::input::{Input, Spool};
use crate::judge::{EXPECTED, Judge, Seed, Verdict};
use crate::pass::{Batch, Flow, Scratch};
use crate::plan::{Sizes, Strategy};
use crate::print::Printer;
use crate::report::Report;
use crate::resolve::choose_seed;
use crate::table::Table;

/// How far a judge came.
enum Judged {
    /// All answers are printed.
    All,
    /// The seed did not fit: nothing is printed.
    Nothing,
    /// The table was full when so much was printed.
    UpTo(Overflow),
}

/// A judge whose table is full, and from where in the first input the lines are undecided.
struct Overflow {
    judge: Judge,
    at: (usize, u64),
    /// The undecided rest of inputs that cannot be read again.
    spools: Vec<(usize, Spool)>,
}

impl Exact<'_> {
    pub(super) fn in_memory(
        &self,
        first: Vec<Input>,
        others: Vec<Input>,
        sizes: &Sizes,
        printer: &mut Printer<'_>,
        report: &mut Report,
    ) -> Result<()> {
        let judged = self.judge_lines(&first, &others, sizes, printer, report)?;
        if matches!(judged, Judged::All) {
            return Ok(());
        }
        report.strategy = "memory, then partition".into();
        let plan = sizes.plan(Strategy::Partition, false, &self.budget);
        let Judged::UpTo(Overflow { judge, at: (input, position), mut spools }) = judged else {
            let spool = |input: Input| input.spool(&self.temp, self.progress);
            let first = first.into_iter().map(spool).collect::<Result<_>>()?;
            return self.on_disk(plan, first, Others::new(others), sizes, printer, report, None);
        };
        let mut rest = Vec::new();
        for (index, whole) in first.into_iter().enumerate().skip(input) {
            let name = whole.name().to_owned();
            let contents = Arc::clone(whole.contents());
            let copy = |spool| Input::of_spool(spool, name, contents);
            rest.push(match spools.iter().position(|(spooled, _)| *spooled == index) {
                Some(at) => copy(spools.swap_remove(at).1),
                None if !whole.is_repeatable() => copy(Spool::new(&self.temp)?),
                None if index == input => whole.from(position),
                None => whole,
            });
        }
        let others = Others { lines: Vec::new(), prior: Some(judge.into_table()) };
        let judged = report.first_lines;
        self.on_disk(plan, rest, others, sizes, printer, report, None)?;
        report.first_lines += judged;
        Ok(())
    }

    /// Shows all lines to a judge and prints its answers, as far as the table has room.
    fn judge_lines(
        &self,
        first: &[Input],
        others: &[Input],
        sizes: &Sizes,
        printer: &mut Printer<'_>,
        report: &mut Report,
    ) -> Result<Judged> {
        let memory = self.budget.work;
        let distinct: Vec<_> = sizes.others.iter().map(|other| other.distinct).collect();
        let repeatable = first.iter().all(Input::is_repeatable);
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
                for prints in scratch.prints.chunks(EXPECTED) {
                    judge.expect(prints);
                    for &print in prints {
                        if judge.seed(print)?.is_err() {
                            fits = false;
                            return Ok(Flow::Stop);
                        }
                    }
                }
                Ok(Flow::Go)
            };
            report.saw(self.pass().run("reading", &inputs, self.fingerprints(), fold)?);
            if !fits {
                return Ok(Judged::Nothing);
            }
        }
        for j in judge.markers(others.len()) {
            let fold = |_: &Batch<'_>, scratch: &mut Scratch| {
                for prints in scratch.prints.chunks(EXPECTED) {
                    judge.expect(prints);
                    prints.iter().for_each(|&print| {
                        judge.mark(print);
                    });
                }
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
                if line % EXPECTED == 0 {
                    let next = batch.len().min(line + EXPECTED);
                    judge.expect(&scratch.prints[line..next]);
                }
                match judge.verdict(scratch.prints[line])? {
                    Ok(Verdict::Kept) => printer.line(batch.line(line))?,
                    Ok(_) => printer.rest(batch.range(line..line + 1))?,
                    Err(_) => full = Some((batch.input, batch.offset(line))),
                }
                line += usize::from(full.is_none());
            }
            report.first_lines += line as u64;
            if full.is_some() {
                // What streams have brought must be kept, whoever read it already.
                if repeatable {
                    return Ok(Flow::Stop);
                }
                if !first[batch.input].is_repeatable() {
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
        let seen = self.pass().run("comparing", &refs, self.fingerprints(), fold)?;
        report.saw(seen);
        Ok(full.map_or(Judged::All, |at| Judged::UpTo(Overflow { judge, at, spools })))
    }

    /// Fingerprints every line of a batch.
    fn fingerprints(&self) -> impl Fn(&Batch<'_>, &mut Scratch) + Sync + '_ {
        |batch, scratch| {
            scratch.prints.clear();
            self.hashes.fingerprints(batch.lines(), &mut scratch.prints);
        }
    }
}
