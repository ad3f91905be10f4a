//! `count`: prints how often each distinct line occurs.

use petal_lines::{CountJob, CountOrder, check_temp_dir};

use super::{prints_lines, settings};
use crate::args::{CountArgs, CountSort};
use crate::error::{Failure, Outcome, Result};
use crate::files::inputs::inputs;
use crate::files::output::{LineOutputs, name_output};
use crate::terminal::progress::ProgressReporter;

pub(super) fn run(args: &CountArgs) -> Result<Outcome> {
    let prints = prints_lines(false, args.output.as_deref());
    let progress = ProgressReporter::new(&args.engine.verbosity, prints);
    let inputs = inputs(&args.inputs, args.engine.memory.bytes())?;
    let mut settings = settings(&args.engine, &args.fields, &inputs, &progress)?;
    settings.keys_only = args.rows.keys_only;
    if args.engine.temp_dir.is_some() {
        check_temp_dir(&settings.temp_dir)?;
    }
    let order = match (args.sort, args.top) {
        (Some(CountSort::Appearance), Some(_)) => {
            let text = "--top: prints the most frequent lines first; leave out --sort appearance";
            return Err(Failure::Message(text.to_owned()));
        }
        (None | Some(CountSort::Appearance), None) => CountOrder::Appearance,
        (_, top) => CountOrder::Count { top },
    };
    let outputs = LineOutputs::new(args.compress, &settings);
    settings.memory_limit = outputs.memory_beside(&[args.output.as_deref()])?;
    let mut all = inputs.clone();
    all.extend(args.inputs.lists.source());
    let mut output = outputs.open(args.output.as_deref(), &all)?;
    let job = CountJob { inputs, order, min_count: args.min_count };
    let counted = job.run(&settings, output.writer());
    progress.finish();
    counted.map_err(|error| name_output(error, Some(output.name()), None))?;
    output.finish()?;
    Ok(Outcome::Done)
}
