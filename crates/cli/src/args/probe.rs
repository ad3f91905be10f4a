//! Arguments of `probe`.

use std::path::PathBuf;

use clap::Args;
use petal_lines::Source;

use super::inputs::LISTS;
use super::{CompressArgs, EngineArgs, ListArgs};

#[derive(Args, Debug)]
pub(crate) struct ProbeArgs {
    /// Parquet files
    #[arg(value_name = "FILE", required_unless_present_any = LISTS)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) lists: ListArgs,
    /// Column to query; separate the names of a nested column with dots
    #[arg(long, value_name = "COLUMN")]
    pub(crate) column: String,
    /// File of keys, one per line, as --column prints values [default: standard input]
    #[arg(long, value_name = "KEYS")]
    keys: Option<PathBuf>,
    /// Print the files that contain none of the keys
    #[arg(short = 'v', long)]
    pub(crate) invert: bool,
    /// Print row groups instead of files: name, number from 0, rows; tab-separated
    #[arg(long)]
    pub(crate) row_groups: bool,
    /// Print only the number of files or row groups
    #[arg(short, long, conflicts_with = "output")]
    pub(crate) count: bool,
    /// Write to FILE, which is replaced atomically [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) compress: CompressArgs,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

impl ProbeArgs {
    /// Returns the input of keys.
    pub(crate) fn keys(&self) -> Source {
        self.keys.as_ref().map_or(Source::Stdin, Source::from_arg)
    }
}
