//! What a driver must know before it begins: how many lines there are, about.

use std::path::PathBuf;

use super::fill::Size;
use super::{Range, check_cancelled, open};
use crate::budget::{Budget, least_records};
use crate::error::Result;
use crate::fingerprint::Hashes;
use crate::input::Input;
use crate::plan::{Sample, filter_bytes};
use crate::settings::Settings;
use crate::table::Table;

/// Estimates of an input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Planned {
    /// Bytes of lines: of packed files an estimate.
    pub bytes: u64,
    /// Lines.
    pub lines: u64,
    /// Lines that differ.
    pub distinct: u64,
    /// The filter that pays for all of these lines, whatever its size: 14 bits a line.
    pub wanted: Size,
    /// What the memory of a worker has room for, in bytes: all filters that it holds at once.
    pub room: u64,
    /// Partitions of which each fits the memory of a worker if every line becomes a record: far
    /// fewer will do where filters rule most lines out. What does not fit is cut further.
    pub partitions: u64,
}

/// Samples the files of ranges. `settings` are those of a worker.
///
/// Cost: opens every file; reads 256 MiB of them in all at most, in 16,384 places, and unpacks 64
/// MiB of packed ones, as the planner of one machine does.
///
/// # Errors
/// If a file cannot be read, if the memory is too small, or if the job is cancelled.
pub fn plan(settings: &Settings<'_>, ranges: &[Range]) -> Result<Planned> {
    let budget = Budget::new(settings.memory, settings.jobs)?;
    // Files are sampled whole: ranges next to each other would be a reading for each.
    let mut paths: Vec<_> = ranges.iter().map(|range| &range.path).collect();
    paths.dedup();
    let contents = settings.contents();
    let open =
        |path: &&PathBuf| check_cancelled(settings.progress).and_then(|()| open(path, &contents));
    let inputs = paths.iter().map(open).collect::<Result<Vec<_>>>()?;
    contents.note(settings.progress);
    let refs: Vec<_> = inputs.iter().collect();
    let (hashes, progress) = (Hashes::random()?, settings.progress);
    let sample = Sample::of(&refs, &hashes, settings.delimiter, &budget, 1, progress)?;
    let lines = sample.lines.max(1);
    let packed = inputs.iter().any(Input::may_be_packed);
    let work = if packed { budget.with_decoder().work } else { budget.work };
    // As the resolver divides it; a tenth for what a sample may be wrong by.
    let table = Table::capacity(budget.work / 4 * 3) / 10 * 9;
    Ok(Planned {
        bytes: sample.bytes,
        lines: sample.lines,
        distinct: sample.distinct,
        wanted: Size { bytes: filter_bytes(lines, u64::MAX), keys: lines, rate: None },
        room: work - least_records(work),
        partitions: lines.div_ceil(table.max(1)),
    })
}
