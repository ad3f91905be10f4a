//! `add`: adds lines to a filter file.

use petal_lines::{Source, explain_full, fill, recorded_log_id, recorded_spelling, with_spelling};

use super::{
    advance, assert_members, bad_note, build, filter_failure, foreign, saturation, settings,
};
use crate::args::AddArgs;
use crate::error::{Failure, Outcome, Result};
use crate::files::inputs::{inputs, key_list};
use crate::files::output::Output;
use crate::files::{filter_file, foreign_file, key_fields, key_transforms, lock, spelling};
use crate::terminal::progress::ProgressReporter;

pub(super) fn run(args: &AddArgs) -> Result<Outcome> {
    let progress = ProgressReporter::new(&args.engine.verbosity, false);
    let inputs = inputs(&args.inputs, args.engine.memory.bytes())?;
    let members = key_list(args.assert_members.file.as_ref())?;
    let mut all = inputs.clone();
    all.extend(members.clone());
    let mut settings = settings(&args.engine, &args.fields, &all, &progress)?;
    all.extend(args.inputs.lists.source());
    Source::check_streams(&all)?;
    filter_file::check_memory_limit(settings.memory_limit)?;
    if args.filter.exists() {
        // The lock of anything but a regular file would fail with a less clear message.
        filter_file::open_file(&args.filter)?;
    }
    filter_file::refuse_address(&args.filter)?;
    let _lock = lock::take(&args.filter)?;
    let mut output = Output::open_as_named(&args.filter, &all)?;
    let format = args.foreign.format;
    let swapped = foreign_file::explain_swapped("add", &args.filter, &inputs);
    let foreign = foreign_file::read(&args.filter, format, settings.memory_limit);
    let foreign = foreign.map_err(swapped)?;
    if let Some((filter, compressed)) = foreign {
        let job = foreign::Add { args, filter, compressed, inputs, members, settings };
        return job.run(output, &progress);
    }
    foreign::refuse_key_type(&args.filter, args.foreign)?;
    settings.memory_limit = filter_file::memory_beside(&args.filter, settings.memory_limit)?;
    let (mut filter, metadata) = filter_file::read(&args.filter, &args.secret)?;
    key_transforms::adopt(&args.filter, &metadata, &mut settings)?;
    let inserted = filter.as_dyn().inserted();
    let keys = (&*settings.keys, &inputs[..]);
    let recorded = recorded_spelling(&metadata, inserted);
    let metadata = if inserted == 0 {
        key_fields::first(&metadata, keys)
    } else {
        key_fields::note_if_different(&args.filter, &metadata, keys, &progress);
        key_fields::added(&metadata, keys)
    };
    if recorded_log_id(&metadata).is_some() {
        return Err(Failure::Message(format!(
            "{}: has a fingerprint log, which add cannot update; use petal seen -c",
            args.filter.display()
        )));
    }
    advance(&mut filter, &args.clock);
    if let Some(members) = &members {
        assert_members::in_native(&settings, filter.as_dyn(), &args.filter, members)?;
    }
    let dyn_filter = filter.as_dyn_mut().map_err(Failure::of_file(&args.filter))?;
    let filled = fill(&settings, dyn_filter, &inputs, args.engine.memory.bytes());
    progress.finish();
    let filled = filled.map_err(|error| explain_full(error, filter.as_dyn()));
    filled.map_err(filter_failure(&args.filter))?;
    build::warn_if_overfull(filter.as_dyn(), &progress);
    saturation::note_if_saturated(&filter, &progress);
    spelling::warn_if_different(&settings, recorded, true, &args.filter, &progress);
    let spelling = settings.spellings.all().union(recorded.unwrap_or_default());
    let metadata = with_spelling(&metadata, spelling, filter.as_dyn().inserted());
    let metadata = args.notes.noted(&metadata).map_err(bad_note)?;
    filter_file::write(filter.as_dyn(), &metadata, &mut output, &args.filter)?;
    output.finish()?;
    Ok(Outcome::Done)
}
