//! `remove`: removes lines from a filter file.

use std::path::Path;

use petal::{AnyFilter, BatchResults};
use petal_lines::{Source, recorded_spelling, remove, with_fewer_keys};

use super::{is_terminal, saturation, settings};
use crate::args::RemoveArgs;
use crate::error::{Failure, Outcome, Result};
use crate::files::inputs::inputs;
use crate::files::output::{LineOutputs, Output};
use crate::files::{filter_file, foreign_file, key_fields, key_transforms, lock, spelling};
use crate::terminal::progress::ProgressReporter;
use crate::text;

pub(super) fn run(args: &RemoveArgs) -> Result<Outcome> {
    let prints_lines = args.missing.as_deref() == Some(Path::new("-"));
    let progress = ProgressReporter::new(&args.engine.verbosity, prints_lines);
    let inputs = inputs(&args.inputs, args.engine.memory.bytes())?;
    let mut settings = settings(&args.engine, &args.fields, &inputs, &progress)?;
    settings.binary_output = !args.missing.as_deref().is_some_and(|path| is_terminal(Some(path)));
    filter_file::refuse_address(&args.filter)?;
    let _lock = lock::take(&args.filter)?;
    let mut all = inputs.clone();
    all.extend(args.inputs.lists.source());
    let mut output = Output::open_as_named(&args.filter, &all)?;
    all.push(Source::Path(args.filter.clone()));
    let outputs = LineOutputs::new(args.compress, &settings);
    let missing_path = args.missing.as_deref().map(Some);
    settings.memory_limit = outputs.memory_beside(missing_path.as_slice())?;
    let mut missing = missing_path.map(|path| outputs.open(path, &all)).transpose()?;
    let swapped = foreign_file::explain_swapped("remove", &args.filter, &inputs);
    let left = filter_file::memory_beside(&args.filter, settings.memory_limit);
    settings.memory_limit = left.map_err(&swapped)?;
    let (mut filter, metadata) = filter_file::read(&args.filter, &args.secret).map_err(&swapped)?;
    key_transforms::adopt(&args.filter, &metadata, &mut settings)?;
    let keys = (&*settings.keys, &inputs[..]);
    key_fields::note_if_different(&args.filter, &metadata, keys, &progress);
    check_supports_removal(&mut filter).map_err(Failure::of_file(&args.filter))?;
    let inserted = filter.as_dyn().inserted();
    let recorded = recorded_spelling(&metadata, inserted);
    let sink = missing.as_mut().map(Output::writer);
    let removed = remove(&settings, filter.as_dyn_mut()?, &inputs, sink);
    progress.finish();
    // The message states that nothing was removed.
    let removed = removed.map_err(|error| match &args.missing {
        _ if error.is_broken_pipe() => Failure::Message(CLOSED_MISSING.to_owned()),
        // It is the only output while lines are read.
        Some(path) if error.is_disk_full() => Failure::Message(format!(
            "--missing {}: no space left, and nothing was removed; free some space or write elsewhere",
            path.display(),
        )),
        _ => error.into(),
    })?;
    let metadata = with_fewer_keys(&metadata, inserted, filter.as_dyn().inserted());
    filter_file::write(filter.as_dyn(), &metadata, &mut output, &args.filter)?;
    // If this fails, the filter is unchanged and the command can be repeated.
    missing.map_or(Ok(()), Output::finish)?;
    output.finish()?;
    let found = removed.missing < removed.lines;
    spelling::warn_if_different(&settings, recorded, found, &args.filter, &progress);
    if removed.missing > 0 {
        progress.print(&format!(
            "note: {} of {} lines were not in the filter",
            text::count(removed.missing),
            text::count(removed.lines),
        ));
    }
    saturation::note_if_saturated(&filter, &progress);
    Ok(Outcome::Done)
}

const CLOSED_MISSING: &str = "--missing: its reader closed the pipe, and nothing was removed; read \
                              all lines, or write to a file";

/// Returns an error for types that do not support removal, by removing no keys.
fn check_supports_removal(filter: &mut AnyFilter) -> petal::Result<()> {
    filter.as_dyn_mut()?.remove_mixed_hashes(&[], &mut BatchResults::new())
}
