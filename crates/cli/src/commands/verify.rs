//! `verify`: whether filter files are whole.

use std::path::Path;

use super::print;
use crate::args::VerifyArgs;
use crate::exit::{Failure, Outcome, Result, say};
use crate::foreign_file::{self, AnyFile};

/// One that is damaged does not keep the others from being examined.
pub(super) fn run(args: &VerifyArgs) -> Result<Outcome> {
    let mut trouble: Option<Failure> = None;
    for path in &args.filters {
        match examined(path, args) {
            Ok(_) if args.quiet => {}
            Ok(found) => print(&format!("{}: {found}\n", path.display()))?,
            Err(failure) => {
                if let Some(before) = trouble.replace(failure) {
                    say(&format!("petal: {before}"));
                }
            }
        }
    }
    trouble.map_or(Ok(Outcome::Done), Err)
}

/// What a file was found to be.
fn examined(path: &Path, args: &VerifyArgs) -> Result<String> {
    match foreign_file::open(path, args.written, args.memory.bytes())? {
        AnyFile::Native(filter) => {
            filter.verify().map_err(Failure::of_file(path))?;
            Ok("sound".to_owned())
        }
        AnyFile::Foreign(filter) => {
            filter.0.verify().map_err(Failure::of_foreign(path))?;
            let format = filter.0.format();
            Ok(format!("a {format} filter, sound as far as can be told without a checksum"))
        }
    }
}
