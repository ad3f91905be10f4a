//! `shrink`: writes a smaller filter of the same keys.

use std::path::Path;

use petal::embed::Layout;
use petal::{AnyFilter, Filter, Mapped, Membership, QuotientFilter};
use petal_lines::{Source, with_fewer_keys};

use super::bad_note;
use crate::args::ShrinkArgs;
use crate::error::{Failure, Outcome, Result};
use crate::files::filter_file;
use crate::files::output::Output;
use crate::terminal::progress::ProgressReporter;
use crate::text;

pub(super) fn run(args: &ShrinkArgs) -> Result<Outcome> {
    let progress = ProgressReporter::silent(args.quiet);
    let inputs = [Source::Path(args.filter.clone())];
    let mut output = Output::open(Some(&args.output), &inputs)?;
    let filter = filter_file::open(&args.filter, &args.secret)?;
    // The mapped old filter and the new one, which may be as large; a quotient filter is copied
    // first.
    let copies = if matches!(filter, AnyFilter::Quotient(_)) { 3 } else { 2 };
    filter_file::memory_beside(&args.filter, args.memory.bytes() / copies)?;
    filter.verify().map_err(Failure::of_file(&args.filter))?;
    let target = match (args.factor, args.fpr) {
        (Some(divisor), _) => ShrinkTarget::Factor(divisor),
        (None, Some(rate)) => ShrinkTarget::Fpr(rate),
        (None, None) => ShrinkTarget::TargetFpr,
    };
    let smaller = shrink(&filter, target).ok_or_else(|| {
        let problem = match (&filter, target) {
            (AnyFilter::Quotient(_), ShrinkTarget::Factor(_)) => "by --factor; leave it out",
            (AnyFilter::Quotient(_), _) => "to a rate; leave out -p",
            (AnyFilter::Counting(_) | AnyFilter::CountingClassic(_), _) => "; freeze it first",
            _ => "; build a smaller one",
        };
        let space = if problem.starts_with(';') { "" } else { " " };
        Failure::Message(format!(
            "{}: a {} filter cannot be shrunk{space}{problem}",
            args.filter.display(),
            filter.as_dyn().filter_type(),
        ))
    })?;
    let smaller = smaller.map_err(|error| match target {
        ShrinkTarget::Factor(divisor) if error.is_invalid() => {
            not_a_divisor(&args.filter, divisor, filter.as_dyn())
        }
        ShrinkTarget::Fpr(rate) if error.is_invalid() => {
            too_low(&args.filter, rate, filter.as_dyn())
        }
        ShrinkTarget::TargetFpr if error.is_invalid() && filter.as_dyn().target_fpr() > 0.0 => {
            too_low(&args.filter, filter.as_dyn().target_fpr(), filter.as_dyn())
        }
        _ => Failure::of_file(&args.filter)(error),
    })?;
    let (old, new) = (filter.as_dyn().size_bytes(), smaller.as_dyn().size_bytes());
    if old == new {
        progress.print(&format!(
            "note: {} cannot be smaller than {} at that rate",
            args.filter.display(),
            text::size(old)
        ));
    }
    let stats = smaller.stats();
    if matches!(target, ShrinkTarget::Factor(_)) && stats.is_overfull {
        progress.print(&format!(
            "warning: the estimated false-positive rate is {}, the target rate was {}",
            text::rate(stats.estimated_fpr),
            text::rate(stats.target_fpr),
        ));
    }
    let [before, after] = [filter.as_dyn().inserted(), smaller.as_dyn().inserted()];
    let metadata = with_fewer_keys(filter.metadata(), before, after);
    let metadata = args.notes.noted(&metadata).map_err(bad_note)?;
    filter_file::write(smaller.as_dyn(), &metadata, &mut output, &args.output)?;
    output.finish()?;
    Ok(Outcome::Done)
}

/// The error of a rate below that of the filter, which only rises when the filter shrinks.
fn too_low(path: &Path, rate: f64, filter: &dyn Membership) -> Failure {
    Failure::Message(format!(
        "{}: cannot shrink to a rate of {}: the filter's estimated rate is already {}; specify a \
         higher rate with -p",
        path.display(),
        text::rate(rate),
        text::rate(filter.stats().estimated_fpr),
    ))
}

/// The error of a factor that does not divide the size; names the nearest factors that do.
fn not_a_divisor(path: &Path, divisor: u64, filter: &dyn Membership) -> Failure {
    let numbers = filter.parameters();
    let number = |key| numbers.iter().find(|(name, _)| *name == key).map(|(_, n)| *n);
    let (unit, extent) = match number("blocks") {
        Some(blocks) => ("blocks", blocks),
        None => ("bits", number("bits").unwrap_or(1)),
    };
    // A factor far from the wanted one would leave a filter that reports nearly all keys as
    // present, or one that is hardly smaller.
    let divides = |by: &u64| extent.is_multiple_of(*by);
    let lowest = divisor.div_ceil(FAR).max(2);
    let below = (lowest..divisor).rev().take(SEARCHED).find(divides);
    let highest = extent.min(divisor.saturating_mul(FAR));
    let above = (divisor.saturating_add(1)..=highest).take(SEARCHED).find(divides);
    let near: Vec<_> = [below, above].into_iter().flatten().map(text::count).collect();
    let advice = match &near[..] {
        [] => "nor does a factor near it; build a smaller filter from its lines".to_owned(),
        near => format!("use {}", near.join(" or ")),
    };
    Failure::Message(format!(
        "{}: --factor: {} does not divide its {} {unit}; {advice}",
        path.display(),
        text::count(divisor),
        text::count(extent),
    ))
}

/// Suggested factors differ from the given one by this factor at most.
const FAR: u64 = 4;

/// The number of factors to try in each direction.
const SEARCHED: usize = 1_000_000;

/// The size of the new filter.
#[derive(Clone, Copy)]
enum ShrinkTarget {
    /// The size divided by this factor.
    Factor(u64),
    /// The smallest size that keeps this rate.
    Fpr(f64),
    /// The smallest size that keeps the target rate.
    TargetFpr,
}

/// Returns the smaller filter; `None` for types that cannot be shrunk in this way.
fn shrink(filter: &AnyFilter<Mapped>, target: ShrinkTarget) -> Option<petal::Result<AnyFilter>> {
    match filter {
        AnyFilter::Bloom(filter) => Some(fold(filter, target).map(AnyFilter::from)),
        AnyFilter::Classic(filter) => Some(fold(filter, target).map(AnyFilter::from)),
        // The fingerprints keep their width; only free slots can be removed.
        AnyFilter::Quotient(filter) if matches!(target, ShrinkTarget::TargetFpr) => {
            Some(remove_free_slots(filter))
        }
        _ => None,
    }
}

fn fold<L: Layout>(filter: &Filter<L, Mapped>, target: ShrinkTarget) -> petal::Result<Filter<L>> {
    match target {
        ShrinkTarget::Factor(divisor) => filter.fold(divisor),
        ShrinkTarget::Fpr(rate) => filter.shrink_to_fpr(rate),
        ShrinkTarget::TargetFpr => filter.shrink_to_fpr(filter.target_fpr()),
    }
}

fn remove_free_slots(filter: &QuotientFilter<Mapped>) -> petal::Result<AnyFilter> {
    let mut smaller = filter.try_clone()?;
    smaller.shrink()?;
    Ok(smaller.into())
}
