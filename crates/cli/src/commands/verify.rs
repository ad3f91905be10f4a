//! `verify`: whether filter files are whole.

use std::path::Path;

use super::print;
use crate::args::VerifyArgs;
use crate::exit::{Failure, Outcome, Result, say};
use crate::filter_file;

/// One that is damaged does not keep the others from being examined.
pub(super) fn run(args: &VerifyArgs) -> Result<Outcome> {
    let mut trouble: Option<Failure> = None;
    for path in &args.filters {
        match examined(path) {
            Ok(()) if args.quiet => {}
            Ok(()) => print(&format!("{}: sound\n", path.display()))?,
            Err(failure) => {
                if let Some(before) = trouble.replace(failure) {
                    say(&format!("petal: {before}"));
                }
            }
        }
    }
    trouble.map_or(Ok(Outcome::Done), Err)
}

fn examined(path: &Path) -> Result<()> {
    filter_file::open(path)?.verify().map_err(Failure::of_file(path))
}
