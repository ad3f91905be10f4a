//! `merge`: writes the union of filter files.

use std::path::Path;

use petal::{AnyFilter, FilterType, Mapped};
use petal_lines::{Source, union_metadata};

use super::bad_note;
use super::foreign;
use crate::args::MergeArgs;
use crate::error::{Failure, Outcome, Result};
use crate::files::inputs::paths;
use crate::files::output::Output;
use crate::files::{filter_file, key_fields, key_transforms, spelling};
use crate::terminal::progress::ProgressReporter;
use crate::text;

pub(super) fn run(args: &MergeArgs) -> Result<Outcome> {
    let filters = paths(&args.filters, &args.lists, args.memory.bytes())?;
    if let Some(outcome) = foreign::merge(args, &filters)? {
        return Ok(outcome);
    }
    let progress = ProgressReporter::silent(args.quiet);
    let mut inputs: Vec<_> = filters.iter().cloned().map(Source::Path).collect();
    inputs.extend(args.lists.source());
    let mut output = Output::open(Some(&args.output), &inputs)?;
    let Some((first, rest)) = filters.split_first() else { return Ok(Outcome::Done) };
    // One filter is in memory, and the pages of another are mapped.
    let memory_limit = args.memory.bytes();
    filter_file::memory_beside(first, memory_limit / 2)?;
    let (mut filter, mut metadata) = filter_file::read(first, &args.secret)?;
    let size = filter.as_dyn().size_bytes();
    for path in rest {
        let size_now = filter.as_dyn().size_bytes();
        let other = filter_file::open(path, &args.secret)?;
        let differ = other.as_dyn().size_bytes() != size_now;
        // Folding writes to a third filter, which is not larger than either.
        let available = memory_limit.saturating_sub(size_now) / if differ { 2 } else { 1 };
        filter_file::memory_beside(path, available)?;
        other.verify().map_err(Failure::of_file(path))?;
        key_transforms::check_equal((first, &metadata), (path, other.metadata()))?;
        let [keys, others] = [filter.as_dyn().inserted(), other.as_dyn().inserted()];
        let ours = (first.as_path(), &metadata[..], keys);
        spelling::warn_if_filters_differ(ours, (path, other.metadata(), others), &progress);
        let [ours, theirs] = [(first.as_path(), &*metadata), (path.as_path(), other.metadata())];
        key_fields::note_if_filters_differ(ours, theirs, &progress);
        match folded(&filter, &other) {
            Some(folded) if differ => {
                let folded = folded.map_err(Failure::of_file(path))?;
                let smaller = size_now.min(other.as_dyn().size_bytes());
                if folded.as_dyn().size_bytes() < smaller && !args.fold {
                    return Err(common_size_too_small(path, &folded, smaller));
                }
                filter = folded;
            }
            _ if filter.as_dyn().filter_type() != other.as_dyn().filter_type() => {
                return Err(different_types(path, &filter, &other));
            }
            _ => filter.merge(&other).map_err(Failure::of_file(path))?,
        }
        let union = filter.as_dyn().inserted();
        metadata = union_metadata((&metadata, keys), (other.metadata(), others), union);
    }
    let size_now = filter.as_dyn().size_bytes();
    if size_now < size {
        progress.print(&format!(
            "note: folded from {} to {}, which divides the sizes of all filters; the estimated \
             false-positive rate is {}",
            text::size(size),
            text::size(size_now),
            text::rate(filter.as_dyn().stats().estimated_fpr),
        ));
    }
    super::build::warn_if_overfull(filter.as_dyn(), &progress);
    let metadata = args.notes.noted(&metadata).map_err(bad_note)?;
    filter_file::write(filter.as_dyn(), &metadata, &mut output, &args.output)?;
    output.finish()?;
    Ok(Outcome::Done)
}

fn different_types(path: &Path, ours: &AnyFilter, theirs: &AnyFilter<Mapped>) -> Failure {
    let (ours, theirs) = (ours.as_dyn().filter_type(), theirs.as_dyn().filter_type());
    let without_counters = [ours, theirs].map(|kind| match kind {
        FilterType::Counting => FilterType::Bloom,
        FilterType::CountingClassic => FilterType::Classic,
        kind => kind,
    });
    let advice = match without_counters {
        [one, other] if one == other => "convert the counting filter with petal freeze",
        _ => "build all filters with the same type",
    };
    Failure::Message(format!(
        "{}: a {theirs} filter cannot be merged with a {ours} filter; {advice}",
        path.display(),
    ))
}

/// The error if folding would shrink both filters, which needs `--fold`: the result may be tiny.
fn common_size_too_small(path: &Path, folded: &AnyFilter, smaller: u64) -> Failure {
    Failure::Message(format!(
        "{}: the filters would be folded to {}, the largest size that divides both; the smaller \
         one has {}; build both with the same -n and -p, or accept it with --fold",
        path.display(),
        text::size(folded.as_dyn().size_bytes()),
        text::size(smaller),
    ))
}

/// Returns the union at the largest size that divides both; `None` for types that do not fold.
fn folded(ours: &AnyFilter, theirs: &AnyFilter<Mapped>) -> Option<petal::Result<AnyFilter>> {
    match (ours, theirs) {
        (AnyFilter::Bloom(ours), AnyFilter::Bloom(theirs)) => {
            Some(ours.union_folded(theirs).map(AnyFilter::from))
        }
        (AnyFilter::Classic(ours), AnyFilter::Classic(theirs)) => {
            Some(ours.union_folded(theirs).map(AnyFilter::from))
        }
        _ => None,
    }
}
