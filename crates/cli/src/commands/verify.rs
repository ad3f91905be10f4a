//! `verify`: checks filter files for damage.

use std::path::Path;

use super::print;
use crate::args::VerifyArgs;
use crate::error::{Failure, Outcome, Result, print_stderr};
use crate::files::filter_file;
use crate::files::foreign_file::{self, AnyFile};
use crate::files::inputs::paths;
use crate::text;

/// Checks all files; a damaged file does not stop the command.
pub(super) fn run(args: &VerifyArgs) -> Result<Outcome> {
    let mut last_failure: Option<Failure> = None;
    for path in paths(&args.filters, &args.lists, args.memory.bytes())? {
        match verify(&path, args) {
            Ok(_) if args.quiet => {}
            Ok(found) => {
                print(&format!("{}: {found}\n", text::escaped(&path.display().to_string())))?
            }
            Err(failure) => {
                if let Some(before) = last_failure.replace(failure) {
                    print_stderr(&format!("petal: {before}"));
                }
            }
        }
    }
    last_failure.map_or(Ok(Outcome::Done), Err)
}

/// Verifies a file and describes it.
fn verify(path: &Path, args: &VerifyArgs) -> Result<String> {
    match foreign_file::open_as(path, args.format, args.memory.bytes(), filter_file::inspect)? {
        AnyFile::Native(filter) => {
            filter.verify().map_err(Failure::of_file(path))?;
            Ok("valid".to_owned())
        }
        AnyFile::Foreign(filter) => {
            filter.0.verify().map_err(Failure::of_foreign(path))?;
            let format = filter.0.format();
            Ok(format!("a {format} filter; its layout is valid, but it has no checksum"))
        }
    }
}
