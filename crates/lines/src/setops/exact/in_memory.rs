//! The strategy [`Strategy::Memory`](crate::setops::Strategy::Memory): lines are decided as they
//! are read, and printed at once.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::ExactJob;
use super::join::choose_build_side;
use super::with_records::{self, Others};
use crate::error::Result;
use crate::fingerprint::Table;
use crate::input::{Input, of_spool, spool};
use crate::output::Printer;
use crate::scan::{Batch, Scratch};
use crate::setops::planning::{InputSizes, Strategy};
use crate::setops::report::Report;
use crate::setops::set_semantics::{BuildSide, Decision, PREFETCH_BATCH, SetMatcher, SetOp};
use crate::temp::Spool;

/// The outcome of processing in memory.
enum InMemoryOutcome {
    /// All lines are decided and printed.
    Done,
    /// The build side does not fit. Nothing is printed.
    BuildSideTooLarge,
    /// The table is full after some lines have been printed.
    TableFull(Overflow),
}

/// A matcher with a full table, and the position of the first undecided line.
struct Overflow {
    matcher: SetMatcher,
    at: (usize, u64),
    /// Undecided lines of inputs that can be read only once.
    spools: Vec<(usize, Spool)>,
}

/// Runs `Memory`; what does not fit in the table goes on as `Partition`.
pub(super) fn run(
    job: &ExactJob<'_>,
    first: Vec<Input>,
    others: Vec<Input>,
    sizes: &InputSizes,
    printer: &mut Printer<'_>,
    report: &mut Report,
) -> Result<()> {
    let outcome = match_lines(job, &first, &others, sizes, printer, report)?;
    if matches!(outcome, InMemoryOutcome::Done) {
        return Ok(());
    }
    report.strategy = Strategy::Memory.name_then_partition().into();
    let (repeatable, prints) = (first.iter().all(Input::is_repeatable), !printer.counts_only());
    let plan = sizes.plan(Strategy::Partition, false, &job.budget);
    let InMemoryOutcome::TableFull(Overflow { matcher, at: (input, position), mut spools }) =
        outcome
    else {
        let spool = |input: Input| spool(input, &job.temp, job.progress);
        let first = first.into_iter().map(spool).collect::<Result<_>>()?;
        if repeatable {
            job.progress.expect_total(job.expected_bytes(sizes, plan, prints));
        }
        return with_records::run(
            job,
            plan,
            first,
            Others::new(others),
            sizes,
            printer,
            report,
            None,
        );
    };
    let mut rest = Vec::new();
    for (index, whole) in first.into_iter().enumerate().skip(input) {
        let name = whole.name().to_owned();
        let checks = Arc::clone(whole.content_checks());
        let (keys, found) = (Arc::clone(whole.keys()), Arc::clone(whole.found()));
        let copy = |spool| of_spool(spool, name, checks).with_keys(&keys).with_found(&found);
        rest.push(match spools.iter().position(|(spooled, _)| *spooled == index) {
            Some(at) => copy(spools.swap_remove(at).1),
            None if !whole.is_repeatable() => copy(Spool::new(&job.temp)?),
            None if index == input => whole.from(position),
            None => whole,
        });
    }
    let table = matcher.into_table();
    if repeatable {
        // 0 if the length of a compressed input is not known yet.
        let undecided = rest.iter().map(Input::length).sum::<Option<u64>>().unwrap_or(0);
        let entries = table.len();
        let bytes = job.expected_bytes_of_rest(sizes, undecided, entries, prints);
        job.progress.expect_total(bytes);
    }
    let others = Others { lines: Vec::new(), prior: Some(table) };
    let decided = report.first_lines;
    with_records::run(job, plan, rest, others, sizes, printer, report, None)?;
    report.first_lines += decided;
    Ok(())
}

/// Decides and prints lines until the table is full.
fn match_lines(
    job: &ExactJob<'_>,
    first: &[Input],
    others: &[Input],
    sizes: &InputSizes,
    printer: &mut Printer<'_>,
    report: &mut Report,
) -> Result<InMemoryOutcome> {
    let mut matcher = new_matcher(job, first, sizes)?;
    if !build(job, &mut matcher, first, others, report)? {
        return Ok(InMemoryOutcome::BuildSideTooLarge);
    }
    probe(job, &mut matcher, others, report)?;
    decide(job, matcher, first, printer, report)
}

/// Chooses the build side. Returns a matcher without lines.
fn new_matcher(job: &ExactJob<'_>, first: &[Input], sizes: &InputSizes) -> Result<SetMatcher> {
    let memory = job.budget.work;
    let distinct: Vec<_> = sizes.others.iter().map(|other| other.distinct).collect();
    let repeatable = first.iter().all(Input::is_repeatable);
    let known = if repeatable { sizes.first.distinct } else { u64::MAX / 2 };
    let (mut build_side, mut expected) =
        choose_build_side(job.op, known, &distinct, Table::capacity(memory) / 10 * 9);
    if !repeatable && build_side == BuildSide::First {
        (build_side, expected) = (BuildSide::Others(0), distinct.iter().sum());
    }
    if !repeatable {
        // The table grows with the input: a short stream must not allocate all memory.
        expected = expected.min(distinct.iter().sum());
    }
    Ok(SetMatcher::new(job.op, build_side, Table::new(memory, expected)?))
}

/// Inserts the lines of the build side. Returns false if the table is full before the end.
fn build(
    job: &ExactJob<'_>,
    matcher: &mut SetMatcher,
    first: &[Input],
    others: &[Input],
    report: &mut Report,
) -> Result<bool> {
    let mut build_inputs: Vec<Vec<&Input>> = Vec::new();
    if matcher.builds_first() {
        build_inputs.push(first.iter().collect());
    }
    build_inputs.extend(matcher.build_inputs(others.len()).into_iter().map(|j| vec![&others[j]]));
    let mut fits = true;
    for inputs in build_inputs {
        let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
            let second = batch.input >= job.boundary;
            let mut lines = 0;
            for fingerprints in scratch.fingerprints.chunks(PREFETCH_BATCH) {
                matcher.prefetch(fingerprints);
                for &fingerprint in fingerprints {
                    let built = match job.op {
                        SetOp::SymDiff => matcher.build_of_side(fingerprint, second)?,
                        _ => matcher.build(fingerprint)?,
                    };
                    if built.is_err() {
                        fits = false;
                        return Ok(ControlFlow::Break(lines));
                    }
                    lines += 1;
                }
            }
            Ok(ControlFlow::Continue(()))
        };
        report.add_pass(job.pass().run("reading", &inputs, fingerprints(job), fold)?);
        if !fits {
            break;
        }
    }
    Ok(fits)
}

/// Looks up the lines of the other inputs that are not on the build side.
fn probe(
    job: &ExactJob<'_>,
    matcher: &mut SetMatcher,
    others: &[Input],
    report: &mut Report,
) -> Result<()> {
    for j in matcher.probe_inputs(others.len()) {
        let fold = |_: &Batch<'_>, scratch: &mut Scratch| {
            for fingerprints in scratch.fingerprints.chunks(PREFETCH_BATCH) {
                matcher.prefetch(fingerprints);
                fingerprints.iter().for_each(|&fingerprint| {
                    matcher.probe(fingerprint);
                });
            }
            Ok(ControlFlow::Continue(()))
        };
        let inputs = [&others[j]];
        report.add_pass(job.pass().run("reading", &inputs, fingerprints(job), fold)?);
        matcher.end_round();
    }
    Ok(())
}

/// Decides the lines of the first inputs in their order, and prints those that are kept, until the
/// table is full.
fn decide(
    job: &ExactJob<'_>,
    mut matcher: SetMatcher,
    first: &[Input],
    printer: &mut Printer<'_>,
    report: &mut Report,
) -> Result<InMemoryOutcome> {
    let refs: Vec<_> = first.iter().collect();
    let repeatable = first.iter().all(Input::is_repeatable);
    let mut full: Option<(usize, u64)> = None;
    let mut spools: Vec<(usize, Spool)> = Vec::new();
    let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
        let mut decided = 0;
        if full.is_none() {
            decided = decide_until_full(&mut matcher, batch, scratch, printer)?;
            if decided < batch.len() {
                full = Some((batch.input, batch.offset(decided)));
            }
        }
        report.first_lines += decided as u64;
        if full.is_none() {
            if !repeatable && !batch.more {
                printer.flush()?;
            }
        } else if repeatable {
            return Ok(ControlFlow::Break(decided));
        } else if !first[batch.input].is_repeatable() {
            // Keep the lines of streams, which cannot be read again.
            if spools.last().is_none_or(|(input, _)| *input != batch.input) {
                spools.push((batch.input, Spool::new(&job.temp)?));
            }
            if let Some((_, spool)) = spools.last_mut() {
                spool.append(batch.tail(decided))?;
            }
        }
        Ok(ControlFlow::Continue(()))
    };
    let stats = job.pass().run("comparing", &refs, fingerprints(job), fold)?;
    report.add_pass(stats);
    report.set_survivors(printer.lines);
    Ok(full.map_or(InMemoryOutcome::Done, |at| {
        InMemoryOutcome::TableFull(Overflow { matcher, at, spools })
    }))
}

/// Fingerprints every line of a batch.
fn fingerprints<'a>(job: &'a ExactJob<'_>) -> impl Fn(&Batch<'_>, &mut Scratch) + Sync + 'a {
    |batch, scratch| {
        scratch.fingerprints.clear();
        job.hasher.fingerprints(batch.keys(), &mut scratch.fingerprints);
    }
}

/// Decides and prints the lines of a batch until the table is full. Returns the number of lines
/// that are decided.
fn decide_until_full(
    matcher: &mut SetMatcher,
    batch: &Batch<'_>,
    scratch: &Scratch,
    printer: &mut Printer<'_>,
) -> Result<usize> {
    for line in 0..batch.len() {
        if line % PREFETCH_BATCH == 0 {
            let next = batch.len().min(line + PREFETCH_BATCH);
            matcher.prefetch(&scratch.fingerprints[line..next]);
        }
        match matcher.decide(scratch.fingerprints[line])? {
            Ok(Decision::Kept) => printer.line(batch.line(line))?,
            Ok(_) => printer.rest(batch.range(line..line + 1))?,
            Err(_) => return Ok(line),
        }
    }
    Ok(batch.len())
}
