//! `merge`: the union of filter files.

use petal_lines::Source;

use super::bytes;
use crate::args::MergeArgs;
use crate::exit::{Failure, Outcome, Result};
use crate::filter_file;
use crate::output::Output;

pub(super) fn run(args: &MergeArgs) -> Result<Outcome> {
    let inputs: Vec<_> = args.filters.iter().cloned().map(Source::Path).collect();
    let mut output = Output::open(Some(&args.output), &inputs)?;
    let Some((first, rest)) = args.filters.split_first() else { return Ok(Outcome::Done) };
    // One filter in memory, and the pages of another as they are read.
    filter_file::fits(first, bytes(args.memory) / 2)?;
    let (mut filter, metadata) = filter_file::read(first)?;
    for path in rest {
        let other = filter_file::open(path)?;
        other.verify().map_err(Failure::of_file(path))?;
        filter.union(&other).map_err(Failure::of_file(path))?;
    }
    let teller = crate::progress::Teller::silent(args.quiet);
    super::build::warn_if_overfull(filter.face(), &teller);
    filter.write_to(output.file(), &metadata).map_err(Failure::of_output(&args.output))?;
    output.finish()?;
    Ok(Outcome::Done)
}
