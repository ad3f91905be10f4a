//! `shrink`: a smaller filter of the same keys, without the keys.

use petal::{AnyFilter, Mapped};
use petal_lines::Source;

use super::bytes;
use crate::args::ShrinkArgs;
use crate::exit::{Failure, Outcome, Result};
use crate::output::Output;
use crate::progress::Teller;
use crate::{filter_file, text};

pub(super) fn run(args: &ShrinkArgs) -> Result<Outcome> {
    let teller = Teller::silent(args.quiet);
    let inputs = [Source::Path(args.filter.clone())];
    let mut output = Output::open(Some(&args.output), &inputs)?;
    // The pages of the old one as they are read, and the new one, which may be no smaller.
    filter_file::fits(&args.filter, bytes(args.memory) / 2)?;
    let filter = filter_file::open(&args.filter)?;
    filter.verify().map_err(Failure::of_file(&args.filter))?;
    let by = match (args.by, args.fpr) {
        (Some(divisor), _) => By::Divisor(divisor),
        (None, Some(rate)) => By::Rate(rate),
        (None, None) => By::Rate(planned_rate(args, &filter)?),
    };
    let smaller = shrunk(&filter, by).ok_or_else(|| {
        Failure::Plain(format!(
            "{}: a {} filter cannot be shrunk; build a smaller one, or freeze a counting one first",
            args.filter.display(),
            filter.face().filter_type(),
        ))
    })?;
    let smaller = smaller.map_err(Failure::of_file(&args.filter))?;
    let (old, new) = (filter.face().size_bytes(), smaller.face().size_bytes());
    if old == new {
        teller.say(&format!(
            "note: {} is as small as that allows, {}",
            args.filter.display(),
            text::size(old)
        ));
    }
    smaller.write_to(output.file(), filter.metadata()).map_err(Failure::of_output(&args.output))?;
    output.finish()?;
    Ok(Outcome::Done)
}

/// How small a filter is to get.
#[derive(Clone, Copy)]
enum By {
    /// So many times smaller.
    Divisor(u64),
    /// As small as this rate allows.
    Rate(f64),
}

fn planned_rate(args: &ShrinkArgs, filter: &AnyFilter<Mapped>) -> Result<f64> {
    let rate = filter.face().target_rate();
    if rate > 0.0 {
        return Ok(rate);
    }
    Err(Failure::Plain(format!(
        "{}: was not planned for a rate; say with -p which one is to be kept, or with --by how \
         many times smaller it is to be",
        args.filter.display()
    )))
}

/// The smaller filter; `None` for types that cannot be shrunk.
fn shrunk(filter: &AnyFilter<Mapped>, by: By) -> Option<petal::Result<AnyFilter>> {
    Some(match (filter, by) {
        (AnyFilter::Bloom(filter), By::Divisor(by)) => filter.fold(by).map(AnyFilter::from),
        (AnyFilter::Bloom(filter), By::Rate(rate)) => {
            filter.shrink_to_rate(rate).map(AnyFilter::from)
        }
        (AnyFilter::Classic(filter), By::Divisor(by)) => filter.fold(by).map(AnyFilter::from),
        (AnyFilter::Classic(filter), By::Rate(rate)) => {
            filter.shrink_to_rate(rate).map(AnyFilter::from)
        }
        _ => return None,
    })
}
