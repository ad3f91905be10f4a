//! The strategy [`Strategy::Narrow`](crate::setops::Strategy::Narrow): filters rule out most lines.

use petal::{BloomFilter, ByteSize};

use super::at_once::Decider;
use super::passes::HashSink;
use super::phases::Phases;
use super::records::Side;
use crate::error::Result;
use crate::input::Input;
use crate::memory::least_records;
use crate::setops::planning::{InputSizes, capacity_for_bytes, filter_bytes};
use crate::setops::positions::Polarity;
use crate::setops::set_semantics::SetOp;

/// Runs `Narrow` for `common` until the first input can be decided while it is read, or until all
/// records are written; then the result is `None`.
pub(super) fn narrow_common(
    phases: &mut Phases<'_>,
    others: &[Input],
    sizes: &InputSizes,
) -> Result<Option<Decider>> {
    let small = phases.plan.smallest;
    let (first, smallest) = (phases.first, &[&others[small]][..]);
    let (build, probe, lines) = if phases.plan.build_from_first {
        (first, smallest, sizes.first.lines)
    } else {
        (smallest, first, sizes.others[small].lines)
    };
    let (build_side, probe_side) = if phases.plan.build_from_first {
        (Side::First, Side::Other)
    } else {
        (Side::Other, Side::First)
    };
    phases.state.polarity = Polarity::Kept;

    // Write records of the probe side's lines that the filter of the build side may contain.
    phases.phase(|work| {
        let memory = work.work() - least_records(work.work());
        let mut filter =
            BloomFilter::with_memory(lines.max(1), ByteSize::bytes(filter_bytes(lines, memory)))?;
        work.fill(build, &mut filter)?;
        work.state.filter = Some(filter);
        if build_side == Side::First {
            let report = &mut work.state.report;
            report.first_lines = report.phases.last().map_or(0, |phase| phase.lines);
        }
        Ok(())
    })?;
    let last = probe_side == Side::Other && others.len() == 1;
    phases.phase(|work| {
        let filter = work.take_filter();
        let keys = match work.plan.candidate_filter_bytes {
            0 => HashSink::Log(work.key_log()),
            // Sized for the number of keys at the best rate for this memory.
            bytes => HashSink::Filter(BloomFilter::with_memory(
                capacity_for_bytes(bytes),
                ByteSize::bytes(bytes),
            )?),
        };
        let hits = work.match_lines(probe, probe_side, filter.as_ref(), keys, last)?;
        work.put(probe_side, hits);
        Ok(())
    })?;
    // Write records of the other inputs and of the build side that the filter of the candidates may
    // contain. Without candidates the result is empty, and the build side has been read; the others
    // are read all the same, because an error in one of them must not depend on the strategy.
    for (j, other) in others.iter().enumerate() {
        if j != small {
            phases.phase(|work| {
                let streams = work.confirm(&[other], Side::Other)?;
                work.put(Side::Other, streams);
                Ok(())
            })?;
        }
    }
    if phases.state.report.candidates == 0 {
        return Ok(None);
    }
    if build_side == Side::First {
        return phases.decide_or_confirm_first();
    }
    phases.phase(|work| {
        let streams = work.confirm(build, build_side)?;
        work.put(build_side, streams);
        Ok(())
    })?;
    Ok(None)
}

/// Runs `Narrow` for all other operations, as far as [`narrow_common`] does.
pub(super) fn narrow_diff(
    phases: &mut Phases<'_>,
    others: &[Input],
    sizes: &InputSizes,
) -> Result<Option<Decider>> {
    phases.state.polarity = match phases.job.op {
        SetOp::Duplicates => Polarity::Kept,
        _ => Polarity::Dropped,
    };
    // A line that the filter of the lines before it may contain is a candidate. The second side of a
    // symmetric difference is a phase of its own, with records of its candidates.
    let first = phases.first;
    let (side, second) = match phases.job.op {
        SetOp::SymDiff => first.split_at(phases.job.boundary.min(first.len())),
        _ => (first, &[][..]),
    };
    let goes_on = !second.is_empty() || !others.is_empty();
    phases.phase(|work| {
        let memory = work.work() - least_records(work.work());
        let lines = sizes.first.lines;
        let bytes = ByteSize::bytes(filter_bytes(lines, memory));
        let filter = BloomFilter::with_memory(lines.max(1), bytes)?;
        work.fill_first(side, filter, false, goes_on)
    })?;
    if !second.is_empty() {
        phases.phase(|work| match work.take_filter() {
            Some(filter) => work.fill_first(second, filter, true, false),
            None => Ok(()),
        })?;
    }
    // So is a line of the others that the filter of the first input may contain.
    if !others.is_empty() {
        phases.phase(|work| {
            let filter = work.take_filter();
            let keys = HashSink::Log(work.key_log());
            let others: Vec<_> = others.iter().collect();
            let hits = work.match_lines(&others, Side::Other, filter.as_ref(), keys, true)?;
            work.put(Side::Other, hits);
            Ok(())
        })?;
    }
    match (phases.state.report.candidates, phases.job.op) {
        (0, _) => Ok(None),
        (_, op) if op.needs_records() => phases.confirm_first().map(|()| None),
        _ => phases.decide_or_confirm_first(),
    }
}
