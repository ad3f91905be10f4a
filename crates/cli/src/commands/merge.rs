//! `merge`: the union of filter files.

use std::path::Path;

use petal::{AnyFilter, FilterType, Mapped};
use petal_lines::Source;

use super::foreign;
use crate::args::MergeArgs;
use crate::exit::{Failure, Outcome, Result};
use crate::output::Output;
use crate::progress::Teller;
use crate::{filter_file, text};

pub(super) fn run(args: &MergeArgs) -> Result<Outcome> {
    if let Some(outcome) = foreign::merge(args)? {
        return Ok(outcome);
    }
    let teller = Teller::silent(args.quiet);
    let inputs: Vec<_> = args.filters.iter().cloned().map(Source::Path).collect();
    let mut output = Output::open(Some(&args.output), &inputs)?;
    let Some((first, rest)) = args.filters.split_first() else { return Ok(Outcome::Done) };
    // One filter in memory, and the pages of another as they are read.
    let cap = args.memory.bytes();
    filter_file::fits(first, cap / 2)?;
    let (mut filter, metadata) = filter_file::read(first)?;
    let size = filter.face().size_bytes();
    for path in rest {
        let held = filter.face().size_bytes();
        let other = filter_file::open(path)?;
        let differ = other.face().size_bytes() != held;
        // What is folded is a third one, no larger than either.
        let room = cap.saturating_sub(held) / if differ { 2 } else { 1 };
        filter_file::fits(path, room)?;
        other.verify().map_err(Failure::of_file(path))?;
        match folded(&filter, &other) {
            Some(folded) if differ => {
                let folded = folded.map_err(Failure::of_file(path))?;
                let least = held.min(other.face().size_bytes());
                if folded.face().size_bytes() < least && !args.fold {
                    return Err(too_little_in_common(path, &folded, least));
                }
                filter = folded;
            }
            _ if filter.face().filter_type() != other.face().filter_type() => {
                return Err(of_other_types(path, &filter, &other));
            }
            _ => filter.union(&other).map_err(Failure::of_file(path))?,
        }
    }
    let now = filter.face().size_bytes();
    if now < size {
        teller.say(&format!(
            "note: folded from {} to {}, which all sizes have in common; the false-positive rate \
             is {} now",
            text::size(size),
            text::size(now),
            text::rate(filter.face().estimated_rate()),
        ));
    }
    super::build::warn_if_overfull(filter.face(), &teller);
    filter.write_to(output.file(), &metadata).map_err(Failure::of_output(&args.output))?;
    output.finish()?;
    Ok(Outcome::Done)
}

fn of_other_types(path: &Path, ours: &AnyFilter, theirs: &AnyFilter<Mapped>) -> Failure {
    let (ours, theirs) = (ours.face().filter_type(), theirs.face().filter_type());
    let plain_and_counting = [ours, theirs].map(|kind| match kind {
        FilterType::Counting => FilterType::Bloom,
        FilterType::CountingClassic => FilterType::Classic,
        kind => kind,
    });
    let way_out = match plain_and_counting {
        [one, other] if one == other => "petal freeze makes a plain filter of a counting one",
        _ => "build all of one type",
    };
    Failure::Plain(format!(
        "{}: a {theirs} filter is not united with those before it, of type {ours}; {way_out}",
        path.display(),
    ))
}

/// Most sizes have next to nothing in common: who gives up so much of a filter must say so.
fn too_little_in_common(path: &Path, folded: &AnyFilter, least: u64) -> Failure {
    Failure::Plain(format!(
        "{}: its size and that of those before it have only {} in common, where the smaller has \
         {}; build both with the same -n and -p, or accept that with --fold",
        path.display(),
        text::size(folded.face().size_bytes()),
        text::size(least),
    ))
}

/// The union at the greatest size that both can be folded to; `None` for types that do not fold.
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
