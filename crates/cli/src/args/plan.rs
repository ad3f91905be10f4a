//! Arguments of `plan`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use petal_lines::{KeySpec, MemoryLimit, SetOp};

use super::filters::probes;
use super::inputs::LISTS;
use super::setops::{KeepArg, StrategyArg};
use super::{FieldArgs, FilterTypeArg, KeyArgs, ListArgs, When};
use crate::text::{parse_count, parse_rate};

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("named").args(["inputs", LISTS[0], LISTS[1]]).multiple(true))]
pub(crate) struct PlanArgs {
    /// Estimate this command on INPUTS instead of sizing a filter
    #[arg(value_name = "COMMAND", requires = "named")]
    pub(crate) command: Option<SetOpArg>,
    /// Inputs of the command; petal samples them
    #[arg(value_name = "INPUTS")]
    pub(crate) inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) lists: ListArgs,
    /// Number of keys, e.g. 5e6 or 5M
    #[arg(
        short = 'n', long, alias = "expected", value_name = "N", value_parser = parse_count,
        conflicts_with = "command",
    )]
    pub(crate) capacity: Option<u64>,
    /// False-positive rate: 0.01, 1%, 1e-6 or 1/1000 [default: 1% if only -n is given]
    #[arg(
        short = 'p', long, value_name = "RATE", value_parser = parse_rate,
        conflicts_with = "command",
    )]
    pub(crate) fpr: Option<f64>,
    /// Size of the filter, e.g. 4G, 512M or 50% of RAM
    #[arg(long, value_name = "SIZE", conflicts_with = "command", value_parser = MemoryLimit::parse)]
    pub(crate) size: Option<MemoryLimit>,
    /// Maximum memory of the command [default: 50%]
    #[arg(short, long, value_name = "SIZE", value_parser = MemoryLimit::parse)]
    pub(crate) memory: Option<MemoryLimit>,
    /// Probes: bits that each key sets, 1 to 16; classic and counting-classic to 64
    #[arg(
        short = 'k', long, value_name = "K", conflicts_with = "command", value_parser = probes(),
    )]
    pub(crate) probes: Option<u32>,
    /// Number of bits (counting types: of counters) instead of --size
    #[arg(
        long, value_name = "BITS", value_parser = parse_count,
        conflicts_with_all = ["command", "size"],
    )]
    pub(crate) bits: Option<u64>,
    /// Choose the smallest filter for -n and -p; slower, as of `petal build`
    #[arg(
        long, requires = "capacity", requires = "fpr",
        conflicts_with_all = ["command", "bits", "probes"],
    )]
    pub(crate) least_space: bool,
    /// Type of the filter [default: bloom and classic]
    #[arg(long = "type", value_name = "TYPE", conflicts_with = "command")]
    pub(crate) filter_type: Option<FilterTypeArg>,
    /// Number of threads of the command [default: all processors]
    #[arg(
        short, long, visible_alias = "threads", value_name = "N", requires = "command",
        value_parser = clap::value_parser!(u16).range(1..),
    )]
    pub(crate) jobs: Option<u16>,
    /// Lines of the inputs end in NUL instead of LF
    #[arg(short = 'z', long, visible_short_alias = '0', requires = "command")]
    pub(crate) null: bool,
    /// Read inputs as lines even if they look like binary files or UTF-16
    #[arg(long, requires = "command")]
    pub(crate) text: bool,
    #[command(flatten)]
    fields: FieldArgs,
    #[command(flatten)]
    keys: KeyArgs,
    /// The command only counts lines
    #[arg(short, long, requires = "command")]
    pub(crate) count: bool,
    /// common: lines that are in at least K of the other inputs
    #[arg(
        long, value_name = "K", requires = "command",
        value_parser = clap::value_parser!(u8).range(1..=i64::from(SetOp::MAX_AT_LEAST)),
    )]
    at_least: Option<u8>,
    /// dedup: each line that occurs at least twice, once
    #[arg(short = 'd', long, requires = "command", conflicts_with = "at_least")]
    only_duplicates: bool,
    /// dedup: the lines that occur exactly once
    #[arg(
        short = 'u', long, requires = "command",
        conflicts_with_all = ["at_least", "only_duplicates"],
    )]
    only_unique: bool,
    /// dedup: which of equal lines is printed [default: first]
    #[arg(
        long, value_name = "WHICH", requires = "command",
        conflicts_with_all = ["at_least", "only_duplicates", "only_unique"],
    )]
    keep: Option<KeepArg>,
    /// Read the inputs completely, for exact line counts and narrow ranges
    #[arg(
        long, value_name = "WHEN", requires = "command", value_enum, default_value_t = When::Auto,
        num_args = 0..=1, require_equals = true, default_missing_value = "always",
    )]
    pub(crate) full_scan: When,
    #[arg(long, hide = true, value_name = "NAME", requires = "command")]
    pub(crate) strategy: Option<StrategyArg>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write an HTML page with charts to FILE instead of printing, - for standard output
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) html: Option<PathBuf>,
}

impl PlanArgs {
    /// Returns how the keys of the command's records are made.
    pub(crate) fn key_spec(&self) -> KeySpec {
        self.keys.spec(&self.fields)
    }

    /// Returns the operation of the job to estimate; `None` to size a filter.
    ///
    /// # Errors
    /// The option that the command does not have.
    pub(crate) fn op(&self) -> Result<Option<SetOp>, &'static str> {
        let has_lists = self.lists.list().is_some() || self.lists.recursive;
        let Some(command) = self.command else {
            return match self.key_spec() == KeySpec::default() {
                true if has_lists => Err("lists of files: need a COMMAND, such as dedup"),
                true => Ok(None),
                false => Err("options of keys and records: need a COMMAND, such as dedup"),
            };
        };
        if self.keys.bad_file().is_some() {
            return Err("--bad-records FILE: plan writes no records; use skip");
        }
        if self.keep.is_some() && command != SetOpArg::Dedup {
            return Err("--keep: is an option of plan dedup; leave it out");
        }
        let options = (self.at_least, self.only_duplicates, self.only_unique);
        Ok(Some(match (command, options) {
            (SetOpArg::Common, (Some(number), ..)) => SetOp::AtLeast(number),
            (SetOpArg::Dedup, (_, true, _)) => SetOp::Duplicates,
            (SetOpArg::Dedup, (_, _, true)) => SetOp::Unique,
            (SetOpArg::Common, (None, false, false)) => SetOp::Common,
            (SetOpArg::Diff, (None, false, false)) => SetOp::Diff,
            (SetOpArg::Symdiff, (None, false, false)) => SetOp::SymDiff,
            (SetOpArg::Dedup, (None, false, false)) if self.keep == Some(KeepArg::Last) => {
                SetOp::DedupLast
            }
            (SetOpArg::Dedup, (None, false, false)) => SetOp::Dedup,
            (_, (Some(_), ..)) => {
                return Err("--at-least: is an option of plan common; leave it out");
            }
            (_, (_, true, _)) => {
                return Err("--only-duplicates: is an option of plan dedup; leave it out");
            }
            (_, (_, _, true)) => {
                return Err("--only-unique: is an option of plan dedup; leave it out");
            }
        }))
    }
}

/// The name of a set operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SetOpArg {
    Common,
    Diff,
    Symdiff,
    Dedup,
}
