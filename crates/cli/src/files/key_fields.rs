//! The fields that the keys of a filter were made of, in its metadata. Values can be looked up wherever
//! they come from, so other fields are allowed, with a note. The keys of a job are those of its settings and its inputs.

use std::path::Path;

use petal_lines::{KeySpec, METADATA, Source, filter_metadata, recorded_keys, with_keys_of};

use crate::terminal::progress::ProgressReporter;

/// Prints a note if the keys of a job are made of other fields than those of the filter.
pub(crate) fn note_if_different(
    path: &Path,
    metadata: &str,
    keys: (&KeySpec, &[Source]),
    progress: &ProgressReporter,
) {
    let others = ("those of this job", &*filter_metadata(keys.0, keys.1));
    if let Some(difference) = Difference::of((path, metadata), others) {
        difference.print(progress);
    }
}

/// Prints a note if the keys of a query are made of other fields than those of the filter and none was
/// found, or none can be.
pub(crate) fn note_if_not_found(
    path: &Path,
    metadata: &str,
    keys: (&KeySpec, &[Source]),
    found: bool,
    progress: &ProgressReporter,
) {
    let others = ("those of this job", &*filter_metadata(keys.0, keys.1));
    let difference = Difference::of((path, metadata), others);
    if let Some(difference) = difference.filter(|difference| difference.never_equal || !found) {
        difference.print(progress);
    }
}

/// Prints a note if the keys of two filters, given with their metadata, are made of different fields.
pub(crate) fn note_if_filters_differ(
    (path, metadata): (&Path, &str),
    (other, others): (&Path, &str),
    progress: &ProgressReporter,
) {
    let name = format!("those of {}", other.display());
    if let Some(difference) = Difference::of((path, metadata), (&name, others)) {
        difference.print(progress);
    }
}

/// Returns the metadata of a filter whose first keys are those of a job.
pub(crate) fn first(metadata: &str, keys: (&KeySpec, &[Source])) -> String {
    match recorded_keys(metadata)[..] {
        [] => metadata.to_owned(),
        _ => filter_metadata(keys.0, keys.1),
    }
}

/// Returns the metadata of a filter to which keys of a job were added.
pub(crate) fn added(metadata: &str, keys: (&KeySpec, &[Source])) -> String {
    with_keys_of(metadata, &filter_metadata(keys.0, keys.1))
}

/// How the keys of a filter differ from others.
struct Difference {
    text: String,
    /// Whether one is of several fields and the other of one.
    never_equal: bool,
}

impl Difference {
    fn of((path, metadata): (&Path, &str), (others, other): (&str, &str)) -> Option<Self> {
        let (recorded, other) = (recorded_keys(metadata), recorded_keys(other));
        if recorded.is_empty() || other.is_empty() {
            return None;
        }
        let names =
            |keys: &[String]| keys.iter().map(|key| fields(key).to_owned()).collect::<Vec<_>>();
        let (recorded, other) = (names(&recorded), names(&other));
        if other.iter().all(|key| recorded.contains(key)) {
            return None;
        }
        let count = |keys: &[String]| keys.iter().map(|key| is_list(key)).collect::<Vec<_>>();
        let (ours, theirs) = (recorded.join(" and "), other.join(" and "));
        let never_equal = !count(&recorded).iter().any(|list| count(&other).contains(list));
        let text = format!("the keys of {} are {ours}, {others} are {theirs}", path.display());
        Some(Self { text, never_equal })
    }

    fn print(&self, progress: &ProgressReporter) {
        let text = &self.text;
        progress.print(&match self.never_equal {
            true => format!("warning: {text}; a key of several fields never equals a key of one"),
            false => format!("note: {text}"),
        });
    }
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
