//! The strategy [`Strategy::Memory`](crate::setops::Strategy::Memory): lines are decided as they
//! are read, and printed at once.

use std::ops::ControlFlow;

use super::ExactJob;
use super::at_once::Decider;
use super::join::choose_build_side;
use super::with_records::{self, Others, decide_first};
use crate::error::Result;
use crate::fingerprint::Table;
use crate::input::{Input, spool};
use crate::output::Printer;
use crate::scan::{Batch, Scratch};
use crate::setops::planning::{InputSizes, Strategy};
use crate::setops::report::Report;
use crate::setops::set_semantics::{BuildSide, SetMatcher, SetOp};

/// Runs `Memory`; what does not fit in the table goes on as `Partition`.
pub(super) fn run(
    job: &ExactJob<'_>,
    first: Vec<Input>,
    others: Vec<Input>,
    sizes: &InputSizes,
    printer: &mut Printer<'_>,
    report: &mut Report,
) -> Result<()> {
    let mut matcher = new_matcher(job, &first, sizes)?;
    if build(job, &mut matcher, &first, &others, report)? {
        probe(job, &mut matcher, &others, report)?;
        let decider = Decider { matcher, candidates: None };
        decide_first(job, decider, first, sizes, printer, report)?;
        return Ok(());
    }
    drop(matcher);
    report.strategy = Strategy::Memory.name_then_partition().into();
    let repeatable = first.iter().all(Input::is_repeatable);
    let plan = sizes.plan(Strategy::Partition, false, &job.budget);
    let spool = |input: Input| spool(input, &job.temp, job.progress);
    let first = first.into_iter().map(spool).collect::<Result<_>>()?;
    if repeatable {
        job.progress.expect_total(job.expected_bytes(sizes, plan, !printer.counts_only()));
    }
    with_records::run(job, plan, first, Others::new(others), sizes, printer, report, None)
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
        let map =
            |batch: &Batch<'_>, scratch: &mut Scratch| scratch.fingerprint(batch, &job.hasher);
        let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
            let second = batch.input >= job.boundary;
            for (line, &fingerprint) in scratch.fingerprints.iter().enumerate() {
                matcher.prefetch_ahead(&scratch.fingerprints, line);
                let built = match job.op {
                    SetOp::SymDiff => matcher.build_of_side(fingerprint, second)?,
                    _ => matcher.build(fingerprint)?,
                };
                if built.is_err() {
                    fits = false;
                    return Ok(ControlFlow::Break(line));
                }
            }
            Ok(ControlFlow::Continue(()))
        };
        report.add_pass(job.pass().run("reading", &inputs, map, fold)?);
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
        let map =
            |batch: &Batch<'_>, scratch: &mut Scratch| scratch.fingerprint(batch, &job.hasher);
        let fold = |_: &Batch<'_>, scratch: &mut Scratch| {
            for (line, &fingerprint) in scratch.fingerprints.iter().enumerate() {
                matcher.prefetch_ahead(&scratch.fingerprints, line);
                matcher.probe(fingerprint);
            }
            Ok(ControlFlow::Continue(()))
        };
        let inputs = [&others[j]];
        report.add_pass(job.pass().run("reading", &inputs, map, fold)?);
        matcher.end_round();
    }
    Ok(())
}
