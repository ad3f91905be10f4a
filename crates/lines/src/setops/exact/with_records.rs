//! The strategies that write records: their phases in order, then the output.

use super::ExactJob;
use super::in_memory::{Decisions, decide_first};
use super::journal::Journal;
use super::narrowing::{narrow_common, narrow_diff};
use super::phases::Phases;
use super::state::State;
use crate::error::Result;
use crate::fingerprint::Table;
use crate::input::Input;
use crate::output::Printer;
use crate::setops::planning::{InputSizes, Plan, Strategy};
use crate::setops::positions::{Polarity, PositionSet, Spans};
use crate::setops::print::print_positions;
use crate::setops::report::Report;
use crate::setops::set_semantics::SetOp;
use crate::temp::{SpillFile, SpillWriter};

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
