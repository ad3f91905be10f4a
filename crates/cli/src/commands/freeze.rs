//! `freeze`: a counting filter without its counters.

use petal::AnyFilter;
use petal_lines::Source;

use crate::args::FreezeArgs;
use crate::exit::{Failure, Outcome, Result};
use crate::filter_file;
use crate::output::Output;

pub(super) fn run(args: &FreezeArgs) -> Result<Outcome> {
    let inputs = [Source::Path(args.filter.clone())];
    let mut output = Output::open(Some(&args.output), &inputs)?;
    let filter = filter_file::open(&args.filter)?;
    filter.verify().map_err(Failure::of_file(&args.filter))?;
    let (out, metadata) = (output.file(), filter.metadata());
    // It lies in the old file as it will lie in the new one: nothing is copied in memory.
    let written = match &filter {
        AnyFilter::Counting(filter) => filter.as_filter().write_to(out, metadata),
        AnyFilter::CountingClassic(filter) => filter.as_filter().write_to(out, metadata),
        other => {
            return Err(Failure::Plain(format!(
                "{}: a {} filter has no counters to leave out; use it as it is",
                args.filter.display(),
                other.face().filter_type(),
            )));
        }
    };
    written.map_err(Failure::of_output(&args.output))?;
    output.finish()?;
    Ok(Outcome::Done)
}
