//! The plan of a distributed job: an estimate of the number of lines.

use std::path::PathBuf;

use super::build::FilterSize;
use super::range::{FileRange, check_cancelled, open};
use crate::error::Result;
use crate::fingerprint::{LineHasher, Table};
use crate::input::Input;
use crate::job_context::{JobContext, content_checks};
use crate::memory::least_records;
use crate::setops::{Sample, filter_bytes};
use crate::settings::Settings;

/// Estimates of an input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RangePlan {
    /// Bytes of lines; for compressed files an estimate.
    pub bytes: u64,
    /// Lines.
    pub lines: u64,
    /// Distinct lines.
    pub distinct: u64,
    /// The filter that pays off for all of these lines: 14 bits per line.
    pub wanted: FilterSize,
    /// Bytes of filters that fit in the memory of a worker at the same time.
    pub memory: u64,
    /// The number of partitions that each fit in the memory of a worker if every line becomes a
    /// record. With good filters far fewer are enough; a partition that does not fit is split.
    pub partitions: u64,
}

/// Samples the files of ranges. `settings` are those of a worker.
///
/// Cost: opens every file; reads at most 256 MiB in 16,384 blocks, and decompresses 64 MiB of
/// compressed files, as the local planner does.
///
/// # Errors
/// If a file cannot be read, the memory is too small, or the job is cancelled.
pub fn plan(settings: &Settings<'_>, ranges: &[FileRange]) -> Result<RangePlan> {
    let budget = JobContext::new(settings)?.budget;
    // Whole files are sampled: adjacent ranges would each need a read.
    let mut paths: Vec<_> = ranges.iter().map(|range| &range.path).collect();
    paths.dedup();
    let checks = content_checks(settings);
    let open = |path: &&PathBuf| {
        check_cancelled(settings.progress)?;
        Ok(open(path, &checks)?.with_keys(&settings.keys))
    };
    let inputs = paths.iter().map(open).collect::<Result<Vec<_>>>()?;
    checks.note(settings.progress);
    let refs: Vec<_> = inputs.iter().collect();
    let (hasher, progress) = (LineHasher::random()?, settings.progress);
    let sample = Sample::of(&refs, &hasher, settings.delimiter, &budget, [0, 1], progress)?;
    let lines = sample.lines.max(1);
    let packed = inputs.iter().any(Input::may_be_compressed);
    let work = if packed { budget.with_decoder().work } else { budget.work };
    // As the partition join divides it; a tenth for sampling errors.
    let table = Table::capacity(budget.work / 4 * 3) / 10 * 9;
    Ok(RangePlan {
        bytes: sample.bytes,
        lines: sample.lines,
        distinct: sample.distinct,
        wanted: FilterSize { bytes: filter_bytes(lines, u64::MAX), capacity: lines, fpr: None },
        memory: work - least_records(work),
        partitions: lines.div_ceil(table.max(1)),
    })
}
