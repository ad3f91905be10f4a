//! Arguments of `count`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{CompressArgs, EngineArgs, FieldArgs, Inputs, RowArgs};
use crate::text::parse_number_of_lines;

#[derive(Args, Debug)]
pub(crate) struct CountArgs {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Order of the lines [default: appearance; with --top: count]
    #[arg(long, value_name = "ORDER")]
    pub(crate) sort: Option<CountSort>,
    /// Print the N most frequent lines
    #[arg(long, value_name = "N", value_parser = parse_number_of_lines)]
    pub(crate) top: Option<u64>,
    /// Print only the lines that occur at least N times
    #[arg(long, value_name = "N", value_parser = parse_number_of_lines, default_value = "1")]
    pub(crate) min_count: u64,
    /// Write to FILE, which is replaced atomically [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) compress: CompressArgs,
    #[command(flatten)]
    pub(crate) fields: FieldArgs,
    #[command(flatten)]
    pub(crate) rows: RowArgs,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// The order of counted lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CountSort {
    /// Where each line occurs first
    Appearance,
    /// The most frequent line first, equal ones by their first appearance
    Count,
}
