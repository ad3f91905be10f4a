//! The strategy [`Strategy::Narrow`](crate::setops::Strategy::Narrow): filters rule out most lines.

use petal::{BloomFilter, ByteSize, Membership as _};

use super::passes::{HASH_LOG_MEMORY, HashSink};
use super::phases::Phases;
use super::records::Side;
use crate::error::Result;
use crate::input::Input;
use crate::memory::least_records;
use crate::setops::planning::{
    InputSizes, Strategy, capacity_for_bytes, estimated_insertions, filter_bytes,
};
use crate::setops::positions::Polarity;
use crate::setops::set_semantics::SetOp;
use crate::temp::{RecordStream, SpillWriter};

/// Writes the records of `Narrow` for `common`.
pub(super) fn narrow_common(
    phases: &mut Phases<'_>,
    others: &[Input],
    sizes: &InputSizes,
) -> Result<()> {
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
    phases.phase(|work| {
        let filter = work.take_filter();
        let keys = match work.plan.candidate_filter_bytes {
            0 => HashSink::Log(key_log(work)),
            // Sized for the number of keys at the best rate for this memory.
            bytes => HashSink::Filter(BloomFilter::with_memory(
                capacity_for_bytes(bytes),
                ByteSize::bytes(bytes),
            )?),
        };
        let hits =
            work.write_records("matching", probe, probe_side, filter.as_ref(), Some(keys))?;
        let bytes = hits.iter().map(RecordStream::bytes).sum::<u64>();
        work.state.report.candidates = bytes / probe_side.record_bytes() as u64;
        let queried = work.state.report.phases.last().map_or(0, |phase| phase.lines);
        let misses = (queried - work.state.report.candidates) as f64;
        // A share of 1 - rate of the absent lines misses the filter.
        let rate = filter.map_or(0.0, |filter| {
            filter.expected_fpr(estimated_insertions(&filter, 0.0, filter.inserted()) as u64)
        });
        let promised = misses * rate / (1.0 - rate).max(f64::MIN_POSITIVE);
        work.state.report.false_promised = Some(promised);
        work.put(probe_side, hits);
        Ok(())
    })?;
    // Write records of the build side and of the other inputs that the filter of the candidates
    // may contain. Without candidates the result is empty, and the build side has been read; the
    // others are read all the same, because an error in one of them must not depend on the strategy.
    if phases.state.report.candidates > 0 {
        phases.phase(|work| {
            let streams = work.confirm(build, build_side)?;
            work.put(build_side, streams);
            Ok(())
        })?;
    }
    for (j, other) in others.iter().enumerate() {
        if j != small {
            phases.phase(|work| {
                let streams = work.confirm(&[other], Side::Other)?;
                work.put(Side::Other, streams);
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// Writes the records of `Narrow` for all other operations.
pub(super) fn narrow_diff(
    phases: &mut Phases<'_>,
    others: &[Input],
    sizes: &InputSizes,
) -> Result<()> {
    phases.state.polarity = match phases.job.op {
        SetOp::Duplicates => Polarity::Kept,
        _ => Polarity::Dropped,
    };
    if !others.is_empty() {
        phases.phase(|work| {
            let mut filter = filter_all(work, sizes)?;
            work.fill(&others.iter().collect::<Vec<_>>(), &mut filter)?;
            work.state.filter = Some(filter);
            Ok(())
        })?;
    }
    // A line that is absent from the filter is new; the others are candidates.
    phases.phase(|work| {
        let mut filter = match work.take_filter() {
            Some(filter) => filter,
            None => filter_all(work, sizes)?,
        };
        let before = filter.inserted();
        let mut known = HashSink::Log(key_log(work));
        let stats = work.job.passes().fill(work.first, &mut filter, Some(&mut known))?;
        let report = &mut work.state.report;
        report.add_pass(stats);
        report.first_lines = stats.lines;
        let keys = known.into_log();
        report.candidates = keys.bytes() / 8;
        report.set_survivors(report.candidates);
        let present = estimated_insertions(&filter, 0.0, before);
        let new = filter.inserted() - before;
        report.false_promised =
            Some(estimated_insertions(&filter, present, new) - present - new as f64);
        work.state.keys = keys;
        Ok(())
    })?;
    let candidates = phases.state.keys.bytes() / 8;
    let report = &mut phases.state.report;
    if candidates > report.first_lines / 2 {
        // Most lines are candidates: filters do not help.
        phases.state.polarity = Polarity::Kept;
        report.strategy = Strategy::Narrow.name_then_partition().into();
        (report.candidates, report.false_promised) = (0, None);
        // A resumed job may have written some of the records.
        if phases.step >= phases.state.done {
            let plan = sizes.plan(Strategy::Partition, false, &phases.job.budget);
            let bytes = phases.job.expected_bytes(sizes, plan, phases.prints);
            phases.job.progress.expect_total(bytes);
        }
        return phases.write_all_records(others, None);
    }
    if candidates > 0 {
        phases.write_records_of_others(others, true)?;
        phases.phase(|work| {
            work.state.first = work.confirm(work.first, Side::First)?;
            Ok(())
        })?;
    }
    Ok(())
}

/// Returns an empty filter for all lines of all inputs.
fn filter_all(phases: &Phases<'_>, sizes: &InputSizes) -> Result<BloomFilter> {
    let memory = phases.work() - least_records(phases.work());
    let lines = sizes.lines();
    Ok(BloomFilter::with_memory(lines.max(1), ByteSize::bytes(filter_bytes(lines, memory)))?)
}

/// Returns an empty log for the hashes of candidates.
fn key_log<'a>(phases: &Phases<'a>) -> SpillWriter<'a> {
    SpillWriter::new(phases.spill_file, 1, HASH_LOG_MEMORY)
}
