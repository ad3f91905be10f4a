//! `merge`: the union of filter files.

use super::add;
use crate::args::MergeArgs;
use crate::exit::{Failure, Outcome, Result};
use crate::mapped;
use crate::output::Output;

pub(super) fn run(args: &MergeArgs) -> Result<Outcome> {
    let inputs: Vec<_> = args.filters.iter().map(|path| add::as_source(path)).collect();
    let mut output = Output::open(Some(&args.output), &inputs)?;
    let Some((first, rest)) = args.filters.split_first() else { return Ok(Outcome::Done) };
    // One filter in memory, and the pages of another as they are read.
    add::fits(first, super::bytes(args.memory) / 2)?;
    let (mut filter, metadata) = add::read(first)?;
    for path in rest {
        let other = mapped::open(path)?;
        other.verify().map_err(Failure::of_file(path))?;
        filter.union(&other).map_err(Failure::of_file(path))?;
    }
    let teller = crate::progress::Teller::silent(args.quiet);
    super::build::warn_if_overfull(&filter, &teller);
    filter.write_to(output.file(), &metadata).map_err(Failure::of_file(&args.output))?;
    output.finish()?;
    Ok(Outcome::Done)
}
