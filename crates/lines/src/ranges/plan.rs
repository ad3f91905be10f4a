//! What a driver must know before it begins: how many lines there are, about.

use super::fill::Size;
use super::{Range, open};
use crate::budget::{Budget, least_records};
use crate::error::{Error, Result};
use crate::fingerprint::Hashes;
use crate::plan::{Sample, filter_bytes};
use crate::settings::Settings;
use crate::table::Table;
use petal::Shape;

/// Estimates of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Bytes of lines: of packed files an estimate.
    pub bytes: u64,
    /// Lines.
    pub lines: u64,
    /// Lines that differ.
    pub distinct: u64,
    /// The filter for all of these lines that `memory` of a worker has room for.
    pub filter: Size,
    /// Partitions of which each fits the memory of a worker if every line becomes a record: far
    /// fewer will do where filters rule most lines out. What does not fit is cut further.
    pub partitions: u64,
}

/// Samples the files of ranges. `settings` are those of a worker. A filter is planned for `rate`, or, without one,
/// for what pays: 14 bits a line, or as many as its memory has room for.
///
/// Cost: reads a few megabytes of each gigabyte at most, as the planner of one machine does.
///
/// # Errors
/// If a file cannot be read, if the memory is too small, or if a filter for the rate is larger than
/// it.
pub fn plan(settings: &Settings<'_>, ranges: &[Range], rate: Option<f64>) -> Result<Planned> {
    let budget = Budget::new(settings.memory, settings.jobs)?;
    // Files are sampled whole: ranges next to each other would be a reading for each.
    let mut paths: Vec<_> = ranges.iter().map(|range| &range.path).collect();
    paths.dedup();
    let inputs = paths.iter().map(|path| open(path)).collect::<Result<Vec<_>>>()?;
    let refs: Vec<_> = inputs.iter().collect();
    let sample = Sample::of(&refs, &Hashes::random()?, settings.delimiter, &budget, 1)?;
    let most = budget.work - least_records(budget.work);
    let lines = sample.lines.max(1);
    let filter = match rate {
        None => filter_bytes(lines, most),
        Some(rate) => {
            let bytes = Shape::for_rate(lines, rate)?.size_bytes();
            if bytes > most {
                return Err(Error::filter_too_large(lines, rate, bytes, settings.memory));
            }
            bytes
        }
    };
    // As the resolver divides it; a tenth for what a sample may be wrong by.
    let table = Table::capacity(budget.work / 4 * 3) / 10 * 9;
    Ok(Planned {
        bytes: sample.bytes,
        lines: sample.lines,
        distinct: sample.distinct,
        filter: Size { bytes: filter, keys: lines },
        partitions: lines.div_ceil(table.max(1)),
    })
}
