//! `shrink`: a smaller filter of the same keys, without the keys.

use std::path::Path;

use petal::{AnyFilter, Filter, Geometry, Mapped, Membership, QuotientFilter};
use petal_lines::Source;

use crate::args::ShrinkArgs;
use crate::exit::{Failure, Outcome, Result};
use crate::output::Output;
use crate::progress::Teller;
use crate::{filter_file, text};

pub(super) fn run(args: &ShrinkArgs) -> Result<Outcome> {
    let teller = Teller::silent(args.quiet);
    let inputs = [Source::Path(args.filter.clone())];
    let mut output = Output::open(Some(&args.output), &inputs)?;
    let filter = filter_file::open(&args.filter)?;
    // The pages of the old one as they are read, and the new one, which may be no smaller; a table
    // is copied in between.
    let copies = if matches!(filter, AnyFilter::Quotient(_)) { 3 } else { 2 };
    filter_file::fits(&args.filter, args.memory.bytes() / copies)?;
    filter.verify().map_err(Failure::of_file(&args.filter))?;
    let by = match (args.by, args.fpr) {
        (Some(divisor), _) => By::Divisor(divisor),
        (None, Some(rate)) => By::Rate(rate),
        (None, None) => By::Plan,
    };
    let smaller = shrunk(&filter, by).ok_or_else(|| {
        let how = match (&filter, by) {
            (AnyFilter::Quotient(_), By::Divisor(_)) => "--by; leave it out",
            (AnyFilter::Quotient(_), _) => "to a rate; leave out -p",
            (AnyFilter::Counting(_) | AnyFilter::CountingClassic(_), _) => "; freeze it first",
            _ => "; build a smaller one",
        };
        let blank = if how.starts_with(';') { "" } else { " " };
        Failure::Plain(format!(
            "{}: a {} filter cannot be shrunk{blank}{how}",
            args.filter.display(),
            filter.face().filter_type(),
        ))
    })?;
    let smaller = smaller.map_err(|error| match by {
        By::Divisor(divisor) if error.is_invalid() => {
            no_divisor(&args.filter, divisor, filter.face())
        }
        _ => Failure::of_file(&args.filter)(error),
    })?;
    let (old, new) = (filter.face().size_bytes(), smaller.face().size_bytes());
    if old == new {
        teller.say(&format!(
            "note: {} is as small as that allows, {}",
            args.filter.display(),
            text::size(old)
        ));
    }
    if matches!(by, By::Divisor(_)) && smaller.face().is_overfull() {
        teller.say(&format!(
            "warning: the false-positive rate is {} now, planned was {}",
            text::rate(smaller.face().estimated_rate()),
            text::rate(smaller.face().target_rate()),
        ));
    }
    smaller.write_to(output.file(), filter.metadata()).map_err(Failure::of_output(&args.output))?;
    output.finish()?;
    Ok(Outcome::Done)
}

/// By what a filter can be made smaller instead: the divisors that are nearest.
fn no_divisor(path: &Path, divisor: u64, filter: &dyn Membership) -> Failure {
    let numbers = filter.geometry();
    let number = |wanted| numbers.iter().find(|(name, _)| *name == wanted).map(|(_, n)| *n);
    let (what, extent) = match number("blocks") {
        Some(blocks) => ("blocks", blocks),
        None => ("bits", number("bits").unwrap_or(1)),
    };
    let divides = |by: &u64| extent.is_multiple_of(*by);
    let below = (2..divisor).rev().take(SEARCHED).find(divides);
    let above = (divisor + 1..=extent).take(SEARCHED).find(divides);
    let near: Vec<_> = [below, above].into_iter().flatten().map(text::count).collect();
    let instead = match &near[..] {
        [] => "leave it out".to_owned(),
        near => format!("take {}", near.join(" or ")),
    };
    Failure::Plain(format!(
        "{}: --by: {} does not divide its {} {what}; {instead}",
        path.display(),
        text::count(divisor),
        text::count(extent),
    ))
}

/// How far from the number that was said a divisor is looked for.
const SEARCHED: usize = 1_000_000;

/// How small a filter is to get.
#[derive(Clone, Copy)]
enum By {
    /// So many times smaller.
    Divisor(u64),
    /// As small as this rate allows.
    Rate(f64),
    /// As small as what was planned allows.
    Plan,
}

/// The smaller filter; `None` for types that cannot be shrunk like this.
fn shrunk(filter: &AnyFilter<Mapped>, by: By) -> Option<petal::Result<AnyFilter>> {
    match filter {
        AnyFilter::Bloom(filter) => Some(folded(filter, by).map(AnyFilter::from)),
        AnyFilter::Classic(filter) => Some(folded(filter, by).map(AnyFilter::from)),
        // Its fingerprints are what they are: only slots can be given back.
        AnyFilter::Quotient(filter) if matches!(by, By::Plan) => Some(halved(filter)),
        _ => None,
    }
}

fn folded<G: Geometry>(filter: &Filter<G, Mapped>, by: By) -> petal::Result<Filter<G>> {
    match by {
        By::Divisor(divisor) => filter.fold(divisor),
        By::Rate(rate) => filter.shrink_to_rate(rate),
        By::Plan => filter.shrink_to_rate(filter.target_rate()),
    }
}

fn halved(filter: &QuotientFilter<Mapped>) -> petal::Result<AnyFilter> {
    let mut smaller = filter.to_owned_filter()?;
    smaller.shrink()?;
    Ok(smaller.into())
}
