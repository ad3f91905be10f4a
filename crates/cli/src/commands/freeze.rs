//! `freeze`: writes a counting filter without its counters.

use petal::AnyFilter;
use petal::Membership as _;
use petal::Persist as _;
use petal_lines::Source;

use crate::args::FreezeArgs;
use crate::error::{Failure, Outcome, Result};
use crate::files::filter_file;
use crate::files::output::Output;

pub(super) fn run(args: &FreezeArgs) -> Result<Outcome> {
    let inputs = [Source::Path(args.filter.clone())];
    let mut output = Output::open(Some(&args.output), &inputs)?;
    let filter = filter_file::open(&args.filter)?;
    filter.verify().map_err(Failure::of_file(&args.filter))?;
    let (out, metadata) = (&mut output, filter.metadata());
    // The bits are written from the mapped file, without a copy in memory.
    let written = match &filter {
        AnyFilter::Counting(filter) => filter.as_filter().write_to(out, metadata),
        AnyFilter::CountingClassic(filter) => filter.as_filter().write_to(out, metadata),
        other => {
            return Err(Failure::Message(format!(
                "{}: a {} filter has no counters; use it as it is",
                args.filter.display(),
                other.as_dyn().filter_type(),
            )));
        }
    };
    written.map_err(Failure::of_output(&args.output))?;
    output.finish()?;
    Ok(Outcome::Done)
}
