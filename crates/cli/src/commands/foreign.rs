//! `build`, `add` and `merge` of filters of other programs.

use std::path::{Path, PathBuf};

use petal_interop::{CascadeOptions, ForeignFilter, Format, KeyType};
use petal_lines::{FilterSpec, LineBuffer, LineFilterMut as _, MIN_MEMORY, Settings, Source, fill};

use super::{assert_members, filter_failure};
use crate::args::{self, AddArgs, BuildArgs, MergeArgs};
use crate::error::{Failure, Outcome, Result};
use crate::files::filter_file;
use crate::files::foreign_file::{self, AnyFile, ForeignLines};
use crate::files::output::Output;
use crate::files::spelling;
use crate::terminal::progress::ProgressReporter;
use crate::text;

/// Returns an error if a key type is set for one of petal's own filters, whose keys are bytes.
pub(super) fn refuse_key_type(path: &Path, foreign: args::ForeignArgs) -> Result<()> {
    match foreign.key_type {
        None => Ok(()),
        Some(_) => Err(Failure::Message(format!(
            "--key-type: {} is petal's own filter, whose keys are the bytes of lines; leave it out",
            path.display()
        ))),
    }
}

/// Returns an error if a format was given for a filter at an address.
pub(super) fn refuse_format(path: &Path, foreign: args::ForeignArgs) -> Result<()> {
    match foreign.format.name {
        None => Ok(()),
        Some(_) => Err(Failure::Message(format!(
            "--format: {} is an address, where only filters of petal's own are queried; leave it out, or \
             download the filter first",
            path.display()
        ))),
    }
}

/// Returns an error if there are notes for a file of another program.
fn refuse_notes(notes: &args::NoteArgs, format: Format) -> Result<()> {
    match notes.is_empty() {
        true => Ok(()),
        false => Err(Failure::Message(format!(
            "--metadata: a {format} file has no place for notes; leave it out"
        ))),
    }
}

/// Returns an error for options that conflict with the format.
pub(super) fn check_options(args: &BuildArgs, format: Format) -> Result<()> {
    let failed = |text: &str| Err(Failure::Message(text.replace("{}", format.name())));
    let cascade = format == Format::FilterCascade;
    refuse_notes(&args.notes, format)?;
    if args.gzip && format != Format::Dcso {
        return failed("--gzip: programs that read {} files do not decompress them; leave it out");
    }
    if cascade && args.not_in.is_none() {
        return failed("--format {}: needs the lines that it must not contain; specify --not-in");
    }
    if !cascade && args.not_in.is_some() {
        return failed(
            "--not-in: a {} filter has no known non-members; use --format filter-cascade",
        );
    }
    if cascade && args.capacity.is_some() {
        return failed("-n: a {} is sized by the lines that it is built from; leave it out");
    }
    if cascade && args.key_type.is_some_and(|key_type| key_type != KeyType::Text) {
        return failed("--key-type: keys of a {} are the bytes of lines; leave it out");
    }
    Ok(())
}

/// Returns the maximum size of the filter.
fn memory_limit(args: &BuildArgs) -> u64 {
    let memory = petal_lines::memory_for_filter(args.engine.memory.bytes());
    args.size.map_or(memory, |size| size.bytes().min(memory))
}

/// Builds Mozilla's cascade, with the lines of `others` as known non-members.
pub(super) fn cascade(
    args: &BuildArgs,
    settings: &Settings<'_>,
    inputs: &[Source],
    others: &Source,
) -> Result<ForeignLines<Vec<u8>>> {
    /// Bytes that building takes for each key, beside the key itself.
    const BYTES_PER_KEY: u64 = 64;
    let available = settings.memory_limit;
    let members = LineBuffer::read(settings, inputs, available, BYTES_PER_KEY)?;
    let used = members.memory_usage() + BYTES_PER_KEY * members.len() as u64;
    let available = available.saturating_sub(used);
    let others =
        LineBuffer::read(settings, std::slice::from_ref(others), available, BYTES_PER_KEY)?;
    let defaults = CascadeOptions::default();
    let rate = args.fpr.unwrap_or(defaults.rate);
    let options = CascadeOptions { rate, limit: memory_limit(args), ..defaults };
    Ok(ForeignLines(petal_interop::cascade(members.iter(), others.iter(), &options)?))
}

/// Builds a filter in another program's format.
pub(super) fn build(
    args: &BuildArgs,
    format: Format,
    settings: &Settings<'_>,
    inputs: &[Source],
    keys: u64,
) -> Result<ForeignLines<Vec<u8>>> {
    let (rate, limit) = (args.fpr.unwrap_or(FilterSpec::DEFAULT_FPR), memory_limit(args));
    let filter = ForeignFilter::with_fpr_within(format, keys, rate, limit).map_err(|error| {
        if !error.is_too_large() {
            return error.into();
        }
        Failure::Message(format!(
            "{} keys at {} take more than {}; raise {}, or raise -p",
            text::count(keys),
            text::rate(rate),
            text::size(limit),
            if args.size.is_some() { "--size" } else { "-m" },
        ))
    })?;
    let mut filter = ForeignLines(filter).with_key_type(args.key_type)?;
    let left = settings.memory_limit.saturating_sub(filter.memory()).max(MIN_MEMORY);
    let reading = Settings { memory_limit: left, ..settings.clone() };
    fill(&reading, &mut filter, inputs, limit).map_err(filter_failure(&args.output))?;
    Ok(filter)
}

/// Warns if the double hashing of a format makes the planned rate unattainable.
pub(super) fn warn_if_unattainable(
    filter: &ForeignLines<Vec<u8>>,
    keys: u64,
    planned: f64,
    progress: &ProgressReporter,
) {
    let Some((rate, floor)) = filter.0.expected_fpr(keys) else { return };
    if rate > planned * 1.5 && floor > planned / 2.0 {
        progress.print(&format!(
            "warning: the false-positive rate will be about {}, not {}: the double hashing of {} \
             cannot keep it with {}; plan for a higher rate, or use a format without that floor \
             (dcso, rbloom, hadoop-murmur, petal's own)",
            text::rate(rate),
            text::rate(planned),
            filter.0.format(),
            text::keys(keys),
        ));
    }
}

/// Writes a filter to the output.
pub(super) fn write(
    filter: &ForeignLines<Vec<u8>>,
    gzip: bool,
    mut output: Output,
    path: &Path,
) -> Result<()> {
    let written = filter.0.write_to(&mut output, gzip);
    written.map_err(Failure::of_foreign_output(path))?;
    output.finish()
}

/// Prints the warnings of a filter, and warns if its rate is above the target.
pub(super) fn warn_if_overfull(
    filter: &ForeignLines<Vec<u8>>,
    planned: Option<f64>,
    progress: &ProgressReporter,
) {
    let stats = filter.0.stats();
    for warning in &stats.warnings {
        progress.print(&format!("warning: {warning}"));
    }
    let estimated = stats.estimated_keys.unwrap_or(0.0);
    if stats.target_fpr.is_none()
        && let Some(keys) = stats.capacity
    {
        if estimated > keys as f64 * 1.02 {
            let found = if estimated.is_finite() {
                format!("about {}", text::count(estimated as u64))
            } else {
                "an unknown number".to_owned()
            };
            progress.print(&format!(
                "warning: the filter was planned for {} and has {found}; its estimated \
                 false-positive rate is {}; build a larger filter with -n",
                text::keys(keys),
                text::rate(stats.estimated_fpr),
            ));
        }
        return;
    }
    let Some(target) = stats.target_fpr.or(planned) else { return };
    // A larger filter does not lower the floor of double hashing.
    if petal::math::is_overfull(target, stats.estimated_fpr - stats.fpr_floor, stats.bits) {
        progress.print(&format!(
            "warning: the estimated false-positive rate is {}, above the target of {}; build a larger \
             filter with -n",
            text::rate(stats.estimated_fpr),
            text::rate(target),
        ));
    }
}

/// `add` to another program's filter.
pub(super) struct Add<'a> {
    pub(super) args: &'a AddArgs,
    pub(super) filter: ForeignLines<Vec<u8>>,
    /// Whether to compress the file, as it was before.
    pub(super) compressed: bool,
    pub(super) inputs: Vec<Source>,
    /// Lines that must be in the filter.
    pub(super) members: Option<Source>,
    pub(super) settings: Settings<'a>,
}

impl Add<'_> {
    pub(super) fn run(self, output: Output, progress: &ProgressReporter) -> Result<Outcome> {
        let Self { args, filter, compressed, inputs, members, mut settings } = self;
        refuse_notes(&args.notes, filter.0.format())?;
        // A damaged file must not be rewritten.
        filter.0.verify().map_err(Failure::of_foreign(&args.filter))?;
        let filter = filter.with_key_type(args.foreign.key_type)?;
        // The rest of the memory is for the job and for the growth of the filter.
        let size = filter.memory();
        let left = settings.memory_limit.saturating_sub(size);
        let mut filter = filter.growing_to(size + left / 2);
        settings.memory_limit = if filter.grows() { left / 2 } else { left }.max(MIN_MEMORY);
        if let Some(members) = &members {
            assert_members::in_foreign(&settings, &filter, &args.filter, members)?;
        }
        let filled = fill(&settings, &mut filter, &inputs, args.engine.memory.bytes());
        progress.finish();
        filled.map_err(filter_failure(&args.filter))?;
        warn_if_overfull(&filter, None, progress);
        spelling::warn_if_different(&settings, filter.spelling(), true, &args.filter, progress);
        write(&filter, compressed, output, &args.filter)?;
        Ok(Outcome::Done)
    }
}

/// `merge` of filters of other programs; `None` if the first filter is petal's own.
pub(super) fn merge(args: &MergeArgs, filters: &[PathBuf]) -> Result<Option<Outcome>> {
    let progress = ProgressReporter::silent(args.quiet);
    let Some((first, rest)) = filters.split_first() else { return Ok(None) };
    let memory_limit = args.memory.bytes();
    let Some((mut filter, compressed)) = foreign_file::read(first, args.format, memory_limit / 2)?
    else {
        return Ok(None);
    };
    if args.fold {
        return Err(Failure::Message(
            "--fold: only petal's own filters can be folded; leave it out".to_owned(),
        ));
    }
    refuse_notes(&args.notes, filter.0.format())?;
    filter.0.verify().map_err(Failure::of_foreign(first))?;
    let inputs: Vec<_> = filters.iter().cloned().map(Source::Path).collect();
    let output = match compressed {
        true => Output::open_as_named(&args.output, &inputs)?,
        false => Output::open(Some(&args.output), &inputs)?,
    };
    for path in rest {
        let available = memory_limit.saturating_sub(filter.size_bytes());
        let other = foreign_file::open_as(path, args.format, available, filter_file::map)?;
        let AnyFile::Foreign(other) = other else {
            return Err(Failure::Message(format!(
                "{}: is petal's own filter, which cannot be merged with a {} filter; build all in one format",
                path.display(),
                filter.0.format()
            )));
        };
        other.0.verify().map_err(Failure::of_foreign(path))?;
        filter.0.union(&other.0).map_err(Failure::of_foreign(path))?;
    }
    warn_if_overfull(&filter, None, &progress);
    write(&filter, compressed, output, &args.output)?;
    Ok(Some(Outcome::Done))
}
