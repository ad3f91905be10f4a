//! `remove`: lines out of a filter file again.

use std::io::Write;
use std::path::Path;

use petal::{Answers, AnyFilter};
use petal_lines::aside::behind_links;
use petal_lines::{Source, remove};

use super::{counters, settings};
use crate::args::RemoveArgs;
use crate::exit::{Failure, Outcome, Result};
use crate::lock;
use crate::output::Output;
use crate::progress::Teller;
use crate::{filter_file, text};

pub(super) fn run(args: &RemoveArgs) -> Result<Outcome> {
    let prints = args.missing.as_deref() == Some(Path::new("-"));
    let teller = Teller::new(&args.engine.talk, prints);
    let mut settings = settings(&args.engine, &teller);
    let inputs = args.inputs.sources();
    let _lock = lock::take(&behind_links(&args.filter))?;
    let mut output = Output::open(Some(&args.filter), &inputs)?;
    let mut all = inputs.clone();
    all.push(Source::Path(args.filter.clone()));
    let mut missing =
        args.missing.as_deref().map(|path| Output::open(Some(path), &all)).transpose()?;
    settings.memory = filter_file::fits(&args.filter, settings.memory)?;
    let (mut filter, metadata) = filter_file::read(&args.filter)?;
    refuse_if_it_cannot(&mut filter).map_err(Failure::of_file(&args.filter))?;
    let sink = missing.as_mut().map(|missing| missing.file() as &mut (dyn Write + Send));
    let removed = remove(&settings, filter.face_mut()?, &inputs, sink);
    teller.finish();
    // The filter stays as it was, and who asked for that must hear it.
    let removed = removed.map_err(|error| match &args.missing {
        _ if error.is_broken_pipe() => Failure::Plain(NOT_DONE.to_owned()),
        // Nothing else is written while lines are read.
        Some(path) if error.is_disk_full() => Failure::Plain(format!(
            "--missing {}: no space left, and nothing was removed; free some or write elsewhere",
            path.display(),
        )),
        _ => error.into(),
    })?;
    filter.write_to(output.file(), &metadata).map_err(Failure::of_output(&args.filter))?;
    // Whatever fails now, the filter is as it was, and the same words can be said again.
    missing.map_or(Ok(()), Output::finish)?;
    output.finish()?;
    if removed.missing > 0 {
        teller.say(&format!(
            "note: {} of {} lines were not in the filter",
            text::count(removed.missing),
            text::count(removed.lines),
        ));
    }
    counters::note_if_stuck(&filter, &teller);
    Ok(Outcome::Done)
}

const NOT_DONE: &str = "--missing: its reader is gone, and nothing was removed; let it read on, or \
                        write to a file";

/// A type that deletes nothing says so of no keys at all: before any line is read.
fn refuse_if_it_cannot(filter: &mut AnyFilter) -> petal::Result<()> {
    filter.face_mut()?.remove_mixed_hashes(&[], &mut Answers::new())
}
