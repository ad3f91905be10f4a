//! `count`: prints how often each distinct line occurs.

use petal_lines::{CountJob, CountOrder};

use super::{prints_lines, settings};
use crate::args::{CountArgs, CountSort};
use crate::error::{Outcome, Result};
use crate::files::output::{Output, name_output};
use crate::terminal::progress::ProgressReporter;

pub(super) fn run(args: &CountArgs) -> Result<Outcome> {
    let prints = prints_lines(false, args.output.as_deref());
    let progress = ProgressReporter::new(&args.engine.verbosity, prints);
    let mut settings = settings(&args.engine, &args.fields, &progress);
    settings.keys_only = args.rows.keys_only;
    if args.engine.temp_dir.is_some() {
        settings.check_temp_dir()?;
    }
    let order = match args.sort {
        CountSort::Appearance if args.top.is_none() => CountOrder::Appearance,
        _ => CountOrder::Count { top: args.top },
    };
    let inputs = args.inputs.sources();
    let mut output = Output::open(args.output.as_deref(), &inputs)?;
    let job = CountJob { inputs, order, min_count: args.min_count };
    let counted = job.run(&settings, output.file());
    progress.finish();
    counted.map_err(|error| name_output(error, Some(output.name()), None))?;
    output.finish()?;
    Ok(Outcome::Done)
}
