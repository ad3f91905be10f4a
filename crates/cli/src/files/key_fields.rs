//! The fields that the keys of a filter were made of, in its metadata. Values can be looked up wherever
//! they come from, so other fields are allowed, with a note.

use std::path::Path;

use petal_lines::{KeySpec, METADATA, filter_metadata, recorded_keys, with_keys_of};

use crate::terminal::progress::ProgressReporter;

/// Prints a note if the keys of a job are made of other fields than those of the filter.
pub(crate) fn note_if_different(
    path: &Path,
    metadata: &str,
    keys: &KeySpec,
    progress: &ProgressReporter,
) {
    note_difference((path, metadata), ("those of this job", &filter_metadata(keys)), progress);
}

/// Returns the metadata of the union of two filters. Prints a note if their keys are made of different
/// fields.
pub(crate) fn merged(
    path: &Path,
    metadata: &str,
    other: (&Path, &str),
    progress: &ProgressReporter,
) -> String {
    let name = format!("those of {}", other.0.display());
    note_difference((path, metadata), (&name, other.1), progress);
    with_keys_of(metadata, other.1)
}

/// Returns the metadata of a filter whose first keys are those of a job.
pub(crate) fn first(metadata: &str, keys: &KeySpec) -> String {
    match recorded_keys(metadata)[..] {
        [] => metadata.to_owned(),
        _ => filter_metadata(keys),
    }
}

/// Returns the metadata of a filter to which keys of a job were added.
pub(crate) fn added(metadata: &str, keys: &KeySpec) -> String {
    with_keys_of(metadata, &filter_metadata(keys))
}

fn note_difference(
    (path, metadata): (&Path, &str),
    (others, other): (&str, &str),
    progress: &ProgressReporter,
) {
    let (recorded, other) = (recorded_keys(metadata), recorded_keys(other));
    if recorded.is_empty() || other.is_empty() {
        return;
    }
    let names = |keys: &[String]| keys.iter().map(|key| fields(key).to_owned()).collect::<Vec<_>>();
    let (recorded, other) = (names(&recorded), names(&other));
    if other.iter().all(|key| recorded.contains(key)) {
        return;
    }
    let count = |keys: &[String]| keys.iter().map(|key| is_list(key)).collect::<Vec<_>>();
    let filter = path.display();
    let (ours, theirs) = (recorded.join(" and "), other.join(" and "));
    let (kind, end) = match count(&recorded).iter().any(|list| count(&other).contains(list)) {
        true => ("note", ""),
        false => ("warning", "; a key of several fields never equals a key of one"),
    };
    progress.print(&format!("{kind}: the keys of {filter} are {ours}, {others} are {theirs}{end}"));
}

/// Returns the names of the fields, without the separator and the header of a file.
fn fields(key: &str) -> &str {
    if recorded_keys(METADATA).iter().any(|lines| lines == key) {
        return "whole lines";
    }
    key.rfind(" of CSV").map_or(key, |end| &key[..end])
}

/// Returns whether a key is made of several fields.
fn is_list(key: &str) -> bool {
    key.starts_with("columns ") || key.starts_with("values ")
}
