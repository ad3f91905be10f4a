//! `--probe-known`: lines that are known to be in a filter must all be found there, before
//! anything else is believed of it.
//!
//! Another program's file does not tell what its keys are: asked in the wrong form it says no to
//! everything, and that looks like any other answer. When lines are missing, the forms that would
//! find them all are named.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use petal::Membership;
use petal_interop::Foreign;
use petal_lines::{Check, LineFilter, Settings, Source, check};

use crate::exit::{Failure, Result};
use crate::foreign_file::ForeignFilter;
use crate::text;

/// Of petal's own filters.
pub(super) fn of_native(
    settings: &Settings<'_>,
    filter: &dyn Membership,
    path: &Path,
    known: &Source,
) -> Result<()> {
    match missing(settings, filter, known)? {
        None => Ok(()),
        Some(missing) => Err(refused(path, &missing, "it is not the filter you think")),
    }
}

/// Of another program's.
pub(super) fn of_foreign<B: AsRef<[u8]> + Send + Sync>(
    settings: &Settings<'_>,
    filter: &ForeignFilter<B>,
    path: &Path,
    known: &Source,
) -> Result<()> {
    let Some(missing) = missing(settings, filter, known)? else { return Ok(()) };
    let filter = &filter.0;
    let others = filter.told().forms.iter().filter(|form| **form != filter.key_form());
    let mut fitting = Vec::new();
    // A stream has been read; a file can be asked again.
    let again = matches!(known, Source::Path(path) if path.is_file());
    for &form in others.filter(|_| again) {
        let again = Foreign::from_bytes(filter.as_bytes(), Some(filter.format()))?;
        if self::missing(settings, &ForeignFilter(again.with_keys(form)), known)?.is_none() {
            fitting.push(format!("--as {}", form.name()));
        }
    }
    let advice = match fitting.as_slice() {
        [] if again && settings.delimiter == b'\n' && ends_in_cr(known) => {
            "its lines end in CR LF, and petal takes the CR as part of a line; take it out"
                .to_owned()
        }
        [] => "its keys are of another form, or it is not the filter you think".to_owned(),
        fitting => format!("with {} all are found", fitting.join(" or ")),
    };
    Err(refused(path, &missing, &advice))
}

/// Whether the first line of a file ends in CR LF.
fn ends_in_cr(known: &Source) -> bool {
    let Source::Path(path) = known else { return false };
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(1 << 16).read_to_end(&mut start));
    let line = start.split(|byte| *byte == b'\n').next();
    read.is_ok() && line.is_some_and(|line| line.ends_with(b"\r"))
}

/// What is missing, in words; `None` if all lines are found.
fn missing<F: LineFilter + ?Sized>(
    settings: &Settings<'_>,
    filter: &F,
    known: &Source,
) -> Result<Option<String>> {
    let asked = Check { invert: true, allow: None };
    let checked = match check(settings, filter, std::slice::from_ref(known), asked, None) {
        // What cannot be a key is not in it.
        Err(error) if error.is_bad_line() => return Ok(Some(error.to_string())),
        checked => checked?,
    };
    if checked.lines == 0 {
        return Err(Failure::Plain(format!(
            "{known}: --probe-known has no lines; name some that are in the filter"
        )));
    }
    let (missing, all) = (text::count(checked.found), text::count(checked.lines));
    Ok((checked.found > 0)
        .then(|| format!("{missing} of the {all} lines of {known} are not in it")))
}

fn refused(path: &Path, missing: &str, advice: &str) -> Failure {
    Failure::Plain(format!("{}: --probe-known: {missing}; {advice}", path.display()))
}
