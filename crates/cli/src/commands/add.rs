//! `add`: more lines into a filter file.

use petal_lines::aside::behind_links;
use petal_lines::{Source, explain_full, fill};

use super::{
    advance, build, counters, foreign, known, refuse_stdin_twice, refused_by, seen, settings,
};
use crate::args::AddArgs;
use crate::exit::{Failure, Outcome, Result};
use crate::lock;
use crate::output::Output;
use crate::progress::Teller;
use crate::{filter_file, foreign_file};

pub(super) fn run(args: &AddArgs) -> Result<Outcome> {
    let teller = Teller::new(&args.engine.talk, false);
    let mut settings = settings(&args.engine, &teller);
    let inputs = args.inputs.sources();
    let list = args.known.probe_known.as_ref().map(Source::from_arg);
    let all = [inputs.clone(), list.iter().cloned().collect()].concat();
    refuse_stdin_twice(&all)?;
    filter_file::is_enough(settings.memory)?;
    if args.filter.exists() {
        // What is no file cannot be locked either.
        filter_file::open_file(&args.filter)?;
    }
    let _lock = lock::take(&behind_links(&args.filter))?;
    let mut output = Output::open(Some(&args.filter), &all)?;
    let told = args.foreign;
    if let Some((filter, packed)) = foreign_file::read(&args.filter, told.written, settings.memory)?
    {
        let job = foreign::Add { args, filter, packed, inputs, list, settings };
        return job.run(output, &teller);
    }
    foreign::refuse_form(&args.filter, told)?;
    settings.memory = filter_file::fits(&args.filter, settings.memory)?;
    let (mut filter, metadata) = filter_file::read(&args.filter)?;
    if seen::pair(&metadata).is_some() {
        return Err(Failure::Plain(format!(
            "{}: keeps exact fingerprints beside it, which add cannot; use petal seen -c",
            args.filter.display()
        )));
    }
    advance(&mut filter, &args.clock);
    if let Some(list) = &list {
        known::of_native(&settings, filter.face(), &args.filter, list)?;
    }
    let face = filter.face_mut().map_err(Failure::of_file(&args.filter))?;
    let filled = fill(&settings, face, &inputs, args.engine.memory.bytes());
    teller.finish();
    let filled = filled.map_err(|error| explain_full(error, filter.face()));
    filled.map_err(refused_by(&args.filter))?;
    build::warn_if_overfull(filter.face(), &teller);
    counters::note_if_stuck(&filter, &teller);
    filter.write_to(output.file(), &metadata).map_err(Failure::of_output(&args.filter))?;
    output.finish()?;
    Ok(Outcome::Done)
}
