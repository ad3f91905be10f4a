//! Warnings about keys that look equal but are spelled differently from those of a filter, whose
//! metadata records it: with a CR at the end, or hexadecimal in another case.

use std::path::Path;

use petal_lines::{
    Settings, Spelling, SpellingDifference, recorded_spelling, spelling_differences,
};

use crate::terminal::notes;
use crate::terminal::progress::ProgressReporter;

/// Warns if the keys that a job has read are spelled differently from those of a filter. `None`: the
/// filter does not record how they are. `found`: some were found in it, or none were looked for.
pub(crate) fn warn_if_different(
    settings: &Settings<'_>,
    recorded: Option<Spelling>,
    found: bool,
    filter: &Path,
    progress: &ProgressReporter,
) {
    let filter = filter.display().to_string();
    for (difference, input) in spelling_differences(settings, recorded, found) {
        let text = difference.text(notes::name(&input), &filter);
        progress.print(&warning(difference, &text));
    }
}

/// Warns if a key is spelled differently from those of a filter. `found`: it was found in it.
pub(crate) fn warn_if_key_differs(
    key: &[u8],
    recorded: Spelling,
    found: bool,
    filter: &Path,
    progress: &ProgressReporter,
) {
    let differences = Spelling::of_key(key).differences(Some(recorded));
    for difference in differences.into_iter().filter(|difference| difference.matters(found)) {
        let text = difference.text_of_key(&filter.display().to_string());
        progress.print(&warning(difference, &text));
    }
}

/// Warns if the keys of two filters, given with their metadata and number of keys, are spelled
/// differently.
pub(crate) fn warn_if_filters_differ(
    (path, metadata, inserted): (&Path, &str, u64),
    (other, others, inserted_of_other): (&Path, &str, u64),
    progress: &ProgressReporter,
) {
    let recorded = recorded_spelling(metadata, inserted);
    let keys = recorded_spelling(others, inserted_of_other).unwrap_or_default();
    for difference in keys.differences(recorded) {
        let [path, other] = [path, other].map(|path| path.display().to_string());
        progress.print(&warning(difference, &difference.text(&other, &path)));
    }
}

fn warning(difference: SpellingDifference, text: &str) -> String {
    let transform = difference.remedy();
    match difference.needs_rebuilding() {
        true => format!("warning: {text}; build the filter with --key-transform {transform}"),
        false => format!("warning: {text}; remove it with --key-transform {transform}"),
    }
}
