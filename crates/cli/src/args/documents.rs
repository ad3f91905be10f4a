//! Options of `dedup` that compare the parts of documents.

use clap::{Args, ValueEnum};
use petal_lines::PartUnit;

use crate::text::{parse_number_of_parts, parse_share};

/// Which parts of documents are compared, and which documents stay.
#[derive(Args, Debug)]
pub(crate) struct DocumentArgs {
    /// Remove repeated parts of the texts that --json-key names, or repeated lines of
    /// files, and write each file to the directory of -o
    #[arg(
        long, value_name = "UNIT", requires = "output",
        conflicts_with_all = [
            "only_duplicates", "only_unique", "dupes_output", "keys_only", "work_dir", "resume",
            "column", "keep", "count",
        ],
    )]
    pub(crate) unit: Option<UnitArg>,
    /// Drop documents that keep fewer parts than N
    #[arg(
        long, value_name = "N", requires_all = ["unit", "json_key"],
        value_parser = parse_number_of_parts,
    )]
    pub(crate) min_parts: Option<u64>,
    /// Drop documents of whose parts at least SHARE were repeated, e.g. 0.8 or 80%
    #[arg(
        long, value_name = "SHARE", requires_all = ["unit", "json_key"], value_parser = parse_share,
    )]
    pub(crate) drop_if: Option<f64>,
}

/// The parts that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum UnitArg {
    /// Lines between blank lines
    Paragraph,
    /// Lines
    Line,
    /// Sentences
    Sentence,
}

impl From<UnitArg> for PartUnit {
    fn from(unit: UnitArg) -> Self {
        match unit {
            UnitArg::Paragraph => Self::Paragraph,
            UnitArg::Line => Self::Line,
            UnitArg::Sentence => Self::Sentence,
        }
    }
}
