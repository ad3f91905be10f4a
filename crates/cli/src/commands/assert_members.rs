//! `--assert-members`: checks that a filter contains the lines of a file.
//!
//! The file of another program does not record the type of its keys, and with a wrong key type
//! every lookup returns "absent". If lines are missing, the error names the key types that find all
//! of them.

use std::path::Path;
use std::sync::Arc;

use petal_interop::ForeignFilter;
use petal_lines::{CheckOptions, ErrorKind, LineFilter, Settings, Source, check};

use crate::error::{Failure, Result, messages};
use crate::files::foreign_file::ForeignLines;
use crate::text;

/// Checks one of petal's own filters.
pub(super) fn in_native<F: LineFilter + ?Sized>(
    settings: &Settings<'_>,
    filter: &F,
    path: &Path,
    members: &Source,
) -> Result<()> {
    match missing(settings, filter, members)? {
        None => Ok(()),
        Some(missing) => Err(failure(path, &missing, "is it the right filter?")),
    }
}

/// Checks a filter of another program.
pub(super) fn in_foreign<B: AsRef<[u8]> + Send + Sync>(
    settings: &Settings<'_>,
    filter: &ForeignLines<B>,
    path: &Path,
    members: &Source,
) -> Result<()> {
    let Some(missing) = missing(settings, filter, members)? else { return Ok(()) };
    let filter = &filter.0;
    let others = filter.header().key_types.iter().filter(|other| **other != filter.key_type());
    let mut matching = Vec::new();
    // Only a file can be read a second time.
    let is_file = matches!(members.place(), Source::Path(path) if path.is_file());
    for &key_type in others.filter(|_| is_file) {
        let other = ForeignFilter::from_bytes(filter.as_bytes(), Some(filter.format()))?;
        let other = ForeignLines(other.with_key_type(key_type));
        if self::missing(settings, &other, members)?.is_none() {
            matching.push(format!("--key-type {}", key_type.name()));
        }
    }
    let advice = match matching.as_slice() {
        [] if settings.spellings.of(std::slice::from_ref(members)).is_crlf() => {
            "its lines end with CRLF, and the CR is part of the key; remove it with \
             --key-transform strip-cr"
                .to_owned()
        }
        [] => "its keys have another type, or it is not the right filter".to_owned(),
        matching => format!("use {}, which finds all", matching.join(" or ")),
    };
    Err(failure(path, &missing, &advice))
}

/// Describes the lines that the filter does not contain; `None` if it contains all.
fn missing<F: LineFilter + ?Sized>(
    settings: &Settings<'_>,
    filter: &F,
    members: &Source,
) -> Result<Option<String>> {
    // The members are keys, one per line.
    let keys = Arc::new(settings.keys.of_listed_keys());
    let settings = Settings { keys, ..settings.clone() };
    let options = CheckOptions { invert: true, ..CheckOptions::default() };
    let checked = match check(&settings, filter, std::slice::from_ref(members), options, None) {
        // A line that is not a valid key is not in the filter.
        Err(error) if error.kind() == ErrorKind::Key => return Ok(Some(messages::lines(&error))),
        checked => checked?,
    };
    if checked.lines == 0 {
        return Err(Failure::Message(format!(
            "{members}: --assert-members: the file has no lines; name one with lines of the filter"
        )));
    }
    let (missing, all) = (text::count(checked.found), text::count(checked.lines));
    Ok((checked.found > 0)
        .then(|| format!("{missing} of the {all} lines of {members} are not in the filter")))
}

fn failure(path: &Path, missing: &str, advice: &str) -> Failure {
    Failure::Message(format!("{}: --assert-members: {missing}; {advice}", path.display()))
}
