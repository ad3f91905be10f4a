//! Options that say which records are compared.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use petal_lines::{Alike, RecordRules};

/// Options of all commands that read records.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct RecordArgs {
    /// What to do with records without a key, such as invalid JSON: stop with an error,
    /// skip them, or write them to FILE and go on [default: stop]
    #[arg(long, value_name = "stop|skip|FILE", value_parser = BadRecords::parse)]
    bad_records: Option<BadRecords>,
    /// How keys with a null or missing value of JSON or Parquet compare: as one key, each
    /// differs from all others, or drop their records [default: one]
    #[arg(long, value_name = "one|distinct|drop", value_enum, hide_possible_values = true)]
    nulls: Option<AlikeArg>,
    /// How empty keys compare, as for --nulls [default: one]
    #[arg(long, value_name = "one|distinct|drop", value_enum, hide_possible_values = true)]
    empty: Option<AlikeArg>,
    /// Leave out lines that begin with TEXT, e.g. '#', also before the header
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    comment: Option<String>,
    /// Leave out the first N lines of each input, before the header
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64))]
    skip_lines: Option<u64>,
}

/// What happens with records without a key.
#[derive(Clone, Debug)]
enum BadRecords {
    Stop,
    Skip,
    Write(PathBuf),
}

impl BadRecords {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "stop" => Ok(Self::Stop),
            "skip" => Ok(Self::Skip),
            "" | "-" => Err("expected stop, skip or the name of a file".to_owned()),
            path => Ok(Self::Write(path.into())),
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum AlikeArg {
    One,
    Distinct,
    Drop,
}

impl From<AlikeArg> for Alike {
    fn from(arg: AlikeArg) -> Self {
        match arg {
            AlikeArg::One => Self::One,
            AlikeArg::Distinct => Self::Distinct,
            AlikeArg::Drop => Self::Drop,
        }
    }
}

impl RecordArgs {
    /// Returns which records are compared.
    pub(super) fn rules(&self) -> RecordRules {
        RecordRules {
            skip_lines: self.skip_lines.unwrap_or_default(),
            comment: self.comment.as_ref().map(|text| text.clone().into_bytes()),
            skip_bad: matches!(self.bad_records, Some(BadRecords::Skip | BadRecords::Write(_))),
            nulls: self.nulls.map(Into::into).unwrap_or_default(),
            empty: self.empty.map(Into::into).unwrap_or_default(),
        }
    }

    /// Returns the file for records without a key.
    pub(super) fn bad_file(&self) -> Option<&PathBuf> {
        match &self.bad_records {
            Some(BadRecords::Write(path)) => Some(path),
            _ => None,
        }
    }
}
