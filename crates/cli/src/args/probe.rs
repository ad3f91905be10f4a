//! What `probe` takes.

use std::path::PathBuf;

use clap::Args;
use petal_lines::Source;

use super::Engine;

#[derive(Args, Debug)]
pub(crate) struct ProbeArgs {
    /// Parquet files
    #[arg(value_name = "FILE", required_unless_present = "files_from")]
    pub(crate) files: Vec<PathBuf>,
    /// The column to ask; with a dot between the names of a path
    #[arg(long, value_name = "COLUMN")]
    pub(crate) column: String,
    /// The keys, a line each; numbers in decimal [default: - for standard input]
    #[arg(long, value_name = "KEYS")]
    keys: Option<PathBuf>,
    /// Take names of more files from LIST, a line each; - for standard input
    #[arg(long, value_name = "LIST")]
    files_from: Option<PathBuf>,
    /// Print the files that certainly hold none of the keys
    #[arg(short = 'v', long)]
    pub(crate) invert: bool,
    /// Print row groups instead of files: name, number from 0, and rows, with tabs between
    #[arg(long)]
    pub(crate) row_groups: bool,
    /// Print only how many there are
    #[arg(short, long, conflicts_with = "output")]
    pub(crate) count: bool,
    /// Write to a file, which appears whole or not at all
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

impl ProbeArgs {
    /// Where the keys are.
    pub(crate) fn keys(&self) -> Source {
        self.keys.as_ref().map_or(Source::Stdin, Source::from_arg)
    }

    /// Where names of more files are.
    pub(crate) fn list(&self) -> Option<Source> {
        self.files_from.as_ref().map(Source::from_arg)
    }
}
