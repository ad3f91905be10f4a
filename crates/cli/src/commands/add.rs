//! `add`: more lines into a filter file.

use std::fs::File;

use petal::AnyFilter;
use petal_lines::{LEAST_MEMORY, Source, fill};

use super::{build, settings};
use crate::args::AddArgs;
use crate::exit::{Failure, Outcome, Result, words};
use crate::output::Output;
use crate::progress::Teller;
use crate::text;

pub(super) fn run(args: &AddArgs) -> Result<Outcome> {
    let teller = Teller::new(&args.engine.talk);
    let mut settings = settings(&args.engine, &teller);
    let inputs = args.inputs.sources();
    let mut output = Output::open(Some(&args.filter), &inputs)?;
    fits(&args.filter, settings.memory)?;
    let (mut filter, metadata) = read(&args.filter)?;
    settings.memory = settings.memory.max(LEAST_MEMORY);
    let filled = fill(&settings, &mut filter, &inputs);
    teller.finish();
    filled?;
    build::warn_if_overfull(&filter, &teller);
    filter.write_to(output.file(), &metadata).map_err(Failure::of_file(&args.filter))?;
    output.finish()?;
    Ok(Outcome::Done)
}

/// Reads a filter file into memory, every byte examined.
pub(super) fn read(path: &std::path::Path) -> Result<(AnyFilter, String)> {
    let file = open(path)?;
    let file = std::io::BufReader::with_capacity(1 << 20, file);
    AnyFilter::read_from(file).map_err(Failure::of_file(path))
}

/// Opens a filter file.
pub(super) fn open(path: &std::path::Path) -> Result<File> {
    let failed = |error: std::io::Error| {
        Failure::Plain(format!("{}: cannot read: {}", path.display(), words(&error)))
    };
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        let path = path.display();
        return Err(Failure::Plain(format!("{path}: is a directory, expected a filter file")));
    }
    Ok(file)
}

/// A filter that does not fit the memory is refused before it is read.
pub(super) fn fits(path: &std::path::Path, memory: u64) -> Result<()> {
    let size = open(path)?.metadata().map_or(0, |data| data.len());
    if size > memory {
        return Err(Failure::Plain(format!(
            "{}: the filter takes {}, more than the {} of -m; raise -m",
            path.display(),
            text::size(size),
            text::size(memory),
        )));
    }
    Ok(())
}

/// A filter file as an input, to see whether it is an output too.
pub(super) fn as_source(path: &std::path::Path) -> Source {
    Source::Path(path.to_owned())
}
