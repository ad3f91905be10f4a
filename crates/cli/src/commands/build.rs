//! `build`: builds a filter file from lines.

use std::sync::Arc;

use petal::{FilterType, HashSpec, Membership};
use petal_interop::Format;
use petal_lines::{
    CountedLists, FilterSpec, MemoryLimit, Settings, Source, count_lines, filter_metadata,
    with_query_transforms, with_spelling,
};

use super::{bad_note, filter_failure, foreign, saturation, settings};
use crate::args::{BuildArgs, FilterTypeArg};
use crate::error::{Outcome, Result};
use crate::files::inputs::{input_paths, inputs, key_list};
use crate::files::output::{Output, refuse_bad_file};
use crate::files::{filter_file, secret_file, spelling};
use crate::terminal::progress::ProgressReporter;
use crate::text;

pub(super) fn run(args: &BuildArgs) -> Result<Outcome> {
    let progress = ProgressReporter::new(&args.engine.verbosity, false);
    let memory_limit = args.engine.memory.bytes();
    let prefix_from_name = args.prefix_from_name;
    let (files, inputs) = if args.counts || prefix_from_name {
        let paths = input_paths(&args.inputs, memory_limit)?;
        let files: Vec<_> = paths.iter().map(Source::from_arg).collect();
        (files, vec![Source::Counted(CountedLists { paths, prefix_from_name })])
    } else {
        let files = inputs(&args.inputs, memory_limit)?;
        (files.clone(), files)
    };
    let not_in = key_list(args.not_in.as_ref())?;
    let with_keys = [&files[..], not_in.as_slice()].concat();
    let mut settings = settings(&args.engine, &args.fields, &with_keys, &progress)?;
    refuse_bad_file(&args.output, &settings.left_out)?;
    if let Some(format) = args.format {
        return build_foreign(args, format, &settings, (&files, &inputs), &progress);
    }
    let mut spec = filter_spec(args)?;
    // Settings are checked before any input is read.
    spec.filter_type()?;
    let mut all = [&files[..], &spec.not_in].concat();
    all.extend(args.inputs.lists.source());
    Source::check_streams(&all)?;
    let secret = secret_file::path(args.secret_file.as_deref()).filter(|_| args.keyed);
    secret.as_deref().map_or(Ok(()), |path| refuse_bad_file(path, &settings.left_out))?;
    all.extend(secret.clone().map(Source::Path));
    let mut output = Output::open(Some(&args.output), &all)?;
    if let Some(path) = secret {
        let (secret, created) = secret_file::read_or_create(&path)?;
        if created {
            progress.print(&format!(
                "note: {} has the new secret; without it the filter cannot be queried",
                path.display()
            ));
        }
        spec.own_hash = Some(HashSpec::keyed_apart(&secret));
    }
    settings.keys = Arc::new(settings.keys.queried_after(&args.query_transform));
    let built = petal_lines::build(&spec, &settings, &inputs);
    progress.finish();
    let filter = built.map_err(filter_failure(&args.output))?.filter;
    warn_if_overfull(filter.as_dyn(), &progress);
    warn_if_rate_is_high(args, filter.as_dyn(), &progress);
    saturation::note_if_saturated(&filter, &progress);
    let (spelling, inserted) = (settings.spellings.of(&inputs), filter.as_dyn().inserted());
    let metadata = with_spelling(&filter_metadata(&settings.keys, &inputs), spelling, inserted);
    let metadata = with_query_transforms(&metadata, &args.query_transform);
    let metadata = args.notes.noted(&metadata).map_err(bad_note)?;
    filter_file::write(filter.as_dyn(), &metadata, &mut output, &args.output)?;
    output.finish()?;
    if filter.as_dyn().inserted() == 0 {
        progress.print("note: the inputs have no lines; the filter is empty");
    }
    Ok(Outcome::Done)
}

fn filter_spec(args: &BuildArgs) -> Result<FilterSpec> {
    Ok(FilterSpec {
        filter_type: args.filter_type.map(FilterTypeArg::filter_type),
        capacity: args.capacity,
        fpr: args.fpr,
        size: args.size.map(MemoryLimit::bytes),
        bits: args.bits,
        probes: args.probes,
        least_space: args.least_space,
        width: args.width,
        growing: args.growing,
        max_capacity: args.max_capacity,
        window: args.window,
        last: args.last,
        now: args.clock.now(),
        not_in: key_list(args.not_in.as_ref())?.into_iter().collect(),
        seed: args.seed.unwrap_or(0),
        keyed: args.keyed,
        own_hash: None,
    })
}

/// Builds a filter of another program.
fn build_foreign(
    args: &BuildArgs,
    format: Format,
    settings: &Settings<'_>,
    (files, inputs): (&[Source], &[Source]),
    progress: &ProgressReporter,
) -> Result<Outcome> {
    foreign::check_options(args, format)?;
    let mut all = files.to_vec();
    let not_in = key_list(args.not_in.as_ref())?;
    all.extend(not_in.clone());
    Source::check_streams(&all)?;
    let output = match args.gzip {
        true => Output::open_as_named(&args.output, &all)?,
        false => Output::open(Some(&args.output), &all)?,
    };
    let planned = args.fpr.unwrap_or(FilterSpec::DEFAULT_FPR);
    let filter = match &not_in {
        Some(others) => {
            let filter = foreign::cascade(args, settings, inputs, others);
            progress.finish();
            filter?
        }
        None => {
            let keys = match args.capacity {
                Some(keys) => keys,
                None => count_lines(settings, inputs)?.max(1),
            };
            let filter = foreign::build(args, format, settings, inputs, keys);
            progress.finish();
            let filter = filter?;
            foreign::warn_if_unattainable(&filter, keys, planned, progress);
            foreign::warn_if_overfull(&filter, Some(planned), progress);
            filter
        }
    };
    spelling::warn_if_different(settings, filter.spelling(), true, &args.output, progress);
    foreign::write(&filter, args.gzip, output, &args.output)?;
    Ok(Outcome::Done)
}

/// Warns if the lowest rate that fits --size is high.
fn warn_if_rate_is_high(args: &BuildArgs, filter: &dyn Membership, progress: &ProgressReporter) {
    // Without a plan, the rate of the lines that are in the filter counts.
    let (keys, rate) = match filter.capacity() {
        0 if args.bits.is_some() => (filter.inserted(), filter.stats().estimated_fpr),
        keys => (keys, filter.target_fpr()),
    };
    if filter.capacity() == 0 && rate > SATURATED {
        // Most new lines were taken for lines that the filter contains, so its count says little.
        progress.print(&format!(
            "warning: the lines are too many for {}: the false-positive rate is {}; raise --bits",
            text::size(filter.size_bytes()),
            text::rate(rate),
        ));
    } else if args.fpr.is_none() && rate > POOR {
        progress.print(&format!(
            "warning: {} in {} have a false-positive rate of {}; raise {}",
            text::keys(keys),
            text::size(filter.size_bytes()),
            text::rate(rate),
            if args.bits.is_some() { "--bits" } else { "--size" },
        ));
    }
}

/// Rates above this are intended only if -p is given.
const POOR: f64 = 0.1;

/// At higher rates a filter takes most new keys for keys that it contains.
const SATURATED: f64 = 0.5;

/// Warns if a filter has more keys than its capacity, with the false-positive rate that results.
pub(super) fn warn_if_overfull(filter: &dyn Membership, progress: &ProgressReporter) {
    let (kind, planned, inserted) = (filter.filter_type(), filter.capacity(), filter.inserted());
    // The margin is for the estimate after a merge.
    let exceeds = planned > 0 && inserted as f64 > planned as f64 * 1.01;
    if !exceeds && !matches!(kind, FilterType::Windowed | FilterType::Scalable) {
        return;
    }
    let stats = filter.stats();
    if !stats.is_overfull {
        return;
    }
    let rate = text::rate(stats.estimated_fpr);
    progress.print(&match kind {
        FilterType::Windowed => format!(
            "warning: a part of the window has more lines than planned for; the estimated \
             false-positive rate is {rate}; build a larger filter with -n",
        ),
        FilterType::Scalable => format!(
            "warning: hashes of 64 bits do not keep the rate of {} for this number of lines; the estimated \
             false-positive rate is {rate}; choose a higher rate with -p",
            text::rate(stats.target_fpr),
        ),
        _ => {
            let keys = stats.estimated_len;
            let found = if stats.estimated_fpr < SATURATED {
                format!("about {}", text::count(inserted))
            } else if keys.is_finite() {
                format!("about {}", text::count(keys as u64))
            } else {
                "too many to estimate".to_owned()
            };
            format!(
                "warning: the filter was planned for {} and has {found}; its estimated \
                 false-positive rate is {rate}; build a larger filter with -n",
                text::keys(planned),
            )
        }
    });
}
