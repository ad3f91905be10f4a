//! The strategy [`Strategy::Memory`](crate::setops::Strategy::Memory): lines are decided as they
//! are read, and printed at once. `Narrow` ends so, too, if its candidates fit in memory.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use petal::{BloomFilter, Membership};

use super::ExactJob;
use super::join::choose_build_side;
use super::with_records::{self, Others};
use crate::error::Result;
use crate::fingerprint::Table;
use crate::input::{Input, of_spool, spool};
use crate::output::{Printer, Span};
use crate::scan::{Batch, Scratch};
use crate::setops::planning::{InputSizes, Strategy};
use crate::setops::print::add_piece;
use crate::setops::report::Report;
use crate::setops::set_semantics::{BuildSide, Decision, PREFETCH_BATCH, SetMatcher, SetOp};
use crate::temp::Spool;

/// A matcher with a full table, and the position of the first undecided line.
struct Overflow {
    matcher: SetMatcher,
    at: (usize, u64),
    /// Undecided lines of inputs that can be read only once.
    spools: Vec<(usize, Spool)>,
}

/// What decides about the lines of the first input while they are read.
pub(super) struct Decider {
    /// It has the lines of the other inputs.
    pub(super) matcher: SetMatcher,
    /// Contains all lines that the matcher has to decide about. Of the other lines, `common` keeps
    /// none, `diff` and `dedup` keep all.
    pub(super) candidates: Option<BloomFilter>,
}

/// Counts of the decisions about the first input.
#[derive(Clone, Copy, Default)]
pub(super) struct Decisions {
    pub(super) refused: u64,
    /// Fingerprints of the other inputs that the first one does not have.
    pub(super) unclaimed: u64,
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
        with_records::run(job, plan, first, Others::new(vec![]), sizes, printer, report, None)?;
        return Ok(None);
    }
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
    Ok(None)
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
            for fingerprints in scratch.fingerprints.chunks(PREFETCH_BATCH) {
                matcher.prefetch(fingerprints);
                fingerprints.iter().for_each(|&fingerprint| {
                    matcher.probe(fingerprint);
                });
            }
            Ok(ControlFlow::Continue(()))
        };
        let inputs = [&others[j]];
        report.add_pass(job.pass().run("reading", &inputs, map, fold)?);
        matcher.end_round();
    }
    Ok(())
}

/// Decides about the lines of the first inputs in their order, and prints those that are kept, until
/// the table is full.
fn decide(
    job: &ExactJob<'_>,
    decider: Decider,
    first: &[Input],
    printer: &mut Printer<'_>,
    report: &mut Report,
) -> Result<std::result::Result<Decisions, Overflow>> {
    let Decider { mut matcher, candidates } = decider;
    let refs: Vec<_> = first.iter().collect();
    let repeatable = first.iter().all(Input::is_repeatable);
    let mut full: Option<(usize, u64)> = None;
    let mut spools: Vec<(usize, Spool)> = Vec::new();
    let mut pieces = Pieces::new(job.op, printer);
    let passes = job.passes();
    let filters = candidates.as_ref().map(|filter| [filter as &dyn Membership]);
    let filters = filters.as_ref().map(|filters| &filters[..]);
    let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
        passes.select(filters, batch, scratch);
        passes.fingerprint_selected(batch, scratch);
    };
    let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
        let mut decided = 0;
        if full.is_none() {
            let second = batch.input >= job.boundary;
            decided = pieces.decide(&mut matcher, batch, scratch, second)?;
            pieces.print(batch, printer)?;
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
    let stats = job.pass().run("comparing", &refs, map, fold)?;
    report.add_pass(stats);
    report.set_survivors(printer.lines);
    if let Some(at) = full {
        return Ok(Err(Overflow { matcher, at, spools }));
    }
    let unclaimed = if candidates.is_some() { matcher.unclaimed() } else { 0 };
    Ok(Ok(Decisions { refused: pieces.refused, unclaimed }))
}

/// The lines of a batch to print, consecutive ones joined.
struct Pieces {
    /// Whether lines that are not selected are kept.
    keeps_others: bool,
    /// Whether lines that are kept are printed, and whether the others are.
    prints: [bool; 2],
    kept: Vec<Span>,
    rest: Vec<Span>,
    /// Number of lines that are kept.
    lines: usize,
    /// Number of lines of all batches that are refused.
    refused: u64,
}

impl Pieces {
    fn new(op: SetOp, printer: &Printer<'_>) -> Self {
        let prints = [!printer.counts_only(), printer.takes_rest()];
        let (kept, rest) = (Vec::new(), Vec::new());
        Self { keeps_others: op != SetOp::Common, prints, kept, rest, lines: 0, refused: 0 }
    }

    /// Decides about the lines of a batch until the table is full. Returns the number of lines that
    /// are decided.
    fn decide(
        &mut self,
        matcher: &mut SetMatcher,
        batch: &Batch<'_>,
        scratch: &Scratch,
        second: bool,
    ) -> Result<usize> {
        self.kept.clear();
        self.rest.clear();
        self.lines = 0;
        let mut next = 0;
        let fingerprints = scratch.fingerprints.chunks(PREFETCH_BATCH);
        for (lines, fingerprints) in scratch.selected.chunks(PREFETCH_BATCH).zip(fingerprints) {
            matcher.prefetch(fingerprints);
            for (&line, &fingerprint) in lines.iter().zip(fingerprints) {
                self.add(batch, next..line, self.keeps_others);
                let Ok(decision) = matcher.decide(fingerprint, second)? else { return Ok(line) };
                self.refused += u64::from(decision == Decision::Refused);
                self.add(batch, line..line + 1, decision == Decision::Kept);
                next = line + 1;
            }
        }
        self.add(batch, next..batch.len(), self.keeps_others);
        Ok(batch.len())
    }

    fn add(&mut self, batch: &Batch<'_>, lines: Range<usize>, kept: bool) {
        if kept {
            self.lines += lines.len();
        }
        let [prints_kept, prints_rest] = self.prints;
        let (pieces, prints) = match kept {
            true => (&mut self.kept, prints_kept),
            false => (&mut self.rest, prints_rest),
        };
        if prints && !lines.is_empty() {
            add_piece(pieces, batch.span(lines));
        }
    }

    fn print(&self, batch: &Batch<'_>, printer: &mut Printer<'_>) -> Result<()> {
        printer.lines += self.lines as u64;
        printer.pieces(batch.tail(0), &self.kept, &self.rest)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::fingerprint::LineHasher;
    use crate::input::Source;
    use crate::memory::Budget;
    use crate::output::Outputs;
    use crate::setops::set_semantics::BuildSide;
    use crate::temp::TempDir;

    /// The table is planned from the rate of a filter, so it may be too small.
    #[test]
    fn lines_after_a_full_table_are_decided_by_partition() {
        // In both texts some lines are repeated. They share every fifth one.
        let text = |seed: u32| -> Vec<String> {
            let line = |i: u32| if i.is_multiple_of(3) { i / 6 } else { i };
            let name =
                |i: u32| if i.is_multiple_of(5) { format!("{i}") } else { format!("{i} {seed}") };
            (0..3000).map(|i| name(line(i))).collect()
        };
        let (first, other) = (text(1), text(2));
        let all: Vec<_> = first.iter().chain(&other).collect();
        let distinct = |lines: &[String], without: &[String]| -> String {
            let mut seen: HashSet<_> = without.iter().collect();
            lines.iter().filter(|line| seen.insert(line)).map(|line| format!("{line}\n")).collect()
        };
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
                let job = ExactJob {
                    op,
                    budget: Budget { chunk: 500, ..Budget::new(1 << 24, 2).unwrap() },
                    delimiter: b'\n',
                    temp: TempDir::new(dir.path()),
                    progress: &(),
                    strategy: None,
                    hasher: LineHasher::random().unwrap(),
                    journal: None,
                    boundary: 1,
                };
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
