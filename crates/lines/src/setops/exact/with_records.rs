//! The strategies that write records: their phases in order, then the output.

use std::sync::Arc;

use super::ExactJob;
use super::at_once::{Decider, Decisions, Overflow, decide};
use super::journal::Journal;
use super::narrowing::{narrow_common, narrow_diff};
use super::phases::Phases;
use super::state::State;
use crate::error::Result;
use crate::fingerprint::Table;
use crate::input::{Input, of_spool};
use crate::output::Printer;
use crate::setops::planning::{InputSizes, Plan, Strategy};
use crate::setops::positions::{Polarity, PositionSet, Spans};
use crate::setops::print::print_positions;
use crate::setops::report::Report;
use crate::setops::set_semantics::SetOp;
use crate::temp::{SpillFile, SpillWriter, Spool};

/// Runs the strategies that write records, or resumes them.
#[expect(clippy::too_many_arguments, reason = "each has a different type")]
pub(super) fn run(
    job: &ExactJob<'_>,
    plan: Plan,
    first: Vec<Input>,
    others: Others,
    sizes: &InputSizes,
    printer: &mut Printer<'_>,
    report: &mut Report,
    journal: Option<&Journal>,
) -> Result<()> {
    let resumed = journal.map(|journal| journal.state(&first)).transpose()?.flatten();
    let begun = report.begun;
    let mut state = resumed.unwrap_or_else(|| State {
        partitioning: job.partitioning(plan, sizes, others.prior.as_ref().map_or(0, Table::len)),
        report: std::mem::take(report),
        ..State::default()
    });
    state.report.begun = begun;
    let spill_file = match journal {
        Some(journal) => journal.spill_file(job.temp.usage())?,
        None => SpillFile::new(&job.temp)?,
    };
    let refs: Vec<_> = first.iter().collect();
    let mut work =
        Phases { job, journal, plan, first: &refs, spill_file: &spill_file, state, step: 0 };
    let inputs = others.lines.len();
    let decider = match (plan.strategy, job.op) {
        (Strategy::Narrow, SetOp::Common) if !others.lines.is_empty() => {
            narrow_common(&mut work, &others.lines, sizes)?
        }
        (Strategy::Narrow, op) if !op.separates_others() => {
            narrow_diff(&mut work, &others.lines, sizes)?
        }
        _ => work.write_all_records(&others.lines, others.prior).map(|()| None)?,
    };
    if let Some(decider) = decider {
        let mut state = work.state;
        state.report.first_lines = 0;
        let before = printer.lines;
        let report_of_job = &mut state.report;
        if let Some(Decisions { refused, unclaimed }) =
            decide_first(job, decider, first, sizes, printer, report_of_job)?
        {
            let dropped = report_of_job.first_lines - (printer.lines - before);
            state.set_false_found(plan, job.op, inputs, dropped, refused, unclaimed);
        }
        *report = state.report;
        report.spilled += spill_file.written();
        return Ok(());
    }
    let length = first.iter().map(Input::known_length).sum::<Result<u64>>()?;
    let share = job.budget.work / 8 / job.budget.workers as u64;
    // A resumed job may print although the first run only counted.
    let marked = !printer.counts_only() || journal.is_some();
    work.decide(marked.then(|| Spans::new(length, SpillWriter::max_streams(share))))?;
    *report = work.state.report;
    let State { polarity, count, positions, spans, .. } = work.state;
    let kept = match polarity {
        Polarity::Kept => count,
        Polarity::Dropped => report.first_lines - count,
    };
    let before = printer.lines;
    if let Some(spans) = spans
        && !printer.counts_only()
        && (kept > 0 || printer.takes_rest())
    {
        let positions =
            PositionSet::new(spans, positions, &spill_file, job.budget.work, job.budget.workers);
        report.add_pass(print_positions(
            &job.pass().chunks(),
            &first,
            0,
            polarity,
            &positions,
            printer,
        )?);
        report.set_survivors(kept);
    }
    printer.lines = before + kept;
    report.spilled += spill_file.written();
    Ok(())
}

/// The bit of the number of an input that is the rest of another one.
const COPY: u64 = 1 << 63;

/// The other inputs.
pub(super) struct Others {
    pub(super) lines: Vec<Input>,
    /// Fingerprints of lines that have been printed.
    pub(super) prior: Option<Table>,
}

impl Others {
    pub(super) fn new(lines: Vec<Input>) -> Self {
        Self { lines, prior: None }
    }
}

/// Decides about the lines of the first inputs and prints them; what does not fit in the table goes on
/// as `Partition`, and then the result is `None`.
pub(super) fn decide_first(
    job: &ExactJob<'_>,
    decider: Decider,
    first: Vec<Input>,
    sizes: &InputSizes,
    printer: &mut Printer<'_>,
    report: &mut Report,
) -> Result<Option<Decisions>> {
    let begun = if decider.candidates.is_some() { Strategy::Narrow } else { Strategy::Memory };
    printer.mark();
    let Overflow { matcher, at: (input, position), mut spools } =
        match decide(job, decider, &first, printer, report)? {
            Ok(decisions) => return Ok(Some(decisions)),
            Err(overflow) => overflow,
        };
    report.strategy = begun.name_then_partition().into();
    let (repeatable, prints) = (first.iter().all(Input::is_repeatable), !printer.counts_only());
    let plan = sizes.plan(Strategy::Partition, false, &job.budget);
    if job.op == SetOp::SymDiff {
        // What is printed does not say which lines the second side has.
        drop(matcher);
        report.first_lines = 0;
        printer.print_again();
        job.progress.expect_total(job.expected_bytes(sizes, plan, prints));
        run(job, plan, first, Others::new(vec![]), sizes, printer, report, None)?;
        return Ok(None);
    }
    let mut rest = Vec::new();
    for (index, whole) in first.into_iter().enumerate().skip(input) {
        let name = whole.name().to_owned();
        let checks = Arc::clone(whole.content_checks());
        let (keys, found) = (Arc::clone(whole.keys()), Arc::clone(whole.found()));
        let number = whole.number() | COPY;
        let copy = |spool| {
            of_spool(spool, name, checks).with_keys(&keys).with_found(&found).with_number(number)
        };
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
    run(job, plan, rest, others, sizes, printer, report, None)?;
    report.first_lines += decided;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::Path;

    use petal::BloomFilter;

    use super::*;
    use crate::fingerprint::LineHasher;
    use crate::input::Source;
    use crate::memory::Budget;
    use crate::output::Outputs;
    use crate::setops::set_semantics::{BuildSide, SetMatcher};
    use crate::temp::TempDir;

    /// Two texts in which some lines are repeated. They share every fifth one.
    fn texts() -> [Vec<String>; 2] {
        let line = |i: u32| if i.is_multiple_of(3) { i / 6 } else { i };
        let name = |i: u32, text: u32| match i % 5 {
            0 => format!("{i}"),
            _ => format!("{i} {text}"),
        };
        [1, 2].map(|text| (0..3000).map(|i| name(line(i), text)).collect())
    }

    /// The distinct lines that are not `without`.
    fn distinct(lines: &[String], without: &[String]) -> String {
        let mut seen: HashSet<_> = without.iter().collect();
        lines.iter().filter(|line| seen.insert(line)).map(|line| format!("{line}\n")).collect()
    }

    fn job(dir: &Path, op: SetOp, budget: Budget) -> ExactJob<'static> {
        ExactJob {
            op,
            budget,
            delimiter: b'\n',
            temp: TempDir::new(dir),
            progress: &(),
            strategy: None,
            hasher: LineHasher::random().unwrap(),
            journal: None,
            boundary: 1,
        }
    }

    /// The table for the candidates is planned from samples, so it may become full at any of them.
    #[test]
    fn table_that_becomes_full_while_candidates_are_found_becomes_records() {
        let [first, other] = texts();
        let dir = tempfile::tempdir().unwrap();
        let paths = ["1", "2"].map(|name| dir.path().join(name));
        for (path, lines) in paths.iter().zip([&first, &other]) {
            std::fs::write(path, lines.join("\n")).unwrap();
        }
        for op in [SetOp::Common, SetOp::Diff, SetOp::SymDiff] {
            let expected = match op {
                SetOp::Common => {
                    let others: HashSet<_> = other.iter().collect();
                    let both: Vec<_> =
                        first.iter().filter(|line| others.contains(line)).cloned().collect();
                    distinct(&both, &[])
                }
                SetOp::Diff => distinct(&first, &other),
                _ => distinct(&first, &other) + &distinct(&other, &first),
            };
            for work in (20_000..120_000).step_by(4000) {
                let budget = Budget { chunk: 500, work, ..Budget::new(1 << 24, 2).unwrap() };
                let job = job(dir.path(), op, budget);
                let sources = paths.each_ref().map(Source::from_arg);
                let mut first = Input::open_unchecked(&sources, 0).unwrap();
                let others = if op == SetOp::SymDiff { vec![] } else { first.split_off(1) };
                let sizes = job.sizes(&first, &others).unwrap();
                // As if the samples had shown no candidates.
                let plan = Plan { entries: 0, ..sizes.plan(Strategy::Narrow, true, &budget) };
                let (others, mut out) = (Others::new(others), Vec::new());
                let mut printer = Printer::new(Outputs::to(&mut out), b'\n', 500);
                let mut report = Report::default();
                run(&job, plan, first, others, &sizes, &mut printer, &mut report, None).unwrap();
                printer.flush().unwrap();
                drop(printer);
                assert_eq!(String::from_utf8(out).unwrap(), expected, "{op:?} {work}");
            }
        }
    }

    /// The table is planned from the rate of a filter, so it may be too small.
    #[test]
    fn lines_after_a_full_table_are_decided_by_partition() {
        let [first, other] = texts();
        let all: Vec<_> = first.iter().chain(&other).collect();
        let dir = tempfile::tempdir().unwrap();
        let paths = ["1", "2"].map(|name| dir.path().join(name));
        for (path, lines) in paths.iter().zip([&first, &other]) {
            std::fs::write(path, lines.join("\n")).unwrap();
        }
        for op in [SetOp::Diff, SetOp::SymDiff] {
            let mut expected = distinct(&first, &other);
            if op == SetOp::SymDiff {
                expected += &distinct(&other, &first);
            }
            let mut full = 0;
            for allowance in (30_000..100_000).step_by(1000) {
                let budget = Budget { chunk: 500, ..Budget::new(1 << 24, 2).unwrap() };
                let job = job(dir.path(), op, budget);
                let table = Table::in_partition_order(allowance, 0).unwrap();
                let mut matcher = SetMatcher::new(op, BuildSide::Others(0), table);
                let built = other.iter().all(|line| {
                    let fingerprint = job.hasher.fingerprint(line.as_bytes());
                    let built = match op {
                        SetOp::SymDiff => matcher.build_of_side(fingerprint, true),
                        _ => matcher.build(fingerprint),
                    };
                    built.unwrap().is_ok()
                });
                if !built {
                    continue;
                }
                let mut candidates = BloomFilter::with_fpr(10_000, 0.01).unwrap();
                let mut counts = std::collections::HashMap::new();
                all.iter().for_each(|line| *counts.entry(line).or_insert(0) += 1);
                for (line, _) in counts.into_iter().filter(|(_, count)| *count > 1) {
                    candidates.insert_mixed_hash(job.hasher.filter_hash(line.as_bytes()));
                }
                let sources = paths.each_ref().map(Source::from_arg);
                let mut inputs = Input::open_unchecked(&sources, 0).unwrap();
                if op == SetOp::Diff {
                    inputs.truncate(1);
                }
                let sizes = job.sizes(&inputs, &[]).unwrap();
                let mut out = Vec::new();
                let mut printer = Printer::new(Outputs::to(&mut out), b'\n', 500);
                let mut report = Report::default();
                let lines = 3000 * inputs.len() as u64;
                let decider = Decider { matcher, candidates: Some(candidates) };
                let decisions =
                    decide_first(&job, decider, inputs, &sizes, &mut printer, &mut report).unwrap();
                printer.flush().unwrap();
                let kept = printer.lines;
                drop(printer);
                assert_eq!(String::from_utf8(out).unwrap(), expected, "{op:?} {allowance}");
                assert_eq!(report.first_lines, lines);
                assert_eq!(kept, expected.matches('\n').count() as u64);
                full += usize::from(decisions.is_none());
                assert_eq!(decisions.is_none(), report.strategy == "narrow, then partition");
            }
            assert!((2..45).contains(&full), "{op:?} {full}");
        }
    }
}
