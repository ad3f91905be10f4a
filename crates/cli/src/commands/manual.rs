//! `completions` and `man`.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use super::print_bytes;
use crate::args::{CompletionsArgs, ManArgs, completions, man_page, man_pages};
use crate::error::{Failure, Outcome, Result, cannot_write};
use crate::files::output::Output;

pub(super) fn complete(args: &CompletionsArgs) -> Result<Outcome> {
    print_bytes(&completions(args.shell))?;
    Ok(Outcome::Done)
}

pub(super) fn man(args: &ManArgs) -> Result<Outcome> {
    match &args.dir {
        Some(dir) => write(dir, &man_pages())?,
        // The parser knows the command.
        None => man_page(args.command.as_deref()).map_or(Ok(()), |page| print_bytes(&page))?,
    }
    Ok(Outcome::Done)
}

fn write(dir: &Path, pages: &[(String, Vec<u8>)]) -> Result<()> {
    let failed = |path: &Path, e: &std::io::Error| {
        Failure::Message(cannot_write(&path.display().to_string(), e))
    };
    fs::create_dir_all(dir).map_err(|error| failed(dir, &error))?;
    for (name, page) in pages {
        let path = dir.join(name);
        let mut output = Output::open(Some(&path), &[])?;
        output.write_all(page).map_err(|error| failed(&path, &error))?;
        output.finish()?;
    }
    Ok(())
}
