//! Arguments of `common`, `diff`, `symdiff` and `dedup`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use petal_lines::{SetOp, Strategy};

use super::{CompressArgs, DocumentArgs, EngineArgs, FieldArgs, Inputs, RowArgs, SetInputs};
use crate::text::{parse_count, parse_rate};

/// Options of jobs that have an approximate mode.
#[derive(Args, Debug, Default)]
pub(crate) struct ApproxArgs {
    /// Read each input once and let filters decide; stderr shows the expected errors
    #[arg(long, conflicts_with_all = ["exact", "work_dir"])]
    pub(crate) approx: bool,
    /// With --approx: distinct lines to plan for [default: estimated from the
    /// files; for a pipe, the filter uses all memory]
    #[arg(
        short = 'n', long, alias = "expected", value_name = "N", value_parser = parse_count,
        requires = "approx", conflicts_with_all = ["exact", "work_dir"],
    )]
    pub(crate) capacity: Option<u64>,
    /// With --approx: target false-positive rate [default: the lowest that fits -m]
    #[arg(
        short = 'p', long, value_name = "RATE", value_parser = parse_rate,
        requires = "approx", conflicts_with_all = ["exact", "work_dir"],
    )]
    pub(crate) fpr: Option<f64>,
}

/// How the result is computed and where it is written.
#[derive(Args, Debug)]
pub(crate) struct ResultArgs {
    /// Compute the exact result [default]
    #[arg(long)]
    exact: bool,
    #[arg(long, hide = true, value_name = "NAME")]
    pub(crate) strategy: Option<StrategyArg>,
    /// Print only the number of lines, one total for all inputs
    #[arg(short, long, conflicts_with = "output")]
    pub(crate) count: bool,
    /// Write to FILE, which is replaced atomically [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) compress: CompressArgs,
    #[command(flatten)]
    pub(crate) rows: RowArgs,
    /// Write a JSON report to FILE: lines, candidates, passes, bytes, memory, seconds
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Keep finished phases in DIR until the job is done, so that --resume works;
    /// temporary files go there instead of -T
    #[arg(long, value_name = "DIR")]
    pub(crate) work_dir: Option<PathBuf>,
    /// Continue after the last finished phase in --work-dir, if there is one
    #[arg(long, requires = "work_dir")]
    pub(crate) resume: bool,
}

/// The name of a strategy, for tests and benchmarks.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum StrategyArg {
    Memory,
    Narrow,
    Partition,
}

impl From<StrategyArg> for Strategy {
    fn from(strategy: StrategyArg) -> Self {
        match strategy {
            StrategyArg::Memory => Self::Memory,
            StrategyArg::Narrow => Self::Narrow,
            StrategyArg::Partition => Self::Partition,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct SetArgs {
    #[command(flatten)]
    pub(crate) inputs: SetInputs,
    #[command(flatten)]
    pub(crate) approx: ApproxArgs,
    #[command(flatten)]
    pub(crate) result: ResultArgs,
    #[command(flatten)]
    pub(crate) fields: FieldArgs,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

#[derive(Args, Debug)]
pub(crate) struct CommonArgs {
    /// Print the lines of A that occur in at least K of the other inputs, at most
    /// 126; always exact [default: all of them]
    #[arg(
        long, value_name = "K", conflicts_with_all = ["approx", "capacity", "fpr"],
        value_parser = clap::value_parser!(u8).range(1..=i64::from(SetOp::MAX_AT_LEAST)),
    )]
    pub(crate) at_least: Option<u8>,
    #[command(flatten)]
    pub(crate) set: SetArgs,
}

#[derive(Args, Debug)]
pub(crate) struct SymDiffArgs {
    /// Input whose lines are printed first, in its order
    #[arg(value_name = "A")]
    pub(crate) first: PathBuf,
    /// Input whose lines are printed after those of A, in its order
    #[arg(value_name = "B")]
    pub(crate) second: PathBuf,
    #[command(flatten)]
    pub(crate) result: ResultArgs,
    #[command(flatten)]
    pub(crate) fields: FieldArgs,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// One of equal lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum KeepArg {
    First,
    Last,
}

#[derive(Args, Debug)]
pub(crate) struct DedupArgs {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Print each line that occurs at least twice in all inputs, once; always exact
    #[arg(
        short = 'd', long, conflicts_with_all = ["approx", "capacity", "fpr", "dupes_output"],
    )]
    pub(crate) only_duplicates: bool,
    /// Print the lines that occur exactly once in all inputs; always exact
    #[arg(
        short = 'u', long,
        conflicts_with_all = ["approx", "capacity", "fpr", "dupes_output", "only_duplicates"],
    )]
    pub(crate) only_unique: bool,
    /// Which of equal lines is printed; last is always exact
    #[arg(
        long, value_name = "WHICH", default_value = "first",
        conflicts_with_all = ["approx", "capacity", "fpr", "only_duplicates", "only_unique"],
    )]
    pub(crate) keep: KeepArg,
    /// Write the repeated lines to FILE, in input order; - for standard output,
    /// with -o
    #[arg(long, value_name = "FILE")]
    pub(crate) dupes_output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) documents: DocumentArgs,
    #[command(flatten)]
    pub(crate) approx: ApproxArgs,
    #[command(flatten)]
    pub(crate) result: ResultArgs,
    #[command(flatten)]
    pub(crate) fields: FieldArgs,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}
