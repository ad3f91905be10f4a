//! `verify`: whether filter files are whole.

use super::print;
use crate::args::VerifyArgs;
use crate::exit::{Failure, Outcome, Result};
use crate::filter_file;

pub(super) fn run(args: &VerifyArgs) -> Result<Outcome> {
    for path in &args.filters {
        filter_file::open(path)?.verify().map_err(Failure::of_file(path))?;
        if !args.quiet {
            print(&format!("{}: sound\n", path.display()))?;
        }
    }
    Ok(Outcome::Done)
}
