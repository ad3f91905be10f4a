//! `freeze`: writes a counting filter without its counters.

use petal::AnyFilter;
use petal_lines::Source;

use super::bad_note;
use crate::args::FreezeArgs;
use crate::error::{Failure, Outcome, Result};
use crate::files::filter_file;
use crate::files::output::Output;

pub(super) fn run(args: &FreezeArgs) -> Result<Outcome> {
    let inputs = [Source::Path(args.filter.clone())];
    let mut output = Output::open(Some(&args.output), &inputs)?;
    let filter = filter_file::open(&args.filter, &args.secret)?;
    filter.verify().map_err(Failure::of_file(&args.filter))?;
    let metadata = &args.notes.noted(filter.metadata()).map_err(bad_note)?;
    let (out, path) = (&mut output, &args.output);
    // The bits are written from the mapped file, without a copy in memory.
    match &filter {
        AnyFilter::Counting(filter) => filter_file::write(filter.as_filter(), metadata, out, path),
        AnyFilter::CountingClassic(filter) => {
            filter_file::write(filter.as_filter(), metadata, out, path)
        }
        other => Err(Failure::Message(format!(
            "{}: a {} filter has no counters; use it as it is",
            args.filter.display(),
            other.as_dyn().filter_type(),
        ))),
    }?;
    output.finish()?;
    Ok(Outcome::Done)
}
