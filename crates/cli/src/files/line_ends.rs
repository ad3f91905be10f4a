//! The line ends of the lines in a filter, in its metadata. The CR of CRLF is part of a line, so a
//! filter of lines with CRLF contains no line with LF, and the reverse.

use std::path::Path;

use petal_lines::{METADATA, crlf_metadata};
use serde_json::Value;

use crate::terminal::progress::ProgressReporter;

/// Returns the metadata of a filter of the lines that were read: with CRLF if all inputs have it.
pub(crate) fn recorded(metadata: &str, progress: &ProgressReporter) -> String {
    let ends = progress.line_ends();
    match ends.lf.is_none() && ends.crlf.is_some() {
        true => crlf_metadata(metadata),
        false => metadata.to_owned(),
    }
}

/// Warns if all lines that were read end differently from the lines in the filter.
pub(crate) fn warn_if_different(metadata: &str, filter: &Path, progress: &ProgressReporter) {
    let parsed = |text| serde_json::from_str::<Value>(text).unwrap_or_default();
    let (fields, lines) = (parsed(metadata), parsed(METADATA));
    // The keys of other filters may have no line ends.
    if fields["keys"] != lines["keys"] {
        return;
    }
    let (ends, filter) = (progress.line_ends(), filter.display());
    let differ = "the CR is part of the line, so lines that look equal differ; \
                  build the filter with --key-transform strip-cr";
    match (fields["line_ends"] == "CRLF", ends.lf, ends.crlf) {
        (false, None, Some(input)) => progress.print(&format!(
            "warning: the lines of {input} end with CRLF, those in {filter} do not: {differ}"
        )),
        (true, Some(input), None) => progress.print(&format!(
            "warning: the lines of {input} end with LF, those in {filter} with CRLF: {differ}"
        )),
        _ => {}
    }
}
