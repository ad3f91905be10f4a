//! The table of targets, and the sources of figures.

use super::results::Results;
use super::targets::Target;

/// The table of targets, and the source of its figures.
pub(super) fn targets(targets: &[Target], source: &str, results: &Results) -> String {
    let mut text = String::from("| work | target | measured | |\n|---|---|---|---|\n");
    for target in targets {
        text += &format!(
            "| {} | {} | {} | {} |\n",
            target.work,
            target.wanted,
            target.measured(),
            target.verdict_in_words()
        );
    }
    text + "\n" + &self::source(source, results)
}

/// The source of figures.
pub(super) fn source(source: &str, results: &Results) -> String {
    // Indented lines are code blocks, in which no character is special.
    let notes: String = results.notes.iter().map(|note| format!("    {note}\n")).collect();
    format!("Rows: `{source}`\n\n{notes}")
}
