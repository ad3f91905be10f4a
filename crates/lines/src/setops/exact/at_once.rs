//! Deciding about the first input while it is read, and printing at once.
//!
//! Invariant: what is printed is right even if the table becomes full; the caller goes on from there.
//!
//! Cost: one pass, a hash for each line if there is a filter, and a fingerprint and a lookup for each
//! line that the filter may contain.

use std::ops::{ControlFlow, Range};

use petal::{BloomFilter, Membership};

use super::ExactJob;
use crate::error::Result;
use crate::input::Input;
use crate::output::{Printer, Span};
use crate::scan::{Batch, Scratch};
use crate::setops::print::add_piece;
use crate::setops::report::Report;
use crate::setops::set_semantics::{Decision, SetMatcher, SetOp};
use crate::temp::Spool;

/// A matcher with a full table, and the position of the first undecided line.
pub(super) struct Overflow {
    pub(super) matcher: SetMatcher,
    pub(super) at: (usize, u64),
    /// Undecided lines of inputs that can be read only once.
    pub(super) spools: Vec<(usize, Spool)>,
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

/// Decides about the lines of the first inputs in their order, and prints those that are kept, until
/// the table is full.
pub(super) fn decide(
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
        let fingerprints = &scratch.fingerprints;
        for (at, (&line, &fingerprint)) in scratch.selected.iter().zip(fingerprints).enumerate() {
            matcher.prefetch_ahead(fingerprints, at);
            self.add(batch, next..line, self.keeps_others);
            let Ok(decision) = matcher.decide(fingerprint, second)? else { return Ok(line) };
            self.refused += u64::from(decision == Decision::Refused);
            self.add(batch, line..line + 1, decision == Decision::Kept);
            next = line + 1;
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
