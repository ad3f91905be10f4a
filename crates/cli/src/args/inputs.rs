//! Arguments that name inputs: on the command line, in lists, and in directories.

use std::path::PathBuf;

use clap::Args;
use petal_lines::Source;

/// The options that name a list, by their identifiers.
pub(super) const LISTS: [&str; 2] = ["files_from", "files0_from"];

/// Returns the input with this name, which may have a fragment.
///
/// # Errors
/// If the fragment cannot be used.
pub(crate) fn source(name: impl Into<PathBuf>) -> petal_lines::Result<Source> {
    Source::of_name(name, Source::from_arg)
}

/// Options of all commands that take any number of files.
#[derive(Args, Clone, Debug)]
pub(crate) struct ListArgs {
    /// Read the names of the files from LIST, one per line; - for standard input
    #[arg(long, value_name = "LIST", conflicts_with = "files0_from")]
    files_from: Option<PathBuf>,
    /// Read the names of the files from LIST, each with a NUL after it, as find -print0
    /// writes them; - for standard input
    #[arg(long, value_name = "LIST")]
    files0_from: Option<PathBuf>,
    /// Take all files in and below a directory instead of it, sorted by name
    #[arg(long)]
    pub(crate) recursive: bool,
    /// With --recursive: only files whose name matches PATTERN, e.g. '*.jsonl', or
    /// whose path in the directory does if it has a slash; may be repeated
    #[arg(long, value_name = "PATTERN", value_parser = pattern, requires = "recursive")]
    pub(crate) glob: Vec<glob::Pattern>,
}

fn pattern(text: &str) -> Result<glob::Pattern, String> {
    glob::Pattern::new(text).map_err(|error| format!("{}, at byte {}", error.msg, error.pos))
}

impl ListArgs {
    /// Returns the list of names, which is an input that must not be another one too.
    pub(crate) fn source(&self) -> Option<Source> {
        self.list().map(|(list, ..)| list)
    }

    /// Returns the list of names, the byte after each name, and the option that named the list.
    pub(crate) fn list(&self) -> Option<(Source, u8, &'static str)> {
        let of = |list: &Option<PathBuf>, end, option| {
            list.as_ref().map(|list| (Source::from_arg(list), end, option))
        };
        of(&self.files_from, b'\n', "--files-from")
            .or_else(|| of(&self.files0_from, 0, "--files0-from"))
    }
}

/// The inputs of commands that treat all of them alike.
#[derive(Args, Clone, Debug)]
pub(crate) struct Inputs {
    /// Inputs, - for standard input [default: -]
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) lists: ListArgs,
}

/// The inputs of commands that compare the first one with others.
#[derive(Args, Debug)]
pub(crate) struct SetInputs {
    /// Input whose lines are printed, in its order
    #[arg(value_name = "A", required_unless_present_any = LISTS)]
    pub(crate) first: Option<PathBuf>,
    /// Inputs to compare with
    #[arg(value_name = "B", required_unless_present_any = LISTS)]
    pub(crate) others: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) lists: ListArgs,
}
