//! One file for each format. Here is the one list of them all: how each is opened and made.

mod dcso;
pub(crate) mod filter_cascade;
mod guava;

pub use filter_cascade::CascadeHash;

use crate::error::{Error, Result};
use crate::format::Format;
use crate::scheme::{Plan, Scheme};

/// What the beginning of a file says, if it is a filter of this format.
pub(crate) fn open(format: Format, file: &[u8]) -> Result<Box<dyn Scheme>> {
    Ok(match format {
        Format::Guava => Box::new(guava::Guava::parse(file, true)?),
        Format::Guava32 => Box::new(guava::Guava::parse(file, false)?),
        Format::Dcso => Box::new(dcso::Dcso::parse(file)?),
        Format::FilterCascade => Box::new(filter_cascade::FilterCascade::parse(file)?),
        _ => return Err(Error::unsupported(format, "is not read yet")),
    })
}

/// An empty filter of this format, sized as its own program would.
pub(crate) fn plan(format: Format, plan: &Plan) -> Result<(Box<dyn Scheme>, Vec<u8>)> {
    fn boxed<S: Scheme + 'static>((scheme, file): (S, Vec<u8>)) -> (Box<dyn Scheme>, Vec<u8>) {
        (Box::new(scheme), file)
    }
    Ok(match format {
        Format::Guava => boxed(guava::Guava::plan(plan, true)?),
        Format::Guava32 => boxed(guava::Guava::plan(plan, false)?),
        Format::Dcso => boxed(dcso::Dcso::plan(plan)?),
        Format::FilterCascade => {
            let what = "is made of all members and non-members at once, with the function cascade";
            return Err(Error::unsupported(format, what));
        }
        _ => return Err(Error::unsupported(format, "is not written yet")),
    })
}
